//! The human side: the JSON interface below `/api/v1/me`, the same acts for third-party programs
//! with a user key as for the page with its cookie. Agents' credentials are refused throughout.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, Path, Query, State};
use axum::response::Response;
use axum::routing::{get, patch, post, put};
use http::header::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, json};
use zcode_mail_core::api::send;
use zcode_mail_core::lifecycle::{State as Stage, Verdict};
use zcode_mail_core::mode::PermissionMode;
use zcode_mail_core::strict::Fields;

use super::agent::json as json_response;
use super::agent::mail::{InboxQuery, forward_body, mail_ids};
use super::auth::UserCaller;
use super::body::Json;
use super::failure::{Failure, said};
use super::grant::{self, Wish};
use super::permission::{self, Filter, Request};
use super::server::Connection;
use super::{Gateway, attachment, audit, delivery, log, reading, seen, stamp, stream};

pub(super) mod session;

/// Requests in one listing.
const LIST_LIMIT: u32 = 500;
/// The routes of people.
pub(super) fn routes() -> Router<Arc<Gateway>> {
    Router::new()
        .route("/health", get(health))
        .route("/api/v1/me/permissions", get(permissions))
        .route("/api/v1/me/permissions/{id}", get(permission))
        .route("/api/v1/me/permissions/{id}/decide", post(decide))
        .route("/api/v1/me/permissions/{id}/grant", post(give_grant))
        .route("/api/v1/me/mail/send", post(send))
        .route("/api/v1/me/mail/inbox", get(inbox))
        .route("/api/v1/me/mail/read", post(read))
        .route("/api/v1/me/mail/{id}", get(mail))
        .route("/api/v1/me/mail/{id}/thread", get(thread))
        .route("/api/v1/me/mail/{id}/forward", post(forward))
        .route("/api/v1/me/attachments", post(upload))
        .route("/api/v1/me/attachments/{id}", get(download))
        .route("/api/v1/me/events", get(events))
        .route("/api/v1/me/sessions/{id}", patch(session::change))
        .route("/api/v1/me/sessions/{id}/archive", post(session::archive))
        .route(
            "/api/v1/sessions/{id}/rename-proposal",
            get(session::proposal).delete(session::reject),
        )
        .route("/api/v1/sessions/{id}/alias", put(session::rename))
        .route("/api/v1/admin/agent-keys", post(session::agent_key))
        .route("/api/v1/admin/agents/{name}/models", put(session::models))
}

/// A permission request as the human interface shows it.
pub(super) fn request_json(request: &Request) -> Value {
    let mut value = json!({
        "request_id": request.id,
        "mail_id": request.mail_id,
        "session_id": request.session_id.as_deref().unwrap_or_default(),
        "session_alias": request.session_alias,
        "agent_name": request.agent_name,
        "question": request.question,
        "options": request.options,
        "context": request.context,
        "task": request.task,
        "task_from": request.task_from,
        "relay_key": request.relay_key.as_deref().unwrap_or_default(),
        "status": request.state.name(),
        "created_at": stamp::rfc3339(request.created_at),
    });
    if let Stage::Decided(Verdict { decision, note, by, .. }) = &request.state {
        value["decision"] = json!(decision);
        value["note"] = json!(note);
        value["decided_by"] = json!(by);
    }
    if let Some(end) = request.state.end() {
        value["ended_at"] = json!(stamp::rfc3339(end.at.0));
    }
    value
}

