//! ZCode, as far as it runs hooks and decides about tool calls.
//!
//! Four hosts in one: an [`Engine`] reads answers as the versions up to 3.8 or from 3.14 on do; a
//! [`Dialog`] says what the person at the keyboard does, and whether hooks race it. A [`Host`] loads
//! plugin directories as ZCode does, plus hooks of others before and after them, writes the event,
//! runs the programs in their own process group with ZCode's environment, timeouts and output
//! limits, merges the answers in serial order, and says whether the tool would run.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

mod output;
mod plugin;

pub use output::{Engine, Opinion, Ran};
pub use plugin::{Entry, load, matches};

/// Milliseconds between SIGTERM and SIGKILL.
const KILL_AFTER: Duration = Duration::from_millis(750);
/// Bytes of stdout and of stderr that are kept.
const OUTPUT_LIMIT: usize = 32_768;

/// What the person at the keyboard does when ZCode asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialog {
    /// Hooks first; then the person answers.
    After(bool),
    /// Hooks race the dialog (3.14+), in which the person answers after so many milliseconds.
    Racing(bool, u64),
    /// Hooks race the dialog, which nobody answers.
    RacingSilent,
    /// Nobody is there (`-p` from 3.14 on): the dialog denies at once, and the hooks lose.
    Headless,
}

/// ZCode's own permission mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Asks for everything with side effects.
    Build,
    /// Allows file edits, asks for the rest.
    Edit,
    /// Denies side effects.
    Plan,
    /// Allows everything.
    Yolo,
}

impl Mode {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Edit => "edit",
            Self::Plan => "plan",
            Self::Yolo => "yolo",
        }
    }
}

/// What becomes of a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It runs.
    Runs,
    /// It does not, and the model reads this.
    Denied(String),
}

impl Fate {
    /// Whether the call runs.
    #[must_use]
    pub fn runs(&self) -> bool {
        *self == Self::Runs
    }

    /// What the model reads.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Runs => "",
            Self::Denied(reason) => reason,
        }
    }
}

/// A ZCode session.
#[derive(Clone, Debug)]
pub struct Host {
    engine: Engine,
    dialog: Dialog,
    mode: Mode,
    hooks: Vec<Entry>,
    env: Vec<(String, String)>,
    cwd: PathBuf,
}

impl Host {
    /// A session in build mode without hooks, in the directory `cwd`.
    #[must_use]
    pub fn new(engine: Engine, dialog: Dialog, cwd: &Path) -> Self {
        let cwd = cwd.to_owned();
        Self { engine, dialog, mode: Mode::Build, hooks: vec![], env: vec![], cwd }
    }

    /// Sets ZCode's mode.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Adds the hooks of a plugin directory after those that are there.
    ///
    /// # Panics
    /// When ZCode would not load it.
    #[must_use]
    pub fn plugin(mut self, dir: &Path) -> Self {
        let mut entries = load(dir).unwrap_or_else(|why| panic!("{}: {why}", dir.display()));
        self.hooks.append(&mut entries);
        self
    }

    /// Adds a hook of somebody else: a shell command for one event and tool list.
    #[must_use]
    pub fn other(mut self, event: &str, matcher: &str, script: &str) -> Self {
        self.hooks.push(Entry::shell(event, matcher, script));
        self
    }

    /// Sets a variable of the engine's environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Decides about a tool call as ZCode does.
    #[must_use]
    pub fn call(&self, tool: &str, input: &Value, id: &str) -> (Fate, Vec<Ran>) {
        let mut runs = Vec::new();
        let before = self.serial("PreToolUse", tool, input, id, &mut runs);
        if let Opinion::Deny(reason) = before {
            return (Fate::Denied(reason), runs);
        }
        let ask = match self.mode {
            Mode::Yolo => before == Opinion::Ask,
            Mode::Plan if has_side_effects(tool) => {
                return (Fate::Denied("plan mode".to_owned()), runs);
            }
            Mode::Edit if is_edit(tool) => before == Opinion::Ask,
            Mode::Build | Mode::Edit | Mode::Plan => {
                has_side_effects(tool) && before != Opinion::Allow
            }
        };
        if !ask {
            return (Fate::Runs, runs);
        }
        let fate = self.ask(tool, input, id, &mut runs);
        (fate, runs)
    }

    fn ask(&self, tool: &str, input: &Value, id: &str, runs: &mut Vec<Ran>) -> Fate {
        let person = |yes: bool| {
            if yes { Fate::Runs } else { Fate::Denied("denied in the dialog".to_owned()) }
        };
        let patience = match self.dialog {
            Dialog::After(_) | Dialog::RacingSilent => None,
            Dialog::Racing(_, ms) => Some(Duration::from_millis(ms)),
            Dialog::Headless => Some(Duration::ZERO),
        };
        let deadline = patience.map(|patience| Instant::now() + patience);
        let opinion = self.chain("PermissionRequest", tool, input, id, runs, deadline);
        match (opinion, self.dialog) {
            (_, Dialog::Headless) => Fate::Denied("no permission client".to_owned()),
            (Some(Opinion::Allow), _) => Fate::Runs,
            (Some(Opinion::Deny(reason)), _) => Fate::Denied(reason),
            // A race that the person won, or hooks without an opinion.
            (_, Dialog::After(yes) | Dialog::Racing(yes, _)) => person(yes),
            (_, Dialog::RacingSilent) => Fate::Denied("nobody answered".to_owned()),
        }
    }

