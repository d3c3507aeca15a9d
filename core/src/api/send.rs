//! `POST /mail/send` (`W-5`).
//!
//! A `relay` mail costs no budget and is idempotent by `relay_key`, which the platform makes; a
//! mail that the model sends on its own never carries one (`W-5.1`, `W-5.3`, `N-5`), so the two
//! are different values of one type here.

use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;

use super::ApiError;
use super::permission::relay_key_field;
use crate::http::{self, Outcome};
use crate::json::Node;
use crate::strict::{Fields, Invalid};

/// The path below the API prefix.
pub const PATH: &str = "/mail/send";

/// A mail to send.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Request {
    /// A bare name or a three-part address.
    pub to: String,
    /// More addresses, separated by `,`, `;` or white space; empty sends none.
    #[serde(skip_serializing_if = "super::is_empty")]
    pub cc: String,
    /// The subject.
    pub subject: String,
    /// The text, Markdown.
    pub body: String,
    /// The mail that this one answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// A name for the session, honoured only when the mail creates one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_alias: Option<String>,
    /// Uploaded files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachment_ids: Vec<String>,
    /// What the bridge sends on its own account; `None` for the model's own mails.
    #[serde(flatten)]
    pub relay: Option<Relay>,
}

/// Why the bridge sends a mail on its own account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Relay {
    /// The kind.
    #[serde(rename = "relay")]
    pub kind: RelayKind,
    /// The platform's stable id, clamped ([`crate::relay_key::clamp`]).
    #[serde(rename = "relay_key")]
    pub key: String,
}

/// The two kinds that the contract allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RelayKind {
    /// A permission question, as older clients send it.
    Permission,
    /// The last text of a turn, or a failure report.
    Summary,
}

/// A mail that the gateway took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// The mail; a repeated relay may come without.
    pub mail_id: Option<String>,
    /// Its session.
    pub session_id: Option<String>,
    /// The name by which the session can be addressed.
    pub session_alias: Option<String>,
    /// Rounds left in the session.
    pub budget_remaining: Option<i64>,
    /// Rounds of the session in all; zero is unlimited.
    pub budget_max: Option<i64>,
    /// The alias that a rename marker in the body proposed, as the gateway normalised it
    /// (`T-13.4`).
    pub rename_proposed: Option<String>,
    /// The relay key was sent before and nothing new was sent (`W-5.2`). A success.
    pub duplicate: bool,
}

impl Request {
    /// The exchange.
    #[must_use]
    pub fn request(&self) -> http::Request {
        http::Request::post(PATH, super::encode(self))
    }

    /// Reads the reply.
    ///
    /// # Errors
    /// [`ApiError`]: 403 the budget is used up, 404 the alias does not exist (never retried with
    /// `.new`, `N-8`), 429 too many new sessions. Only a relay may be sent again after a temporary
    /// failure.
    pub fn parse(outcome: Outcome<'_>) -> Result<Sent, ApiError> {
        let body = super::read(outcome)?;
        Ok(Sent {
            mail_id: super::mail_id(&body),
            session_id: super::session_id(&body),
            session_alias: body.owned(&["session_alias"]),
            budget_remaining: body.int("budget_remaining"),
            budget_max: body.int("budget_max"),
            rename_proposed: body.owned(&["rename_proposed"]),
            duplicate: body.get("status").and_then(Node::as_str) == Some("duplicate_relay"),
        })
    }

    /// Decodes a request body on the gateway's side.
    ///
    /// # Errors
    /// [`Invalid`] names the field: a `relay` outside the white list, one without a key, a key
    /// above [`crate::relay_key::LIMIT`] bytes.
    pub fn decode(body: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::parse(body)?;
        let to = fields.string("to")?;
        let some = |text: Option<String>| text.filter(|text| !text.is_empty());
        let request = Self {
            to,
            cc: fields.opt_string("cc")?.unwrap_or_default(),
            subject: fields.opt_string("subject")?.unwrap_or_default(),
            body: fields.opt_string("body")?.unwrap_or_default(),
            reply_to: some(fields.opt_string("reply_to")?),
            session_alias: some(fields.opt_string("session_alias")?),
            attachment_ids: fields.opt_string_array("attachment_ids")?.unwrap_or_default(),
            relay: relay(&mut fields)?,
        };
        fields.finish()?;
        Ok(request)
    }
}

