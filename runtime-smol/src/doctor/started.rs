//! Starting a program with a limit, and keeping what it printed.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Most bytes of an output that are kept.
const SHOWN: u64 = 4096;
/// Pause between two looks whether a program has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A program that was started, and what it printed.
#[derive(Clone, Debug)]
pub struct Started {
    /// The command line.
    pub command: String,
    /// Its exit status; `None` when it was killed or never ran.
    pub status: Option<i32>,
    /// What it wrote on standard output.
    pub stdout: String,
    /// What it wrote on standard error.
    pub stderr: String,
    /// Why it did not run to its end.
    pub problem: Option<String>,
}

impl Started {
    /// Runs a program to its end, or kills it after `limit`.
    pub(crate) fn run(
        program: &Path,
        args: &[String],
        env: &BTreeMap<String, String>,
        input: &str,
        limit: Duration,
    ) -> Self {
        let command = format!("{} {}", program.display(), args.join(" "));
        let failed = |problem: String| Self {
            command: command.clone(),
            status: None,
            stdout: String::new(),
            stderr: String::new(),
            problem: Some(problem),
        };
        let mut child = match Command::new(program)
            .args(args)
            .env_clear()
            .envs(env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
        {
            Ok(child) => child,
            Err(error) => return failed(error.to_string()),
        };
        if let Some(mut stdin) = child.stdin.take() {
            // A program that ends without reading has its own reasons.
            let _ = stdin.write_all(input.as_bytes());
        }
        let stdout = collect(child.stdout.take());
        let stderr = collect(child.stderr.take());
        let deadline = Instant::now() + limit;
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break Ok(status),
                Ok(None) if Instant::now() < deadline => thread::sleep(LOOK_AGAIN),
                Ok(None) => break Err(format!("it did not end within {} s", limit.as_secs())),
                Err(error) => break Err(error.to_string()),
            }
        };
        if status.is_err() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let text = |pipe: mpsc::Receiver<String>| pipe.recv_timeout(limit).unwrap_or_default();
        Self {
            status: status.as_ref().ok().and_then(std::process::ExitStatus::code),
            stdout: text(stdout),
            stderr: text(stderr),
            problem: status.err(),
            command,
        }
    }

    /// As `--json` shows it.
    pub(super) fn json(&self) -> Value {
        json!({
            "command": self.command,
            "status": self.status,
            "stdout": self.stdout,
            "stderr": self.stderr,
            "problem": self.problem,
        })
    }

    pub(super) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "  $ {}", self.command)?;
        for line in self.stdout.lines() {
            writeln!(out, "    {line}")?;
        }
        for line in self.stderr.lines() {
            writeln!(out, "    [stderr] {line}")?;
        }
        match (&self.problem, self.status) {
            (Some(problem), _) => writeln!(out, "    [{problem}]"),
            (None, Some(status)) => writeln!(out, "    [status {status}]"),
            (None, None) => writeln!(out, "    [killed]"),
        }
    }
}

fn collect(pipe: Option<impl io::Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel();
    if let Some(mut pipe) = pipe {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.by_ref().take(SHOWN).read_to_end(&mut bytes);
            let _ = io::copy(&mut pipe, &mut io::sink());
            let _ = send.send(String::from_utf8_lossy(&bytes).into_owned());
        });
    }
    receive
}
