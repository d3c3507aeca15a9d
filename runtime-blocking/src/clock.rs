//! The only place that reads a clock.

use std::time::{SystemTime, UNIX_EPOCH};

use zcode_mail_core::time::{Millis, UnixMillis};

/// A monotonic clock that counts from its creation.
///
/// On Linux it also counts the time in which the machine is suspended: whoever opens a laptop after
/// an hour must not be asked about a call whose time has run out. The standard library's clock does
/// not count suspend there, nor on macOS, where this one uses it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    start_ms: u64,
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    start: std::time::Instant,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl Clock {
    /// Starts at zero.
    #[must_use]
    pub(crate) fn start() -> Self {
        Self { start_ms: boot_ms() }
    }

    /// Milliseconds since the start.
    #[must_use]
    pub(crate) fn now(&self) -> Millis {
        Millis(boot_ms().saturating_sub(self.start_ms))
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn boot_ms() -> u64 {
    use rustix::time::{ClockId, clock_gettime};
    let at = clock_gettime(ClockId::Boottime);
    // Both are never negative on this clock.
    let seconds = u64::try_from(at.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(at.tv_nsec).unwrap_or(0);
    seconds * 1_000 + nanos / 1_000_000
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
impl Clock {
    /// Starts at zero.
    #[must_use]
    pub(crate) fn start() -> Self {
        Self { start: std::time::Instant::now() }
    }

    /// Milliseconds since the start.
    #[must_use]
    pub(crate) fn now(&self) -> Millis {
        Millis(u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX))
    }
}

/// Wall-clock time as the system has it, for comparisons with stamps of files.
pub(crate) fn wall_clock() -> SystemTime {
    SystemTime::now()
}

/// Wall-clock time, for stamps in files. A clock before 1970 counts as 1970.
#[must_use]
pub(crate) fn unix_now() -> UnixMillis {
    let since = wall_clock().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMillis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
