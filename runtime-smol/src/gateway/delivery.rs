//! Mail: from a letter to rows, recipients and events.
//!
//! ```text
//! letter ─▶ recipients (names must exist) ─▶ session (default / new / alias) ─▶ limits
//!        ─▶ mail + one row per reader ─▶ new_mail to every stream of every reader
//! ```
//!
//! A failing send leaves nothing behind: an unknown name or alias is a 404 and never a silent new
//! session (`N-8`).

use rusqlite::{Connection, OptionalExtension as _};
use serde_json::{Value, json};
use zcode_mail_core::address::Session as Place;
use zcode_mail_core::api::events;
use zcode_mail_core::api::send::{Request, Sent};
use zcode_mail_core::mode::{Enforcement, PermissionMode};

use super::accounts::Kind;
use super::failure::{Failure, said};
use super::store::Tx;
use super::{event, secret, stamp};

mod limits;
mod recipients;
mod session;

use recipients::Recipient;
use session::Session;

/// Longest subject in bytes.
const SUBJECT_LIMIT: usize = 2 * 1024;

/// Who sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sender {
    pub(super) name: String,
    pub(super) kind: Kind,
}

impl Sender {
    pub(super) const fn agent(name: String) -> Self {
        Self { name, kind: Kind::Agent }
    }

    pub(super) const fn person(name: String) -> Self {
        Self { name, kind: Kind::User }
    }
}

/// A mail to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Letter {
    /// The fields of `W-5`.
    pub(super) request: Request,
    /// The mode of the session, if the mail creates one; people only.
    pub(super) permission_mode: Option<PermissionMode>,
}

/// A mail that the gateway itself writes into a thread.
pub(super) struct NewMail<'m> {
    pub(super) session_id: Option<&'m str>,
    pub(super) parent_id: Option<&'m str>,
    pub(super) from_name: &'m str,
    pub(super) to_name: &'m str,
    pub(super) to_workspace: &'m str,
    pub(super) subject: &'m str,
    pub(super) body: &'m str,
    pub(super) mail_type: &'m str,
    /// Whether the reader has no need to read it.
    pub(super) read: bool,
}

/// Sends a letter.
///
/// # Errors
///
/// 400 for an address that is none; 404 for an unknown recipient, alias or `reply_to`; 403 for a
/// used-up budget; 409 for a chain of agents that is too long; 429 for too many new sessions.
pub(super) fn send(tx: &mut Tx<'_>, sender: &Sender, letter: Letter) -> Result<Sent, Failure> {
    let Letter { request, permission_mode } = letter;
    if let Some(relay) = &request.relay
        && let Some(sent) = limits::relayed(tx, &sender.name, &relay.key)?
    {
        return Ok(sent);
    }
    let subject = checked_subject(&request)?;
    let recipients = recipients::resolve(tx, &request.to, &request.cc)?;
    let parent = match &request.reply_to {
        Some(id) => Some(visible_mail(tx, &sender.name, id)?),
        None => None,
    };
    let found = session::find(tx, sender, &recipients, parent.as_ref())?;
    let hops = limits::hops(tx, sender, &recipients, parent.as_ref(), found.as_ref())?;
    let session = match found {
        Some(session) => session,
        None => {
            limits::check_new_session(tx, sender)?;
            let parent_session = parent.as_ref().and_then(|mail| mail.session_id.as_deref());
            session::create(
                tx,
                sender,
                &recipients,
                &session::Wishes {
                    subject: &subject,
                    alias: request.session_alias.as_deref(),
                    mode: permission_mode,
                    parent_session,
                },
            )?
        }
    };
    let charged = sender.kind == Kind::Agent && request.relay.is_none();
    let budget = limits::charge(tx, &session, charged)?;
    let mail_id = secret::id()?;
    insert_mail(
        tx,
        &Row {
            id: &mail_id,
            session_id: Some(&session.id),
            parent_id: parent.as_ref().map(|mail| mail.id.as_str()),
            from_name: &sender.name,
            to_name: &recipients[0].name,
            subject: &subject,
            body: &request.body,
            mail_type: events::NORMAL,
            hops,
        },
    )?;
    insert_recipients(tx, &mail_id, &recipients, false)?;
    session::join(tx, &session, sender, &recipients)?;
    if let Some(relay) = &request.relay {
        limits::remember_relay(tx, &sender.name, relay, &mail_id)?;
    }
    if sender.kind == Kind::Agent {
        tx.execute(
            "UPDATE agents SET sent_total = sent_total + 1 WHERE name = ?1",
            [&sender.name],
        )?;
    }
    announce_new_mail(tx, &mail_id)?;
    Ok(Sent {
        mail_id: Some(mail_id),
        session_id: Some(session.id),
        session_alias: Some(session.alias),
        budget_remaining: Some(budget.remaining),
        budget_max: Some(budget.max),
        rename_proposed: None,
        duplicate: false,
    })
}

