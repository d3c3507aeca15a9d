//! Scripts for the hook's decision machine: a world of streams, replies, faults, time and signals.

use super::byte;
use arbitrary::Unstructured;
use zcode_mail_core::http::Fault;

/// Steps of time, in milliseconds.
const PASSES: [u64; 8] = [0, 1, 250, 1_000, 10_000, 30_000, 90_000, 120_000];

const FAULTS: [Fault; 7] = [
    Fault::Unresolvable,
    Fault::Unreachable,
    Fault::Tls,
    Fault::TimedOut,
    Fault::Truncated,
    Fault::TooLarge,
    Fault::NotHttp,
];

const STATUSES: [u16; 16] =
    [200, 200, 204, 301, 400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503];

/// The text of a decision and whether it approves.
const TEXTS: [(&str, bool); 8] = [
    ("同意", true),
    ("一直同意", true),
    ("拒绝", false),
    ("同意。", false),
    ("", false),
    ("approve", true),
    ("approve?", false),
    ("一直", false),
];

/// Which identifier an input carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The newest that the machine asked for.
    Current,
    /// An older one.
    Stale,
}

/// What makes a decision another question's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// Nothing: it is ours.
    Ours,
    /// Another key.
    Key,
    /// Another mail.
    Mail,
    /// Another mail session.
    Session,
    /// Another kind.
    Kind,
}

/// A decision as an event or in a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Its text.
    pub text: &'static str,
    /// Whether the text approves.
    pub approves: bool,
    /// Whose it is.
    pub aim: Aim,
}

/// One step of the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Time passes.
    Pass(u64),
    /// Time passes to the instant that the machine waits for.
    Sleep,
    /// A stream's head: an honest one, or another status.
    Head(Which, Option<u16>),
    /// A stream fails to open, or breaks.
    Fault(Which, Fault, bool),
    /// A whole decision event.
    Event(Which, Decision),
    /// Raw bytes on the stream.
    Bytes(Which, Vec<u8>),
    /// A reply to the newest exchange: pending, decided, withdrawn, or a status.
    Reply(Which, Reply),
    /// An exchange fails.
    Lost(Which, Fault),
    /// SIGTERM.
    Signal,
}

/// The reply to an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The question waits.
    Pending,
    /// It is decided.
    Decided(Decision),
    /// It was taken back.
    Withdrawn,
    /// Another status.
    Status(u16),
    /// A success with a page in place of JSON.
    Page,
}

/// A world.
#[derive(Clone, Debug)]
pub struct Script {
    /// Whether mail drives the session.
    pub driven: bool,
    /// How long the hook waits, in milliseconds.
    pub wait_ms: u64,
    /// What happens.
    pub steps: Vec<Step>,
}

impl Script {
    /// Reads a script.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Self {
        let mut u = Unstructured::new(bytes);
        let choice = byte(&mut u).unwrap_or(0);
        let wait_ms = [540_000, 1, 5_000, 60_000][usize::from(choice >> 1 & 3)];
        let mut steps = Vec::new();
        while let Some(step) = step(&mut u) {
            steps.push(step);
        }
        Self { driven: choice & 1 != 0, wait_ms, steps }
    }
}

fn step(u: &mut Unstructured<'_>) -> Option<Step> {
    let code = byte(u)?;
    let which = if code & 0x10 == 0 { Which::Current } else { Which::Stale };
    Some(match code & 0x0F {
        0 => Step::Pass(PASSES[usize::from(code >> 5)]),
        1 | 2 => Step::Sleep,
        3 | 4 => Step::Head(which, None),
        5 => Step::Head(which, Some(STATUSES[usize::from(byte(u)? & 15)])),
        6 => Step::Fault(which, FAULTS[usize::from(code >> 5) % FAULTS.len()], byte(u)? & 1 != 0),
        7 | 8 => Step::Event(which, decision(byte(u)?)),
        9 => {
            let count = usize::from(code >> 5) + 1;
            Step::Bytes(which, super::up_to(u, count).to_vec())
        }
        10 | 11 => Step::Reply(which, Reply::Pending),
        12 => Step::Reply(which, Reply::Decided(decision(byte(u)?))),
        13 => Step::Reply(which, Reply::Status(STATUSES[usize::from(byte(u)? & 15)])),
        14 => match code >> 5 {
            0..=2 => Step::Lost(which, FAULTS[usize::from(byte(u)?) % FAULTS.len()]),
            3 | 4 => Step::Reply(which, Reply::Withdrawn),
            5 | 6 => Step::Reply(which, Reply::Page),
            _ => Step::Bytes(which, b": ping\n\n".to_vec()),
        },
        _ if code >> 5 == 7 => Step::Signal,
        _ => Step::Pass(PASSES[usize::from(code >> 5)]),
    })
}

fn decision(code: u8) -> Decision {
    let (text, approves) = TEXTS[usize::from(code & 7)];
    let aim = match code >> 3 & 7 {
        0..=3 => Aim::Ours,
        4 => Aim::Key,
        5 => Aim::Mail,
        6 => Aim::Session,
        _ => Aim::Kind,
    };
    Decision { text, approves, aim }
}
