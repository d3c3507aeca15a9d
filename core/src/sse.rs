//! Server-sent events: parser and writer.
//!
//! What it is: the event stream format of the HTML standard, section "Server-sent events"
//! ("Parsing an event stream" and "Interpreting an event stream"), in both directions. Connecting,
//! reconnecting and waiting belong to the caller.
//!
//! What it promises: the same items however the stream is cut; it never fails, because the format
//! has no invalid input; memory bounded by its two limits; no allocation once the buffers have
//! grown to the stream's events. What [`put_event`] writes, [`Parser`] reads back as one event.
//!
//! ```text
//!   bytes -> [BOM] -> lines (CR, LF, CRLF) -> field -> data, name, id, retry
//!                                   |  blank line
//!                                   +-----------> Item::Event, if there is data
//!   line or data over its limit -> Item::TooLarge, once; data ignored until the blank line
//!   end of the stream           -> restart(): the unfinished event is dropped, its id with it
//! ```
//!
//! Two departures from the letter of the standard, both for clients that reconnect:
//! - A new connection starts with the last id of the one before, as browsers do. By the letter the
//!   id buffer starts empty, and the first event without an id would erase the place to resume from.
//! - `retry` is held between [`RETRY_MIN_MS`] and [`RETRY_MAX_MS`].
//!
//! For whoever changes this: `tests/src/reference/sse.rs` is the slow twin of the parser and
//! changes with it; so does the header of [`put_event`] with the parser's line rules.

mod parser;
mod writer;

pub use parser::Parser;
pub use writer::{put_comment, put_event, put_retry};

/// The longest line, in bytes without its line end and without the byte-order mark.
///
/// AgentMail events carry identifiers, names and one subject, a few kilobytes in all. Comment lines
/// are dropped as they come and may have any length.
pub const LINE_LIMIT: usize = 1024 * 1024;

/// The most data of one event, in decoded bytes, the line feeds between its lines included.
pub const EVENT_LIMIT: usize = 4 * 1024 * 1024;

/// The shortest reconnection time that a stream can ask for, in milliseconds.
///
/// `retry: 0` from a gateway that refuses connections would otherwise be a reconnect storm.
pub const RETRY_MIN_MS: u64 = 500;

/// The longest reconnection time that a stream can ask for, in milliseconds.
///
/// A hook waits nine minutes for a decision; a stream must not talk it out of reconnecting in time.
pub const RETRY_MAX_MS: u64 = 60_000;

/// One event, valid until the parser is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'p> {
    /// The event type; `message` when the stream named none.
    pub name: &'p str,
    /// The data, its lines joined with LF.
    pub data: &'p str,
    /// The id to resume after, from this event or an earlier one; empty when there is none.
    pub last_id: &'p str,
}

/// What [`Parser::feed`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'p> {
    /// A complete event.
    Event(Event<'p>),
    /// An event with a line or data over its limit. It is reported as soon as that is known, once,
    /// and skipped up to its blank line; the stream may be read on.
    TooLarge,
}
