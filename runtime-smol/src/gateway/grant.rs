//! Approvals with an end: until a time, a number of times, a beginning of a command.
//!
//! They are kept here and nowhere else: the hook asks, and the gateway answers at once by the grant,
//! whose id stands in the note and in the audit record. So an agent that writes its own files gains
//! nothing, and a grant that was revoked a moment ago counts no more. 一直同意 is another thing: it
//! is the contract's own (session, tool) approval, which the hook keeps.
//!
//! - A grant belongs to one session and agent and was given by the person who decides there.
//! - What it reaches is [`zcode_mail_core::scope`]'s to say, by what the person was shown.
//! - Of the grants that reach a call, one that denies wins.
//! - Requests that wait when a grant is given, and that it reaches, are answered by it.
//! - It ends by time, by count, by its giver or an operator, and with its session.

use rusqlite::{Connection, OptionalExtension as _, Row};
use zcode_mail_core::audit::Event;
use zcode_mail_core::decision::{ONCE, REJECT};
use zcode_mail_core::scope::{Scope, Shape, TooWide};

use super::audit::{self, Entry};
use super::failure::{Failure, said};
use super::permission::{self, Request, Taken};
use super::store::Tx;
use super::{secret, seen};

/// Longest time that a grant can be given for, in minutes: a week.
pub(super) const MAX_MINUTES: i64 = 7 * 24 * 60;
/// Most uses that a grant can be given for.
pub(super) const MAX_USES: i64 = 1_000;
/// Grants in force for one session; a person cannot keep more in mind.
const LIMIT: i64 = 100;

/// What a person wants to give.
#[derive(Clone, Debug, Default)]
pub(super) struct Wish {
    pub(super) minutes: Option<i64>,
    pub(super) uses: Option<i64>,
    /// Words that stand at the beginning of the shown command.
    pub(super) prefix: Option<Vec<String>>,
    pub(super) denies: bool,
}

/// A grant as stored.
#[derive(Clone, Debug)]
pub struct Grant {
    /// Its id.
    pub id: String,
    /// Who gave it.
    pub giver: String,
    /// For which agent.
    pub agent: String,
    /// In which session.
    pub session: String,
    /// The tool.
    pub tool: String,
    /// With which words a command must begin.
    pub prefix: Option<Vec<String>>,
    /// Whether it refuses.
    pub denies: bool,
    /// Until when, Unix milliseconds.
    pub until: Option<i64>,
    /// How many uses are left.
    pub uses_left: Option<i64>,
    /// How often it has decided.
    pub used: i64,
    /// When it was given.
    pub created_at: i64,
    /// When it ended.
    pub ended_at: Option<i64>,
    /// Why it ended.
    pub ended_why: String,
    scope: Option<Scope>,
}

impl Grant {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let prefix: Option<String> = row.get(6)?;
        // A list that cannot be read reaches nothing, rather than everything.
        let prefix = prefix.map(|text| serde_json::from_str(&text).unwrap_or_default());
        let shape = Shape::read(&row.get::<_, String>(5)?);
        let scope = shape.as_ref().and_then(|shape| Scope::of(shape, prefix.as_deref()).ok());
        Ok(Self {
            id: row.get(0)?,
            giver: row.get(1)?,
            agent: row.get(2)?,
            session: row.get(3)?,
            tool: shape.map_or_else(String::new, |shape| shape.tool().to_owned()),
            prefix,
            denies: row.get(7)?,
            until: row.get(8)?,
            uses_left: row.get(9)?,
            used: row.get(10)?,
            created_at: row.get(11)?,
            ended_at: row.get(12)?,
            ended_why: row.get(13)?,
            scope,
        })
    }
}

const COLUMNS: &str = "id, giver, agent_name, session_id, request_id, shown, prefix, denies, until, \
    uses_left, used, created_at, ended_at, ended_why";

