//! Scripts for the event-stream writer.

use super::{Step, Vocabulary, byte};
use arbitrary::Unstructured;

const VOCABULARY: Vocabulary = [
    b"\r",
    b"\n",
    b"\r\n",
    b"\n\n",
    b"\n\r",
    b"\0",
    b" ",
    b":",
    b": ",
    b"data: ",
    b"id: ",
    b"event: ",
    b"retry: 1",
    b"\xEF\xBB\xBF",
    b"a",
    b"b",
    b"7",
    b"42",
    b"new_mail",
    b"message",
    b"{\"a\":\"",
    b"\"}",
    b"\\n",
    b"\xE4\xBC\x9A",
    b"\xE2\x80\xA8",
    b"\xC2\x85",
    b"\x0B",
    b"\x0C",
    b"\t",
    b"  ",
    b"\xF0\x9F\x98\x80",
    b"data",
];

/// One call of the writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// `put_event`
    Event {
        /// The id, if one is given.
        id: Option<String>,
        /// The name.
        name: String,
        /// The data.
        data: String,
    },
    /// `put_comment`
    Comment(String),
    /// `put_retry`
    Retry(u64),
}

/// What is written, and how the reader reads it.
#[derive(Clone, Debug)]
pub struct Script {
    /// The reader's chunk size, at least one.
    pub chunk: usize,
    /// The calls in order.
    pub writes: Vec<Write>,
}

impl Script {
    /// Reads a script.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Self {
        let mut u = Unstructured::new(bytes);
        let chunk = usize::from(byte(&mut u).unwrap_or(0)) + 1;
        let mut writes = Vec::new();
        while let Some(kind) = byte(&mut u) {
            writes.push(match kind & 7 {
                0 => Write::Comment(text(&mut u)),
                1 => Write::Retry(u.arbitrary().unwrap_or(0)),
                2..=4 => Write::Event { id: None, name: text(&mut u), data: text(&mut u) },
                _ => {
                    Write::Event { id: Some(text(&mut u)), name: text(&mut u), data: text(&mut u) }
                }
            });
        }
        Self { chunk, writes }
    }
}

/// Pieces up to the next cut.
fn text(u: &mut Unstructured<'_>) -> String {
    let mut bytes = Vec::new();
    while let Some(Step::Bytes(piece)) = Step::decode(u, &VOCABULARY) {
        bytes.extend(piece);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
