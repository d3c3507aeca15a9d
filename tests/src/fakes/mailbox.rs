//! A gateway for the mail server's tests: it answers by path from a function, keeps connections
//! open, takes any body, and remembers everything that arrived.
//!
//! Plain `std`, HTTP/1.1 just as far as our own client speaks it; it is no product.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::programs::PATIENCE;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Seen {
    /// `GET /api/v1/mail/inbox?status=unread`
    pub line: String,
    /// Header names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Vec<u8>,
    /// When it was complete.
    pub at: Instant,
    /// Which connection it came on, counted from 0.
    pub connection: usize,
}

impl Seen {
    /// The JSON body, `null` if it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

/// What the gateway does with a request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A reply: status, extra headers, body.
    Reply(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// Nothing, with the connection open, until the client closes it.
    Hang,
    /// These bytes as they stand, then the end of the connection.
    Raw(Vec<u8>),
}

impl Answer {
    /// A reply with a JSON body.
    #[must_use]
    pub fn json(status: u16, body: &str) -> Self {
        let kind = ("content-type", "application/json".to_owned());
        Self::Reply(status, vec![kind], body.as_bytes().to_vec())
    }
}

type Rule = dyn Fn(&Seen) -> Answer + Send + Sync;

#[derive(Default)]
struct State {
    seen: Vec<Seen>,
    /// Connections that the client closed while its request hung.
    dropped: usize,
    connections: usize,
    closed: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// The running fake. Ends when dropped.
pub struct Mailbox {
    /// Its base URL.
    pub url: String,
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Mailbox {
    /// Starts on a free port; `rule` answers what is not registering or a heartbeat.
    #[must_use]
    pub fn start(rule: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_raw(move |seen| match seen.line.as_str() {
            "POST /api/v1/agent/register" => {
                Answer::json(200, r#"{"status":"ok","agent_name":"zcode"}"#)
            }
            "POST /api/v1/agent/heartbeat" => {
                Answer::json(200, r#"{"status":"ok","pending_mails":0,"unknown_fields":[]}"#)
            }
            _ => rule(seen),
        })
    }

    /// Starts on a free port; `rule` answers everything.
    ///
    /// # Panics
    /// When the machine has no free port.
    #[must_use]
    pub fn start_raw(rule: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared::default());
        let (ours, rule) = (Arc::clone(&shared), Arc::new(rule) as Arc<Rule>);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, rule) = (Arc::clone(&ours), Arc::clone(&rule));
                let number = {
                    let mut state = shared.state.lock().expect("no test panics inside");
                    if state.closed {
                        return;
                    }
                    state.connections += 1;
                    state.connections - 1
                };
                thread::spawn(move || serve(stream, number, &shared, &*rule));
            }
        });
        Self { url: format!("http://{address}"), address, shared }
    }

    /// Everything that arrived so far.
    ///
    /// # Panics
    /// When a thread of the fake panicked.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.state.lock().expect("no thread panicked").seen.clone()
    }

    /// The request lines that arrived so far and start with `start`.
    #[must_use]
    pub fn lines(&self, start: &str) -> Vec<String> {
        let seen = self.seen().into_iter().map(|seen| seen.line);
        seen.filter(|line| line.starts_with(start)).collect()
    }

    /// Waits for the `n`th request, counted from 0, whose line starts with `start`.
    ///
    /// # Panics
    /// When it does not come within [`PATIENCE`].
    #[must_use]
    pub fn nth(&self, start: &str, n: usize) -> Seen {
        self.wait(&format!("request {n} of {start}"), |state| {
            state.seen.iter().filter(|seen| seen.line.starts_with(start)).nth(n).cloned()
        })
    }

    /// Waits until the client has closed `n` connections whose request hung.
    ///
    /// # Panics
    /// When it does not happen within [`PATIENCE`].
    pub fn wait_dropped(&self, n: usize) {
        self.wait("dropped exchanges", |state| (state.dropped >= n).then_some(()));
    }

    fn wait<T>(&self, what: &str, check: impl Fn(&State) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.shared.state.lock().expect("no thread panicked");
        loop {
            if let Some(found) = check(&state) {
                return found;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no {what}; seen {:?}", lines(&state));
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.expect("no thread panicked").0;
        }
    }
}

fn lines(state: &State) -> Vec<&str> {
    state.seen.iter().map(|seen| seen.line.as_str()).collect()
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        // Its thread waits for a connection; this one tells it to end.
        if let Ok(mut state) = self.shared.state.lock() {
            state.closed = true;
        }
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
    }
}

fn serve(stream: TcpStream, connection: usize, shared: &Shared, rule: &Rule) {
    let Ok(mut writer) = stream.try_clone() else { return };
    let mut reader = BufReader::new(stream);
    while let Some(seen) = read(&mut reader, connection) {
        let answer = rule(&seen);
        {
            let mut state = shared.state.lock().expect("no thread panicked");
            state.seen.push(seen);
        }
        shared.changed.notify_all();
        match answer {
            Answer::Reply(status, headers, body) => {
                let mut head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
                for (name, value) in headers {
                    head.push_str(&format!("{name}: {value}\r\n"));
                }
                head.push_str("\r\n");
                if writer.write_all(head.as_bytes()).and_then(|()| writer.write_all(&body)).is_err()
                {
                    return;
                }
            }
            Answer::Raw(bytes) => {
                let _ = writer.write_all(&bytes);
                let _ = writer.shutdown(Shutdown::Both);
                return;
            }
            Answer::Hang => {
                // Reading ends when the client closes.
                let mut byte = [0];
                let _ = reader.read(&mut byte);
                shared.state.lock().expect("no thread panicked").dropped += 1;
                shared.changed.notify_all();
                return;
            }
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>, connection: usize) -> Option<Seen> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|got| *got > 0)?;
    let line = line.trim_end().strip_suffix(" HTTP/1.1")?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok().filter(|got| *got > 0)?;
        let Some((name, value)) = header.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let mut body = Vec::new();
    if let Some(length) = headers.get("content-length").and_then(|text| text.parse().ok()) {
        body.resize(length, 0);
        reader.read_exact(&mut body).ok()?;
    } else if headers.contains_key("transfer-encoding") {
        // Our client always says how long a body is.
        return None;
    }
    Some(Seen { line, headers, body, at: Instant::now(), connection })
}
