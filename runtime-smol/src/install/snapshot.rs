//! Snapshots of the plugin: written once, complete when they have a name, chosen by a link.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zcode_mail_core::hook::answer::Dialect;

use super::error::InstallError;
use crate::durable;
use crate::plugin::{self, Item};

/// The link to the snapshot that ZCode loads.
pub const CURRENT: &str = "current";
/// Inside a snapshot: what it is.
const ABOUT: &str = "snapshot.json";
/// Says that the directory is ours, and is the file that a running installation locks.
const MARK: &str = ".zcode-mail-bridge";

/// What a snapshot says about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The program's version.
    pub version: String,
    /// The answer dialect that its hooks name.
    pub dialect: String,
    /// SHA-256 over everything else in the snapshot.
    pub digest: String,
    /// Later snapshots have higher numbers.
    pub sequence: u64,
}

/// The directory of snapshots, locked against other installations.
#[derive(Debug)]
pub struct Snapshots {
    root: PathBuf,
    /// Locked as long as it is open.
    _lock: File,
}

impl Snapshots {
    /// Opens the directory, making it if needed; also returns the directories that it made.
    ///
    /// # Errors
    ///
    /// Refuses a directory that holds something else, belongs to somebody else, or is in use.
    pub fn open(root: &Path) -> Result<(Self, Vec<PathBuf>), InstallError> {
        check(root)?;
        if let Some(above) = root.parent() {
            let name = root.file_name().and_then(|name| name.to_str());
            durable::sweep(above, name).map_err(InstallError::io(above))?;
        }
        let made = durable::create_directories(root).map_err(InstallError::io(root))?;
        Ok((Self::existing(root)?, made))
    }

    /// Opens a directory that is there.
    ///
    /// # Errors
    ///
    /// Refuses a directory that holds something else, belongs to somebody else, or is in use.
    pub fn existing(root: &Path) -> Result<Self, InstallError> {
        if !root.is_dir() {
            return Err(InstallError::NotInstalled(root.to_owned()));
        }
        check(root)?;
        let mark = root.join(MARK);
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&mark)
            .map_err(InstallError::io(&mark))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { root: root.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(InstallError::Busy(root.to_owned())),
            Err(TryLockError::Error(error)) => Err(InstallError::Io(mark, error)),
        }
    }

    /// The name that [`Snapshots::add`] would use, without changing anything.
    ///
    /// # Errors
    ///
    /// Fails when a program of the plugin is missing.
    pub fn plan(root: &Path, dialect: Dialect) -> Result<String, InstallError> {
        let items = plugin::items(dialect)?;
        let digest = plugin::digest(&items)?;
        Ok(name_for(root, &items, &digest))
    }

    /// Makes a snapshot of this program's plugin, unless the same one is there, and returns its
    /// name. It gets its name when it is complete and never changes after that.
    ///
    /// # Errors
    ///
    /// Fails when a file cannot be read or written.
    pub fn add(&self, dialect: Dialect) -> Result<String, InstallError> {
        durable::sweep(&self.root, None).map_err(InstallError::io(&self.root))?;
        let items = plugin::items(dialect)?;
        let digest = plugin::digest(&items)?;
        let name = name_for(&self.root, &items, &digest);
        let place = self.root.join(&name);
        if place.exists() {
            return Ok(name);
        }
        let sequence = 1 + self.list()?.last().map_or(0, |(about, _)| about.sequence);
        let about = About {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            dialect: dialect.as_str().to_owned(),
            digest,
            sequence,
        };
        self.fill(&place, &items, &about)?;
        Ok(name)
    }

    /// Points `current` at a snapshot.
    ///
    /// # Errors
    ///
    /// Fails when the link cannot be replaced.
    pub fn switch(&self, name: &str) -> Result<(), InstallError> {
        let current = self.root.join(CURRENT);
        if self.current().as_deref() == Some(name) {
            return Ok(());
        }
        durable::link(Path::new(name), &current).map_err(InstallError::io(&current))
    }

    /// The current snapshot's name and that of the one made before it.
    ///
    /// # Errors
    ///
    /// Fails when there is none before it.
    pub fn before_current(&self) -> Result<(String, String), InstallError> {
        let none = || InstallError::NoEarlier(self.root.clone());
        let current = self.current().ok_or_else(none)?;
        let list = self.list()?;
        let at = list.iter().position(|(_, name)| *name == current).ok_or_else(none)?;
        let before = at.checked_sub(1).ok_or_else(none)?;
        Ok((current, list[before].1.clone()))
    }

    /// Removes all but the newest `keep` snapshots; the current one always stays and counts.
    ///
    /// # Errors
    ///
    /// Stops at the first one that cannot be removed.
    pub fn prune(&self, keep: usize) -> Result<(), InstallError> {
        let current = self.current();
        let list = self.list()?;
        let others = list.iter().rev().map(|(_, name)| name);
        let others = others.filter(|name| Some(name.as_str()) != current.as_deref());
        for name in others.skip(keep.saturating_sub(1)) {
            let place = self.root.join(name);
            durable::remove_directory(&place).map_err(InstallError::io(&place))?;
        }
        Ok(())
    }

    /// Removes everything: first the link, then the rest.
    ///
    /// # Errors
    ///
    /// Stops at the first thing that cannot be removed.
    pub fn remove_all(self) -> Result<(), InstallError> {
        let current = self.root.join(CURRENT);
        durable::remove_file(&current).map_err(InstallError::io(&current))?;
        durable::remove_directory(&self.root).map_err(InstallError::io(&self.root))
    }

    /// The snapshots, oldest first.
    ///
    /// # Errors
    ///
    /// Fails when the directory cannot be read.
    pub fn list(&self) -> Result<Vec<(About, String)>, InstallError> {
        list(&self.root)
    }

    /// The name that `current` leads to.
    #[must_use]
    pub fn current(&self) -> Option<String> {
        current(&self.root)
    }

    fn fill(&self, place: &Path, items: &[Item], about: &About) -> Result<(), InstallError> {
        let stage = durable::beside(place).map_err(InstallError::io(place))?;
        plugin::fill(&stage, items)?;
        let path = stage.join(ABOUT);
        let text = serde_json::to_vec_pretty(about)
            .map_err(|error| InstallError::Io(path.clone(), io::Error::other(error)))?;
        durable::write(&path, &text, durable::PUBLIC_FILE).map_err(InstallError::io(&path))?;
        durable::rename(&stage, place).map_err(InstallError::io(place))
    }
}

