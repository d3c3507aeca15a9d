//! Laws of the hook's decision [`Machine`].
//!
//! 1. It approves only after an approving decision for exactly its key, and for its mail as soon as
//!    that is known, was given to it.
//! 2. An approving decision of its own on the open stream of a waiting machine ends it at once.
//! 3. The same inputs at the same times give the same transcript.
//! 4. After draining it says wait or done; a wait lies in the future; asking twice says the same;
//!    a second tick at one instant changes nothing.
//! 5. It asks only after it saw a stream's 200; the first stream carries no last id.
//! 6. At most one stream and two exchanges are open; it holds nothing that grows with the script.
//! 7. Left alone it ends by the deadline and the withdrawal; the end is final.
//! 8. A mail-driven session always gets an answer.

use crate::script::hook_machine::{Aim, Decision, Reply as Said, Script, Step, Which};
use serde_json::json;
use zcode_mail_core::config::Settings;
use zcode_mail_core::hook::machine::{
    EXCHANGE_MS, ExchangeId, Input, Machine, Output, Setup, StreamId, WITHDRAW_MS,
};
use zcode_mail_core::hook::outcome::{Answer, Verdict};
use zcode_mail_core::hook::{Opening, open};
use zcode_mail_core::http::{Outcome, Reply};
use zcode_mail_core::time::{Millis, Wait};

const EVENT: &str = r#"{"hook_event_name":"PermissionRequest","session_id":"z1","tool_name":"Bash","requestId":"perm_1","tool_input":{"command":"ls"}}"#;
const SESSION: &str = "mail-1";
const MAIL: &str = "m1";
const HEAD: Reply<'static> = Reply {
    status: 200,
    content_type: Some("text/event-stream"),
    retry_after: None,
    date: None,
    body: b"",
};
/// Outputs of one drain at most.
const DRAIN: usize = 16;
/// Sleeps that a machine left alone takes at most: a nine-minute wait with a look every ten
/// seconds and a reconnect beside each.
const SLEEPS: usize = 400;

/// Checks all laws.
///
/// # Panics
/// When one does not hold.
pub fn check(bytes: &[u8]) {
    let script = Script::decode(bytes);
    let first = World::run(&script);
    let second = World::run(&script);
    assert_eq!(first, second, "two transcripts of {script:?}");
}

struct World<'s> {
    script: &'s Script,
    machine: Machine,
    now: u64,
    deadline: u64,
    log: Vec<String>,
    streams: Vec<StreamId>,
    exchanges: Vec<ExchangeId>,
    /// The stream that neither side has ended.
    live: Option<StreamId>,
    /// The stream whose 200 was seen, and whether unfinished bytes went over it.
    open: Option<(StreamId, bool)>,
    /// The exchange without an outcome, and when it began.
    unanswered: Option<(ExchangeId, u64)>,
    ever_open: bool,
    accepted: bool,
    ending: bool,
    approval: bool,
    /// An approval that names another mail; it counts as long as ours is not known.
    approval_of_another_mail: bool,
    mail_known: bool,
    verdict: Option<Verdict>,
}

impl<'s> World<'s> {
    fn run(script: &'s Script) -> Vec<String> {
        let wait_ms = script.wait_ms.to_string();
        let settings = Settings::from_env(|name| match name {
            "AGENTMAIL_SESSION_ID" if script.driven => Some(SESSION.to_owned()),
            "AGENTMAIL_PERMISSION_WAIT_MS" => Some(wait_ms.clone()),
            _ => None,
        });
        let Opening::Ask(call) = open(EVENT.as_bytes(), &settings) else {
            panic!("the event asks");
        };
        let setup =
            Setup { call: &call, settings: &settings, granted: false, nonce: 9, now: Millis(0) };
        let mut world = World {
            script,
            machine: Machine::new(setup),
            now: 0,
            deadline: script.wait_ms,
            log: Vec::new(),
            streams: Vec::new(),
            exchanges: Vec::new(),
            live: None,
            open: None,
            unanswered: None,
            ever_open: false,
            accepted: false,
            ending: false,
            approval: false,
            approval_of_another_mail: false,
            mail_known: false,
            verdict: None,
        };
        let mut wait = world.drain();
        for step in &script.steps {
            world.log.push(format!("{step:?}"));
            wait = world.step(step, wait);
        }
        world.leave_alone(wait);
        world.log
    }

    fn fail(&self, law: &str) -> ! {
        panic!("{law}\n{:#?}\n{}", self.script, self.log.join("\n"))
    }

