//! Attachments: content-addressed files beside the database (`W-8`, seed 002).
//!
//! ```text
//! upload ─▶ attachments/incoming/<id>, hashed as it streams ─▶ fsync
//!        ─▶ writer: rename to attachments/<aa>/<sha256> (kept if there), insert the row
//! sweep  ─▶ writer: rows of no mail older than a day ─▶ writer: files without a row
//! ```
//!
//! Renaming, inserting and removing happen in the writer thread, so that no file is removed while
//! an upload of the same content takes it for stored. A crash leaves at most a file without a row,
//! which the next sweep removes. Content is never rendered: downloads are octet streams with a
//! name, whatever they claim to be.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use axum::body::Body;
use axum::extract::multipart::Field;
use axum::extract::{FromRequest as _, Multipart, Request};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_lite::{AsyncReadExt as _, AsyncWriteExt as _, FutureExt as _};
use http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, StatusCode};
use rusqlite::{Connection, OptionalExtension as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::body::{DRAIN_LIMIT, DRAIN_TIME, drain};
use super::failure::{Failure, said};
use super::store::Tx;
use super::{Gateway, secret};

mod name;
mod sweep;

pub(super) use sweep::sweep_for_ever;

/// Largest attachment in bytes when `AGENTMAIL_MAX_ATTACHMENT_BYTES` does not say.
pub const DEFAULT_LIMIT: u64 = zcode_mail_core::api::attachment::MAX_BYTES;
/// What the frame of a multipart body may add to the file.
const FRAME_LIMIT: u64 = 64 * 1024;
/// How long a client may pause within an upload.
const PAUSE: Duration = Duration::from_secs(60);
/// Attachments of one mail.
const PER_MAIL: usize = 50;
/// Bytes read from a file at once.
const CHUNK: usize = 64 * 1024;

/// Where attachments are, and how large they may be.
#[derive(Clone, Debug)]
pub(super) struct Shelf {
    folder: PathBuf,
    limit: u64,
}

impl Shelf {
    /// The shelf beside the database file, created with mode 0700.
    ///
    /// # Errors
    ///
    /// What the file system reports.
    pub(super) fn open(database: &Path, limit: u64) -> io::Result<Self> {
        let folder = database.with_file_name("attachments");
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        let incoming = folder.join("incoming");
        // What an earlier run did not finish.
        match fs::remove_dir_all(&incoming) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => builder.create(&incoming)?,
        }
        Ok(Self { folder, limit })
    }

    fn incoming(&self, id: &str) -> PathBuf {
        self.folder.join("incoming").join(id)
    }

    fn stored(&self, sha256: &str) -> PathBuf {
        self.folder.join(&sha256[..2]).join(sha256)
    }
}

