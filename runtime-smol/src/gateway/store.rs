//! The database: one SQLite file, one writer thread, readers beside it.
//!
//! ```text
//! write(work) ──▶ queue ──▶ writer: BEGIN ─ savepoint+work ─ savepoint+work ─ COMMIT (fsync)
//!                                     then per work, in order: publish its events, answer it
//! read(work)  ──▶ queue ──▶ any reader: a snapshot of the last commit
//! ```
//!
//! Promises:
//! - Work that returns an error leaves no trace; work that returns `Ok` is answered only after its
//!   commit is on disk (`synchronous=FULL`). A decision that was lost after the person saw it taken
//!   would be worse than any delay, and group commit keeps the price low: works that wait together
//!   share one commit.
//! - Events are rows of the same transaction as what they announce, and reach the hub after the
//!   commit in the order of their ids.
//! - A file written by a later version or by another program is refused.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{fmt, fs, io};

use async_channel::{Receiver, Sender};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use super::failure::Failure;
use super::hub::{Announcement, Hub};
use super::stamp;

mod schema;

/// How long a connection waits for another process (an operator's command) to finish its
/// transaction before it reports "busy".
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Reader threads. SQLite readers are CPU-bound and short; two keep one slow listing from holding
/// up every other request.
const READERS: usize = 2;
/// Works that one commit covers at most, so that the first of a burst is not answered late.
const GROUP_LIMIT: usize = 64;
/// Works that wait in a queue before callers are held back.
const QUEUE_LIMIT: usize = 1024;
/// Events kept for replay per recipient (wire: a ring of 1024).
pub const REPLAY_LIMIT: usize = 1024;
/// Old events are looked for once in so many new ones.
const PRUNE_EVERY: i64 = 64;

/// Why a database cannot be opened.
#[derive(Debug)]
pub enum OpenError {
    /// A later version of this program wrote the file.
    NewerSchema {
        /// The version found in the file.
        found: u32,
        /// The version this program knows.
        known: u32,
    },
    /// The file belongs to another program.
    Foreign,
    /// The folder or the file cannot be created or made private.
    Io(PathBuf, io::Error),
    /// SQLite refused a statement.
    Sqlite(rusqlite::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NewerSchema { found, known } => write!(
                f,
                "the database has schema version {found}, this program knows {known}; \
                 run the newer program, or point --data at another folder"
            ),
            Self::Foreign => f.write_str(
                "the file is an SQLite database of another program; point --data elsewhere",
            ),
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Sqlite(error) => write!(f, "the database cannot be opened: {error}"),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// A write transaction in progress: the connection, the time of the work, and the events that are
/// published once it is committed.
pub struct Tx<'c> {
    connection: &'c Connection,
    now: i64,
    announcements: Vec<Announcement>,
}

impl Tx<'_> {
    /// The time of this work, Unix milliseconds.
    #[must_use]
    pub const fn now(&self) -> i64 {
        self.now
    }

    /// Records an event for `recipient`'s streams and returns its id.
    ///
    /// # Errors
    ///
    /// What SQLite reports.
    pub fn announce(
        &mut self,
        recipient: &str,
        name: &'static str,
        data: String,
    ) -> Result<i64, Failure> {
        self.connection.execute(
            "INSERT INTO events (recipient, name, data, created_at) VALUES (?1, ?2, ?3, ?4)",
            (recipient, name, &data, self.now),
        )?;
        let id = self.connection.last_insert_rowid();
        if id % PRUNE_EVERY == 0 {
            self.connection.execute(
                "DELETE FROM events WHERE recipient = ?1 AND id <= (SELECT id FROM events
                 WHERE recipient = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
                (recipient, REPLAY_LIMIT),
            )?;
        }
        self.announcements.push(Announcement {
            id,
            recipient: recipient.to_owned(),
            name,
            data: Arc::from(data),
        });
        Ok(id)
    }
}

impl std::ops::Deref for Tx<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

