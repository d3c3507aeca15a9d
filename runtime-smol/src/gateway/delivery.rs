//! Mail: from a letter to rows, recipients and events.
//!
//! ```text
//! letter ─▶ recipients (names must exist) ─▶ session (default / new / alias) ─▶ limits
//!        ─▶ mail + one row per reader ─▶ new_mail to every stream of every reader
//! ```
//!
//! A failing send leaves nothing behind: an unknown name or alias is a 404 and never a silent new
//! session (`N-8`).

use zcode_mail_core::address::Session as Place;
use zcode_mail_core::api::events;
use zcode_mail_core::api::send::{Request, Sent};
use zcode_mail_core::mode::PermissionMode;

use super::accounts::Kind;
use super::failure::{Failure, said};
use super::store::Tx;
use super::{attachment, event, reading, secret};

mod forward;
mod limits;
mod recipients;
mod rename;
mod session;

pub(super) use forward::{Forward, forward};
use recipients::Recipient;
use session::{Found, Session};
pub(super) use session::{address, free_alias};

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
    /// Whether `reply_to` names what is forwarded: the thread goes on, the session does not.
    pub(super) forwards: bool,
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
    let Letter { mut request, permission_mode, forwards } = letter;
    if let Some(relay) = &request.relay
        && let Some(sent) = limits::relayed(tx, &sender.name, &relay.key)?
    {
        return Ok(sent);
    }
    let subject = checked_subject(&request)?;
    let proposal = match sender.kind {
        Kind::User => None,
        Kind::Agent => {
            let (body, proposal) = rename::extract(&request.body);
            request.body = body;
            proposal
        }
    };
    let mut recipients = recipients::resolve(tx, &request.to, &request.cc)?;
    let parent = match &request.reply_to {
        Some(id) => Some(reading::seen(tx, &sender.name, id)?),
        None => None,
    };
    let replied = parent.as_ref().filter(|_| !forwards);
    let found = session::find(tx, sender, &recipients, replied)?;
    let existing = match &found {
        Found::Existing(session) => Some(session),
        Found::New | Found::Adopt(_) => None,
    };
    let hops = limits::hops(tx, sender, &recipients, parent.as_ref(), existing)?;
    let session = match found {
        Found::Existing(session) => session,
        new => {
            limits::check_new_session(tx, sender)?;
            let parent_session = parent.as_ref().and_then(|mail| mail.session_id.as_deref());
            let wishes = session::Wishes {
                platform: if let Found::Adopt(platform) = &new { Some(platform) } else { None },
                subject: &subject,
                alias: request.session_alias.as_deref(),
                mode: permission_mode,
                parent_session,
            };
            session::create(tx, sender, &recipients, &wishes)?
        }
    };
    recipients::fill_workspaces(tx, &session.id, &mut recipients)?;
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
    attachment::attach(tx, &sender.name, &mail_id, &request.attachment_ids)?;
    session::join(tx, &session, sender, &recipients)?;
    let rename_proposed = match proposal {
        Some(proposal) => rename::propose(tx, &session.id, &mail_id, proposal)?,
        None => None,
    };
    if let Some(relay) = &request.relay {
        limits::remember_relay(tx, &sender.name, relay, &mail_id)?;
    }
    if sender.kind == Kind::Agent {
        let count = "UPDATE agents SET sent_total = sent_total + 1 WHERE name = ?1";
        tx.execute(count, [&sender.name])?;
    }
    announce_new_mail(tx, &mail_id)?;
    Ok(Sent {
        mail_id: Some(mail_id),
        session_id: Some(session.id),
        session_alias: Some(session.alias),
        budget_remaining: Some(budget.remaining),
        budget_max: Some(budget.max),
        rename_proposed,
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
    let mut statement =
        tx.prepare_cached("SELECT name FROM mail_recipients WHERE mail_id = ?1 ORDER BY position")?;
    let readers =
        statement.query_map([mail_id], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    drop(statement);
    for name in readers {
        let told = reading::new_mail(tx, mail_id, &name)?;
        tx.announce(&name, event::NEW_MAIL, told.to_json())?;
    }
    Ok(())
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
