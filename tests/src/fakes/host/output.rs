//! How ZCode reads a hook's output and merges several.

use serde_json::{Map, Value};

/// How answers are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// ZCode to 3.8: a key that it does not know voids the whole answer.
    Strict,
    /// ZCode from 3.14 on: unknown keys are ignored, a top-level block or status 2 is final.
    Lenient,
}

/// What a hook, or a chain of them, thinks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Opinion {
    /// Nothing.
    #[default]
    None,
    /// The call may run.
    Allow,
    /// The person should be asked.
    Ask,
    /// The call must not run.
    Deny(String),
}

/// A hook that ran.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Its command line.
    pub command: String,
    /// What it wrote, as far as ZCode keeps it.
    pub stdout: String,
    /// The same.
    pub stderr: String,
    /// Its exit status; `None` after a signal, or when it did not start.
    pub status: Option<i32>,
    /// Whether the dialog was answered first.
    pub aborted: bool,
    /// Whether it ran into its timeout.
    pub timed_out: bool,
}

impl Ran {
    pub(super) fn failed(entry: &super::Entry) -> Self {
        let command = entry.shown();
        let (stdout, stderr) = (String::new(), String::new());
        Self { command, stdout, stderr, status: None, aborted: false, timed_out: false }
    }
}

/// The opinions of a chain.
#[derive(Debug, Default)]
pub(super) struct Merged {
    /// A block that nothing undoes.
    sticky: Option<String>,
    /// The last structured decision.
    last: Opinion,
}

impl Merged {
    pub(super) fn add(&mut self, engine: Engine, event: &str, ran: &Ran) {
        if ran.aborted || ran.timed_out {
            return;
        }
        match ran.status {
            Some(0) => {}
            Some(2) => {
                let text = if ran.stderr.trim().is_empty() { &ran.stdout } else { &ran.stderr };
                self.sticky.get_or_insert_with(|| text.trim().chars().take(4000).collect());
                return;
            }
            // Any other end is a failure, which is no opinion.
            _ => return,
        }
        let text = ran.stdout.trim();
        if !text.starts_with('{') {
            return;
        }
        let Ok(Value::Object(object)) = serde_json::from_str::<Value>(text) else { return };
        let read = match engine {
            Engine::Strict => strict(event, &object),
            Engine::Lenient => lenient(event, &object),
        };
        let Some((top, structured)) = read else { return };
        if let Opinion::Deny(reason) = &top {
            self.sticky.get_or_insert_with(|| reason.clone());
        }
        for opinion in [top, structured] {
            if opinion != Opinion::None {
                self.last = opinion;
            }
        }
    }

    pub(super) fn opinion(self) -> Opinion {
        self.sticky.map_or(self.last, Opinion::Deny)
    }
}

/// The legal answers of old versions, key for key; anything else is no opinion.
fn strict(event: &str, object: &Map<String, Value>) -> Option<(Opinion, Opinion)> {
    if object.is_empty() {
        return Some((Opinion::None, Opinion::None));
    }
    let keys = |object: &Map<String, Value>, legal: &[&str]| {
        object.keys().all(|key| legal.contains(&key.as_str()))
    };
    if !keys(object, &["hookSpecificOutput"]) {
        return None;
    }
    let specific = object["hookSpecificOutput"].as_object()?;
    let legal = keys(
        specific,
        &["hookEventName", "decision", "permissionDecision", "permissionDecisionReason"],
    );
    if let Some(decision) = specific.get("decision")
        && !keys(decision.as_object()?, &["behavior", "message"])
    {
        return None;
    }
    if !legal {
        return None;
    }
    Some((Opinion::None, specific_opinion(event, specific)?))
}

/// `None` when the answer fails as a whole.
fn lenient(event: &str, object: &Map<String, Value>) -> Option<(Opinion, Opinion)> {
    let reason = || object.get("reason").and_then(Value::as_str).unwrap_or("blocked").to_owned();
    let top = match object.get("decision").map(Value::as_str) {
        None => Opinion::None,
        Some(Some("approve")) => Opinion::Allow,
        Some(Some("block")) => Opinion::Deny(reason()),
        // A known key of a wrong type or value fails the hook.
        Some(_) => return None,
    };
    let structured = match object.get("hookSpecificOutput") {
        None => Opinion::None,
        Some(specific) => specific_opinion(event, specific.as_object()?)?,
    };
    Some((top, structured))
}

fn specific_opinion(event: &str, specific: &Map<String, Value>) -> Option<Opinion> {
    if specific.get("hookEventName").and_then(Value::as_str) != Some(event) {
        return None;
    }
    let text = |object: &Map<String, Value>, key: &str| {
        object.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    if event == "PermissionRequest" {
        let Some(decision) = specific.get("decision") else { return Some(Opinion::None) };
        let decision = decision.as_object()?;
        return match text(decision, "behavior").as_str() {
            "allow" => Some(Opinion::Allow),
            "deny" => Some(Opinion::Deny(text(decision, "message"))),
            _ => None,
        };
    }
    match text(specific, "permissionDecision").as_str() {
        "" => Some(Opinion::None),
        "allow" => Some(Opinion::Allow),
        "ask" => Some(Opinion::Ask),
        "deny" => Some(Opinion::Deny(text(specific, "permissionDecisionReason"))),
        _ => None,
    }
}