fn relay(fields: &mut Fields) -> Result<Option<Relay>, Invalid> {
    let kind = match fields.opt_string("relay")?.as_deref().unwrap_or_default() {
        "" => None,
        "permission" => Some(RelayKind::Permission),
        "summary" => Some(RelayKind::Summary),
        _ => {
            let rule = ("只能是 permission 或 summary", "may only be permission or summary");
            return Err(fields.forbidden("relay", rule));
        }
    };
    let key = relay_key_field(fields)?;
    match kind {
        Some(_) if key.is_empty() => {
            let rule = ("在 relay 非空时必填", "is required together with relay");
            Err(fields.forbidden("relay_key", rule))
        }
        kind => Ok(kind.map(|kind| Relay { kind, key })),
    }
}

impl Sent {
    /// The reply body as the gateway writes it.
    #[must_use]
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Body<'b> {
            #[serde(skip_serializing_if = "Option::is_none")]
            status: Option<&'static str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            mail_id: Option<&'b str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            session_id: Option<&'b str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            session_alias: Option<&'b str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            budget_remaining: Option<i64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            budget_max: Option<i64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            rename_proposed: Option<&'b str>,
        }
        super::encode_text(&Body {
            status: self.duplicate.then_some("duplicate_relay"),
            mail_id: self.mail_id.as_deref(),
            session_id: self.session_id.as_deref(),
            session_alias: self.session_alias.as_deref(),
            budget_remaining: self.budget_remaining,
            budget_max: self.budget_max,
            rename_proposed: self.rename_proposed.as_deref(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Reply;
    use alloc::format;
    use alloc::string::ToString as _;

    fn full() -> Request {
        Request {
            to: "admin".into(),
            cc: "ops@root, sre@root".into(),
            subject: "Re: 重构导入路径".into(),
            body: "已完成。".into(),
            reply_to: Some("m".into()),
            session_alias: Some("refactor".into()),
            attachment_ids: ["a".into()].into(),
            relay: Some(Relay { kind: RelayKind::Summary, key: "msg_abc123".into() }),
        }
    }

    #[test]
    fn the_body_is_the_contracts_example() {
        let body = full().request().body.unwrap();
        assert_eq!(
            core::str::from_utf8(&body).unwrap(),
            r#"{"to":"admin","cc":"ops@root, sre@root","subject":"Re: 重构导入路径","body":"已完成。","reply_to":"m","session_alias":"refactor","attachment_ids":["a"],"relay":"summary","relay_key":"msg_abc123"}"#
        );
        assert_eq!(Request::decode(&body), Ok(full()));
    }

    #[test]
    fn what_is_not_used_is_not_sent() {
        let request =
            Request { to: "a".into(), subject: "s".into(), body: "b".into(), ..Request::default() };
        let body = request.request().body.unwrap();
        assert_eq!(core::str::from_utf8(&body).unwrap(), r#"{"to":"a","subject":"s","body":"b"}"#);
        assert_eq!(Request::decode(&body), Ok(request));
    }

    #[test]
    fn a_relay_is_one_of_two_and_has_a_key() {
        let decode = |rest: &str| Request::decode(format!(r#"{{"to":"a"{rest}}}"#).as_bytes());
        assert_eq!(decode(r#","relay":"""#).unwrap().relay, None);
        let error = decode(r#","relay":"x","relay_key":"k""#).unwrap_err();
        assert_eq!(error.to_string(), "relay 只能是 permission 或 summary");
        let error = decode(r#","relay":"summary""#).unwrap_err();
        assert_eq!(error.to_string(), "relay_key 在 relay 非空时必填");
        let key = "k".repeat(161);
        assert!(decode(&format!(r#","relay":"summary","relay_key":"{key}""#)).is_err());
        assert!(decode(&format!(r#","relay":"summary","relay_key":"{}""#, &key[1..])).is_ok());
        assert_eq!(
            decode(r#","propose_alias":"x""#).unwrap_err().to_string(),
            "未知字段 \"propose_alias\""
        );
    }

    #[test]
    fn a_repeated_relay_is_a_success() {
        let parse =
            |body: &str| Request::parse(Outcome::Reply(Reply::json(200, body.as_bytes()))).unwrap();
        assert!(parse(r#"{"status":"duplicate_relay"}"#).duplicate);
        let sent = Sent {
            mail_id: Some("m".into()),
            session_id: Some("s".into()),
            session_alias: Some("refactor".into()),
            budget_remaining: Some(18),
            budget_max: Some(20),
            rename_proposed: Some("session-new".into()),
            duplicate: false,
        };
        assert_eq!(parse(&sent.to_json()), sent);
        let text = parse(r#"{"id":"m","session":{"id":"s"},"budget_max":"0"}"#);
        assert_eq!((text.mail_id.as_deref(), text.budget_max), (Some("m"), Some(0)));
        assert_eq!(text.session_id.as_deref(), Some("s"));
    }
}
