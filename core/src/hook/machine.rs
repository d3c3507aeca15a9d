//! The decision machine: from a call that needs a human to the answer.
//!
//! What it is: a poll-style machine without IO. It subscribes to the event stream, sees the 200,
//! asks, and waits for the decision with its own key. You own the bytes; after each
//! [`Machine::handle`], call [`Machine::poll_output`] until it says [`Output::Wait`] or
//! [`Output::Done`].
//!
//! ```text
//!             OpenStream            200 text/event-stream        2xx
//!   new ─────► subscribing ─────────► asking ────────────────────► waiting ──► Done
//!     │           │  ▲ short backoff     │  ▲ short backoff          │   ▲ reconnect, ask again
//!     │           └──┘ at most 3 tries   └──┘ together               └───┘
//!     └─► Done: remembered, or too large                             │ deadline, signal, outage
//!                                                                    ▼
//!                                                          withdrawing (300 ms) ──► Done
//!
//!   inputs   Tick · StreamReply · Chunk · StreamClosed · Replied · Signal
//!   outputs  OpenStream · CloseStream · Exchange · Remember · Done · Wait
//! ```
//!
//! What it promises:
//! - It approves only on a remembered approval, or on a decision text that is exactly an approval
//!   and came for exactly its key, and for its digest
//!   where it names one: on the stream (`B-8.1`), or as the state in the reply to its own
//!   question. A decision that arrives before the reply is held until it, so that the mail id can
//!   be compared.
//! - The same inputs at the same times give the same outputs. Randomness is the `nonce`.
//! - It ends at the latest [`WITHDRAW_MS`] after the first input at or after the deadline.
//! - Its state is bounded: one stream, one question, one withdrawal, [`HELD_LIMIT`] held decisions.
//!
//! A lost decision is found again in three ways: `Last-Event-ID` on reconnect, asking again after
//! every reconnect, and asking again every [`POLL_MS`] for proxies that hold back a stream (asking
//! is idempotent by key and returns the state).
//!
//! For whoever changes this: the law checker in `tests/src/oracle/hook.rs` states the promises, and
//! the timers in [`Machine::poll_output`] and in `timers` must name the same instants.
//!
//! Sources: `B-8`, `B-9.2`, `D-7.2`, faults rows 4, 6, 7, 11 and 13 of the public reports.

use alloc::borrow::ToOwned;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use super::Call;
use super::outcome::{Because, Verdict};
use super::question::{Asker, BODY_LIMIT, Binding, Shown, context, question};
use crate::api::events::PermissionDecision;
use crate::api::permission::Ask;
use crate::config::Settings;
use crate::decision;
use crate::digest::CallDigest;
use crate::http::{Fault, Outcome, Request};
use crate::lang::Lang;
use crate::sse;
use crate::time::{Millis, Wait};

mod ask;
mod stream;

/// How often a gateway that has not yet taken the question is tried, subscribing and asking
/// together. A person waits on the other side of ZCode, and more tries never helped within seconds.
pub const TRIES: u32 = 3;
/// Pause before the second and the third try, in milliseconds.
pub const TRY_PAUSES_MS: [u64; 2] = [250, 1_000];
/// Pauses between reconnects while waiting, in milliseconds; the last one repeats.
pub const RECONNECT_PAUSES_MS: [u64; 6] = [1_000, 2_000, 4_000, 8_000, 16_000, 30_000];
/// A stream that lived shorter than this, in milliseconds, does not reset the pauses: a gateway
/// that accepts and drops at once is as broken as one that refuses.
pub const STEADY_MS: u64 = 5_000;
/// Silence on the stream after which it counts as half open, in milliseconds. The gateway sends a
/// comment every 15 s, so this is six lost ones.
pub const IDLE_MS: u64 = 90_000;
/// Longest wait for the head of a stream or for a reply, in milliseconds: above the runtime's own
/// limits of 5 s to connect and 30 s to answer, in case it does not keep them.
pub const EXCHANGE_MS: u64 = 36_000;
/// How often the question is asked again while the stream is open, in milliseconds.
pub const POLL_MS: u64 = 30_000;
/// The same while the stream is down.
pub const POLL_DOWN_MS: u64 = 10_000;
/// How long the gateway may be unreachable when mail drives the session, in milliseconds: a restart
/// or a deployment fits.
pub const OUTAGE_DRIVEN_MS: u64 = 120_000;
/// The same when a person sits in front of ZCode, who would rather be asked there.
pub const OUTAGE_INTERACTIVE_MS: u64 = 30_000;
/// How long a withdrawal may take, in milliseconds. ZCode kills a hook 750 ms after SIGTERM.
pub const WITHDRAW_MS: u64 = 300;
/// Decisions held at most before the reply to the question. The gateway publishes one per key.
pub const HELD_LIMIT: usize = 4;

