//! Two hooks, two deciders and one gateway in every order of up to twelve events.
//!
//! The machines are the real ones; the gateway is the request life cycle of the core with a ring of
//! events. Time stands still but for the steps that let it pass. A world that was seen before is
//! not looked at again, so the search covers every order, not a sample.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::json;
use zcode_mail_core::api::permission::Asked;
use zcode_mail_core::config::Settings;
use zcode_mail_core::hook::machine::{ExchangeId, Input, Machine, Output, Setup, StreamId};
use zcode_mail_core::hook::outcome::Verdict as Said;
use zcode_mail_core::hook::{Opening, open};
use zcode_mail_core::http::{Fault, Outcome, Reply, Request};
use zcode_mail_core::lifecycle::{Act, Effect, State, Verdict, step};
use zcode_mail_core::time::{Millis, UnixMillis};

/// Events in a row.
const DEPTH: usize = 12;
/// Of these, faults: lost exchanges, dropped streams, restarts.
const FAULTS: usize = 2;
const WAIT_MS: u64 = 540_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// The gateway accepts the stream that this hook wants.
    Subscribe(usize),
    /// The gateway takes this hook's request and its reply arrives.
    Post(usize),
    /// The gateway takes the request; the reply is lost.
    LoseReply(usize),
    /// The stream breaks.
    Drop(usize),
    /// The hook sleeps to the instant that it waits for.
    Sleep(usize),
    /// The hook's time is over.
    Timeout(usize),
    /// SIGTERM.
    Signal(usize),
    /// SIGKILL.
    Kill(usize),
    /// Ann approves the question with this key, or tries to.
    Approve(usize),
    /// Bob refuses it, or tries to.
    Refuse(usize),
    /// The gateway restarts: every stream breaks.
    Restart,
}

#[derive(Clone)]
struct Hook {
    machine: Machine,
    now: u64,
    wants: Option<(StreamId, Option<u64>)>,
    stream: Option<StreamId>,
    requests: Vec<(ExchangeId, Request)>,
    until: u64,
    /// Timed out or signalled: a decision from now on may be too late.
    leaving: bool,
    killed: bool,
    said: Option<Said>,
    key: String,
    /// The fingerprint after the last change.
    print: u64,
}

#[derive(Clone, Default)]
struct Gateway {
    requests: BTreeMap<String, State>,
    ring: Vec<(u64, String)>,
    published: BTreeMap<String, usize>,
}

#[derive(Clone)]
struct World {
    hooks: Vec<Hook>,
    gateway: Gateway,
    faults: usize,
    path: Vec<Event>,
}

impl World {
    /// Two hooks about calls with these ids.
    fn new(calls: [&str; 2]) -> Self {
        let settings = Settings::from_env(|name| {
            (name == "AGENTMAIL_SESSION_ID").then(|| "mail-1".to_owned())
        });
        let hook = |id: &str| {
            let event = format!(
                r#"{{"hook_event_name":"PermissionRequest","requestId":"{id}","tool_name":"Bash","tool_input":{{"command":"ls"}}}}"#
            );
            let Opening::Ask(call) = open(event.as_bytes(), &settings) else { panic!("{event}") };
            let setup = Setup {
                call: &call,
                settings: &settings,
                granted: false,
                nonce: 1,
                now: Millis(0),
            };
            let mut hook = Hook {
                machine: Machine::new(setup),
                now: 0,
                wants: None,
                stream: None,
                requests: vec![],
                until: 0,
                leaving: false,
                killed: false,
                said: None,
                key: id.to_owned(),
                print: 0,
            };
            hook.drain();
            hook.print = hook.fingerprint();
            hook
        };
        let hooks = calls.map(hook).to_vec();
        Self { hooks, gateway: Gateway::default(), faults: 0, path: vec![] }
    }

