//! Time as data.
//!
//! The core never asks what time it is. Runtimes pass monotonic milliseconds in and get deadlines
//! back, each with the reason for it. Wall-clock time is a separate type and appears only where a
//! stamp is stored or shown.

/// Monotonic milliseconds since a start that the runtime chose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub u64);

impl Millis {
    /// This instant plus `span` milliseconds; saturates instead of wrapping.
    #[must_use]
    pub const fn after(self, span: u64) -> Self {
        Self(self.0.saturating_add(span))
    }

    /// Milliseconds from `earlier` to `self`, zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Wall-clock time: milliseconds since 1970-01-01T00:00:00Z. For stamps only, never for deadlines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMillis(pub i64);

/// When a machine wants to be called again although nothing arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The instant at which to tick the machine; `None` means only an input can move it.
    pub until: Option<Millis>,
    /// Which deadline this is, for logs and transcripts.
    pub why: &'static str,
}
