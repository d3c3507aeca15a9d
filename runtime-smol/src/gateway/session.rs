//! What happens to a session besides mail: naming, modes and budgets, the archive.
//!
//! ```text
//! alias_source: subject / requested ─▶ platform (sync) ─▶ manual (a person; final)
//! live ─▶ archived: its waiting requests are withdrawn, every participant hears session_archived
//! ```

use rusqlite::{Connection, OptionalExtension as _};
use serde_json::{Value, json};
use zcode_mail_core::alias;
use zcode_mail_core::api::events;
use zcode_mail_core::mode::PermissionMode;

use super::failure::{Failure, said};
use super::store::Tx;
use super::{delivery, discovery, grant, permission};

/// Longest title that a platform may write back, in bytes.
const TITLE_LIMIT: usize = 1024;

/// Takes the name that the platform of `agent` gave the session (`W-7`, `D-5`). A collision gets a
/// number; an alias that a person chose stays. Returns what holds now.
///
/// # Errors
///
/// 404 for a session the agent has no part in; 400 for an alias that cannot be one and for titles
/// that say nothing (`N-4`).
pub(super) fn sync(
    tx: &mut Tx<'_>,
    agent: &str,
    id: &str,
    wanted: Option<&str>,
    title: Option<&str>,
) -> Result<Value, Failure> {
    discovery::require_part(tx, agent, id)?;
    if let Some(title) = title {
        let title = title.trim();
        if alias::is_unusable_name(title) {
            return Err(Failure::bad_request(said!(
                "字段 \"title\" 是占位标题或标题生成器的自述，不能写回",
                "field \"title\" is a placeholder or a title generator thinking aloud"
            ))
            .suggest(said!(
                "退到下一级命名：平台短名、来信主题，或不写回",
                "use the next source of a name: the slug, the mail's subject, or none"
            )));
        }
        if title.len() > TITLE_LIMIT {
            return Err(Failure::bad_request(said!(
                "字段 \"title\" 过长（上限 {TITLE_LIMIT} 字节）",
                "field \"title\" is too long (at most {TITLE_LIMIT} bytes)"
            )));
        }
        tx.execute("UPDATE sessions SET subject = ?2 WHERE id = ?1", (id, title))?;
    }
    if let Some(wanted) = wanted {
        let alias = usable(wanted)?;
        let free = delivery::free_alias(tx, &alias, Some(id))?;
        tx.execute(
            "UPDATE sessions SET alias = ?2, alias_source = 'platform'
             WHERE id = ?1 AND alias_source <> 'manual'",
            (id, &free),
        )?;
    }
    named(tx, id)
}

/// Gives the session the name that the person chose; from now on it stays.
///
/// # Errors
///
/// 404 for a session they have no part in, 400 for an impossible alias, 409 for one that is taken.
pub(super) fn rename(
    tx: &mut Tx<'_>,
    person: &str,
    id: &str,
    wanted: &str,
) -> Result<Value, Failure> {
    discovery::require_part(tx, person, id)?;
    let alias = usable(wanted)?;
    if delivery::free_alias(tx, &alias, Some(id))? != alias {
        return Err(Failure::conflict(said!(
            "别名 {alias} 已属于另一个会话",
            "the alias {alias} belongs to another session"
        )));
    }
    tx.execute(
        "UPDATE sessions SET alias = ?2, alias_source = 'manual' WHERE id = ?1",
        (id, &alias),
    )?;
    tx.execute(
        "UPDATE mails SET rename_state = 'accepted'
         WHERE session_id = ?1 AND rename_state = 'proposed'",
        [id],
    )?;
    named(tx, id)
}

/// The newest proposal that nobody answered, or null.
///
/// # Errors
///
/// 404 for a session that `reader` has no part in.
pub(super) fn proposal(db: &Connection, reader: &str, id: &str) -> Result<Value, Failure> {
    discovery::require_part(db, reader, id)?;
    let found = db
        .query_row(
            "SELECT rename_alias, rename_reason, from_name, id FROM mails
             WHERE session_id = ?1 AND rename_state = 'proposed' ORDER BY number DESC LIMIT 1",
            [id],
            |row| {
                Ok(json!({
                    "alias": row.get::<_, String>(0)?, "reason": row.get::<_, String>(1)?,
                    "proposed_by": row.get::<_, String>(2)?, "mail_id": row.get::<_, String>(3)?,
                }))
            },
        )
        .optional()?;
    Ok(json!({ "session_id": id, "proposal": found }))
}

