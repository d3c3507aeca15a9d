//! People, agents' names and the keys of both (seed 002, "two kinds of keys").
//!
//! One namespace: a name belongs to a person or to an agent, never to both (`W-2`). Keys, cookies
//! and login codes exist here only as SHA-256; each of these functions that makes one returns the
//! text once.

use rusqlite::{Connection, OptionalExtension as _};

use super::failure::{Failure, said};
use super::store::Tx;

mod keys;
mod login;

pub use keys::{KeyRow, Lifetime, create_agent_key, create_user_key, list_keys, revoke_key};
pub(super) use keys::{ValidKey, consume_key, find_key, key_stands};
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
