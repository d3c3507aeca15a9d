//! The gateway's endpoints (`W-1`), one file each.
//!
//! Every exchange is plain data: a struct with `request()` that says what to send, and `parse()`
//! that reads what came back. Writers send only the fields that the contract names, because strict
//! gateways answer 400 to any other and a 400 is final. Readers are tolerant (wire rules TP-1 to
//! TP-10). The same structs decode strictly on the gateway's side, so that writer and reader of a
//! body stand in one file.
//!
//! ```text
//! Outcome ──► 2xx with a JSON object ──────────────► Ok(reply)
//!         ──► 4xx but 408 and 429 ─────────────────► ApiError::Permanent
//!         ──► any other status, HTML or broken JSON ► ApiError::Temporary
//!         └─► no HTTP reply ───────────────────────► ApiError::Temporary
//! ```
//!
//! Nobody parses prose to tell permanent from temporary: the status alone decides (TP-8).

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::Serialize;

use crate::http::{Fault, Outcome, Reply, is_permanent};
use crate::json::{self, Node};

pub mod attachment;
pub mod contacts;
mod errors;
pub mod events;
pub mod forward;
pub mod heartbeat;
pub mod inbox;
mod listing;
pub mod mail;
pub mod mark_read;
pub mod participants;
pub mod permission;
pub mod register;
pub mod send;
pub mod suggest;
pub mod thread;

pub use errors::{DEFAULT_RETRY_AFTER_S, MESSAGE_LIMIT, error_body};

/// A request that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiError {
    /// Repeating the request cannot help (`B-8.2b`): a 4xx other than 408 and 429.
    Permanent {
        /// The HTTP status.
        status: u16,
        /// What the gateway said, at most [`MESSAGE_LIMIT`] characters; never empty.
        message: String,
        /// What it advises, if anything.
        suggestion: Option<String>,
    },
    /// A later attempt may succeed.
    Temporary {
        /// What kind of failure it is.
        cause: TemporaryCause,
        /// What happened, at most [`MESSAGE_LIMIT`] characters; never empty.
        message: String,
        /// Seconds to wait before the next attempt; always present for 429, otherwise only when
        /// the reply names them.
        retry_after_s: Option<u64>,
    },
}

/// Why a failure is temporary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TemporaryCause {
    /// A status that promises nothing about the next attempt: 408, 429, 5xx, redirects.
    Status(u16),
    /// There was no HTTP reply.
    Fault(Fault),
    /// A success status with HTML or with something that is no JSON object (TP-9): a login page or
    /// a proxy answered in the gateway's place.
    NotTheGateway,
}

impl ApiError {
    /// Whether repeating the request can never help.
    #[must_use]
    pub const fn is_permanent(&self) -> bool {
        matches!(self, Self::Permanent { .. })
    }

    /// The HTTP status, if there was a reply that failed.
    #[must_use]
    pub const fn status(&self) -> Option<u16> {
        match self {
            Self::Permanent { status, .. }
            | Self::Temporary { cause: TemporaryCause::Status(status), .. } => Some(*status),
            Self::Temporary { .. } => None,
        }
    }

    /// What happened, in the gateway's own words where it gave any.
    #[must_use]
    pub fn message(&self) -> &str {
        match self {
            Self::Permanent { message, .. } | Self::Temporary { message, .. } => message,
        }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())?;
        match self {
            Self::Permanent { status, suggestion: Some(advice), .. } => {
                write!(f, " (HTTP {status}; {advice})")
            }
            Self::Permanent { status, .. }
            | Self::Temporary { cause: TemporaryCause::Status(status), .. } => {
                write!(f, " (HTTP {status})")
            }
            Self::Temporary { .. } => Ok(()),
        }
    }
}

impl core::error::Error for ApiError {}

