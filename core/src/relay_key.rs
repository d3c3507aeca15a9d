//! The idempotency key of a question and its length limit (`B-8.1`, `B-8.9`).
//!
//! A tool call id can be thousands of bytes long (some model gateways append signatures to it),
//! the gateway takes at most 160. Cutting would let two calls share a key, and the second question
//! would be dropped as a repeat of the first; so a long key keeps a readable prefix and ends in the
//! SHA-256 of the whole.

use alloc::string::String;
use core::fmt::Write as _;
use sha2::{Digest as _, Sha256};

/// Longest key that the gateway accepts, in bytes, inclusive (`B-8.2b`).
pub const LIMIT: usize = 160;
/// What stands between prefix and digest.
const MARK: &str = ":sha256:";
/// Bytes of the original that a clamped key keeps at most.
pub const PREFIX_LIMIT: usize = LIMIT - MARK.len() - 64;

/// The key unchanged when it has at most [`LIMIT`] bytes; else the longest prefix of at most
/// [`PREFIX_LIMIT`] bytes that ends between two characters, `:sha256:`, and the lower-case
/// hexadecimal SHA-256 of the complete key.
#[must_use]
pub fn clamp(key: &str) -> String {
    if key.len() <= LIMIT {
        return String::from(key);
    }
    let mut clamped = String::with_capacity(LIMIT);
    clamped.push_str(&key[..key.floor_char_boundary(PREFIX_LIMIT)]);
    clamped.push_str(MARK);
    clamped.push_str(&sha256_hex(key.as_bytes()));
    clamped
}

/// Lower-case hexadecimal SHA-256 of `bytes`.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
