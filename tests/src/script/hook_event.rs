//! Scripts for the hook's reading and rules: settings and an event made of JSON pieces.

use super::{Step, Vocabulary, byte};
use arbitrary::Unstructured;
use zcode_mail_core::config::Settings;

const MODES: [&str; 4] = ["workspace", "plan", "full", "yolo"];

const VOCABULARY: Vocabulary = [
    br#"{"hook_event_name":"PermissionRequest","session_id":"s","tool_name":"Bash","tool_use_id":"c","tool_input":{"command":"ls"}}"#,
    br#"{"hookEventName":"PreToolUse","sessionId":"s","toolName":"Write","toolCallId":"c","toolInput":{"content":"x"}}"#,
    br#"{"hook_event_name":"PermissionRequest","#,
    br#"{"hook_event_name":"PreToolUse","#,
    br#""hookEventName":"PermissionRequest","#,
    br#""tool_name":"Bash","#,
    br#""toolName":"Bash","#,
    br#""tool_name":"Read","#,
    br#""tool_name":"mcp__agentmail__send_mail","#,
    br#""tool_name":"#,
    br#""tool_input":{"command":"ls"},"#,
    br#""toolInput":{"command":"ls"},"#,
    br#""toolInput":{"command":"rm"},"#,
    br#""tool_input":"#,
    br#""tool_use_id":"c1","#,
    br#""toolCallId":"c2","#,
    br#""requestId":"perm_1","#,
    br#""session_id":"s1","#,
    br#""cwd":"/p"}"#,
    br#""x":1}"#,
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b",",
    br"\ud800",
    br"\u202e\u0000",
    b"\xEF\xBB\xBF",
    b"\xFF",
    b"null",
    b"\r\n",
];

/// Settings and one event.
#[derive(Clone, Debug)]
pub struct Script {
    /// The environment.
    pub env: Vec<(&'static str, &'static str)>,
    /// The event's bytes.
    pub event: Vec<u8>,
}

impl Script {
    /// Reads a script.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Self {
        let mut u = Unstructured::new(bytes);
        let choice = byte(&mut u).unwrap_or(0);
        let mut env = vec![("AGENTMAIL_PERMISSION_MODE", MODES[usize::from(choice & 3)])];
        if choice & 4 != 0 {
            env.push(("AGENTMAIL_SESSION_ID", "mail-1"));
        }
        if choice & 8 != 0 {
            env.push(("AGENTMAIL_LANG", "en"));
        }
        let mut event = Vec::new();
        while let Some(step) = Step::decode(&mut u, &VOCABULARY) {
            if let Step::Bytes(bytes) = step {
                event.extend(bytes);
            }
        }
        Self { env, event }
    }

    /// The settings of this environment.
    #[must_use]
    pub fn settings(&self) -> Settings {
        Settings::from_env(|name| {
            self.env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }
}
