//! Scripts for the event-stream parser.

use super::{Step, Vocabulary, byte};
use arbitrary::Unstructured;
use zcode_mail_core::sse::{EVENT_LIMIT, LINE_LIMIT};

/// Limits of line and event.
const LIMITS: [(usize, usize); 4] = [(LINE_LIMIT, EVENT_LIMIT), (16, 32), (32, 8), (8, 1)];

const VOCABULARY: Vocabulary = [
    b"data",
    b"event",
    b"id",
    b"retry",
    b":",
    b" ",
    b"\r",
    b"\n",
    b"\r\n",
    b"\xEF\xBB\xBF",
    b"\0",
    b"data:",
    b"data: ",
    b"event: ",
    b"id: ",
    b"retry: ",
    b"+5",
    b"7",
    b"\n\n",
    b"\r\n\r\n",
    b"\r\r",
    b"\xE4\xBC\x9A",
    b"\xE4\xBC",
    b"\x9A",
    b"\xFF",
    b"Data: ",
    b" data:",
    b"data-x: ",
    b"\t",
    b": ping\n\n",
    b"new_mail",
    b"x",
];

/// Limits and the streams of one connection after the other.
#[derive(Clone, Debug)]
pub struct Script {
    /// The parser's limit of a line.
    pub line_limit: usize,
    /// The parser's limit of an event.
    pub event_limit: usize,
    /// Each connection's stream in the chunks that it comes in; some are empty.
    pub connections: Vec<Vec<Vec<u8>>>,
}

impl Script {
    /// Reads a script.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Self {
        let mut u = Unstructured::new(bytes);
        let configuration = byte(&mut u).unwrap_or(0);
        let (line_limit, event_limit) = LIMITS[usize::from(configuration & 3)];
        // A byte-order mark matters in one place only, which pieces alone seldom hit.
        let start: &[u8] = if configuration & 4 == 0 { b"" } else { b"\xEF\xBB\xBF" };
        let mut connections = Vec::new();
        let mut chunks = Vec::new();
        let mut chunk = start.to_vec();
        while let Some(step) = Step::decode(&mut u, &VOCABULARY) {
            match step {
                Step::Bytes(bytes) => chunk.extend(bytes),
                Step::Cut => chunks.push(std::mem::take(&mut chunk)),
                Step::Restart => {
                    chunks.push(std::mem::replace(&mut chunk, start.to_vec()));
                    connections.push(std::mem::take(&mut chunks));
                }
            }
        }
        chunks.push(chunk);
        connections.push(chunks);
        Self { line_limit, event_limit, connections }
    }
}