    fn possible(&self) -> Vec<Event> {
        let mut events = Vec::new();
        let faulty = self.faults < FAULTS;
        for (i, hook) in self.hooks.iter().enumerate().filter(|(_, hook)| hook.alive()) {
            if hook.wants.is_some() {
                events.push(Event::Subscribe(i));
            }
            if !hook.requests.is_empty() {
                events.push(Event::Post(i));
                if faulty {
                    events.push(Event::LoseReply(i));
                }
            }
            if faulty && hook.stream.is_some() {
                events.push(Event::Drop(i));
            }
            if hook.wants.is_none() && hook.requests.is_empty() {
                events.push(Event::Sleep(i));
            }
            if !hook.leaving {
                events.extend([Event::Timeout(i), Event::Signal(i)]);
            }
            events.push(Event::Kill(i));
        }
        for (i, key) in self.keys().iter().enumerate() {
            if self.gateway.requests.get(*key) == Some(&State::Pending) {
                events.extend([Event::Approve(i), Event::Refuse(i)]);
            }
        }
        if faulty && self.hooks.iter().any(|hook| hook.stream.is_some()) {
            events.push(Event::Restart);
        }
        events
    }

    fn keys(&self) -> Vec<&str> {
        let mut keys: Vec<_> = self.hooks.iter().map(|hook| hook.key.as_str()).collect();
        keys.dedup();
        keys
    }

    fn apply(&mut self, event: Event) {
        self.path.push(event);
        match event {
            Event::Subscribe(i) => self.subscribe(i),
            Event::Post(i) => self.post(i, true),
            Event::LoseReply(i) => {
                self.faults += 1;
                self.post(i, false);
            }
            Event::Drop(i) => {
                self.faults += 1;
                self.hooks[i].break_stream();
            }
            Event::Sleep(i) => {
                let hook = &mut self.hooks[i];
                hook.now = hook.until;
                hook.feed(Input::Tick);
            }
            Event::Timeout(i) => {
                let hook = &mut self.hooks[i];
                (hook.now, hook.leaving) = (hook.now.max(WAIT_MS), true);
                hook.feed(Input::Tick);
            }
            Event::Signal(i) => {
                self.hooks[i].leaving = true;
                self.hooks[i].feed(Input::Signal);
            }
            Event::Kill(i) => {
                self.hooks[i].killed = true;
                self.hooks[i].print = self.hooks[i].fingerprint();
            }
            Event::Approve(i) => self.decide(i, "ann", "同意"),
            Event::Refuse(i) => self.decide(i, "bob", "拒绝"),
            Event::Restart => {
                self.faults += 1;
                for hook in self.hooks.iter_mut().filter(|hook| hook.alive()) {
                    hook.break_stream();
                }
            }
        }
        self.check();
    }

    fn subscribe(&mut self, i: usize) {
        let hook = &mut self.hooks[i];
        let Some((id, last)) = hook.wants.take() else { return };
        hook.stream = Some(id);
        let head = Reply { content_type: Some("text/event-stream"), ..Reply::json(200, b"") };
        hook.feed(Input::StreamReply(id, Outcome::Reply(head)));
        let missed = self.gateway.ring.iter().filter(|(n, _)| last.is_some_and(|last| *n > last));
        for (_, text) in missed {
            hook.feed(Input::Chunk(id, text.as_bytes()));
        }
    }

    fn post(&mut self, i: usize, arrives: bool) {
        let hook = &mut self.hooks[i];
        let (id, request) = hook.requests.remove(0);
        let key = hook.key.clone();
        let withdraws = request.path.ends_with("/withdraw");
        let act = if withdraws { Act::Withdraw { at: UnixMillis(0) } } else { Act::Ask };
        let state = self.gateway.requests.entry(key.clone()).or_default();
        *state = step(state, act).0;
        let asked = Asked {
            request_id: Some(format!("r-{key}")),
            mail_id: Some(format!("m-{key}")),
            relay_key: Some(key),
            state: state.asked(),
        };
        let body = asked.to_json(false);
        let outcome = if arrives {
            Outcome::Reply(Reply::json(200, body.as_bytes()))
        } else {
            Outcome::Failed(Fault::Truncated)
        };
        hook.feed(Input::Replied(id, outcome));
    }

