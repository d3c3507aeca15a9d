//! What keeps agents from mailing without end: round budgets, the rate of new sessions, the length
//! of chains without a person, and the unique keys of what bridges forward.

use http::StatusCode;
use rusqlite::{Connection, OptionalExtension as _};
use zcode_mail_core::api::send::{Relay, RelayKind, Sent};

use super::super::failure::{Failure, said};
use super::super::reading::Seen;
use super::super::store::Tx;
use super::{Kind, Recipient, Sender, Session};

/// New sessions that one agent may open in [`RATE_WINDOW`] (`W-9`).
const NEW_SESSIONS: u32 = 20;
/// The window of that rate, milliseconds.
const RATE_WINDOW: i64 = 3600 * 1000;
/// Mails between agents in a row without a person: the sixth still goes out (`B-5.6` saw six
/// rounds of courtesies before the original's limit).
pub(super) const HOP_LIMIT: u32 = 6;

/// Relay keys that are kept per agent: far more than a bridge can still repeat.
const RELAY_KEYS: u32 = 10_000;
/// The bound is kept once in so many keys.
const RELAY_PRUNE_EVERY: u32 = 100;

/// What is left of a session's rounds; `max` 0 is unlimited.
pub(super) struct Budget {
    pub(super) remaining: i64,
    pub(super) max: i64,
}

/// The answer for a relay key that was accepted before (`W-5.2`).
pub(super) fn relayed(db: &Connection, agent: &str, key: &str) -> Result<Option<Sent>, Failure> {
    Ok(db
        .query_row(
            "SELECT m.id, m.session_id, s.alias, s.max_rounds - s.used_rounds, s.max_rounds
             FROM relayed_mails r JOIN mails m ON m.id = r.mail_id
             LEFT JOIN sessions s ON s.id = m.session_id
             WHERE r.agent_name = ?1 AND r.relay_key = ?2",
            (agent, key),
            |row| {
                Ok(Sent {
                    mail_id: row.get(0)?,
                    session_id: row.get(1)?,
                    session_alias: row.get(2)?,
                    budget_remaining: row.get(3)?,
                    budget_max: row.get(4)?,
                    rename_proposed: None,
                    duplicate: true,
                })
            },
        )
        .optional()?)
}

/// Keeps a relay key, so that its repeat sends nothing.
pub(super) fn remember_relay(
    tx: &mut Tx<'_>,
    agent: &str,
    relay: &Relay,
    mail_id: &str,
) -> Result<(), Failure> {
    let kind = match relay.kind {
        RelayKind::Permission => "permission",
        RelayKind::Summary => "summary",
    };
    tx.execute(
        "INSERT INTO relayed_mails (agent_name, relay_key, relay_kind, mail_id, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5)",
        (agent, &relay.key, kind, mail_id, tx.now()),
    )?;
    let kept: u32 =
        tx.query_row("SELECT count(*) FROM relayed_mails WHERE agent_name = ?1", [agent], |row| {
            row.get(0)
        })?;
    if kept >= RELAY_KEYS + RELAY_PRUNE_EVERY {
        tx.execute(
            "DELETE FROM relayed_mails WHERE agent_name = ?1 AND relay_key IN
               (SELECT relay_key FROM relayed_mails WHERE agent_name = ?1
                ORDER BY created_at LIMIT ?2)",
            (agent, RELAY_PRUNE_EVERY),
        )?;
    }
    Ok(())
}

/// Uses up one round of the session if `charged`; what bridges forward is free (`I-2`).
///
/// # Errors
///
/// 403 when no round is left.
pub(super) fn charge(tx: &mut Tx<'_>, session: &Session, charged: bool) -> Result<Budget, Failure> {
    let (used, max) = (session.used_rounds, session.max_rounds);
    let left = |used: i64| Budget { remaining: if max == 0 { 0 } else { max - used }, max };
    if !charged {
        return Ok(left(used));
    }
    if max > 0 && used >= max {
        let alias = &session.alias;
        return Err(Failure::new(
            StatusCode::FORBIDDEN,
            said!(
                "会话 {alias} 的往返预算已用尽（{used}/{max}）",
                "the round budget of session {alias} is used up ({used}/{max})"
            ),
        )
        .suggest(said!(
            "停止发信；请人在会话页面提高上限或把已用次数归零",
            "stop sending; a person can raise the limit or reset the count on the session's page"
        )));
    }
    tx.execute("UPDATE sessions SET used_rounds = used_rounds + 1 WHERE id = ?1", [&session.id])?;
    Ok(left(used + 1))
}

/// Lets an agent open a session if it did not open too many in the last hour; people are exempt.
///
/// # Errors
///
/// 429 with the seconds after which the oldest of them no longer counts.
pub(super) fn check_new_session(tx: &Tx<'_>, sender: &Sender) -> Result<(), Failure> {
    if sender.kind == Kind::User {
        return Ok(());
    }
    let since = tx.now() - RATE_WINDOW;
    let (count, oldest): (u32, Option<i64>) = tx.query_row(
        "SELECT count(*), min(created_at) FROM sessions
         WHERE created_by = ?1 AND created_at > ?2",
        (&sender.name, since),
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    if count < NEW_SESSIONS {
        return Ok(());
    }
    let wait = oldest.map_or(RATE_WINDOW, |oldest| oldest - since).max(0);
    let seconds = wait.unsigned_abs().div_ceil(1000).max(1);
    Err(Failure::new(
        StatusCode::TOO_MANY_REQUESTS,
        said!(
            "新建会话过多（1 小时 {NEW_SESSIONS} 条），{seconds} 秒后再试",
            "too many new sessions ({NEW_SESSIONS} an hour); try again in {seconds} s"
        ),
    )
    .suggest(said!(
        "在已有的会话里继续，不要用 .new",
        "continue in an existing session and do not use .new"
    ))
    .retry_after(seconds))
}

/// How many mails between agents came in a row with this one; 0 as soon as a person takes part.
///
/// # Errors
///
/// 409 above [`HOP_LIMIT`].
pub(super) fn hops(
    db: &Connection,
    sender: &Sender,
    recipients: &[Recipient],
    parent: Option<&Seen>,
    session: Option<&Session>,
) -> Result<u32, Failure> {
    let people = sender.kind == Kind::User
        || recipients.iter().any(|recipient| recipient.kind == Kind::User);
    if people {
        return Ok(0);
    }
    let before = match (parent, session) {
        (Some(parent), _) => parent.hops,
        (None, Some(session)) => db
            .query_row(
                "SELECT hops FROM mails WHERE session_id = ?1 AND mail_type = 'normal'
                 ORDER BY number DESC LIMIT 1",
                [&session.id],
                |row| row.get(0),
            )
            .optional()?
            .unwrap_or(0),
        (None, None) => 0,
    };
    if before < HOP_LIMIT {
        return Ok(before + 1);
    }
    Err(Failure::conflict(said!(
        "Agent 之间已连续往来 {HOP_LIMIT} 封而没有人类参与",
        "agents have exchanged {HOP_LIMIT} mails in a row without a person"
    ))
    .suggest(said!(
        "停止互发；把结果发给派活的人",
        "stop writing to each other; report to the person who gave the task"
    )))
}