/// Names one connection of the event stream. Inputs about another one are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamId(pub u32);

/// Names one exchange. Inputs about another one are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExchangeId(pub u32);

/// What the machine is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// Time has passed.
    Tick,
    /// The head of a stream: a 2xx without a body, another status with its body, or a fault.
    StreamReply(StreamId, Outcome<'a>),
    /// Bytes of an open stream.
    Chunk(StreamId, &'a [u8]),
    /// An open stream ended.
    StreamClosed(StreamId, Fault),
    /// What became of an exchange.
    Replied(ExchangeId, Outcome<'a>),
    /// SIGTERM or SIGINT: the host does not wait any more.
    Signal,
}

/// What the machine wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Open the event stream.
    OpenStream(StreamId, Request),
    /// Drop a stream, in whatever state it is.
    CloseStream(StreamId),
    /// Send a request; the outcome comes back as [`Input::Replied`].
    Exchange(ExchangeId, Request),
    /// Store an approval for a session and a tool. Its failure does not change the verdict.
    Remember {
        /// The session, see [`Call::grant_session`].
        session: String,
        /// The tool.
        tool: String,
    },
    /// The end; stays the answer to every further poll.
    Done(Verdict),
    /// Nothing to do until then or until an input.
    Wait(Wait),
}

/// What a machine starts from.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// The call.
    pub call: &'a Call,
    /// The settings.
    pub settings: &'a Settings,
    /// Whether a remembered approval covers the call.
    pub granted: bool,
    /// A random number: part of the key of a call without id, and the seed of the pauses.
    pub nonce: u64,
    /// The instant from which the wait counts.
    pub now: Millis,
}

/// The machine. See the module for its contract.
#[derive(Clone, Debug)]
pub struct Machine {
    // Fixed at the start.
    ask: Ask,
    digest: CallDigest,
    grant_session: Option<String>,
    tool: String,
    driven: bool,
    lang: Lang,
    wait_ms: u64,
    nonce: u64,
    deadline: Millis,
    // What happens to the stream and the question.
    now: Millis,
    stream: Stream,
    parser: sse::Parser,
    asking: Asking,
    accepted: Option<Accepted>,
    held: Vec<PermissionDecision>,
    tries: u32,
    reconnects: u32,
    trouble: Option<Trouble>,
    last_id: u32,
    // The end.
    ending: Option<Ending>,
    verdict: Option<Verdict>,
    queue: VecDeque<Output>,
}

#[derive(Clone, Debug)]
enum Stream {
    Down { retry_at: Millis },
    Opening { id: StreamId, until: Millis },
    Open { id: StreamId, since: Millis, heard: Millis },
}

#[derive(Clone, Debug)]
enum Asking {
    /// Ask at this instant, once the stream is open or the question was taken before.
    Idle {
        at: Millis,
    },
    InFlight {
        id: ExchangeId,
        until: Millis,
        again: bool,
    },
}

#[derive(Clone, Debug)]
struct Accepted {
    request_id: Option<String>,
    mail_id: Option<String>,
}

/// The gateway does not serve since then.
#[derive(Clone, Debug)]
struct Trouble {
    since: Millis,
    cause: String,
}

#[derive(Clone, Debug)]
struct Ending {
    verdict: Verdict,
    until: Millis,
    /// Whether a decision still counts.
    open_until: Option<Millis>,
    withdrawal: Option<ExchangeId>,
}

