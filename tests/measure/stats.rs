//! Samples, their percentiles, and the table that shows them.

use std::time::Duration;

/// Durations of one measure.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    /// Adds a sample.
    pub fn push(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    /// The sample below which `percent` of all lie.
    pub fn percentile(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let last = sorted.len().saturating_sub(1);
        sorted.get(last * percent / 100).copied().unwrap_or_default()
    }

    /// The median.
    pub fn median(&self) -> Duration {
        self.percentile(50)
    }

    /// One line: how many samples, p1, p50 and p99 in milliseconds.
    pub fn line(&self) -> String {
        let ms = |percent| self.percentile(percent).as_secs_f64() * 1e3;
        format!(
            "n {:>4}   p1 {:>8.3}   p50 {:>8.3}   p99 {:>8.3} ms",
            self.0.len(),
            ms(1),
            ms(50),
            ms(99)
        )
    }
}

/// How often `b` goes into `a`.
pub fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}
