//! Laws of the reader of the agent's events.
//!
//! 1. Only the three known names give an event; any other is unknown, whatever its data.
//! 2. Data that is no JSON object, or one with a key twice, gives no event.
//! 3. A decision is the text under `decision` of that very object, and so are key and session.
//! 4. What was read, written and read again is the same.

use crate::script::events::Script;
use serde_json::{Map, Value};
use zcode_mail_core::api::events::{AgentEvent, parse, session_archived_json};

/// Checks all laws.
///
/// # Panics
/// When one does not hold.
pub fn check(bytes: &[u8]) {
    let mut script = Script::decode(bytes);
    let data = String::from_utf8_lossy(&script.document.bytes).into_owned();
    script.document.bytes = data.clone().into_bytes();
    let result = parse(script.name, &data);
    assert_eq!(result, parse(script.name, &data), "two readings: {script:?}");

    let known = ["new_mail", "permission_decision", "session_archived"].contains(&script.name);
    if !known {
        assert_eq!(result, Ok(AgentEvent::Unknown), "{script:?}");
        return;
    }
    let Ok(event) = result else { return };
    let object = script.document.object().unwrap_or_else(|| panic!("out of nothing: {script:?}"));
    let (written, name) = match &event {
        AgentEvent::NewMail(mail) => {
            assert_eq!(Some(mail.mail_id.as_str()), text(&object, &["mail_id", "id"]));
            let human = object.get("from_human").and_then(Value::as_bool);
            assert_eq!(mail.from_human, human, "{script:?}");
            (mail.to_json(), "new_mail")
        }
        AgentEvent::PermissionDecision(event) => {
            assert_eq!(event.decision.as_deref(), text(&object, &["decision"]), "{script:?}");
            assert_eq!(event.relay_key.as_deref(), text(&object, &["relay_key"]), "{script:?}");
            (event.to_json(), "permission_decision")
        }
        AgentEvent::SessionArchived { session_id } => {
            (session_archived_json(session_id, "", ""), "session_archived")
        }
        AgentEvent::Unknown => panic!("a known name: {script:?}"),
    };
    assert_eq!(name, script.name);
    assert_eq!(parse(name, &written), Ok(event), "written as {written}: {script:?}");
}

/// The first text that is not empty.
pub(crate) fn text<'o>(object: &'o Map<String, Value>, keys: &[&str]) -> Option<&'o str> {
    keys.iter().find_map(|key| object.get(*key)?.as_str().filter(|text| !text.is_empty()))
}
