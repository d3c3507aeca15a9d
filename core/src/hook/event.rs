//! What ZCode tells a hook on stdin.
//!
//! One JSON object. Old versions write camelCase keys, new ones both casings, hosts in Claude's
//! style snake_case only; either is read, snake_case first, and two that disagree make the event
//! unreadable. Nothing is repaired: whatever cannot be read as what will run is an error with a
//! reason, and the fail-closed table decides what that means.
//!
//! Sources: the hook input of ZCode 3.1 to 3.15 (seed 000 "PermissionRequest"), faults rows 7, 18,
//! 20 and 27.

use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::json::{self, Node};

/// Most bytes of one event. Whole file contents travel in `Write`; a source file of 8 MiB does not
/// exist in practice, and the bound keeps memory flat when the host misbehaves.
pub const EVENT_LIMIT: usize = 8 * 1024 * 1024;

/// Longest wait for the end of stdin, in milliseconds. ZCode writes the event and closes the pipe
/// at once.
pub const EVENT_WAIT_MS: u64 = 5_000;

/// The two events that the hook answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// ZCode would ask its user about a tool call.
    PermissionRequest,
    /// A tool call is about to be checked, in every mode of ZCode.
    PreToolUse,
}

impl Kind {
    /// The event's name, in stdin and in the answer's `hookEventName`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PermissionRequest => "PermissionRequest",
            Self::PreToolUse => "PreToolUse",
        }
    }
}

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A tool call.
    Tool(Box<ToolEvent>),
    /// An event that the hook has nothing to say about, by name.
    Other(String),
}

/// A tool call about which the hook may have an opinion.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolEvent {
    /// Which event it is.
    pub kind: Kind,
    /// `tool_name`, never empty.
    pub tool: String,
    /// `tool_input`, if there is one.
    pub input: Option<ToolInput>,
    /// Working directory of the session.
    pub cwd: Option<String>,
    /// ZCode's session id.
    pub session: Option<String>,
    /// The id of this tool call.
    pub call_id: Option<String>,
    /// ZCode's id of this permission request; only `PermissionRequest` has one.
    pub request_id: Option<String>,
    /// The id of the turn that the call belongs to.
    pub turn_id: Option<String>,
    /// The sub-agent that makes the call.
    pub agent: Option<String>,
    /// ZCode's `riskLevel`.
    pub risk: Option<String>,
    /// Why ZCode asks.
    pub why: Option<String>,
}

/// What a tool was called with.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolInput {
    /// The JSON text exactly as it stood.
    pub raw: String,
    /// The same, decoded.
    pub(crate) value: Node,
}

/// Why an event cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// Nothing but white space.
    Empty,
    /// More than [`EVENT_LIMIT`] bytes.
    TooLarge,
    /// stdin was not closed within [`EVENT_WAIT_MS`].
    NeverEnded,
    /// stdin could not be read; the operating system's words.
    Io(String),
    /// Not UTF-8 from this byte on.
    NotUtf8(usize),
    /// Not JSON, or JSON that two readers could take differently; the parser's words.
    NotJson(String),
    /// A field that must be there is not.
    Missing(&'static str),
    /// A field has the wrong JSON type.
    WrongType(&'static str),
    /// The snake_case and the camelCase form of a field disagree.
    Conflict(&'static str),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the event is empty"),
            Self::TooLarge => write!(f, "the event is larger than {EVENT_LIMIT} bytes"),
            Self::NeverEnded => {
                write!(f, "the event did not end within {EVENT_WAIT_MS} ms")
            }
            Self::Io(error) => write!(f, "the event could not be read: {error}"),
            Self::NotUtf8(at) => write!(f, "the event is not UTF-8 at byte {at}"),
            Self::NotJson(error) => write!(f, "the event is not one JSON object: {error}"),
            Self::Missing(field) => write!(f, "the event has no {field}"),
            Self::WrongType(field) => write!(f, "the event's {field} has the wrong type"),
            Self::Conflict(field) => {
                write!(f, "the event states {field} twice with different values")
            }
        }
    }
}