/// Gives a grant out of the request `id`, decides that request by it, and every waiting one that it
/// reaches.
///
/// # Errors
///
/// As [`permission::decide`]; 400 for a wish without an end, beyond its limits, or of words that
/// would reach further than the command that was shown.
pub(super) fn give(
    tx: &mut Tx<'_>,
    giver: &str,
    id: &str,
    wish: &Wish,
    view_token: Option<String>,
    how: &'static str,
) -> Result<Request, Failure> {
    let request = permission::addressed_to(tx, giver, id)?;
    // A text with secrets in it is not kept for as long as a grant may last: masked, it is no
    // rendering.
    let text = request.context.clone();
    let (Some(session), Some(shape)) = (request.session_id.clone(), Shape::read(&text)) else {
        return Err(Failure::bad_request(said!(
            "这个请求不能给持续授权：没有会话，含有密钥，或内容与其校验码不符",
            "no lasting approval can come of this request: it has no session, holds a secret, or its text is not what its digest names"
        )));
    };
    check(tx, &session, &shape, wish)?;
    let decision = if wish.denies { REJECT } else { ONCE };
    let taken = Taken { decision: decision.to_owned(), note: String::new(), view_token, how };
    let decided = permission::decide(tx, giver, id, &taken)?;
    let grant = secret::id()?;
    let prefix = wish.prefix.as_ref().map(|words| serde_json::json!(words).to_string());
    tx.execute(
        "INSERT INTO grants (id, giver, agent_name, session_id, request_id, shown, prefix, denies,
           until, uses_left, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        rusqlite::params![
            grant,
            giver,
            request.agent_name,
            session,
            id,
            text,
            prefix,
            wish.denies,
            wish.minutes.map(|minutes| tx.now() + minutes * 60_000),
            wish.uses,
            tx.now(),
        ],
    )?;
    let digest = audit::digest_in(&request.context);
    audit::append(
        tx,
        &Entry {
            event: Event::Grant,
            who: giver,
            how,
            subject: &grant,
            digest,
            detail: &format!("request {id}"),
        },
    )?;
    let waiting = permission::waiting(tx, &session, &request.agent_name, giver)?;
    for waiting in waiting {
        answer(tx, &waiting)?;
    }
    Ok(decided)
}

/// The words of a request's command, if a beginning of it can be approved.
pub(super) fn words(request: &Request) -> Option<Vec<String>> {
    Some(Shape::read(&request.context)?.words()?.to_vec())
}

fn check(db: &Connection, session: &str, shape: &Shape, wish: &Wish) -> Result<(), Failure> {
    let fits =
        |value: Option<i64>, most: i64| value.is_none_or(|value| (1..=most).contains(&value));
    if !fits(wish.minutes, MAX_MINUTES) || !fits(wish.uses, MAX_USES) {
        return Err(Failure::bad_request(said!(
            "minutes 须为 1 到 {MAX_MINUTES}，uses 须为 1 到 {MAX_USES}",
            "minutes must be 1 to {MAX_MINUTES}, uses 1 to {MAX_USES}"
        )));
    }
    if wish.minutes.is_none() && wish.uses.is_none() && wish.prefix.is_none() {
        return Err(Failure::bad_request(said!(
            "持续授权须有时限、次数或命令前缀",
            "a lasting approval needs a time, a number of uses, or a beginning of the command"
        )));
    }
    match Scope::of(shape, wish.prefix.as_deref()) {
        Ok(_) => {}
        Err(TooWide::NotSimple | TooWide::NotThere) => {
            return Err(Failure::bad_request(said!(
                "前缀须是这条命令开头的完整单词，而且命令须是一条简单命令",
                "the prefix must be whole words at the beginning of one simple command"
            )));
        }
        Err(TooWide::Runner) => {
            return Err(Failure::bad_request(said!(
                "这个前缀会运行别的程序，等于什么都允许",
                "what begins with this prefix runs other programs: it would allow everything"
            )));
        }
    }
    let count: i64 = db.query_row(
        "SELECT count(*) FROM grants WHERE session_id = ?1 AND ended_at IS NULL",
        [session],
        |row| row.get(0),
    )?;
    if count >= LIMIT {
        return Err(Failure::conflict(said!(
            "这个会话已有 {LIMIT} 条持续授权",
            "this session has {LIMIT} lasting approvals already"
        )));
    }
    Ok(())
}

