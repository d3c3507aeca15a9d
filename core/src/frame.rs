//! Lines out of a byte stream.
//!
//! What it is: the framing of newline-delimited protocols (MCP 2025-11-25 "Transports": messages
//! on stdio are delimited by newlines and contain none).
//!
//! What it promises: the same lines however the stream is cut; total work linear in the bytes, even
//! for reads of one byte; no byte is kept here, so memory is what the caller holds, and the caller
//! never needs to hold more than the limit and one read. There is no invalid input: an over-long
//! line is an item, reported once, after which the next line is read as if nothing happened.
//!
//! ```text
//!             no newline yet, within the limit: (0, None)
//!            +--------+
//!            v        |   newline: (n, Line)
//!   start -> reading -+----------------------> reading
//!            | no newline, over the limit: (all, TooLong)
//!            v
//!            skipping --- newline, eaten ----> reading
//! ```
//!
//! For whoever changes this: `seen` counts from the start of `pending` *after* what the last call
//! consumed; every return path has to keep that true.

use memchr::memchr;

/// The longest line accepted from a peer on stdio, in bytes without its line end.
///
/// Mail bodies travel inside one JSON line and may be escaped to six bytes a character; ten times
/// the largest sensible body still fits, and a peer that never sends a newline cannot take more.
pub const LINE_LIMIT: usize = 4 * 1024 * 1024;

/// What [`LineFramer::next`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'b> {
    /// One line without its line end. A trailing CR is dropped, so CRLF streams read the same.
    Line(&'b [u8]),
    /// A line longer than the limit. It is reported once, with its first `limit` bytes (so that a
    /// reply can name what it answers), and skipped up to its newline.
    TooLong(&'b [u8]),
}

/// Finds lines in bytes that the caller owns.
#[derive(Clone, Debug)]
pub struct LineFramer {
    /// Bytes of the pending line that hold no newline, so that they are searched only once.
    seen: usize,
    limit: usize,
    /// The line has been reported as too long; its rest is eaten.
    skipping: bool,
}

impl LineFramer {
    /// A framer for lines of at most `limit` bytes, line end not counted.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self { seen: 0, limit, skipping: false }
    }

    /// Looks for the next line in `pending` and says how many bytes the caller may drop.
    ///
    /// Call it again with what is left until the item is `None`, which means "give me more": then
    /// append to `pending` what arrives next, and keep the bytes that were not consumed. At the end
    /// of the input nothing more is to be called: an unterminated tail is no message.
    #[must_use = "the consumed bytes are to be dropped and the frame to be handled"]
    pub fn next<'b>(&mut self, pending: &'b [u8]) -> (usize, Option<Frame<'b>>) {
        let mut start = 0;
        if self.skipping {
            match memchr(b'\n', pending) {
                None => return (pending.len(), None),
                Some(end) => {
                    start = end + 1;
                    self.skipping = false;
                }
            }
        }
        let line = &pending[start..];
        let seen = self.seen.min(line.len());
        let Some(end) = memchr(b'\n', &line[seen..]).map(|found| seen + found) else {
            // One byte more than the limit may still be the CR of a line that fits.
            if line.len() > self.limit && without_cr(line).len() > self.limit {
                self.seen = 0;
                self.skipping = true;
                return (pending.len(), Some(Frame::TooLong(&line[..self.limit])));
            }
            self.seen = line.len();
            return (start, None);
        };
        self.seen = 0;
        let text = without_cr(&line[..end]);
        let frame = match text.get(..self.limit) {
            Some(head) if head.len() < text.len() => Frame::TooLong(head),
            _ => Frame::Line(text),
        };
        (start + end + 1, Some(frame))
    }
}

fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use alloc::vec::Vec;

    /// Runs a stream through a framer in reads of `step` bytes; the framer's own view of a run.
    fn run(limit: usize, stream: &[u8], step: usize) -> (Vec<String>, usize) {
        let mut framer = LineFramer::new(limit);
        let (mut pending, mut found, mut most) = (Vec::new(), Vec::new(), 0);
        for read in stream.chunks(step) {
            pending.extend_from_slice(read);
            loop {
                let (used, frame) = framer.next(&pending);
                match frame {
                    None => {}
                    Some(Frame::TooLong(head)) => {
                        assert_eq!(head.len(), limit);
                        found.push("(too long)".into());
                    }
                    Some(Frame::Line(line)) => found.push(String::from_utf8(line.into()).unwrap()),
                }
                let done = frame.is_none();
                pending.drain(..used);
                if done {
                    break;
                }
            }
            most = most.max(pending.len());
        }
        (found, most)
    }

    #[test]
    fn lines_are_the_same_in_every_step_size() {
        let stream = b"one\r\n\n\r\ntw\ro\nthree\ntail";
        for step in 1..=stream.len() {
            assert_eq!(run(8, stream, step).0, ["one", "", "", "tw\ro", "three"], "step {step}");
        }
    }

    #[test]
    fn a_line_at_the_limit_passes_and_one_byte_more_does_not() {
        for step in [1, 2, 64] {
            assert_eq!(run(4, b"1234\n1234\r\n", step).0, ["1234", "1234"], "step {step}");
            assert_eq!(run(4, b"12345\n12345\r\n", step).0, ["(too long)"; 2], "step {step}");
            assert_eq!(run(4, b"1234\r\r\nok\n", step).0, ["(too long)", "ok"], "step {step}");
        }
    }

    #[test]
    fn an_over_long_line_is_reported_once_and_the_next_line_is_read() {
        for step in [1, 3, 5, 1000] {
            let (found, _) = run(4, b"a\n1234567890123\nb\n", step);
            assert_eq!(found, ["a", "(too long)", "b"], "step {step}");
        }
    }

    #[test]
    fn a_line_without_end_is_reported_and_never_kept() {
        let (found, most) = run(16, &[b'x'; 10_000], 7);
        assert_eq!(found, ["(too long)"]);
        assert!(most <= 16 + 1, "{most} bytes were left with the caller");
    }

    #[test]
    fn an_unterminated_tail_is_no_message() {
        assert_eq!(run(16, b"a\ntail", 3).0, ["a"]);
        assert_eq!(run(16, b"", 3).0, [""; 0]);
    }

    #[test]
    fn bytes_that_were_searched_are_not_searched_again() {
        let mut framer = LineFramer::new(64);
        assert_eq!(framer.next(b"abc"), (0, None));
        assert_eq!(framer.seen, 3);
        // The newline under `seen` cannot exist by contract; a framer that looked would find it.
        assert_eq!(framer.next(b"ab\ndef\n"), (7, Some(Frame::Line(b"ab\ndef"))));
    }
}