/// The snapshots in a directory, oldest first.
///
/// # Errors
///
/// Fails when the directory cannot be read.
pub fn list(root: &Path) -> Result<Vec<(About, String)>, InstallError> {
    let mut out = Vec::new();
    for path in entries(root)? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_symlink() || durable::is_leftover(&path) {
            continue;
        }
        if let Some(about) = about(&path) {
            out.push((about, name.to_owned()));
        }
    }
    out.sort_by_key(|(about, _)| about.sequence);
    Ok(out)
}

/// The name that `current` leads to.
#[must_use]
pub fn current(root: &Path) -> Option<String> {
    let target = fs::read_link(root.join(CURRENT)).ok()?;
    target.to_str().map(str::to_owned)
}

/// What a directory says about itself, if it is a snapshot.
#[must_use]
pub fn about(place: &Path) -> Option<About> {
    serde_json::from_slice(&fs::read(place.join(ABOUT)).ok()?).ok()
}

/// The first of `0.1.0`, `0.1.0+digest`, `0.1.0+digest.2`, ... that is free or holds exactly these
/// files. One whose files were damaged since keeps its name and is passed over.
fn name_for(root: &Path, items: &[Item], digest: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut name = version.to_owned();
    for turn in 1_u32.. {
        let place = root.join(&name);
        let same = about(&place).is_some_and(|about| about.digest == digest);
        if !place.exists() || (same && plugin::holds(&place, items)) {
            break;
        }
        name = match turn {
            1 => format!("{version}+{}", &digest[..8]),
            _ => format!("{version}+{}.{turn}", &digest[..8]),
        };
    }
    name
}

fn entries(root: &Path) -> Result<Vec<PathBuf>, InstallError> {
    let read = fs::read_dir(root).map_err(InstallError::io(root))?;
    let paths: io::Result<Vec<PathBuf>> = read.map(|entry| Ok(entry?.path())).collect();
    paths.map_err(InstallError::io(root))
}

/// Refuses a directory that is not ours: of another user, or with something else in it.
fn check(root: &Path) -> Result<(), InstallError> {
    let found = match fs::metadata(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(InstallError::io(root))?,
    };
    if !found.is_dir() {
        return Err(InstallError::Occupied(root.to_owned()));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        if found.uid() != rustix::process::geteuid().as_raw() {
            return Err(InstallError::Foreign(root.to_owned(), found.uid()));
        }
    }
    let ours = root.join(MARK).is_file() || entries(root)?.is_empty();
    if ours { Ok(()) } else { Err(InstallError::Occupied(root.to_owned())) }
}
