//! People, agents' names and the keys of both (seed 002, "two kinds of keys").
//!
//! One namespace: a name belongs to a person or to an agent, never to both (`W-2`). Keys, cookies
//! and login codes exist here only as SHA-256; each of these functions that makes one returns the
//! text once.
//!
//! Lifetimes of a key: `permanent`; `timed`, until its moment; `one_time`, which the first request
//! that shows it uses up, whatever the request is. A one-time key therefore suits one mail or one
//! look at an inbox; an agent that registers, streams and asks needs one of the other two.

use rusqlite::{Connection, OptionalExtension as _};
use zcode_mail_core::audit::Event;

use super::audit::{self, Entry};
use super::failure::{Failure, said};
use super::secret::{self, TokenHash};
use super::store::Tx;

mod login;

pub use login::{CODE_LIFETIME, COOKIE_LIFETIME, issue_code, password_hash};
pub(super) use login::{
    code_owner, cookie_owner, end_cookie, redeem_code, start_cookie, stored_password,
};

/// Longest name in bytes.
pub const NAME_LIMIT: usize = 64;

/// Who a key, cookie or secret belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A person.
    User,
    /// An agent.
    Agent,
}

impl Kind {
    /// The kind's name in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Agent => "agent",
        }
    }

    pub(super) fn from_db(text: &str) -> Self {
        if text == "user" { Self::User } else { Self::Agent }
    }
}

/// How long a key is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// Until it is revoked.
    Permanent,
    /// For one request.
    OneTime,
    /// Until a moment in Unix milliseconds.
    Until(i64),
}

/// A key as the operator sees it, without the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    /// The id by which it is revoked.
    pub id: String,
    /// Agent or user key.
    pub kind: Kind,
    /// The agent or person it speaks for.
    pub subject: String,
    /// The person who answers for it and is asked when no session says otherwise.
    pub owner: String,
    /// `permanent`, `one_time` or `timed`.
    pub lifetime: String,
    /// When it was made, Unix milliseconds.
    pub created_at: i64,
    /// When it was revoked.
    pub revoked_at: Option<i64>,
}

/// A key that was just shown and is good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ValidKey {
    pub(super) id: String,
    pub(super) kind: Kind,
    pub(super) subject: String,
    pub(super) owner: String,
    pub(super) one_time: bool,
}

/// What a name belongs to, if anything.
pub(super) fn kind_of(db: &Connection, name: &str) -> Result<Option<Kind>, Failure> {
    Ok(db
        .query_row("SELECT kind FROM names WHERE name = ?1", [name], |row| {
            row.get_ref(0).map(|kind| Kind::from_db(kind.as_str().unwrap_or_default()))
        })
        .optional()?)
}

/// Whether a person of this name exists: the test behind `from_human` (`B-5.6`).
pub(super) fn is_user(db: &Connection, name: &str) -> Result<bool, Failure> {
    Ok(kind_of(db, name)? == Some(Kind::User))
}

/// Makes a person. `password_hash` is from [`password_hash`]; without one only a login link works.
///
/// # Errors
///
/// 400 for an impossible name, 409 when the name is taken.
pub fn add_user(
    tx: &mut Tx<'_>,
    name: &str,
    password_hash: Option<&str>,
    admin: bool,
) -> Result<(), Failure> {
    claim(tx, name, Kind::User)?;
    tx.execute(
        "INSERT INTO users (name, password_hash, is_admin, created_at) VALUES (?1, ?2, ?3, ?4)",
        (name, password_hash, admin, tx.now()),
    )?;
    Ok(())
}

/// How many people there are.
///
/// # Errors
///
/// What the database reports.
pub fn user_count(db: &Connection) -> Result<u64, Failure> {
    Ok(db.query_row("SELECT count(*) FROM users", [], |row| row.get(0))?)
}

/// Makes a key for an agent, and the agent itself when its name is new. `token` is a key that the
/// agent made (`key_token`); without it a new key is made. Returns the key's id and text.
///
/// # Errors
///
/// 404 for an unknown owner, 409 when the name is a person's or the key is registered already, 400
/// for an impossible name or a key that is too short to be random.
pub fn create_agent_key(
    tx: &mut Tx<'_>,
    agent: &str,
    owner: &str,
    token: Option<&str>,
    lifetime: Lifetime,
) -> Result<(String, String), Failure> {
    require_user(tx, owner)?;
    ensure_agent(tx, agent)?;
    let token = match token {
        Some(token) => checked_token(token)?.to_owned(),
        None => secret::token("amk_")?,
    };
    insert_key(tx, Kind::Agent, agent, owner, token, lifetime)
}

/// Makes a key with which programs reach the mailbox of the person `name`. Returns id and text.
///
/// # Errors
///
/// 404 for an unknown person.
pub fn create_user_key(
    tx: &mut Tx<'_>,
    name: &str,
    lifetime: Lifetime,
) -> Result<(String, String), Failure> {
    require_user(tx, name)?;
    insert_key(tx, Kind::User, name, name, secret::token("umk_")?, lifetime)
}

