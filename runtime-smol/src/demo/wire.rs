//! `zcode-mail demo --wire`: the contract's end-to-end check with nothing but HTTP (seed 003, 7.8).
//!
//! A gateway runs in this process on a free port; an agent and a human talk to it as any program
//! would: register, heartbeat, event stream, send, receive, reply, attach, repeat.

use std::io::{Read, Write};
use std::sync::mpsc;
use std::thread;

use serde_json::{Value, json};
use zcode_mail_core::api::attachment::Multipart;
use zcode_mail_core::sse::{Item, Parser};

use super::DemoError;
use super::people::{PATIENCE, fresh_directory};
use crate::gateway::accounts::{self, Lifetime};
use crate::gateway::{self, Config};

/// The agent.
const AGENT: &str = "wire";
/// The human.
const HUMAN: &str = "you";
/// What the attachment holds.
const FILE: &[u8] = b"carried byte for byte\n";

/// Plays every step and tells it on `out`. `Ok(true)` means that each answer was the expected one.
///
/// # Errors
///
/// When the gateway cannot be started or an answer cannot be read.
pub fn run(out: &mut dyn Write) -> Result<bool, DemoError> {
    let root = fresh_directory()?;
    let result = play(&root, out);
    // The data is the demo's own; a failure only leaves a folder behind.
    let _ = std::fs::remove_dir_all(&root);
    result
}

fn play(root: &std::path::Path, out: &mut dyn Write) -> Result<bool, DemoError> {
    let mut config = Config::new(root.join("data").join(gateway::DATABASE_NAME));
    config.listen.set_port(0);
    let running = gateway::start(config).map_err(|error| DemoError::Refused(error.to_string()))?;
    let made = smol::block_on(running.store().write(|tx| {
        accounts::add_user(tx, HUMAN, None, false)?;
        let (_, user) = accounts::create_user_key(tx, HUMAN, Lifetime::Permanent)?;
        let (_, agent) = accounts::create_agent_key(tx, AGENT, HUMAN, None, Lifetime::Permanent)?;
        Ok((user, agent))
    }));
    let (user, agent) = made.map_err(|failure| DemoError::Refused(failure.message.en.clone()))?;
    let url = running.url();
    let mut told = Told { out, number: 0, wrong: 0 };
    steps(&mut told, &Side::new(&url, agent), &Side::new(&url, user))?;
    let wrong = told.wrong;
    running.stop();
    let end = match wrong {
        0 => "Every answer was the expected one.".to_owned(),
        count => format!("{count} answers were unexpected."),
    };
    writeln!(out, "\n{end}").map_err(|e| DemoError::Io("writing", e))?;
    Ok(wrong == 0)
}

fn steps(told: &mut Told<'_>, agent: &Side, human: &Side) -> Result<(), DemoError> {
    let hello = json!({"name": AGENT, "platform": "wire-demo", "workspaces": []});
    let registered = agent.post("/api/v1/agent/register", &hello)?;
    told.step("The agent registers.", &registered, registered["agent_name"] == AGENT)?;

    let beat = agent.post("/api/v1/agent/heartbeat", &json!({"mode_enforcement": "advisory"}))?;
    told.step("It beats: no mail waits, any model may be used.", &beat, {
        beat["pending_mails"] == 0 && beat["models_unrestricted"] == true
    })?;

    let events = agent.stream("/api/v1/events/stream")?;
    let mail = json!({
        "to": format!("{AGENT}@/srv/project.new"), "subject": "Count the lines",
        "body": "How many lines has README.md?",
    });
    let sent = human.post("/api/v1/me/mail/send", &mail)?;
    told.step("It listens. The human sends it a mail in a new session.", &sent, {
        sent["session_alias"] == "count-the-lines"
    })?;
    let arrived = event(&events, "new_mail")?;
    told.step("The event arrives, with the address that answers it.", &arrived, {
        arrived["mail_id"] == sent["mail_id"] && arrived["from_human"] == true
    })?;

    let inbox = agent.get("/api/v1/mail/inbox?status=unread&limit=5")?;
    told.step("The agent reads its inbox.", &inbox["mails"][0]["body"], {
        inbox["mails"][0]["body"] == mail["body"]
    })?;
    let marked = agent.post("/api/v1/mail/read", &json!({"mail_ids": [sent["mail_id"]]}))?;
    told.step("It marks what it has read.", &marked, marked["marked"] == 1)?;

    let file = agent.upload("answer.txt", FILE)?;
    told.step("It uploads a file.", &file, file["size"] == FILE.len())?;
    let reply = json!({
        "to": arrived["reply_address"], "subject": "Re: Count the lines", "body": "12.",
        "reply_to": sent["mail_id"], "attachment_ids": [file["attachment_id"]],
        "relay": "summary", "relay_key": "turn-1",
    });
    let answered = agent.post("/api/v1/mail/send", &reply)?;
    told.step(
        "It replies with the file, as the last text of its turn: free of charge.",
        &answered,
        answered["session_id"] == sent["session_id"] && answered["budget_remaining"] == 20,
    )?;
    let again = agent.post("/api/v1/mail/send", &reply)?;
    told.step("Sent again after a restart, nothing is sent twice.", &again, {
        again["status"] == "duplicate_relay"
    })?;

    let got = human.get("/api/v1/me/mail/inbox")?["mails"][0].clone();
    told.step("The human finds the answer in the same thread.", &got["body"], {
        got["in_reply_to"] == sent["mail_id"] && got["body"] == "12."
    })?;
    let id = got["attachments"][0]["attachment_id"].as_str().unwrap_or_default().to_owned();
    let bytes = human.bytes(&format!("/api/v1/me/attachments/{id}"))?;
    told.step("The file comes down byte for byte.", &json!(bytes.len()), bytes == FILE)?;

    let astray = json!({"to": "wire@/srv/project.no-such", "subject": "x", "body": "x"});
    let refused = human.post("/api/v1/me/mail/send", &astray)?;
    told.step("A misspelt session is an error and never a new session.", &refused, {
        refused["error"].is_string()
    })
}

