//! The session machine: lines in, bytes and events out.
//!
//! ```text
//!                       Run                    finish
//!   request ──▶ (id free?) ──▶ running[CallId] ──────▶ answer
//!                   │               │ cancelled
//!                   │               └────────▶ Abort, silence
//!                   └──▶ answered at once (ping, lists, bad arguments, errors)
//! ```
//!
//! State is the agreed handshake revision and the table of running calls. Whoever takes a call out
//! of the table decides its fate, so a cancellation and a result that race cannot both act. Calls
//! are named by our own [`CallId`]; the peer's ids may repeat over time without confusing anything.
//!
//! After every input, take [`Session::poll_event`] until it is `None` and write the bytes.

use alloc::borrow::ToOwned as _;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::envelope::{Message, Refusal, Text, elements, find_id, is_empty, members, read, unfit};
use super::era::{Era, EraFault, Meta, Revision};
use super::{
    HEAD, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, MAX_IN_FLIGHT, MAX_LINE, MAX_NOISE,
    METHOD_NOT_FOUND, PARSE_ERROR, wire,
};
use crate::frame::{Frame, LineFramer};
use crate::tool::{self, Next, Output, Toolbox};

/// A running call, named by us and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// Something for the runtime to do.
#[derive(Debug)]
pub enum Event {
    /// Perform the needs of this call until it is done, then [`Session::finish`] it.
    Run(CallId, Next),
    /// Drop this call and its exchange; nothing about it may be written any more.
    Abort(CallId),
    /// The client's `notifications/initialized`: it is about to work with this server.
    Initialized,
}

#[derive(Debug)]
struct Running {
    id: String,
    era: Era,
    progress: Option<Progress>,
}

#[derive(Debug)]
struct Progress {
    token: String,
    last: u64,
}

/// The machine. One per pair of standard streams.
#[derive(Debug)]
pub struct Session {
    toolbox: Toolbox,
    revision: Option<Revision>,
    /// The client has spoken the stateless era.
    stateless: bool,
    running: BTreeMap<CallId, Running>,
    /// The peer's ids of the running calls.
    ids: BTreeMap<String, CallId>,
    framer: LineFramer,
    events: VecDeque<Event>,
    next_call: u64,
    noise: u32,
    closed: bool,
}

/// A request on its way to a method.
struct Request<'a> {
    id: &'a str,
    params: Option<&'a str>,
    meta: Meta<'a>,
    era: Era,
}

impl Session {
    /// A session before its first message.
    #[must_use]
    pub const fn new(toolbox: Toolbox) -> Self {
        Self {
            toolbox,
            revision: None,
            stateless: false,
            running: BTreeMap::new(),
            ids: BTreeMap::new(),
            framer: LineFramer::new(MAX_LINE),
            events: VecDeque::new(),
            next_call: 0,
            noise: 0,
            closed: false,
        }
    }

    /// Takes the next line out of `pending`, if there is a whole one, and appends what is to be
    /// written to `out`. Gives back how many bytes the caller may drop, and whether a line was
    /// taken: then call it again with the rest. Otherwise keep the rest and append what arrives.
    ///
    /// At the end of the input call [`Session::close`]: an unterminated tail is no message.
    pub fn feed(&mut self, pending: &[u8], out: &mut Vec<u8>) -> (usize, bool) {
        let (used, frame) = self.framer.next(pending);
        match frame {
            None => return (used, false),
            Some(Frame::Line(line)) => self.receive(line, out),
            Some(Frame::TooLong(head)) => self.receive_too_long(head, out),
        }
        (used, true)
    }

    /// Takes one line, without its line end, and appends what is to be written to `out`.
    pub fn receive(&mut self, line: &[u8], out: &mut Vec<u8>) {
        if self.closed || is_empty(line) {
            return;
        }
        match read(line) {
            Ok(Message::Batch(text)) => self.batch(text, out),
            other => self.message(other, out),
        }
    }

    /// Reports a line longer than [`MAX_LINE`]; `head` is its beginning, of which [`HEAD`] bytes
    /// are searched for the id to answer to.
    pub fn receive_too_long(&mut self, head: &[u8], out: &mut Vec<u8>) {
        if self.closed {
            return;
        }
        let head = head.get(..HEAD).unwrap_or(head);
        let why = format!("the message is longer than {MAX_LINE} bytes; send a shorter one");
        match find_id(head) {
            Some(id) if self.is_running(id) => self.refuse_repeat(id, out),
            Some(id) => wire::put_error(out, Some(id), INVALID_REQUEST, &why),
            None => self.complain(out, INVALID_REQUEST, &why),
        }
    }

    /// The next thing to do; `None` when there is nothing until the next input.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Ends a call with its output. Writes nothing when the call was cancelled meanwhile.
    pub fn finish(&mut self, call: CallId, output: &Output, out: &mut Vec<u8>) {
        if let Some(done) = self.running.remove(&call) {
            self.ids.remove(&done.id);
            wire::put_output(out, &done.id, done.era, output);
        }
    }

