//! The event-stream parser and writer against their laws, the standard, and what went wrong
//! elsewhere.

mod memory;
mod reports;
mod standard;
mod transcripts;

use crate::scripted::scripted;
use proptest::collection::vec;
use proptest::prelude::*;
use zcode_mail_core::sse::{Item, Parser, RETRY_MAX_MS, RETRY_MIN_MS, put_event};

/// Feeds `chunks` to `parser`; every item as one readable line.
fn feed<'a>(parser: &mut Parser, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut items = Vec::new();
    for mut chunk in chunks {
        while let (used, Some(item)) = parser.feed(chunk) {
            items.push(match item {
                Item::Event(event) => {
                    format!("{} {:?} id {:?}", event.name, event.data, event.last_id)
                }
                Item::TooLarge => "too large".to_owned(),
            });
            chunk = &chunk[used..];
        }
    }
    items
}

/// The items of `stream`, which are the same whole, byte by byte, and for every single cut with an
/// empty chunk in it.
fn items(stream: &[u8]) -> Vec<String> {
    let whole = feed(&mut Parser::new(), [stream]);
    assert_eq!(feed(&mut Parser::new(), stream.chunks(1)), whole, "byte by byte");
    for cut in 0..=stream.len() {
        let (left, right) = stream.split_at(cut);
        assert_eq!(feed(&mut Parser::new(), [left, b"", right]), whole, "cut at {cut}");
    }
    whole
}

#[test]
fn scripts_keep_every_law_of_the_parser() {
    scripted("sse");
}

#[test]
fn scripts_keep_every_law_of_the_writer() {
    scripted("sse_writer");
}

proptest! {
    #[test]
    fn any_bytes_in_any_cuts_give_the_same_items(
        stream in vec(any::<u8>(), 0..200),
        cuts in vec(0_usize..200, 0..20),
    ) {
        let whole = feed(&mut Parser::new(), [&stream[..]]);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
        cuts.sort_unstable();
        let mut chunks = Vec::new();
        let mut from = 0;
        for cut in cuts {
            chunks.push(&stream[from..cut]);
            from = cut;
        }
        chunks.push(&stream[from..]);
        prop_assert_eq!(feed(&mut Parser::new(), chunks), whole);
    }

    #[test]
    fn a_written_event_is_read_as_one_event_whatever_its_texts(
        id in proptest::option::of(any::<String>()),
        name in any::<String>(),
        data in "[\r\n a-c:\u{0}\u{FEFF}]{0,40}",
    ) {
        let mut stream = Vec::new();
        put_event(&mut stream, id.as_deref(), &name, &data);
        prop_assert_eq!(feed(&mut Parser::new(), stream.chunks(3)).len(), 1);
    }

    #[test]
    fn retry_is_a_number_of_ascii_digits_within_its_bounds(text in "[0-9+ .a-]{0,24}") {
        let mut parser = Parser::new();
        let line = format!("retry: {text}\n");
        prop_assert_eq!(feed(&mut parser, [line.as_bytes()]).len(), 0);
        let digits = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
        let expected = digits.then(|| {
            text.parse::<u128>().unwrap().clamp(u128::from(RETRY_MIN_MS), u128::from(RETRY_MAX_MS))
        });
        prop_assert_eq!(parser.retry().map(u128::from), expected);
    }

    #[test]
    fn the_limits_are_exact(limit in 8_usize..300, over in 0_usize..3) {
        let line = [b"data:", &vec![b'x'; limit + over - 5][..], b"\n\n"].concat();
        let found = feed(&mut Parser::with_limits(limit, usize::MAX), line.chunks(7));
        prop_assert_eq!(found[0] == "too large", over > 0, "a line of {} bytes", limit + over);
        let data = [b"data:", &vec![b'x'; limit + over - 3][..], b"\ndata:yy\n\n"].concat();
        let found = feed(&mut Parser::with_limits(usize::MAX, limit), data.chunks(7));
        prop_assert_eq!(found[0] == "too large", over > 0, "data of {} bytes", limit + over);
    }
}
