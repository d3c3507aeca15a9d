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
use zcode_mail_core::inbox::Inbox;
use zcode_mail_core::rpc::{CallId, Event, Session};
use zcode_mail_core::tool::{Output as Done, Toolbox};

use super::perform::{Context, Report};
use super::streams::{Input, Output, Streams};

/// Bytes of answers that may wait for the client before reading stops.
const QUEUE: usize = 256 * 1024;
/// An outbox that grew beyond this for one long answer gives its memory back.
const KEEP: usize = 1024 * 1024;
/// How long running calls may go on after the input ended. SDK clients send SIGTERM after 2 s.
const GRACE: Duration = Duration::from_millis(500);
/// How long a half-written line may take after a signal. Hosts send the next signal after 250 ms.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// From `notifications/initialized` to registering: longer than a throw-away twin lives.
const SETTLE: Duration = Duration::from_secs(2);
/// How often it is checked whether the parent still lives.
const PARENT_CHECK: Duration = Duration::from_secs(2);
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
pub(super) async fn serve(streams: Streams, context: Context) -> i32 {
    let mut server = Server::new(streams, context);
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
    session: Session,
    context: Context,
    calls: BTreeMap<CallId, Task<()>>,
    sender: async_channel::Sender<Report>,
    reports: async_channel::Receiver<Report>,
    inbox: Inbox,
    outbox: Vec<u8>,
    /// Bytes of `outbox` that are written.
    sent: usize,
    /// When a half-served conversation ends; set at the end of the input.
    deadline: Option<Instant>,
    settle: Option<Task<()>>,
}

impl Server {
    fn new(streams: Streams, context: Context) -> Self {
        let toolbox = Toolbox {
            lang: context.settings.lang,
            session_id: context.settings.session_id.clone(),
            ..Toolbox::default()
        };
        let (sender, reports) = async_channel::bounded(REPORTS);
        Self {
            input: streams.input,
            output: streams.output,
            session: Session::new(toolbox),
            context,
            calls: BTreeMap::new(),
            sender,
            reports,
            inbox: Inbox::new(),
            outbox: Vec::new(),
            sent: 0,
            deadline: None,
            settle: None,
        }
    }

    async fn run(&mut self) -> End {
        let mut signals = Signals::new();
        let parent = Parent::now();
        let mut checked = Instant::now();
        loop {
            self.take_lines();
            if self.deadline.is_some() && self.session.is_drained() && self.waiting() == 0 {
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
                Wake::Wrote(Ok(count)) => self.wrote(count),
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

    /// Bytes of answers that wait for the client.
    fn waiting(&self) -> usize {
        self.outbox.len() - self.sent
    }

    async fn wait(&mut self, signals: &mut Signals, tick: Instant) -> Wake {
        let room = self.waiting() < QUEUE;
        let ended = self.deadline.is_some();
        let Self { input, output, inbox, outbox, sent, reports, .. } = self;
        let write = async {
            let unsent = outbox.get(*sent..).unwrap_or_default();
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

    /// Serves the lines that are here, as long as the answers have room.
    fn take_lines(&mut self) {
        while self.waiting() < QUEUE {
            let (used, more) = self.session.feed(self.inbox.pending(), &mut self.outbox);
            self.inbox.consume(used);
            while let Some(event) = self.session.poll_event() {
                self.handle(event);
            }
            if !more {
                break;
            }
        }
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
                self.settle = Some(self.context.executor.spawn(async move {
                    Timer::after(SETTLE).await;
                    context.presence.begin(&context);
                }));
            }
        }
    }

    fn report(&mut self, report: Report) {
        match report {
            Report::Done(call, output) => self.finish(call, &output),
            Report::Progress { call, done, total } => {
                self.session.progress(call, done, total, &mut self.outbox);
            }
        }
    }

    fn finish(&mut self, call: CallId, output: &Done) {
        self.calls.remove(&call);
        self.session.finish(call, output, &mut self.outbox);
    }

    fn wrote(&mut self, count: usize) {
        self.sent += count;
        if self.sent == self.outbox.len() {
            self.outbox.clear();
            self.sent = 0;
            if self.outbox.capacity() > KEEP {
                self.outbox = Vec::new();
            }
        } else if self.sent > QUEUE {
            self.outbox.drain(..self.sent);
            self.sent = 0;
        }
    }

    fn input_ended(&mut self) {
        self.session.close();
        self.settle = None;
        self.deadline = Some(Instant::now() + GRACE);
    }

    /// Finishes the line that is half out, so that the client never sees a torn message.
    async fn last_words(&mut self) {
        self.calls.clear();
        let torn = self.sent > 0 && self.outbox.get(self.sent - 1) != Some(&b'\n');
        let unsent = self.outbox.get(self.sent..).unwrap_or_default();
        let Some(end) = unsent.iter().position(|byte| *byte == b'\n').filter(|_| torn) else {
            return;
        };
        let mut rest = unsent.get(..=end).unwrap_or_default();
        let write = async {
            while !rest.is_empty() {
                match self.output.write(rest).await {
                    Ok(count) => rest = rest.get(count..).unwrap_or_default(),
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

/// Who started this process. When that process dies while somebody else still holds the other end
/// of the input, no end of input tells so.
struct Parent {
    #[cfg(unix)]
    pid: Option<rustix::process::Pid>,
}

impl Parent {
    #[cfg(unix)]
    fn now() -> Self {
        // A parent that is process 1 cannot die, and is what a process gets that had another.
        Self { pid: rustix::process::getppid().filter(|pid| !pid.is_init()) }
    }

    #[cfg(unix)]
    fn is_gone(&self) -> bool {
        self.pid.is_some() && rustix::process::getppid() != self.pid
    }

    #[cfg(not(unix))]
    const fn now() -> Self {
        Self {}
    }

    #[cfg(not(unix))]
    const fn is_gone(&self) -> bool {
        false
    }
}
