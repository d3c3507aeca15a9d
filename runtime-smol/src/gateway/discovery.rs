//! Whom a mail can be addressed to: contacts, participants, and candidates in three stages (`T-8`
//! to `T-10`), so that nobody has to guess an address.
//!
//! Candidates tell an agent nothing that it has no part in: sessions are the agent's own ones with
//! that name, and those that the name's platform reports for taking over (`B-3.7`).

use rusqlite::{Connection, OptionalExtension as _};
use serde_json::{Value, json};

use super::accounts::{self, Kind};
use super::delivery::address;
use super::failure::{Failure, said};
use super::stamp;

/// How long a heartbeat keeps an agent online, milliseconds (contract: 30 s).
pub(super) const ONLINE_FOR: i64 = 30_000;
/// Candidates of one stage.
const CANDIDATES: usize = 50;
/// Contacts in one listing: the most recently active ones.
const CONTACTS: u32 = 500;
/// Near names that are offered.
const NEAR: usize = 3;

/// Who takes part in a session, each with the address that reaches them there.
pub(super) fn participants(db: &Connection, session: &str) -> Result<Vec<Value>, Failure> {
    let mut statement = db.prepare_cached(
        "SELECT p.name, p.workspace, p.role, s.alias, s.owner = p.name,
                EXISTS (SELECT 1 FROM users u WHERE u.name = p.name)
         FROM session_participants p JOIN sessions s ON s.id = p.session_id
         WHERE p.session_id = ?1 ORDER BY p.joined_at, p.name",
    )?;
    let rows = statement.query_map([session], |row| {
        let (name, workspace): (String, String) = (row.get(0)?, row.get(1)?);
        let (role, alias): (String, String) = (row.get(2)?, row.get(3)?);
        let role = if row.get(4)? { "owner".to_owned() } else { role };
        Ok(json!({
            "address": address(&name, &workspace, &alias), "name": name, "role": role,
            "human": row.get::<_, bool>(5)?,
        }))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// [`participants`], if `reader` is one of them.
///
/// # Errors
///
/// 404 for a session that does not exist or that `reader` has no part in.
pub(super) fn participants_for(
    db: &Connection,
    reader: &str,
    session: &str,
) -> Result<Value, Failure> {
    require_part(db, reader, session)?;
    Ok(json!({ "session_id": session, "participants": participants(db, session)? }))
}

/// Refuses who has no part in the session.
///
/// # Errors
///
/// 404.
pub(super) fn require_part(db: &Connection, name: &str, session: &str) -> Result<(), Failure> {
    let part: bool = db.query_row(
        "SELECT EXISTS (SELECT 1 FROM session_participants WHERE session_id = ?1 AND name = ?2)",
        (session, name),
        |row| row.get(0),
    )?;
    if part {
        return Ok(());
    }
    Err(Failure::not_found(said!(
        "没有这个邮件会话，或 {name} 没有参与",
        "there is no such mail session, or {name} takes no part in it"
    )))
}

/// Everybody `reader` shares a live session with, once per session, most recently active first.
pub(super) fn contacts(db: &Connection, reader: &str) -> Result<Value, Failure> {
    let mut statement = db.prepare_cached(
        "SELECT p.name, p.workspace, s.id, s.alias, s.subject, s.updated_at,
                EXISTS (SELECT 1 FROM users u WHERE u.name = p.name)
         FROM session_participants own
         JOIN sessions s ON s.id = own.session_id AND s.archived_at IS NULL
         JOIN session_participants p ON p.session_id = s.id AND p.name <> own.name
         WHERE own.name = ?1 ORDER BY s.updated_at DESC, s.id, p.name LIMIT ?2",
    )?;
    let rows = statement.query_map((reader, CONTACTS), |row| {
        let (name, workspace): (String, String) = (row.get(0)?, row.get(1)?);
        let alias: String = row.get(3)?;
        Ok(json!({
            "address": address(&name, &workspace, &alias), "name": name, "workspace": workspace,
            "session_id": row.get::<_, String>(2)?, "session_alias": alias,
            "subject": row.get::<_, String>(4)?, "last_mail_at": stamp::rfc3339(row.get(5)?),
            "human": row.get::<_, bool>(6)?,
        }))
    })?;
    let contacts = rows.collect::<Result<Vec<_>, _>>()?;
    Ok(json!({ "contacts": contacts }))
}

/// What an address has so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    pub(super) name: Option<String>,
    pub(super) path: Option<String>,
    pub(super) query: String,
}

/// The candidates for the part that is missing: the name, its path, the session there.
///
/// # Errors
///
/// 404 for a name that nobody has, with near ones.
pub(super) fn suggest(db: &Connection, reader: &str, wanted: &Wanted) -> Result<Value, Failure> {
    let Some(name) = &wanted.name else { return names(db, &wanted.query) };
    if accounts::kind_of(db, name)?.is_none() {
        let near = near_names(db, name)?;
        let list = near.join("、");
        let list_en = near.join(", ");
        let mut failure = Failure::not_found(said!(
            "没有名为 {name} 的用户或 Agent",
            "no person or agent is called {name}"
        ));
        if !near.is_empty() {
            failure = failure.suggest(said!("是不是：{list}", "did you mean: {list_en}"));
        }
        return Err(failure);
    }
    match &wanted.path {
        None => paths(db, reader, name, &wanted.query),
        Some(path) => sessions(db, reader, name, path, &wanted.query),
    }
}

fn names(db: &Connection, query: &str) -> Result<Value, Failure> {
    let mut statement = db.prepare_cached(
        "SELECT n.name, n.kind, coalesce(a.last_seen_at, 0) FROM names n
         LEFT JOIN agents a ON a.name = n.name ORDER BY a.last_seen_at DESC NULLS LAST, n.name",
    )?;
    let now = stamp::now();
    let rows = statement
        .query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?, row.get(2)?)))?
        .collect::<Result<Vec<(String, String, i64)>, _>>()?;
    let suggestions: Vec<_> = rows
        .iter()
        .filter(|(name, _, _)| holds(name, query))
        .take(CANDIDATES)
        .map(|(name, kind, seen)| match Kind::from_db(kind) {
            Kind::User => json!({ "name": name, "kind": "human", "address": name }),
            Kind::Agent => {
                let online = now - seen < ONLINE_FOR;
                json!({ "name": name, "kind": "agent", "online": online, "address": name })
            }
        })
        .collect();
    let near = if suggestions.is_empty() { near_names(db, query)? } else { Vec::new() };
    Ok(json!({ "kind": "name", "suggestions": suggestions, "did_you_mean": near }))
}

