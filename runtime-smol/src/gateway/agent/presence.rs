//! Registration and heartbeat: who an agent is, that it lives, what it can do (`W-2`, `W-3`).

use rusqlite::Connection;
use zcode_mail_core::api::heartbeat::{
    Beat, Decoded, Model, ModelRange, ModelRef, PlatformSession,
};
use zcode_mail_core::api::register;

use super::super::accounts;
use super::super::failure::{Failure, said};
use super::super::store::Tx;

/// Platform sessions that are mirrored per agent (`S-4`).
const MIRROR_LIMIT: usize = 200;
/// Models that are kept per agent.
const CATALOGUE_LIMIT: usize = 2000;

/// Registers an agent; every start repeats it.
///
/// # Errors
///
/// 409 when the name belongs to a person.
pub(super) fn register(
    tx: &mut Tx<'_>,
    request: &register::Request,
) -> Result<register::Registered, Failure> {
    accounts::ensure_agent(tx, &request.name)?;
    tx.execute(
        "UPDATE agents SET platform = ?2, last_seen_at = ?3 WHERE name = ?1",
        (&request.name, &request.platform, tx.now()),
    )?;
    // The official bridges send an empty list on every start; it says nothing about workspaces
    // that an earlier program named.
    for workspace in &request.workspaces {
        tx.execute(
            "INSERT INTO agent_workspaces (agent_name, name, path) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET path = excluded.path",
            (&request.name, &workspace.name, &workspace.path),
        )?;
    }
    Ok(register::Registered {
        agent_name: Some(request.name.clone()),
        platform: Some(request.platform.clone()),
    })
}

/// Takes a heartbeat: the agent is online, and what it reported replaces what was stored. An
/// absent list keeps the stored one, an empty list clears it (`N-7`).
///
/// # Errors
///
/// 409 when the name belongs to a person.
pub(super) fn beat(tx: &mut Tx<'_>, name: &str, decoded: Decoded) -> Result<Beat, Failure> {
    accounts::ensure_agent(tx, name)?;
    let Decoded { request, unknown_fields } = decoded;
    tx.execute(
        "UPDATE agents SET last_seen_at = ?2, mode_enforcement = coalesce(?3, mode_enforcement)
         WHERE name = ?1",
        (name, tx.now(), request.mode_enforcement.map(|mode| mode.as_str())),
    )?;
    let synced = request.platform_sessions.map(|list| mirror(tx, name, &list)).transpose()?;
    let models = request.models.map(|list| catalogue(tx, name, &list)).transpose()?;
    let pending = tx.query_row(
        "SELECT coalesce((SELECT unread FROM mailbox_counts WHERE name = ?1), 0)",
        [name],
        |row| row.get(0),
    )?;
    let (rounds, sent) = tx.query_row(
        "SELECT default_rounds, sent_total FROM agents WHERE name = ?1",
        [name],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    Ok(Beat {
        pending_mails: pending,
        agent_name: Some(name.to_owned()),
        default_rounds: Some(rounds),
        sent_total: Some(sent),
        platform_sessions_synced: Some(synced.unwrap_or_default()),
        models_synced: Some(models.unwrap_or_default()),
        models: allowed_models(tx, name)?,
        unknown_fields,
    })
}

/// The models that an administrator allows to `name`, best first.
pub(super) fn allowed_models(db: &Connection, name: &str) -> Result<ModelRange, Failure> {
    let restricted: bool = db
        .query_row("SELECT models_restricted FROM agents WHERE name = ?1", [name], |row| row.get(0))
        .or_else(|error| match error {
            rusqlite::Error::QueryReturnedNoRows => Ok(false),
            other => Err(other),
        })?;
    if !restricted {
        return Ok(ModelRange::Unrestricted);
    }
    let mut statement = db.prepare(
        "SELECT provider, model FROM agent_allowed_models WHERE agent_name = ?1 ORDER BY position",
    )?;
    let models = statement
        .query_map([name], |row| Ok(ModelRef { provider: row.get(0)?, model: row.get(1)? }))?;
    Ok(ModelRange::Only(models.collect::<Result<_, _>>()?))
}

/// A model range as the wire writes it.
pub(super) fn range_json(range: &ModelRange) -> serde_json::Value {
    let (models, unrestricted): (&[ModelRef], _) = match range {
        ModelRange::Unrestricted => (&[], true),
        ModelRange::Only(models) => (models, false),
    };
    let models: Vec<_> = models
        .iter()
        .map(|one| serde_json::json!({ "provider": one.provider, "model": one.model }))
        .collect();
    serde_json::json!({ "allowed_models": models, "models_unrestricted": unrestricted })
}

/// Replaces the mirror as a whole. Entries that no address could name are left out (`S-1`, `S-3`):
/// without slug, or with the slug of a fresher one.
fn mirror(tx: &mut Tx<'_>, name: &str, list: &[PlatformSession]) -> Result<u64, Failure> {
    tx.execute("DELETE FROM agent_platform_sessions WHERE agent_name = ?1", [name])?;
    let mut ordered: Vec<_> = list.iter().filter(|session| !session.slug.is_empty()).collect();
    // RFC 3339 in UTC sorts as text.
    ordered.sort_by(|one, other| other.updated_at.cmp(&one.updated_at));
    let mut kept = 0;
    for session in ordered.into_iter().take(MIRROR_LIMIT) {
        kept += tx.execute(
            "INSERT OR IGNORE INTO agent_platform_sessions
               (agent_name, platform_id, workspace, slug, title, mail_driven, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            (
                name,
                &session.platform_id,
                &session.workspace,
                &session.slug,
                &session.title,
                session.mail_driven,
                &session.updated_at,
            ),
        )?;
    }
    Ok(kept as u64)
}

fn catalogue(tx: &mut Tx<'_>, name: &str, list: &[Model]) -> Result<u64, Failure> {
    if list.len() > CATALOGUE_LIMIT {
        return Err(Failure::bad_request(said!(
            "字段 \"models\" 过长（上限 {CATALOGUE_LIMIT} 项）",
            "field \"models\" is too long (at most {CATALOGUE_LIMIT} entries)"
        )));
    }
    tx.execute("DELETE FROM agent_model_catalog WHERE agent_name = ?1", [name])?;
    for (position, model) in list.iter().enumerate() {
        tx.execute(
            "INSERT INTO agent_model_catalog (agent_name, position, provider, model, display_name)
             VALUES (?1, ?2, ?3, ?4, ?5)",
            (name, position, &model.provider, &model.model, &model.display_name),
        )?;
    }
    Ok(list.len() as u64)
}