    fn decide(&mut self, i: usize, by: &str, decision: &str) {
        let key = self.keys()[i].to_owned();
        let verdict = Verdict {
            decision: decision.into(),
            note: String::new(),
            by: by.into(),
            at: UnixMillis(0),
        };
        let state = self.gateway.requests.entry(key.clone()).or_default();
        let (after, effect) = step(state, Act::Decide(verdict));
        *state = after;
        let Effect::Publish(verdict) = effect else { return };
        *self.gateway.published.entry(key.clone()).or_default() += 1;
        let event = json!({
            "relay_key": key, "relay_kind": "permission", "session_id": "mail-1",
            "mail_id": format!("m-{key}"), "decision": verdict.decision, "decided_by": verdict.by,
        });
        let id = self.gateway.ring.len() as u64 + 1;
        let text = format!("id: {id}\nevent: permission_decision\ndata: {event}\n\n");
        self.gateway.ring.push((id, text.clone()));
        for hook in self.hooks.iter_mut().filter(|hook| hook.alive()) {
            if let Some(stream) = hook.stream {
                hook.feed(Input::Chunk(stream, text.as_bytes()));
            }
        }
    }

    /// What must hold after every event.
    fn check(&self) {
        for hook in &self.hooks {
            let Some(said) = &hook.said else { continue };
            let state = self.gateway.requests.get(&hook.key);
            let decided = match state {
                Some(State::Decided(verdict)) => verdict.decision.as_str(),
                _ => "",
            };
            let holds = match said.because.code() {
                "approved-once" => decided == "同意",
                "refused" => decided == "拒绝",
                "withdrawn" => matches!(state, Some(State::Withdrawn { .. })),
                "timed-out" | "signal" => hook.leaving,
                "temporary-failure" => self.faulted() || hook.leaving,
                _ => false,
            };
            assert!(holds, "{} with {state:?} after {:?}", said.because.code(), self.path);
        }
        assert!(self.gateway.published.values().all(|times| *times == 1), "{:?}", self.path);
    }

    fn faulted(&self) -> bool {
        use Event::{Drop, LoseReply, Restart};
        self.path.iter().any(|event| matches!(event, Drop(_) | LoseReply(_) | Restart))
    }

    /// Whether a hook waits for what is decided already.
    fn owes_an_answer(&self) -> bool {
        self.hooks.iter().any(|hook| {
            hook.alive() && matches!(self.gateway.requests.get(&hook.key), Some(State::Decided(_)))
        })
    }

    /// Without further faults every waiting hook learns what was decided.
    fn settle(mut self) {
        self.faults = FAULTS;
        let before = self.path.len();
        for _ in 0..64 {
            let Some(i) = self.hooks.iter().position(Hook::alive) else { break };
            let hook = &self.hooks[i];
            if hook.wants.is_some() {
                self.apply(Event::Subscribe(i));
            } else if hook.requests.is_empty() {
                self.apply(Event::Sleep(i));
            } else {
                self.apply(Event::Post(i));
            }
            let hook = &self.hooks[i];
            let pending = !matches!(self.gateway.requests.get(&hook.key), Some(state) if *state != State::Pending);
            if hook.alive()
                && pending
                && !hook.leaving
                && hook.requests.is_empty()
                && hook.stream.is_some()
            {
                // Nobody decides: that is the end of what can be asked of it.
                self.hooks[i].killed = true;
            }
        }
        for hook in &self.hooks {
            assert!(
                !hook.alive(),
                "a hook hangs after {:?} and {:?}",
                &self.path[..before],
                &self.path[before..]
            );
            if let (Some(said), Some(State::Decided(verdict)), false) =
                (&hook.said, self.gateway.requests.get(&hook.key), hook.leaving || hook.killed)
            {
                let expected =
                    if verdict.decision == "同意" { "approved-once" } else { "refused" };
                // An asker that never got through may give up; it then blocks.
                let gave_up = said.because.code() == "temporary-failure";
                assert!(
                    said.because.code() == expected || gave_up,
                    "{} for {verdict:?} after {:?}",
                    said.because.code(),
                    self.path
                );
            }
        }
    }