/// Writes one mail for one reader without announcing it; returns its id.
pub(super) fn insert(tx: &mut Tx<'_>, mail: &NewMail<'_>) -> Result<String, Failure> {
    let id = secret::id()?;
    insert_mail(
        tx,
        &Row {
            id: &id,
            session_id: mail.session_id,
            parent_id: mail.parent_id,
            from_name: mail.from_name,
            to_name: mail.to_name,
            subject: mail.subject,
            body: mail.body,
            mail_type: mail.mail_type,
            hops: 0,
        },
    )?;
    let recipient = Recipient {
        name: mail.to_name.to_owned(),
        kind: Kind::User,
        workspace: mail.to_workspace.to_owned(),
        role: "to",
        place: Place::Default,
    };
    insert_recipients(tx, &id, &[recipient], mail.read)?;
    Ok(id)
}

/// Marks mails as read for `reader`; ids of others are ignored. Returns how many were unread.
pub(super) fn mark_read(tx: &mut Tx<'_>, reader: &str, ids: &[String]) -> Result<usize, Failure> {
    let mut marked = 0;
    for id in ids {
        marked += tx.execute(
            "UPDATE mail_recipients SET read_at = ?3
             WHERE mail_id = ?2 AND name = ?1 AND read_at IS NULL",
            (reader, id, tx.now()),
        )?;
    }
    Ok(marked)
}

/// Announces the mail to each of its readers with every field of `W-4`.
pub(super) fn announce_new_mail(tx: &mut Tx<'_>, mail_id: &str) -> Result<(), Failure> {
    let mut statement = tx.prepare(
        "SELECT name, role, workspace FROM mail_recipients WHERE mail_id = ?1 ORDER BY position",
    )?;
    let readers = statement
        .query_map([mail_id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<Vec<(String, String, String)>, _>>()?;
    drop(statement);
    for (name, role, workspace) in readers {
        let told = new_mail(tx, mail_id, &name, &role, &workspace)?;
        tx.announce(&name, event::NEW_MAIL, told.to_json())?;
    }
    Ok(())
}

/// A mail as far as a reply or a forward needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parent {
    pub(super) id: String,
    pub(super) session_id: Option<String>,
    pub(super) hops: u32,
}

/// The mail `id`, if `name` sent or received it.
pub(super) fn visible_mail(db: &Connection, name: &str, id: &str) -> Result<Parent, Failure> {
    db.query_row(
        "SELECT id, session_id, hops FROM mails m WHERE id = ?1 AND (from_name = ?2 OR EXISTS
           (SELECT 1 FROM mail_recipients r WHERE r.mail_id = m.id AND r.name = ?2))",
        (id, name),
        |row| Ok(Parent { id: row.get(0)?, session_id: row.get(1)?, hops: row.get(2)? }),
    )
    .optional()?
    .ok_or_else(|| Failure::not_found(said!("没有这封邮件：{id}", "there is no mail {id}")))
}

/// The newest mails to `reader`, newest first (`B-7.4`), each with the fields of `W-4` and more.
pub(super) fn inbox(
    db: &Connection,
    reader: &str,
    unread: bool,
    limit: u32,
) -> Result<Vec<Value>, Failure> {
    let mut statement = db.prepare(
        "SELECT r.mail_id, r.role, r.workspace, r.read_at IS NOT NULL, m.body, m.to_name,
                m.created_at
         FROM mail_recipients r JOIN mails m ON m.id = r.mail_id
         WHERE r.name = ?1 AND (NOT ?2 OR r.read_at IS NULL)
         ORDER BY r.mail_number DESC LIMIT ?3",
    )?;
    let mut rows = statement.query((reader, unread, limit))?;
    let mut mails = Vec::new();
    while let Some(row) = rows.next()? {
        let (id, role, workspace): (String, String, String) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        let told = new_mail(db, &id, reader, &role, &workspace)?;
        let mut mail: Value = serde_json::from_str(&told.to_json())
            .map_err(|error| Failure::internal(format!("new_mail: {error}")))?;
        mail["is_read"] = json!(row.get::<_, bool>(3)?);
        mail["body"] = json!(row.get::<_, String>(4)?);
        mail["to_name"] = json!(row.get::<_, String>(5)?);
        mail["created_at"] = json!(stamp::rfc3339(row.get(6)?));
        mails.push(mail);
    }
    Ok(mails)
}