/// The story so far.
struct Told<'o> {
    out: &'o mut dyn Write,
    number: u32,
    wrong: u32,
}

impl Told<'_> {
    fn step(&mut self, what: &str, answer: &Value, right: bool) -> Result<(), DemoError> {
        self.number += 1;
        let mark = if right { "" } else { "\n   UNEXPECTED" };
        self.wrong += u32::from(!right);
        writeln!(self.out, "{:2}. {what}\n    {answer}{mark}", self.number)
            .map_err(|e| DemoError::Io("writing", e))
    }
}

/// One of the two who talk to the gateway.
struct Side {
    url: String,
    key: String,
    http: ureq::Agent,
}

impl Side {
    fn new(url: &str, key: String) -> Self {
        let http = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .build()
            .new_agent();
        Self { url: url.to_owned(), key, http }
    }

    fn get(&self, path: &str) -> Result<Value, DemoError> {
        parsed(path, &self.bytes(path)?)
    }

    fn bytes(&self, path: &str) -> Result<Vec<u8>, DemoError> {
        let request = self.http.get(format!("{}{path}", self.url));
        body(path, request.header("Authorization", format!("Bearer {}", self.key)).call())
    }

    fn post(&self, path: &str, value: &Value) -> Result<Value, DemoError> {
        let content = value.to_string();
        self.send(path, "application/json", content.as_bytes())
    }

    fn upload(&self, name: &str, bytes: &[u8]) -> Result<Value, DemoError> {
        let frame = Multipart::new("zcodemaildemo0boundary", name);
        let whole = [frame.head.as_bytes(), bytes, frame.tail.as_bytes()].concat();
        self.send("/api/v1/attachments", &frame.content_type, &whole)
    }

    fn send(&self, path: &str, content_type: &str, content: &[u8]) -> Result<Value, DemoError> {
        let request = self.http.post(format!("{}{path}", self.url));
        let request = request.header("Authorization", format!("Bearer {}", self.key));
        parsed(path, &body(path, request.header("Content-Type", content_type).send(content))?)
    }

    /// The events of a stream, read in the background until the gateway stops.
    fn stream(&self, path: &str) -> Result<mpsc::Receiver<(String, Value)>, DemoError> {
        let request = self.http.get(format!("{}{path}", self.url));
        let reply = request
            .header("Authorization", format!("Bearer {}", self.key))
            .call()
            .map_err(|error| DemoError::Refused(format!("{path}: {error}")))?;
        let mut reader = reply.into_body().into_reader();
        let (events, received) = mpsc::channel();
        thread::spawn(move || {
            let mut parser = Parser::new();
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = reader.read(&mut buffer) {
                let mut rest = &buffer[..length];
                loop {
                    let (used, item) = parser.feed(rest);
                    rest = &rest[used..];
                    match item {
                        Some(Item::Event(event)) => {
                            let data = serde_json::from_str(event.data).unwrap_or_default();
                            if events.send((event.name.to_owned(), data)).is_err() {
                                return;
                            }
                        }
                        Some(Item::TooLarge) => {}
                        None if rest.is_empty() || used == 0 => break,
                        None => {}
                    }
                }
            }
        });
        Ok(received)
    }
}

fn event(events: &mpsc::Receiver<(String, Value)>, name: &str) -> Result<Value, DemoError> {
    loop {
        let (found, data) = events
            .recv_timeout(PATIENCE)
            .map_err(|_| DemoError::Refused(format!("no event {name}")))?;
        if found == name {
            return Ok(data);
        }
    }
}

fn body(
    path: &str,
    reply: Result<http::Response<ureq::Body>, ureq::Error>,
) -> Result<Vec<u8>, DemoError> {
    reply
        .and_then(|mut reply| reply.body_mut().read_to_vec())
        .map_err(|error| DemoError::Refused(format!("{path}: {error}")))
}

fn parsed(path: &str, bytes: &[u8]) -> Result<Value, DemoError> {
    serde_json::from_slice(bytes).map_err(|error| DemoError::Refused(format!("{path}: {error}")))
}