/// Decides a waiting request by the grants in force; the request as it is then.
pub(super) fn answer(tx: &mut Tx<'_>, request: &Request) -> Result<Option<Request>, Failure> {
    let Some(session) = request.session_id.as_deref() else { return Ok(None) };
    let now = tx.now();
    let over = "UPDATE grants SET ended_at = ?1, ended_why = 'time' WHERE ended_at IS NULL AND until <= ?1";
    tx.execute(over, [now])?;
    let grants: Vec<Grant> = {
        let mut statement = tx.prepare(&format!(
            "SELECT {COLUMNS} FROM grants WHERE session_id = ?1 AND agent_name = ?2 AND giver = ?3
               AND ended_at IS NULL ORDER BY denies DESC, created_at, id"
        ))?;
        let rows = statement
            .query_map((session, &request.agent_name, &request.decider), Grant::from_row)?;
        rows.collect::<Result<_, _>>()?
    };
    if grants.is_empty() {
        return Ok(None);
    }
    let Some(shape) = Shape::read(request.original.as_ref().unwrap_or(&request.context)) else {
        return Ok(None);
    };
    let reaches = |grant: &&Grant| grant.scope.as_ref().is_some_and(|scope| scope.covers(&shape));
    let Some(grant) = grants.iter().find(reaches) else { return Ok(None) };
    seen::intact(tx, request)?;
    let decision = if grant.denies { REJECT } else { ONCE };
    if !request.options.iter().any(|option| option == decision) {
        return Ok(None);
    }
    tx.execute(
        "UPDATE grants SET used = used + 1, uses_left = uses_left - 1,
           ended_at = CASE WHEN uses_left = 1 THEN ?2 END,
           ended_why = CASE WHEN uses_left = 1 THEN 'used up' ELSE '' END
         WHERE id = ?1",
        (&grant.id, now),
    )?;
    let note = format!("grant {}", grant.id);
    let decided = permission::settle(tx, request, decision, &note, &note)?;
    Ok(Some(decided))
}

/// All grants, those in force first.
///
/// # Errors
///
/// What SQLite reports.
pub fn list(db: &Connection) -> Result<Vec<Grant>, Failure> {
    let mut statement = db.prepare(&format!(
        "SELECT {COLUMNS} FROM grants ORDER BY ended_at IS NOT NULL, created_at DESC, id"
    ))?;
    let rows = statement.query_map([], Grant::from_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// One grant, with the text that it was given under, and the requests that it has decided.
///
/// # Errors
///
/// 404 for an unknown id.
pub fn explain(db: &Connection, id: &str) -> Result<(Grant, String, Vec<String>), Failure> {
    let found = db
        .query_row(&format!("SELECT {COLUMNS} FROM grants WHERE id = ?1"), [id], |row| {
            Ok((Grant::from_row(row)?, row.get(5)?))
        })
        .optional()?;
    let (grant, shown) = found.ok_or_else(|| unknown(id))?;
    let mut statement = db
        .prepare("SELECT subject FROM audit WHERE event = 'decide' AND how = ?1 ORDER BY number")?;
    let rows = statement.query_map([format!("grant {id}")], |row| row.get(0))?;
    Ok((grant, shown, rows.collect::<Result<_, _>>()?))
}

/// Ends a grant; one that has ended stays as it is.
///
/// # Errors
///
/// 404 for an unknown id.
pub fn revoke(tx: &mut Tx<'_>, id: &str) -> Result<(), Failure> {
    let known: bool =
        tx.query_row("SELECT EXISTS (SELECT 1 FROM grants WHERE id = ?1)", [id], |row| row.get(0))?;
    if !known {
        return Err(unknown(id));
    }
    end(tx, "id = ?2", id, "revoked", "cli")
}

/// Ends every grant of a session that is archived.
pub(super) fn end_with_session(tx: &mut Tx<'_>, session: &str) -> Result<(), Failure> {
    end(tx, "session_id = ?2", session, "session archived", "gateway")
}

fn end(tx: &mut Tx<'_>, which: &str, value: &str, why: &str, how: &str) -> Result<(), Failure> {
    let ids: Vec<String> = {
        let mut statement = tx.prepare(&format!(
            "UPDATE grants SET ended_at = ?1, ended_why = ?3 WHERE {which} AND ended_at IS NULL
             RETURNING id"
        ))?;
        let rows = statement.query_map((tx.now(), value, why), |row| row.get(0))?;
        rows.collect::<Result<_, _>>()?
    };
    for subject in &ids {
        let (event, who, digest) = (Event::Revoke, "", None);
        audit::append(tx, &Entry { event, who, how, subject, digest, detail: why })?;
    }
    Ok(())
}

fn unknown(id: &str) -> Failure {
    Failure::not_found(said!("没有这条持续授权：{id}", "no lasting approval has the id {id}"))
        .suggest(said!("用 zcode-mail grants list 查看", "zcode-mail grants list shows them"))
}