/// Paths at which `name` is known: registered, reported by its platform, or written to by
/// `reader`.
fn paths(db: &Connection, reader: &str, name: &str, query: &str) -> Result<Value, Failure> {
    let mut statement = db.prepare_cached(
        "SELECT path, max(used) FROM (
           SELECT path, 0 AS used FROM agent_workspaces WHERE agent_name = ?1
           UNION ALL SELECT workspace, 0 FROM agent_platform_sessions WHERE agent_name = ?1
           UNION ALL SELECT p.workspace, s.updated_at FROM session_participants p
             JOIN sessions s ON s.id = p.session_id
             JOIN session_participants own ON own.session_id = s.id AND own.name = ?2
             WHERE p.name = ?1)
         WHERE path <> '' GROUP BY path ORDER BY 2 DESC, 1",
    )?;
    let rows = statement
        .query_map((name, reader), |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<Vec<(String, i64)>, _>>()?;
    let suggestions: Vec<_> = rows
        .iter()
        .filter(|(path, _)| holds(path, query))
        .take(CANDIDATES)
        .map(|(path, used)| {
            let last = if *used > 0 { stamp::rfc3339(*used) } else { String::new() };
            json!({ "path": path, "address": address(name, path, ""), "last_used": last })
        })
        .collect();
    Ok(json!({ "kind": "path", "suggestions": suggestions }))
}

