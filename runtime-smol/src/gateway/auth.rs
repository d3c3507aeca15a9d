//! Who calls: an agent by its key or the shared secret, a person by a user key or a cookie.
//!
//! | credential | agent routes | human routes |
//! |---|---|---|
//! | agent key (`Authorization: Bearer`) | yes | 403 |
//! | `X-Agent-Secret` + `X-Agent-Name` | yes | 403 |
//! | user key (`Authorization: Bearer`) | 403 | yes |
//! | cookie | 401 | yes, with the origin check on every state change |
//! | nothing, unknown, revoked, used up | 401 | 401 |
//!
//! A request that shows an agent credential beside a valid cookie is refused on human routes too:
//! whoever holds the agent's environment gains nothing by adding what it finds.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::header::{AUTHORIZATION, COOKIE, HeaderMap};
use http::request::Parts;
use http::{Method, StatusCode};
use rusqlite::Connection;

use super::accounts::{self, Kind, ValidKey};
use super::failure::{Failure, said};
use super::{Gateway, audit, guard, secret, stamp};

/// The cookie's name. The prefix makes browsers refuse it from another path or a subdomain where
/// they can; on plain HTTP the `__Host-` prefix is not available.
pub(super) const COOKIE_NAME: &str = "agentmail_login";
/// Longest credential that is looked at, in bytes.
const CREDENTIAL_LIMIT: usize = secret::MAX_TOKEN_LEN;

/// An authenticated agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AgentCaller {
    /// The agent's name.
    pub(super) name: String,
    /// How it showed who it is.
    pub(super) by: Proof,
    /// The person who owns the key; `None` under the shared secret.
    pub(super) owner: Option<String>,
}

/// An authenticated person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UserCaller {
    /// The person's name.
    pub(super) name: String,
    /// How they showed who they are.
    pub(super) by: Proof,
}

/// How a caller showed who they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// An agent or user key with this id.
    Key(String),
    /// A browser cookie with this value.
    Cookie(String),
    /// The shared secret of agents.
    Secret,
}

impl Proof {
    /// Whether it would still be accepted: keys are revoked and run out, cookies are logged out.
    /// Long-lived streams ask.
    pub(super) fn stands(&self, db: &Connection, now: i64) -> Result<bool, Failure> {
        match self {
            Self::Key(id) => accounts::key_stands(db, id, now),
            Self::Cookie(value) => Ok(accounts::cookie_owner(db, value, now)?.is_some()),
            Self::Secret => Ok(true),
        }
    }
}

impl FromRequestParts<Arc<Gateway>> for AgentCaller {
    type Rejection = Failure;

    async fn from_request_parts(
        parts: &mut Parts,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Failure> {
        guard::check_origin(&parts.method, &parts.headers, false)?;
        if let Some(token) = bearer(&parts.headers)? {
            return match use_key(gateway, token).await? {
                Some(key) if key.kind == Kind::Agent => {
                    Ok(Self { name: key.subject, by: Proof::Key(key.id), owner: Some(key.owner) })
                }
                Some(_) => Err(wrong_kind(said!(
                    "用户密钥不能用于 Agent 接口",
                    "a user key does not open agent endpoints"
                ))
                .suggest(said!(
                    "请用管理员签发的 Agent 密钥（zcode-mail agent-key create）",
                    "use an agent key (zcode-mail agent-key create)"
                ))),
                None => Err(bad_key()),
            };
        }
        if let Some(shown) = text(&parts.headers, "x-agent-secret") {
            return by_secret(gateway, shown, text(&parts.headers, "x-agent-name")).await;
        }
        Err(unauthorized(said!("缺少 Agent 密钥", "an agent key is missing")).suggest(said!(
            "带上 Authorization: Bearer <Agent 密钥>；密钥用 zcode-mail agent-key create 签发",
            "send Authorization: Bearer <agent key>; zcode-mail agent-key create makes one"
        )))
    }
}

impl FromRequestParts<Arc<Gateway>> for UserCaller {
    type Rejection = Failure;

    async fn from_request_parts(
        parts: &mut Parts,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Failure> {
        let caller = user(gateway, &parts.method, &parts.headers).await;
        if let Err(failure) = &caller
            && failure.status == StatusCode::FORBIDDEN
        {
            audit::refused(gateway, "", "api", parts.uri.path(), failure).await;
        }
        caller
    }
}

/// An agent or a person, for the few places that both may see.
pub(super) struct AnyCaller(pub(super) String);

impl FromRequestParts<Arc<Gateway>> for AnyCaller {
    type Rejection = Failure;