/// All keys of one kind, newest first.
///
/// # Errors
///
/// What the database reports.
pub fn list_keys(db: &Connection, kind: Kind) -> Result<Vec<KeyRow>, Failure> {
    let mut statement = db.prepare(
        "SELECT id, subject, owner, lifetime, created_at, revoked_at FROM keys
         WHERE kind = ?1 ORDER BY created_at DESC, id",
    )?;
    let rows = statement.query_map([kind.as_str()], |row| {
        Ok(KeyRow {
            id: row.get(0)?,
            kind,
            subject: row.get(1)?,
            owner: row.get(2)?,
            lifetime: row.get(3)?,
            created_at: row.get(4)?,
            revoked_at: row.get(5)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Revokes a key by its id. Streams that it opened end at their next event or keep-alive.
///
/// # Errors
///
/// 404 for an unknown id; revoking twice is no error.
pub fn revoke_key(tx: &mut Tx<'_>, id: &str) -> Result<(), Failure> {
    let found = tx.execute(
        "UPDATE keys SET revoked_at = coalesce(revoked_at, ?2) WHERE id = ?1",
        (id, tx.now()),
    )?;
    if found == 0 {
        return Err(Failure::not_found(said!("没有这把密钥：{id}", "no key has the id {id}"))
            .suggest(said!(
                "用 zcode-mail agent-key list 查看 id",
                "zcode-mail agent-key list shows the ids"
            )));
    }
    key_record(tx, "", id, "revoked")
}

fn key_record(tx: &Tx<'_>, owner: &str, id: &str, detail: &str) -> Result<(), Failure> {
    let entry =
        Entry { event: Event::Key, who: owner, how: "cli", subject: id, digest: None, detail };
    audit::append(tx, &entry)
}

/// Makes sure that the agent `name` exists.
///
/// # Errors
///
/// 409 when the name is a person's, 400 for an impossible name.
pub(super) fn ensure_agent(tx: &mut Tx<'_>, name: &str) -> Result<(), Failure> {
    if kind_of(tx, name)? == Some(Kind::Agent) {
        return Ok(());
    }
    claim(tx, name, Kind::Agent)?;
    tx.execute("INSERT INTO agents (name, created_at) VALUES (?1, ?2)", (name, tx.now()))?;
    Ok(())
}

/// The key that `token` is, if it is good at `now`.
pub(super) fn find_key(
    db: &Connection,
    token: &str,
    now: i64,
) -> Result<Option<ValidKey>, Failure> {
    let hash = TokenHash::of(token);
    let mut statement = db.prepare(
        "SELECT id, kind, subject, owner, lifetime, hash FROM keys
         WHERE lookup = ?1 AND revoked_at IS NULL
           AND (lifetime <> 'one_time' OR used_at IS NULL)
           AND (lifetime <> 'timed' OR expires_at > ?2)",
    )?;
    let mut rows = statement.query((hash.lookup(), now))?;
    while let Some(row) = rows.next()? {
        if hash.matches(row.get_ref(5)?.as_blob().unwrap_or_default()) {
            return Ok(Some(ValidKey {
                id: row.get(0)?,
                kind: Kind::from_db(&row.get::<_, String>(1)?),
                subject: row.get(2)?,
                owner: row.get(3)?,
                one_time: row.get::<_, String>(4)? == "one_time",
            }));
        }
    }
    Ok(None)
}

/// Uses a one-time key up; `false` when another request did so first.
pub(super) fn consume_key(tx: &mut Tx<'_>, id: &str) -> Result<bool, Failure> {
    let changed = tx.execute(
        "UPDATE keys SET used_at = ?2 WHERE id = ?1 AND used_at IS NULL",
        (id, tx.now()),
    )?;
    Ok(changed == 1)
}

/// Whether the key is still good: not revoked and, if timed, not over.
pub(super) fn key_stands(db: &Connection, id: &str, now: i64) -> Result<bool, Failure> {
    Ok(db.query_row(
        "SELECT EXISTS (SELECT 1 FROM keys WHERE id = ?1 AND revoked_at IS NULL
           AND (lifetime <> 'timed' OR expires_at > ?2))",
        (id, now),
        |row| row.get(0),
    )?)
}

/// Refuses who is no administrator.
///
/// # Errors
///
/// 403.
pub(super) fn require_admin(db: &Connection, name: &str) -> Result<(), Failure> {
    let admin: Option<bool> = db
        .query_row("SELECT is_admin FROM users WHERE name = ?1", [name], |row| row.get(0))
        .optional()?;
    if admin == Some(true) { Ok(()) } else { Err(super::human::session::not_admin()) }
}

/// Sets which models an agent may use, best first; `None` lets it use any.
///
/// # Errors
///
/// 404 for an unknown agent.
pub(super) fn set_models(
    tx: &mut Tx<'_>,
    agent: &str,
    models: Option<&[(String, String)]>,
) -> Result<(), Failure> {
    if kind_of(tx, agent)? != Some(Kind::Agent) {
        return Err(Failure::not_found(said!("没有 Agent {agent}", "there is no agent {agent}")));
    }
    tx.execute("DELETE FROM agent_allowed_models WHERE agent_name = ?1", [agent])?;
    for (position, (provider, model)) in models.unwrap_or_default().iter().enumerate() {
        tx.execute(
            "INSERT INTO agent_allowed_models (agent_name, position, provider, model)
             VALUES (?1, ?2, ?3, ?4)",
            (agent, position, provider, model),
        )?;
    }
    tx.execute(
        "UPDATE agents SET models_restricted = ?2 WHERE name = ?1",
        (agent, models.is_some()),
    )?;
    Ok(())
}

/// Makes sure that `name` is somebody: under the shared secret an agent may upload before anything
/// else made it known.
pub(super) fn require_name(tx: &mut Tx<'_>, name: &str) -> Result<(), Failure> {
    if kind_of(tx, name)?.is_none() {
        ensure_agent(tx, name)?;
    }
    Ok(())
}

fn require_user(db: &Connection, name: &str) -> Result<(), Failure> {
    if is_user(db, name)? {
        return Ok(());
    }
    Err(Failure::not_found(said!("没有用户 {name}", "there is no user {name}")).suggest(said!(
        "先用 zcode-mail user add {name} 建立",
        "create it with zcode-mail user add {name}"
    )))
}

fn claim(tx: &mut Tx<'_>, name: &str, kind: Kind) -> Result<(), Failure> {
    check_name(name)?;
    match kind_of(tx, name)? {
        None => {
            tx.execute("INSERT INTO names (name, kind) VALUES (?1, ?2)", (name, kind.as_str()))?;
            Ok(())
        }
        Some(Kind::User) => Err(Failure::conflict(said!(
            "名字 {name} 已属于一个人类用户；用户与 Agent 共用一个命名空间",
            "the name {name} belongs to a person; people and agents share one namespace"
        ))),
        Some(Kind::Agent) => Err(Failure::conflict(said!(
            "名字 {name} 已属于一个 Agent；用户与 Agent 共用一个命名空间",
            "the name {name} belongs to an agent; people and agents share one namespace"
        ))),
    }
}

/// A name is the first part of an address and is shown to people: no separators of addresses and
/// lists, no white space, nothing invisible.
fn check_name(name: &str) -> Result<(), Failure> {
    let fits = !name.is_empty()
        && name.len() <= NAME_LIMIT
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
    if fits {
        return Ok(());
    }
    Err(Failure::bad_request(said!(
        "名字须为 1 到 {NAME_LIMIT} 字节的字母、数字、- 或 _",
        "a name is 1 to {NAME_LIMIT} bytes of letters, digits, - and _"
    )))
}

fn checked_token(token: &str) -> Result<&str, Failure> {
    let fits = (secret::MIN_TOKEN_LEN..=secret::MAX_TOKEN_LEN).contains(&token.len())
        && token.bytes().all(|byte| byte.is_ascii_graphic());
    if fits {
        return Ok(token);
    }
    let (min, max) = (secret::MIN_TOKEN_LEN, secret::MAX_TOKEN_LEN);
    Err(Failure::bad_request(said!(
        "key_token 须为 {min} 到 {max} 个可见 ASCII 字符",
        "key_token must be {min} to {max} visible ASCII characters"
    )))
}

fn insert_key(
    tx: &mut Tx<'_>,
    kind: Kind,
    subject: &str,
    owner: &str,
    token: String,
    lifetime: Lifetime,
) -> Result<(String, String), Failure> {
    let id = secret::id()?;
    let hash = TokenHash::of(&token);
    let taken: bool = tx.query_row(
        "SELECT EXISTS (SELECT 1 FROM keys WHERE hash = ?1)",
        [hash.as_bytes()],
        |row| row.get(0),
    )?;
    if taken {
        return Err(Failure::conflict(said!(
            "这把密钥已经登记过",
            "this key is registered already"
        )));
    }
    let (name, expires_at) = match lifetime {
        Lifetime::Permanent => ("permanent", None),
        Lifetime::OneTime => ("one_time", None),
        Lifetime::Until(moment) => ("timed", Some(moment)),
    };
    tx.execute(
        "INSERT INTO keys
           (id, kind, subject, owner, lookup, hash, lifetime, expires_at, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        (
            &id,
            kind.as_str(),
            subject,
            owner,
            hash.lookup(),
            hash.as_bytes(),
            name,
            expires_at,
            tx.now(),
        ),
    )?;
    key_record(tx, owner, &id, &format!("made for {} {subject}, {name}", kind.as_str()))?;
    Ok((id, token))
}