/// Rejects what is proposed; those names are not offered for this session again.
///
/// # Errors
///
/// 404 for a session they have no part in.
pub(super) fn reject(tx: &mut Tx<'_>, person: &str, id: &str) -> Result<Value, Failure> {
    discovery::require_part(tx, person, id)?;
    let rejected = tx.execute(
        "UPDATE mails SET rename_state = 'rejected'
         WHERE session_id = ?1 AND rename_state = 'proposed'",
        [id],
    )?;
    Ok(json!({ "status": "ok", "rejected": rejected }))
}

/// What a person changes about a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// 0 is unlimited.
    pub(super) max_rounds: Option<i64>,
    pub(super) used_rounds: Option<i64>,
    pub(super) permission_mode: Option<PermissionMode>,
}

/// Changes budget or mode of a session of the person's own.
///
/// # Errors
///
/// 404 for a session they do not own, 400 for a negative number.
pub(super) fn change(
    tx: &mut Tx<'_>,
    owner: &str,
    id: &str,
    change: Change,
) -> Result<Value, Failure> {
    require_owner(tx, owner, id)?;
    if change.max_rounds.into_iter().chain(change.used_rounds).any(|number| number < 0) {
        return Err(Failure::bad_request(said!("往返次数不能为负", "rounds cannot be negative")));
    }
    tx.execute(
        "UPDATE sessions SET max_rounds = coalesce(?2, max_rounds),
           used_rounds = coalesce(?3, used_rounds), permission_mode = coalesce(?4, permission_mode)
         WHERE id = ?1",
        (
            id,
            change.max_rounds,
            change.used_rounds,
            change.permission_mode.map(PermissionMode::as_str),
        ),
    )?;
    named(tx, id)
}

/// Ends a session: its alias leads nowhere, its waiting requests are withdrawn, and everybody in
/// it hears of it, so that what they keep for it can go.
///
/// # Errors
///
/// 404 for a session the person does not own; archiving twice is no error.
pub(super) fn archive(tx: &mut Tx<'_>, owner: &str, id: &str) -> Result<Value, Failure> {
    require_owner(tx, owner, id)?;
    let first = tx.execute(
        "UPDATE sessions SET archived_at = ?2 WHERE id = ?1 AND archived_at IS NULL",
        (id, tx.now()),
    )?;
    if first == 1 {
        permission::end_with_session(tx, id)?;
        grant::end_with_session(tx, id)?;
        tx.execute(
            "DELETE FROM relayed_mails WHERE mail_id IN (SELECT id FROM mails WHERE session_id = ?1)",
            [id],
        )?;
        let (alias, platform): (String, String) =
            tx.query_row("SELECT alias, platform_id FROM sessions WHERE id = ?1", [id], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
        let told = events::session_archived_json(id, &alias, &platform);
        for name in names(tx, id)? {
            tx.announce(&name, events::SESSION_ARCHIVED, told.clone())?;
        }
    }
    named(tx, id)
}

fn names(db: &Connection, id: &str) -> Result<Vec<String>, Failure> {
    let mut statement =
        db.prepare_cached("SELECT name FROM session_participants WHERE session_id = ?1")?;
    let rows = statement.query_map([id], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn named(db: &Connection, id: &str) -> Result<Value, Failure> {
    Ok(db.query_row(
        "SELECT alias, alias_source, subject, permission_mode, used_rounds, max_rounds,
                archived_at IS NOT NULL
         FROM sessions WHERE id = ?1",
        [id],
        |row| {
            Ok(json!({
                "session_id": id, "alias": row.get::<_, String>(0)?,
                "alias_source": row.get::<_, String>(1)?, "title": row.get::<_, String>(2)?,
                "permission_mode": row.get::<_, String>(3)?,
                "used_rounds": row.get::<_, i64>(4)?, "max_rounds": row.get::<_, i64>(5)?,
                "archived": row.get::<_, bool>(6)?,
            }))
        },
    )?)
}

fn usable(wanted: &str) -> Result<String, Failure> {
    alias::normalize(wanted).ok_or_else(|| {
        Failure::bad_request(said!(
            "字段 \"alias\" 不能作别名",
            "field \"alias\" cannot be an alias"
        ))
    })
}

fn require_owner(db: &Connection, owner: &str, id: &str) -> Result<(), Failure> {
    let owns: bool = db.query_row(
        "SELECT EXISTS (SELECT 1 FROM sessions WHERE id = ?1 AND owner = ?2)",
        (id, owner),
        |row| row.get(0),
    )?;
    if owns {
        return Ok(());
    }
    Err(Failure::not_found(said!(
        "没有这个会话，或它不属于 {owner}",
        "there is no such session, or it is not {owner}'s"
    )))
}
