//! Laws of [`Parser`].
//!
//! 1. The same items, each event after the same byte, whole, as scripted, byte by byte, and (short
//!    streams) for every single cut with an empty chunk in it; over reconnects too.
//! 2. Equal to [`reference::sse`](crate::reference::sse), last id and reconnection time included.
//! 3. Never more consumed than given; `None` only when all is consumed; each item comes of a byte.
//! 4. What the parser holds is bounded by its limits.

use crate::reference::sse::{Found, Kept, events};
use crate::script::sse::Script;
use zcode_mail_core::sse::{Item, Parser};

/// Streams up to this length are cut at every position.
const CUT_EVERYWHERE: usize = 48;

/// Checks all laws.
///
/// # Panics
/// When one does not hold.
pub fn check(bytes: &[u8]) {
    let script = Script::decode(bytes);
    let streams: Vec<Vec<u8>> = script.connections.iter().map(|chunks| chunks.concat()).collect();
    let mut kept = Kept::default();
    let expected: Vec<Vec<Found>> = streams
        .iter()
        .map(|stream| events(stream, script.line_limit, script.event_limit, &mut kept))
        .collect();

    let whole = run(&script, streams.iter().map(|stream| vec![&stream[..]]));
    let items: Vec<Vec<Found>> = whole
        .items
        .iter()
        .map(|items| items.iter().map(|(_, item)| item.clone()).collect())
        .collect();
    assert_eq!(items, expected, "the twin differs: {script:?}");
    assert_eq!(whole.kept, kept, "the twin keeps something else: {script:?}");

    let scripted = script.connections.iter().map(|chunks| chunks.iter().map(|c| &c[..]).collect());
    assert_eq!(run(&script, scripted), whole, "as scripted: {script:?}");
    // Empty chunks in between: they must not use up what the parser waits for.
    let bytewise = streams
        .iter()
        .map(|stream| stream.chunks(1).flat_map(|one| [&b""[..], one]).collect::<Vec<&[u8]>>());
    assert_eq!(run(&script, bytewise), whole, "byte by byte: {script:?}");
    let longest = streams.iter().map(Vec::len).max().unwrap_or(0);
    if longest <= CUT_EVERYWHERE {
        for cut in 0..longest {
            let parts = streams.iter().map(|stream| {
                let (left, right) = stream.split_at(cut.min(stream.len()));
                vec![left, b"", right]
            });
            assert_eq!(run(&script, parts), whole, "cut at {cut}: {script:?}");
        }
    }
}

/// Everything that can be seen of a parser's life.
#[derive(Debug, PartialEq, Eq)]
struct Life {
    /// For each connection its items, events with the number of bytes consumed before.
    items: Vec<Vec<(Option<usize>, Found)>>,
    kept: Kept,
}

fn run<'a>(script: &Script, connections: impl Iterator<Item = Vec<&'a [u8]>>) -> Life {
    let mut parser = Parser::with_limits(script.line_limit, script.event_limit);
    // One line, decoded to at most three times its length, for each of name, id and last id.
    let most = script.line_limit * 10 + script.event_limit + 1;
    let mut items = Vec::new();
    for (number, chunks) in connections.enumerate() {
        if number > 0 {
            parser.restart();
        }
        let mut found = Vec::new();
        let mut at = 0;
        for mut chunk in chunks {
            loop {
                let (used, item) = parser.feed(chunk);
                assert!(used <= chunk.len(), "consumed {used} of {}", chunk.len());
                at += used;
                let item = match item {
                    None => None,
                    Some(Item::TooLarge) => Some((None, Found::TooLarge)),
                    Some(Item::Event(event)) => {
                        let name = event.name.to_owned();
                        let data = event.data.to_owned();
                        let last_id = event.last_id.to_owned();
                        Some((Some(at), Found::Event { name, data, last_id }))
                    }
                };
                assert!(parser.held() <= most, "{} bytes held", parser.held());
                let Some(item) = item else {
                    assert_eq!(used, chunk.len(), "stopped early without an item");
                    break;
                };
                assert!(used > 0, "an item without a byte");
                found.push(item);
                chunk = &chunk[used..];
            }
        }
        items.push(found);
    }
    Life { items, kept: Kept { last_id: parser.last_id().to_owned(), retry: parser.retry() } }
}
