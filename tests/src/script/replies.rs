//! Scripts for the readers of the gateway's replies.

use super::byte;
use super::document::Document;
use arbitrary::Unstructured;

const STATUSES: [u16; 16] =
    [200, 200, 200, 201, 204, 205, 302, 400, 401, 404, 408, 409, 429, 500, 503, 0];
const TYPES: [Option<&str>; 4] =
    [Some("application/json"), None, Some("text/html; charset=utf-8"), Some("text/plain")];
const RETRY: [Option<&str>; 8] = [
    None,
    Some("7"),
    Some("Sun, 06 Nov 1994 08:49:37 GMT"),
    Some("Sunday, 06-Nov-94 08:49:37 GMT"),
    Some("soon"),
    Some("-1"),
    Some("99999999999999999999"),
    Some("Sun, 31 Feb 9999 99:99:99 GMT"),
];
const DATES: [Option<&str>; 2] = [None, Some("Sun, 06 Nov 1994 08:49:07 GMT")];

/// One reply.
#[derive(Clone, Debug)]
pub struct Script {
    /// The status: one of the table, or any.
    pub status: u16,
    /// `Content-Type`.
    pub content_type: Option<&'static str>,
    /// `Retry-After`.
    pub retry_after: Option<&'static str>,
    /// `Date`.
    pub date: Option<&'static str>,
    /// The body.
    pub document: Document,
}

impl Script {
    /// Reads a script.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Self {
        let mut u = Unstructured::new(bytes);
        let code = usize::from(byte(&mut u).unwrap_or(0));
        let heads = usize::from(byte(&mut u).unwrap_or(0));
        let status = match code {
            0..=0x7F => STATUSES[code & 15],
            _ => u.arbitrary().unwrap_or(0),
        };
        Self {
            status,
            content_type: TYPES[heads & 3],
            retry_after: RETRY[heads >> 2 & 7],
            date: DATES[heads >> 5 & 1],
            document: Document::decode(&mut u),
        }
    }
}
