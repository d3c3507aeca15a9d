//! Laws of the MCP session.
//!
//! 1. A request whose id is free gets exactly one answer under that id: at once, or when its call
//!    is finished; the right one for its method and era.
//! 2. A request whose id still runs gets none under it; the call that runs is unharmed.
//! 3. Nothing is written under an id that was cancelled, however late its result comes.
//! 4. Nothing else gets an answer with an id, and nothing is taken after the end of the input.
//! 5. Every line is JSON without a line separator inside.
//! 6. The same lines in reads of any size give the same bytes and events.

use std::collections::BTreeMap;

use serde_json::Value;
use zcode_mail_core::rpc::{CallId, Event, Session};
use zcode_mail_core::tool::{Output, Toolbox};

use crate::script::rpc_session::{Ask, Meta, Script, Step};

/// Checks all laws.
///
/// # Panics
/// When one does not hold.
pub fn check(bytes: &[u8]) {
    let script = Script::decode(bytes);
    let whole = run(&script, None);
    assert_eq!(run(&script, Some(script.reads)), whole, "{script:?}");
}

/// Plays a script, in reads of `step` bytes or line by line; everything that was written.
fn run(script: &Script, step: Option<usize>) -> Vec<u8> {
    let mut session = Session::new(Toolbox::default());
    let mut model = Model::default();
    let mut all = Vec::new();
    for (nth, action) in script.steps.iter().enumerate() {
        let mut out = Vec::new();
        if let Some(line) = action.line() {
            feed(&mut session, &line, step, &mut out);
        }
        model.act(action, &mut session, &mut out);
        let written = parse(&out).unwrap_or_else(|why| panic!("step {nth}: {why}\n{script:?}"));
        model.judge(action, &written).unwrap_or_else(|why| {
            panic!("step {nth} {action:?}: {why}\nwrote {written:?}\n{script:?}")
        });
        model.follow(action, &mut session);
        assert_eq!(session.in_flight(), model.running.len(), "step {nth}\n{script:?}");
        all.extend(out);
    }
    all
}

fn feed(session: &mut Session, line: &str, step: Option<usize>, out: &mut Vec<u8>) {
    let Some(step) = step else { return session.receive(line.as_bytes(), out) };
    let stream = format!("{line}\n");
    let mut pending = Vec::new();
    for chunk in stream.as_bytes().chunks(step) {
        pending.extend_from_slice(chunk);
        loop {
            let (used, more) = session.feed(&pending, out);
            pending.drain(..used);
            if !more {
                break;
            }
        }
    }
    assert!(pending.is_empty(), "a whole line was left");
}

/// A written line and what it says.
type Written = (String, Value);

fn parse(out: &[u8]) -> Result<Vec<Written>, String> {
    let text = std::str::from_utf8(out).map_err(|error| error.to_string())?;
    if !text.is_empty() && !text.ends_with('\n') {
        return Err(format!("no line end: {text:?}"));
    }
    if text.contains(['\r', '\u{2028}', '\u{2029}']) {
        return Err(format!("a line separator inside: {text:?}"));
    }
    text.lines()
        .map(|line| {
            let value = serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))?;
            Ok((line.to_owned(), value))
        })
        .collect()
}

/// What must be so, by another way of keeping books: names of ids, and the calls that run.
#[derive(Default)]
struct Model {
    /// Raw ids of running calls, with their era.
    running: BTreeMap<&'static str, (CallId, Meta)>,
    ended: Vec<CallId>,
    closed: bool,
    /// The stateless era was spoken.
    stateless: bool,
    /// A handshake took place.
    shaken: bool,
    /// The answer that this step must have given under an id.
    due: Option<(&'static str, Expected)>,
}

#[derive(Clone, Copy, Debug)]
enum Expected {
    Result(&'static str),
    Error(i64),
}

impl Model {
    /// The runtime's part of a step.
    fn act(&mut self, step: &Step, session: &mut Session, out: &mut Vec<u8>) {
        let done = Output { text: "done\u{2028}".into(), is_error: false };
        self.due = None;
        match step {
            Step::Finish(nth) if !self.running.is_empty() => {
                let nth = nth % self.running.len();
                let (id, (call, _)) = self.running.iter().nth(nth).expect("it is in range");
                let (id, call) = (*id, *call);
                session.finish(call, &done, out);
                self.running.remove(id);
                self.ended.push(call);
                self.due = Some((id, Expected::Result("content")));
            }
            Step::FinishAgain => {
                if let Some(call) = self.ended.last() {
                    session.finish(*call, &done, out);
                }
            }
            Step::Close => {
                session.close();
                self.closed = true;
            }
            Step::Request { id, ask, meta } if !self.closed && !self.running.contains_key(id) => {
                self.due = if self.forgets(*ask, *meta) {
                    Some((*id, Expected::Error(-32602)))
                } else {
                    expected(*ask, *meta).map(|expected| (*id, expected))
                };
            }
            _ => {}
        }
    }

