//! The gateway through its wire: the real program, plain HTTP, its own database file.

use std::io::Read as _;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use zcode_mail_core::sse::{Item, Parser};
use zcode_mail_tests::programs::{Gateway, PATIENCE, operator};

mod asking;
mod attachments;
mod attacks;
mod credentials;
mod deciding;
mod decoding;
mod discovering;
mod granting;
mod mailing;
mod operating;
mod page;
mod proving;
mod reading;
mod sessions;
mod streams;

/// A gateway with two people, ann and bob, and two agents, zcode (ann's) and pi (bob's).
struct World {
    folder: TempDir,
    gateway: Gateway,
    ann: Client,
    bob: Client,
    zcode: Client,
    pi: Client,
}

impl World {
    fn new() -> Self {
        Self::with(&[])
    }

    fn with(env: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().unwrap();
        let data = folder.path().join("data");
        let gateway = Gateway::start_with(&data, "127.0.0.1:0", env);
        let person = |name: &str| {
            let _ = operator(&data, &["user", "add", name]);
            Client::new(&gateway.url, Some(&operator(&data, &["user", "key", "create", name])))
        };
        let (ann, bob) = (person("ann"), person("bob"));
        let agent = |name: &str, owner: &str| {
            let key = operator(&data, &["agent-key", "create", name, "--owner", owner]);
            Client::new(&gateway.url, Some(&key))
        };
        let (zcode, pi) = (agent("zcode", "ann"), agent("pi", "bob"));
        Self { folder, gateway, ann, bob, zcode, pi }
    }

    /// Stops the gateway and starts another one on the same data and address.
    fn restart(self) -> Self {
        let address = self.gateway.address().to_owned();
        let data = self.gateway.data.clone();
        let (status, log) = self.gateway.stop();
        assert!(status.success(), "{log}");
        Self { gateway: Gateway::start_with(&data, &address, &[]), ..self }
    }

    /// A session that ann opens with zcode; returns its id.
    fn session(&self, mode: &str) -> String {
        let sent = self.ann.ok("/api/v1/me/mail/send", &json!({
            "to": "zcode@/home/ann/project.new", "subject": "跑一遍测试", "body": "请跑 cargo test。",
            "permission_mode": mode,
        }));
        text(&sent, "session_id")
    }

    /// A question of zcode in `session`; returns the request's id.
    fn ask(&self, session: &str, key: &str) -> String {
        text(&self.zcode.ok("/api/v1/permission/request", &question(session, key)), "request_id")
    }

    /// The database behind the gateway, to look at what no route shows.
    fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.gateway.data.join("agentmail.db")).unwrap()
    }

    fn count(&self, sql: &str) -> i64 {
        self.database().query_row(sql, [], |row| row.get(0)).unwrap()
    }
}

fn question(session: &str, key: &str) -> Value {
    json!({
        "question": "允许执行 Bash 吗？", "options": ["同意", "一直同意", "拒绝"],
        "context": "cargo test", "session_id": session, "relay_key": key,
    })
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}")).to_owned()
}

/// Somebody who talks to the gateway.
#[derive(Clone)]
struct Client {
    url: String,
    http: ureq::Agent,
    headers: Vec<(String, String)>,
}

/// What came back.
#[derive(Debug)]
struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value)
    }
}

impl Client {
    fn new(url: &str, key: Option<&str>) -> Self {
        let http = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_global(Some(PATIENCE))
            .build()
            .new_agent();
        let headers = key.map(|key| ("Authorization".to_owned(), format!("Bearer {key}")));
        Self { url: url.to_owned(), http, headers: headers.into_iter().collect() }
    }

    fn with(&self, name: &str, value: &str) -> Self {
        let mut other = self.clone();
        other.headers.push((name.to_owned(), value.to_owned()));
        other
    }

    fn key(&self) -> &str {
        self.headers[0].1.trim_start_matches("Bearer ")
    }

    fn get(&self, path: &str) -> Reply {
        let mut request = self.http.get(format!("{}{path}", self.url));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        reply(request.call())
    }

    fn send(&self, path: &str, content_type: &str, body: &[u8]) -> Reply {
        let mut request = self.http.post(format!("{}{path}", self.url));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if !content_type.is_empty() {
            request = request.header("Content-Type", content_type);
        }
        reply(request.send(body))
    }

