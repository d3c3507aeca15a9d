//! The permission endpoints: ask (`W-6`, `B-8`), and this project's own two extensions, look and
//! withdraw. The bridge works against gateways that do not have the extensions.
//!
//! The decider is never named by the client: the gateway finds the human who owns the session, and
//! an agent could otherwise be asked about its own command (`B-8.6`, `N-13`).

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;

use super::ApiError;
use crate::http::{self, Outcome, push_segment};
use crate::json::Node;
use crate::relay_key;
use crate::strict::{Fields, Invalid};

/// The path of [`Ask`] below the API prefix.
pub const PATH: &str = "/permission/request";
/// The options of a request that names none (`W-6`).
pub const DEFAULT_OPTIONS: [&str; 2] = ["同意", "拒绝"];

/// A question to a human: `POST /permission/request`. Idempotent by `relay_key`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ask {
    /// The question.
    pub question: String,
    /// The answers to choose from, in the order shown; empty leaves the choice to the gateway,
    /// which then offers [`DEFAULT_OPTIONS`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// What the human needs to judge: tool, complete arguments, task and who assigned it
    /// (`B-8.4`).
    pub context: String,
    /// The mail session; `None` in interactive use, where no mail session exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The idempotency key, already clamped ([`relay_key::clamp`]). Empty only on the gateway's
    /// side, when another client sent none.
    #[serde(skip_serializing_if = "super::is_empty")]
    pub relay_key: String,
}

/// What the gateway knows about a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The request's id, for [`Look`] and [`Withdraw`]; only gateways with the extensions send it.
    pub request_id: Option<String>,
    /// The mail in which the human reads the question.
    pub mail_id: Option<String>,
    /// The key that the reply is about, if it says so.
    pub relay_key: Option<String>,
    /// How far the question is.
    pub state: AskedState,
}

/// How far a question is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskedState {
    /// Nobody has answered, or the reply does not clearly say that somebody has.
    Pending,
    /// A human has answered.
    Decided(Answer),
    /// The asker took the question back.
    Withdrawn,
    /// The question's time ran out.
    Expired,
}

/// A human's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The chosen option's text; [`crate::decision::Decision::from_text`] gives it a meaning.
    pub decision: String,
    /// What the human added, if anything.
    pub note: Option<String>,
    /// Who decided, if the gateway says so.
    pub decided_by: Option<String>,
}

/// Takes a question back: `POST /permission/{id}/withdraw` (extension).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withdraw {
    /// [`Asked::request_id`].
    pub request_id: String,
}

/// Looks a question up: `GET /permission/{id}` (extension).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// [`Asked::request_id`].
    pub request_id: String,
}

impl Ask {
    /// The exchange.
    #[must_use]
    pub fn request(&self) -> http::Request {
        http::Request::post(PATH, super::encode(self))
    }

    /// Reads the reply; any 2xx means that the question was taken.
    ///
    /// # Errors
    /// [`ApiError::Permanent`] is final: 409 says that nobody can be asked or that the session's
    /// mode forbids asking.
    pub fn parse(outcome: Outcome<'_>) -> Result<Asked, ApiError> {
        Ok(Asked::from_node(&super::read(outcome)?))
    }

    /// Decodes a request body on the gateway's side. A `to` is an unknown field like any other.
    ///
    /// # Errors
    /// [`Invalid`] names the field; a key above [`relay_key::LIMIT`] bytes is
    /// [`Invalid::Forbidden`].
    pub fn decode(body: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::parse(body)?;
        let question = fields.string("question")?;
        let options = fields.opt_string_array("options")?.unwrap_or_default();
        let context = fields.opt_string("context")?.unwrap_or_default();
        let session_id = fields.opt_string("session_id")?.filter(|id| !id.is_empty());
        let relay_key = relay_key_field(&mut fields)?;
        fields.finish()?;
        Ok(Self { question, options, context, session_id, relay_key })
    }

    /// The options to show: those sent, or [`DEFAULT_OPTIONS`].
    #[must_use]
    pub fn shown_options(&self) -> Vec<String> {
        if self.options.is_empty() {
            return DEFAULT_OPTIONS.map(ToOwned::to_owned).to_vec();
        }
        self.options.clone()
    }
}

