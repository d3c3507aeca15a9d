//! The audit log in the database: appended in the transaction of what it records, so that neither
//! is there without the other; read and checked offline.
//!
//! The chain and its check are [`zcode_mail_core::audit`]'s. A record is written by whatever
//! transaction does the thing, also by an operator's command beside a running gateway: SQLite lets
//! one writer in at a time, and the head is read inside of its transaction.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, Row};
use zcode_mail_core::audit::{Broken, Event, Hash, Head, Record, Verifier};
use zcode_mail_core::digest::CallDigest;
use zcode_mail_core::lang::Lang;
use zcode_mail_core::time::UnixMillis;

use super::failure::Failure;
use super::store::Tx;
use super::{Gateway, log};

/// What is recorded; number, time and hash come from the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'e> {
    pub(crate) event: Event,
    pub(crate) who: &'e str,
    pub(crate) how: &'e str,
    pub(crate) subject: &'e str,
    pub(crate) digest: Option<CallDigest>,
    pub(crate) detail: &'e str,
}

/// Appends a record.
///
/// # Errors
///
/// What SQLite reports; the transaction must then not commit.
pub(crate) fn append(tx: &Tx<'_>, entry: &Entry<'_>) -> Result<(), Failure> {
    let head = head(tx)?;
    let record = Record {
        number: head.number + 1,
        at: UnixMillis(tx.now()),
        event: entry.event,
        who: entry.who.to_owned(),
        how: entry.how.to_owned(),
        subject: entry.subject.to_owned(),
        digest: entry.digest,
        detail: entry.detail.to_owned(),
    };
    let hash = head.hash.then(&record);
    let digest = record.digest.map(|digest| digest.hex()).unwrap_or_default();
    tx.execute(
        "INSERT INTO audit (number, at, event, who, how, subject, digest, detail, hash)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        rusqlite::params![
            record.number,
            record.at.0,
            record.event.code(),
            record.who,
            record.how,
            record.subject,
            digest,
            record.detail,
            hash.0,
        ],
    )?;
    tx.execute("UPDATE audit_head SET number = ?1, hash = ?2", (record.number, hash.0))?;
    Ok(())
}

/// Records that something was refused. What was refused left no trace of its own, so this is a
/// transaction of its own; that it cannot be written changes nothing about the refusal.
pub(crate) async fn refused(
    gateway: &Gateway,
    who: &str,
    how: &'static str,
    subject: &str,
    failure: &Failure,
) {
    let detail = format!("{} {}", failure.status.as_u16(), failure.message.text(Lang::En));
    let (who, subject) = (who.to_owned(), subject.to_owned());
    let work = move |tx: &mut Tx<'_>| {
        let event = Event::Refuse;
        append(
            tx,
            &Entry { event, who: &who, how, subject: &subject, digest: None, detail: &detail },
        )
    };
    if let Err(failure) = gateway.store.write(work).await {
        log::line(format_args!("audit: {}", failure.message.text(Lang::En)));
    }
}

/// The digest in a question's context, if it names one clearly.
pub(crate) fn digest_in(context: &str) -> Option<CallDigest> {
    CallDigest::find(context).ok().flatten()
}

fn head(db: &Connection) -> rusqlite::Result<Head> {
    db.query_row("SELECT number, hash FROM audit_head", [], |row| {
        Ok(Head { number: row.get(0)?, hash: Hash(row.get(1)?) })
    })
}

/// A record and its stored hash; `None` when a field holds something that no record has.
fn stored(row: &Row<'_>) -> Option<(Record, Hash)> {
    let text = |at| row.get::<_, String>(at).ok();
    let digest = text(6)?;
    let record = Record {
        number: row.get(0).ok()?,
        at: UnixMillis(row.get(1).ok()?),
        event: Event::from_code(&text(2)?)?,
        who: text(3)?,
        how: text(4)?,
        subject: text(5)?,
        digest: match digest.as_str() {
            "" => None,
            digits => {
                let digest = CallDigest::from_hex(digits).filter(|digest| digest.hex() == digits);
                Some(digest?)
            }
        },
        detail: text(7)?,
    };
    Some((record, Hash(row.get(8).ok()?)))
}

const RECORDS: &str = "SELECT number, at, event, who, how, subject, digest, detail, hash
    FROM audit ORDER BY number";

/// Opens a database file, or a copy of one, without changing it.
///
/// # Errors
///
/// What SQLite reports.
pub fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.pragma_update(None, "trusted_schema", "OFF")?;
    Ok(connection)
}

/// Checks the whole log; how many records it has, or the first thing that is wrong.
///
/// # Errors
///
/// What SQLite reports when the file cannot be read at all.
pub fn verify(db: &Connection) -> rusqlite::Result<Result<u64, Broken>> {
    // One snapshot: a gateway may be writing.
    let db = db.unchecked_transaction()?;
    let mut verifier = Verifier::new(head(&db)?);
    let mut statement = db.prepare(RECORDS)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let read = stored(row);
        if let Err(broken) = verifier.next(read.as_ref().map(|(record, hash)| (record, *hash))) {
            return Ok(Err(broken));
        }
    }
    Ok(verifier.finish())
}

/// Gives every record, then the head, each as one line of JSON, to `line`. A record that cannot be
/// read is given as it is in the file, so that a check of the export finds it.
///
/// # Errors
///
/// What SQLite or `line` reports.
pub fn export<E: From<rusqlite::Error>>(
    db: &Connection,
    mut line: impl FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let db = db.unchecked_transaction()?;
    let mut statement = db.prepare(RECORDS)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        match stored(row) {
            Some((record, hash)) => line(&record.export(&hash))?,
            None => line(&format!("{{\"unreadable\":{}}}", row.get::<_, i64>(0).unwrap_or(-1)))?,
        }
    }
    line(&head(&db)?.export())
}