    fn step(&mut self, step: &Step, wait: Option<Wait>) -> Option<Wait> {
        match step {
            Step::Pass(ms) => {
                self.now += ms;
                self.tick()
            }
            Step::Sleep => {
                if let Some(until) = wait.and_then(|wait| wait.until) {
                    self.now = self.now.max(until.0);
                }
                self.tick()
            }
            Step::Head(which, status) => {
                let Some(id) = self.stream(*which) else { return wait };
                let head = status.map_or(HEAD, |status| Reply::json(status, b"{}"));
                if status.is_none() && self.live == Some(id) && self.open.is_none() {
                    self.open = Some((id, false));
                    self.ever_open = true;
                }
                self.feed(Input::StreamReply(id, Outcome::Reply(head)))
            }
            Step::Fault(which, fault, opening) => {
                let Some(id) = self.stream(*which) else { return wait };
                if *opening {
                    self.feed(Input::StreamReply(id, Outcome::Failed(*fault)))
                } else {
                    if self.live == Some(id) {
                        (self.live, self.open) = (None, None);
                    }
                    self.feed(Input::StreamClosed(id, *fault))
                }
            }
            Step::Event(which, decision) => self.event(*which, *decision, wait),
            Step::Bytes(which, bytes) => {
                let Some(id) = self.stream(*which) else { return wait };
                if let Some((open, unfinished)) = &mut self.open
                    && *open == id
                    && !bytes.ends_with(b"\n\n")
                {
                    *unfinished = true;
                }
                self.feed(Input::Chunk(id, bytes))
            }
            Step::Reply(which, said) => self.reply(*which, *said, wait),
            Step::Lost(which, fault) => {
                let Some(id) = self.exchange(*which) else { return wait };
                self.unanswered.take_if(|(open, _)| *open == id);
                self.feed(Input::Replied(id, Outcome::Failed(*fault)))
            }
            Step::Signal => {
                self.ending = true;
                self.feed(Input::Signal)
            }
        }
    }

    fn event(&mut self, which: Which, decision: Decision, wait: Option<Wait>) -> Option<Wait> {
        let Some(id) = self.stream(which) else { return wait };
        let aim =
            |wrong: Aim, ours: &'static str| if decision.aim == wrong { "other" } else { ours };
        let event = json!({
            "relay_key": aim(Aim::Key, "perm_1"),
            "mail_id": aim(Aim::Mail, MAIL),
            "session_id": aim(Aim::Session, SESSION),
            "relay_kind": aim(Aim::Kind, "permission"),
            "decision": decision.text,
        });
        let ours = match decision.aim {
            Aim::Ours => true,
            // An interactive hook has no mail session to compare.
            Aim::Session => !self.script.driven,
            Aim::Key | Aim::Mail | Aim::Kind => false,
        };
        self.approval |= ours && decision.approves;
        self.approval_of_another_mail |= decision.aim == Aim::Mail && decision.approves;
        let must_end = ours
            && decision.approves
            && self.accepted
            && !self.ending
            && self.now < self.deadline
            && self.verdict.is_none()
            && self.open == Some((id, false));
        let text = format!("event: permission_decision\ndata: {event}\n\n");
        let wait = self.feed(Input::Chunk(id, text.as_bytes()));
        if must_end && !matches!(&self.verdict, Some(verdict) if verdict.answer == Answer::Approve)
        {
            self.fail("a decision on the open stream of a waiting machine is lost");
        }
        wait
    }

    fn reply(&mut self, which: Which, said: Said, wait: Option<Wait>) -> Option<Wait> {
        let Some(id) = self.exchange(which) else { return wait };
        let key = |aim: Aim| if aim == Aim::Key { "other" } else { "perm_1" };
        let (status, body) = match said {
            Said::Pending => {
                (200, json!({"request_id": "r1", "mail_id": MAIL, "status": "pending"}))
            }
            Said::Decided(decision) => {
                self.approval |= decision.approves && decision.aim != Aim::Key;
                let body = json!({
                    "request_id": "r1",
                    "mail_id": MAIL,
                    "relay_key": key(decision.aim),
                    "status": "decided",
                    "decision": decision.text,
                });
                (200, body)
            }
            Said::Withdrawn => (200, json!({"status": "withdrawn"})),
            Said::Status(status) => (status, json!({"error": "scripted"})),
            Said::Page => (200, json!("<html>")),
        };
        let body = body.to_string();
        let reply = Reply::json(status, body.as_bytes());
        let due = self.unanswered.is_some_and(|(open, since)| {
            open == id && self.now < since + EXCHANGE_MS && self.now < self.deadline
        });
        // Only a pending reply to the question itself surely leaves a machine that waits.
        let names_mail = match said {
            Said::Pending => true,
            Said::Decided(decision) => decision.aim != Aim::Key,
            Said::Withdrawn | Said::Status(_) | Said::Page => false,
        };
        self.mail_known |= due && names_mail;
        self.accepted |= due && said == Said::Pending && !self.ending;
        self.unanswered.take_if(|(open, _)| *open == id);
        self.feed(Input::Replied(id, Outcome::Reply(reply)))
    }

