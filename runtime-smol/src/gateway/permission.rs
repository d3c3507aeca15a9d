//! Permission requests: an agent asks, one person decides, at most once (`W-6`, `B-8`).
//!
//! ```text
//!            ┌─ decide (the addressee) ──▶ decided ── one decision mail, one event
//! pending ───┼─ withdraw (the asker) ────▶ withdrawn
//!            └─ expire ──────────────────▶ expired
//! ```
//!
//! - Who decides is found here and never told by the agent (`B-8.6`): the session's owner if that
//!   is a person, else the person who wrote last in the thread, else nobody (409). Without a
//!   session it is the person who owns the agent's key.
//! - A request is identified by (agent, `relay_key`): asking again answers with its state and
//!   changes nothing (`B-8.3`). The same key with another question is refused: what a person
//!   approved is what runs.
//! - Each transition is one `UPDATE … WHERE status = 'pending'`, the mirror of
//!   [`zcode_mail_core::lifecycle::step`]; who comes second learns who was first and when.

use rusqlite::{Connection, OptionalExtension as _, Row};
use zcode_mail_core::api::events::PermissionDecision;
use zcode_mail_core::api::permission::{Ask, Asked};
use zcode_mail_core::audit::Event;
use zcode_mail_core::lifecycle::{State, Verdict};
use zcode_mail_core::mode::PermissionMode;
use zcode_mail_core::time::UnixMillis;

use super::audit::{self, Entry};
use super::delivery::{self, NewMail};
use super::failure::{Failure, said};
use super::store::Tx;
use super::{event, secret, seen, stamp};

mod ask;

pub(super) use ask::{Asker, ask};

/// Longest note with a decision, in bytes.
pub(super) const NOTE_LIMIT: usize = 8 * 1024;
/// The type of the mail in which a person reads the question.
pub(super) const REQUEST_MAIL: &str = "permission_request";
/// The type of the mail that tells the agent the answer.
pub(super) const DECISION_MAIL: &str = "permission_decision";

/// A permission request as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) id: String,
    pub(super) agent_name: String,
    pub(super) relay_key: Option<String>,
    pub(super) session_id: Option<String>,
    /// The session's alias; empty without a session.
    pub(super) session_alias: String,
    pub(super) mail_id: String,
    pub(super) decider: String,
    pub(super) question: String,
    pub(super) options: Vec<String>,
    /// With its secrets masked.
    pub(super) context: String,
    /// As it was asked; `None` when nothing was masked or it has been erased.
    pub(super) original: Option<String>,
    /// The task that the agent works on, and who gave it (`B-8.4`).
    pub(super) task: String,
    pub(super) task_from: String,
    pub(super) state: State,
    pub(super) created_at: i64,
}

impl Request {
    /// What the asker is told.
    pub(super) fn asked(&self) -> Asked {
        Asked {
            request_id: Some(self.id.clone()),
            mail_id: Some(self.mail_id.clone()),
            relay_key: self.relay_key.clone(),
            state: self.state.asked(),
        }
    }

    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let at = UnixMillis(row.get::<_, Option<i64>>(17)?.unwrap_or_default());
        let state = match row.get_ref(12)?.as_str()? {
            "decided" => State::Decided(Verdict {
                decision: row.get(13)?,
                note: row.get::<_, Option<String>>(14)?.unwrap_or_default(),
                by: row.get(15)?,
                at,
            }),
            "withdrawn" => State::Withdrawn { at },
            "expired" => State::Expired { at },
            _ => State::Pending,
        };
        Ok(Self {
            id: row.get(0)?,
            agent_name: row.get(1)?,
            relay_key: row.get(2)?,
            session_id: row.get(3)?,
            session_alias: row.get::<_, Option<String>>(4)?.unwrap_or_default(),
            mail_id: row.get(5)?,
            decider: row.get(6)?,
            question: row.get(7)?,
            options: serde_json::from_str(row.get_ref(8)?.as_str()?).unwrap_or_default(),
            context: row.get(9)?,
            original: row.get(18)?,
            task: row.get(10)?,
            task_from: row.get(11)?,
            state,
            created_at: row.get(16)?,
        })
    }
}

const COLUMNS: &str = "r.id, r.agent_name, r.relay_key, r.session_id, s.alias, r.mail_id, \
    r.decider, r.question, r.options, r.context, r.task, r.task_from, r.status, r.decision, \
    r.note, r.decided_by, r.created_at, r.ended_at, r.original";
const TABLES: &str = "permission_requests r LEFT JOIN sessions s ON s.id = r.session_id";

/// Which requests a person wants to see.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    /// `pending`, `decided`, `withdrawn` or `expired`.
    pub(super) status: Option<String>,
    pub(super) session_id: Option<String>,
    pub(super) agent_name: Option<String>,
    /// Everything but pending ones.
    pub(super) ended: bool,
    pub(super) limit: u32,
}