    /// Reports how far a transfer is, in bytes. Written only if the caller asked with a token, only
    /// when it grew, and never at the end: the answer says that, and some clients close on a
    /// progress message that arrives beside it.
    pub fn progress(&mut self, call: CallId, done: u64, total: u64, out: &mut Vec<u8>) {
        let Some(progress) = self.running.get_mut(&call).and_then(|r| r.progress.as_mut()) else {
            return;
        };
        if done > progress.last && done < total {
            progress.last = done;
            wire::put_progress(out, &progress.token, done, total);
        }
    }

    /// The input ended: nothing more is accepted, running calls may still finish.
    pub const fn close(&mut self) {
        self.closed = true;
    }

    /// Whether the input ended and every call has been answered.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.closed && self.running.is_empty()
    }

    /// How many calls run.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.running.len()
    }

    fn batch(&mut self, text: &str, out: &mut Vec<u8>) {
        let parts = elements(text);
        if self.revision != Some(Revision::R2025_03_26) || parts.is_empty() {
            let why = "batches belong to revision 2025-03-26 and are not empty: \
                       send one message a line";
            return self.complain(out, INVALID_REQUEST, why);
        }
        for part in parts {
            match read(part.get().as_bytes()) {
                Ok(Message::Batch(_)) => {
                    self.complain(out, INVALID_REQUEST, "a batch holds no batch");
                }
                Ok(Message::Request { id, method, .. }) if method == "initialize" => {
                    let why = "initialize must not be part of a batch";
                    wire::put_error(out, Some(id), INVALID_REQUEST, why);
                }
                other => self.message(other, out),
            }
        }
    }

    fn message(&mut self, message: Result<Message<'_>, Refusal<'_>>, out: &mut Vec<u8>) {
        match message {
            Ok(Message::Request { id, method, params }) => {
                self.noise = 0;
                self.request(id, &method, params, out);
            }
            Ok(Message::Notification { method, params }) => {
                self.noise = 0;
                self.notification(&method, params);
            }
            Ok(Message::Response | Message::Batch(_)) => {}
            Err(Refusal::NotJson) => self.complain(out, PARSE_ERROR, "the line is not JSON"),
            Err(Refusal::NotRequest { id: None, why }) => self.complain(out, INVALID_REQUEST, why),
            Err(Refusal::NotRequest { id: Some(id), why }) => {
                if self.is_running(id) {
                    self.refuse_repeat(id, out);
                } else {
                    wire::put_error(out, Some(id), INVALID_REQUEST, why);
                }
            }
        }
    }

    /// An error to nobody in particular, at most [`MAX_NOISE`] in a row.
    fn complain(&mut self, out: &mut Vec<u8>, code: i32, why: &str) {
        self.noise = self.noise.saturating_add(1);
        if self.noise <= MAX_NOISE {
            wire::put_error(out, None, code, why);
        }
    }

    fn is_running(&self, id: &str) -> bool {
        self.ids.contains_key(id)
    }

    /// A second request under an id that still runs. Its error goes out without the id: the id has
    /// one answer coming, and a client would take this one for it.
    fn refuse_repeat(&mut self, id: &str, out: &mut Vec<u8>) {
        let shown: String = id.chars().take(64).collect();
        let why = format!("a request with id {shown} is still running; ids must not repeat");
        self.complain(out, INVALID_REQUEST, &why);
    }

    fn notification(&mut self, method: &str, params: Option<&str>) {
        match method {
            "notifications/initialized" => self.events.push_back(Event::Initialized),
            "notifications/cancelled" => {
                let Some(Ok([Some(id)])) = params.map(|raw| members(raw, ["requestId"])) else {
                    return;
                };
                if let Some(call) = self.ids.remove(id) {
                    self.running.remove(&call);
                    self.events.push_back(Event::Abort(call));
                }
            }
            _ => {}
        }
    }

    fn request(&mut self, id: &str, method: &str, params: Option<&str>, out: &mut Vec<u8>) {
        if self.is_running(id) {
            return self.refuse_repeat(id, out);
        }
        if let Some(unfit) = params.and_then(unfit) {
            return wire::put_error(out, Some(id), INVALID_PARAMS, unfit.why());
        }
        let meta = match params.map(|raw| members(raw, ["_meta"])) {
            None => Meta::default(),
            Some(Ok([raw])) => Meta::read(raw),
            Some(Err(fault)) => {
                let why = format!("params: {}", fault.why());
                return wire::put_error(out, Some(id), INVALID_PARAMS, &why);
            }
        };
        let era = match meta.era() {
            // What is wrong with its `_meta` does not concern a handshake.
            Err(_) if method == "initialize" => Ok(Era::Handshake),
            era => era,
        };
        let era = match era {
            Ok(era) => era,
            Err(EraFault::Unsupported(raw)) => return wire::put_unsupported(out, id, raw),
            Err(EraFault::VersionNotText) => {
                let why = "_meta \"io.modelcontextprotocol/protocolVersion\" must be a string";
                return wire::put_error(out, Some(id), INVALID_PARAMS, why);
            }
            Err(EraFault::NoCapabilities) => {
                let why = "_meta needs \"io.modelcontextprotocol/clientCapabilities\", an object";
                return wire::put_error(out, Some(id), INVALID_PARAMS, why);
            }
        };
        self.stateless |= era == Era::Stateless;
        if method.starts_with("tools/") && era == Era::Handshake && meta.version.is_none() {
            // A client that neither shook hands nor says its version here, but did elsewhere, forgot
            // what that era requires. One that never said anything is served as it is.
            if self.stateless && self.revision.is_none() {
                let why = "params._meta needs \"io.modelcontextprotocol/protocolVersion\" and \
                           \"io.modelcontextprotocol/clientCapabilities\"; or send initialize first";
                return wire::put_error(out, Some(id), INVALID_PARAMS, why);
            }
        }
        let request = Request { id, params, meta, era };
        match (method, era) {
            ("initialize", Era::Handshake) => self.initialize(&request, out),
            ("ping", Era::Handshake) => wire::put_pong(out, id),
            ("server/discover", Era::Stateless) => {
                wire::put_discovered(out, id, tool::guide(self.toolbox.lang));
            }
            ("server/discover", Era::Handshake) => {
                let why = "server/discover needs params._meta with \
                           \"io.modelcontextprotocol/protocolVersion\" 2026-07-28";
                wire::put_error(out, Some(id), INVALID_PARAMS, why);
            }
            ("tools/list", _) => self.list(&request, out),
            ("tools/call", _) => self.call(&request, out),
            _ => {
                let shown: String = method.chars().take(64).collect();
                let why = format!("method {shown:?} does not exist on this server");
                wire::put_error(out, Some(id), METHOD_NOT_FOUND, &why);
            }
        }
    }

    fn initialize(&mut self, request: &Request<'_>, out: &mut Vec<u8>) {
        let asked = request
            .params
            .and_then(|raw| members(raw, ["protocolVersion"]).ok()?[0])
            .and_then(|raw| serde_json::from_str::<Text<'_>>(raw).ok());
        let revision = Revision::negotiate(asked.as_ref().map(|text| text.0.as_ref()));
        self.revision = Some(revision);
        wire::put_initialized(out, request.id, revision, tool::guide(self.toolbox.lang));
    }

    fn list(&self, request: &Request<'_>, out: &mut Vec<u8>) {
        let cursor = request.params.and_then(|raw| members(raw, ["cursor"]).ok()?[0]);
        if cursor.is_some_and(|raw| raw != "null") {
            let why = "cursor: this server issues none; the list has one page";
            return wire::put_error(out, Some(request.id), INVALID_PARAMS, why);
        }
        let tools = tool::list(self.toolbox.lang);
        wire::put_tools(out, request.id, request.era, tools);
    }

    fn call(&mut self, request: &Request<'_>, out: &mut Vec<u8>) {
        let started = match self.start(request) {
            Ok(started) => started,
            Err((code, why)) => return wire::put_error(out, Some(request.id), code, &why),
        };
        let next = match started {
            Next::Done(output) => {
                return wire::put_output(out, request.id, request.era, &output);
            }
            next => next,
        };
        if self.running.len() >= MAX_IN_FLIGHT {
            let why = format!("{MAX_IN_FLIGHT} calls are running already; try again later");
            return wire::put_error(out, Some(request.id), INTERNAL_ERROR, &why);
        }
        let call = CallId(self.next_call);
        self.next_call += 1;
        let progress =
            request.meta.progress_token.map(|token| Progress { token: token.to_owned(), last: 0 });
        let running = Running { id: request.id.to_owned(), era: request.era, progress };
        self.ids.insert(running.id.clone(), call);
        self.running.insert(call, running);
        self.events.push_back(Event::Run(call, next));
    }

    fn start(&self, request: &Request<'_>) -> Result<Next, (i32, String)> {
        let invalid = |why: &str| (INVALID_PARAMS, why.to_owned());
        let params = request.params.ok_or_else(|| invalid("params.name is missing"))?;
        let [name, arguments] = members(params, ["name", "arguments"])
            .map_err(|fault| invalid(&format!("params: {}", fault.why())))?;
        let name = name.ok_or_else(|| invalid("params.name is missing"))?;
        let Text(name) = serde_json::from_str(name)
            .map_err(|_| invalid("params.name must be a string: the name of a tool"))?;
        let arguments = match arguments {
            None | Some("null") => serde_json::Map::new(),
            Some(raw) => serde_json::from_str(raw)
                .map_err(|_| invalid("params.arguments must be a JSON object"))?,
        };
        let host_session = request.meta.host_session_text();
        tool::start(&name, &arguments, &self.toolbox, host_session).ok_or_else(|| {
            let shown: String = name.chars().take(64).collect();
            let known = tool::NAMES.join(", ");
            (INVALID_PARAMS, format!("unknown tool {shown:?}; known tools: {known}"))
        })
    }
}

#[cfg(test)]
mod tests;
