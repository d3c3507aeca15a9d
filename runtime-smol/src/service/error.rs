//! Why a change of the service stopped.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a change of the service stopped.
#[derive(Debug)]
pub enum ServiceError {
    /// A file could not be read or changed.
    Io(PathBuf, io::Error),
    /// SQLite refused something, or its check of the copy found damage.
    Database(PathBuf, String),
    /// Another change is running.
    Busy(PathBuf),
    /// There is no service to upgrade.
    NotInstalled(PathBuf),
    /// The new program does not run.
    BadProgram(PathBuf, String),
    /// systemd refused a command.
    Systemd(String),
    /// The gateway is not well; what was done about it.
    Unwell {
        /// What was not well.
        why: String,
        /// What was done.
        then: String,
    },
    /// Generations that could not be removed.
    NotRemoved(Vec<(PathBuf, io::Error)>),
}

impl ServiceError {
    pub(super) fn io(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |error| Self::Io(path, error)
    }

    /// The exit status: 2 when a removal failed, else 1.
    #[must_use]
    pub const fn status(&self) -> u8 {
        if matches!(self, Self::NotRemoved(_)) { 2 } else { 1 }
    }
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Database(path, what) => {
                write!(f, "{}: {what}; nothing was changed", path.display())
            }
            Self::Busy(path) => {
                write!(f, "another change is running in {}; wait for it to end", path.display())
            }
            Self::NotInstalled(path) => write!(
                f,
                "no gateway is installed in {}; run zcode-mail gateway install",
                path.display()
            ),
            Self::BadProgram(path, what) => {
                write!(f, "{} does not run: {what}; nothing was changed", path.display())
            }
            Self::Systemd(what) => f.write_str(what),
            Self::Unwell { why, then } => write!(f, "the new gateway is not well: {why}; {then}"),
            Self::NotRemoved(list) => {
                for (number, (path, error)) in list.iter().enumerate() {
                    let separator = if number == 0 { "" } else { "\n" };
                    write!(f, "{separator}[FAIL] {} stays: {error}", path.display())?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for ServiceError {}
