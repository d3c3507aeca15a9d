//! Whether the process that started this one still lives.

use std::time::Duration;

/// How often to look.
pub(super) const PARENT_CHECK: Duration = Duration::from_secs(2);

/// Who started this process. When that process dies while somebody else still holds the other end
/// of the input, no end of input tells so.
pub(super) struct Parent {
    #[cfg(unix)]
    pid: Option<rustix::process::Pid>,
}

impl Parent {
    #[cfg(unix)]
    pub(super) fn now() -> Self {
        // A parent that is process 1 cannot die, and is what a process gets that had another.
        Self { pid: rustix::process::getppid().filter(|pid| !pid.is_init()) }
    }

    #[cfg(unix)]
    pub(super) fn is_gone(&self) -> bool {
        self.pid.is_some() && rustix::process::getppid() != self.pid
    }

    #[cfg(not(unix))]
    pub(super) const fn now() -> Self {
        Self {}
    }

    #[cfg(not(unix))]
    pub(super) const fn is_gone(&self) -> bool {
        false
    }
}
