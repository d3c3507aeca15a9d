//! ZCode's permission hook.
//!
//! What it is: everything between the bytes of one event and the bytes of one answer. Reading,
//! connecting, files, time and the process belong to the runtime.
//!
//! What it promises: an approval comes only from a rule, a remembered approval, or an exact
//! decision of a human for this very request; every other end follows the fail-closed table of
//! [`outcome`].
//!
//! ```text
//!  stdin ─► event ─► policy ─┬─► done: rule, plan, not ours          (no file, no network)
//!                            └─► Call ─► grants ─┬─► done: remembered
//!                                                └─► machine ─► done
//!                                                                └─► answer ─► stdout
//! ```
//!
//! Sources: seed 000 (events, modes, fail closed), `B-8` (asking), faults rows 6 to 22.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

use crate::config::Settings;
use crate::relay_key::{clamp, sha256_hex};

pub mod answer;
pub mod event;
pub mod machine;
pub mod outcome;
pub mod policy;
pub mod question;
pub mod text;

use event::{Event, Kind, ToolEvent, ToolInput, Unreadable};
use outcome::{Because, Verdict};
use policy::Opinion;

/// What is left to do after the event has been read and the rules have spoken.
#[derive(Clone, Debug, PartialEq)]
pub enum Opening {
    /// Nothing: the answer is known.
    Done {
        /// The event that is answered, if it could be told.
        kind: Option<Kind>,
        /// The answer.
        verdict: Verdict,
    },
    /// A human has to be asked, unless a remembered approval covers the call.
    Ask(Box<Call>),
}

/// A tool call that needs a human.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The event.
    pub event: ToolEvent,
    /// Its input, which every question must show.
    pub input: ToolInput,
}

/// Reads an event and applies the rules. Without any file, network or clock.
#[must_use]
pub fn open(bytes: &[u8], settings: &Settings) -> Opening {
    match Event::parse(bytes) {
        Ok(Event::Other(_)) => done(None, Because::NotOurs, None, settings),
        Ok(Event::Tool(event)) => apply_rules(*event, settings),
        Err(error) => unreadable(error, Event::claimed_kind(bytes), settings),
    }
}

/// The end of an event that could not be read; `kind` as far as it can be told.
#[must_use]
pub fn unreadable(error: Unreadable, kind: Option<Kind>, settings: &Settings) -> Opening {
    done(kind, Because::Unreadable(error), None, settings)
}

fn apply_rules(mut event: ToolEvent, settings: &Settings) -> Opening {
    let opinion = policy::opinion(event.kind, &event.tool, settings.mode, settings.mail_driven());
    let because = match opinion {
        Opinion::None => Because::NotOurs,
        Opinion::ApproveFull => Because::FullMode,
        Opinion::ApproveOwn => Because::OwnTool,
        Opinion::RefusePlan => Because::PlanMode,
        Opinion::Ask => match event.input.take() {
            Some(input) => return Opening::Ask(Box::new(Call { event, input })),
            None => Because::Unreadable(Unreadable::Missing("tool_input")),
        },
    };
    done(Some(event.kind), because, Some(&event.tool), settings)
}

fn done(kind: Option<Kind>, because: Because, tool: Option<&str>, settings: &Settings) -> Opening {
    let verdict = Verdict::new(because, settings.mail_driven(), tool, settings.lang);
    Opening::Done { kind, verdict }
}

impl Call {
    /// The verdict of an end of this call.
    #[must_use]
    pub fn verdict(&self, because: Because, settings: &Settings) -> Verdict {
        Verdict::new(because, settings.mail_driven(), Some(&self.event.tool), settings.lang)
    }

    /// The session that a remembered approval belongs to: the mail session, else ZCode's. Without
    /// either nothing can be remembered (`B-8.8`: the scope is session and tool).
    #[must_use]
    pub fn grant_session<'a>(&'a self, settings: &'a Settings) -> Option<&'a str> {
        settings.session_id.as_deref().or(self.event.session.as_deref())
    }

    /// The idempotency key of the question, clamped (`B-8.1`, `B-8.9`).
    ///
    /// ZCode's id of the permission request if there is one. Else session, tool and call id,
    /// followed by a digest of ZCode's session, turn, directory and input: some model gateways
    /// number their calls from one in every session, and a key that two calls share would answer
    /// the second with the decision about the first. Without a call id `nonce`, which must be
    /// random, keeps two calls apart.
    #[must_use]
    pub fn relay_key(&self, settings: &Settings, nonce: u64) -> String {
        if let Some(id) = &self.event.request_id {
            return clamp(id);
        }
        let event = &self.event;
        let session = self.grant_session(settings).unwrap_or("-");
        let turn = event.turn_id.as_deref().unwrap_or("-");
        let key = match &event.call_id {
            Some(id) => format!("{session}:{}:{id}:{}", event.tool, &self.digest()[..16]),
            None => format!("{session}:{}:{turn}:{nonce:016x}", event.tool),
        };
        clamp(&key)
    }

    /// SHA-256 over everything that makes this call this call and no other, in hexadecimal.
    #[must_use]
    pub fn digest(&self) -> String {
        let event = &self.event;
        let part = |text: &Option<String>| sha256_hex(text.as_deref().unwrap_or("").as_bytes());
        let parts = format!(
            "{}{}{}{}{}{}",
            sha256_hex(event.tool.as_bytes()),
            part(&event.session),
            part(&event.turn_id),
            part(&event.call_id),
            part(&event.cwd),
            sha256_hex(self.input.raw.as_bytes()),
        );
        sha256_hex(parts.as_bytes())
    }
}

#[cfg(test)]
mod tests;