    fn judge(&self, step: &Step, written: &[Written]) -> Result<(), String> {
        let (named, nameless): (Vec<_>, Vec<_>) =
            written.iter().partition(|(_, message)| message.get("id").is_some());
        let client_spoke = step.line().is_some();
        if nameless.len() > usize::from(client_spoke && !self.closed) {
            return Err("too many answers without an id".into());
        }
        match (self.due, &named[..]) {
            (None, []) => Ok(()),
            (Some((id, expected)), [(line, answer)]) => {
                // Compared as text: no number type holds all ids.
                let id = id.replace('\u{2028}', "\\u2028");
                if !line.starts_with(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},")) {
                    return Err(format!("answered to {}", answer["id"]));
                }
                match expected {
                    Expected::Result(member) if answer["result"].get(member).is_some() => Ok(()),
                    Expected::Result("") if answer["result"].is_object() => Ok(()),
                    Expected::Error(code) if answer["error"]["code"] == code => Ok(()),
                    expected => Err(format!("expected {expected:?}")),
                }
            }
            (due, _) => Err(format!("due {due:?}")),
        }
    }

    /// Whether a request lacks the `_meta` that its client sent elsewhere, without a handshake.
    fn forgets(&self, ask: Ask, meta: Meta) -> bool {
        let calls =
            matches!(ask, Ask::List | Ask::Cursor | Ask::BadArgument | Ask::Run | Ask::UnknownTool);
        calls && meta == Meta::Absent && self.stateless && !self.shaken
    }

    /// Takes the events of a step and keeps the books.
    fn follow(&mut self, step: &Step, session: &mut Session) {
        let repeated = match step {
            Step::Request { id, .. } => self.running.contains_key(id),
            _ => false,
        };
        let mut events = Vec::new();
        while let Some(event) = session.poll_event() {
            events.push(event);
        }
        match step {
            Step::Request { id, ask: Ask::Run, meta }
                if !self.closed
                    && *meta != Meta::Unsupported
                    && !self.forgets(Ask::Run, *meta)
                    && !self.running.contains_key(id) =>
            {
                let [Event::Run(call, _)] = &events[..] else { panic!("{step:?}: {events:?}") };
                self.running.insert(id, (*call, *meta));
            }
            Step::Cancel(id) if !self.closed && self.running.contains_key(id) => {
                let (call, _) = self.running.remove(id).expect("it runs");
                let [Event::Abort(aborted)] = &events[..] else { panic!("{step:?}: {events:?}") };
                assert_eq!(*aborted, call);
                self.ended.push(call);
            }
            _ => assert!(events.is_empty(), "{step:?}: {events:?}"),
        }
        // A request under an id that runs, or that cannot be read, is refused before its era counts.
        let Step::Request { ask, meta, .. } = step else { return };
        if self.closed || repeated || matches!(ask, Ask::WrongVersion | Ask::TooDeep) {
            return;
        }
        match ask {
            Ask::Initialize(_) if *meta != Meta::Stateless => self.shaken = true,
            _ => self.stateless |= *meta == Meta::Stateless,
        }
    }
}

/// The answer that is due at once; `None` for a call that runs.
fn expected(ask: Ask, meta: Meta) -> Option<Expected> {
    match (ask, meta) {
        (Ask::WrongVersion, _) => Some(Expected::Error(-32600)),
        (Ask::TooDeep, _) => Some(Expected::Error(-32602)),
        (Ask::Initialize(_), Meta::Stateless) => Some(Expected::Error(-32601)),
        (Ask::Initialize(_), _) => Some(Expected::Result("protocolVersion")),
        (_, Meta::Unsupported) => Some(Expected::Error(-32022)),
        (Ask::Ping, Meta::Absent) => Some(Expected::Result("")),
        (Ask::Ping, Meta::Stateless) => Some(Expected::Error(-32601)),
        (Ask::Discover, Meta::Absent) => Some(Expected::Error(-32602)),
        (Ask::Discover, Meta::Stateless) => Some(Expected::Result("supportedVersions")),
        (Ask::List, Meta::Absent) => Some(Expected::Result("tools")),
        (Ask::List, Meta::Stateless) => Some(Expected::Result("ttlMs")),
        (Ask::BadArgument, Meta::Absent) => Some(Expected::Result("isError")),
        (Ask::BadArgument, Meta::Stateless) => Some(Expected::Result("resultType")),
        (Ask::UnknownTool | Ask::Cursor, _) => Some(Expected::Error(-32602)),
        (Ask::UnknownMethod, _) => Some(Expected::Error(-32601)),
        (Ask::Run, _) => None,
    }
}
