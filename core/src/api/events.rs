//! `GET /events/stream` and the three events that an agent receives (`W-4`, section 六).
//!
//! [`parse`] reads one event of the stream tolerantly; `to_json` writes a payload as the gateway
//! does, with every field of `W-4` present. Events whose name is unknown are
//! [`AgentEvent::Unknown`] and no error: gateways may add some.
//!
//! A decision event is data, not an approval: whoever waits compares `relay_key` with the key that
//! it sent, and [`crate::decision`] reads the text.

use alloc::string::String;
use core::fmt;

use serde::Serialize;

use crate::api::ApiError;
use crate::http::{Outcome, Request};
use crate::json::{self, Node};
use crate::mode::{Enforcement, PermissionMode};

/// The path of the stream below the API prefix.
pub const PATH: &str = "/events/stream";
/// The event name of [`NewMail`].
pub const NEW_MAIL: &str = "new_mail";
/// The event name of [`PermissionDecision`].
pub const PERMISSION_DECISION: &str = "permission_decision";
/// The event name of [`AgentEvent::SessionArchived`].
pub const SESSION_ARCHIVED: &str = "session_archived";
/// [`NewMail::mail_type`] of an ordinary mail, the only type that starts work (`B-7.5`).
pub const NORMAL: &str = "normal";

/// Opens the stream. `last_event_id` belongs to reconnects only (`B-1.4`, `N-11`): on a first
/// connection, and after the base URL changed, it would hit somebody else's history.
#[must_use]
pub fn stream(last_event_id: Option<&str>) -> Request {
    let mut request = Request::get(PATH);
    request.last_event_id = last_event_id.filter(|id| !id.is_empty()).map(Into::into);
    request
}

/// Reads the head of a stream: open is a 2xx with the type `text/event-stream`.
///
/// # Errors
/// [`ApiError`]; a 2xx of another type is a login page or a proxy and temporary (TP-9).
pub fn opened(head: Outcome<'_>) -> Result<(), ApiError> {
    let reply = super::succeeded(head)?;
    let kind = reply.content_type.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    if kind.trim().eq_ignore_ascii_case("text/event-stream") {
        return Ok(());
    }
    Err(super::not_the_gateway(&reply))
}

/// One event of an agent's stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentEvent {
    /// A mail arrived.
    NewMail(NewMail),
    /// A human answered a question.
    PermissionDecision(PermissionDecision),
    /// A mail session ended: whatever is kept for it can go.
    SessionArchived {
        /// The mail session.
        session_id: String,
    },
    /// An event that this program does not know.
    Unknown,
}

/// A mail that arrived. The text itself is read with a tool, so it is not here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewMail {
    /// The mail.
    pub mail_id: String,
    /// Its mail session.
    pub session_id: String,
    /// The sender's name.
    pub from_name: String,
    /// The subject.
    pub subject: String,
    /// [`NORMAL`], `permission_request`, or another type; absent counts as normal.
    pub mail_type: String,
    /// `to` or `cc`.
    pub role: String,
    /// The path part of this recipient's own address.
    pub to_workspace: String,
    /// The name by which the session can be addressed.
    pub session_alias: String,
    /// The address that answers into this session. Used as it stands, never rebuilt.
    pub reply_address: String,
    /// The address by which others should call this recipient.
    pub self_address: String,
    /// The platform's own session to deliver into; empty for none (`B-3.7`).
    pub platform_session_id: String,
    /// The mail that this one answers; empty at the root of a thread.
    pub in_reply_to: String,
    /// Whether the sender is a human. Three-valued (TP-4): only a literal `false` stops the
    /// automatic reply (`B-5.6`), only a literal `true` announces it (`B-3.4`).
    pub from_human: Option<bool>,
    /// The session's mode.
    pub permission_mode: PermissionMode,
    /// What the platform can do about the mode.
    pub permission_enforcement: Enforcement,
}

/// A human's answer to a question. A field that is absent, empty or no text is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PermissionDecision {
    /// The mail that asked.
    pub mail_id: Option<String>,
    /// The mail that answers.
    pub decision_mail_id: Option<String>,
    /// The mail session.
    pub session_id: Option<String>,
    /// The key of the question exactly as it was sent, that is, after clamping.
    pub relay_key: Option<String>,
    /// `permission`.
    pub relay_kind: Option<String>,
    /// Who decided.
    pub decided_by: Option<String>,
    /// What the human added.
    pub note: Option<String>,
    /// The chosen option's text; `None` is no approval.
    pub decision: Option<String>,
    /// The digest in the context that was decided about ([`crate::digest`]), in hexadecimal. An
    /// addition of our gateway: `None` when the event has none.
    pub digest: Option<String>,
}

/// A known event whose data cannot be used. The event's id still counts as seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadEvent {
    /// The event's name.
    pub event: &'static str,
    /// What is wrong with it.
    pub problem: EventProblem,
}

/// What is wrong with an event's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventProblem {
    /// Not one JSON object, or one with a key twice.
    NotAnObject,
    /// The id that identifies what the event is about is missing.
    NoId,
}

