//! Sessions as a person runs them: names, budgets, modes, the archive; and the model range of
//! agents for administrators.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use serde_json::json;
use zcode_mail_core::mode::PermissionMode;
use zcode_mail_core::strict::Fields;

use super::super::agent::json as answer;
use super::super::auth::{AnyCaller, UserCaller};
use super::super::body::Json;
use super::super::failure::{Failure, said};
use super::super::session::{self, Change};
use super::super::{Gateway, accounts};

/// Models in one range.
const RANGE_LIMIT: usize = 200;

pub(super) async fn proposal(
    State(gateway): State<Arc<Gateway>>,
    caller: AnyCaller,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let found = gateway.store.read(move |db| session::proposal(db, &caller.0, &id)).await?;
    Ok(answer(found.to_string()))
}

pub(super) async fn reject(
    State(gateway): State<Arc<Gateway>>,
    caller: UserCaller,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let done = gateway.store.write(move |tx| session::reject(tx, &caller.name, &id)).await?;
    Ok(answer(done.to_string()))
}

pub(super) async fn rename(
    State(gateway): State<Arc<Gateway>>,
    caller: UserCaller,
    Path(id): Path<String>,
    Json(body): Json,
) -> Result<Response, Failure> {
    let mut fields = Fields::parse(&body)?;
    let alias = fields.string("alias")?;
    fields.finish()?;
    let done =
        gateway.store.write(move |tx| session::rename(tx, &caller.name, &id, &alias)).await?;
    Ok(answer(done.to_string()))
}

pub(super) async fn change(
    State(gateway): State<Arc<Gateway>>,
    caller: UserCaller,
    Path(id): Path<String>,
    Json(body): Json,
) -> Result<Response, Failure> {
    let mut fields = Fields::parse(&body)?;
    let max_rounds = fields.opt_int("max_rounds")?;
    let used_rounds = fields.opt_int("used_rounds")?;
    let permission_mode = mode_field(&mut fields)?;
    fields.finish()?;
    let change = Change { max_rounds, used_rounds, permission_mode };
    let done =
        gateway.store.write(move |tx| session::change(tx, &caller.name, &id, change)).await?;
    Ok(answer(done.to_string()))
}

pub(super) async fn archive(
    State(gateway): State<Arc<Gateway>>,
    caller: UserCaller,
    Path(id): Path<String>,
    Json(body): Json,
) -> Result<Response, Failure> {
    Fields::parse(&body)?.finish()?;
    let done = gateway.store.write(move |tx| session::archive(tx, &caller.name, &id)).await?;
    Ok(answer(done.to_string()))
}

/// `PUT /admin/agents/{name}/models`: `{"models": [{provider, model}, ...]}` best first; without
/// the field any model may be used.
pub(super) async fn models(
    State(gateway): State<Arc<Gateway>>,
    caller: UserCaller,
    Path(name): Path<String>,
    Json(body): Json,
) -> Result<Response, Failure> {
    let mut fields = Fields::parse(&body)?;
    let list = fields.opt_object_array("models")?;
    fields.finish()?;
    let models = list.map(read_models).transpose()?;
    if models.as_ref().is_some_and(|models| models.len() > RANGE_LIMIT) {
        return Err(Failure::bad_request(said!(
            "字段 \"models\" 过长（上限 {RANGE_LIMIT} 项）",
            "field \"models\" is too long (at most {RANGE_LIMIT} entries)"
        )));
    }
    gateway
        .store
        .write(move |tx| {
            accounts::require_admin(tx, &caller.name)?;
            accounts::set_models(tx, &name, models.as_deref())
        })
        .await?;
    Ok(answer(json!({ "status": "ok" }).to_string()))
}

/// `POST /admin/agent-keys`: registers a key that an agent made (`key_token`), or makes one. The
/// owner is the administrator unless `owner` says otherwise.
pub(super) async fn agent_key(
    State(gateway): State<Arc<Gateway>>,
    caller: UserCaller,
    Json(body): Json,
) -> Result<Response, Failure> {
    let mut fields = Fields::parse(&body)?;
    let agent = fields.string("agent_name")?;
    let token = fields.opt_string("key_token")?;
    let owner = fields.opt_string("owner")?;
    fields.finish()?;
    let made = gateway
        .store
        .write(move |tx| {
            accounts::require_admin(tx, &caller.name)?;
            let owner = owner.as_deref().unwrap_or(&caller.name);
            let (id, key) = accounts::create_agent_key(
                tx,
                &agent,
                owner,
                token.as_deref(),
                accounts::Lifetime::Permanent,
            )?;
            // A registered key came from the agent and does not travel back.
            let key = if token.is_some() { None } else { Some(key) };
            Ok(json!({ "id": id, "agent_name": agent, "owner": owner, "key_token": key }))
        })
        .await?;
    Ok(answer(made.to_string()))
}

/// Takes `permission_mode`.
///
/// # Errors
///
/// 400 for a text that is no mode.
pub(super) fn mode_field(fields: &mut Fields) -> Result<Option<PermissionMode>, Failure> {
    let Some(text) = fields.opt_string("permission_mode")?.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let mode = PermissionMode::parse(&text).ok_or_else(|| {
        let rule = ("只能是 plan、workspace 或 full", "may be plan, workspace or full");
        Failure::from(fields.forbidden("permission_mode", rule))
    })?;
    Ok(Some(mode))
}

fn read_models(list: Vec<Fields>) -> Result<Vec<(String, String)>, Failure> {
    let mut models = Vec::with_capacity(list.len());
    for mut entry in list {
        models.push((entry.string("provider")?, entry.string("model")?));
        entry.finish()?;
    }
    Ok(models)
}

/// 403 for people who are no administrators.
pub(in crate::gateway) fn not_admin() -> Failure {
    Failure::new(
        StatusCode::FORBIDDEN,
        said!("只有管理员可以这样做", "only administrators may do this"),
    )
}