    fn stream(&self, which: Which) -> Option<StreamId> {
        match which {
            Which::Current => self.streams.last().copied(),
            Which::Stale => self.streams.len().checked_sub(2).map(|at| self.streams[at]),
        }
    }

    fn exchange(&self, which: Which) -> Option<ExchangeId> {
        match which {
            Which::Current => self.exchanges.last().copied(),
            Which::Stale => self.exchanges.len().checked_sub(2).map(|at| self.exchanges[at]),
        }
    }

    fn tick(&mut self) -> Option<Wait> {
        let wait = self.feed(Input::Tick);
        let again = self.feed(Input::Tick);
        if wait != again {
            self.fail("a second tick at one instant changes something");
        }
        wait
    }

    fn feed(&mut self, input: Input<'_>) -> Option<Wait> {
        self.machine.handle(input, Millis(self.now));
        self.drain()
    }

    fn drain(&mut self) -> Option<Wait> {
        for _ in 0..DRAIN {
            match self.machine.poll_output() {
                Output::Wait(wait) => {
                    if wait.until.is_none_or(|until| until.0 <= self.now) {
                        self.fail("a wait that is over, or without end");
                    }
                    if self.machine.poll_output() != Output::Wait(wait) {
                        self.fail("asked twice, it says something else");
                    }
                    if self.verdict.is_some() {
                        self.fail("it waits after its end");
                    }
                    return Some(wait);
                }
                Output::Done(verdict) => {
                    self.done(verdict);
                    return None;
                }
                output => self.note(output),
            }
        }
        self.fail("endless output");
    }

    fn note(&mut self, output: Output) {
        if self.verdict.is_some() {
            self.fail("output after the end");
        }
        match output {
            Output::OpenStream(id, request) => {
                self.log.push(format!("  open {id:?} {:?}", request.last_event_id));
                if self.streams.is_empty() && request.last_event_id.is_some() {
                    self.fail("the first stream carries a last id");
                }
                if self.streams.contains(&id) {
                    self.fail("a stream id is used twice");
                }
                self.streams.push(id);
                (self.live, self.open) = (Some(id), None);
            }
            Output::CloseStream(id) => {
                self.log.push(format!("  close {id:?}"));
                if self.streams.last() != Some(&id) {
                    self.fail("it closes a stream that is not its newest");
                }
                (self.live, self.open) = (None, None);
            }
            Output::Exchange(id, request) => {
                self.log.push(format!("  {} {id:?}", request.path));
                let withdraws = request.path.ends_with("/withdraw");
                if !withdraws && !self.ever_open {
                    self.fail("it asks before it saw a stream's 200");
                }
                self.ending |= withdraws;
                self.exchanges.push(id);
                self.unanswered = Some((id, self.now));
            }
            Output::Remember { session, tool } => {
                self.log.push(format!("  remember {session} {tool}"));
                if !self.approved() {
                    self.fail("it remembers what nobody approved");
                }
            }
            Output::Wait(_) | Output::Done(_) => {}
        }
    }

    fn approved(&self) -> bool {
        self.approval || self.approval_of_another_mail && !self.mail_known
    }

    fn done(&mut self, verdict: Verdict) {
        if let Some(known) = &self.verdict {
            if *known != verdict {
                self.fail("the end changes");
            }
            return;
        }
        self.log.push(format!("  done {}", verdict.because.code()));
        match verdict.answer {
            Answer::Approve if !self.approved() => self.fail("it approves what nobody approved"),
            Answer::NoOpinion if self.script.driven => {
                self.fail("a mail-driven session gets no answer");
            }
            _ => {}
        }
        self.verdict = Some(verdict);
    }

    /// No input comes any more.
    fn leave_alone(&mut self, mut wait: Option<Wait>) {
        let latest = self.deadline.max(self.now) + WITHDRAW_MS;
        for _ in 0..SLEEPS {
            let Some(until) = wait.and_then(|wait| wait.until) else { break };
            self.now = until.0;
            wait = self.tick();
            if self.verdict.is_some() && self.now > latest {
                self.fail("it ends after its time");
            }
        }
        if self.verdict.is_none() {
            self.fail("it never ends");
        }
        let _ = self.feed(Input::Signal);
    }
}
