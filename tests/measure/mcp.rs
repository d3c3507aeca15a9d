//! The mail server beside the stock servers of the official SDKs: first answer, a call that is
//! answered locally, 64 calls in flight, CPU, memory, a client that never reads; and `read_inbox`
//! beside a bare HTTP request to the same route of the real gateway.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use zcode_mail_tests::programs::{Gateway, bin, operator};

use super::stats::{Samples, ratio};

/// Times that all candidates are measured in turn.
const ROUNDS: usize = 5;
/// Starts of each candidate in a round.
const STARTS: usize = 5;
/// Calls one after another in a round.
const CALLS: usize = 1000;
/// Calls in flight at once.
const WINDOW: usize = 64;

struct Candidate {
    name: &'static str,
    command: Vec<PathBuf>,
    /// Calls in flight in all: the interpreted servers take longer for each.
    burst: usize,
    first: Samples,
    call: Samples,
    per_second: Vec<f64>,
    cpu_us: Vec<f64>,
    peak_kib: u64,
    deaf_kib: Vec<u64>,
}

impl Candidate {
    fn new(name: &'static str, command: Vec<PathBuf>, burst: usize) -> Self {
        Self {
            name,
            command,
            burst,
            first: Samples::default(),
            call: Samples::default(),
            per_second: Vec::new(),
            cpu_us: Vec::new(),
            peak_kib: 0,
            deaf_kib: Vec::new(),
        }
    }

    fn start(&self) -> Peer {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).env("AGENTMAIL_GATEWAY_URL", "http://127.0.0.1:1");
        Peer::spawn(command)
    }

    fn round(&mut self) {
        for _ in 0..STARTS {
            let begin = Instant::now();
            let mut peer = self.start();
            peer.initialize();
            self.first.push(begin.elapsed());
        }
        let mut peer = self.start();
        peer.initialize();
        for number in 0..CALLS {
            let line = call(number);
            let begin = Instant::now();
            peer.write(&line);
            peer.line();
            if number >= CALLS / 10 {
                self.call.push(begin.elapsed());
            }
        }
        let (cpu, begin) = (peer.cpu(), Instant::now());
        peer.window(self.burst);
        let span = begin.elapsed();
        let calls = self.burst as f64;
        self.per_second.push(calls / span.as_secs_f64());
        self.cpu_us.push((peer.cpu().saturating_sub(cpu)).as_secs_f64() * 1e6 / calls);
        self.peak_kib = self.peak_kib.max(peer.peak());
        self.deaf_kib.push(self.deaf());
    }

    /// KiB that a client costs which sends calls and never reads.
    fn deaf(&self) -> u64 {
        let mut peer = self.start();
        peer.initialize();
        let before = peer.peak();
        let stdin = peer.stdin.take().expect("the input is open");
        // What nobody reads from must not be waited for: the writer is left behind.
        std::thread::spawn(move || {
            let mut stdin = stdin;
            for number in 0..50_000 {
                if stdin.write_all(call(number).as_bytes()).is_err() {
                    return;
                }
            }
        });
        std::thread::sleep(Duration::from_millis(1500));
        peer.peak() - before
    }
}

fn call(number: usize) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{number},\"method\":\"tools/call\",\
         \"params\":{{\"name\":\"read_mail\",\"arguments\":{{}}}}}}\n"
    )
}

struct Peer {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    text: String,
}

