//! Scripts for the gateway's decoders of request bodies.

use super::document::Document;
use arbitrary::Unstructured;

/// One request body.
#[derive(Clone, Debug)]
pub struct Script {
    /// The body.
    pub document: Document,
}

impl Script {
    /// Reads a script.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Self {
        Self { document: Document::decode(&mut Unstructured::new(bytes)) }
    }
}
