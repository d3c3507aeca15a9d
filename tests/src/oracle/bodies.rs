//! Laws of the gateway's decoders of request bodies.
//!
//! 1. A body that decodes is a JSON object without a key twice and, but for the heartbeat, holds
//!    only keys that the contract names for the endpoint; the heartbeat names the others.
//! 2. What a client then writes of it decodes to the same: writer and decoder agree.
//! 3. An error says something.

use crate::script::bodies::Script;
use std::fmt::Debug;
use zcode_mail_core::api::{heartbeat, permission, register, send};
use zcode_mail_core::http::Request;
use zcode_mail_core::relay_key;
use zcode_mail_core::strict::Invalid;

/// Checks all laws.
///
/// # Panics
/// When one does not hold.
pub fn check(bytes: &[u8]) {
    let script = Script::decode(bytes);
    let register = ["name", "platform", "workspaces"];
    strict(&script, &register, register::Request::decode, register::Request::request);
    let ask = ["question", "options", "context", "session_id", "relay_key"];
    let asked = strict(&script, &ask, permission::Ask::decode, permission::Ask::request);
    assert!(asked.is_none_or(|ask| ask.relay_key.len() <= relay_key::LIMIT), "{script:?}");
    let send = [
        "to",
        "cc",
        "subject",
        "body",
        "reply_to",
        "session_alias",
        "attachment_ids",
        "relay",
        "relay_key",
    ];
    let sent = strict(&script, &send, send::Request::decode, send::Request::request);
    let relay = sent.and_then(|mail| mail.relay);
    assert!(relay.is_none_or(|relay| !relay.key.is_empty()), "{script:?}");
    heartbeat_laws(&script);
}

fn strict<T: PartialEq + Debug>(
    script: &Script,
    known: &[&str],
    decode: fn(&[u8]) -> Result<T, Invalid>,
    request: fn(&T) -> Request,
) -> Option<T> {
    let decoded = match decode(&script.document.bytes) {
        Ok(decoded) => decoded,
        Err(invalid) => {
            assert!(!invalid.to_string().is_empty());
            return None;
        }
    };
    let object = script.document.object().unwrap_or_else(|| panic!("out of nothing: {script:?}"));
    let stray = object.keys().find(|key| !known.contains(&key.as_str()));
    assert_eq!(stray, None, "{script:?}");
    let written = request(&decoded).body.expect("a body");
    assert_eq!(decode(&written).as_ref(), Ok(&decoded), "{script:?}");
    Some(decoded)
}

fn heartbeat_laws(script: &Script) {
    let Ok(decoded) = heartbeat::Request::decode(&script.document.bytes) else { return };
    let object = script.document.object().unwrap_or_else(|| panic!("out of nothing: {script:?}"));
    for key in object.keys() {
        let known = ["platform_sessions", "models", "mode_enforcement"].contains(&key.as_str());
        let named = decoded.unknown_fields.contains(key);
        // A full list may leave some out.
        let full = decoded.unknown_fields.len() == heartbeat::UNKNOWN_LIMIT;
        assert!(known != named || full && !known, "{key:?} {script:?}");
    }
    let models = object.get("models").is_some_and(serde_json::Value::is_array);
    assert_eq!(decoded.request.models.is_some(), models, "absent is not empty: {script:?}");
    let written = decoded.request.request().body.expect("a body");
    let again = heartbeat::Request::decode(&written).map(|again| again.request);
    assert_eq!(again, Ok(decoded.request), "{script:?}");
}
