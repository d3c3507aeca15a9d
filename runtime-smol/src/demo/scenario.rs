//! The demo's scenarios: what ZCode asks, who decides how, which answer is right.

use std::process::Output;

use serde_json::{Value, json};
use zcode_mail_core::decision;

use super::DemoError;
use super::people::{AGENT, Stage, start_hook};

/// Who answers in this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decider {
    /// A person in the page; any answer is right.
    Human,
    /// The demo itself through the human API.
    Api,
}

/// What a human is to do about a scenario's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Click {
    /// No request must reach the human.
    Nothing,
    /// Decide with this option and these words.
    Decide(&'static str, &'static str),
}

/// Where the hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Session {
    Workspace,
    Plan,
    AgentsOnly,
    Interactive,
}

/// The answer that ZCode must read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Approve,
    /// A block whose reason contains this text.
    Block(&'static str),
    NoOpinion,
}

/// One scenario.
#[derive(Debug)]
pub(super) struct Scenario {
    pub(super) title: &'static str,
    /// What a person does in the page.
    pub(super) hint: Option<&'static str>,
    session: Session,
    tool: &'static str,
    input: fn() -> Value,
    click: Click,
    expected: Expected,
}

/// The words of the refusal in `--auto`.
const REFUSAL: &str = "先别动这个目录，里面有我还没提交的东西";

/// Seed 000's end-to-end check, and an approval without a session.
pub(super) const SCENARIOS: [Scenario; 6] = [
    Scenario {
        title: "ZCode wants to run `cargo test`; a human approves.",
        hint: Some("Click 同意 (approve) in the page."),
        session: Session::Workspace,
        tool: "Bash",
        input: || json!({ "command": "cargo test", "description": "Run the test suite" }),
        click: Click::Decide(decision::ONCE, ""),
        expected: Expected::Approve,
    },
    Scenario {
        title: "ZCode wants to run `rm -rf build/`; a human refuses with their own words.",
        hint: Some("Write a reason and click 拒绝 (refuse) in the page."),
        session: Session::Workspace,
        tool: "Bash",
        input: || json!({ "command": "rm -rf build/" }),
        click: Click::Decide(decision::REJECT, REFUSAL),
        expected: Expected::Block(REFUSAL),
    },
    Scenario {
        title: "In a plan session the hook refuses by itself; no mail is written.",
        hint: None,
        session: Session::Plan,
        tool: "Write",
        input: || json!({ "file_path": "notes.txt", "content": "hello" }),
        click: Click::Nothing,
        expected: Expected::Block("plan"),
    },
    Scenario {
        title: "One agent gave another the work and no human is in the thread: nobody to ask, \
                so the call is blocked.",
        hint: None,
        session: Session::AgentsOnly,
        tool: "Bash",
        input: || json!({ "command": "make clean" }),
        click: Click::Nothing,
        expected: Expected::Block(""),
    },
    Scenario {
        title: "Reading a file is not guarded: the hook has no opinion.",
        hint: None,
        session: Session::Workspace,
        tool: "Read",
        input: || json!({ "file_path": "README.md" }),
        click: Click::Nothing,
        expected: Expected::NoOpinion,
    },
    Scenario {
        title: "You use ZCode yourself, without a mail session; the question goes to the owner of \
                the agent's key.",
        hint: Some("Click 同意 (approve) in the page."),
        session: Session::Interactive,
        tool: "Edit",
        input: || json!({ "file_path": "src/main.rs", "old_string": "let x = 1;", "new_string": "let x = 2;" }),
        click: Click::Decide(decision::ONCE, ""),
        expected: Expected::Approve,
    },
];

/// What happened in a scenario.
#[derive(Debug)]
pub(super) struct Ran {
    output: Output,
    /// Whether a request reached the human.
    asked: bool,
    sentences: Vec<String>,
}

