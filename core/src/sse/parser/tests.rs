use super::*;
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::vec;

/// Feeds `chunks` one after the other; each item as `name|data|last_id` or `too large`.
fn feed(parser: &mut Parser, chunks: &[&[u8]]) -> Vec<String> {
    let mut items = Vec::new();
    for mut chunk in chunks.iter().copied() {
        loop {
            let (used, item) = parser.feed(chunk);
            assert!(used <= chunk.len());
            chunk = &chunk[used..];
            match item {
                Some(Item::Event(event)) => {
                    items.push(format!("{}|{}|{}", event.name, event.data, event.last_id));
                }
                Some(Item::TooLarge) => items.push("too large".to_owned()),
                None => {
                    assert!(chunk.is_empty(), "stopped before the end of the chunk");
                    break;
                }
            }
        }
    }
    items
}

/// The items of `stream`, which have to be the same whole, byte by byte and for every single cut.
fn items(stream: &[u8]) -> Vec<String> {
    let whole = feed(&mut Parser::new(), &[stream]);
    let bytes: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(feed(&mut Parser::new(), &bytes), whole, "byte by byte");
    for cut in 0..=stream.len() {
        let (left, right) = stream.split_at(cut);
        assert_eq!(feed(&mut Parser::new(), &[left, b"", right]), whole, "cut at {cut}");
    }
    whole
}

#[test]
fn every_kind_of_line_end_ends_a_line_exactly_once() {
    assert_eq!(
        items(b"data:a\n\ndata:b\r\rdata:c\r\n\r\n"),
        ["message|a|", "message|b|", "message|c|"]
    );
    assert_eq!(items(b"data:a\r\ndata:b\rdata:c\n\r\n"), ["message|a\nb\nc|"]);
    assert_eq!(items(b"data:a\n\rdata:b\r\n\n"), ["message|a|", "message|b|"]);
}

#[test]
fn an_event_is_handed_out_at_the_cr_of_its_blank_line() {
    assert_eq!(feed(&mut Parser::new(), &[b"data:a\r\n\r"]), ["message|a|"]);
}

#[test]
fn one_byte_order_mark_is_dropped_at_the_start_only() {
    assert_eq!(items(b"\xEF\xBB\xBFdata:a\n\n"), ["message|a|"]);
    assert_eq!(items(b"\xEF\xBB\xBF\xEF\xBB\xBFdata:a\n\ndata:b\n\n"), ["message|b|"]);
    assert_eq!(items(b"\n\xEF\xBB\xBFdata:a\n\n"), [""; 0]);
    assert_eq!(items(b"\xEF\xBBdata:a\n\ndata:b\n\n"), ["message|b|"]);
    let bom_and_empty_chunks: &[&[u8]] = &[b"", b"\xEF", b"", b"\xBB", b"\xBFdata:a\n\n"];
    assert_eq!(feed(&mut Parser::new(), bom_and_empty_chunks), ["message|a|"]);
}

#[test]
fn a_bad_id_is_ignored_and_an_empty_one_resets() {
    assert_eq!(
        items(b"id:1\ndata:a\n\nid:2\0\ndata:b\n\ndata:c\n\nid\ndata:d\n\n"),
        ["message|a|1", "message|b|1", "message|c|1", "message|d|"]
    );
}

#[test]
fn an_unfinished_event_is_dropped_with_its_id_and_a_restart_keeps_the_last_one() {
    let mut parser = Parser::new();
    assert_eq!(
        feed(&mut parser, &[b"retry:3000\nid:1\ndata:a\n\nid:2\ndata:b\n"]),
        ["message|a|1"]
    );
    assert_eq!(parser.last_id(), "1");
    parser.restart();
    assert_eq!((parser.last_id(), parser.retry()), ("1", Some(3000)));
    assert_eq!(feed(&mut parser, &[b"\xEF\xBB\xBFdata:c\n\n"]), ["message|c|1"]);
}

#[test]
fn an_id_counts_at_its_blank_line_also_without_data() {
    let mut parser = Parser::new();
    assert_eq!(feed(&mut parser, &[b"id:5\nevent:x\n"]), [""; 0]);
    assert_eq!(parser.last_id(), "");
    assert_eq!(feed(&mut parser, &[b"\ndata:a\n\n"]), ["message|a|5"]);
}

#[test]
fn retry_takes_ascii_digits_within_its_bounds() {
    let after = |line: &str| {
        let mut parser = Parser::new();
        assert_eq!(feed(&mut parser, &[b"retry:4000\n", line.as_bytes()]), [""; 0]);
        parser.retry().unwrap()
    };
    for bad in ["retry\n", "retry:\n", "retry:+5\n", "retry:1 \n", "retry:1e3\n", "retry:\u{663}\n"]
    {
        assert_eq!(after(bad), 4000, "{bad:?}");
    }
    assert_eq!(after("retry:4000"), 4000, "a line that has not ended says nothing");
    assert_eq!(after("retry: 007000\n"), 7000);
    assert_eq!(after("retry:499\n"), RETRY_MIN_MS);
    assert_eq!(after("retry:500\n"), 500);
    assert_eq!(after("retry:60000\n"), 60_000);
    assert_eq!(after("retry:60001\n"), RETRY_MAX_MS);
    assert_eq!(after("retry:99999999999999999999999999\n"), RETRY_MAX_MS);
    assert_eq!(Parser::new().retry(), None);
}

