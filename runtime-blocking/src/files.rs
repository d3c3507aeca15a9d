//! Private files: whose they must be, and how they are written.
//!
//! A file that gives power (a key, remembered approvals) counts only when it belongs to this user,
//! is no symbolic link, and nobody else may write it; the same for its directory, where another
//! user could otherwise replace it (faults row 17).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

/// Who else may do what with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Privacy {
    /// Others may read, not write.
    OnlyWeWrite,
    /// Others may do nothing.
    OnlyWeRead,
}

/// Reads a file of at most `limit` bytes after checking whose it is; `None` if it does not exist.
///
/// # Errors
/// A sentence that names the file and what is wrong with it.
pub(crate) fn read_private(
    path: &Path,
    limit: usize,
    privacy: Privacy,
) -> Result<Option<Vec<u8>>, String> {
    let shown = path.display();
    let mut options = OpenOptions::new();
    options.read(true);
    no_follow(&mut options);
    let file = match options.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if is_link(path) => return Err(format!("{shown} is a symbolic link ({error})")),
        Err(error) => return Err(format!("{shown} cannot be opened: {error}")),
    };
    let meta = file.metadata().map_err(|error| format!("{shown} cannot be examined: {error}"))?;
    if !meta.is_file() {
        return Err(format!("{shown} is not a regular file"));
    }
    check_owner(&meta, privacy).map_err(|what| format!("{shown} {what}"))?;
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        let meta = fs::metadata(dir)
            .map_err(|error| format!("{} cannot be examined: {error}", dir.display()))?;
        check_owner(&meta, Privacy::OnlyWeWrite)
            .map_err(|what| format!("{} {what}", dir.display()))?;
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    file.take(most)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("{shown} cannot be read: {error}"))?;
    Ok(Some(bytes))
}

/// Makes a private directory with its parents; one that exists is left as it is.
pub(crate) fn make_private_dir(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// Opens a private file for writing, creating it; never through a symbolic link.
pub(crate) fn open_private(path: &Path, new: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).create_new(new);
    no_follow(&mut options);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Replaces `path` by `bytes`, all or nothing: a temporary file beside it, flushed to the disk,
/// renamed, and the directory flushed.
pub(crate) fn replace_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let unique = format!("tmp-{}-{:x}", std::process::id(), getrandom::u64().unwrap_or(0));
    let temporary = path.with_added_extension(unique);
    let written = open_private(&temporary, true).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    let done = written.and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = done {
        // It may never have been made.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    sync_dir(path)
}

/// Flushes the directory of `path`, so that a rename survives a crash.
fn sync_dir(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        File::open(dir.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_symlink())
}

#[cfg(unix)]
fn no_follow(options: &mut OpenOptions) {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt as _;
    // NONBLOCK: opening a FIFO in the file's place must not wait for a writer.
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    options.custom_flags(flags.bits().cast_signed());
}

#[cfg(not(unix))]
fn no_follow(_options: &mut OpenOptions) {}

#[cfg(unix)]
fn check_owner(meta: &fs::Metadata, privacy: Privacy) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt as _;
    let us = rustix::process::geteuid().as_raw();
    if meta.uid() != us {
        return Err(format!("belongs to user {}, not to user {us}", meta.uid()));
    }
    let (forbidden, what) = match privacy {
        Privacy::OnlyWeWrite => (0o022, "can be written by others"),
        Privacy::OnlyWeRead => (0o077, "can be read by others"),
    };
    if meta.mode() & forbidden != 0 {
        return Err(format!("{what} (mode {:04o})", meta.mode() & 0o7777));
    }
    Ok(())
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the shape of its Unix twin")]
fn check_owner(_meta: &fs::Metadata, _privacy: Privacy) -> Result<(), String> {
    Ok(())
}