impl Scenario {
    /// Plays the scenario.
    pub(super) fn run(&self, stage: &Stage, decider: Decider) -> Result<Ran, DemoError> {
        let (session, mode) = match self.session {
            Session::Workspace => (stage.workspace_session.as_str(), "workspace"),
            Session::Plan => (stage.plan_session.as_str(), "plan"),
            Session::AgentsOnly => (stage.agents_only_session.as_str(), "workspace"),
            Session::Interactive => ("", "workspace"),
        };
        let before = stage.pending()?;
        let event = self.event(stage)?;
        let mut hook = start_hook(stage, session, mode, &event)
            .map_err(|e| DemoError::Io("starting the hook", e))?;
        let mut sentences = Vec::new();
        let asked = stage.new_request(&before, session, || matches!(hook.try_wait(), Ok(None)))?;
        if let Some(request) = &asked {
            sentences.push(format!("The request of agent {AGENT} reached you by mail."));
            if decider == Decider::Api
                && let Click::Decide(text, note) = self.click
            {
                stage.decide(&request.request_id, text, note)?;
                let words = if note.is_empty() { String::new() } else { format!(": {note}") };
                sentences.push(format!("Decided {text}{words}"));
            }
        } else {
            sentences.push("No request was made.".to_owned());
        }
        let output =
            hook.wait_with_output().map_err(|e| DemoError::Io("waiting for the hook", e))?;
        Ok(Ran { output, asked: asked.is_some(), sentences })
    }

    /// The event as ZCode 3.14 writes it to the hook.
    fn event(&self, stage: &Stage) -> Result<Value, DemoError> {
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random).map_err(|e| DemoError::Refused(e.to_string()))?;
        let id: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let cwd = stage.project.display().to_string();
        Ok(json!({
            "cwd": cwd,
            "hookEventName": "PermissionRequest",
            "hook_event_name": "PermissionRequest",
            "mode": "build",
            "permission_mode": "build",
            "requestId": format!("perm_{id}"),
            "riskLevel": "high",
            "sessionId": "sess_demo",
            "session_id": "sess_demo",
            "toolCallId": format!("call_{id}"),
            "tool_use_id": format!("call_{id}"),
            "toolName": self.tool,
            "tool_name": self.tool,
            "toolInput": (self.input)(),
            "tool_input": (self.input)(),
        }))
    }
}

impl Ran {
    /// What happened, a sentence a line, ending in the hook's own output.
    pub(super) fn story(&self) -> Vec<String> {
        let mut lines = self.sentences.clone();
        let stdout = String::from_utf8_lossy(&self.output.stdout);
        let stdout = stdout.trim_end();
        lines.push(format!("stdout: {}", if stdout.is_empty() { "(nothing)" } else { stdout }));
        lines.push(format!("exit status: {}", self.output.status.code().unwrap_or(-1)));
        lines
    }

    /// Why this is not what should have happened, if it is not.
    pub(super) fn problem(&self, scenario: &Scenario, decider: Decider) -> Option<String> {
        let stderr = String::from_utf8_lossy(&self.output.stderr);
        let stderr = stderr.trim();
        let tell = |what: &str| Some(format!("{what}; the hook's log: {stderr}"));
        if self.output.status.code() != Some(0) {
            return tell("the hook did not exit with status 0");
        }
        if self.asked != (scenario.click != Click::Nothing) {
            return tell("a request was made, or not made, against the rules");
        }
        if decider == Decider::Human && scenario.click != Click::Nothing {
            return None;
        }
        let stdout = String::from_utf8_lossy(&self.output.stdout);
        let answer: Option<Value> = serde_json::from_str(stdout.trim()).ok();
        let decision = answer.as_ref().and_then(|a| a.get("decision")).and_then(Value::as_str);
        let right = match scenario.expected {
            Expected::NoOpinion => stdout.is_empty(),
            Expected::Approve => decision == Some("approve"),
            Expected::Block(words) => {
                let reason = answer.as_ref().and_then(|a| a.get("reason")).and_then(Value::as_str);
                decision == Some("block")
                    && reason.is_some_and(|r| !r.is_empty() && r.contains(words))
            }
        };
        if right { None } else { tell("the answer is not the expected one") }
    }
}
