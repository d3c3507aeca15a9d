//! Why an installation is refused.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::edit::Refusal;
use crate::plugin::PluginError;

/// Why `install` or `uninstall` stopped.
#[derive(Debug)]
pub enum InstallError {
    /// A file or directory could not be read or changed.
    Io(PathBuf, io::Error),
    /// The configuration cannot be read in exactly one way.
    Refused(PathBuf, Refusal),
    /// The file or directory belongs to the user of this number, not to the one who runs this.
    Foreign(PathBuf, u32),
    /// The configuration is read-only.
    ReadOnly(PathBuf),
    /// The configuration is no plain file, or one with several names.
    Unusual(PathBuf, &'static str),
    /// The configuration is longer than [`super::config_file::SIZE_LIMIT`].
    TooLong(PathBuf),
    /// Somebody else changed the configuration in the same moment.
    Changed(PathBuf),
    /// The directory holds something that this program did not put there.
    Occupied(PathBuf),
    /// Another installation is running.
    Busy(PathBuf),
    /// `HOME` is not set, so that nothing can be found by default.
    NoHome,
    /// A path that JSON cannot hold.
    NotUtf8(PathBuf),
    /// There is nothing to take out.
    NotInstalled(PathBuf),
    /// There is no snapshot before the current one.
    NoEarlier(PathBuf),
    /// The plugin could not be written.
    Plugin(PluginError),
}

impl InstallError {
    pub(super) fn io(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |error| Self::Io(path, error)
    }

    pub(super) fn output(error: io::Error) -> Self {
        Self::Io(PathBuf::from("standard output"), error)
    }
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Refused(path, refusal) => write!(f, "{}: {refusal}", path.display()),
            Self::Foreign(path, uid) => write!(
                f,
                "{} belongs to another user (number {uid}); run this as that user",
                path.display()
            ),
            Self::ReadOnly(path) => write!(
                f,
                "{} is read-only; allow writing with chmod u+w, or name another by --config",
                path.display()
            ),
            Self::Unusual(path, what) => write!(f, "{} {what}", path.display()),
            Self::TooLong(path) => write!(
                f,
                "{} has more than {} bytes, which is no configuration",
                path.display(),
                super::config_file::SIZE_LIMIT
            ),
            Self::Changed(path) => write!(
                f,
                "{} was changed by somebody else just now; nothing was written, run this again",
                path.display()
            ),
            Self::Occupied(path) => write!(
                f,
                "{} holds something else; name another place by --prefix, or move it away",
                path.display()
            ),
            Self::Busy(path) => {
                write!(f, "another zcode-mail is at work in {}; wait for it to end", path.display())
            }
            Self::NoHome => {
                f.write_str("HOME is not set; name the places by --prefix and --config")
            }
            Self::NotUtf8(path) => write!(
                f,
                "{} is not valid UTF-8, so ZCode's configuration cannot name it; use --prefix",
                path.display()
            ),
            Self::NotInstalled(path) => {
                write!(
                    f,
                    "nothing is installed in {}; --prefix names another place",
                    path.display()
                )
            }
            Self::NoEarlier(path) => {
                write!(f, "{} has no snapshot before the current one", path.display())
            }
            Self::Plugin(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for InstallError {}

impl From<PluginError> for InstallError {
    fn from(error: PluginError) -> Self {
        Self::Plugin(error)
    }
}
