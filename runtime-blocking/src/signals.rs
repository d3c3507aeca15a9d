//! SIGTERM and SIGINT: ZCode's user answered first, or ZCode ends.

#[cfg(unix)]
use std::sync::Arc;
#[cfg(unix)]
use std::sync::atomic::{AtomicBool, Ordering};

/// Notes signals without a thread, from the first moment on.
#[cfg(unix)]
#[derive(Clone, Debug)]
pub(crate) struct Flag(Arc<AtomicBool>);

#[cfg(unix)]
impl Flag {
    /// Starts noting. A failure leaves the default behaviour: the signal ends the process.
    pub(crate) fn register() -> Self {
        use signal_hook::consts::{SIGINT, SIGTERM};
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT] {
            if let Err(error) = signal_hook::flag::register(signal, Arc::clone(&flag)) {
                crate::log(&format!("signal {signal} cannot be caught: {error}"));
            }
        }
        Self(flag)
    }

    /// Whether one came.
    pub(crate) fn raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Calls `tell` for every signal, from a thread of its own, also for one that came before.
    pub(crate) fn watch(&self, tell: impl Fn() + Send + 'static) {
        use signal_hook::consts::{SIGINT, SIGTERM};
        match signal_hook::iterator::Signals::new([SIGTERM, SIGINT]) {
            Ok(mut signals) => {
                let flag = self.clone();
                std::thread::spawn(move || {
                    if flag.raised() {
                        tell();
                    }
                    for _ in signals.forever() {
                        tell();
                    }
                });
            }
            Err(error) => crate::log(&format!("signals cannot be watched: {error}")),
        }
    }
}

/// Other systems end a hook without notice.
#[cfg(not(unix))]
#[derive(Clone, Debug)]
pub(crate) struct Flag;

#[cfg(not(unix))]
impl Flag {
    pub(crate) const fn register() -> Self {
        Self
    }

    pub(crate) const fn raised(&self) -> bool {
        false
    }

    pub(crate) fn watch(&self, _tell: impl Fn() + Send + 'static) {}
}