impl fmt::Display for BadEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = match self.problem {
            EventProblem::NotAnObject => "its data is not one JSON object",
            EventProblem::NoId => "its data names no id",
        };
        write!(f, "dropped a {} event: {problem}", self.event)
    }
}

impl core::error::Error for BadEvent {}

/// Reads one event.
///
/// # Errors
/// [`BadEvent`] for a known event with unusable data: drop it, log one line, go on.
pub fn parse(name: &str, data: &str) -> Result<AgentEvent, BadEvent> {
    let (event, read): (&'static str, fn(&Node) -> Option<AgentEvent>) = match name {
        NEW_MAIL => (NEW_MAIL, |node| NewMail::from_node(node).map(AgentEvent::NewMail)),
        PERMISSION_DECISION => (PERMISSION_DECISION, |node| {
            Some(AgentEvent::PermissionDecision(PermissionDecision::from_node(node)))
        }),
        SESSION_ARCHIVED => (SESSION_ARCHIVED, |node| {
            let session_id = super::session_id(node).or_else(|| node.owned(&["id"]))?;
            Some(AgentEvent::SessionArchived { session_id })
        }),
        _ => return Ok(AgentEvent::Unknown),
    };
    match json::parse(data.as_bytes()) {
        Ok(node @ Node::Object(_)) => {
            read(&node).ok_or(BadEvent { event, problem: EventProblem::NoId })
        }
        _ => Err(BadEvent { event, problem: EventProblem::NotAnObject }),
    }
}

impl NewMail {
    /// The payload as the gateway writes it: every field of `W-4`, in its order.
    #[must_use]
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Body<'b> {
            mail_id: &'b str,
            session_id: &'b str,
            from_name: &'b str,
            subject: &'b str,
            mail_type: &'b str,
            role: &'b str,
            to_workspace: &'b str,
            session_alias: &'b str,
            reply_address: &'b str,
            self_address: &'b str,
            platform_session_id: &'b str,
            in_reply_to: &'b str,
            from_human: Option<bool>,
            permission_mode: &'static str,
            permission_enforcement: &'static str,
        }
        super::encode_text(&Body {
            mail_id: &self.mail_id,
            session_id: &self.session_id,
            from_name: &self.from_name,
            subject: &self.subject,
            mail_type: &self.mail_type,
            role: &self.role,
            to_workspace: &self.to_workspace,
            session_alias: &self.session_alias,
            reply_address: &self.reply_address,
            self_address: &self.self_address,
            platform_session_id: &self.platform_session_id,
            in_reply_to: &self.in_reply_to,
            from_human: self.from_human,
            permission_mode: self.permission_mode.as_str(),
            permission_enforcement: self.permission_enforcement.as_str(),
        })
    }

    fn from_node(node: &Node) -> Option<Self> {
        let text = |keys: &[&str]| node.owned(keys).unwrap_or_default();
        let word = |key| node.text(&[key]).unwrap_or_default();
        Some(Self {
            mail_id: super::mail_id(node)?,
            session_id: super::session_id(node).unwrap_or_default(),
            from_name: text(&["from_name"]),
            subject: text(&["subject"]),
            mail_type: node.owned(&["mail_type"]).unwrap_or_else(|| NORMAL.into()),
            role: node.owned(&["role"]).unwrap_or_else(|| "to".into()),
            to_workspace: text(&["to_workspace"]),
            session_alias: text(&["session_alias"]),
            reply_address: text(&["reply_address"]),
            self_address: text(&["self_address"]),
            platform_session_id: word("platform_session_id").trim().into(),
            in_reply_to: text(&["in_reply_to", "parent_mail_id", "reply_to"]),
            from_human: match node.get("from_human") {
                Some(Node::Bool(value)) => Some(*value),
                _ => None,
            },
            permission_mode: PermissionMode::from_wire(word("permission_mode")),
            permission_enforcement: Enforcement::from_wire(word("permission_enforcement")),
        })
    }
}

impl PermissionDecision {
    /// The payload as the gateway writes it: every field of `W-4`, in its order.
    #[must_use]
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Body<'b> {
            mail_id: &'b str,
            decision_mail_id: &'b str,
            decision: &'b str,
            note: &'b str,
            decided_by: &'b str,
            session_id: &'b str,
            relay_key: &'b str,
            relay_kind: &'b str,
            #[serde(skip_serializing_if = "Option::is_none")]
            digest: Option<&'b str>,
        }
        super::encode_text(&Body {
            mail_id: self.mail_id.as_deref().unwrap_or_default(),
            decision_mail_id: self.decision_mail_id.as_deref().unwrap_or_default(),
            decision: self.decision.as_deref().unwrap_or_default(),
            note: self.note.as_deref().unwrap_or_default(),
            decided_by: self.decided_by.as_deref().unwrap_or_default(),
            session_id: self.session_id.as_deref().unwrap_or_default(),
            relay_key: self.relay_key.as_deref().unwrap_or_default(),
            relay_kind: self.relay_kind.as_deref().unwrap_or_default(),
            digest: self.digest.as_deref(),
        })
    }

    fn from_node(node: &Node) -> Self {
        Self {
            mail_id: super::mail_id(node),
            decision_mail_id: node.owned(&["decision_mail_id"]),
            session_id: super::session_id(node),
            relay_key: node.owned(&["relay_key"]),
            relay_kind: node.owned(&["relay_kind"]),
            decided_by: node.owned(&["decided_by"]),
            note: node.owned(&["note"]),
            decision: node.owned(&["decision"]),
            // A digest of another type is there and equals none.
            digest: node
                .get("digest")
                .filter(|digest| **digest != Node::Null)
                .map(|digest| digest.as_str().unwrap_or_default().into()),
        }
    }
}

