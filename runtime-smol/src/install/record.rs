//! `install.json`: which configurations have our entry, and what they were before.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zcode_mail_core::relay_key::sha256_hex;

use super::config_file::ConfigFile;
use super::edit::{Created, Edit};
use super::error::InstallError;
use crate::durable;

const FILE: &str = "install.json";
const BACKUP: &str = "backup";

/// One configuration with our entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The configuration, as named at installation.
    pub config: PathBuf,
    /// What was added to `plugins.dirs`.
    pub entry: String,
    /// What was created around it.
    pub created: Created,
    /// The backup's file name; `None` when there was no file.
    pub backup: Option<String>,
    /// SHA-256 of the configuration with our entry.
    pub after: String,
    /// Directories that were made for the configuration, the outermost first.
    pub directories: Vec<PathBuf>,
}

impl Entry {
    /// The entry that `edit` makes in `config`.
    #[must_use]
    pub fn new(config: &ConfigFile, entry: &str, edit: &Edit) -> Self {
        let backup = config.existing().map(|bytes| {
            // One name for one content: a second installation never overwrites the first backup.
            format!("{}.json", &sha256_hex(bytes)[..16])
        });
        Self {
            config: config.shown().to_owned(),
            entry: entry.to_owned(),
            created: edit.created,
            backup,
            after: sha256_hex(&edit.bytes),
            directories: config.missing_directories(),
        }
    }

    /// The bytes from before the installation; `None` when there was no file.
    ///
    /// # Errors
    ///
    /// Fails when the backup cannot be read.
    pub fn original(&self, root: &Path) -> Result<Option<Vec<u8>>, InstallError> {
        let Some(name) = &self.backup else { return Ok(None) };
        let path = root.join(BACKUP).join(name);
        fs::read(&path).map(Some).map_err(InstallError::io(&path))
    }
}

/// All configurations with our entry.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Record {
    entries: Vec<Entry>,
    /// Directories that were made for the snapshots, the outermost first.
    #[serde(default)]
    made: Vec<PathBuf>,
}

impl Record {
    /// Reads the record; a missing one is empty.
    ///
    /// # Errors
    ///
    /// Fails when it cannot be read.
    pub fn load(root: &Path) -> Result<Self, InstallError> {
        let path = root.join(FILE);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| InstallError::Io(path, io::Error::other(error))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(InstallError::Io(path, error)),
        }
    }

    /// The entry of a configuration.
    #[must_use]
    pub fn of(&self, config: &Path) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.config == config)
    }

    /// Whether no configuration has our entry.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Remembers an entry and keeps the bytes from before. Call it before the configuration changes.
    ///
    /// # Errors
    ///
    /// Fails when a file cannot be written.
    pub fn put(
        &mut self,
        root: &Path,
        mut entry: Entry,
        before: &[u8],
    ) -> Result<(), InstallError> {
        if let Some(name) = &entry.backup {
            let dir = root.join(BACKUP);
            durable::create_directories(&dir).map_err(InstallError::io(&dir))?;
            durable::sweep(&dir, None).map_err(InstallError::io(&dir))?;
            let path = dir.join(name);
            durable::write(&path, before, durable::PRIVATE_FILE)
                .map_err(InstallError::io(&path))?;
        }
        if let Some(known) = self.of(&entry.config) {
            // An earlier run may have made directories and ended before it wrote the file.
            let mut directories = known.directories.clone();
            directories.retain(|dir| !entry.directories.contains(dir));
            entry.directories.splice(0..0, directories);
        }
        self.entries.retain(|known| known.config != entry.config);
        self.entries.push(entry);
        self.save(root)
    }

    /// The directories that were made for the snapshots, the outermost first.
    #[must_use]
    pub fn made(&self) -> &[PathBuf] {
        &self.made
    }

    /// Remembers directories that were made for the snapshots.
    ///
    /// # Errors
    ///
    /// Fails when the record cannot be written.
    pub fn remember(&mut self, root: &Path, made: Vec<PathBuf>) -> Result<(), InstallError> {
        if made.is_empty() {
            return Ok(());
        }
        self.made.extend(made);
        self.save(root)
    }

    /// Forgets a configuration.
    ///
    /// # Errors
    ///
    /// Fails when the record cannot be written.
    pub fn forget(&mut self, root: &Path, config: &Path) -> Result<(), InstallError> {
        let known = self.entries.len();
        self.entries.retain(|entry| entry.config != config);
        if self.entries.len() == known { Ok(()) } else { self.save(root) }
    }

    fn save(&self, root: &Path) -> Result<(), InstallError> {
        let path = root.join(FILE);
        let text = serde_json::to_vec_pretty(self)
            .map_err(|error| InstallError::Io(path.clone(), io::Error::other(error)))?;
        durable::write(&path, &text, durable::PRIVATE_FILE).map_err(InstallError::io(&path))
    }
}
