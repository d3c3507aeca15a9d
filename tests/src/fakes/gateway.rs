//! A small gateway that does what a test tells it.
//!
//! Without instructions it is honest: it keeps questions by key, answers a repeat with the state,
//! fans decisions out to every open stream, and takes withdrawals. A [`Play`] replaces the answer
//! of one endpoint, once or for good. Everything that arrives is recorded.
//!
//! Plain `std`, HTTP/1.1 just as far as our own clients speak it; it is no product.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::programs::PATIENCE;

/// A part of the gateway that a test can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Endpoint {
    /// `GET /api/v1/events/stream`
    Stream,
    /// `POST /api/v1/permission/request`
    Ask,
    /// `POST /api/v1/permission/{id}/withdraw`
    Withdraw,
    /// Anything else.
    Other,
}

/// What an endpoint does in place of the honest answer.
#[derive(Clone, Debug)]
pub enum Play {
    /// The honest answer.
    Honest,
    /// A reply with a status, extra headers and a body.
    Reply(u16, Vec<(&'static str, String)>, String),
    /// These bytes, then the end of the connection.
    Raw(Vec<u8>),
    /// These bytes, then silence with the connection open.
    Hold(Vec<u8>),
    /// These bytes one by one with a pause between two.
    Drip(Vec<u8>, Duration),
    /// The connection is reset.
    Reset,
    /// The listener closes, so that later connections are refused; then the honest answer.
    Last,
}

impl Play {
    /// A reply with a status and a JSON body.
    #[must_use]
    pub fn json(status: u16, body: &str) -> Self {
        Self::Reply(status, vec![("content-type", "application/json".into())], body.into())
    }
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Which endpoint it went to.
    pub endpoint: Endpoint,
    /// Method, path and query.
    pub target: String,
    /// Header names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body as text.
    pub body: String,
}

impl Seen {
    /// The JSON body, `null` if it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }
}

/// A question that the gateway keeps.
#[derive(Clone, Debug)]
pub struct Question {
    /// Its id; also its mail's, with another prefix.
    pub id: String,
    /// The request's body.
    pub body: Value,
    /// Decision and note, once there.
    pub decision: Option<(String, String)>,
    /// Whether it was withdrawn.
    pub withdrawn: bool,
}

#[derive(Debug, Default)]
struct State {
    seen: Vec<Seen>,
    questions: BTreeMap<String, Question>,
    plays: BTreeMap<Endpoint, VecDeque<Play>>,
    for_good: BTreeMap<Endpoint, Play>,
    connections: Vec<TcpStream>,
    streams: Vec<TcpStream>,
    history: Vec<(u64, String)>,
    closed: bool,
}

/// The running fake. Ends when dropped.
#[derive(Debug)]
pub struct Gateway {
    /// Its base URL.
    pub url: String,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    address: SocketAddr,
    state: Mutex<State>,
    changed: Condvar,
}

impl Default for Gateway {
    fn default() -> Self {
        Self::start()
    }
}

impl Gateway {
    /// Starts on a free port.
    ///
    /// # Panics
    /// When the machine has none.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared { address, state: Mutex::default(), changed: Condvar::new() });
        let ours = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if ours.lock().closed {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let ours = Arc::clone(&ours);
                thread::spawn(move || ours.serve(stream));
            }
        });
        Self { url: format!("http://{address}"), shared }
    }

    /// The next request to `endpoint` that has no play yet gets this one.
    pub fn once(&self, endpoint: Endpoint, play: Play) {
        self.shared.lock().plays.entry(endpoint).or_default().push_back(play);
    }

    /// From here on every request to `endpoint` gets this.
    pub fn always(&self, endpoint: Endpoint, play: Play) {
        self.shared.lock().for_good.insert(endpoint, play);
    }

    /// Waits until `check` gives something for what has arrived so far.
    ///
    /// # Panics
    /// After [`PATIENCE`].
    pub fn wait_for<T>(&self, what: &str, check: impl Fn(&[Seen]) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.shared.lock();
        loop {
            if let Some(found) = check(&state.seen) {
                return found;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no {what}; seen: {:#?}", state.seen);
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for the `n`th request to `endpoint`, counting from one.
    pub fn nth(&self, endpoint: Endpoint, n: usize) -> Seen {
        self.wait_for(&format!("{endpoint:?} number {n}"), |seen| {
            seen.iter().filter(|seen| seen.endpoint == endpoint).nth(n - 1).cloned()
        })
    }

    /// Waits for the first question and gives its key.
    pub fn asked(&self) -> String {
        let ask = self.nth(Endpoint::Ask, 1);
        ask.json()["relay_key"].as_str().unwrap_or_default().to_owned()
    }

    /// Everything that has arrived.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.lock().seen.clone()
    }

    /// The questions by key.
    #[must_use]
    pub fn questions(&self) -> BTreeMap<String, Question> {
        self.shared.lock().questions.clone()
    }

    /// Decides a question and tells every open stream.
    ///
    /// # Panics
    /// When nobody asked it.
    pub fn decide(&self, key: &str, decision: &str, note: &str) {
        let event = {
            let mut state = self.shared.lock();
            // The request is seen a moment before its question is kept.
            let deadline = Instant::now() + PATIENCE;
            while !state.questions.contains_key(key) && Instant::now() < deadline {
                let soon = Duration::from_millis(1);
                state = self.shared.changed.wait_timeout(state, soon).expect("no test panicked").0;
            }
            let question = state.questions.get_mut(key).expect("an asked question");
            question.decision = Some((decision.to_owned(), note.to_owned()));
            decision_event(key, question)
        };
        self.publish(&event);
    }

    /// Sends an event to every open stream and keeps it for reconnects.
    pub fn publish(&self, event: &Value) {
        let mut state = self.shared.lock();
        let id = 100 + state.history.len() as u64;
        let text = format!("id: {id}\nevent: permission_decision\ndata: {event}\n\n");
        state.history.push((id, text.clone()));
        state.send(text.as_bytes());
    }

    /// Sends raw bytes to every open stream.
    pub fn push(&self, bytes: &[u8]) {
        self.shared.lock().send(bytes);
    }

    /// Closes every open stream.
    pub fn drop_streams(&self) {
        for stream in self.shared.lock().streams.drain(..) {
            // The other side may have been faster.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// How many streams are open, as far as the gateway knows: it notices an end when it writes.
    #[must_use]
    pub fn open_streams(&self) -> usize {
        let mut state = self.shared.lock();
        state.send(b":\n\n");
        state.streams.len()
    }

    /// Stops listening and drops every connection: from here on they are refused.
    pub fn stop(&self) {
        self.shared.close();
        for connection in self.shared.lock().connections.drain(..) {
            // The other side may have been faster.
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.drop_streams();
        self.shared.lock().closed = true;
        let _ = TcpStream::connect(self.shared.address);
    }
}

impl State {
    fn send(&mut self, bytes: &[u8]) {
        self.streams.retain_mut(|stream| stream.write_all(bytes).is_ok());
    }

    fn play(&mut self, endpoint: Endpoint) -> Play {
        self.plays
            .get_mut(&endpoint)
            .and_then(VecDeque::pop_front)
            .or_else(|| self.for_good.get(&endpoint).cloned())
            .unwrap_or(Play::Honest)
    }

    fn ask(&mut self, body: &Value) -> Value {
        let key = body["relay_key"].as_str().unwrap_or_default().to_owned();
        let number = self.questions.len() + 1;
        let repeat = self.questions.contains_key(&key);
        let question = self.questions.entry(key.clone()).or_insert_with(|| Question {
            id: format!("req-{number}"),
            body: body.clone(),
            decision: None,
            withdrawn: false,
        });
        let mut reply = state_of(question);
        reply["relay_key"] = key.into();
        if repeat && reply["status"] == "pending" {
            reply["status"] = "duplicate_relay".into();
        }
        reply
    }

    fn withdraw(&mut self, target: &str) -> (u16, Value) {
        let id = target.trim_end_matches("/withdraw").rsplit('/').next().unwrap_or_default();
        match self.questions.values_mut().find(|question| question.id == id) {
            None => (404, json!({"error": "no such request"})),
            Some(question) => {
                question.withdrawn |= question.decision.is_none();
                (200, state_of(question))
            }
        }
    }
}

fn state_of(question: &Question) -> Value {
    let mut state = json!({
        "request_id": question.id,
        "mail_id": format!("mail-{}", question.id),
        "status": if question.withdrawn { "withdrawn" } else { "pending" },
    });
    if let Some((decision, note)) = &question.decision {
        state["status"] = "decided".into();
        state["decision"] = decision.as_str().into();
        state["note"] = note.as_str().into();
        state["decided_by"] = "han".into();
    }
    state
}

fn decision_event(key: &str, question: &Question) -> Value {
    let (decision, note) = question.decision.clone().unwrap_or_default();
    json!({
        "mail_id": format!("mail-{}", question.id),
        "decision_mail_id": format!("decision-{}", question.id),
        "decision": decision,
        "note": note,
        "decided_by": "han",
        "session_id": question.body["session_id"].as_str().unwrap_or("s-interactive"),
        "relay_key": key,
        "relay_kind": "permission",
    })
}

/// The head of an honest stream.
#[must_use]
pub fn stream_head() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n\r\n"
        .to_vec()
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A test that failed while it looked must still be able to end this gateway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the listener and waits until connections are refused.
    fn close(&self) {
        self.lock().closed = true;
        let deadline = Instant::now() + PATIENCE;
        // The first connection wakes the accepting thread, which then drops the listener.
        while TcpStream::connect(self.address).is_ok() {
            assert!(Instant::now() < deadline, "the listener stays");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Serves one connection until it ends, then lets go of it, so that the close is seen.
    fn serve(&self, stream: TcpStream) {
        let (Ok(kept), Ok(peer)) = (stream.try_clone(), stream.peer_addr()) else { return };
        self.lock().connections.push(kept);
        self.converse(stream);
        let other = |known: &mut TcpStream| known.peer_addr().is_ok_and(|known| known != peer);
        self.lock().connections.retain_mut(other);
    }

    fn converse(&self, stream: TcpStream) {
        let Ok(reading) = stream.try_clone() else { return };
        let mut reader = BufReader::new(reading);
        let mut stream = stream;
        while let Some(seen) = read_request(&mut reader) {
            let play = {
                let mut state = self.lock();
                state.seen.push(seen.clone());
                state.play(seen.endpoint)
            };
            let go_on = self.answer(&mut stream, &seen, play);
            self.changed.notify_all();
            if !go_on {
                return;
            }
        }
    }

    /// Answers one request; `false` ends the connection's thread.
    fn answer(&self, stream: &mut TcpStream, seen: &Seen, play: Play) -> bool {
        match play {
            Play::Honest => self.answer_honestly(stream, seen),
            Play::Reply(status, headers, body) => {
                let mut text =
                    format!("HTTP/1.1 {status} Scripted\r\ncontent-length: {}\r\n", body.len());
                for (name, value) in headers {
                    text.push_str(&format!("{name}: {value}\r\n"));
                }
                text.push_str("\r\n");
                text.push_str(&body);
                stream.write_all(text.as_bytes()).is_ok()
            }
            Play::Raw(bytes) => {
                let _ = stream.write_all(&bytes);
                let _ = stream.shutdown(Shutdown::Both);
                false
            }
            Play::Hold(bytes) => {
                let _ = stream.write_all(&bytes);
                // Until the other side has had enough.
                let _ = stream.read(&mut [0]);
                false
            }
            Play::Drip(bytes, pause) => {
                for byte in bytes {
                    if stream.write_all(&[byte]).is_err() {
                        break;
                    }
                    thread::sleep(pause);
                }
                false
            }
            Play::Last => {
                self.close();
                self.answer_honestly(stream, seen)
            }
            Play::Reset => {
                // A linger of zero turns the close into a reset.
                let _ = rustix::net::sockopt::set_socket_linger(&*stream, Some(Duration::ZERO));
                false
            }
        }
    }

    fn answer_honestly(&self, stream: &mut TcpStream, seen: &Seen) -> bool {
        let mut state = self.lock();
        let (status, body) = match seen.endpoint {
            Endpoint::Stream => {
                let last = seen.headers.get("last-event-id").and_then(|id| id.parse::<u64>().ok());
                let mut bytes = stream_head();
                for (id, text) in &state.history {
                    if last.is_some_and(|last| *id > last) {
                        bytes.extend_from_slice(text.as_bytes());
                    }
                }
                if stream.write_all(&bytes).is_ok()
                    && let Ok(writing) = stream.try_clone()
                {
                    state.streams.push(writing);
                }
                drop(state);
                self.changed.notify_all();
                // Until the other side has had enough.
                let _ = stream.read(&mut [0]);
                return false;
            }
            Endpoint::Ask => (200, state.ask(&seen.json())),
            Endpoint::Withdraw => state.withdraw(&seen.target),
            Endpoint::Other => (404, json!({"error": "not found"})),
        };
        drop(state);
        let text = body.to_string();
        let reply = format!(
            "HTTP/1.1 {status} OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{text}",
            text.len()
        );
        stream.write_all(reply.as_bytes()).is_ok()
    }
}

fn read_request(reader: &mut impl std::io::BufRead) -> Option<Seen> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':')?;
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let endpoint = match (method.as_str(), path.as_str()) {
        ("GET", "/api/v1/events/stream") => Endpoint::Stream,
        ("POST", "/api/v1/permission/request") => Endpoint::Ask,
        ("POST", path) if path.ends_with("/withdraw") => Endpoint::Withdraw,
        _ => Endpoint::Other,
    };
    let body = String::from_utf8_lossy(&body).into_owned();
    Some(Seen { endpoint, target: format!("{method} {path}"), headers, body })
}