impl Machine {
    /// Starts; poll its output at once.
    #[must_use]
    pub fn new(setup: Setup<'_>) -> Self {
        Self::bound(setup, &Binding::default())
    }

    /// As [`Machine::new`], for a decision that is bound to files as well.
    #[must_use]
    pub fn bound(setup: Setup<'_>, binding: &Binding) -> Self {
        let Setup { call, settings, granted, nonce, now } = setup;
        let asker = Asker {
            agent: settings.agent_name.as_deref(),
            mail_session: settings.session_id.as_deref(),
            wait_ms: settings.permission_wait_ms,
            lang: settings.lang,
        };
        let grant_session = call.grant_session(settings).map(ToOwned::to_owned);
        let options = decision::OPTIONS
            .iter()
            // An option that cannot be kept is not offered.
            .filter(|option| **option != decision::ALWAYS || grant_session.is_some())
            .map(|option| (*option).to_owned())
            .collect();
        let (shown, problem) = match context(&call.event, &call.input, asker, binding) {
            Ok(shown) => (shown, None),
            Err(because) => (Shown::default(), Some(because)),
        };
        let ask = Ask {
            question: question(&call.event, asker),
            options,
            context: shown.text,
            session_id: settings.session_id.clone(),
            relay_key: call.relay_key(settings, nonce),
        };
        let mut machine = Self {
            ask,
            digest: shown.digest,
            grant_session,
            tool: call.event.tool.clone(),
            driven: settings.mail_driven(),
            lang: settings.lang,
            wait_ms: settings.permission_wait_ms,
            nonce,
            deadline: now.after(settings.permission_wait_ms),
            now,
            stream: Stream::Down { retry_at: now },
            parser: sse::Parser::new(),
            asking: Asking::Idle { at: now },
            accepted: None,
            held: Vec::new(),
            tries: 0,
            reconnects: 0,
            trouble: Some(Trouble { since: now, cause: "no answer yet".to_owned() }),
            last_id: 0,
            ending: None,
            verdict: None,
            queue: VecDeque::new(),
        };
        let size = machine.ask.request().body.map_or(0, |body| body.len());
        if granted {
            machine.finish(Because::Granted);
        } else if let Some(problem) = problem {
            machine.finish(problem);
        } else if size > BODY_LIMIT {
            machine.finish(Because::TooLarge(size));
        } else {
            machine.timers();
        }
        machine
    }

    /// The clamped key of the question.
    #[must_use]
    pub fn relay_key(&self) -> &str {
        &self.ask.relay_key
    }

    /// Tells the machine something. `now` never goes back; a smaller value counts as the last one.
    pub fn handle(&mut self, input: Input<'_>, now: Millis) {
        self.now = self.now.max(now);
        // Time first: what was due before this input came, happened before it.
        self.timers();
        if self.verdict.is_some() {
            return;
        }
        match input {
            Input::Tick => {}
            Input::StreamReply(id, head) => self.stream_reply(id, head),
            Input::Chunk(id, bytes) => self.chunk(id, bytes),
            Input::StreamClosed(id, fault) => self.stream_closed(id, fault),
            Input::Replied(id, outcome) => self.replied(id, outcome),
            Input::Signal => self.end(Because::Signal, None),
        }
        self.timers();
    }

    /// Takes the next thing to do. Call it after [`Machine::new`] and after every
    /// [`Machine::handle`] until it says [`Output::Wait`] or [`Output::Done`].
    #[must_use]
    pub fn poll_output(&mut self) -> Output {
        if let Some(output) = self.queue.pop_front() {
            return output;
        }
        match &self.verdict {
            Some(verdict) => Output::Done(verdict.clone()),
            None => Output::Wait(self.wait()),
        }
    }