/// The payload of `session_archived` as the gateway writes it.
#[must_use]
pub fn session_archived_json(
    session_id: &str,
    session_alias: &str,
    platform_session_id: &str,
) -> String {
    #[derive(Serialize)]
    struct Body<'b> {
        session_id: &'b str,
        session_alias: &'b str,
        platform_session_id: &'b str,
    }
    super::encode_text(&Body { session_id, session_alias, platform_session_id })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW_MAIL_EXAMPLE: &str = r#"{"mail_id":"9ea5ff18-","session_id":"7b5081e0-","from_name":"admin","subject":"重构导入路径","mail_type":"normal","role":"to","to_workspace":"/home/program/agentmail","session_alias":"refactor-imports","reply_address":"admin@.refactor-imports","self_address":"pi@/home/program/agentmail.refactor-imports","platform_session_id":"","in_reply_to":"","from_human":true,"permission_mode":"workspace","permission_enforcement":"native"}"#;
    const DECISION_EXAMPLE: &str = r#"{"mail_id":"m","decision_mail_id":"d","decision":"同意","note":"","decided_by":"admin","session_id":"s","relay_key":"perm_xyz","relay_kind":"permission"}"#;

    #[test]
    fn the_contracts_examples_are_read_and_written_back() {
        let Ok(AgentEvent::NewMail(mail)) = parse(NEW_MAIL, NEW_MAIL_EXAMPLE) else {
            panic!("new_mail")
        };
        assert_eq!(mail.from_human, Some(true));
        assert_eq!(mail.permission_enforcement, Enforcement::Native);
        assert_eq!(mail.to_json(), NEW_MAIL_EXAMPLE);
        let Ok(AgentEvent::PermissionDecision(decision)) =
            parse(PERMISSION_DECISION, DECISION_EXAMPLE)
        else {
            panic!("permission_decision")
        };
        assert_eq!(decision.note, None);
        assert_eq!(decision.relay_key.as_deref(), Some("perm_xyz"));
        assert_eq!(decision.to_json(), DECISION_EXAMPLE);
        let data = session_archived_json("s", "a", "");
        let archived = AgentEvent::SessionArchived { session_id: "s".into() };
        assert_eq!(parse(SESSION_ARCHIVED, &data), Ok(archived));
    }

    #[test]
    fn from_human_has_three_values() {
        for (field, expected) in [
            (r#","from_human":true"#, Some(true)),
            (r#","from_human":false"#, Some(false)),
            (r#","from_human":null"#, None),
            (r#","from_human":"false""#, None),
            (r#","from_human":0"#, None),
            ("", None),
        ] {
            let data = alloc::format!(r#"{{"id":"m"{field}}}"#);
            let Ok(AgentEvent::NewMail(mail)) = parse(NEW_MAIL, &data) else { panic!("{data}") };
            assert_eq!(mail.from_human, expected, "{data}");
            assert_eq!(mail.mail_type, NORMAL);
            let again = parse(NEW_MAIL, &mail.to_json());
            assert_eq!(again, Ok(AgentEvent::NewMail(mail)));
        }
    }

    #[test]
    fn a_decision_that_is_no_text_is_none() {
        for value in ["null", "true", "1", "[\"同意\"]", "{\"text\":\"同意\"}", "\"\""] {
            let data = alloc::format!(r#"{{"relay_key":"k","decision":{value}}}"#);
            let Ok(AgentEvent::PermissionDecision(event)) = parse(PERMISSION_DECISION, &data)
            else {
                panic!("{data}")
            };
            assert_eq!(event.decision, None, "{data}");
        }
    }

    #[test]
    fn unusable_data_is_told_from_an_unknown_event() {
        for data in ["", "null", "[]", "同意", "{\"decision\":\"拒绝\",\"decision\":\"同意\"}"]
        {
            let error = parse(PERMISSION_DECISION, data).unwrap_err();
            assert_eq!(error.problem, EventProblem::NotAnObject, "{data}");
            assert_eq!(parse("mail_read", data), Ok(AgentEvent::Unknown));
        }
        for name in [NEW_MAIL, SESSION_ARCHIVED] {
            assert_eq!(parse(name, "{}").unwrap_err().problem, EventProblem::NoId);
        }
    }

    #[test]
    fn only_a_reconnect_carries_the_last_id() {
        assert_eq!(stream(None).last_event_id, None);
        assert_eq!(stream(Some("")).last_event_id, None);
        assert_eq!(stream(Some("41")).last_event_id.as_deref(), Some("41"));
        assert_eq!(stream(None).path, "/api/v1/events/stream");
    }
}