    fn post(&self, path: &str, body: &Value) -> Reply {
        self.send(path, "application/json", body.to_string().as_bytes())
    }

    /// A request with another method and a JSON body.
    fn call(&self, method: &str, path: &str, body: &Value) -> Reply {
        let url = format!("{}{path}", self.url);
        let mut request = match method {
            "PUT" => self.http.put(url),
            "PATCH" => self.http.patch(url),
            "DELETE" => self.http.delete(url).force_send_body(),
            other => panic!("{other}"),
        };
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        reply(request.header("Content-Type", "application/json").send(body.to_string()))
    }

    fn form(&self, path: &str, body: &str) -> Reply {
        self.send(path, "application/x-www-form-urlencoded", body.as_bytes())
    }

    /// A `POST` that must succeed.
    fn ok(&self, path: &str, body: &Value) -> Value {
        let reply = self.post(path, body);
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        reply.json()
    }

    /// A `POST` that must be refused; returns the status and what the answer says.
    fn refused(&self, path: &str, body: &Value) -> (u16, String) {
        let reply = self.post(path, body);
        assert!(reply.status >= 400, "{path}: {reply:?}");
        (reply.status, reply.body)
    }

    /// A `GET` that must succeed.
    fn look(&self, path: &str) -> Value {
        let reply = self.get(path);
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        reply.json()
    }

    fn stream(&self, path: &str, last_id: Option<&str>) -> Stream {
        Stream::open(self, path, last_id)
    }
}

fn reply(result: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Reply {
    let mut response = result.unwrap();
    let headers = response
        .headers()
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap_or_default().to_owned()))
        .collect();
    let body = response.body_mut().read_to_string().unwrap();
    Reply { status: response.status().as_u16(), headers, body }
}

/// One event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Event {
    id: u64,
    name: String,
    data: Value,
}

/// An open event stream, read in the background.
struct Stream {
    events: mpsc::Receiver<Event>,
}

impl Stream {
    /// Returns when the gateway has answered 200 and sent its first comment.
    fn open(client: &Client, path: &str, last_id: Option<&str>) -> Self {
        let http = ureq::Agent::config_builder().proxy(None).build().new_agent();
        let mut request = http.get(format!("{}{path}", client.url));
        for (name, value) in &client.headers {
            request = request.header(name, value);
        }
        if let Some(id) = last_id {
            request = request.header("Last-Event-ID", id);
        }
        let mut body = request.call().unwrap().into_body().into_reader();
        let mut buffer = vec![0; 64 * 1024];
        let mut filled = body.read(&mut buffer).unwrap();
        assert!(buffer.starts_with(b": connected\n"), "{:?}", &buffer[..filled]);
        let (send, events) = mpsc::channel();
        thread::spawn(move || {
            let mut parser = Parser::new();
            while filled > 0 {
                let mut at = 0;
                while at < filled {
                    let (used, item) = parser.feed(&buffer[at..filled]);
                    at += used;
                    if let Some(Item::Event(event)) = item {
                        let event = Event {
                            id: event.last_id.parse().unwrap(),
                            name: event.name.to_owned(),
                            data: serde_json::from_str(event.data).unwrap(),
                        };
                        if send.send(event).is_err() {
                            return;
                        }
                    } else if used == 0 {
                        break;
                    }
                }
                filled = body.read(&mut buffer).unwrap_or(0);
            }
        });
        Self { events }
    }

    fn next(&self) -> Event {
        self.events.recv_timeout(PATIENCE).expect("an event")
    }

    fn next_named(&self, name: &str) -> Event {
        loop {
            let event = self.next();
            if event.name == name {
                return event;
            }
        }
    }

    /// Whether the stream ends, with all its events read, within the bounded wait.
    fn ends(&self) -> bool {
        loop {
            match self.events.recv_timeout(PATIENCE) {
                Ok(_) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return true,
                Err(mpsc::RecvTimeoutError::Timeout) => return false,
            }
        }
    }

    /// The events that are there already.
    fn waiting(&self) -> Vec<Event> {
        self.events.try_iter().collect()
    }
}

/// Repeats `look` until it gives a value, with a bound.
fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = std::time::Instant::now() + PATIENCE;
    loop {
        if let Some(value) = look() {
            return value;
        }
        assert!(std::time::Instant::now() < end, "never happened: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
