//! Running the hook as ZCode does: an event on stdin, an answer on stdout.

use std::path::Path;
use std::process::Output;
use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;

use super::gateway::Gateway;
use crate::programs::{PATIENCE, Running, command};

/// A hook to start: its environment, its arguments, its event. Clones share the home directory.
#[derive(Clone, Debug)]
pub struct Hook {
    env: Vec<(String, String)>,
    args: Vec<String>,
    event: Vec<u8>,
    home: Arc<TempDir>,
}

/// What a hook said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// `+` approve, `-` block, `.` nothing, `!` anything else.
    pub answer: char,
    /// The reason of a refusal.
    pub reason: String,
    /// The word in parentheses on stderr: why.
    pub code: String,
    /// stdout as it was.
    pub stdout: String,
    /// stderr as it was.
    pub stderr: String,
    /// The exit status, -1 for a signal.
    pub status: i32,
}

impl Hook {
    /// An interactive hook with a key and a home of its own, for the gateway at `url`.
    ///
    /// # Panics
    /// When there is no place for the home.
    #[must_use]
    pub fn new(url: &str) -> Self {
        let home = Arc::new(tempfile::tempdir().expect("a temporary directory"));
        let hook = Self { env: vec![], args: vec![], event: event("Bash", "call-1"), home };
        let path = hook.home.path().display().to_string();
        hook.set("HOME", &path)
            .set("AGENTMAIL_GATEWAY_URL", url)
            .set("AGENTMAIL_AGENT_KEY", "am_test")
    }

    /// As [`Hook::new`], driven by the mail session `mail-1`.
    #[must_use]
    pub fn driven(url: &str) -> Self {
        Self::new(url).set("AGENTMAIL_SESSION_ID", "mail-1")
    }

    /// Sets a variable; an empty value removes it.
    #[must_use]
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        if !value.is_empty() {
            self.env.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    /// Sets the event.
    #[must_use]
    pub fn event(mut self, event: impl Into<Vec<u8>>) -> Self {
        self.event = event.into();
        self
    }

    /// Sets how long it waits, in milliseconds.
    #[must_use]
    pub fn wait_ms(self, ms: u64) -> Self {
        self.set("AGENTMAIL_PERMISSION_WAIT_MS", &ms.to_string())
    }

    /// Its home directory.
    #[must_use]
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Its command, to be started in another way.
    #[must_use]
    pub fn command(&self) -> std::process::Command {
        let env: Vec<_> = self.env.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let mut command = command("zcode-mail-hook", &env);
        command.args(&self.args);
        command
    }

    /// Starts it with its event on stdin.
    #[must_use]
    pub fn start(&self) -> Running {
        Running::spawn(self.command(), Some(&self.event))
    }

    /// Runs it to its end.
    #[must_use]
    pub fn run(&self) -> Said {
        Said::of(&self.start().finish(PATIENCE))
    }

    /// Runs it, decides its question, and gives what it said.
    #[must_use]
    pub fn run_decided(&self, gateway: &Gateway, decision: &str, note: &str) -> Said {
        let running = self.start();
        let key = gateway.asked();
        gateway.decide(&key, decision, note);
        Said::of(&running.finish(PATIENCE))
    }
}

impl Said {
    /// Reads what a hook left behind, strictly: one line or nothing on stdout.
    #[must_use]
    pub fn of(output: &Output) -> Self {
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let (answer, reason) = read(&stdout);
        let code = ["approved (", "blocked (", "no opinion ("]
            .iter()
            .find_map(|said| stderr.split_once(said)?.1.split_once(')'))
            .map_or_else(String::new, |(code, _)| code.to_owned());
        Self { answer, reason, code, stdout, stderr, status: output.status.code().unwrap_or(-1) }
    }
}

/// The answer in any dialect.
fn read(stdout: &str) -> (char, String) {
    if stdout.is_empty() {
        return ('.', String::new());
    }
    let parsed = stdout.strip_suffix('\n').filter(|line| !line.contains('\n'));
    let Some(json) = parsed.and_then(|line| serde_json::from_str::<Value>(line).ok()) else {
        return ('!', stdout.to_owned());
    };
    let specific = &json["hookSpecificOutput"];
    let words =
        [&json["decision"], &specific["decision"]["behavior"], &specific["permissionDecision"]];
    let reasons =
        [&json["reason"], &specific["decision"]["message"], &specific["permissionDecisionReason"]];
    let words: Vec<_> = words.iter().filter_map(|word| word.as_str()).collect();
    let reason = reasons.iter().find_map(|reason| reason.as_str()).unwrap_or_default().to_owned();
    let all =
        |allowed: &[&str]| !words.is_empty() && words.iter().all(|word| allowed.contains(word));
    if all(&["approve", "allow"]) {
        ('+', reason)
    } else if all(&["block", "deny"]) {
        ('-', reason)
    } else {
        ('!', stdout.to_owned())
    }
}

/// A permission request of ZCode 3.14 for a tool call with this id.
#[must_use]
pub fn event(tool: &str, call: &str) -> Vec<u8> {
    event_with(tool, call, r#"{"command":"cargo test"}"#)
}

/// As [`event`], with an input.
#[must_use]
pub fn event_with(tool: &str, call: &str, input: &str) -> Vec<u8> {
    format!(
        r#"{{"cwd":"/home/u/proj","hook_event_name":"PermissionRequest","hookEventName":"PermissionRequest","mode":"build","permission_mode":"build","requestId":"perm_{call}","session_id":"sess_1","sessionId":"sess_1","tool_name":"{tool}","toolName":"{tool}","tool_input":{input},"toolInput":{input},"tool_use_id":"{call}","toolCallId":"{call}","turnId":"turn_1"}}{}"#,
        '\n'
    )
    .into_bytes()
}

/// A `PreToolUse` event for a tool call with this id.
#[must_use]
pub fn pre_tool_use(tool: &str, call: &str) -> Vec<u8> {
    let text = String::from_utf8(event(tool, call)).unwrap_or_default();
    let id = format!(r#""requestId":"perm_{call}","#);
    text.replace("PermissionRequest", "PreToolUse").replace(&id, "").into_bytes()
}