#[test]
fn malformed_utf8_is_replaced_and_a_cut_character_is_whole() {
    assert_eq!(items(b"data:\xE4\xBC\x9A\xF0\x9F\x98\x80\n\n"), ["message|会😀|"]);
    // One replacement for each maximal part of a character (Encoding, "UTF-8 decoder").
    assert_eq!(
        items(b"data:\xF0\x9F\x98|\xFF\xFE|\xED\xA0\x80|\xE4\n\n"),
        ["message|\u{FFFD}|\u{FFFD}\u{FFFD}|\u{FFFD}\u{FFFD}\u{FFFD}|\u{FFFD}|"]
    );
}

/// One event whose only data line is `length` bytes long, ended and unended.
fn long_line(length: usize) -> Vec<u8> {
    let mut stream = b"data:".to_vec();
    stream.resize(length, b'x');
    stream
}

#[test]
fn a_line_at_the_limit_passes_and_one_byte_more_is_too_large() {
    for step in [1, 3, 100] {
        for (mark, length, passes) in
            [("", 16, true), ("", 17, false), ("\u{FEFF}", 16, true), ("\u{FEFF}", 17, false)]
        {
            let mut stream = mark.as_bytes().to_vec();
            stream.extend(long_line(length));
            stream.extend(b"\n\ndata:next\n\n");
            let chunks: Vec<&[u8]> = stream.chunks(step).collect();
            let found = feed(&mut Parser::with_limits(16, 1000), &chunks);
            let first = if passes { "message|xxxxxxxxxxx|" } else { "too large" };
            assert_eq!(found, [first, "message|next|"], "{mark:?} {length} in steps of {step}");
        }
    }
}

#[test]
fn data_at_the_limit_passes_and_one_byte_more_is_too_large() {
    let feed = |stream: &[u8]| feed(&mut Parser::with_limits(100, 7), &[stream]);
    assert_eq!(feed(b"data:123\ndata:567\n\n"), ["message|123\n567|"]);
    assert_eq!(feed(b"data:123\ndata:5678\n\ndata:a\n\n"), ["too large", "message|a|"]);
    assert_eq!(feed(b"data:1234567\n\n"), ["message|1234567|"]);
    assert_eq!(feed(b"data:1234567\ndata\n\n"), ["too large"]);
    assert_eq!(feed("data:会会\n\n".as_bytes()), ["message|会会|"]);
    assert_eq!(feed(b"data:\xFF\xFF\xFF\n\n"), ["too large"], "decoded bytes count");
}

#[test]
fn an_event_that_is_too_large_is_reported_once_and_its_id_counts() {
    let mut parser = Parser::with_limits(16, 16);
    let stream = b"id:1\ndata:a\n\nid:2\ndata:0123456789abcdef\ndata:0123456789abcdef\nretry:900\n";
    assert_eq!(feed(&mut parser, &[stream]), ["message|a|1", "too large"]);
    assert_eq!((parser.last_id(), parser.retry()), ("1", Some(900)));
    assert_eq!(feed(&mut parser, &[b"data:b\nid:3\nevent:x\n\n"]), [""; 0]);
    assert_eq!(parser.last_id(), "3");
    assert_eq!(feed(&mut parser, &[b"data:c\n\n"]), ["message|c|3"]);
}

#[test]
fn a_comment_of_any_length_is_dropped_as_it_comes() {
    let mut parser = Parser::with_limits(8, 8);
    assert_eq!(feed(&mut parser, &[b"data:a\n", b": 0123456789", b"0123456789"]), [""; 0]);
    assert_eq!(parser.held(), 2, "the comment is not kept");
    assert_eq!(feed(&mut parser, &[b"0123\r", b"\n", b":0123456789\n", b":\n\n"]), ["message|a|"]);
}

#[test]
fn a_line_without_end_is_reported_and_never_kept() {
    let mut parser = Parser::with_limits(1000, 1000);
    let mut found = Vec::new();
    for _ in 0..10_000 {
        found.extend(feed(&mut parser, &[&[b'x'; 64]]));
        assert!(parser.held() <= 1000);
    }
    assert_eq!(found, ["too large"]);
}

#[test]
fn buffers_stay_where_they_are_in_the_steady_state() {
    let mut parser = Parser::new();
    let mut stream = vec![];
    for id in 100..200 {
        stream.extend(format!("id: {id}\nevent: new_mail\ndata: {{\"a\":\ndata: 1}}\n\n").bytes());
    }
    let places = |parser: &Parser| {
        let texts = [&parser.data, &parser.name, &parser.id, &parser.last_id];
        (
            parser.line.as_ptr(),
            parser.line.capacity(),
            texts.map(|text| (text.as_ptr(), text.capacity())),
        )
    };
    let mut warm = None;
    for _ in 0..50 {
        for chunk in stream.chunks(17) {
            let mut at = 0;
            while let (used, Some(_)) = parser.feed(&chunk[at..]) {
                at += used;
            }
        }
        let now = places(&parser);
        assert_eq!(*warm.get_or_insert(now), now);
    }
}