    async fn from_request_parts(
        parts: &mut Parts,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Failure> {
        // A cookie alone is a person; everything else tells by its key.
        if !parts.headers.contains_key(AUTHORIZATION) && cookie(&parts.headers).is_some() {
            return Ok(Self(user(gateway, &parts.method, &parts.headers).await?.name));
        }
        match AgentCaller::from_request_parts(parts, gateway).await {
            Err(failure) if failure.status == StatusCode::FORBIDDEN => {
                Ok(Self(user(gateway, &parts.method, &parts.headers).await?.name))
            }
            other => Ok(Self(other?.name)),
        }
    }
}

/// The person behind a request.
///
/// # Errors
///
/// 401 without a good credential, 403 with an agent's credential or from another origin.
pub(super) async fn user(
    gateway: &Gateway,
    method: &Method,
    headers: &HeaderMap,
) -> Result<UserCaller, Failure> {
    if headers.contains_key("x-agent-secret") {
        return Err(agent_on_human_route());
    }
    if let Some(token) = bearer(headers)? {
        guard::check_origin(method, headers, false)?;
        return match use_key(gateway, token).await? {
            Some(key) if key.kind == Kind::User => {
                Ok(UserCaller { name: key.subject, by: Proof::Key(key.id) })
            }
            Some(_) => Err(agent_on_human_route()),
            None => Err(bad_key()),
        };
    }
    let Some(cookie) = cookie(headers) else { return Err(not_logged_in()) };
    guard::check_origin(method, headers, true)?;
    let value = cookie.to_owned();
    let owner = gateway
        .store
        .read(move |db| {
            Ok(accounts::cookie_owner(db, &value, stamp::now())?.map(|name| (name, value)))
        })
        .await?;
    let (name, value) = owner.ok_or_else(not_logged_in)?;
    Ok(UserCaller { name, by: Proof::Cookie(value) })
}

/// The login cookie's value.
pub(super) fn cookie(headers: &HeaderMap) -> Option<&str> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(name, value)| *name == COOKIE_NAME && value.len() <= CREDENTIAL_LIMIT)
        .map(|(_, value)| value)
}

/// The refusal of a browser or program that is not logged in.
pub(super) fn not_logged_in() -> Failure {
    unauthorized(said!("未登录", "not logged in")).suggest(said!(
        "打开 /login 登录，或带上 Authorization: Bearer <用户密钥>",
        "log in at /login, or send Authorization: Bearer <user key>"
    ))
}

async fn use_key(gateway: &Gateway, token: String) -> Result<Option<ValidKey>, Failure> {
    let found = gateway.store.read(move |db| accounts::find_key(db, &token, stamp::now())).await?;
    let Some(key) = found else { return Ok(None) };
    if !key.one_time {
        return Ok(Some(key));
    }
    let id = key.id.clone();
    let first = gateway.store.write(move |tx| accounts::consume_key(tx, &id)).await?;
    Ok(first.then_some(key))
}

async fn by_secret(
    gateway: &Gateway,
    shown: String,
    name: Option<String>,
) -> Result<AgentCaller, Failure> {
    let right = gateway.agent_secret.as_ref().is_some_and(|own| secret::same(own.expose(), &shown));
    if !right {
        return Err(unauthorized(said!(
            "X-Agent-Secret 不对，或网关没有设置 AGENTMAIL_AGENT_SECRET",
            "X-Agent-Secret is wrong, or the gateway runs without AGENTMAIL_AGENT_SECRET"
        ))
        .suggest(said!("改用 Agent 密钥", "use an agent key")));
    }
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Err(unauthorized(said!(
            "带 X-Agent-Secret 时须同时带 X-Agent-Name，说明是哪个 Agent",
            "with X-Agent-Secret, X-Agent-Name must say which agent calls"
        )));
    };
    let wanted = name.clone();
    let kind = gateway.store.read(move |db| accounts::kind_of(db, &wanted)).await?;
    if kind == Some(Kind::User) {
        return Err(wrong_kind(said!(
            "{name} 是人类用户，不能作为 Agent",
            "{name} is a person and cannot act as an agent"
        )));
    }
    Ok(AgentCaller { name, by: Proof::Secret, owner: None })
}

fn bearer(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let token = value
        .to_str()
        .ok()
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim())
        .filter(|token| !token.is_empty() && token.len() <= CREDENTIAL_LIMIT);
    match token {
        Some(token) if values.next().is_none() => Ok(Some(token.to_owned())),
        _ => Err(unauthorized(said!(
            "Authorization 头须恰好是一个 Bearer <密钥>",
            "the Authorization header must be exactly one Bearer <key>"
        ))),
    }
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    Some(headers.get(name)?.to_str().unwrap_or_default().trim().to_owned())
}

fn unauthorized(message: super::failure::Said) -> Failure {
    Failure::new(StatusCode::UNAUTHORIZED, message)
}

fn wrong_kind(message: super::failure::Said) -> Failure {
    Failure::new(StatusCode::FORBIDDEN, message)
}

fn bad_key() -> Failure {
    unauthorized(said!(
        "密钥无效：未登记、已撤销、已过期或一次性密钥已用过",
        "the key is not good: unknown, revoked, expired, or a one-time key already used"
    ))
    .suggest(said!(
        "停止重试；请管理员登记或重新签发密钥",
        "stop retrying; ask an administrator to register or reissue the key"
    ))
}

fn agent_on_human_route() -> Failure {
    wrong_kind(said!(
        "Agent 凭证不能用于人的接口：Agent 不能批准自己",
        "agent credentials do not open human endpoints: an agent cannot approve itself"
    ))
    .suggest(said!(
        "请由人登录网关页面，或用用户密钥",
        "let a person log in to the gateway's page, or use a user key"
    ))
}
