//! What a hook costs: start to a local answer, one exchange with a gateway, click to answer, memory
//! while it waits, size on disk.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use zcode_mail_tests::programs::{Gateway, PATIENCE, Running, bin, command, operator};

use super::stats::{Samples, ratio};

/// Starts of each candidate.
const STARTS: usize = 300;
/// Starts of the Node script, which takes a hundred times longer.
const NODE_STARTS: usize = 30;
/// Decisions measured from click to answer.
const CLICKS: usize = 200;

fn work() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.work/bench")).to_owned()
}

fn static_hook() -> Option<PathBuf> {
    let dir = std::env::var("MUSL_DIR").ok().filter(|dir| !dir.is_empty())?;
    let path =
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(dir).join("zcode-mail-hook");
    path.is_file().then_some(path)
}

fn event(number: usize) -> String {
    let event = json!({
        "hook_event_name": "PermissionRequest",
        "session_id": "sess_bench",
        "cwd": "/tmp",
        "tool_name": "Bash",
        "tool_input": { "command": "cargo test" },
        "tool_use_id": format!("call_{number}"),
        "requestId": format!("perm_{number}"),
    });
    format!("{event}\n")
}

/// Runs a command once with an event on stdin and measures from the start to the end.
fn once(
    program: &Path,
    args: &[&str],
    env: &[(&str, &str)],
    input: &str,
    answers: bool,
) -> Duration {
    let mut command = Command::new(program);
    command.env_clear().envs(env.iter().copied()).args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn().expect("the candidate starts");
    if let Some(mut stdin) = child.stdin.take() {
        // The empty program does not read.
        let _ = std::io::Write::write_all(&mut stdin, input.as_bytes());
    }
    let out = child.wait_with_output().expect("the candidate ends");
    let took = start.elapsed();
    assert!(out.status.success(), "{}", program.display());
    assert_eq!(
        out.stdout.starts_with(b"{\"decision\":\"approve\""),
        answers,
        "{}",
        program.display()
    );
    took
}

/// The `start` section.
pub fn start() {
    let input = event(1);
    let env = [("AGENTMAIL_PERMISSION_MODE", "full"), ("HOME", "/nonexistent")];
    let hook = bin("zcode-mail-hook");
    let node = which("node");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/measure/peers/hook.mjs");
    let empty = work().join("empty");
    let empty_static = Some(work().join("empty-static")).filter(|path| path.is_file());
    let small = static_hook();
    let mut rows: Vec<(&str, PathBuf, Vec<&str>, bool, Samples)> = vec![
        ("empty C program", empty, vec![], false, Samples::default()),
        ("hook, release build", hook, vec![], true, Samples::default()),
    ];
    rows.extend(
        empty_static.map(|p| ("empty C program, static", p, vec![], false, Samples::default())),
    );
    rows.extend(small.map(|p| ("hook, static musl build", p, vec![], true, Samples::default())));
    let node_row = rows.len();
    rows.extend(
        node.map(|p| ("the same as a Node script", p, vec![script], true, Samples::default())),
    );
    for round in 0..STARTS {
        for (index, (_, program, args, answers, samples)) in rows.iter_mut().enumerate() {
            if index < node_row || round < NODE_STARTS {
                samples.push(once(program, args, &env, &input, *answers));
            }
        }
    }
    println!("process start to the end of a local answer");
    for (name, .., samples) in &rows {
        println!("{name:<28} {}", samples.line());
    }
    let median = |name: &str| rows.iter().find(|row| row.0 == name).map(|row| row.4.median());
    let show = |title: &str, a: &str, b: &str| {
        if let (Some(a), Some(b)) = (median(a), median(b)) {
            println!("{title:<44} {:>7.2}x", ratio(a, b));
        }
    };
    show("hook / empty C program", "hook, release build", "empty C program");
    show(
        "static hook / static empty C program",
        "hook, static musl build",
        "empty C program, static",
    );
    show("Node script / hook", "the same as a Node script", "hook, release build");
}

