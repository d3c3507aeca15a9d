//! ZCode's configuration as a file: who owns it, what it holds, how it is replaced.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::error::InstallError;
use crate::durable;

/// Longest configuration that is edited: far above any real one, so that a wrong `--config` (a
/// database, an archive) is refused and not read into memory.
pub const SIZE_LIMIT: u64 = 16 * 1024 * 1024;

/// A configuration that may be edited.
#[derive(Debug)]
pub struct ConfigFile {
    /// The name by which the user knows it.
    shown: PathBuf,
    /// The file itself, behind all links.
    target: PathBuf,
    /// `None` when there is no file.
    bytes: Option<Vec<u8>>,
    mode: u32,
}

impl ConfigFile {
    /// Reads the file and makes sure that it is this user's own plain file.
    ///
    /// # Errors
    ///
    /// Refuses a file that is read-only, too long, of another user, no plain file, behind a link
    /// that leads nowhere, or known by several names (a rename would part them).
    pub fn open(path: &Path) -> Result<Self, InstallError> {
        let target = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mode = durable::PRIVATE_FILE;
                let (shown, target) = (path.to_owned(), path.to_owned());
                return Ok(Self { shown, target, bytes: None, mode });
            }
            Err(error) => return Err(InstallError::Io(path.to_owned(), error)),
            Ok(found) if found.is_symlink() => fs::canonicalize(path).map_err(|_| {
                InstallError::Unusual(path.to_owned(), "is a link that leads nowhere; repair it")
            })?,
            Ok(_) => path.to_owned(),
        };
        let found = fs::metadata(&target).map_err(InstallError::io(&target))?;
        if !found.is_file() {
            return Err(InstallError::Unusual(path.to_owned(), "is not a file"));
        }
        let mode = permitted(path, &found)?;
        if found.len() > SIZE_LIMIT {
            return Err(InstallError::TooLong(path.to_owned()));
        }
        let bytes = fs::read(&target).map_err(InstallError::io(&target))?;
        Ok(Self { shown: path.to_owned(), target, bytes: Some(bytes), mode })
    }

    /// The name by which the user knows it.
    #[must_use]
    pub fn shown(&self) -> &Path {
        &self.shown
    }

    /// What the file holds; a missing file holds nothing.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_deref().unwrap_or_default()
    }

    /// What the file holds; `None` when there is no file.
    #[must_use]
    pub fn existing(&self) -> Option<&[u8]> {
        self.bytes.as_deref()
    }

    /// The directories that [`ConfigFile::replace`] will have to make, the outermost first.
    #[must_use]
    pub fn missing_directories(&self) -> Vec<PathBuf> {
        let above = self.target.ancestors().skip(1);
        let mut missing: Vec<PathBuf> =
            above.take_while(|dir| !dir.exists()).map(Path::to_owned).collect();
        missing.reverse();
        missing
    }

    /// Puts `bytes` in place of what [`ConfigFile::open`] read. The mode stays.
    ///
    /// # Errors
    ///
    /// Refuses when the file has changed since it was read.
    pub fn replace(&self, bytes: &[u8]) -> Result<(), InstallError> {
        if let Some(parent) = self.target.parent() {
            durable::create_directories(parent).map_err(InstallError::io(parent))?;
            let name = self.target.file_name().and_then(|name| name.to_str());
            durable::sweep(parent, name).map_err(InstallError::io(parent))?;
        }
        self.unchanged()?;
        durable::write(&self.target, bytes, self.mode).map_err(InstallError::io(&self.target))
    }

    /// Removes the file.
    ///
    /// # Errors
    ///
    /// Refuses when the file has changed since it was read.
    pub fn delete(&self) -> Result<(), InstallError> {
        self.unchanged()?;
        durable::remove_file(&self.target).map_err(InstallError::io(&self.target))
    }

    fn unchanged(&self) -> Result<(), InstallError> {
        let found = match fs::read(&self.target) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(InstallError::Io(self.target.clone(), error)),
        };
        if found == self.bytes { Ok(()) } else { Err(InstallError::Changed(self.shown.clone())) }
    }
}

/// The file's mode, if this user may edit it.
#[cfg(unix)]
fn permitted(path: &Path, found: &fs::Metadata) -> Result<u32, InstallError> {
    use std::os::unix::fs::MetadataExt as _;
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(InstallError::Foreign(path.to_owned(), found.uid()));
    }
    if found.nlink() > 1 {
        let what = "has several names (hard links), which a safe change would part";
        return Err(InstallError::Unusual(path.to_owned(), what));
    }
    // Also for root, whom the mode does not stop: it is its owner's word.
    if found.mode() & 0o200 == 0 {
        return Err(InstallError::ReadOnly(path.to_owned()));
    }
    Ok(found.mode() & 0o7777)
}

#[cfg(not(unix))]
fn permitted(path: &Path, found: &fs::Metadata) -> Result<u32, InstallError> {
    if found.permissions().readonly() {
        return Err(InstallError::ReadOnly(path.to_owned()));
    }
    Ok(durable::PRIVATE_FILE)
}
