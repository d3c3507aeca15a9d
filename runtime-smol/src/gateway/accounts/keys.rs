//! Keys of agents and people: made, registered, listed, revoked, found.
//!
//! Lifetimes: `permanent`; `timed`, until its moment; `one_time`, which the first request that
//! shows it uses up, whatever the request is. A one-time key therefore suits one mail or one look
//! at an inbox; an agent that registers, streams and asks needs one of the other two.

use rusqlite::Connection;
use zcode_mail_core::audit::Event;

use super::super::audit::{self, Entry};
use super::super::failure::{Failure, said};
use super::super::secret::{self, TokenHash};
use super::super::store::Tx;
use super::{Kind, ensure_agent, require_user};

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
pub(in crate::gateway) struct ValidKey {
    pub(in crate::gateway) id: String,
    pub(in crate::gateway) kind: Kind,
    pub(in crate::gateway) subject: String,
    pub(in crate::gateway) owner: String,
    pub(in crate::gateway) one_time: bool,
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

/// The key that `token` is, if it is good at `now`.
pub(in crate::gateway) fn find_key(
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
pub(in crate::gateway) fn consume_key(tx: &mut Tx<'_>, id: &str) -> Result<bool, Failure> {
    let changed = tx.execute(
        "UPDATE keys SET used_at = ?2 WHERE id = ?1 AND used_at IS NULL",
        (id, tx.now()),
    )?;
    Ok(changed == 1)
}

/// Whether the key is still good: not revoked and, if timed, not over.
pub(in crate::gateway) fn key_stands(db: &Connection, id: &str, now: i64) -> Result<bool, Failure> {
    Ok(db.query_row(
        "SELECT EXISTS (SELECT 1 FROM keys WHERE id = ?1 AND revoked_at IS NULL
           AND (lifetime <> 'timed' OR expires_at > ?2))",
        (id, now),
        |row| row.get(0),
    )?)
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
