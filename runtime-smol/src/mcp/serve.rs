//! The loop: bytes in, bytes out, calls in between.
//!
//! ```text
//!            ┌── input (only while the output queue has room) ──▶ Session::feed
//!   wait for ├── a report of a call ────────────────────────────▶ Session::finish / progress
//!            ├── output (only while something waits) ───────────▶ write
//!            ├── a signal, a broken output, a dead parent ──────▶ leave
//!            └── the end of the input ──▶ grace ────────────────▶ leave
//! ```
//!
//! All state lives outside the futures that are raced, so losing a race loses nothing.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use async_io::Timer;
use futures_lite::{StreamExt as _, future};
use smol::Task;
use zcode_mail_core::rpc::{CallId, Event};
use zcode_mail_core::tool::Output as Done;

use super::parent::{PARENT_CHECK, Parent};
use super::perform::{Context, Report};
use super::streams::{Input, Output, Streams};
use super::talk::Talk;

/// How long running calls may go on after the input ended. SDK clients send SIGTERM after 2 s.
const GRACE: Duration = Duration::from_millis(500);
/// How long a half-written line may take after a signal. Hosts send the next signal after 250 ms.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// Reports that wait; calls that have more to say wait themselves.
const REPORTS: usize = 64;

/// What ended a wait.
enum Wake {
    Read(std::io::Result<usize>),
    Wrote(std::io::Result<usize>),
    Reported(Report),
    Signal(i32),
    Tick,
}

/// Why the loop ends.
enum End {
    /// The input ended and everything that could be answered is.
    Done,
    /// The client does not read any more, or the parent is gone.
    Deaf,
    /// A signal, by number.
    Signal(i32),
}

/// Serves until the end; gives back the exit status.
pub(super) async fn serve(streams: Streams, talk: Talk, context: Context) -> i32 {
    let mut server = Server::new(streams, talk, context);
    match server.run().await {
        End::Done | End::Deaf => 0,
        End::Signal(number) => {
            server.last_words().await;
            128 + number
        }
    }
}

struct Server {
    input: Input,
    output: Output,
    talk: Talk,
    context: Context,
    calls: BTreeMap<CallId, Task<()>>,
    sender: async_channel::Sender<Report>,
    reports: async_channel::Receiver<Report>,
    /// When a half-served conversation ends; set at the end of the input.
    deadline: Option<Instant>,
    settle: Option<Task<()>>,
}

impl Server {
    fn new(streams: Streams, talk: Talk, context: Context) -> Self {
        let (sender, reports) = async_channel::bounded(REPORTS);
        Self {
            input: streams.input,
            output: streams.output,
            talk,
            context,
            calls: BTreeMap::new(),
            sender,
            reports,
            deadline: None,
            settle: None,
        }
    }

    async fn run(&mut self) -> End {
        let mut signals = Signals::new();
        let parent = Parent::now();
        let mut checked = Instant::now();
        loop {
            self.talk.take_lines();
            for event in std::mem::take(&mut self.talk.events) {
                self.handle(event);
            }
            if self.deadline.is_some() && self.talk.is_over() {
                return End::Done;
            }
            let next_check = checked + PARENT_CHECK;
            let tick = self.deadline.map_or(next_check, |deadline| deadline.min(next_check));
            match self.wait(&mut signals, tick).await {
                Wake::Read(Ok(0)) => self.input_ended(),
                Wake::Read(Ok(_)) => {}
                // Whatever is wrong with the input, nothing more will come from it.
                Wake::Read(Err(error)) => {
                    self.context.log.info(&format!("reading failed: {error}"));
                    self.input_ended();
                }
                Wake::Wrote(Ok(count)) => self.talk.wrote(count),
                Wake::Wrote(Err(_)) => return End::Deaf,
                Wake::Reported(report) => self.report(report),
                Wake::Signal(number) => return End::Signal(number),
                Wake::Tick => {
                    if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                        return End::Done;
                    }
                    checked = Instant::now();
                    if parent.is_gone() {
                        return End::Deaf;
                    }
                }
            }
        }
    }

    async fn wait(&mut self, signals: &mut Signals, tick: Instant) -> Wake {
        let room = self.talk.has_room();
        let ended = self.deadline.is_some();
        let Self { input, output, talk, reports, .. } = self;
        let (unsent, inbox) = talk.ends();
        let write = async {
            if unsent.is_empty() {
                return future::pending().await;
            }
            Wake::Wrote(output.write(unsent).await)
        };
        let report = async {
            if !room {
                return future::pending().await;
            }
            match reports.recv().await {
                Ok(report) => Wake::Reported(report),
                Err(_) => future::pending().await,
            }
        };
        let read = async {
            if !room || ended {
                return future::pending().await;
            }
            Wake::Read(input.read(inbox).await)
        };
        let other = async {
            let signal = async { Wake::Signal(signals.next().await) };
            let timer = async {
                Timer::at(tick).await;
                Wake::Tick
            };
            future::or(signal, timer).await
        };
        // Answers that are ready are joined before they are written, and writing goes before
        // reading: that bounds what waits.
        future::or(future::or(report, write), future::or(read, other)).await
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Run(call, next) => {
                let (context, sender) = (self.context.clone(), self.sender.clone());
                let run = async move {
                    let output = context.perform(call, next, &sender).await;
                    // The receiver lives as long as the loop that runs this.
                    let _ = sender.send(Report::Done(call, output)).await;
                };
                let task = self.context.executor.spawn(run);
                self.calls.insert(call, task);
            }
            // Dropping the task drops its exchange with the gateway.
            Event::Abort(call) => drop(self.calls.remove(&call)),
            Event::Initialized => {
                let context = self.context.clone();
                let due = self.talk.settles_at();
                self.settle = Some(self.context.executor.spawn(async move {
                    Timer::at(due).await;
                    context.presence.begin(&context);
                }));
            }
        }
    }

    fn report(&mut self, report: Report) {
        match report {
            Report::Done(call, output) => self.finish(call, &output),
            Report::Progress { call, done, total } => {
                self.talk.session.progress(call, done, total, &mut self.talk.outbox);
            }
        }
    }

    fn finish(&mut self, call: CallId, output: &Done) {
        self.calls.remove(&call);
        self.talk.session.finish(call, output, &mut self.talk.outbox);
    }

    fn input_ended(&mut self) {
        self.talk.session.close();
        self.settle = None;
        self.deadline = Some(Instant::now() + GRACE);
    }

    /// Finishes the line that is half out, so that the client never sees a torn message.
    async fn last_words(&mut self) {
        self.calls.clear();
        let mut rest = self.talk.torn_rest().to_vec();
        let write = async {
            while !rest.is_empty() {
                match self.output.write(&rest).await {
                    Ok(count) => drop(rest.drain(..count)),
                    Err(_) => return,
                }
            }
        };
        future::or(write, async {
            Timer::after(LAST_WORDS).await;
        })
        .await;
    }
}

/// The signals that end the process.
#[cfg(unix)]
struct Signals(Option<async_signal::Signals>);

#[cfg(unix)]
impl Signals {
    /// When they cannot be caught they keep their default, which ends the process too.
    fn new() -> Self {
        use async_signal::Signal;
        Self(async_signal::Signals::new([Signal::Int, Signal::Term, Signal::Hup]).ok())
    }

    async fn next(&mut self) -> i32 {
        let Some(signals) = &mut self.0 else { return future::pending().await };
        match signals.next().await {
            Some(Ok(signal)) => signal as i32,
            _ => future::pending().await,
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    const fn new() -> Self {
        Self
    }

    async fn next(&mut self) -> i32 {
        future::pending().await
    }
}
