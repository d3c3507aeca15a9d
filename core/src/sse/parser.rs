//! Bytes to events.

use super::{EVENT_LIMIT, Event, Item, LINE_LIMIT, RETRY_MAX_MS, RETRY_MIN_MS};
use alloc::string::String;
use alloc::vec::Vec;
use core::mem;
use memchr::{memchr, memchr2};

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// An incremental parser of one event stream after another.
#[derive(Clone, Debug)]
pub struct Parser {
    line_limit: usize,
    event_limit: usize,

    // Between two bytes.
    /// How many bytes of a byte-order mark have been seen; `None` once the stream's start is over.
    bom: Option<usize>,
    /// The last byte was a CR: a LF that follows belongs to the same line end.
    after_cr: bool,
    /// The beginning of a line whose end has not come. Undecoded, so no cut splits a character.
    line: Vec<u8>,
    /// The rest of the line is dropped: a comment, or over the limit.
    discarding: bool,

    // Between two lines. `data` ends with one LF per `data` line, as the standard builds it.
    data: String,
    name: String,
    id: String,
    /// The event has been reported as too large.
    too_large: bool,

    // Between two events.
    last_id: String,
    retry: Option<u64>,
    /// `data` and `name` belong to the event handed out by the last call.
    delivered: bool,
}

/// What a line did.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Nothing,
    Dispatch,
    TooLarge,
}

impl Default for Parser {
    fn default() -> Self {
        Self::new()
    }
}

impl Parser {
    /// A parser at the start of its first stream, with [`LINE_LIMIT`] and [`EVENT_LIMIT`].
    #[must_use]
    pub const fn new() -> Self {
        Self::with_limits(LINE_LIMIT, EVENT_LIMIT)
    }

    /// A parser for lines of at most `line` bytes and events of at most `event` bytes of data.
    #[must_use]
    pub const fn with_limits(line: usize, event: usize) -> Self {
        Self {
            line_limit: line,
            event_limit: event,
            bom: Some(0),
            after_cr: false,
            line: Vec::new(),
            discarding: false,
            data: String::new(),
            name: String::new(),
            id: String::new(),
            too_large: false,
            last_id: String::new(),
            retry: None,
            delivered: false,
        }
    }

