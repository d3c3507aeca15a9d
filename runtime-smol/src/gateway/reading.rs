//! Reading mail: one, an inbox, a thread; each as the caller may see it.
//!
//! A mail is visible to its sender and its readers, and an ordinary one to everybody who takes part
//! in its session. What is not visible does not exist (404), and is left out of threads.

use rusqlite::{Connection, OptionalExtension as _};
use serde_json::{Value, json};
use zcode_mail_core::api::events;
use zcode_mail_core::mode::{Enforcement, PermissionMode};

use super::delivery::address;
use super::failure::{Failure, said};
use super::stamp;

/// Mails in one inbox listing.
pub(super) const INBOX_LIMIT: u32 = 200;
/// Mails of one thread that are shown: the newest.
const THREAD_LIMIT: u32 = 500;
/// Mails of one tree that are walked through.
const TREE_LIMIT: u32 = 10_000;

/// Which mails of an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    All,
    Unread,
    Read,
}

impl Status {
    /// Reads the query value; absent is all.
    ///
    /// # Errors
    ///
    /// 400 for another text.
    pub(super) fn from_query(text: Option<&str>) -> Result<Self, Failure> {
        match text {
            None | Some("all") => Ok(Self::All),
            Some("unread") => Ok(Self::Unread),
            Some("read") => Ok(Self::Read),
            Some(_) => Err(Failure::bad_request(said!(
                "status 只能是 unread、read 或 all",
                "status may be unread, read or all"
            ))),
        }
    }
}

/// The condition under which mail `m` is visible to the name in parameter `?1`.
pub(super) const VISIBLE: &str = "(m.from_name = ?1
    OR EXISTS (SELECT 1 FROM mail_recipients v WHERE v.mail_id = m.id AND v.name = ?1)
    OR (m.mail_type = 'normal' AND EXISTS (SELECT 1 FROM session_participants v
        WHERE v.session_id = m.session_id AND v.name = ?1)))";

/// A mail as far as a reply or a forward needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) id: String,
    pub(super) session_id: Option<String>,
    pub(super) hops: u32,
}

/// The mail `id`, if `name` may see it.
///
/// # Errors
///
/// 404.
pub(super) fn seen(db: &Connection, name: &str, id: &str) -> Result<Seen, Failure> {
    let sql = format!("SELECT id, session_id, hops FROM mails m WHERE m.id = ?2 AND {VISIBLE}");
    db.prepare_cached(&sql)?
        .query_row((name, id), |row| {
            Ok(Seen { id: row.get(0)?, session_id: row.get(1)?, hops: row.get(2)? })
        })
        .optional()?
        .ok_or_else(|| Failure::not_found(said!("没有这封邮件：{id}", "there is no mail {id}")))
}

/// The newest mails to `reader`, newest first (`B-7.4`), and how many there are in all.
pub(super) fn inbox(
    db: &Connection,
    reader: &str,
    status: Status,
    limit: u32,
) -> Result<Value, Failure> {
    let (all, unread): (u64, u64) = db
        .prepare_cached("SELECT total, unread FROM mailbox_counts WHERE name = ?1")?
        .query_row([reader], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?
        .unwrap_or_default();
    let total = match status {
        Status::All => all,
        Status::Unread => unread,
        Status::Read => all - unread,
    };
    let condition = match status {
        Status::All => "",
        Status::Unread => "AND read_at IS NULL",
        Status::Read => "AND read_at IS NOT NULL",
    };
    let mut statement = db.prepare_cached(&format!(
        "SELECT mail_id FROM mail_recipients WHERE name = ?1 {condition}
         ORDER BY mail_number DESC LIMIT ?2"
    ))?;
    let ids = statement
        .query_map((reader, limit), |row| row.get(0))?
        .collect::<Result<Vec<String>, _>>()?;
    Ok(json!({ "mails": mails(db, reader, &ids)?, "total": total }))
}

/// One mail in full with everybody in its session (`T-12`). Reading it so marks nothing.
pub(super) fn full(db: &Connection, reader: &str, id: &str) -> Result<Value, Failure> {
    let found = seen(db, reader, id)?;
    let mut mail = mail_json(db, reader, &found.id)?;
    let people = match &found.session_id {
        Some(session) => super::discovery::participants(db, session)?,
        None => Vec::new(),
    };
    mail["participants"] = json!(people);
    Ok(mail)
}

/// The thread of a mail over all sessions, oldest first: everything under the topmost mail that
/// leads to it, as far as `reader` may see it.
pub(super) fn thread(db: &Connection, reader: &str, id: &str) -> Result<Value, Failure> {
    seen(db, reader, id)?;
    let root: String = db.query_row(
        "WITH RECURSIVE up (id, parent_id) AS (
           SELECT id, parent_id FROM mails WHERE id = ?1
           UNION SELECT m.id, m.parent_id FROM mails m JOIN up ON m.id = up.parent_id LIMIT ?2)
         SELECT id FROM up WHERE parent_id IS NULL
           OR NOT EXISTS (SELECT 1 FROM up other WHERE other.id = up.parent_id)",
        (id, TREE_LIMIT),
        |row| row.get(0),
    )?;
    let mut statement = db.prepare(&format!(
        "WITH RECURSIVE tree (id) AS (
           SELECT ?2 UNION SELECT m.id FROM mails m JOIN tree ON m.parent_id = tree.id LIMIT ?3)
         SELECT id FROM (SELECT m.id, m.number FROM tree JOIN mails m ON m.id = tree.id
           WHERE {VISIBLE} ORDER BY m.number DESC LIMIT ?4) ORDER BY number"
    ))?;
    let ids = statement
        .query_map((reader, &root, TREE_LIMIT, THREAD_LIMIT), |row| row.get(0))?
        .collect::<Result<Vec<String>, _>>()?;
    Ok(json!({ "root_mail_id": root, "mails": mails(db, reader, &ids)? }))
}