async fn health(State(gateway): State<Arc<Gateway>>) -> Result<Response, Failure> {
    gateway.store.read(|db| Ok(db.query_row("SELECT 1", [], |_| Ok(()))?)).await?;
    let streams = gateway.hub.len();
    Ok(json_response(json!({ "status": "ok", "streams": streams }).to_string()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PermissionQuery {
    status: Option<String>,
    session_id: Option<String>,
    agent_name: Option<String>,
}

async fn permissions(
    State(gateway): State<Arc<Gateway>>,
    caller: UserCaller,
    query: Result<Query<PermissionQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, Failure> {
    let Query(query) = query.map_err(|_| bad_query("status, session_id, agent_name"))?;
    if let Some(status) = &query.status
        && !["pending", "decided", "withdrawn", "expired"].contains(&status.as_str())
    {
        return Err(Failure::bad_request(said!(
            "status 只能是 pending、decided、withdrawn 或 expired",
            "status may be pending, decided, withdrawn or expired"
        )));
    }
    let filter = Filter {
        status: query.status,
        session_id: query.session_id,
        agent_name: query.agent_name,
        ended: false,
        limit: LIST_LIMIT,
    };
    let list = gateway.store.read(move |db| permission::list(db, &caller.name, &filter)).await?;
    let list: Vec<_> = list.iter().map(request_json).collect();
    Ok(json_response(json!({ "permissions": list }).to_string()))
}

async fn permission(
    State(gateway): State<Arc<Gateway>>,
    caller: UserCaller,
    Path(id): Path<String>,
    query: Result<Query<PageQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, Failure> {
    let Query(query) = query.map_err(|_| bad_query("page"))?;
    let (name, wanted) = (caller.name.clone(), id.clone());
    let request =
        gateway.store.read(move |db| permission::addressed_to(db, &name, &wanted)).await?;
    let mut value = request_json(&request);
    let Some(number) = query.page else { return Ok(json_response(value.to_string())) };
    let pages = seen::pages_of(&request.context, gateway.lang);
    let Some(page) = number.checked_sub(1).and_then(|at| pages.get(at)) else {
        let last = pages.len();
        return Err(Failure::not_found(said!(
            "没有第 {number} 页，共 {last} 页",
            "there is no page {number}; {last} is the last"
        )));
    };
    value["page"] = json!(number);
    value["pages"] = json!(pages.len());
    value["text"] = json!(page.iter().map(|row| row.text()).collect::<Vec<_>>().join("\n"));
    if number == pages.len() {
        let token =
            gateway.store.write(move |tx| seen::shown(tx, &caller.name, &id, "api")).await?;
        value["view_token"] = json!(token);
    }
    Ok(json_response(value.to_string()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PageQuery {
    page: Option<usize>,
}

async fn decide(
    State(gateway): State<Arc<Gateway>>,
    caller: UserCaller,
    Path(id): Path<String>,
    Json(body): Json,
) -> Result<Response, Failure> {
    let mut fields = Fields::parse(&body)?;
    let decision = fields.string("decision")?;
    let note = fields.opt_string("note")?.unwrap_or_default();
    let view_token = fields.opt_string("view_token")?;
    fields.finish()?;
    let taken = permission::Taken { decision, note, view_token, how: "api" };
    let (name, request) = (caller.name.clone(), id.clone());
    let decided =
        gateway.store.write(move |tx| permission::decide(tx, &name, &request, &taken)).await;
    if let Err(failure) = &decided {
        audit::refused(&gateway, &caller.name, "api", &id, failure).await;
    }
    let request = decided?;
    log::line(format_args!("request {} decided by {}", request.id, request.decider));
    Ok(json_response(request_json(&request).to_string()))
}

/// A decision that lasts: `{"minutes"?, "uses"?, "prefix"?: [word], "denies"?, "view_token"?}`.
async fn give_grant(
    State(gateway): State<Arc<Gateway>>,
    caller: UserCaller,
    Path(id): Path<String>,
    Json(body): Json,
) -> Result<Response, Failure> {
    let mut fields = Fields::parse(&body)?;
    let wish = Wish {
        minutes: fields.opt_int("minutes")?,
        uses: fields.opt_int("uses")?,
        prefix: fields.opt_string_array("prefix")?,
        denies: fields.opt_bool("denies")?.unwrap_or_default(),
    };
    let view_token = fields.opt_string("view_token")?;
    fields.finish()?;
    let (name, request) = (caller.name.clone(), id.clone());
    let given = gateway
        .store
        .write(move |tx| grant::give(tx, &name, &request, &wish, view_token, "api"))
        .await;
    if let Err(failure) = &given {
        audit::refused(&gateway, &caller.name, "api", &id, failure).await;
    }
    Ok(json_response(request_json(&given?).to_string()))
}

async fn send(
    State(gateway): State<Arc<Gateway>>,
    caller: UserCaller,
    Json(body): Json,
) -> Result<Response, Failure> {
    let (request, permission_mode) = decode_send(&body)?;
    let sent = gateway
        .store
        .write(move |tx| {
            let letter = delivery::Letter { request, permission_mode, forwards: false };
            delivery::send(tx, &delivery::Sender::person(caller.name), letter)
        })
        .await?;
    Ok(json_response(sent.to_json()))
}

/// The fields of `W-5` without `relay`, and `permission_mode` for the session that the mail
/// creates.
fn decode_send(body: &[u8]) -> Result<(send::Request, Option<PermissionMode>), Failure> {
    let mut fields = Fields::parse(body)?;
    let mode = session::mode_field(&mut fields)?;
    let some = |text: Option<String>| text.filter(|text| !text.is_empty());
    let request = send::Request {
        to: fields.string("to")?,
        cc: fields.opt_string("cc")?.unwrap_or_default(),
        subject: fields.opt_string("subject")?.unwrap_or_default(),
        body: fields.opt_string("body")?.unwrap_or_default(),
        reply_to: some(fields.opt_string("reply_to")?),
        session_alias: some(fields.opt_string("session_alias")?),
        attachment_ids: fields.opt_string_array("attachment_ids")?.unwrap_or_default(),
        relay: None,
    };
    fields.finish()?;
    Ok((request, mode))
}

async fn inbox(
    State(gateway): State<Arc<Gateway>>,
    caller: UserCaller,
    query: Result<Query<InboxQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, Failure> {
    let (status, limit) = InboxQuery::read(query)?;
    let list =
        gateway.store.read(move |db| reading::inbox(db, &caller.name, status, limit)).await?;
    Ok(json_response(list.to_string()))
}

async fn read(
    State(gateway): State<Arc<Gateway>>,
    caller: UserCaller,
    Json(body): Json,
) -> Result<Response, Failure> {
    let ids = mail_ids(&body)?;
    let marked = gateway.store.write(move |tx| delivery::mark_read(tx, &caller.name, &ids)).await?;
    Ok(json_response(json!({ "status": "ok", "marked": marked }).to_string()))
}

async fn mail(
    State(gateway): State<Arc<Gateway>>,
    caller: UserCaller,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let mail = gateway.store.read(move |db| reading::full(db, &caller.name, &id)).await?;
    Ok(json_response(mail.to_string()))
}

async fn thread(
    State(gateway): State<Arc<Gateway>>,
    caller: UserCaller,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let thread = gateway.store.read(move |db| reading::thread(db, &caller.name, &id)).await?;
    Ok(json_response(thread.to_string()))
}

async fn forward(
    State(gateway): State<Arc<Gateway>>,
    caller: UserCaller,
    Path(id): Path<String>,
    Json(body): Json,
) -> Result<Response, Failure> {
    let forward = forward_body(id, &body)?;
    let sender = delivery::Sender::person(caller.name);
    let sent = gateway.store.write(move |tx| delivery::forward(tx, &sender, forward)).await?;
    Ok(json_response(sent.to_json()))
}

async fn upload(
    State(gateway): State<Arc<Gateway>>,
    caller: UserCaller,
    request: axum::extract::Request,
) -> Result<Response, Failure> {
    attachment::upload(&gateway, caller.name, request).await
}

async fn download(
    State(gateway): State<Arc<Gateway>>,
    caller: UserCaller,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    attachment::download(&gateway, caller.name, id).await
}

async fn events(
    State(gateway): State<Arc<Gateway>>,
    caller: UserCaller,
    Extension(Connection(cut)): Extension<Connection>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    stream::open(&gateway, caller.name, caller.by, &headers, cut).await
}

fn bad_query(known: &str) -> Failure {
    Failure::bad_request(said!("查询参数只能是 {known}", "query parameters may be {known}"))
}
