//! The loop that gives the machine its world: one channel, a thread per stream and per exchange.

use std::io::Read as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use zcode_mail_core::hook::machine::{ExchangeId, Input, Machine, Output, StreamId};
use zcode_mail_core::hook::outcome::Verdict;
use zcode_mail_core::http::{Fault, Request};
use zcode_mail_core::time::Wait;

use crate::client::{Arrived, Client, io_fault};
use crate::clock::Clock;
use crate::inject;
use crate::signals::Flag;

/// Events that wait for the loop. Enough that no thread waits in practice, and bounded.
const QUEUE: usize = 64;
/// Bytes of a stream that are read at once.
const CHUNK: usize = 16 * 1024;
/// Longest sleep without looking at the clock, so that time spent suspended is noticed soon.
const LONGEST_SLEEP: Duration = Duration::from_secs(10);

/// What threads report.
enum Event {
    StreamReply(StreamId, Arrived),
    Chunk(StreamId, Vec<u8>),
    StreamClosed(StreamId, Fault),
    Replied(ExchangeId, Arrived),
    Signal,
    /// A thread panicked; the loop panics for it, so that it is caught in one place.
    Panicked,
}

/// Runs `machine`, whose first output is `first`, to its end. `remember` stores an approval.
///
/// # Panics
/// When one of its threads did.
#[expect(clippy::panic, reason = "a panic of a thread becomes the process's, which is caught")]
pub(crate) fn run(
    machine: &mut Machine,
    first: Output,
    client: &Client,
    clock: Clock,
    signals: &Flag,
    remember: impl Fn(&str, &str),
) -> Verdict {
    let (tell, told) = sync_channel(QUEUE);
    let signal = tell.clone();
    signals.watch(move || {
        // The loop has ended.
        let _ = signal.send(Event::Signal);
    });
    let mut output = first;
    loop {
        let wait = loop {
            match output {
                Output::OpenStream(id, request) => spawn_stream(client, id, request, &tell),
                // The thread ends with its connection, or with the process.
                Output::CloseStream(_) => {}
                Output::Exchange(id, request) => spawn_exchange(client, id, request, &tell),
                Output::Remember { session, tool } => remember(&session, &tool),
                Output::Done(verdict) => return verdict,
                Output::Wait(wait) => break wait,
            }
            output = machine.poll_output();
        };
        inject::here("loop");
        match next(&told, wait, clock) {
            None => machine.handle(Input::Tick, clock.now()),
            Some(Event::StreamReply(id, head)) => {
                machine.handle(Input::StreamReply(id, head.outcome()), clock.now());
            }
            Some(Event::Chunk(id, bytes)) => {
                inject::here("chunk");
                machine.handle(Input::Chunk(id, &bytes), clock.now());
            }
            Some(Event::StreamClosed(id, fault)) => {
                machine.handle(Input::StreamClosed(id, fault), clock.now());
            }
            Some(Event::Replied(id, reply)) => {
                inject::here("reply");
                machine.handle(Input::Replied(id, reply.outcome()), clock.now());
            }
            Some(Event::Signal) => machine.handle(Input::Signal, clock.now()),
            Some(Event::Panicked) => panic!("a thread panicked"),
        }
        output = machine.poll_output();
    }
}

/// The next event, or `None` when it is time to tick.
fn next(told: &Receiver<Event>, wait: Wait, clock: Clock) -> Option<Event> {
    let until = wait.until.map(|until| Duration::from_millis(until.since(clock.now())));
    let sleep = until.unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP);
    // The loop itself holds a sender, so the only error is that time has passed.
    told.recv_timeout(sleep).ok()
}

fn spawn_stream(client: &Client, id: StreamId, request: Request, tell: &SyncSender<Event>) {
    let client = client.clone();
    guarded(tell, move |tell| {
        inject::here("stream");
        let (head, body) = client.open(&request);
        let mut gone = tell.send(Event::StreamReply(id, head)).is_err();
        let Some(mut body) = body else { return };
        let mut buffer = vec![0; CHUNK];
        while !gone {
            let event = match body.read(&mut buffer) {
                Ok(0) => Event::StreamClosed(id, Fault::Truncated),
                Ok(read) => Event::Chunk(id, buffer[..read].to_vec()),
                Err(error) => Event::StreamClosed(id, io_fault(&error)),
            };
            let last = matches!(event, Event::StreamClosed(..));
            gone = tell.send(event).is_err() || last;
        }
    });
}

fn spawn_exchange(client: &Client, id: ExchangeId, request: Request, tell: &SyncSender<Event>) {
    let client = client.clone();
    guarded(tell, move |tell| {
        inject::here("exchange");
        // The loop has ended when nobody takes it.
        let _ = tell.send(Event::Replied(id, client.exchange(&request)));
    });
}

/// Runs `work` in a thread whose panic is reported.
fn guarded(tell: &SyncSender<Event>, work: impl FnOnce(&SyncSender<Event>) + Send + 'static) {
    let tell = tell.clone();
    thread::spawn(move || {
        if catch_unwind(AssertUnwindSafe(|| work(&tell))).is_err() {
            let _ = tell.send(Event::Panicked);
        }
    });
}
