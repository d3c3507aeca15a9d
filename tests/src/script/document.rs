//! JSON documents as a gateway, a proxy or an enemy might send them.
//!
//! Mostly an object of members taken from tables, so that readers get past the syntax; sometimes
//! pieces in a row, so that the syntax is wrong at any place.

use super::{Step, Vocabulary, byte};
use arbitrary::Unstructured;

/// Keys as they stand in the document; the last five are spelled oddly.
const KEYS: [&str; 32] = [
    "status",
    "decision",
    "result",
    "note",
    "decided_by",
    "request_id",
    "mail_id",
    "id",
    "relay_key",
    "relay",
    "session_id",
    "session",
    "error",
    "message",
    "suggestion",
    "retry_after",
    "models_unrestricted",
    "allowed_models",
    "unknown_fields",
    "from_human",
    "permission_mode",
    "platform_sessions",
    "models",
    "workspaces",
    "name",
    "to",
    "question",
    "\\u0064ecision",
    "Decision",
    "decision ",
    "",
    "sta\\u0074us",
];

/// Values as they stand in the document.
const VALUES: [&str; 32] = [
    "\"同意\"",
    "\"一直同意\"",
    "\"拒绝\"",
    "\"decided\"",
    "\"duplicate_relay\"",
    "\"pending\"",
    "\"withdrawn\"",
    "\"expired\"",
    "\"ok\"",
    "\"\"",
    "\" \"",
    "\"\\u540c\\u610f\"",
    "\"full\"",
    "\"summary\"",
    "\"请 42 秒后再试\"",
    "\"\\u001b[31m<html>\"",
    "null",
    "true",
    "false",
    "0",
    "1",
    "-1",
    "1.5",
    "\"7\"",
    "18446744073709551615",
    "[]",
    "{}",
    "[\"同意\"]",
    "{\"decision\":\"同意\",\"status\":\"decided\"}",
    "{\"id\":\"s\",\"message\":\"m\"}",
    "[{\"name\":\"n\",\"path\":\"/p\"},{\"provider\":\"p\",\"model\":\"m\"}]",
    "[{\"platform_id\":\"i\",\"slug\":\"s\",\"mail_driven\":true}]",
];

const PIECES: Vocabulary = [
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\"",
    b"\\",
    b"\"status\":\"decided\"",
    b"\"decision\":\"\xE5\x90\x8C\xE6\x84\x8F\"",
    b"{\"status\":\"decided\",\"decision\":\"\xE5\x90\x8C\xE6\x84\x8F\"}",
    b"\"result\":\"approve\"",
    b"null",
    b"true",
    b"1e999",
    b"-0",
    b" ",
    b"\n",
    b"\0",
    b"\xEF\xBB\xBF",
    b"<html>",
    b"<!doctype html><title>Log in</title>",
    b"\xE5\x90",
    b"\xFF",
    b"\\ud83d",
    b"[[[[[[[[",
    b"{\"a\":",
    b"42 seconds",
    b"data: ",
    b"//",
    b"'",
    b"x",
];

/// A document and, if it was made of members, which.
#[derive(Clone, Debug)]
pub struct Document {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Keys and values as they stand there, when it is an object made of them.
    pub members: Option<Vec<(&'static str, &'static str)>>,
}

impl Document {
    /// Reads a document up to the end of the bytes. One byte in four gives pieces.
    #[must_use]
    pub fn decode(u: &mut Unstructured<'_>) -> Self {
        if byte(u).unwrap_or(0) & 3 == 3 {
            let mut bytes = Vec::new();
            while let Some(step) = Step::decode(u, &PIECES) {
                if let Step::Bytes(piece) = step {
                    bytes.extend(piece);
                }
            }
            return Self { bytes, members: None };
        }
        let mut members = Vec::new();
        while let (Some(key), Some(value)) = (byte(u), byte(u)) {
            members.push((KEYS[usize::from(key & 31)], VALUES[usize::from(value & 31)]));
        }
        let inner: Vec<String> =
            members.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
        let bytes = format!("{{{}}}", inner.join(",")).into_bytes();
        Self { bytes, members: Some(members) }
    }

    /// What the document says, by another reader; `None` when it says nothing that may be relied
    /// on: it is no JSON object, or one with a key twice.
    #[must_use]
    pub fn object(&self) -> Option<serde_json::Map<String, serde_json::Value>> {
        let serde_json::Value::Object(object) = serde_json::from_slice(&self.bytes).ok()? else {
            return None;
        };
        // A key twice leaves fewer members in the map than stand in the document.
        let stand = self.members.as_ref().map_or(object.len(), Vec::len);
        (stand == object.len()).then_some(object)
    }
}
