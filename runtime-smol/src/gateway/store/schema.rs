//! The numbered migrations and the check that a database is ours and not newer than this program.

use rusqlite::Connection;

use super::OpenError;

/// Every migration in order; the version of a database is the number of those applied.
const MIGRATIONS: [&str; 3] = [
    include_str!("001_initial.sql"),
    include_str!("002_audit.sql"),
    include_str!("003_grants.sql"),
];

/// The schema version that this program reads and writes.
pub(super) const VERSION: u32 = MIGRATIONS.len() as u32;

/// `application_id` of the database file ("zcmb"), so that another program's file is not taken
/// for ours.
const APPLICATION_ID: i32 = 0x7a63_6d62;

/// Applies the migrations that `connection` lacks, each in a transaction of its own together with
/// its version number.
///
/// # Errors
///
/// [`OpenError::NewerSchema`] when a later program wrote the file, [`OpenError::Foreign`] when it
/// belongs to another program, [`OpenError::Sqlite`] when a statement fails.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), OpenError> {
    loop {
        let transaction =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let version: u32 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        let application: i32 =
            transaction.query_row("PRAGMA application_id", [], |row| row.get(0))?;
        let tables: u32 =
            transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        let fresh = version == 0 && application == 0 && tables == 0;
        if application != APPLICATION_ID && !fresh {
            return Err(OpenError::Foreign);
        }
        if version > VERSION {
            return Err(OpenError::NewerSchema { found: version, known: VERSION });
        }
        let Some(migration) = MIGRATIONS.get(version as usize) else { return Ok(()) };
        transaction.execute_batch(migration)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", version + 1)?;
        transaction.commit()?;
    }
}