impl Event {
    /// Reads one event: UTF-8, an optional byte-order mark, one JSON object, white space around it.
    ///
    /// # Errors
    /// [`Unreadable`]; an event is never read in part.
    pub fn parse(bytes: &[u8]) -> Result<Self, Unreadable> {
        if bytes.len() > EVENT_LIMIT {
            return Err(Unreadable::TooLarge);
        }
        let text = core::str::from_utf8(bytes)
            .map_err(|error| Unreadable::NotUtf8(error.valid_up_to()))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.trim().is_empty() {
            return Err(Unreadable::Empty);
        }
        let members: Members<'_> =
            serde_json::from_str(text).map_err(|error| Unreadable::NotJson(error.to_string()))?;
        let name = members
            .text("hook_event_name", &["hook_event_name", "hookEventName"])?
            .ok_or(Unreadable::Missing("hook_event_name"))?;
        let kind = match name.as_str() {
            "PermissionRequest" => Kind::PermissionRequest,
            "PreToolUse" => Kind::PreToolUse,
            _ => return Ok(Self::Other(name)),
        };
        let members = members.decoded()?;
        Ok(Self::Tool(Box::new(ToolEvent {
            kind,
            tool: members
                .text("tool_name", &["tool_name", "toolName"])?
                .ok_or(Unreadable::Missing("tool_name"))?,
            input: members.input()?,
            cwd: members.text("cwd", &["cwd"])?,
            session: members.text("session_id", &["session_id", "sessionId"])?,
            call_id: members
                .text("tool_use_id", &["tool_use_id", "toolUseId", "tool_call_id", "toolCallId"])?,
            request_id: members.text("requestId", &["request_id", "requestId"])?,
            turn_id: members.text("turn_id", &["turn_id", "turnId"])?,
            agent: members.text("agent_name", &["agent_name", "agentName"])?,
            risk: members.text("risk_level", &["risk_level", "riskLevel"])?,
            why: members.text("reason", &["reason"])?,
        })))
    }

    /// Which of the two answerable events an unreadable one claims to be, so that a refusal can be
    /// addressed to it. Never used to approve anything.
    #[must_use]
    pub fn claimed_kind(bytes: &[u8]) -> Option<Kind> {
        let names = |kind: Kind| {
            let name = kind.as_str().as_bytes();
            bytes.windows(name.len()).any(|window| window == name)
        };
        match (names(Kind::PermissionRequest), names(Kind::PreToolUse)) {
            (true, false) => Some(Kind::PermissionRequest),
            (false, true) => Some(Kind::PreToolUse),
            _ => None,
        }
    }
}

/// The object's members by name, each still as text.
struct Members<'a>(BTreeMap<String, &'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = BTreeMap<String, &'de RawValue>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = BTreeMap::new();
                while let Some((key, value)) = map.next_entry::<String, &'de RawValue>()? {
                    if members.contains_key(&key) {
                        let twice = format_args!("the key {key:?} stands twice");
                        return Err(A::Error::custom(twice));
                    }
                    members.insert(key, value);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Object).map(Members)
    }
}

impl<'a> Members<'a> {
    /// A text member under any of `names`; `null` and empty texts count as absent.
    fn text(&self, field: &'static str, names: &[&str]) -> Result<Option<String>, Unreadable> {
        let mut found: Option<String> = None;
        for value in names.iter().filter_map(|name| self.0.get(*name)) {
            let text = match decode(value)? {
                Node::Null => continue,
                Node::String(text) => text,
                _ => return Err(Unreadable::WrongType(field)),
            };
            match &found {
                Some(first) if *first != text => return Err(Unreadable::Conflict(field)),
                _ => found = Some(text),
            }
        }
        Ok(found.filter(|text| !text.is_empty()))
    }

    /// Checks that every member can be decoded, also those that nobody looks at.
    fn decoded(self) -> Result<Self, Unreadable> {
        for value in self.0.values() {
            decode(value)?;
        }
        Ok(self)
    }

    fn input(&self) -> Result<Option<ToolInput>, Unreadable> {
        let mut found: Option<ToolInput> = None;
        for raw in ["tool_input", "toolInput"].iter().filter_map(|name| self.0.get(*name)) {
            let value = decode(raw)?;
            if value == Node::Null {
                continue;
            }
            match &found {
                Some(first) if !same(&first.value, &value) => {
                    return Err(Unreadable::Conflict("tool_input"));
                }
                Some(_) => {}
                None => found = Some(ToolInput { raw: raw.get().to_owned(), value }),
            }
        }
        Ok(found)
    }
}

fn decode(value: &RawValue) -> Result<Node, Unreadable> {
    json::parse(value.get().as_bytes()).map_err(|error| {
        Unreadable::NotJson(match error {
            json::Unreadable::Syntax { line, column } => {
                format!("syntax error in a value, at its line {line} column {column}")
            }
            json::Unreadable::Duplicate(key) => format!("the key {key:?} stands twice"),
            json::Unreadable::TooDeep => String::from("nested too deep"),
        })
    })
}

/// Whether both mean the same: the order of an object's members does not count.
fn same(a: &Node, b: &Node) -> bool {
    match (a, b) {
        (Node::Array(a), Node::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Node::Object(a), Node::Object(b)) => {
            let mut a: Vec<_> = a.iter().collect();
            let mut b: Vec<_> = b.iter().collect();
            a.sort_by(|x, y| x.0.cmp(&y.0));
            b.sort_by(|x, y| x.0.cmp(&y.0));
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.0 == b.0 && same(&a.1, &b.1))
        }
        (a, b) => a == b,
    }
}
