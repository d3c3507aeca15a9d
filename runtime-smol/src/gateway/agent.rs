//! The agent side of the wire (`W-1`): everything here wants an agent's credential.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, Path, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use zcode_mail_core::api::{heartbeat, permission as wire, register, send};

use super::auth::AgentCaller;
use super::body::Json;
use super::failure::{Failure, said};
use super::permission::{self, Asker};
use super::server::Connection;
use super::{Gateway, delivery, log, session, stream};

pub(super) mod mail;
mod presence;

/// The routes of agents.
pub(super) fn routes() -> Router<Arc<Gateway>> {
    Router::new()
        .route("/api/v1/agent/register", post(register))
        .route("/api/v1/agent/heartbeat", post(heartbeat))
        .route("/api/v1/events/stream", get(events))
        .route("/api/v1/mail/send", post(send))
        .route("/api/v1/permission/request", post(ask))
        .route("/api/v1/permission/{id}", get(look))
        .route("/api/v1/permission/{id}/withdraw", post(withdraw))
        .route("/api/v1/sessions/{id}/sync", post(sync))
        .route("/api/v1/mail/inbox", get(mail::inbox))
        .route("/api/v1/mail/read", post(mail::read))
        .route("/api/v1/mail/{id}/forward", post(mail::forward))
        .route("/api/v1/attachments", post(mail::upload))
        .route("/api/v1/attachments/{id}", get(mail::download))
        .route("/api/v1/agent/mail/{id}", get(mail::one))
        .route("/api/v1/agent/mail/{id}/thread", get(mail::thread))
        .route("/api/v1/agent/contacts", get(mail::contacts))
        .route("/api/v1/agent/contacts/suggest", get(mail::suggest))
        .route("/api/v1/agent/sessions/{id}/participants", get(mail::participants))
        .route("/api/v1/agent/models/allowed", get(mail::models))
}

/// A JSON text as a response.
pub(super) fn json(body: String) -> Response {
    let headers = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (StatusCode::OK, headers, body).into_response()
}

async fn register(
    State(gateway): State<Arc<Gateway>>,
    caller: AgentCaller,
    Json(body): Json,
) -> Result<Response, Failure> {
    let request = register::Request::decode(&body)?;
    if request.name != caller.name {
        let (own, asked) = (&caller.name, &request.name);
        return Err(Failure::new(
            StatusCode::FORBIDDEN,
            said!(
                "这把密钥属于 Agent {own}，不能以 {asked} 注册",
                "this key belongs to the agent {own} and cannot register {asked}"
            ),
        )
        .suggest(said!(
            "把 AGENTMAIL_AGENT_NAME 设为 {own}，或为 {asked} 签发自己的密钥",
            "set AGENTMAIL_AGENT_NAME to {own}, or create a key for {asked}"
        )));
    }
    let registered = gateway.store.write(move |tx| presence::register(tx, &request)).await?;
    log::line(format_args!("agent {} registered", caller.name));
    Ok(json(registered.to_json()))
}

async fn heartbeat(
    State(gateway): State<Arc<Gateway>>,
    caller: AgentCaller,
    Json(body): Json,
) -> Result<Response, Failure> {
    let decoded = heartbeat::Request::decode(&body)?;
    let beat = gateway.store.write(move |tx| presence::beat(tx, &caller.name, decoded)).await?;
    Ok(json(beat.to_json()))
}

async fn events(
    State(gateway): State<Arc<Gateway>>,
    caller: AgentCaller,
    Extension(Connection(cut)): Extension<Connection>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    stream::open(&gateway, caller.name, caller.by, &headers, cut).await
}

async fn send(
    State(gateway): State<Arc<Gateway>>,
    caller: AgentCaller,
    Json(body): Json,
) -> Result<Response, Failure> {
    let request = send::Request::decode(&body)?;
    let sent = gateway
        .store
        .write(move |tx| {
            super::accounts::ensure_agent(tx, &caller.name)?;
            let letter = delivery::Letter { request, permission_mode: None, forwards: false };
            delivery::send(tx, &delivery::Sender::agent(caller.name), letter)
        })
        .await?;
    Ok(json(sent.to_json()))
}

async fn ask(
    State(gateway): State<Arc<Gateway>>,
    caller: AgentCaller,
    Json(body): Json,
) -> Result<Response, Failure> {
    let question = wire::Ask::decode(&body)?;
    let asker = Asker { name: caller.name, key_owner: caller.owner };
    let (request, repeat) =
        gateway.store.write(move |tx| permission::ask(tx, &asker, &question)).await?;
    if !repeat {
        let (id, agent, decider) = (&request.id, &request.agent_name, &request.decider);
        log::line(format_args!("request {id} of {agent} waits for {decider}"));
    }
    Ok(json(request.asked().to_json(repeat)))
}

async fn look(
    State(gateway): State<Arc<Gateway>>,
    caller: AgentCaller,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let request = gateway.store.read(move |db| permission::asked_by(db, &caller.name, &id)).await?;
    Ok(json(request.asked().to_json(false)))
}

async fn withdraw(
    State(gateway): State<Arc<Gateway>>,
    caller: AgentCaller,
    Path(id): Path<String>,
    Json(body): Json,
) -> Result<Response, Failure> {
    zcode_mail_core::strict::Fields::parse(&body)?.finish()?;
    let request =
        gateway.store.write(move |tx| permission::withdraw(tx, &caller.name, &id)).await?;
    log::line(format_args!(
        "request {} is {} after a withdrawal",
        request.id,
        request.state.name()
    ));
    Ok(json(request.asked().to_json(false)))
}

async fn sync(
    State(gateway): State<Arc<Gateway>>,
    caller: AgentCaller,
    Path(id): Path<String>,
    Json(body): Json,
) -> Result<Response, Failure> {
    let mut fields = zcode_mail_core::strict::Fields::parse(&body)?;
    let some = |text: Option<String>| text.filter(|text| !text.is_empty());
    let alias = some(fields.opt_string("alias")?);
    let title = some(fields.opt_string("title")?);
    fields.finish()?;
    let named = gateway
        .store
        .write(move |tx| session::sync(tx, &caller.name, &id, alias.as_deref(), title.as_deref()))
        .await?;
    Ok(json(named.to_string()))
}
