//! Sessions: finding the one a letter belongs to, or making it.

use rusqlite::{Connection, OptionalExtension as _, Row};
use zcode_mail_core::address::{Address, Session as Place};
use zcode_mail_core::alias;
use zcode_mail_core::mode::PermissionMode;

use super::super::failure::{Failure, said};
use super::super::reading::Seen;
use super::super::secret;
use super::super::store::Tx;
use super::recipients::Recipient;
use super::{Kind, Sender};

/// A session as far as sending needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) alias: String,
    pub(super) used_rounds: i64,
    pub(super) max_rounds: i64,
}

/// A session of the recipient's own platform, as its agent reported it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Platform {
    id: String,
    slug: String,
    title: String,
    workspace: String,
}

/// Where a letter goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Into this session.
    Existing(Session),
    /// Into a new one.
    New,
    /// Into a new one that stands for a platform session from now on (`B-3.7`).
    Adopt(Platform),
}

/// What a new session shall be like.
pub(super) struct Wishes<'w> {
    /// The platform session that it stands for.
    pub(super) platform: Option<&'w Platform>,
    pub(super) subject: &'w str,
    pub(super) alias: Option<&'w str>,
    pub(super) mode: Option<PermissionMode>,
    pub(super) parent_session: Option<&'w str>,
}

const COLUMNS: &str = "s.id, s.alias, s.used_rounds, s.max_rounds";

/// The session that the letter belongs to.
///
/// An alias must exist, belong to the recipient and match the path; it may be the short name of a
/// session that the recipient's platform reported. Without a third part a reply stays in the
/// session of what it answers; anything else goes to the session of sender and recipient (at that
/// path) that was active last.
///
/// # Errors
///
/// 404 for an alias that leads nowhere.
pub(super) fn find(
    db: &Connection,
    sender: &Sender,
    recipients: &[Recipient],
    parent: Option<&Seen>,
) -> Result<Found, Failure> {
    for copy in &recipients[1..] {
        if let Place::Alias(alias) = &copy.place {
            by_alias(db, copy, alias.as_str())?;
        }
    }
    let to = &recipients[0];
    match &to.place {
        Place::New => Ok(Found::New),
        Place::Alias(alias) => by_alias(db, to, alias.as_str()),
        Place::Default => {
            if let Some(session) = parent.and_then(|mail| mail.session_id.as_deref())
                && let Some(found) = of_reply(db, to, session)?
            {
                return Ok(Found::Existing(found));
            }
            Ok(last_active(db, sender, to)?.map_or(Found::New, Found::Existing))
        }
    }
}

/// Makes a session: the sender owns it.
pub(super) fn create(
    tx: &mut Tx<'_>,
    sender: &Sender,
    recipients: &[Recipient],
    wishes: &Wishes<'_>,
) -> Result<Session, Failure> {
    let to = &recipients[0];
    let agent = match (to.kind, sender.kind) {
        (Kind::Agent, _) => Some(to.name.as_str()),
        (Kind::User, Kind::Agent) => Some(sender.name.as_str()),
        (Kind::User, Kind::User) => None,
    };
    let id = secret::id()?;
    let (workspace, subject, wanted, source) = named(to, wishes, &id);
    let alias = free_alias(tx, &wanted, None)?;
    let mode = match wishes.mode {
        Some(mode) => mode,
        None => inherited_mode(tx, wishes.parent_session)?,
    };
    let max_rounds: i64 = match agent {
        Some(agent) => {
            tx.query_row("SELECT default_rounds FROM agents WHERE name = ?1", [agent], |row| {
                row.get(0)
            })?
        }
        None => 0,
    };
    tx.execute(
        "INSERT INTO sessions (id, alias, alias_source, subject, agent_name, workspace, owner,
           permission_mode, max_rounds, created_by, created_at, updated_at, platform_id)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?7, ?10, ?10, ?11)",
        (
            &id,
            &alias,
            source,
            subject,
            agent,
            workspace,
            &sender.name,
            mode.as_str(),
            max_rounds,
            tx.now(),
            wishes.platform.map_or("", |platform| &platform.id),
        ),
    )?;
    if let Some(platform) = wishes.platform {
        tx.execute(
            "INSERT INTO session_participants (session_id, name, workspace, role, joined_at)
             VALUES (?1, ?2, ?3, 'to', ?4)",
            (&id, &to.name, &platform.workspace, tx.now()),
        )?;
    }
    Ok(Session { id, alias, used_rounds: 0, max_rounds })
}