/// The requests addressed to `decider`, newest first.
pub(super) fn list(
    db: &Connection,
    decider: &str,
    filter: &Filter,
) -> Result<Vec<Request>, Failure> {
    let mut statement = db.prepare(&format!(
        "SELECT {COLUMNS} FROM {TABLES} WHERE r.decider = ?1
           AND (?2 IS NULL OR r.status = ?2) AND (?3 IS NULL OR r.session_id = ?3)
           AND (?4 IS NULL OR r.agent_name = ?4) AND (NOT ?5 OR r.status <> 'pending')
         ORDER BY coalesce(r.ended_at, r.created_at) DESC, r.id LIMIT ?6"
    ))?;
    let rows = statement.query_map(
        (
            decider,
            &filter.status,
            &filter.session_id,
            &filter.agent_name,
            filter.ended,
            filter.limit,
        ),
        Request::from_row,
    )?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The request `id`, if it is addressed to the person `decider`. Somebody else's is not found.
pub(super) fn addressed_to(db: &Connection, decider: &str, id: &str) -> Result<Request, Failure> {
    one(db, "r.id = ?1 AND r.decider = ?2", (id, decider))?.ok_or_else(unknown)
}

/// The request `id`, if `agent` asked it. Somebody else's is not found.
pub(super) fn asked_by(db: &Connection, agent: &str, id: &str) -> Result<Request, Failure> {
    one(db, "r.id = ?1 AND r.agent_name = ?2", (id, agent))?.ok_or_else(unknown)
}

/// A decision as it came in.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    pub(super) decision: String,
    pub(super) note: String,
    /// Proof that the last page was shown, see [`seen`].
    pub(super) view_token: Option<String>,
    /// By which way: `page` or `api`.
    pub(super) how: &'static str,
}

/// Takes the decision of `decider` about the request `id`. Of two that come at once, one succeeds.
///
/// # Errors
///
/// 404 for a request that is not addressed to them, 400 for a decision that is not one of the
/// options, 428 when the last page of a long request was not shown,
/// 409 when the request has ended: with who decided and when, or that nothing was run.
pub(super) fn decide(
    tx: &mut Tx<'_>,
    decider: &str,
    id: &str,
    taken: &Taken,
) -> Result<Request, Failure> {
    let Taken { decision, note, view_token, how } = taken;
    let request = addressed_to(tx, decider, id)?;
    if request.state == State::Pending {
        seen::intact(tx, &request)?;
        seen::check(tx, decider, &request, view_token.as_deref())?;
    }
    seen::erase(tx)?;
    if note.len() > NOTE_LIMIT {
        return Err(Failure::bad_request(said!(
            "note 过长（上限 {NOTE_LIMIT} 字节）",
            "note is too long (at most {NOTE_LIMIT} bytes)"
        )));
    }
    // Exactly one of them, so that no free text ever decides.
    if !request.options.iter().any(|option| option == decision) {
        let options = request.options.join(" / ");
        return Err(Failure::bad_request(said!(
            "decision 须恰好是其中之一：{options}",
            "decision must be exactly one of: {options}"
        )));
    }
    settle(tx, &request, decision, note, how)
}

