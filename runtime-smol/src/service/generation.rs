//! Generations of the gateway's program.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::error::ServiceError;
use crate::doctor::Started;
use crate::durable;

/// The link to the generation that the unit starts.
pub(super) const CURRENT: &str = "current";
/// The program inside a generation.
pub(super) const PROGRAM: &str = "zcode-mail";
const ABOUT: &str = "generation.json";
const LOCK: &str = ".lock";
/// How long a program may take to say its version.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a generation says about itself; written last, so that its presence means completeness.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct About {
    /// What the program answered to `--version`.
    pub(super) version: String,
    /// Later generations have higher numbers.
    pub(super) sequence: u64,
}

/// The directory of generations, locked against other changes.
#[derive(Debug)]
pub(super) struct Generations {
    root: PathBuf,
    _lock: File,
}

impl Generations {
    /// Opens the directory, making it if needed.
    pub(super) fn open(root: &Path) -> Result<Self, ServiceError> {
        durable::create_directories(root).map_err(ServiceError::io(root))?;
        let path = root.join(LOCK);
        let lock = File::options().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(ServiceError::io(&path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { root: root.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(ServiceError::Busy(root.to_owned())),
            Err(TryLockError::Error(error)) => Err(ServiceError::Io(path, error)),
        }
    }

    /// Copies a program into a new generation and returns its name. The program has said its
    /// version before the generation gets its name.
    pub(super) fn add(&self, program: &Path) -> Result<String, ServiceError> {
        durable::sweep(&self.root, None).map_err(ServiceError::io(&self.root))?;
        let stage = self.root.join("generation");
        let stage = durable::beside(&stage).map_err(ServiceError::io(&self.root))?;
        let name = self.fill(program, &stage);
        if name.is_err() {
            // Unfinished and under a name that the next sweep knows; the first error counts.
            let _ = fs::remove_dir_all(&stage);
        }
        let name = name?;
        let place = self.root.join(&name);
        durable::rename(&stage, &place).map_err(ServiceError::io(&place))?;
        Ok(name)
    }

    /// Fills a directory that has no name yet, and returns the name that it shall get.
    fn fill(&self, program: &Path, stage: &Path) -> Result<String, ServiceError> {
        durable::create_directories(stage).map_err(ServiceError::io(stage))?;
        let copy = stage.join(PROGRAM);
        durable::copy_program(program, &copy).map_err(ServiceError::io(program))?;
        let version =
            version(&copy).map_err(|what| ServiceError::BadProgram(program.to_owned(), what))?;
        let sequence = 1 + self.list()?.last().map_or(0, |(about, _)| about.sequence);
        let name = format!("{version}-{}-{sequence}", Timestamp::now().strftime("%Y%m%dT%H%M%SZ"));
        let text = serde_json::to_vec_pretty(&About { version, sequence })
            .map_err(|error| ServiceError::Io(stage.to_owned(), io::Error::other(error)))?;
        let about = stage.join(ABOUT);
        durable::write(&about, &text, durable::PUBLIC_FILE).map_err(ServiceError::io(&about))?;
        Ok(name)
    }

    /// Directories that an earlier run could not finish or remove.
    pub(super) fn leftovers(&self) -> Result<Vec<PathBuf>, ServiceError> {
        let entries = fs::read_dir(&self.root).map_err(ServiceError::io(&self.root))?;
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        let paths: io::Result<Vec<PathBuf>> = paths.collect();
        let mut paths = paths.map_err(ServiceError::io(&self.root))?;
        paths.retain(|path| durable::is_leftover(path) && path.is_dir() && !path.is_symlink());
        Ok(paths)
    }

    /// Points `current` at a generation.
    pub(super) fn switch(&self, name: &str) -> Result<(), ServiceError> {
        let current = self.root.join(CURRENT);
        durable::link(Path::new(name), &current).map_err(ServiceError::io(&current))
    }

    /// Removes `current`: there was no generation before the first one.
    pub(super) fn unlink(&self) -> Result<(), ServiceError> {
        let current = self.root.join(CURRENT);
        durable::remove_file(&current).map_err(ServiceError::io(&current))
    }

    /// The name that `current` leads to.
    pub(super) fn current(&self) -> Option<String> {
        current(&self.root)
    }

    /// The generations, oldest first.
    pub(super) fn list(&self) -> Result<Vec<(About, String)>, ServiceError> {
        let mut out = Vec::new();
        for entry in fs::read_dir(&self.root).map_err(ServiceError::io(&self.root))? {
            let path = entry.map_err(ServiceError::io(&self.root))?.path();
            if path.is_symlink() || durable::is_leftover(&path) {
                continue;
            }
            // Only what says that it is a generation: a directory of somebody else stays.
            let about = fs::read(path.join(ABOUT)).ok();
            let about = about.and_then(|bytes| serde_json::from_slice::<About>(&bytes).ok());
            if let (Some(about), Some(name)) = (about, path.file_name().and_then(|n| n.to_str())) {
                out.push((about, name.to_owned()));
            }
        }
        out.sort_by_key(|(about, _)| about.sequence);
        Ok(out)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }
}

/// The name that `current` leads to.
pub(super) fn current(root: &Path) -> Option<String> {
    fs::read_link(root.join(CURRENT)).ok()?.to_str().map(str::to_owned)
}

/// What a program says its version is.
fn version(program: &Path) -> Result<String, String> {
    let said = Started::run(program, &["--version".to_owned()], &Default::default(), "", PATIENCE);
    if let Some(problem) = said.problem {
        return Err(problem);
    }
    let mut words = said.stdout.split_whitespace();
    match (said.status, words.next(), words.next()) {
        (Some(0), Some(PROGRAM), Some(version))
            if version.bytes().all(|b| b.is_ascii_alphanumeric() || b"._+-".contains(&b)) =>
        {
            Ok(version.to_owned())
        }
        _ => Err(format!("--version says {:?}", said.stdout.trim())),
    }
}
