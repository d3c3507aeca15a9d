//! Laws of the event-stream writer.
//!
//! 1. Whatever the texts hold, the parser reads back exactly the events that were written, with
//!    line ends in data turned to LF, line ends in names turned to spaces, and ids that cannot be
//!    carried left out. Comments are no events.
//! 2. The output has no CR and ends with a blank line.

use crate::reference::sse::Found;
use crate::script::sse_writer::{Script, Write};
use zcode_mail_core::sse::{
    Item, Parser, RETRY_MAX_MS, RETRY_MIN_MS, put_comment, put_event, put_retry,
};

/// Checks all laws.
///
/// # Panics
/// When one does not hold.
pub fn check(bytes: &[u8]) {
    let script = Script::decode(bytes);
    let mut stream = Vec::new();
    let mut expected = Vec::new();
    let (mut last_id, mut retry) = (String::new(), None);
    for write in &script.writes {
        match write {
            Write::Event { id, name, data } => {
                put_event(&mut stream, id.as_deref(), name, data);
                if let Some(id) = id.as_ref().filter(|id| !id.contains(['\r', '\n', '\0'])) {
                    last_id.clone_from(id);
                }
                expected.push(Found::Event {
                    name: if name.is_empty() {
                        "message".to_owned()
                    } else {
                        name.replace(['\r', '\n'], " ")
                    },
                    data: data.replace("\r\n", "\n").replace('\r', "\n"),
                    last_id: last_id.clone(),
                });
            }
            Write::Comment(text) => put_comment(&mut stream, text),
            Write::Retry(ms) => {
                put_retry(&mut stream, *ms);
                retry = Some((*ms).clamp(RETRY_MIN_MS, RETRY_MAX_MS));
            }
        }
        assert!(stream.ends_with(b"\n\n"), "an open block: {script:?}");
    }

    assert!(!stream.contains(&b'\r'), "a CR in the output: {script:?}");

    let mut parser = Parser::new();
    let mut found = Vec::new();
    for mut chunk in stream.chunks(script.chunk) {
        while let (used, Some(item)) = parser.feed(chunk) {
            found.push(match item {
                Item::TooLarge => Found::TooLarge,
                Item::Event(event) => Found::Event {
                    name: event.name.to_owned(),
                    data: event.data.to_owned(),
                    last_id: event.last_id.to_owned(),
                },
            });
            chunk = &chunk[used..];
        }
    }
    assert_eq!(found, expected, "{script:?}");
    assert_eq!((parser.last_id(), parser.retry()), (&last_id[..], retry), "{script:?}");
}
