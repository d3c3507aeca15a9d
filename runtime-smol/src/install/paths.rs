//! Where ZCode's configuration and our snapshots are.

use std::env;
use std::path::{Path, PathBuf};

use super::Where;
use super::error::InstallError;

/// The directory of our snapshots below `<prefix>/plugins`.
pub const PROJECT: &str = "zcode-mail-bridge";

/// The places of one installation.
#[derive(Clone, Debug)]
pub struct Paths {
    /// `<prefix>/plugins/zcode-mail-bridge`, absolute.
    pub root: PathBuf,
    /// ZCode's configuration, absolute, links not followed.
    pub config: PathBuf,
}

impl Paths {
    /// Finds the places by arguments, then by the environment.
    ///
    /// # Errors
    ///
    /// Fails without `HOME` when a place is not given.
    pub fn find(place: &Where) -> Result<Self, InstallError> {
        let prefix = place.prefix.clone().map_or_else(default_prefix, Ok)?;
        let config = place.config.clone().map_or_else(default_config, Ok)?;
        let absolute = |path: PathBuf| {
            std::path::absolute(&path).map_err(|error| InstallError::Io(path, error))
        };
        let root = absolute(prefix)?.join("plugins").join(PROJECT);
        Ok(Self { root, config: absolute(config)? })
    }

    /// What `plugins.dirs` names.
    ///
    /// # Errors
    ///
    /// Fails for a path that is not UTF-8.
    pub fn entry(&self) -> Result<String, InstallError> {
        let current = self.root.join(super::snapshot::CURRENT);
        current.to_str().map(str::to_owned).ok_or(InstallError::NotUtf8(current))
    }
}

/// `HOME`, or on Windows `USERPROFILE`; an empty value is none.
#[must_use]
pub fn home() -> Option<PathBuf> {
    let name = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
    env::var_os(name).filter(|home| !home.is_empty()).map(PathBuf::from)
}

/// The directory that ZCode keeps `.zcode` in: `ZCODE_DATA_BASE_DIR`, else the home directory.
#[must_use]
pub fn zcode_base() -> Option<PathBuf> {
    let moved = env::var_os("ZCODE_DATA_BASE_DIR").filter(|dir| !dir.is_empty());
    moved.map(PathBuf::from).or_else(home)
}

/// `~/.zcode/cli/config.json`.
///
/// # Errors
///
/// Fails without a home directory.
pub fn default_config() -> Result<PathBuf, InstallError> {
    let base = zcode_base().ok_or(InstallError::NoHome)?;
    Ok(base.join(".zcode").join("cli").join("config.json"))
}

fn default_prefix() -> Result<PathBuf, InstallError> {
    if is_root() {
        return Ok(Path::new("/opt/agentmail").to_owned());
    }
    let data = env::var_os(if cfg!(windows) { "LOCALAPPDATA" } else { "XDG_DATA_HOME" });
    if let Some(data) = data.map(PathBuf::from).filter(|data| data.is_absolute()) {
        return Ok(data.join("agentmail"));
    }
    Ok(home().ok_or(InstallError::NoHome)?.join(".local").join("share").join("agentmail"))
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}
