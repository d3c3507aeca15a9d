//! Copies of a live database, checked before they count.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags};

use super::error::ServiceError;
use crate::durable;
use crate::gateway::DATABASE_NAME;

/// Pages that one step copies; between two steps writers get their turn.
const PAGES: std::ffi::c_int = 1024;
/// Pause between two steps.
const PAUSE: Duration = Duration::from_millis(2);
/// How long a writer is waited for.
const BUSY: Duration = Duration::from_secs(10);
/// Backups that stay.
const KEPT: usize = 5;

/// A checked copy.
#[derive(Debug)]
pub(super) struct Copy {
    pub(super) path: PathBuf,
    /// The schema version of the database at that moment.
    pub(super) schema: u32,
}

/// Copies the database under `data`, while a gateway may run on it, and checks the copy. `None`
/// when there is no database yet.
pub(super) fn take(data: &Path, generation: &str) -> Result<Option<Copy>, ServiceError> {
    let database = data.join(DATABASE_NAME);
    if !database.exists() {
        return Ok(None);
    }
    let folder = data.join("backups");
    durable::create_directories(&folder).map_err(ServiceError::io(&folder))?;
    private(&folder)?;
    durable::sweep(&folder, None).map_err(ServiceError::io(&folder))?;
    let path = folder.join(format!("before-{generation}.db"));
    let stage = durable::beside(&path).map_err(ServiceError::io(&path))?;
    durable::step();
    let bad = |error: rusqlite::Error| ServiceError::Database(database.clone(), error.to_string());
    let schema = copy(&database, &stage).map_err(bad)?;
    check(&stage)?;
    set_private(&stage)?;
    durable::rename(&stage, &path).map_err(ServiceError::io(&path))?;
    prune(&folder)?;
    Ok(Some(Copy { path, schema }))
}

/// Puts a copy back if the schema has changed since, page by page into the file that is there, so
/// that its owner stays. Call it while no gateway runs. Returns whether it was needed.
pub(super) fn restore(data: &Path, copy: &Copy) -> Result<bool, ServiceError> {
    let database = data.join(DATABASE_NAME);
    let bad = |error: rusqlite::Error| ServiceError::Database(database.clone(), error.to_string());
    let mut live =
        Connection::open_with_flags(&database, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(bad)?;
    live.busy_timeout(BUSY).map_err(bad)?;
    if schema(&live).map_err(bad)? == copy.schema {
        return Ok(false);
    }
    durable::step();
    let from =
        Connection::open_with_flags(&copy.path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(bad)?;
    let backup = Backup::new(&from, &mut live).map_err(bad)?;
    backup.run_to_completion(PAGES, PAUSE, None).map_err(bad)?;
    Ok(true)
}

fn schema(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

fn copy(from: &Path, to: &Path) -> rusqlite::Result<u32> {
    let source = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    source.busy_timeout(BUSY)?;
    let mut target = Connection::open(to)?;
    let backup = Backup::new(&source, &mut target)?;
    backup.run_to_completion(PAGES, PAUSE, None)?;
    drop(backup);
    // One file, no journal beside it.
    target.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))?;
    schema(&target)
}

fn check(path: &Path) -> Result<(), ServiceError> {
    let found: rusqlite::Result<(String, u32)> = (|| {
        let copy = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let whole: String = copy.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
        let orphans: u32 =
            copy.query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| row.get(0))?;
        Ok((whole, orphans))
    })();
    let problem = match found {
        Ok((whole, 0)) if whole == "ok" => return Ok(()),
        Ok((whole, 0)) => whole,
        Ok((_, orphans)) => format!("{orphans} rows refer to nothing"),
        Err(error) => error.to_string(),
    };
    let _ = std::fs::remove_file(path);
    Err(ServiceError::Database(path.to_owned(), format!("the copy is not whole: {problem}")))
}

/// Keeps the newest backups.
fn prune(folder: &Path) -> Result<(), ServiceError> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(ServiceError::io(folder))? {
        let path = entry.map_err(ServiceError::io(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("before-") && name.ends_with(".db") {
            let at = path.metadata().and_then(|meta| meta.modified());
            found.push((at.map_err(ServiceError::io(&path))?, path));
        }
    }
    found.sort();
    let extra = found.len().saturating_sub(KEPT);
    for (_, path) in found.into_iter().take(extra) {
        durable::remove_file(&path).map_err(ServiceError::io(&path))?;
    }
    Ok(())
}

#[cfg(unix)]
fn mode(path: &Path, mode: u32) -> Result<(), ServiceError> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
        .map_err(ServiceError::io(path))
}

#[cfg(not(unix))]
fn mode(_path: &Path, _mode: u32) -> Result<(), ServiceError> {
    Ok(())
}

fn private(folder: &Path) -> Result<(), ServiceError> {
    mode(folder, 0o700)
}

fn set_private(file: &Path) -> Result<(), ServiceError> {
    mode(file, durable::PRIVATE_FILE)
}
