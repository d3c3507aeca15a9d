//! What parsing costs in memory, counted at the allocator.

use allocation_counter::measure;
use zcode_mail_core::sse::{EVENT_LIMIT, Item, LINE_LIMIT, Parser, put_event};

/// Feeds one chunk and drops the items; returns how many events there were.
fn drain(parser: &mut Parser, mut chunk: &[u8]) -> usize {
    let mut events = 0;
    while let (used, Some(item)) = parser.feed(chunk) {
        events += usize::from(matches!(item, Item::Event(_)));
        chunk = &chunk[used..];
    }
    events
}

#[test]
fn fifty_thousand_events_allocate_a_handful_of_times() {
    let mut stream = Vec::new();
    for id in 0..500 {
        put_event(&mut stream, Some(&id.to_string()), "new_mail", "{\"subject\":\n\"会议\"}");
    }
    for size in [1, 7, 64, 16 * 1024] {
        let mut events = 0;
        let used = measure(|| {
            let mut parser = Parser::new();
            for _ in 0..100 {
                for chunk in stream.chunks(size) {
                    events += drain(&mut parser, chunk);
                }
            }
        });
        assert_eq!(events, 50_000);
        assert!(used.count_total <= 20, "{} allocations in chunks of {size}", used.count_total);
    }
}

#[test]
fn a_hostile_stream_cannot_take_more_than_the_limits() {
    let chunk = vec![b'x'; 16 * 1024];
    let bad = vec![0xFF; 16 * 1024];
    let streams: [(&str, &[u8], &[u8]); 5] = [
        ("a line without end", b"data:", &chunk),
        ("a comment without end", b":", &chunk),
        ("malformed bytes without end", b"id:", &bad),
        ("an event without end", b"", b"data:0123456789abcdef\n"),
        ("ids without end", b"", b"id:0123456789abcdef\n\n"),
    ];
    for (what, start, repeated) in streams {
        let used = measure(|| {
            let mut parser = Parser::new();
            drain(&mut parser, start);
            for _ in 0..(32 * 1024 * 1024 / repeated.len()) {
                drain(&mut parser, repeated);
            }
        });
        // Buffers double as they grow, and the old one lives until the new one is filled.
        let most = 3 * (LINE_LIMIT + EVENT_LIMIT) as u64;
        assert!(used.bytes_max <= most, "{what}: {} bytes", used.bytes_max);
        assert!(used.count_total < 60, "{what}: {} allocations", used.count_total);
    }
}