type Finish = Box<dyn FnOnce(Result<(), Failure>, &Hub) + Send>;
type WriteJob = Box<dyn FnOnce(&mut Transaction<'_>) -> Finish + Send>;
type ReadJob = Box<dyn FnOnce(&Connection) + Send>;

/// The open database. Dropping the last clone ends the threads after the work already queued.
#[derive(Clone)]
pub struct Store {
    writer: Sender<WriteJob>,
    readers: Sender<ReadJob>,
    threads: Arc<Threads>,
}

impl Store {
    /// Opens or creates the database file at `path` and applies missing migrations. Its folder is
    /// created with mode 0700, the file with 0600. Works beside a gateway on the same file, whose
    /// open streams then learn of new events by replay only.
    ///
    /// # Errors
    ///
    /// [`OpenError`].
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::open_with(path, Arc::default())
    }

    /// [`Store::open`] whose committed events go to `hub`.
    pub(super) fn open_with(path: &Path, hub: Arc<Hub>) -> Result<Self, OpenError> {
        create_private(path)?;
        let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        schema::migrate(&mut connection)?;
        let (writer, write_jobs) = async_channel::bounded(QUEUE_LIMIT);
        let (readers, read_jobs) = async_channel::bounded::<ReadJob>(QUEUE_LIMIT);
        let mut threads = vec![spawn("store-writer", path, move || {
            write_loop(&mut connection, &write_jobs, &hub);
        })?];
        for _ in 0..READERS {
            let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            let jobs = read_jobs.clone();
            threads.push(spawn("store-reader", path, move || {
                while let Ok(job) = jobs.recv_blocking() {
                    job(&connection);
                }
            })?);
        }
        Ok(Self { writer, readers, threads: Arc::new(Threads(Mutex::new(threads))) })
    }

    /// Runs `work` in a write transaction and returns its value once the commit is on disk.
    ///
    /// # Errors
    ///
    /// The error of `work`, after which nothing of it is stored; a 500 when the commit fails.
    pub async fn write<T, W>(&self, work: W) -> Result<T, Failure>
    where
        T: Send + 'static,
        W: FnOnce(&mut Tx<'_>) -> Result<T, Failure> + Send + 'static,
    {
        let (answer, answered) = async_channel::bounded(1);
        let job: WriteJob = Box::new(move |transaction| {
            let (result, announcements) = in_savepoint(transaction, work);
            Box::new(move |committed, hub| {
                if committed.is_ok() && result.is_ok() {
                    hub.publish(announcements);
                }
                // The caller may be gone; its work is done all the same.
                let _ = answer.try_send(committed.and(result));
            })
        });
        self.writer.send(job).await.map_err(|_| closed())?;
        answered.recv().await.map_err(|_| closed())?
    }

    /// Runs `work` on a snapshot of the last commit.
    ///
    /// # Errors
    ///
    /// The error of `work`.
    pub async fn read<T, W>(&self, work: W) -> Result<T, Failure>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        let (answer, answered) = async_channel::bounded(1);
        let job: ReadJob = Box::new(move |connection| {
            let result = catch_unwind(AssertUnwindSafe(|| snapshot(connection, work)))
                .unwrap_or_else(|_| Err(Failure::internal("a database read panicked")));
            let _ = answer.try_send(result);
        });
        self.readers.send(job).await.map_err(|_| closed())?;
        answered.recv().await.map_err(|_| closed())?
    }

    /// Finishes queued work and closes the file. Work offered later fails.
    pub fn close(&self) {
        // The writer's connection goes last: closing it folds the log into the one file.
        self.readers.close();
        self.threads.join_readers();
        self.writer.close();
        self.threads.join_all();
    }
}

/// The writer first, then the readers.
struct Threads(Mutex<Vec<JoinHandle<()>>>);

impl Threads {
    fn join_readers(&self) {
        self.join_from(1);
    }

    fn join_all(&self) {
        self.join_from(0);
    }

    fn join_from(&self, first: usize) {
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = first.min(threads.len());
        for thread in threads.drain(first..) {
            // A store thread that panicked has already written its message to stderr.
            let _ = thread.join();
        }
    }
}

fn closed() -> Failure {
    Failure::internal("the database is closed or cannot begin a transaction")
}

fn spawn(
    name: &str,
    path: &Path,
    body: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, OpenError> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .map_err(|error| OpenError::Io(path.to_owned(), error))
}

fn snapshot<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, Failure>,
) -> Result<T, Failure> {
    // One transaction, so that several statements of one work see the same commit.
    let transaction = connection.unchecked_transaction()?;
    work(&transaction)
}

fn in_savepoint<T>(
    transaction: &mut Transaction<'_>,
    work: impl FnOnce(&mut Tx<'_>) -> Result<T, Failure>,
) -> (Result<T, Failure>, Vec<Announcement>) {
    let savepoint = match transaction.savepoint() {
        Ok(savepoint) => savepoint,
        Err(error) => return (Err(error.into()), Vec::new()),
    };
    let mut tx = Tx { connection: &savepoint, now: stamp::now(), announcements: Vec::new() };
    let result = catch_unwind(AssertUnwindSafe(|| work(&mut tx)))
        .unwrap_or_else(|_| Err(Failure::internal("a database write panicked")));
    let announcements = tx.announcements;
    // Dropping a savepoint rolls it back.
    let result = result.and_then(|value| Ok(savepoint.commit().map(|()| value)?));
    (result, announcements)
}

fn write_loop(connection: &mut Connection, jobs: &Receiver<WriteJob>, hub: &Hub) {
    while let Ok(first) = jobs.recv_blocking() {
        let mut finishes = Vec::new();
        let committed = match connection.transaction_with_behavior(TransactionBehavior::Immediate) {
            Ok(mut transaction) => {
                finishes.push(first(&mut transaction));
                while finishes.len() < GROUP_LIMIT {
                    let Ok(job) = jobs.try_recv() else { break };
                    finishes.push(job(&mut transaction));
                }
                transaction.commit()
            }
            // The job is dropped, and with it the sender its caller waits for.
            Err(error) => Err(error),
        };
        if let Err(error) = &committed {
            super::log::line(format_args!("database: {error}"));
        }
        for finish in finishes {
            let outcome = match &committed {
                Ok(()) => Ok(()),
                Err(error) => Err(Failure::internal(format!("commit: {error}"))),
            };
            finish(outcome, hub);
        }
    }
}

fn connect(path: &Path, mode: OpenFlags) -> Result<Connection, OpenError> {
    let connection = Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    if mode == OpenFlags::SQLITE_OPEN_READ_WRITE {
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", "ON")?;
    }
    // Text of one database never becomes SQL of another (defence against a prepared file).
    connection.pragma_update(None, "trusted_schema", "OFF")?;
    Ok(connection)
}

fn create_private(path: &Path) -> Result<(), OpenError> {
    let fail = |at: &Path, error| OpenError::Io(at.to_owned(), error);
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder).map_err(|error| fail(folder, error))?;
    }
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).map_err(|error| fail(path, error))?;
    make_private(&file).map_err(|error| fail(path, error))
}

#[cfg(unix)]
fn make_private(file: &fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = file.metadata()?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    file.set_permissions(fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn make_private(_: &fs::File) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests;
