//! Scripts for the reader of the agent's events.

use super::byte;
use super::document::Document;
use arbitrary::Unstructured;

const NAMES: [&str; 8] = [
    "permission_decision",
    "new_mail",
    "session_archived",
    "permission_decision",
    "message",
    "",
    "Permission_Decision",
    "new_mail ",
];

/// One event.
#[derive(Clone, Debug)]
pub struct Script {
    /// Its name.
    pub name: &'static str,
    /// Its data, before bytes that are no UTF-8 are replaced as the stream's parser does.
    pub document: Document,
}

impl Script {
    /// Reads a script.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Self {
        let mut u = Unstructured::new(bytes);
        let name = NAMES[usize::from(byte(&mut u).unwrap_or(0) & 7)];
        Self { name, document: Document::decode(&mut u) }
    }
}