fn mails(db: &Connection, reader: &str, ids: &[String]) -> Result<Vec<Value>, Failure> {
    ids.iter().map(|id| mail_json(db, reader, id)).collect()
}

/// Everything about a mail that a reader needs: the fields of `W-4`, text, copies, attachments.
pub(super) fn mail_json(db: &Connection, reader: &str, id: &str) -> Result<Value, Failure> {
    let told = new_mail(db, id, reader)?;
    let mut mail: Value = serde_json::from_str(&told.to_json())
        .map_err(|error| Failure::internal(format!("new_mail: {error}")))?;
    mail["from_address"] = json!(told.reply_address);
    db.prepare_cached(
        "SELECT m.body, m.created_at, m.rename_alias,
                coalesce((SELECT r.read_at IS NOT NULL FROM mail_recipients r
                          WHERE r.mail_id = m.id AND r.name = ?2), 1)
         FROM mails m WHERE m.id = ?1",
    )?
    .query_row((id, reader), |row| {
        mail["body"] = json!(row.get::<_, String>(0)?);
        mail["created_at"] = json!(stamp::rfc3339(row.get(1)?));
        if let Some(alias) = row.get::<_, Option<String>>(2)? {
            mail["rename_proposed"] = json!(alias);
        }
        mail["is_read"] = json!(row.get::<_, bool>(3)?);
        Ok(())
    })?;
    let mut copies = Vec::new();
    let mut statement = db.prepare_cached(
        "SELECT name, role, workspace FROM mail_recipients WHERE mail_id = ?1 ORDER BY position",
    )?;
    let mut rows = statement.query([id])?;
    while let Some(row) = rows.next()? {
        let (name, role, workspace): (String, String, String) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        let full = address(&name, &workspace, &told.session_alias);
        if role == "to" {
            mail["to_name"] = json!(name);
            mail["to_address"] = json!(full);
        } else {
            copies.push(json!({ "name": name, "address": full }));
        }
    }
    mail["cc"] = json!(copies);
    mail["attachments"] = json!(super::attachment::of_mail(db, id)?);
    Ok(mail)
}

/// What the event about mail `id` tells `reader` (`W-4`).
pub(super) fn new_mail(
    db: &Connection,
    id: &str,
    reader: &str,
) -> Result<events::NewMail, Failure> {
    Ok(db
        .prepare_cached(
            "SELECT m.session_id, m.parent_id, m.from_name, m.subject, m.mail_type, s.alias,
                s.platform_id, s.permission_mode, p.workspace, a.mode_enforcement,
                EXISTS (SELECT 1 FROM users u WHERE u.name = m.from_name), r.role,
                coalesce(r.workspace, own.workspace)
         FROM mails m
         LEFT JOIN sessions s ON s.id = m.session_id
         LEFT JOIN session_participants p ON p.session_id = m.session_id AND p.name = m.from_name
         LEFT JOIN session_participants own ON own.session_id = m.session_id AND own.name = ?2
         LEFT JOIN mail_recipients r ON r.mail_id = m.id AND r.name = ?2
         LEFT JOIN agents a ON a.name = ?2
         WHERE m.id = ?1",
        )?
        .query_row((id, reader), |row| {
            let text = |index| row.get::<_, Option<String>>(index).map(Option::unwrap_or_default);
            let from_name: String = row.get(2)?;
            let alias = text(5)?;
            let workspace = text(12)?;
            Ok(events::NewMail {
                mail_id: id.to_owned(),
                session_id: text(0)?,
                subject: row.get(3)?,
                mail_type: row.get(4)?,
                role: row.get::<_, Option<String>>(11)?.unwrap_or_else(|| "from".to_owned()),
                reply_address: address(&from_name, &text(8)?, &alias),
                self_address: address(reader, &workspace, &alias),
                to_workspace: workspace,
                session_alias: alias,
                platform_session_id: text(6)?,
                in_reply_to: text(1)?,
                from_human: Some(row.get(10)?),
                permission_mode: PermissionMode::from_wire(&text(7)?),
                permission_enforcement: Enforcement::from_wire(&text(9)?),
                from_name,
            })
        })?)
}