/// The JSON object of a successful reply, or the classified failure.
fn read(outcome: Outcome<'_>) -> Result<Node, ApiError> {
    let reply = succeeded(outcome)?;
    // 204 and 205 have no body by definition; it stands for an object without fields.
    if matches!(reply.status, 204 | 205) && reply.body.is_empty() {
        return Ok(Node::Object(Vec::new()));
    }
    match json::parse(reply.body) {
        Ok(node @ Node::Object(_)) if !errors::is_html(&reply) => Ok(node),
        _ => Err(not_the_gateway(&reply)),
    }
}

/// A 2xx reply, or the classified failure.
fn succeeded(outcome: Outcome<'_>) -> Result<Reply<'_>, ApiError> {
    match outcome {
        Outcome::Reply(reply) if (200..300).contains(&reply.status) => Ok(reply),
        Outcome::Reply(reply) => Err(errors::classify(&reply)),
        Outcome::Failed(fault) => Err(ApiError::Temporary {
            cause: TemporaryCause::Fault(fault),
            message: format!("{fault}"),
            retry_after_s: None,
        }),
    }
}

fn not_the_gateway(reply: &Reply<'_>) -> ApiError {
    let what = if errors::is_html(reply) {
        "an HTML page"
    } else if reply.body.is_empty() {
        "an empty body"
    } else {
        "something that is not the expected JSON"
    };
    ApiError::Temporary {
        cause: TemporaryCause::NotTheGateway,
        message: format!(
            "HTTP {} with {what}: this is not an AgentMail gateway; check AGENTMAIL_GATEWAY_URL \
             and any proxy in between",
            reply.status
        ),
        retry_after_s: None,
    }
}

/// Writes a body. Strings, numbers and lists of them always have a JSON form, so the fallback
/// never happens; an empty body would be refused by the gateway rather than misread.
fn encode<T: Serialize>(body: &T) -> Vec<u8> {
    serde_json::to_vec(body).unwrap_or_default()
}

/// As [`encode`], as text.
fn encode_text<T: Serialize>(body: &T) -> String {
    serde_json::to_string(body).unwrap_or_default()
}

/// A mail id (TP-3).
fn mail_id(node: &Node) -> Option<String> {
    node.owned(&["mail_id", "id"])
}

/// A session id (TP-3): `session_id`, else `session.id`.
fn session_id(node: &Node) -> Option<String> {
    node.owned(&["session_id"]).or_else(|| node.get("session")?.text(&["id"]).map(str::to_owned))
}

/// For `skip_serializing_if`.
fn is_empty(text: &str) -> bool {
    text.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_json_object_under_2xx_is_the_gateway() {
        for (status, body, ok) in [
            (200, "{}", true),
            (201, "{\"a\":1}", true),
            (204, "", true),
            (200, "", false),
            (204, "<html>", false),
            (200, "<!doctype html>", false),
            (200, "[]", false),
            (200, "\"ok\"", false),
            (200, "{\"a\":", false),
            (200, "{} trailing", false),
            (200, "{\"decision\":\"拒绝\",\"decision\":\"同意\"}", false),
        ] {
            let result = read(Outcome::Reply(Reply::json(status, body.as_bytes())));
            assert_eq!(result.is_ok(), ok, "{status} {body}");
            if let Err(error) = result {
                let ApiError::Temporary { cause, .. } = error else { panic!("{body}") };
                assert_eq!(cause, TemporaryCause::NotTheGateway);
            }
        }
        let page =
            Reply { content_type: Some("Text/HTML; charset=utf-8"), ..Reply::json(200, b"{}") };
        assert!(read(Outcome::Reply(page)).is_err());
    }

    #[test]
    fn a_fault_is_temporary_and_says_which() {
        let error = read(Outcome::Failed(Fault::Unreachable)).unwrap_err();
        assert!(!error.is_permanent());
        assert_eq!(error.status(), None);
        assert_eq!(format!("{error}"), format!("{}", Fault::Unreachable));
    }
}
