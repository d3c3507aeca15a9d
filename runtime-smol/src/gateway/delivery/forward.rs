//! Forwarding: a new entry of the same thread, usually in another session (`T-5`).

use rusqlite::Connection;
use zcode_mail_core::api::send::{Request, Sent};

use super::super::body::BODY_LIMIT;
use super::super::failure::{Failure, said};
use super::super::store::Tx;
use super::super::{reading, stamp};
use super::{Letter, Sender, send};

/// What a forward says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::gateway) struct Forward {
    pub(in crate::gateway) mail_id: String,
    pub(in crate::gateway) to: String,
    pub(in crate::gateway) cc: String,
    /// The text above the quoted mail.
    pub(in crate::gateway) note: String,
    pub(in crate::gateway) session_alias: Option<String>,
}

/// Forwards a mail with its attachments. The address works as in a send; without a third part the
/// session of sender and recipient goes on, never the one of the forwarded mail.
///
/// # Errors
///
/// 404 for a mail that the sender may not see, 413 when note and mail together are too long, and
/// those of [`send`].
pub(in crate::gateway) fn forward(
    tx: &mut Tx<'_>,
    sender: &Sender,
    forward: Forward,
) -> Result<Sent, Failure> {
    reading::seen(tx, &sender.name, &forward.mail_id)?;
    let original = original(tx, &forward.mail_id)?;
    let request = Request {
        to: forward.to,
        cc: forward.cc,
        subject: format!("Fwd: {}", original.subject),
        body: quoted(&forward.note, &original)?,
        reply_to: Some(forward.mail_id),
        session_alias: forward.session_alias,
        attachment_ids: original.attachments,
        relay: None,
    };
    send(tx, sender, Letter { request, permission_mode: None, forwards: true })
}

struct Original {
    from: String,
    subject: String,
    at: String,
    body: String,
    attachments: Vec<String>,
}

fn original(db: &Connection, id: &str) -> Result<Original, Failure> {
    let mut original = db.query_row(
        "SELECT from_name, subject, created_at, body FROM mails WHERE id = ?1",
        [id],
        |row| {
            Ok(Original {
                from: row.get(0)?,
                subject: row.get(1)?,
                at: stamp::rfc3339(row.get(2)?),
                body: row.get(3)?,
                attachments: Vec::new(),
            })
        },
    )?;
    let mut statement = db.prepare_cached(
        "SELECT attachment_id FROM mail_attachments WHERE mail_id = ?1 ORDER BY position",
    )?;
    let rows = statement.query_map([id], |row| row.get(0))?;
    original.attachments = rows.collect::<Result<_, _>>()?;
    Ok(original)
}

fn quoted(note: &str, original: &Original) -> Result<String, Failure> {
    let Original { from, subject, at, body, .. } = original;
    let mut text = String::new();
    if !note.trim().is_empty() {
        text.push_str(note.trim_end());
        text.push_str("\n\n");
    }
    text.push_str(&format!(
        "---------- 转发 / Forwarded ----------\n发件人 / From: {from}\n主题 / Subject: {subject}\n\
         时间 / Date: {at}\n\n{body}"
    ));
    if text.len() > BODY_LIMIT {
        return Err(Failure::new(
            http::StatusCode::PAYLOAD_TOO_LARGE,
            said!(
                "转发后的正文超过上限 {BODY_LIMIT} 字节",
                "the forwarded text is larger than {BODY_LIMIT} bytes"
            ),
        ));
    }
    Ok(text)
}
