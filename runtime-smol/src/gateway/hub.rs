//! Fan-out of committed events to the open streams of their recipients.
//!
//! ```text
//! subscribe(recipient) ──▶ Subscription: a bounded queue, removed from the table when dropped
//! publish(events)      ──▶ every queue of the recipient, in id order
//!                           queue full: the subscriber is cut off, its connection closed
//! close()              ──▶ every queue ends
//! ```
//!
//! Every stream of a recipient gets every event: a one-shot hook may subscribe beside a daemon
//! (seed 000). A reader that does not keep up is dropped, not buffered; it comes back with its
//! `Last-Event-ID` and gets the rest from the database.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_channel::{Receiver, Sender};

/// Events that wait for one slow stream before it is cut off: one full replay's worth.
const STREAM_QUEUE: usize = 256;
/// Streams that one recipient may hold open. Each ZCode session runs a hook now and then and a
/// driver for good; a number far above that stops a client that leaks connections.
pub(super) const STREAMS_PER_RECIPIENT: usize = 256;

/// An event that is committed and goes to the streams of `recipient`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Announcement {
    /// The number in the stream, strictly increasing.
    pub(super) id: i64,
    /// Whose streams get it.
    pub(super) recipient: String,
    /// The event's name.
    pub(super) name: &'static str,
    /// The event's data, one line of JSON.
    pub(super) data: Arc<str>,
}

/// A handle that ends a connection whose reader is too slow.
pub(super) type Cut = Sender<()>;

/// Why there is no subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The recipient has [`STREAMS_PER_RECIPIENT`] open streams.
    TooMany,
    /// The gateway is stopping.
    Closed,
}

/// The table of open streams.
#[derive(Default)]
pub(super) struct Hub {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    closed: bool,
    next: u64,
    streams: HashMap<String, Vec<Stream>>,
}

struct Stream {
    number: u64,
    queue: Sender<Announcement>,
    cut: Cut,
}

impl Hub {
    /// Opens a queue for the events of `recipient` from now on. `cut` is closed when the reader is
    /// too slow.
    ///
    /// # Errors
    ///
    /// [`Refused`].
    pub(super) fn subscribe(
        self: &Arc<Self>,
        recipient: &str,
        cut: Cut,
    ) -> Result<Subscription, Refused> {
        let mut table = self.lock();
        if table.closed {
            return Err(Refused::Closed);
        }
        let number = table.next;
        table.next += 1;
        let streams = table.streams.entry(recipient.to_owned()).or_default();
        if streams.len() >= STREAMS_PER_RECIPIENT {
            return Err(Refused::TooMany);
        }
        // Unbounded queues grow with what waits; a bounded one would hold its whole size while idle.
        let (queue, events) = async_channel::unbounded();
        streams.push(Stream { number, queue, cut });
        drop(table);
        Ok(Subscription { hub: Arc::clone(self), recipient: recipient.to_owned(), number, events })
    }

    /// Hands committed events to the open streams. Call in commit order.
    pub(super) fn publish(&self, announcements: Vec<Announcement>) {
        let mut table = self.lock();
        for announcement in announcements {
            let Some(streams) = table.streams.get_mut(&announcement.recipient) else { continue };
            streams.retain(|stream| {
                if stream.queue.len() >= STREAM_QUEUE {
                    stream.queue.close();
                    stream.cut.close();
                    return false;
                }
                stream.queue.try_send(announcement.clone()).is_ok()
            });
        }
    }

    /// Ends every stream and refuses new ones.
    pub(super) fn close(&self) {
        let mut table = self.lock();
        table.closed = true;
        for stream in table.streams.drain().flat_map(|(_, streams)| streams) {
            stream.queue.close();
        }
    }

    /// Open streams of all recipients.
    pub(super) fn len(&self) -> usize {
        self.lock().streams.values().map(Vec::len).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // The table stays whole whatever panics: each change is one statement.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One open queue of events.
pub(super) struct Subscription {
    hub: Arc<Hub>,
    recipient: String,
    number: u64,
    events: Receiver<Announcement>,
}

impl Subscription {
    /// The next event; `None` when the stream was cut off or the gateway stops.
    pub(super) async fn next(&self) -> Option<Announcement> {
        self.events.recv().await.ok()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut table = self.hub.lock();
        if let Some(streams) = table.streams.get_mut(&self.recipient) {
            streams.retain(|stream| stream.number != self.number);
            if streams.is_empty() {
                table.streams.remove(&self.recipient);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: i64, recipient: &str) -> Announcement {
        Announcement {
            id,
            recipient: recipient.to_owned(),
            name: "new_mail",
            data: Arc::from("{}"),
        }
    }

    fn subscribe(hub: &Arc<Hub>, recipient: &str) -> (Subscription, Receiver<()>) {
        let (cut, was_cut) = async_channel::bounded(1);
        (hub.subscribe(recipient, cut).unwrap(), was_cut)
    }

    #[test]
    fn every_stream_of_the_recipient_gets_every_event_and_nobody_else() {
        let hub = Arc::new(Hub::default());
        let (one, _) = subscribe(&hub, "zcode");
        let (two, _) = subscribe(&hub, "zcode");
        let (other, _) = subscribe(&hub, "pi");
        hub.publish(vec![event(1, "zcode"), event(2, "zcode")]);
        for stream in [&one, &two] {
            assert_eq!(smol::block_on(stream.next()).unwrap().id, 1);
            assert_eq!(smol::block_on(stream.next()).unwrap().id, 2);
        }
        assert!(other.events.is_empty());
    }

    #[test]
    fn a_slow_reader_is_cut_off_and_the_others_are_not() {
        let hub = Arc::new(Hub::default());
        let (slow, slow_cut) = subscribe(&hub, "zcode");
        let (fast, fast_cut) = subscribe(&hub, "zcode");
        for id in 0..=STREAM_QUEUE as i64 {
            hub.publish(vec![event(id, "zcode")]);
            assert_eq!(smol::block_on(fast.next()).unwrap().id, id);
        }
        assert!(slow_cut.is_closed());
        assert!(!fast_cut.is_closed());
        assert_eq!(hub.len(), 1);
        assert_eq!(slow.events.len(), STREAM_QUEUE);
    }

    #[test]
    fn a_dropped_subscription_leaves_the_table_and_frees_its_place() {
        let hub = Arc::new(Hub::default());
        let mut held: Vec<_> =
            (0..STREAMS_PER_RECIPIENT).map(|_| subscribe(&hub, "zcode").0).collect();
        let (cut, _) = async_channel::bounded(1);
        assert_eq!(hub.subscribe("zcode", cut.clone()).err(), Some(Refused::TooMany));
        held.pop();
        assert!(hub.subscribe("zcode", cut.clone()).is_ok());
        held.clear();
        assert_eq!(hub.len(), 0);
        hub.close();
        assert_eq!(hub.subscribe("zcode", cut).err(), Some(Refused::Closed));
    }

    #[test]
    fn closing_ends_the_streams_after_what_is_queued() {
        let hub = Arc::new(Hub::default());
        let (stream, _) = subscribe(&hub, "zcode");
        hub.publish(vec![event(1, "zcode")]);
        hub.close();
        assert_eq!(smol::block_on(stream.next()).unwrap().id, 1);
        assert_eq!(smol::block_on(stream.next()), None);
    }
}