/// Workspace, subject, alias and its source for a new session with the id `id`.
fn named<'n>(
    to: &'n Recipient,
    wishes: &Wishes<'n>,
    id: &str,
) -> (&'n str, String, String, &'static str) {
    let workspace = if to.kind == Kind::Agent { to.workspace.as_str() } else { "" };
    if let Some(Platform { slug, title, workspace, .. }) = wishes.platform {
        let subject = if title.is_empty() { wishes.subject } else { title };
        return (workspace, subject.to_owned(), slug.clone(), "platform");
    }
    let subject = wishes.subject.to_owned();
    if let Some(alias) = wishes.alias.and_then(alias::normalize) {
        return (workspace, subject, alias, "requested");
    }
    let alias =
        alias::slug_from_title(wishes.subject).unwrap_or_else(|| format!("session-{}", &id[..8]));
    (workspace, subject, alias, "subject")
}

/// Makes sender and recipients participants, and the session the most recently active one.
pub(super) fn join(
    tx: &mut Tx<'_>,
    session: &Session,
    sender: &Sender,
    recipients: &[Recipient],
) -> Result<(), Failure> {
    let add = |name: &str, workspace: &str, role: &str| {
        tx.execute(
            "INSERT INTO session_participants (session_id, name, workspace, role, joined_at)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO UPDATE SET workspace = excluded.workspace
               WHERE excluded.workspace <> ''",
            (&session.id, name, workspace, role, tx.now()),
        )
    };
    for recipient in recipients {
        add(&recipient.name, &recipient.workspace, recipient.role)?;
    }
    // The sender's own path is not part of a letter; one that is known stays.
    add(&sender.name, "", "from")?;
    tx.execute("UPDATE sessions SET updated_at = ?2 WHERE id = ?1", (&session.id, tx.now()))?;
    Ok(())
}

/// `wanted`, or the first numbered variant of it that no session other than `except` has.
pub(in crate::gateway) fn free_alias(
    db: &Connection,
    wanted: &str,
    except: Option<&str>,
) -> Result<String, Failure> {
    let mut statement = db.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM sessions WHERE alias = ?1 AND id IS NOT ?2)",
    )?;
    let statement = std::cell::RefCell::new(&mut *statement);
    let failed = std::cell::Cell::new(None);
    let alias = alias::first_free(wanted, |candidate| {
        let taken =
            statement.borrow_mut().query_row((candidate, except), |row| row.get::<_, bool>(0));
        taken.unwrap_or_else(|error| {
            failed.set(Some(error));
            false
        })
    });
    failed.into_inner().map_or(Ok(alias), |error| Err(error.into()))
}

/// An address of the form `name@path.alias`; without an alias the name at its default session.
pub(in crate::gateway) fn address(name: &str, workspace: &str, alias: &str) -> String {
    let place = Place::alias(alias).unwrap_or_default();
    // Stored names are names; a foreign one is shown as it stands.
    Address::new(name, workspace, place).map_or_else(|_| name.to_owned(), |full| full.to_string())
}

/// A session that an agent makes is never freer than the one it works in, and never `full`: that
/// is for people to say.
fn inherited_mode(db: &Connection, parent: Option<&str>) -> Result<PermissionMode, Failure> {
    let Some(parent) = parent else { return Ok(PermissionMode::Workspace) };
    let mode: String =
        db.query_row("SELECT permission_mode FROM sessions WHERE id = ?1", [parent], |row| {
            row.get(0)
        })?;
    Ok(match PermissionMode::from_wire(&mode) {
        PermissionMode::Plan => PermissionMode::Plan,
        PermissionMode::Workspace | PermissionMode::Full => PermissionMode::Workspace,
    })
}

