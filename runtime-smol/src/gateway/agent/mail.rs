//! What an agent's tools use: reading, forwarding, attachments, addresses (`T-1` to `T-12`).

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, Request, State};
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use zcode_mail_core::strict::Fields;

use super::super::auth::AgentCaller;
use super::super::body::Json;
use super::super::delivery::{self, Forward, Sender};
use super::super::discovery::{self, Wanted};
use super::super::failure::{Failure, said};
use super::super::reading::{self, INBOX_LIMIT, Status};
use super::super::{Gateway, accounts, attachment};
use super::{json as answer, presence};

/// Mails in a listing without a wish.
const INBOX_DEFAULT: u32 = 50;
/// Ids in one request to mark mails.
const MARK_LIMIT: usize = 1000;

/// The query of an inbox.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::gateway) struct InboxQuery {
    status: Option<String>,
    limit: Option<u32>,
}

impl InboxQuery {
    /// Which mails, and how many at most.
    ///
    /// # Errors
    ///
    /// 400 for parameters that are none.
    pub(in crate::gateway) fn read(
        query: Result<Query<Self>, QueryRejection>,
    ) -> Result<(Status, u32), Failure> {
        let Query(query) = query.map_err(|_| bad_query("status, limit"))?;
        let limit = query.limit.unwrap_or(INBOX_DEFAULT).min(INBOX_LIMIT);
        Ok((Status::from_query(query.status.as_deref())?, limit))
    }
}

/// The ids of a request to mark mails as read: `{"mail_ids": [...]}`.
///
/// # Errors
///
/// 400 for another body.
pub(in crate::gateway) fn mail_ids(body: &[u8]) -> Result<Vec<String>, Failure> {
    let mut fields = Fields::parse(body)?;
    let ids = fields.opt_string_array("mail_ids")?;
    fields.finish()?;
    let Some(ids) = ids.filter(|ids| ids.len() <= MARK_LIMIT) else {
        return Err(Failure::bad_request(said!(
            "字段 \"mail_ids\" 须为至多 {MARK_LIMIT} 个邮件 id 的数组",
            "field \"mail_ids\" must be a list of at most {MARK_LIMIT} mail ids"
        )));
    };
    Ok(ids)
}

/// The body of a forward. `note` is another name for `body`.
///
/// # Errors
///
/// 400 for another body.
pub(in crate::gateway) fn forward_body(mail_id: String, body: &[u8]) -> Result<Forward, Failure> {
    let mut fields = Fields::parse(body)?;
    let to = fields.string("to")?;
    let cc = fields.opt_string("cc")?.unwrap_or_default();
    let text = fields.opt_string("body")?;
    let note = fields.opt_string("note")?;
    let session_alias = fields.opt_string("session_alias")?.filter(|alias| !alias.is_empty());
    fields.finish()?;
    Ok(Forward { mail_id, to, cc, note: text.or(note).unwrap_or_default(), session_alias })
}

pub(super) async fn inbox(
    State(gateway): State<Arc<Gateway>>,
    caller: AgentCaller,
    query: Result<Query<InboxQuery>, QueryRejection>,
) -> Result<Response, Failure> {
    let (status, limit) = InboxQuery::read(query)?;
    let list =
        gateway.store.read(move |db| reading::inbox(db, &caller.name, status, limit)).await?;
    Ok(answer(list.to_string()))
}

pub(super) async fn read(
    State(gateway): State<Arc<Gateway>>,
    caller: AgentCaller,
    Json(body): Json,
) -> Result<Response, Failure> {
    let ids = mail_ids(&body)?;
    let marked = gateway.store.write(move |tx| delivery::mark_read(tx, &caller.name, &ids)).await?;
    Ok(answer(json!({ "status": "ok", "marked": marked }).to_string()))
}

pub(super) async fn one(
    State(gateway): State<Arc<Gateway>>,
    caller: AgentCaller,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let mail = gateway.store.read(move |db| reading::full(db, &caller.name, &id)).await?;
    Ok(answer(mail.to_string()))
}

pub(super) async fn thread(
    State(gateway): State<Arc<Gateway>>,
    caller: AgentCaller,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let thread = gateway.store.read(move |db| reading::thread(db, &caller.name, &id)).await?;
    Ok(answer(thread.to_string()))
}

pub(super) async fn forward(
    State(gateway): State<Arc<Gateway>>,
    caller: AgentCaller,
    Path(id): Path<String>,
    Json(body): Json,
) -> Result<Response, Failure> {
    let forward = forward_body(id, &body)?;
    let sent = gateway
        .store
        .write(move |tx| {
            accounts::ensure_agent(tx, &caller.name)?;
            delivery::forward(tx, &Sender::agent(caller.name), forward)
        })
        .await?;
    Ok(answer(sent.to_json()))
}

pub(super) async fn upload(
    State(gateway): State<Arc<Gateway>>,
    caller: AgentCaller,
    request: Request,
) -> Result<Response, Failure> {
    attachment::upload(&gateway, caller.name, request).await
}

pub(super) async fn download(
    State(gateway): State<Arc<Gateway>>,
    caller: AgentCaller,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    attachment::download(&gateway, caller.name, id).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SuggestQuery {
    /// The stage, which follows from the other two; accepted and checked.
    kind: Option<String>,
    name: Option<String>,
    path: Option<String>,
    q: Option<String>,
}

pub(super) async fn suggest(
    State(gateway): State<Arc<Gateway>>,
    caller: AgentCaller,
    query: Result<Query<SuggestQuery>, QueryRejection>,
) -> Result<Response, Failure> {
    let Query(query) = query.map_err(|_| bad_query("kind, name, path, q"))?;
    if let Some(kind) = &query.kind
        && !["name", "path", "session"].contains(&kind.as_str())
    {
        return Err(Failure::bad_request(said!(
            "kind 只能是 name、path 或 session",
            "kind may be name, path or session"
        )));
    }
    let name = query.name.filter(|name| !name.is_empty());
    let wanted = Wanted { name, path: query.path, query: query.q.unwrap_or_default() };
    let found = gateway.store.read(move |db| discovery::suggest(db, &caller.name, &wanted)).await?;
    Ok(answer(found.to_string()))
}

pub(super) async fn contacts(
    State(gateway): State<Arc<Gateway>>,
    caller: AgentCaller,
) -> Result<Response, Failure> {
    let list = gateway.store.read(move |db| discovery::contacts(db, &caller.name)).await?;
    Ok(answer(list.to_string()))
}

pub(super) async fn participants(
    State(gateway): State<Arc<Gateway>>,
    caller: AgentCaller,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let list =
        gateway.store.read(move |db| discovery::participants_for(db, &caller.name, &id)).await?;
    Ok(answer(list.to_string()))
}

pub(super) async fn models(
    State(gateway): State<Arc<Gateway>>,
    caller: AgentCaller,
) -> Result<Response, Failure> {
    let range = gateway.store.read(move |db| presence::allowed_models(db, &caller.name)).await?;
    Ok(answer(presence::range_json(&range).to_string()))
}

fn bad_query(known: &str) -> Failure {
    Failure::bad_request(said!("查询参数只能是 {known}", "query parameters may be {known}"))
}
