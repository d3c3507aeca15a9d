//! File changes of which a reader sees the old state or the new one, never a half.
//!
//! Files and links are written beside their place and renamed into it; directories are filled under
//! another name and renamed. Every change counts as a step, and a test can end the program before
//! any of them (see [`STOP_BEFORE_STEP`]), which is what `kill -9` or a power cut would do.
//!
//! ```text
//! write beside -> sync the file -> rename into place -> sync the directory
//! ```

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

/// For tests: a number N that aborts the program before its N-th file change. It can do nothing
/// else but end the program early.
pub const STOP_BEFORE_STEP: &str = "ZCODE_MAIL_TEST_STOP_BEFORE_STEP";

/// Mode of files that everybody may read.
pub const PUBLIC_FILE: u32 = 0o644;
/// Mode of programs and of directories that everybody may enter.
pub const PUBLIC_PROGRAM: u32 = 0o755;
/// Mode of files that only their owner may read.
pub const PRIVATE_FILE: u32 = 0o600;

static STEPS: AtomicU64 = AtomicU64::new(0);

/// Counts one change that is about to happen.
pub fn step() {
    let this = STEPS.fetch_add(1, Ordering::Relaxed) + 1;
    let stop = env::var(STOP_BEFORE_STEP).ok().and_then(|text| text.parse::<u64>().ok());
    if stop == Some(this) {
        process::abort();
    }
}

/// Replaces or creates a file. Whoever reads it sees all of the old bytes or all of the new ones.
///
/// # Errors
///
/// Returns the first failure; the old file is then still in place.
pub fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let beside = beside(path)?;
    let written = (|| {
        step();
        let mut file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
        set_mode(&file, mode)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        drop(file);
        step();
        fs::rename(&beside, path)
    })();
    if written.is_err() {
        // What stands beside is ours and incomplete; the first error is the one that counts.
        let _ = fs::remove_file(&beside);
    }
    written?;
    sync_parent(path)
}

/// Copies a program into place, so that a running one keeps the file that it was started from.
///
/// # Errors
///
/// Returns the first failure; the old file is then still in place.
pub fn copy_program(from: &Path, to: &Path) -> io::Result<()> {
    let beside = beside(to)?;
    let copied = (|| {
        step();
        fs::copy(from, &beside)?;
        let file = File::open(&beside)?;
        set_mode(&file, PUBLIC_PROGRAM)?;
        file.sync_all()?;
        drop(file);
        step();
        fs::rename(&beside, to)
    })();
    if copied.is_err() {
        let _ = fs::remove_file(&beside);
    }
    copied?;
    sync_parent(to)
}

/// Creates a directory with everything above it, and returns those that did not exist before, the
/// outermost first.
///
/// # Errors
///
/// Returns the first failure.
pub fn create_directories(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut missing: Vec<PathBuf> = path
        .ancestors()
        .take_while(|dir| !dir.as_os_str().is_empty() && !dir.is_dir())
        .map(Path::to_owned)
        .collect();
    missing.reverse();
    for dir in &missing {
        step();
        match fs::create_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
            other => other?,
        }
    }
    Ok(missing)
}

/// Points the link `link` at `target`, from one moment to the next.
///
/// # Errors
///
/// Returns the first failure; the old link is then still in place.
pub fn link(target: &Path, link: &Path) -> io::Result<()> {
    let beside = beside(link)?;
    step();
    symlink(target, &beside)?;
    step();
    if let Err(error) = fs::rename(&beside, link) {
        let _ = fs::remove_file(&beside);
        return Err(error);
    }
    sync_parent(link)
}

/// Renames a finished directory into its place.
///
/// # Errors
///
/// Returns the failure; both names are then as they were.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    step();
    fs::rename(from, to)?;
    sync_parent(to)
}

/// Removes a file or link; one that is not there is fine.
///
/// # Errors
///
/// Returns the failure.
pub fn remove_file(path: &Path) -> io::Result<()> {
    step();
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Removes a directory with all that it holds. Under its name it is gone at once; what a crash
/// leaves has a name that [`is_leftover`] knows.
///
/// # Errors
///
/// Returns the failure.
pub fn remove_directory(path: &Path) -> io::Result<()> {
    let doomed = if is_leftover(path) { path.to_owned() } else { beside(path)? };
    if doomed != path {
        step();
        fs::rename(path, &doomed)?;
    }
    step();
    fs::remove_dir_all(&doomed)
}

/// Whether a path is an unfinished or doomed one of this module.
#[must_use]
pub fn is_leftover(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    name.is_some_and(|name| name.starts_with(LEFTOVER))
}

/// Removes what earlier, interrupted runs left in `dir`: everything, or only what was to become
/// the file or directory `name`.
///
/// # Errors
///
/// Stops at the first thing that cannot be removed; a missing directory is fine.
pub fn sweep(dir: &Path, name: Option<&str>) -> io::Result<()> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    for entry in entries {
        let path = entry?.path();
        let wanted = name.is_none_or(|name| {
            path.file_name().is_some_and(|file| file.to_string_lossy().ends_with(name))
        });
        if !wanted || !is_leftover(&path) {
            continue;
        }
        step();
        if path.is_dir() && !path.is_symlink() {
            fs::remove_dir_all(&path)?;
        } else {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// A name beside `path` that only this process uses.
///
/// # Errors
///
/// Fails for a path without a file name.
pub fn beside(path: &Path) -> io::Result<PathBuf> {
    static UNIQUE: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "the path does not end in a name")
    })?;
    let mut out = std::ffi::OsString::from(LEFTOVER);
    out.push(format!("{}-{}-", process::id(), UNIQUE.fetch_add(1, Ordering::Relaxed)));
    out.push(name);
    Ok(path.with_file_name(out))
}

/// What the names of unfinished files begin with.
const LEFTOVER: &str = ".zcode-mail-unfinished-";

/// Makes a rename in `path`'s directory last over a power cut.
fn sync_parent(path: &Path) -> io::Result<()> {
    if cfg!(unix)
        && let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty())
    {
        File::open(parent)?.sync_all()?;
    }
    Ok(())
}

#[cfg(unix)]
fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_file: &File, _mode: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn symlink(target: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(windows)]
fn symlink(target: &Path, link: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_dir(target, link)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let dir = env::temp_dir().join(format!("zcode-mail-durable-{name}-{}", process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn a_written_file_has_its_bytes_and_nothing_is_left_beside_it() {
        let dir = scratch("write");
        let path = dir.join("a 'b' 邮件.json");
        write(&path, b"one", PRIVATE_FILE).unwrap();
        write(&path, b"two", PUBLIC_FILE).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_leftover() {
        let dir = scratch("fail");
        let path = dir.join("is-a-directory");
        fs::create_dir(&path).unwrap();
        assert!(write(&path, b"one", PUBLIC_FILE).is_err());
        assert!(path.is_dir());
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn created_directories_are_named_outermost_first() {
        let dir = scratch("mkdir");
        let made = create_directories(&dir.join("a/b")).unwrap();
        assert_eq!(made, [dir.join("a"), dir.join("a/b")]);
        assert!(create_directories(&dir.join("a/b")).unwrap().is_empty());
        remove_directory(&dir.join("a")).unwrap();
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
        fs::remove_dir_all(dir).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_link_moves_from_one_target_to_the_next() {
        let dir = scratch("link");
        let here = dir.join("current");
        link(Path::new("one"), &here).unwrap();
        link(Path::new("two"), &here).unwrap();
        assert_eq!(fs::read_link(&here).unwrap(), Path::new("two"));
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        fs::remove_dir_all(dir).unwrap();
    }
}
