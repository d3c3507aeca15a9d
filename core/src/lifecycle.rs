//! The life of a permission request in the gateway: pending → decided, withdrawn or expired.
//!
//! What it is: a step function without memory of its own. The gateway's database mirrors it with
//! one conditional update per act (`UPDATE … WHERE status = 'pending'`), so that of several acts
//! at once the first wins there as it does here.
//!
//! What it promises: a request is decided at most once; no act changes a final state; over any
//! sequence of acts a decision is published exactly once if the request ends decided, and never
//! otherwise; whoever decides too late learns how it ended, by whom and when.
//!
//! ```text
//!              Ask            Decide             Withdraw         Expire
//! Pending      Pending, None  Decided, Publish   Withdrawn, None  Expired, None
//! Decided      same, None     same, Refuse       same, None       same, None
//! Withdrawn    same, None     same, Refuse       same, None       same, None
//! Expired      same, None     same, Refuse       same, None       same, None
//! ```
//!
//! `Ask` stands for a repeat of the question with the same `relay_key`: it makes no second mail,
//! and its reply is the state (`B-8.3`). A withdrawal or an expiry that comes too late is no
//! error: its reply is the state too. Clauses: `B-8`, `W-4`, design row 8.
//!
//! Who changes this table changes the gateway's conditional updates and `tests/it/lifecycle.rs`.

use alloc::string::String;

use crate::api::permission::{Answer, AskedState};
use crate::time::UnixMillis;

/// Where a request stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum State {
    /// It waits for a human.
    #[default]
    Pending,
    /// A human decided it.
    Decided(Verdict),
    /// The asker took it back before anybody decided.
    Withdrawn {
        /// When.
        at: UnixMillis,
    },
    /// Its time ran out before anybody decided.
    Expired {
        /// When.
        at: UnixMillis,
    },
}

/// What a human decided.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Verdict {
    /// The chosen option's text.
    pub decision: String,
    /// What the human added; empty for nothing.
    pub note: String,
    /// Who decided.
    pub by: String,
    /// When.
    pub at: UnixMillis,
}

/// Something that happens to a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// The same question arrives again.
    Ask,
    /// A human decides.
    Decide(Verdict),
    /// The asker no longer waits.
    Withdraw {
        /// When.
        at: UnixMillis,
    },
    /// Nobody decided in time.
    Expire {
        /// When.
        at: UnixMillis,
    },
}

/// What the gateway has to do after an act.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing but to answer with the state.
    None,
    /// Publish this verdict as `permission_decision`, once.
    Publish(Verdict),
    /// Tell the decider that the request had ended.
    Refuse(WhoAndWhen),
}

/// How a request ended, for the one who came too late.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WhoAndWhen {
    /// The end.
    pub how: End,
    /// Who decided; `None` unless a human did.
    pub by: Option<String>,
    /// When it ended.
    pub at: UnixMillis,
}

/// The three ends of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// A human decided.
    Decided,
    /// The asker took it back.
    Withdrawn,
    /// Its time ran out.
    Expired,
}

/// The state after `act`, and what to do about it.
#[must_use]
pub fn step(state: &State, act: Act) -> (State, Effect) {
    let Some(end) = state.end() else { return from_pending(act) };
    let effect = match act {
        Act::Decide(_) => Effect::Refuse(end),
        Act::Ask | Act::Withdraw { .. } | Act::Expire { .. } => Effect::None,
    };
    (state.clone(), effect)
}

fn from_pending(act: Act) -> (State, Effect) {
    match act {
        Act::Ask => (State::Pending, Effect::None),
        Act::Decide(verdict) => (State::Decided(verdict.clone()), Effect::Publish(verdict)),
        Act::Withdraw { at } => (State::Withdrawn { at }, Effect::None),
        Act::Expire { at } => (State::Expired { at }, Effect::None),
    }
}

impl State {
    /// The state's name, as on the wire and in the database.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Decided(_) => "decided",
            Self::Withdrawn { .. } => "withdrawn",
            Self::Expired { .. } => "expired",
        }
    }

    /// How the request ended; `None` while it waits.
    #[must_use]
    pub fn end(&self) -> Option<WhoAndWhen> {
        let (how, by, at) = match self {
            Self::Pending => return None,
            Self::Decided(verdict) => (End::Decided, Some(verdict.by.clone()), verdict.at),
            Self::Withdrawn { at } => (End::Withdrawn, None, *at),
            Self::Expired { at } => (End::Expired, None, *at),
        };
        Some(WhoAndWhen { how, by, at })
    }

    /// The state as a reply to the asker.
    #[must_use]
    pub fn asked(&self) -> AskedState {
        let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        match self {
            Self::Pending => AskedState::Pending,
            Self::Decided(verdict) => AskedState::Decided(Answer {
                decision: verdict.decision.clone(),
                note: some(&verdict.note),
                decided_by: some(&verdict.by),
            }),
            Self::Withdrawn { .. } => AskedState::Withdrawn,
            Self::Expired { .. } => AskedState::Expired,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(by: &str, at: i64) -> Verdict {
        Verdict {
            decision: "同意".into(), note: String::new(), by: by.into(), at: UnixMillis(at)
        }
    }

    #[test]
    fn the_second_decider_learns_who_and_when() {
        let (state, effect) = step(&State::Pending, Act::Decide(verdict("ann", 1)));
        assert_eq!(effect, Effect::Publish(verdict("ann", 1)));
        let (after, effect) = step(&state, Act::Decide(verdict("bob", 2)));
        assert_eq!(after, state);
        let refused = WhoAndWhen { how: End::Decided, by: Some("ann".into()), at: UnixMillis(1) };
        assert_eq!(effect, Effect::Refuse(refused));
    }

    #[test]
    fn a_decision_after_the_end_is_refused_and_never_published() {
        for (act, how) in [
            (Act::Withdraw { at: UnixMillis(7) }, End::Withdrawn),
            (Act::Expire { at: UnixMillis(7) }, End::Expired),
        ] {
            let (ended, effect) = step(&State::Pending, act);
            assert_eq!(effect, Effect::None);
            let (after, effect) = step(&ended, Act::Decide(verdict("ann", 8)));
            assert_eq!(after, ended);
            assert_eq!(effect, Effect::Refuse(WhoAndWhen { how, by: None, at: UnixMillis(7) }));
        }
    }

    #[test]
    fn the_asker_reads_the_state_it_is_in() {
        let (decided, _) = step(&State::Pending, Act::Decide(verdict("ann", 1)));
        let (after, effect) = step(&decided, Act::Withdraw { at: UnixMillis(2) });
        assert_eq!((after.name(), effect), ("decided", Effect::None));
        let AskedState::Decided(answer) = after.asked() else { panic!("decided") };
        assert_eq!((answer.note, answer.decided_by.as_deref()), (None, Some("ann")));
        assert_eq!(State::Pending.asked(), AskedState::Pending);
    }
}