    fn serial(
        &self,
        event: &str,
        tool: &str,
        input: &Value,
        id: &str,
        runs: &mut Vec<Ran>,
    ) -> Opinion {
        self.chain(event, tool, input, id, runs, None).unwrap_or(Opinion::None)
    }

    /// Runs the hooks of an event one after the other; `None` when the deadline ended them.
    fn chain(
        &self,
        event: &str,
        tool: &str,
        input: &Value,
        id: &str,
        runs: &mut Vec<Ran>,
        deadline: Option<Instant>,
    ) -> Option<Opinion> {
        let text = self.event(event, tool, input, id);
        let mut merged = output::Merged::default();
        for entry in self.hooks.iter().filter(|entry| entry.event == event) {
            if !matches(&entry.matcher, tool) {
                continue;
            }
            let ran = self.run(entry, &text, deadline);
            let aborted = ran.aborted;
            merged.add(self.engine, event, &ran);
            runs.push(ran);
            if aborted {
                return None;
            }
        }
        Some(merged.opinion())
    }

    fn event(&self, event: &str, tool: &str, input: &Value, id: &str) -> String {
        let mut object = json!({
            "cwd": self.cwd, "hookEventName": event, "mode": self.mode.as_str(),
            "sessionId": "sess_host", "timestamp": "2026-10-10T08:00:00.000Z", "traceId": "trace_1",
            "turnId": "turn_1", "hook_event_name": event, "permission_mode": self.mode.as_str(),
            "session_id": "sess_host", "toolName": tool, "tool_name": tool, "toolInput": input,
            "tool_input": input, "toolCallId": id, "tool_use_id": id, "riskLevel": "high",
            "transcript_path": "/tmp/zcode-hook/transcript.jsonl",
        });
        if event == "PermissionRequest" {
            object["requestId"] = format!("perm_{id}").into();
            object["reason"] = "High risk tools require explicit approval".into();
        }
        format!("{object}\n")
    }

    /// Runs one hook to its end, its timeout, or the deadline.
    fn run(&self, entry: &Entry, event: &str, deadline: Option<Instant>) -> Ran {
        let mut command = entry.command();
        command.env_clear().envs(self.environment(entry)).current_dir(&self.cwd).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let Ok(mut child) = command.spawn() else { return Ran::failed(entry) };
        if let Some(mut stdin) = child.stdin.take() {
            let event = event.to_owned();
            // A hook that does not read ends the pipe; that is its right.
            thread::spawn(move || stdin.write_all(event.as_bytes()));
        }
        let stdout = collect(child.stdout.take());
        let stderr = collect(child.stderr.take());
        let timeout = Instant::now() + entry.timeout;
        let until = deadline.map_or(timeout, |deadline| deadline.min(timeout));
        let (ended, end) = mpsc::channel();
        let group = Pid::from_child(&child);
        thread::spawn(move || ended.send(child.wait().ok().and_then(|status| status.code())));
        let mut aborted = false;
        let mut timed_out = false;
        let status = end.recv_timeout(until.saturating_duration_since(Instant::now()));
        let status = status.unwrap_or_else(|_| {
            aborted = deadline.is_some_and(|deadline| deadline <= timeout);
            timed_out = !aborted;
            // It may have ended in this moment.
            let _ = kill_process_group(group, Signal::TERM);
            end.recv_timeout(KILL_AFTER).unwrap_or_else(|_| {
                let _ = kill_process_group(group, Signal::KILL);
                None
            })
        });
        let text = |output: mpsc::Receiver<Vec<u8>>| {
            let bytes = output.recv_timeout(KILL_AFTER).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let command = entry.shown();
        Ran { command, stdout: text(stdout), stderr: text(stderr), status, aborted, timed_out }
    }

    /// The engine's environment without what ZCode strips, plus what it adds.
    fn environment(&self, entry: &Entry) -> Vec<(String, String)> {
        const STRIPPED: [&str; 8] = [
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "ALL_PROXY",
            "NO_PROXY",
            "SSL_CERT_FILE",
            "SSL_CERT_DIR",
            "CURL_CA_BUNDLE",
            "NODE_EXTRA_CA_CERTS",
        ];
        let path = std::env::var("PATH").unwrap_or_default();
        let cwd = self.cwd.display().to_string();
        let mut env = vec![
            ("PATH".to_owned(), path),
            ("ZCODE_SESSION_ID".to_owned(), "sess_host".to_owned()),
            ("CLAUDE_SESSION_ID".to_owned(), "sess_host".to_owned()),
            ("ZCODE_PROJECT_DIR".to_owned(), cwd),
        ];
        if let Some((root, data)) = &entry.plugin {
            env.push(("ZCODE_PLUGIN_ROOT".to_owned(), root.display().to_string()));
            env.push(("ZCODE_PLUGIN_DATA".to_owned(), data.display().to_string()));
        }
        let own = self.env.iter().filter(|(name, _)| !STRIPPED.contains(&name.as_str()));
        env.extend(own.cloned());
        env
    }
}

fn has_side_effects(tool: &str) -> bool {
    !matches!(tool, "Read" | "Glob" | "Grep" | "WebSearch" | "TodoWrite" | "Skill")
}

fn is_edit(tool: &str) -> bool {
    matches!(tool, "Write" | "Edit" | "MultiEdit" | "ApplyPatch")
}

/// Reads a pipe to its end in the background and keeps what ZCode keeps.
fn collect(pipe: Option<impl std::io::Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let mut all = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut all);
        }
        all.truncate(OUTPUT_LIMIT);
        send.send(all)
    });
    receive
}
