//! The real `zcode-mail-mcp` under test, and a client that speaks to it line by line.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::programs::{PATIENCE, command};

/// The program, before it starts.
#[derive(Debug)]
pub struct Setup {
    home: tempfile::TempDir,
    env: Vec<(String, String)>,
}

impl Setup {
    /// With a temporary home and working directory, an English catalogue, and a gateway at `url`.
    ///
    /// # Panics
    /// When no temporary directory can be made.
    #[must_use]
    pub fn new(url: &str) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        std::fs::create_dir(home.path().join("work")).expect("a working directory");
        let path = home.path().to_str().expect("a temporary path is UTF-8").to_owned();
        let env = [
            ("HOME", path.as_str()),
            ("AGENTMAIL_GATEWAY_URL", url),
            ("AGENTMAIL_AGENT_NAME", "zcode"),
            ("AGENTMAIL_LANG", "en"),
        ];
        Self { env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).into(), home }
            .set("AGENTMAIL_AGENT_KEY", "am_test")
    }

    /// Sets a variable; an empty value takes it away.
    #[must_use]
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        if !value.is_empty() {
            self.env.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// The temporary home.
    #[must_use]
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The working directory, which is also an attachment folder.
    #[must_use]
    pub fn work(&self) -> std::path::PathBuf {
        self.home.path().join("work")
    }

    /// The command that starts it.
    #[must_use]
    pub fn command(&self) -> Command {
        let pairs: Vec<(&str, &str)> =
            self.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let mut command = command("zcode-mail-mcp", &pairs);
        command.current_dir(self.work());
        command
    }

    /// Starts it on pipes.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn start(&self) -> Server {
        let mut command = self.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Server::new(command.spawn().expect("the program starts"))
    }
}

/// The running program with its client. Killed when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: Receiver<String>,
    next: u64,
}

impl Server {
    fn new(mut child: Child) -> Self {
        let stdin = child.stdin.take();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let (sender, stderr) = channel();
        let mut pipe = child.stderr.take().expect("stderr is piped");
        thread::spawn(move || {
            let mut text = String::new();
            let _ = pipe.read_to_string(&mut text);
            let _ = sender.send(text);
        });
        Self { child, stdin, lines, stderr, next: 0 }
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes a line.
    ///
    /// # Panics
    /// When its input is closed.
    pub fn send(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("the input is open");
        stdin.write_all(format!("{line}\n").as_bytes()).expect("the server reads");
    }

    /// Sends a request; gives back its id.
    pub fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.send(
            &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        );
        id
    }

    /// Sends a call; gives back its id.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.request("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// The next message.
    ///
    /// # Panics
    /// When none comes within [`PATIENCE`], or it is no JSON.
    #[must_use]
    pub fn message(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("a message comes");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Whether no message comes for `span`.
    #[must_use]
    pub fn is_silent_for(&mut self, span: Duration) -> bool {
        matches!(self.lines.recv_timeout(span), Err(RecvTimeoutError::Timeout))
    }

    /// The answer to `id`; other messages before it are dropped.
    #[must_use]
    pub fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.message();
            if message["id"] == id {
                return message;
            }
        }
    }

    /// Calls a tool and waits: the text, and whether it is an error.
    ///
    /// # Panics
    /// When the answer is no result.
    #[must_use]
    pub fn text(&mut self, tool: &str, arguments: &Value) -> (String, bool) {
        let id = self.call(tool, arguments);
        let answer = self.answer(id);
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str();
        let text = text.unwrap_or_else(|| panic!("no text: {answer}")).to_owned();
        (text, result["isError"].as_bool().unwrap_or(false))
    }

    /// Closes the input.
    pub fn close(&mut self) {
        self.stdin = None;
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// When the process is gone.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("it runs");
    }

    /// Waits for its end: the status, and what it wrote to standard error.
    ///
    /// # Panics
    /// When it does not end within [`PATIENCE`].
    #[must_use]
    pub fn wait(&mut self) -> (ExitStatus, String) {
        let deadline = Instant::now() + PATIENCE;
        // Its standard error closes when it ends: an event, no polling.
        let text = self.stderr.recv_timeout(PATIENCE).expect("it ends");
        loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                return (status, text);
            }
            assert!(Instant::now() < deadline, "it closed its streams but runs");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Peak of its resident memory, in KiB (Linux).
    #[must_use]
    pub fn peak_kib(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
        line.split_whitespace().nth(1)?.parse().ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