fn which(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// A gateway with a human, an agent and a client for both.
struct Bench {
    gateway: Gateway,
    _home: tempfile::TempDir,
    agent_key: String,
    user_key: String,
    session: String,
    http: ureq::Agent,
}

impl Bench {
    fn set_up() -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let data = home.path().join("gateway");
        let gateway = Gateway::start(&data);
        let _ = operator(&data, &["user", "add", "ann"]);
        let user_key = operator(&data, &["user", "key", "create", "ann"]);
        let agent_key = operator(&data, &["agent-key", "create", "zcode", "--owner", "ann"]);
        let http = ureq::Agent::config_builder().proxy(None).timeout_global(Some(PATIENCE)).build();
        let mut bench = Self {
            gateway,
            _home: home,
            agent_key,
            user_key,
            session: String::new(),
            http: http.into(),
        };
        bench.post(
            "/api/v1/agent/register",
            &bench.agent_key,
            &json!({ "name": "zcode", "platform": "zcode", "workspaces": [] }),
        );
        let mail = json!({ "to": "zcode@/tmp.new", "subject": "bench", "body": "bench" });
        let sent = bench.post("/api/v1/me/mail/send", &bench.user_key, &mail);
        bench.session = sent["session_id"].as_str().expect("a session").to_owned();
        bench
    }

    fn post(&self, path: &str, key: &str, body: &Value) -> Value {
        let request = self.http.post(format!("{}{path}", self.gateway.url));
        let mut reply = request
            .header("Authorization", format!("Bearer {key}"))
            .header("Content-Type", "application/json")
            .send(body.to_string())
            .expect("the gateway accepts");
        let text = reply.body_mut().read_to_string().expect("the gateway answers");
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn pending(&self) -> Vec<Value> {
        let url = format!("{}/api/v1/me/permissions?status=pending", self.gateway.url);
        let request =
            self.http.get(url).header("Authorization", format!("Bearer {}", self.user_key));
        let text = request.call().expect("the gateway answers").body_mut().read_to_string();
        let list: Value = serde_json::from_str(&text.expect("a list")).unwrap_or_default();
        list.get("permissions").unwrap_or(&list).as_array().cloned().unwrap_or_default()
    }

    fn hook(&self, number: usize, session: &str) -> Running {
        let home = self.gateway.data.to_string_lossy().into_owned();
        let command = command(
            "zcode-mail-hook",
            &[
                ("HOME", &home),
                ("AGENTMAIL_GATEWAY_URL", &self.gateway.url),
                ("AGENTMAIL_AGENT_KEY", &self.agent_key),
                ("AGENTMAIL_AGENT_NAME", "zcode"),
                ("AGENTMAIL_SESSION_ID", session),
            ],
        );
        Running::spawn(command, Some(event(number).as_bytes()))
    }

    /// Starts a hook and returns it with the id of its request.
    fn asking(&self, number: usize) -> (Running, String) {
        let hook = self.hook(number, &self.session);
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(request) = self.pending().first() {
                return (hook, request["request_id"].as_str().expect("an id").to_owned());
            }
            assert!(Instant::now() < deadline, "no request arrived");
        }
    }

    fn approve(&self, request: &str) {
        let path = format!("/api/v1/me/permissions/{request}/decide");
        self.post(&path, &self.user_key, &json!({ "decision": "同意", "note": "" }));
    }
}

/// The `exchange` section: a hook whose question the gateway refuses at once, against a local one.
pub fn exchange() {
    let bench = Bench::set_up();
    let mut samples = Samples::default();
    for number in 0..STARTS / 3 {
        let start = Instant::now();
        let out = bench.hook(number, "no-such-session").finish(PATIENCE);
        samples.push(start.elapsed());
        assert!(out.stdout.starts_with(b"{\"decision\":\"block\""));
    }
    println!("start, open the stream, ask, be refused with 4xx, answer");
    println!("{:<28} {}", "hook, release build", samples.line());
}

/// The `click` section.
pub fn click() {
    let bench = Bench::set_up();
    let mut samples = Samples::default();
    for number in 0..CLICKS {
        let (hook, request) = bench.asking(number);
        let start = Instant::now();
        bench.approve(&request);
        let out = hook.finish(PATIENCE);
        samples.push(start.elapsed());
        assert!(out.stdout.starts_with(b"{\"decision\":\"approve\""));
    }
    println!("the decision's POST to the end of the hook, with a durable commit in between");
    println!("{:<28} {}", "click to answer", samples.line());
}

/// The `wait` section.
pub fn wait() {
    let bench = Bench::set_up();
    let (hook, request) = bench.asking(0);
    let status = std::fs::read_to_string(format!("/proc/{}/status", hook.id())).unwrap_or_default();
    for name in ["VmRSS", "VmHWM", "Threads"] {
        if let Some(line) = status.lines().find(|line| line.starts_with(name)) {
            println!("waiting hook   {line}");
        }
    }
    bench.approve(&request);
    let _ = hook.finish(PATIENCE);
}

/// The `size` section.
pub fn size() {
    let show = |name: &str, path: &Path| {
        if let Ok(meta) = std::fs::metadata(path) {
            println!("{name:<36} {:>8} KiB", meta.len() / 1024);
        }
    };
    show("zcode-mail-hook", &bin("zcode-mail-hook"));
    if let Some(path) = static_hook() {
        show("zcode-mail-hook, static, without TLS", &path);
    }
    show("zcode-mail", &bin("zcode-mail"));
}