    /// The earliest instant at which [`Machine::timers`] has something to do.
    fn wait(&self) -> Wait {
        let mut wait = Wait { until: Some(self.deadline), why: "time limit" };
        let mut sooner = |until: Millis, why| {
            if wait.until.is_none_or(|at| until < at) {
                wait = Wait { until: Some(until), why };
            }
        };
        if let Some(ending) = &self.ending {
            return Wait { until: Some(ending.until), why: "withdrawing" };
        }
        if let Some(trouble) = &self.trouble {
            sooner(trouble.since.after(self.outage_ms()), "outage");
        }
        match self.stream {
            Stream::Down { retry_at } => sooner(retry_at, "reconnect"),
            Stream::Opening { until, .. } => sooner(until, "subscribing"),
            Stream::Open { heard, .. } => sooner(heard.after(IDLE_MS), "silence"),
        }
        match self.asking {
            Asking::Idle { at } if self.may_ask() => sooner(at, "next question"),
            Asking::Idle { .. } => {}
            Asking::InFlight { until, .. } => sooner(until, "asking"),
        }
        wait
    }

    /// Does everything that is due. Idempotent at one instant.
    fn timers(&mut self) {
        if self.verdict.is_some() {
            return;
        }
        if let Some(ending) = &self.ending {
            if self.now >= ending.until {
                self.finish_ending();
            }
            return;
        }
        if self.now >= self.deadline {
            let open_until = self.deadline.after(WITHDRAW_MS);
            let because = match &self.trouble {
                Some(trouble) => Because::Unreachable(trouble.cause.clone()),
                None => Because::TimedOut(self.wait_ms),
            };
            self.end(because, Some(open_until));
            return;
        }
        let outage_ms = self.outage_ms();
        if let Some(trouble) = &self.trouble
            && self.now >= trouble.since.after(outage_ms)
        {
            self.end(Because::Unreachable(trouble.cause.clone()), None);
            return;
        }
        self.stream_timers();
        if self.verdict.is_none() && self.ending.is_none() {
            self.ask_timers();
        }
    }

    const fn outage_ms(&self) -> u64 {
        if self.driven { OUTAGE_DRIVEN_MS } else { OUTAGE_INTERACTIVE_MS }
    }

    const fn next_id(&mut self) -> u32 {
        self.last_id += 1;
        self.last_id
    }

    /// Notes that the gateway did not serve. Ends the machine when it was never reached and the
    /// tries are used up or the pause would outlast the outage limit; else says how long to pause.
    fn failed(&mut self, cause: String, retry_after_s: Option<u64>) -> Option<u64> {
        let since = self.trouble.as_ref().map_or(self.now, |trouble| trouble.since);
        self.trouble = Some(Trouble { since, cause: cause.clone() });
        let asked_for = retry_after_s.unwrap_or(0).saturating_mul(1_000);
        if self.accepted.is_some() {
            return Some(asked_for);
        }
        self.tries += 1;
        let pause = usize::try_from(self.tries - 1).ok().and_then(|i| TRY_PAUSES_MS.get(i));
        let pause = pause.map(|pause| asked_for.max(*pause));
        match pause {
            Some(pause)
                if self.now.after(pause) < since.after(self.outage_ms()).min(self.deadline) =>
            {
                Some(pause)
            }
            _ => {
                self.end(Because::Unreachable(cause), None);
                None
            }
        }
    }

    /// The gateway serves. While the stream is down the trouble is not over, but it begins anew.
    fn recovered(&mut self) {
        if matches!(self.stream, Stream::Open { .. }) {
            self.trouble = None;
        } else if let Some(trouble) = &mut self.trouble {
            trouble.since = self.now;
        }
    }

    fn finish(&mut self, because: Because) {
        let verdict = Verdict::new(because, self.driven, Some(&self.tool), self.lang);
        self.finish_with(verdict);
    }

    fn finish_with(&mut self, verdict: Verdict) {
        if let Stream::Opening { id, .. } | Stream::Open { id, .. } = self.stream {
            self.queue.push_back(Output::CloseStream(id));
            self.stream = Stream::Down { retry_at: self.now };
        }
        self.ending = None;
        self.verdict = Some(verdict);
    }

    fn finish_ending(&mut self) {
        if let Some(ending) = self.ending.take() {
            self.finish_with(ending.verdict);
        }
    }
}

/// SplitMix64: spreads a seed over all bits.
const fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests;