/// The requests of `agent` in a session that wait for `decider`, oldest first.
pub(super) fn waiting(
    db: &Connection,
    session: &str,
    agent: &str,
    decider: &str,
) -> Result<Vec<Request>, Failure> {
    let mut statement = db.prepare(&format!(
        "SELECT {COLUMNS} FROM {TABLES} WHERE r.session_id = ?1 AND r.agent_name = ?2
           AND r.decider = ?3 AND r.status = 'pending' ORDER BY r.created_at, r.id"
    ))?;
    let rows = statement.query_map((session, agent, decider), Request::from_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Makes a decision of the request's decider stand: the row, the mail, the record, the event.
pub(super) fn settle(
    tx: &mut Tx<'_>,
    request: &Request,
    decision: &str,
    note: &str,
    how: &str,
) -> Result<Request, Failure> {
    let (id, decider) = (request.id.as_str(), request.decider.as_str());
    let changed = tx.execute(
        "UPDATE permission_requests
         SET status = 'decided', decision = ?3, note = ?4, decided_by = ?2, ended_at = ?5
         WHERE id = ?1 AND decider = ?2 AND status = 'pending'",
        (id, decider, decision, note, tx.now()),
    )?;
    if changed != 1 {
        return Err(too_late(&request.state));
    }
    let decision_mail = delivery::insert(
        tx,
        &NewMail {
            session_id: request.session_id.as_deref(),
            parent_id: Some(&request.mail_id),
            from_name: decider,
            to_name: &request.agent_name,
            to_workspace: "",
            subject: &format!("{decision}：{}", request.question),
            body: note,
            mail_type: DECISION_MAIL,
            // The event tells the agent; the mail keeps the record and is not news.
            read: true,
        },
    )?;
    tx.execute(
        "UPDATE permission_requests SET decision_mail_id = ?2 WHERE id = ?1",
        (id, &decision_mail),
    )?;
    delivery::mark_read(tx, decider, std::slice::from_ref(&request.mail_id))?;
    let digest = audit::digest_in(&request.context);
    audit::append(
        tx,
        &Entry { event: Event::Decide, who: decider, how, subject: id, digest, detail: decision },
    )?;
    let told = PermissionDecision {
        mail_id: Some(request.mail_id.clone()),
        decision_mail_id: Some(decision_mail),
        session_id: request.session_id.clone(),
        relay_key: request.relay_key.clone(),
        relay_kind: Some("permission".to_owned()),
        decided_by: Some(decider.to_owned()),
        note: Some(note.to_owned()),
        decision: Some(decision.to_owned()),
        digest: digest.map(|digest| digest.hex()),
    };
    tx.announce(&request.agent_name, event::PERMISSION_DECISION, told.to_json())?;
    changed_state(tx, id)
}

/// Takes the question back for `agent`. A request that has ended keeps its state, which is
/// returned: a person may have decided first.
///
/// # Errors
///
/// 404 for a request of another agent.
pub(super) fn withdraw(tx: &mut Tx<'_>, agent: &str, id: &str) -> Result<Request, Failure> {
    let request = asked_by(tx, agent, id)?;
    let changed = tx.execute(
        "UPDATE permission_requests SET status = 'withdrawn', ended_at = ?2
         WHERE id = ?1 AND status = 'pending'",
        (id, tx.now()),
    )?;
    if changed != 1 {
        return Ok(request);
    }
    audit::append(
        tx,
        &Entry {
            event: Event::Withdraw,
            who: agent,
            how: "api",
            subject: id,
            digest: audit::digest_in(&request.context),
            detail: "",
        },
    )?;
    changed_state(tx, id)
}

/// Withdraws what waits in a session that ends.
pub(super) fn end_with_session(tx: &mut Tx<'_>, session: &str) -> Result<(), Failure> {
    let mut statement = tx.prepare(
        "UPDATE permission_requests SET status = 'withdrawn', ended_at = ?2
         WHERE session_id = ?1 AND status = 'pending' RETURNING id",
    )?;
    let ended = statement
        .query_map((session, tx.now()), |row| row.get(0))?
        .collect::<Result<Vec<String>, _>>()?;
    drop(statement);
    for id in ended {
        changed_state(tx, &id)?;
    }
    Ok(())
}

/// The request after a change, announced to the person it is addressed to.
fn changed_state(tx: &mut Tx<'_>, id: &str) -> Result<Request, Failure> {
    let request = one(tx, "r.id = ?1", [id])?.ok_or_else(unknown)?;
    announce(tx, &request)?;
    Ok(request)
}

fn announce(tx: &mut Tx<'_>, request: &Request) -> Result<(), Failure> {
    let data = serde_json::json!({
        "request_id": request.id,
        "session_id": request.session_id.as_deref().unwrap_or_default(),
        "agent_name": request.agent_name,
        "status": request.state.name(),
    });
    tx.announce(&request.decider, event::PERMISSION_REQUEST, data.to_string())?;
    Ok(())
}

fn one(
    db: &Connection,
    condition: &str,
    params: impl rusqlite::Params,
) -> Result<Option<Request>, Failure> {
    Ok(db
        .query_row(
            &format!("SELECT {COLUMNS} FROM {TABLES} WHERE {condition}"),
            params,
            Request::from_row,
        )
        .optional()?)
}

fn unknown() -> Failure {
    Failure::not_found(said!("没有这个授权请求", "there is no such permission request"))
}

/// Why a decision comes too late.
pub(super) fn too_late(state: &State) -> Failure {
    match state {
        State::Decided(Verdict { decision, by, at, .. }) => {
            let at = stamp::rfc3339(at.0);
            Failure::conflict(said!(
                "已由 {by} 于 {at} 决定：{decision}",
                "already decided by {by} at {at}: {decision}"
            ))
        }
        State::Withdrawn { at } | State::Expired { at } => {
            let at = stamp::rfc3339(at.0);
            Failure::conflict(said!(
                "太晚了，什么都没有执行：请求已于 {at} 撤回或过期",
                "too late, nothing was run: the request was withdrawn or ran out at {at}"
            ))
        }
        // The conditional update found it pending, so this is never asked about.
        State::Pending => Failure::internal("a pending request refused a decision"),
    }
}