impl Peer {
    fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stdin = child.stdin.take();
        let stdout = BufReader::with_capacity(1 << 20, child.stdout.take().expect("it is piped"));
        Self { child, stdin, stdout, text: String::new() }
    }

    fn write(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("the input is open");
        stdin.write_all(line.as_bytes()).expect("the peer reads");
    }

    fn line(&mut self) -> &str {
        self.text.clear();
        assert!(self.stdout.read_line(&mut self.text).expect("the peer writes") > 0, "it ended");
        &self.text
    }

    fn initialize(&mut self) {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        });
        let request =
            json!({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": params});
        self.write(&format!("{request}\n"));
        assert!(self.line().contains("protocolVersion"), "{}", self.text);
        self.write("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
    }

    /// `count` calls, [`WINDOW`] of them in flight.
    fn window(&mut self, count: usize) {
        let (mut sent, mut got) = (0, 0);
        let mut chunk = vec![0; 1 << 20];
        while got < count {
            let more = (got + WINDOW).min(count) - sent;
            let lines: String = (sent..sent + more).map(call).collect();
            self.write(&lines);
            sent += more;
            let read = self.stdout.read(&mut chunk).expect("the peer writes");
            assert!(read > 0, "it ended");
            got += chunk[..read].iter().filter(|byte| **byte == b'\n').count();
        }
    }

    /// CPU time of all its threads so far (Linux).
    fn cpu(&self) -> Duration {
        let tasks = format!("/proc/{}/task", self.child.id());
        let times = std::fs::read_dir(tasks).into_iter().flatten().flatten().filter_map(|task| {
            let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(times.sum())
    }

    /// Peak of its resident memory in KiB (Linux).
    fn peak(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or_default()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn work() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.work")).to_owned()
}

fn candidates() -> Vec<Candidate> {
    let mut all = vec![Candidate::new("ours", vec![bin("zcode-mail-mcp")], 50_000)];
    let mut add = |name, command: Vec<PathBuf>, burst| {
        // The last file named is the peer itself.
        if command.iter().all(|part| part.exists() || part.components().count() == 1) {
            all.push(Candidate::new(name, command, burst));
        } else {
            println!("{name} is not here: {}", command.last().expect("not empty").display());
        }
    };
    let rust = work().join("bench/rmcp/release/mcp-peer");
    add("rust", vec![rust.clone()], 20_000);
    add("rust pipes", vec![rust, "pipes".into()], 20_000);
    add("typescript", vec!["node".into(), work().join("mcp/mcp-server.mjs")], 20_000);
    add("python", vec![work().join("mcp/py2/bin/python"), work().join("mcp/mcp_server.py")], 1_000);
    all
}

fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// The section.
pub fn servers() {
    let mut all = candidates();
    for _ in 0..ROUNDS {
        all.iter_mut().for_each(Candidate::round);
    }
    println!(
        "{:<12} {:>12} {:>10} {:>10} {:>11} {:>9} {:>9} {:>11}",
        "", "first ms", "p50 us", "p99 us", "calls/s", "CPU us", "peak KiB", "deaf KiB"
    );
    for one in &all {
        let us = |percent| one.call.percentile(percent).as_secs_f64() * 1e6;
        println!(
            "{:<12} {:>12.2} {:>10.1} {:>10.1} {:>11.0} {:>9.1} {:>9} {:>11}",
            one.name,
            one.first.median().as_secs_f64() * 1e3,
            us(50),
            us(99),
            middle(&one.per_second),
            middle(&one.cpu_us),
            one.peak_kib,
            one.deaf_kib.iter().max().copied().unwrap_or_default(),
        );
    }
    let ours = &all[0];
    for peer in &all[1..] {
        println!(
            "ours / {:<12} first x{:.2}   p50 x{:.2}   p99 x{:.2}   calls/s x{:.0}   peak x{:.2}",
            peer.name,
            ratio(ours.first.median(), peer.first.median()),
            ratio(ours.call.percentile(50), peer.call.percentile(50)),
            ratio(ours.call.percentile(99), peer.call.percentile(99)),
            middle(&ours.per_second) / middle(&peer.per_second),
            ours.peak_kib as f64 / peer.peak_kib as f64,
        );
    }
}

/// The section: a tool call through the real gateway beside the bare request.
pub fn inbox() {
    const CALLS: usize = 1000;
    let home = tempfile::tempdir().expect("a temporary directory");
    let data = home.path().join("gateway");
    let gateway = Gateway::start(&data);
    let _ = operator(&data, &["user", "add", "ann"]);
    let key = operator(&data, &["agent-key", "create", "zcode", "--owner", "ann"]);
    let mut command = Command::new(bin("zcode-mail-mcp"));
    command.env("AGENTMAIL_GATEWAY_URL", &gateway.url).env("AGENTMAIL_AGENT_KEY", &key);
    command.env("AGENTMAIL_AGENT_NAME", "zcode");
    let mut peer = Peer::spawn(command);
    peer.initialize();
    let request = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\
                   \"params\":{\"name\":\"read_inbox\"}}\n";
    let agent = ureq::Agent::config_builder().proxy(None).build().new_agent();
    let url = format!("{}/api/v1/mail/inbox?status=unread&limit=5", gateway.url);
    let bearer = format!("Bearer {key}");
    let bare = || {
        let reply = agent.get(&url).header("authorization", &bearer).call();
        let body = reply.expect("the gateway answers").body_mut().read_to_string();
        assert!(body.expect("a body").starts_with('{'));
    };
    let (mut calls, mut bares) = (Samples::default(), Samples::default());
    for number in 0..CALLS + 50 {
        let begin = Instant::now();
        bare();
        let middle = Instant::now();
        peer.write(request);
        assert!(peer.line().contains("\"isError\":false"), "{}", peer.text);
        let end = Instant::now();
        if number >= 50 {
            bares.push(middle - begin);
            calls.push(end - middle);
        }
    }
    println!("bare request   {}", bares.line());
    println!("read_inbox     {}", calls.line());
    let over = calls.median().as_secs_f64() - bares.median().as_secs_f64();
    println!("over the bare request at p50: {:.3} ms; peak {} KiB", over * 1e3, peer.peak());
}