    /// Eats bytes of the stream up to the end of one event; returns how many, and the event.
    ///
    /// Call it again with the rest of the chunk until everything is eaten and there is no item. An
    /// empty chunk means nothing; the end of a stream is told by [`restart`](Self::restart), or by
    /// not calling again. An event is handed out at the first byte of its blank line's end.
    #[must_use = "the rest of the chunk is to be fed and the item to be handled"]
    pub fn feed<'p>(&'p mut self, chunk: &[u8]) -> (usize, Option<Item<'p>>) {
        if mem::take(&mut self.delivered) {
            self.data.clear();
            self.name.clear();
        }
        let mut at = self.skip_bom(chunk);
        while at < chunk.len() {
            if mem::take(&mut self.after_cr) && chunk[at] == b'\n' {
                at += 1;
                continue;
            }
            let rest = &chunk[at..];
            let end = if rest[0] == b'\n' { Some(0) } else { memchr2(b'\n', b'\r', rest) };
            let step = if let Some(end) = end {
                at += end + 1;
                self.after_cr = rest[end] == b'\r';
                self.finish_line(&rest[..end])
            } else {
                at = chunk.len();
                self.keep(rest)
            };
            match step {
                Step::Nothing => {}
                Step::Dispatch => return (at, Some(Item::Event(self.deliver()))),
                Step::TooLarge => return (at, Some(Item::TooLarge)),
            }
        }
        (at, None)
    }

    /// The reconnection time that the stream asked for, in milliseconds, between
    /// [`RETRY_MIN_MS`] and [`RETRY_MAX_MS`]; `None` when it never did.
    #[must_use]
    pub const fn retry(&self) -> Option<u64> {
        self.retry
    }

    /// The id to send as `Last-Event-ID` when reconnecting (`D-7.2`); empty means none.
    ///
    /// It advances with each blank line, also when the event had no data or was too large: an event
    /// that cannot be taken must not come again with every reconnect.
    #[must_use]
    pub fn last_id(&self) -> &str {
        &self.last_id
    }

    /// The bytes held at the moment: at most the line limit for the unfinished line, three times
    /// that for each of name, id and last id (a bad byte decodes to three), and the event limit and
    /// one for the data.
    #[must_use]
    pub const fn held(&self) -> usize {
        self.line.len() + self.data.len() + self.name.len() + self.id.len() + self.last_id.len()
    }

    /// Prepares for a new connection: drops what is unfinished, keeps the last id and `retry`.
    pub fn restart(&mut self) {
        self.bom = Some(0);
        self.after_cr = false;
        self.line.clear();
        self.discarding = false;
        self.data.clear();
        self.name.clear();
        self.id.clone_from(&self.last_id);
        self.too_large = false;
        self.delivered = false;
    }

    /// One byte-order mark at the start of a stream is not part of it, whatever it is cut into.
    fn skip_bom(&mut self, chunk: &[u8]) -> usize {
        let Some(mut seen) = self.bom else { return 0 };
        for (at, &byte) in chunk.iter().enumerate() {
            if byte != BOM[seen] {
                // What looked like a mark is the beginning of the first line.
                self.bom = None;
                self.line.extend_from_slice(&BOM[..seen]);
                return at;
            }
            seen += 1;
            if seen == BOM.len() {
                self.bom = None;
                return at + 1;
            }
        }
        self.bom = Some(seen);
        chunk.len()
    }

    /// Keeps the part of a line that has come, if the line can still matter.
    fn keep(&mut self, part: &[u8]) -> Step {
        if self.discarding {
            return Step::Nothing;
        }
        if self.line.is_empty() && part.first() == Some(&b':') {
            self.discarding = true;
            return Step::Nothing;
        }
        if self.line.len() + part.len() > self.line_limit {
            self.line.clear();
            self.discarding = true;
            return self.overflow();
        }
        self.line.extend_from_slice(part);
        Step::Nothing
    }

    /// Interprets the line that ends with `tail`.
    fn finish_line(&mut self, tail: &[u8]) -> Step {
        if mem::take(&mut self.discarding) {
            return Step::Nothing;
        }
        if self.line.is_empty() && tail.len() <= self.line_limit {
            return self.interpret(tail);
        }
        let kept = self.keep(tail);
        if mem::take(&mut self.discarding) {
            return kept;
        }
        let mut line = mem::take(&mut self.line);
        let step = self.interpret(&line);
        line.clear();
        self.line = line;
        step
    }

    /// HTML, "Interpreting an event stream": one line, decoded and without its end.
    fn interpret(&mut self, line: &[u8]) -> Step {
        if line.is_empty() {
            return self.blank_line();
        }
        // Nearly all bytes of a stream are data, so this field is not searched for.
        let colon = if line.starts_with(b"data:") { Some(4) } else { memchr(b':', line) };
        let (field, value) = match colon {
            Some(colon) => {
                let value = &line[colon + 1..];
                (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &[][..]),
        };
        match field {
            b"data" if !self.too_large => {
                // The LF after the last line is taken off again and does not count.
                push_decoded(&mut self.data, value);
                if self.data.len() > self.event_limit {
                    return self.overflow();
                }
                self.data.push('\n');
            }
            b"event" => {
                self.name.clear();
                push_decoded(&mut self.name, value);
            }
            b"id" if !value.contains(&0) => {
                self.id.clear();
                push_decoded(&mut self.id, value);
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                self.retry = Some(milliseconds(value).clamp(RETRY_MIN_MS, RETRY_MAX_MS));
            }
            // An empty field name is a comment; unknown fields are ignored.
            _ => {}
        }
        Step::Nothing
    }

    fn blank_line(&mut self) -> Step {
        self.last_id.clone_from(&self.id);
        if mem::take(&mut self.too_large) || self.data.is_empty() {
            self.name.clear();
            return Step::Nothing;
        }
        self.delivered = true;
        Step::Dispatch
    }

    fn overflow(&mut self) -> Step {
        self.data.clear();
        if mem::replace(&mut self.too_large, true) { Step::Nothing } else { Step::TooLarge }
    }

    fn deliver(&self) -> Event<'_> {
        Event {
            name: if self.name.is_empty() { "message" } else { &self.name },
            data: self.data.strip_suffix('\n').unwrap_or(&self.data),
            last_id: &self.last_id,
        }
    }
}

/// Appends `bytes` with every malformed sequence replaced by U+FFFD (Encoding, "UTF-8 decode").
///
/// A line decodes by itself as it does inside its stream: CR and LF never stand inside a character.
///
/// Nearly every line is valid, and the check of a whole line is several times faster than the search
/// for its malformed parts.
fn push_decoded(text: &mut String, bytes: &[u8]) {
    if let Ok(valid) = core::str::from_utf8(bytes) {
        text.push_str(valid);
        return;
    }
    for part in bytes.utf8_chunks() {
        text.push_str(part.valid());
        if !part.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// A number of ASCII digits; too large to represent is as large as it gets.
fn milliseconds(digits: &[u8]) -> u64 {
    digits
        .iter()
        .fold(0_u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests;
