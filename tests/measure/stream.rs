//! Megabytes per second of the event-stream parser and the line framer, by chunk size.

use std::hint::black_box;
use std::time::{Duration, Instant};

use eventsource_stream::EventStream;
use futures_lite::{StreamExt as _, future, stream};
use zcode_mail_core::frame::LineFramer;
use zcode_mail_core::sse::Parser;

use super::stats::{Samples, ratio};

/// Repetitions of each cell.
const ROUNDS: usize = 9;
/// Events in the measured text.
const EVENTS: usize = 4_000;

/// Events of the size of a real `new_mail`, with ids and a keep-alive comment now and then.
fn text() -> Vec<u8> {
    let mut text = Vec::new();
    for number in 0..EVENTS {
        if number % 8 == 0 {
            text.extend_from_slice(b": heartbeat\n\n");
        }
        let event = format!(
            "id: {number}\nevent: new_mail\ndata: {{\"mail_id\":\"9ea5ff18-0000-4000-8000-{number:012}\",\
             \"subject\":\"重构导入路径\",\"mail_type\":\"normal\",\"to_workspace\":\"/home/u/project\",\
             \"from_human\":true,\"permission_mode\":\"workspace\"}}\n\n"
        );
        text.extend_from_slice(event.as_bytes());
    }
    text
}

fn ours(text: &[u8], chunk: usize) -> usize {
    let mut parser = Parser::new();
    let mut events = 0;
    for mut piece in text.chunks(chunk) {
        loop {
            let (used, item) = parser.feed(piece);
            piece = &piece[used..];
            match item {
                Some(item) => {
                    black_box(&item);
                    events += 1;
                }
                None if piece.is_empty() => break,
                None => {}
            }
        }
    }
    events
}

fn peer(text: &[u8], chunk: usize) -> usize {
    let pieces = text.chunks(chunk).map(|piece| Ok::<_, std::convert::Infallible>(piece.to_vec()));
    let mut events = EventStream::new(stream::iter(pieces));
    future::block_on(async {
        let mut count = 0;
        while let Some(event) = events.next().await {
            black_box(event.is_ok());
            count += 1;
        }
        count
    })
}

fn framer(text: &[u8], chunk: usize) -> usize {
    let mut framer = LineFramer::new(1 << 20);
    let mut pending: Vec<u8> = Vec::new();
    let mut start = 0;
    let mut lines = 0;
    for piece in text.chunks(chunk) {
        pending.extend_from_slice(piece);
        loop {
            let (used, frame) = framer.next(&pending[start..]);
            let done = frame.is_none();
            lines += usize::from(!done);
            start += used;
            if done {
                break;
            }
        }
        if start > pending.len() / 2 {
            pending.drain(..start);
            start = 0;
        }
    }
    lines
}

/// The `stream` section.
pub fn throughput() {
    let text = text();
    let speed = |took: Duration| text.len() as f64 / 1e6 / took.as_secs_f64();
    println!("{} KB, {EVENTS} events; MB/s are medians of {ROUNDS} rounds", text.len() / 1000);
    println!(
        "{:>8} {:>12} {:>22} {:>7} {:>12}",
        "chunk", "our parser", "eventsource-stream", "ratio", "framer"
    );
    for chunk in [1, 16, 256, 1_400, 16_384, 1 << 20] {
        let (mut us, mut them, mut lines) =
            (Samples::default(), Samples::default(), Samples::default());
        for _ in 0..ROUNDS {
            for (samples, run) in [
                (&mut us, ours as fn(&[u8], usize) -> usize),
                (&mut them, peer),
                (&mut lines, framer),
            ] {
                let start = Instant::now();
                let count = run(&text, chunk);
                samples.push(start.elapsed());
                assert!(count >= EVENTS, "{count} items out of {EVENTS} events");
            }
        }
        println!(
            "{chunk:>8} {:>12.1} {:>22.1} {:>6.1}x {:>12.1}",
            speed(us.median()),
            speed(them.median()),
            ratio(them.median(), us.median()),
            speed(lines.median())
        );
    }
    println!(
        "cost against the number of cuts (one cut = one more chunk); linear means a flat last column"
    );
    for parts in [1_usize, 10, 100, 1_000, 10_000, 100_000] {
        let chunk = text.len().div_ceil(parts);
        let mut samples = Samples::default();
        for _ in 0..ROUNDS {
            let start = Instant::now();
            black_box(ours(&text, chunk));
            samples.push(start.elapsed());
        }
        let took = samples.median();
        println!(
            "{parts:>8} chunks {:>10.3} ms {:>10.1} ns a chunk",
            took.as_secs_f64() * 1e3,
            took.as_nanos() as f64 / parts as f64
        );
    }
}
