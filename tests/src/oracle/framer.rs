//! Laws of [`LineFramer`], driven as a runtime drives it, with an [`Inbox`].
//!
//! 1. The same frames whole, as scripted, byte by byte, and (short streams) for every single cut.
//! 2. Equal to [`reference::framer`](crate::reference::framer).
//! 3. Never more consumed than given; `None` only when the caller has to read more.
//! 4. What is left with the caller after draining is at most the limit and one byte.

use crate::reference::framer::{Found, frames};
use crate::script::framer::Script;
use zcode_mail_core::frame::{Frame, LineFramer};
use zcode_mail_core::inbox::Inbox;

/// Streams up to this length are cut at every position.
const CUT_EVERYWHERE: usize = 48;

/// Checks all laws.
///
/// # Panics
/// When one does not hold.
pub fn check(bytes: &[u8]) {
    let script = Script::decode(bytes);
    let stream = script.reads.concat();
    let expected = frames(&stream, script.limit);

    let run = |what: &str, reads: &mut dyn Iterator<Item = &[u8]>| {
        assert_eq!(found(script.limit, reads), expected, "{what}: {script:?}");
    };
    run("whole", &mut [&stream[..]].into_iter());
    run("as scripted", &mut script.reads.iter().map(|read| &read[..]));
    run("byte by byte", &mut stream.chunks(1));
    if stream.len() <= CUT_EVERYWHERE {
        for cut in 1..stream.len() {
            let (left, right) = stream.split_at(cut);
            run(&format!("cut at {cut}"), &mut [left, right].into_iter());
        }
    }
}

/// The frames that a runtime sees when these reads arrive.
fn found(limit: usize, reads: &mut dyn Iterator<Item = &[u8]>) -> Vec<Found> {
    let mut framer = LineFramer::new(limit);
    let mut inbox = Inbox::new();
    let mut found = Vec::new();
    for read in reads {
        inbox.extend(read);
        loop {
            let pending = inbox.pending();
            let (used, frame) = framer.next(pending);
            assert!(used <= pending.len(), "consumed {used} of {}", pending.len());
            let done = match frame {
                None => true,
                Some(Frame::TooLong(head)) => {
                    found.push(Found::TooLong(head.to_vec()));
                    false
                }
                Some(Frame::Line(line)) => {
                    found.push(Found::Line(line.to_vec()));
                    false
                }
            };
            assert!(done || used > 0, "a frame without progress");
            inbox.consume(used);
            if done {
                break;
            }
        }
        let left = inbox.pending().len();
        assert!(left <= limit.saturating_add(1), "{left} bytes left");
    }
    found
}