    fn fingerprint(&self) -> u64 {
        let mut hooks: Vec<u64> = self.hooks.iter().map(|hook| hook.print).collect();
        if self.keys().len() == 1 {
            // Two hooks about one call can change places.
            hooks.sort_unstable();
        }
        let mut hasher = DefaultHasher::new();
        let gateway = format!("{:?}{:?}", self.gateway.requests, self.gateway.ring);
        (hooks, gateway, self.faults).hash(&mut hasher);
        hasher.finish()
    }
}

impl Hook {
    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        match (&self.said, self.killed) {
            (_, true) => "killed".hash(&mut hasher),
            (Some(said), _) => said.because.code().hash(&mut hasher),
            (None, false) => {
                let text = format!("{:?}{:?}{:?}", self.machine, self.wants, self.stream);
                (text, self.leaving, self.requests.len()).hash(&mut hasher);
            }
        }
        hasher.finish()
    }

    const fn alive(&self) -> bool {
        self.said.is_none() && !self.killed
    }

    fn break_stream(&mut self) {
        if let Some(id) = self.stream.take() {
            self.feed(Input::StreamClosed(id, Fault::Truncated));
        }
    }

    fn feed(&mut self, input: Input<'_>) {
        if self.alive() {
            self.machine.handle(input, Millis(self.now));
            self.drain();
            self.print = self.fingerprint();
        }
    }

    fn drain(&mut self) {
        loop {
            match self.machine.poll_output() {
                Output::OpenStream(id, request) => {
                    let last = request.last_event_id.map(|id| id.parse().expect("our own ids"));
                    (self.wants, self.stream) = (Some((id, last)), None);
                }
                Output::CloseStream(_) => (self.wants, self.stream) = (None, None),
                Output::Exchange(id, request) => {
                    // A question that was given up is not answered any more.
                    self.requests.retain(|(_, old)| old.path != request.path);
                    self.requests.push((id, request));
                }
                Output::Remember { .. } => {}
                Output::Done(said) => {
                    self.said = Some(said);
                    return;
                }
                Output::Wait(wait) => {
                    self.until = wait.until.map_or(self.now, |until| until.0);
                    return;
                }
            }
        }
    }
}

/// Looks at every order; gives the number of different worlds.
fn explore(calls: [&str; 2], faults: usize) -> usize {
    let mut seen = HashSet::new();
    let first = World { faults: FAULTS - faults, ..World::new(calls) };
    let mut layer = vec![first];
    for _ in 0..DEPTH {
        let mut next = Vec::new();
        for world in layer {
            for event in world.possible() {
                let mut after = world.clone();
                after.apply(event);
                if seen.insert(after.fingerprint()) {
                    if after.owes_an_answer() {
                        after.clone().settle();
                    }
                    next.push(after);
                }
            }
        }
        layer = next;
    }
    seen.len()
}

#[test]
fn every_order_of_twelve_events_about_one_call_is_right() {
    let worlds = explore(["perm_1", "perm_1"], FAULTS);
    println!("two hooks about one call: {worlds} worlds in {DEPTH} events");
    assert!(worlds > 1_000, "{worlds}");
}

#[test]
fn every_order_of_twelve_events_about_two_calls_is_right() {
    let worlds = explore(["perm_1", "perm_2"], 1);
    println!("two hooks about two calls: {worlds} worlds in {DEPTH} events");
    assert!(worlds > 1_000, "{worlds}");
}