/// Sessions with `name` at `path`: those that `reader` takes part in, and those of the platform
/// that a mail would take over.
fn sessions(
    db: &Connection,
    reader: &str,
    name: &str,
    path: &str,
    query: &str,
) -> Result<Value, Failure> {
    let path = registered_path(db, name, path)?;
    let mut statement = db.prepare_cached(
        "SELECT s.alias, s.subject, s.updated_at FROM sessions s
         JOIN session_participants p ON p.session_id = s.id AND p.name = ?1
         JOIN session_participants own ON own.session_id = s.id AND own.name = ?2
         WHERE s.archived_at IS NULL AND p.workspace = ?3 ORDER BY s.updated_at DESC, s.id",
    )?;
    let mut rows = statement
        .query_map((name, reader, &path), |row| {
            Ok((row.get(0)?, row.get(1)?, stamp::rfc3339(row.get(2)?), false))
        })?
        .collect::<Result<Vec<(String, String, String, bool)>, _>>()?;
    let mut statement = db.prepare_cached(
        "SELECT m.slug, m.title, m.updated_at FROM agent_platform_sessions m
         WHERE m.agent_name = ?1 AND m.workspace = ?2 AND NOT m.mail_driven
           AND NOT EXISTS (SELECT 1 FROM sessions s
                           WHERE s.agent_name = m.agent_name AND s.platform_id = m.platform_id)
         ORDER BY m.updated_at DESC, m.slug",
    )?;
    let platform = statement
        .query_map((name, &path), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, true)))?;
    rows.extend(platform.collect::<Result<Vec<_>, _>>()?);
    let mut suggestions: Vec<_> = rows
        .iter()
        .filter(|(alias, title, _, _)| holds(alias, query) || holds(title, query))
        .take(CANDIDATES)
        .map(|(alias, title, updated, platform)| {
            json!({
                "alias": alias, "title": title, "address": address(name, &path, alias),
                "updated_at": updated, "platform": platform,
            })
        })
        .collect();
    if holds("new", query) {
        let fresh = zcode_mail_core::address::Address::new(
            name,
            &path,
            zcode_mail_core::address::Session::New,
        );
        if let Ok(fresh) = fresh {
            suggestions.push(json!({
                "alias": "new", "title": "", "address": fresh.to_string(), "platform": false,
            }));
        }
    }
    Ok(json!({ "kind": "session", "suggestions": suggestions }))
}

fn registered_path(db: &Connection, name: &str, path: &str) -> Result<String, Failure> {
    let found = db
        .query_row(
            "SELECT path FROM agent_workspaces WHERE agent_name = ?1 AND name = ?2",
            (name, path),
            |row| row.get(0),
        )
        .optional()?;
    Ok(found.unwrap_or_else(|| path.to_owned()))
}

/// Whether `text` holds `query`, both in lower case.
fn holds(text: &str, query: &str) -> bool {
    text.to_lowercase().contains(&query.to_lowercase())
}

/// Names within a third of their length of `wanted`, nearest first.
fn near_names(db: &Connection, wanted: &str) -> Result<Vec<String>, Failure> {
    let mut statement = db.prepare_cached("SELECT name FROM names")?;
    let names = statement.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    let wanted = wanted.to_lowercase();
    let limit = (wanted.chars().count() / 3).max(1);
    let mut near: Vec<_> = names
        .into_iter()
        .filter(|name| name.len() <= accounts::NAME_LIMIT)
        .map(|name| (distance(&wanted, &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= limit)
        .collect();
    near.sort();
    Ok(near.into_iter().take(NEAR).map(|(_, name)| name).collect())
}

/// Levenshtein distance in characters; texts beyond a name's limit are infinitely far.
fn distance(one: &str, other: &str) -> usize {
    if one.len() > accounts::NAME_LIMIT {
        return usize::MAX;
    }
    let other: Vec<_> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_the_fewest_edits() {
        for (one, other, edits) in [
            ("", "", 0),
            ("pi", "pi", 0),
            ("zcode", "zcdoe", 2),
            ("abc", "", 3),
            ("审查", "审计", 1),
        ] {
            assert_eq!(distance(one, other), edits, "{one} {other}");
            assert_eq!(distance(other, one), edits, "{other} {one}");
        }
    }
}