fn new_mail(
    db: &Connection,
    mail_id: &str,
    reader: &str,
    role: &str,
    workspace: &str,
) -> Result<events::NewMail, Failure> {
    Ok(db.query_row(
        "SELECT m.session_id, m.parent_id, m.from_name, m.subject, m.mail_type, s.alias,
                s.platform_id, s.permission_mode, p.workspace, a.mode_enforcement,
                EXISTS (SELECT 1 FROM users u WHERE u.name = m.from_name)
         FROM mails m
         LEFT JOIN sessions s ON s.id = m.session_id
         LEFT JOIN session_participants p ON p.session_id = m.session_id AND p.name = m.from_name
         LEFT JOIN agents a ON a.name = ?2
         WHERE m.id = ?1",
        (mail_id, reader),
        |row| {
            let text = |index| row.get::<_, Option<String>>(index);
            let from_name: String = row.get(2)?;
            let alias = text(5)?.unwrap_or_default();
            let from_workspace = text(8)?.unwrap_or_default();
            Ok(events::NewMail {
                mail_id: mail_id.to_owned(),
                session_id: text(0)?.unwrap_or_default(),
                subject: row.get(3)?,
                mail_type: row.get(4)?,
                role: role.to_owned(),
                to_workspace: workspace.to_owned(),
                reply_address: session::address(&from_name, &from_workspace, &alias),
                self_address: session::address(reader, workspace, &alias),
                session_alias: alias,
                platform_session_id: text(6)?.unwrap_or_default(),
                in_reply_to: text(1)?.unwrap_or_default(),
                from_human: Some(row.get(10)?),
                permission_mode: PermissionMode::from_wire(&text(7)?.unwrap_or_default()),
                permission_enforcement: Enforcement::from_wire(&text(9)?.unwrap_or_default()),
                from_name,
            })
        },
    )?)
}

fn checked_subject(request: &Request) -> Result<String, Failure> {
    if request.subject.len() > SUBJECT_LIMIT {
        return Err(Failure::bad_request(said!(
            "字段 \"subject\" 过长（上限 {SUBJECT_LIMIT} 字节）",
            "field \"subject\" is too long (at most {SUBJECT_LIMIT} bytes)"
        )));
    }
    // One line: a subject is a line of every listing.
    Ok(request.subject.split(['\r', '\n']).map(str::trim).collect::<Vec<_>>().join(" "))
}

struct Row<'m> {
    id: &'m str,
    session_id: Option<&'m str>,
    parent_id: Option<&'m str>,
    from_name: &'m str,
    to_name: &'m str,
    subject: &'m str,
    body: &'m str,
    mail_type: &'m str,
    hops: u32,
}

fn insert_mail(tx: &mut Tx<'_>, mail: &Row<'_>) -> Result<(), Failure> {
    // One writer at a time, so the next number is this one's.
    tx.execute(
        "INSERT INTO mails (id, number, session_id, parent_id, from_name, to_name, subject, body,
           mail_type, hops, created_at)
         VALUES (?1, (SELECT coalesce(max(number), 0) + 1 FROM mails), ?2, ?3, ?4, ?5, ?6, ?7, ?8,
           ?9, ?10)",
        (
            mail.id,
            mail.session_id,
            mail.parent_id,
            mail.from_name,
            mail.to_name,
            mail.subject,
            mail.body,
            mail.mail_type,
            mail.hops,
            tx.now(),
        ),
    )?;
    Ok(())
}

fn insert_recipients(
    tx: &mut Tx<'_>,
    mail_id: &str,
    recipients: &[Recipient],
    read: bool,
) -> Result<(), Failure> {
    for (position, recipient) in recipients.iter().enumerate() {
        tx.execute(
            "INSERT INTO mail_recipients
               (name, mail_number, mail_id, role, position, workspace, read_at)
             VALUES (?1, (SELECT number FROM mails WHERE id = ?2), ?2, ?3, ?4, ?5, ?6)",
            (
                &recipient.name,
                mail_id,
                recipient.role,
                position,
                &recipient.workspace,
                read.then_some(tx.now()),
            ),
        )?;
    }
    Ok(())
}
