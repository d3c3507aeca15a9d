//! Scripts for the grants: two sets of them, a clock that jumps, and a file that breaks.

use super::byte;
use arbitrary::Unstructured;

const SESSIONS: [&str; 4] = ["s", "S", "s ", "会\"\u{1}"];
const TOOLS: [&str; 4] = ["Bash", "bash", "Write", "*"];
/// How far the clock moves, in milliseconds: seconds, the limits of use and skew with their
/// neighbours, and back.
const MOVES: [i64; 16] = [
    0,
    1,
    1000,
    3_599_999,
    3_600_000,
    86_400_000,
    86_400_001,
    604_799_999,
    604_800_000,
    604_800_001,
    -1,
    -7_200_000,
    -86_400_000,
    -86_400_001,
    -604_800_000,
    3_000_000_000,
];

/// One step. Sessions and tools come from tables of names that are easily confused.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// A human grants.
    Add(&'static str, &'static str),
    /// A covered call goes through.
    Touch(&'static str, &'static str),
    /// One grant is taken back.
    Revoke(&'static str, &'static str),
    /// A session ends.
    RevokeSession(&'static str),
    /// What has ended is dropped.
    Prune,
    /// The clock moves.
    Move(i64),
    /// The two sets change places.
    Swap,
    /// The other set is merged into this one.
    Merge,
    /// The file is cut off after this share of it, in 256ths.
    Cut(u8),
    /// One byte of the file changes: the place as a share in 256ths, and what it is replaced by.
    Damage(u8, u8),
}

/// Steps in order.
#[derive(Clone, Debug)]
pub struct Script {
    /// The steps.
    pub steps: Vec<Step>,
}

impl Script {
    /// All sessions and tools that a script can name.
    pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
        SESSIONS.into_iter().flat_map(|session| TOOLS.map(|tool| (session, tool)))
    }

    /// Reads a script. The low four bits of a byte choose the step, the others what it is about.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Self {
        let mut u = Unstructured::new(bytes);
        let mut steps = Vec::new();
        while let Some(code) = byte(&mut u) {
            let about = usize::from(code >> 4);
            let (session, tool) = (SESSIONS[about & 3], TOOLS[about >> 2]);
            steps.push(match code & 15 {
                0..=3 => Step::Add(session, tool),
                4..=5 => Step::Touch(session, tool),
                6 => Step::Revoke(session, tool),
                7 => Step::RevokeSession(session),
                8 => Step::Prune,
                9..=11 => Step::Move(MOVES[about]),
                12 => Step::Swap,
                13 => Step::Merge,
                14 => Step::Cut(byte(&mut u).unwrap_or(0)),
                _ => Step::Damage(byte(&mut u).unwrap_or(0), byte(&mut u).unwrap_or(0)),
            });
        }
        Self { steps }
    }
}
