//! Scripts for the line framer.

use super::{Step, Vocabulary, byte};
use arbitrary::Unstructured;

const LIMITS: [usize; 8] = [0, 1, 2, 4, 8, 16, 64, zcode_mail_core::frame::LINE_LIMIT];

const VOCABULARY: Vocabulary = [
    b"\n",
    b"\r\n",
    b"\r",
    b"\n\n",
    b"\r\r\n",
    b"a",
    b"ab",
    b"abc",
    b"abcd",
    b"abcde",
    b"abcdefg",
    b"{}",
    b"[]",
    b"null",
    b"{\"jsonrpc\":\"2.0\",",
    b"\"id\":1}",
    b"\"a\\nb\"",
    b" ",
    b"\t",
    b"\0",
    b"\xEF\xBB\xBF",
    b"\xE4\xBC\x9A",
    b"\xE4\xBC",
    b"\x9A",
    b"\xFF",
    b"\x0B",
    b"\x0C",
    b"\x85",
    b"\xE2\x80\xA8",
    b"\\n",
    b"\\r\\n",
    b"Content-Length: 2\r\n\r\n",
];

/// A limit and a stream in the reads that it comes in.
#[derive(Clone, Debug)]
pub struct Script {
    /// The framer's limit.
    pub limit: usize,
    /// The reads; some are empty.
    pub reads: Vec<Vec<u8>>,
}

impl Script {
    /// Reads a script.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Self {
        let mut u = Unstructured::new(bytes);
        let limit = LIMITS[usize::from(byte(&mut u).unwrap_or(0) & 7)];
        let mut reads = vec![Vec::new()];
        while let Some(step) = Step::decode(&mut u, &VOCABULARY) {
            match (step, reads.last_mut()) {
                (Step::Bytes(bytes), Some(read)) => read.extend(bytes),
                _ => reads.push(Vec::new()),
            }
        }
        Self { limit, reads }
    }
}