fn by_alias(db: &Connection, to: &Recipient, alias: &str) -> Result<Found, Failure> {
    let named = db
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM sessions s
             JOIN session_participants p ON p.session_id = s.id AND p.name = ?2
             WHERE s.alias = ?1 AND s.archived_at IS NULL AND (?3 = '' OR p.workspace = ?3)"
        ))?
        .query_row((alias, &to.name, &to.workspace), read)
        .optional()?;
    if let Some(session) = named {
        return Ok(Found::Existing(session));
    }
    if let Some(found) = by_slug(db, to, alias)? {
        return Ok(found);
    }
    let (name, path) = (&to.name, &to.workspace);
    Err(Failure::not_found(said!(
        "无法送达：{name}@{path} 没有别名为 {alias} 的会话",
        "cannot deliver: {name}@{path} has no session called {alias}"
    ))
    .suggest(said!(
        "先查可用的会话（suggest_address）；不要改用 .new 重试，那会新开一条会话",
        "look up the sessions (suggest_address); do not retry with .new, which opens another one"
    )))
}

/// The platform session with this short name: the mail session that stands for it already, or one
/// to make. One that was archived is gone.
fn by_slug(db: &Connection, to: &Recipient, slug: &str) -> Result<Option<Found>, Failure> {
    let mirrored = db
        .query_row(
            "SELECT platform_id, slug, title, workspace FROM agent_platform_sessions
             WHERE agent_name = ?1 AND slug = ?2 AND (?3 = '' OR workspace = ?3)",
            (&to.name, slug, &to.workspace),
            |row| {
                Ok(Platform {
                    id: row.get(0)?,
                    slug: row.get(1)?,
                    title: row.get(2)?,
                    workspace: row.get(3)?,
                })
            },
        )
        .optional()?;
    let Some(platform) = mirrored else { return Ok(None) };
    let standing = db
        .query_row(
            &format!(
                "SELECT {COLUMNS}, s.archived_at IS NOT NULL FROM sessions s
                 WHERE s.agent_name = ?1 AND s.platform_id = ?2"
            ),
            (&to.name, &platform.id),
            |row| Ok((read(row)?, row.get::<_, bool>(4)?)),
        )
        .optional()?;
    Ok(match standing {
        Some((_, true)) => None,
        Some((session, false)) => Some(Found::Existing(session)),
        None => Some(Found::Adopt(platform)),
    })
}

fn of_reply(db: &Connection, to: &Recipient, session: &str) -> Result<Option<Session>, Failure> {
    let archived: bool = db.query_row(
        "SELECT archived_at IS NOT NULL FROM sessions WHERE id = ?1",
        [session],
        |row| row.get(0),
    )?;
    if archived {
        return Err(Failure::not_found(said!(
            "无法送达：这封邮件所在的会话已归档",
            "cannot deliver: the session of that mail is archived"
        ))
        .suggest(said!(
            "需要继续时请开新会话（地址以 .new 结尾）",
            "to go on, open a new session (an address that ends in .new)"
        )));
    }
    Ok(db
        .query_row(
            &format!(
                "SELECT {COLUMNS} FROM sessions s
                 LEFT JOIN session_participants p ON p.session_id = s.id AND p.name = ?2
                 WHERE s.id = ?1 AND (?3 = '' OR p.name IS NULL OR p.workspace = ?3)"
            ),
            (session, &to.name, &to.workspace),
            read,
        )
        .optional()?)
}

fn last_active(
    db: &Connection,
    sender: &Sender,
    to: &Recipient,
) -> Result<Option<Session>, Failure> {
    Ok(db
        .query_row(
            &format!(
                "SELECT {COLUMNS} FROM session_participants p
                 JOIN sessions s ON s.id = p.session_id
                 WHERE p.name = ?1 AND p.workspace = ?2 AND s.archived_at IS NULL
                   AND EXISTS (SELECT 1 FROM session_participants own
                               WHERE own.session_id = s.id AND own.name = ?3)
                 ORDER BY s.updated_at DESC, s.id LIMIT 1"
            ),
            (&to.name, &to.workspace, &sender.name),
            read,
        )
        .optional()?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<Session> {
    Ok(Session {
        id: row.get(0)?,
        alias: row.get(1)?,
        used_rounds: row.get(2)?,
        max_rounds: row.get(3)?,
    })
}