/// Takes `relay_key` and holds it to the limit (`B-8.2b`: 400 "relay_key 过长（上限 160 字节）").
pub(super) fn relay_key_field(fields: &mut Fields) -> Result<String, Invalid> {
    let key = fields.opt_string("relay_key")?.unwrap_or_default();
    if key.len() > relay_key::LIMIT {
        let rule = ("过长（上限 160 字节）", "is too long (at most 160 bytes)");
        return Err(fields.forbidden("relay_key", rule));
    }
    Ok(key)
}

impl Asked {
    /// Whether this reply may be about the question with `relay_key`: it names that key or none.
    #[must_use]
    pub fn is_about(&self, relay_key: &str) -> bool {
        self.relay_key.as_deref().is_none_or(|key| key == relay_key)
    }

    /// The reply body as the gateway writes it. `repeat` marks the reply to a key that was asked
    /// before (`B-8.3`, `W-5.2`): its status is `duplicate_relay` while nobody has answered.
    #[must_use]
    pub fn to_json(&self, repeat: bool) -> String {
        #[derive(Serialize)]
        struct Body<'b> {
            #[serde(skip_serializing_if = "Option::is_none")]
            request_id: Option<&'b str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            mail_id: Option<&'b str>,
            status: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            relay_key: Option<&'b str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            decision: Option<&'b str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            note: Option<&'b str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            decided_by: Option<&'b str>,
        }
        let (status, answer) = match &self.state {
            AskedState::Pending if repeat => ("duplicate_relay", None),
            AskedState::Pending => ("pending", None),
            AskedState::Decided(answer) if repeat => ("duplicate_relay", Some(answer)),
            AskedState::Decided(answer) => ("decided", Some(answer)),
            AskedState::Withdrawn => ("withdrawn", None),
            AskedState::Expired => ("expired", None),
        };
        super::encode_text(&Body {
            request_id: self.request_id.as_deref(),
            mail_id: self.mail_id.as_deref(),
            status,
            relay_key: self.relay_key.as_deref(),
            decision: answer.map(|answer| answer.decision.as_str()),
            note: answer.and_then(|answer| answer.note.as_deref()),
            decided_by: answer.and_then(|answer| answer.decided_by.as_deref()),
        })
    }

    fn from_node(body: &Node) -> Self {
        Self {
            request_id: body.owned(&["request_id"]),
            mail_id: super::mail_id(body),
            relay_key: body.owned(&["relay_key"]),
            state: state(body),
        }
    }
}

/// Only a reply that says so is decided. `decision` counts under `decided`, `duplicate_relay`,
/// `ok`, or without any status; `result`, a name that envelopes use for other things, only under
/// the first two. A reply that says `pending` or something unknown is pending whatever else it
/// holds.
fn state(body: &Node) -> AskedState {
    let keys: &[&str] = match body.get("status") {
        None => &["decision"],
        Some(Node::String(status)) => match status.as_str() {
            "withdrawn" => return AskedState::Withdrawn,
            "expired" => return AskedState::Expired,
            "decided" | "duplicate_relay" => &["decision", "result"],
            "ok" => &["decision"],
            _ => return AskedState::Pending,
        },
        Some(_) => return AskedState::Pending,
    };
    let Some(decision) = body.owned(keys) else { return AskedState::Pending };
    AskedState::Decided(Answer {
        decision,
        note: body.owned(&["note"]),
        decided_by: body.owned(&["decided_by"]),
    })
}

impl Withdraw {
    /// The exchange.
    #[must_use]
    pub fn request(&self) -> http::Request {
        let mut path = "/permission/".to_owned();
        push_segment(&mut path, &self.request_id);
        path.push_str("/withdraw");
        http::Request::post(&path, b"{}".to_vec())
    }

    /// Reads the reply: the state in which the question is after the withdrawal, which a human may
    /// have decided first.
    ///
    /// # Errors
    /// [`ApiError`]; 404 from gateways without the extension. A withdrawal that fails has no
    /// consequence for the asker.
    pub fn parse(outcome: Outcome<'_>) -> Result<Asked, ApiError> {
        Ask::parse(outcome)
    }
}

impl Look {
    /// The exchange.
    #[must_use]
    pub fn request(&self) -> http::Request {
        let mut path = "/permission/".to_owned();
        push_segment(&mut path, &self.request_id);
        http::Request::get(&path)
    }

    /// Reads the reply.
    ///
    /// # Errors
    /// [`ApiError`]; 404 from gateways without the extension, or for an id of somebody else.
    pub fn parse(outcome: Outcome<'_>) -> Result<Asked, ApiError> {
        Ask::parse(outcome)
    }
}

#[cfg(test)]
mod tests;
