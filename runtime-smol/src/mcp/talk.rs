//! What is said and not yet heard: the session between its two buffers.
//!
//! Lines are served only while the answers have room, so a client that does not read is not read
//! from either, and what waits is bounded by [`QUEUE`] and one answer.

use std::time::{Duration, Instant};

use zcode_mail_core::inbox::Inbox;
use zcode_mail_core::rpc::{Event, Session};
use zcode_mail_core::tool::Toolbox;

/// Bytes of answers that may wait for the client before reading stops.
const QUEUE: usize = 256 * 1024;
/// An outbox that grew beyond this gives its memory back.
const KEEP: usize = 1024 * 1024;
/// From `notifications/initialized` to registering: longer than a throw-away twin lives.
const SETTLE: Duration = Duration::from_secs(2);

/// The conversation.
pub(super) struct Talk {
    pub(super) session: Session,
    /// What the last lines ask the runtime to do, in order.
    pub(super) events: Vec<Event>,
    pub(super) outbox: Vec<u8>,
    inbox: Inbox,
    /// Bytes of `outbox` that are written.
    sent: usize,
    initialized: Option<Instant>,
}

impl Talk {
    pub(super) const fn new(toolbox: Toolbox) -> Self {
        Self {
            session: Session::new(toolbox),
            events: Vec::new(),
            outbox: Vec::new(),
            inbox: Inbox::new(),
            sent: 0,
            initialized: None,
        }
    }

    /// Serves the lines that are here, as long as the answers have room.
    pub(super) fn take_lines(&mut self) {
        while self.has_room() {
            let (used, more) = self.session.feed(self.inbox.pending(), &mut self.outbox);
            self.inbox.consume(used);
            while let Some(event) = self.session.poll_event() {
                if matches!(event, Event::Initialized) {
                    self.initialized = Some(Instant::now());
                }
                self.events.push(event);
            }
            if !more {
                break;
            }
        }
    }

    /// When the client has settled in, once it has begun to.
    pub(super) fn settles_at(&self) -> Instant {
        self.initialized.unwrap_or_else(Instant::now) + SETTLE
    }

    /// Whether more may be read.
    pub(super) fn has_room(&self) -> bool {
        self.outbox.len() - self.sent < QUEUE
    }

    /// Whether everything that was asked is answered and written.
    pub(super) fn is_over(&self) -> bool {
        self.session.is_drained() && self.outbox.is_empty()
    }

    /// What waits to be written, and where to put what is read.
    pub(super) fn ends(&mut self) -> (&[u8], &mut Inbox) {
        (self.outbox.get(self.sent..).unwrap_or_default(), &mut self.inbox)
    }

    /// `count` bytes were written.
    pub(super) fn wrote(&mut self, count: usize) {
        self.sent += count;
        if self.sent >= self.outbox.len() {
            self.outbox.clear();
            self.outbox.shrink_to(KEEP);
            self.sent = 0;
        } else if self.sent > QUEUE {
            self.outbox.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// The rest of a line that is half written.
    pub(super) fn torn_rest(&self) -> &[u8] {
        let torn = self.sent > 0 && self.outbox.get(self.sent - 1) != Some(&b'\n');
        let unsent = self.outbox.get(self.sent..).unwrap_or_default();
        let end = unsent.iter().position(|byte| *byte == b'\n').filter(|_| torn);
        end.and_then(|end| unsent.get(..=end)).unwrap_or_default()
    }
}
