//! The event stream's half of the machine: subscribing, reading, reconnecting.

use alloc::string::{String, ToString as _};

use super::{
    Asking, EXCHANGE_MS, HELD_LIMIT, IDLE_MS, Machine, Output, RECONNECT_PAUSES_MS, STEADY_MS,
    Stream, StreamId, mix,
};
use crate::api::ApiError;
use crate::api::events::{self, AgentEvent, PermissionDecision};
use crate::hook::outcome::Because;
use crate::http::{Fault, Outcome};
use crate::sse::Item;

impl Machine {
    pub(super) fn stream_timers(&mut self) {
        match self.stream {
            Stream::Down { retry_at } if self.now >= retry_at => self.open_stream(),
            Stream::Opening { id, until } if self.now >= until => self.drop_stream(id),
            Stream::Open { id, heard, .. } if self.now >= heard.after(IDLE_MS) => {
                self.drop_stream(id);
            }
            _ => {}
        }
    }

    fn open_stream(&mut self) {
        let id = StreamId(self.next_id());
        self.parser.restart();
        // The first connection has seen no id and sends none (B-1.4): it must not hit history.
        let request = events::stream(Some(self.parser.last_id()));
        self.stream = Stream::Opening { id, until: self.now.after(EXCHANGE_MS) };
        self.queue.push_back(Output::OpenStream(id, request));
    }

    /// Gives up a stream from which nothing came.
    fn drop_stream(&mut self, id: StreamId) {
        self.queue.push_back(Output::CloseStream(id));
        self.stream_failed(Fault::TimedOut.to_string(), None);
    }

    pub(super) fn stream_reply(&mut self, id: StreamId, head: Outcome<'_>) {
        if !matches!(self.stream, Stream::Opening { id: ours, .. } if ours == id) {
            return;
        }
        match events::opened(head) {
            Ok(()) => {
                self.stream = Stream::Open { id, since: self.now, heard: self.now };
                if self.accepted.is_some() {
                    self.recovered();
                }
                // Asked before this stream was open, so a decision may have gone past it.
                match &mut self.asking {
                    Asking::InFlight { again, .. } => *again = true,
                    Asking::Idle { at } if self.accepted.is_some() => *at = self.now,
                    Asking::Idle { .. } => {}
                }
            }
            Err(error) => {
                self.queue.push_back(Output::CloseStream(id));
                match error {
                    ApiError::Permanent { status, message, suggestion } => {
                        self.stream = Stream::Down { retry_at: self.now };
                        self.end(Because::GatewayRefused { status, message, suggestion }, None);
                    }
                    ApiError::Temporary { message, retry_after_s, .. } => {
                        self.stream_failed(message, retry_after_s);
                    }
                }
            }
        }
    }

    pub(super) fn stream_closed(&mut self, id: StreamId, fault: Fault) {
        if matches!(self.stream, Stream::Opening { id: ours, .. } | Stream::Open { id: ours, .. } if ours == id)
        {
            self.stream_failed(fault.to_string(), None);
        }
    }

    pub(super) fn chunk(&mut self, id: StreamId, mut bytes: &[u8]) {
        match &mut self.stream {
            Stream::Open { id: ours, heard, .. } if *ours == id => *heard = self.now,
            _ => return,
        }
        loop {
            let (used, item) = self.parser.feed(bytes);
            bytes = &bytes[used..];
            let event = match item {
                None => return,
                Some(Item::Event(event)) => events::parse(event.name, event.data),
                Some(Item::TooLarge) => {
                    // It may have been the decision: only asking again can tell.
                    self.queue.push_back(Output::CloseStream(id));
                    self.stream_failed(String::from("an event is too large"), None);
                    return;
                }
            };
            // Events that cannot be used, and events about other things, are nothing to this hook.
            if let Ok(AgentEvent::PermissionDecision(decision)) = event {
                self.decision(decision);
            }
            if self.verdict.is_some() {
                return;
            }
        }
    }

    /// A decision on the stream, which carries those of every question of this agent.
    fn decision(&mut self, decision: PermissionDecision) {
        let ours = decision.relay_key.as_deref() == Some(self.ask.relay_key.as_str())
            && decision.relay_kind.as_deref().is_none_or(|kind| kind == "permission")
            && agree(decision.session_id.as_deref(), self.ask.session_id.as_deref());
        if !ours {
            return;
        }
        match &self.accepted {
            None if self.held.len() < HELD_LIMIT => self.held.push(decision),
            None => {}
            Some(accepted) if agree(decision.mail_id.as_deref(), accepted.mail_id.as_deref()) => {
                self.decided_on_stream(decision);
            }
            Some(_) => {}
        }
    }

    /// Uses a decision that came before the reply to the question.
    pub(super) fn use_held(&mut self) {
        for decision in core::mem::take(&mut self.held) {
            if self.verdict.is_none() {
                self.decision(decision);
            }
        }
    }

    fn stream_failed(&mut self, cause: String, retry_after_s: Option<u64>) {
        if let Stream::Open { since, .. } = self.stream
            && self.now.since(since) >= STEADY_MS
        {
            self.reconnects = 0;
        }
        self.stream = Stream::Down { retry_at: self.now };
        if self.ending.is_some() {
            // No reconnect for the last milliseconds.
            return;
        }
        let Some(pause) = self.failed(cause, retry_after_s) else { return };
        let pause = if self.accepted.is_some() {
            let wanted = self.parser.retry().unwrap_or(0);
            self.reconnect_pause().max(pause).max(wanted)
        } else {
            pause
        };
        self.stream = Stream::Down { retry_at: self.now.after(pause) };
        self.poll_sooner();
    }

    /// The next pause, up to a fifth shorter than the table says, so that many hooks that lost one
    /// gateway do not come back together.
    fn reconnect_pause(&mut self) -> u64 {
        let last = RECONNECT_PAUSES_MS.len() - 1;
        let index = usize::try_from(self.reconnects).map_or(last, |n| n.min(last));
        let full = RECONNECT_PAUSES_MS[index];
        let shorter = mix(self.nonce ^ u64::from(self.reconnects)) % (full / 5 + 1);
        self.reconnects = self.reconnects.saturating_add(1);
        full - shorter
    }
}

/// Whether two ids are the same as far as both are known.
fn agree(theirs: Option<&str>, ours: Option<&str>) -> bool {
    match (theirs, ours) {
        (Some(theirs), Some(ours)) => theirs == ours,
        _ => true,
    }
}