/// The attachments of a mail as listings show them.
pub(super) fn of_mail(db: &Connection, mail_id: &str) -> Result<Vec<Value>, Failure> {
    let mut statement = db.prepare_cached(
        "SELECT a.id, a.filename, a.size, a.content_type FROM mail_attachments m
         JOIN attachments a ON a.id = m.attachment_id WHERE m.mail_id = ?1 ORDER BY m.position",
    )?;
    let rows = statement.query_map([mail_id], |row| {
        Ok(json!({
            "attachment_id": row.get::<_, String>(0)?, "filename": row.get::<_, String>(1)?,
            "size": row.get::<_, u64>(2)?, "content_type": row.get::<_, String>(3)?,
        }))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Hangs attachments on a mail of `sender`.
///
/// # Errors
///
/// 404 for one that does not exist or that `sender` may not see, 400 for too many.
pub(super) fn attach(
    tx: &mut Tx<'_>,
    sender: &str,
    mail_id: &str,
    ids: &[String],
) -> Result<(), Failure> {
    if ids.len() > PER_MAIL {
        return Err(Failure::bad_request(said!(
            "附件过多（上限 {PER_MAIL} 个）",
            "too many attachments (at most {PER_MAIL})"
        )));
    }
    for (position, id) in ids.iter().enumerate() {
        visible(tx, sender, id)?;
        tx.execute(
            "INSERT INTO mail_attachments (mail_id, position, attachment_id) VALUES (?1, ?2, ?3)",
            (mail_id, position, id),
        )?;
    }
    Ok(())
}

/// Takes an upload: one part named `file`.
///
/// # Errors
///
/// 413 above the limit, 400 for another body, 408 for a client that stops sending.
pub(super) async fn upload(
    gateway: &Gateway,
    uploader: String,
    request: Request,
) -> Result<Response, Failure> {
    let limit = gateway.shelf.limit;
    let announced =
        request.headers().get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: u64| length > limit + FRAME_LIMIT) {
        drain(request.into_body()).await;
        return Err(too_large(limit));
    }
    let mut form = Multipart::from_request(request, &()).await.map_err(|_| not_multipart())?;
    let field = in_time(form.next_field()).await?.map_err(|_| not_multipart())?;
    let Some(mut field) = field.filter(|field| field.name() == Some("file")) else {
        return Err(not_multipart());
    };
    let filename = name::kept(field.file_name().unwrap_or_default());
    let content_type = field.content_type().unwrap_or("application/octet-stream").to_owned();
    let id = secret::id()?;
    let incoming = Incoming(gateway.shelf.incoming(&id));
    let mut file = smol::fs::File::create(&incoming.0).await.map_err(|e| disk(&e))?;
    let (mut digest, mut size) = (Sha256::new(), 0_u64);
    while let Some(chunk) = in_time(field.chunk()).await?.map_err(|_| broken())? {
        size += chunk.len() as u64;
        if size > limit {
            drain_field(field).await;
            return Err(too_large(limit));
        }
        digest.update(&chunk);
        file.write_all(&chunk).await.map_err(|e| disk(&e))?;
    }
    file.sync_all().await.map_err(|e| disk(&e))?;
    drop(file);
    let row = Row { id, uploader, filename, content_type, size, sha256: hex(digest) };
    let answer = json!({
        "attachment_id": row.id, "filename": row.filename, "size": row.size, "sha256": row.sha256,
    });
    let shelf = gateway.shelf.clone();
    gateway.store.write(move |tx| keep(tx, &shelf, &incoming, &row)).await?;
    Ok(super::agent::json(answer.to_string()))
}

/// An attachment's bytes, streamed, for somebody who uploaded it or may see a mail that has it.
///
/// # Errors
///
/// 404.
pub(super) async fn download(
    gateway: &Gateway,
    reader: String,
    id: String,
) -> Result<Response, Failure> {
    let (filename, size, sha256) = gateway.store.read(move |db| visible(db, &reader, &id)).await?;
    let file = smol::fs::File::open(gateway.shelf.stored(&sha256)).await.map_err(|e| disk(&e))?;
    let chunks = futures_lite::stream::unfold(file, |mut file| async move {
        let mut buffer = vec![0; CHUNK];
        match file.read(&mut buffer).await {
            Ok(0) => None,
            Ok(length) => {
                buffer.truncate(length);
                Some((Ok(Bytes::from(buffer)), file))
            }
            Err(error) => Some((Err(error), file)),
        }
    });
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(size));
    headers.insert(CONTENT_DISPOSITION, name::disposition(&filename));
    Ok((StatusCode::OK, headers, Body::from_stream(chunks)).into_response())
}

/// A file that is removed unless it was moved to its place.
struct Incoming(PathBuf);

impl Drop for Incoming {
    fn drop(&mut self) {
        // Gone when the upload succeeded; what stays otherwise is removed at the next start.
        let _ = fs::remove_file(&self.0);
    }
}

struct Row {
    id: String,
    uploader: String,
    filename: String,
    content_type: String,
    size: u64,
    sha256: String,
}

fn keep(tx: &mut Tx<'_>, shelf: &Shelf, incoming: &Incoming, row: &Row) -> Result<(), Failure> {
    let place = shelf.stored(&row.sha256);
    if let Some(folder) = place.parent() {
        fs::create_dir_all(folder).map_err(|e| disk(&e))?;
    }
    if !place.exists() {
        fs::rename(&incoming.0, &place).map_err(|e| disk(&e))?;
        // The row must not outlive its file's name in a power cut.
        #[cfg(unix)]
        if let Some(folder) = place.parent() {
            fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(|e| disk(&e))?;
        }
    }
    super::accounts::require_name(tx, &row.uploader)?;
    tx.execute(
        "INSERT INTO attachments
           (id, uploader, filename, content_type, size, sha256, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        (&row.id, &row.uploader, &row.filename, &row.content_type, row.size, &row.sha256, tx.now()),
    )?;
    Ok(())
}

/// Name, size and digest of an attachment that `name` uploaded or got.
fn visible(db: &Connection, name: &str, id: &str) -> Result<(String, u64, String), Failure> {
    let sql = format!(
        "SELECT a.filename, a.size, a.sha256 FROM attachments a WHERE a.id = ?2
         AND (a.uploader = ?1 OR EXISTS (SELECT 1 FROM mail_attachments l
              JOIN mails m ON m.id = l.mail_id WHERE l.attachment_id = a.id AND {}))",
        super::reading::VISIBLE
    );
    db.prepare_cached(&sql)?
        .query_row((name, id), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?
        .ok_or_else(|| {
            Failure::not_found(said!("没有这个附件：{id}", "there is no attachment {id}"))
        })
}

/// [`drain`] for what is left of a part.
async fn drain_field(mut field: Field<'_>) {
    let rest = async {
        let mut left = DRAIN_LIMIT;
        while let Ok(Some(chunk)) = field.chunk().await {
            left = left.saturating_sub(chunk.len());
            if left == 0 {
                return;
            }
        }
    };
    rest.or(async {
        smol::Timer::after(DRAIN_TIME).await;
    })
    .await;
}

async fn in_time<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    async { Ok(work.await) }
        .or(async {
            smol::Timer::after(PAUSE).await;
            Err(Failure::new(
                StatusCode::REQUEST_TIMEOUT,
                said!("上传中断：太久没有数据", "the upload paused for too long"),
            ))
        })
        .await
}

fn hex(digest: Sha256) -> String {
    use std::fmt::Write as _;
    let mut hex = String::with_capacity(64);
    for byte in digest.finalize() {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

fn too_large(limit: u64) -> Failure {
    Failure::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        said!("附件超过上限 {limit} 字节", "the attachment is larger than {limit} bytes"),
    )
}

fn not_multipart() -> Failure {
    Failure::bad_request(said!(
        "附件须以 multipart/form-data 上传，恰好一个名为 file 的部分",
        "send attachments as multipart/form-data with one part named file"
    ))
}

fn broken() -> Failure {
    Failure::bad_request(said!(
        "附件没有传完连接就断了，或格式有误",
        "the connection broke before the attachment was complete, or its form is wrong"
    ))
}

fn disk(error: &io::Error) -> Failure {
    Failure::internal(format!("attachments: {error}"))
}
