//! Standard error: short lines, quiet by default, never blocking.
//!
//! Some hosts never drain this pipe. A line is written only when the descriptor can take it; when
//! it cannot, the line is lost, not the server. Contents of mails, arguments and keys never appear
//! here, with one exception that says so: a key that was made just now.

use std::io::Write as _;

/// Longest line written, in bytes: what a pipe takes at once (POSIX `PIPE_BUF` is at least 512,
/// 4096 on Linux).
const MAX_LINE: usize = 1024;

/// How much is said, by `AGENTMAIL_LOG`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Off,
    Error,
    Info,
    Debug,
}

/// The log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Log {
    level: Level,
}

impl Log {
    /// A log of the level named `off`, `error`, `info` or `debug`; anything else is `error`.
    pub(super) fn new(level: Option<&str>) -> Self {
        let level = level.unwrap_or_default().trim().to_ascii_lowercase();
        Self {
            level: match level.as_str() {
                "off" | "0" | "none" => Level::Off,
                "info" => Level::Info,
                "debug" | "trace" | "all" => Level::Debug,
                _ => Level::Error,
            },
        }
    }

    /// What a person has to see whatever the level: a key that was made just now.
    pub(super) fn must(self, text: &str) {
        Self { level: Level::Error }.line(Level::Error, text);
    }

    /// Something a person has to act on.
    pub(super) fn error(self, text: &str) {
        self.line(Level::Error, text);
    }

    /// What happens, once an event.
    pub(super) fn info(self, text: &str) {
        self.line(Level::Info, text);
    }

    /// Details, without contents.
    pub(super) fn debug(self, text: &str) {
        self.line(Level::Debug, text);
    }

    fn line(self, level: Level, text: &str) {
        if level > self.level || !can_take() {
            return;
        }
        let mut line = String::from("zcode-mail-mcp: ");
        line.extend(text.chars().map(|c| if c.is_control() { ' ' } else { c }));
        line.truncate(line.floor_char_boundary(MAX_LINE - 1));
        line.push('\n');
        // Nobody can be told when this fails.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

/// Whether a short line can be written at once.
#[cfg(unix)]
fn can_take() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stderr = std::io::stderr();
    let mut fds = [PollFd::new(&stderr, PollFlags::OUT)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&at_once)).is_ok() && fds[0].revents().contains(PollFlags::OUT)
}

#[cfg(not(unix))]
const fn can_take() -> bool {
    true
}
