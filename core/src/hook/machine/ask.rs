//! The question's half of the machine: asking, asking again, deciding, withdrawing.

use alloc::string::{String, ToString as _};

use super::{
    Accepted, Asking, EXCHANGE_MS, Ending, ExchangeId, Machine, Output, POLL_DOWN_MS, POLL_MS,
    Stream, WITHDRAW_MS,
};
use crate::api::ApiError;
use crate::api::events::PermissionDecision;
use crate::api::permission::{Answer, Ask, Asked, AskedState, Withdraw};
use crate::decision::{Decision, REJECT};
use crate::hook::outcome::{Because, Person, Verdict};
use crate::http::{Fault, Outcome};
use crate::time::Millis;

/// The statuses after which a withdrawal is pointless: the key is not valid any more.
const KEY_REFUSED: u16 = 401;
/// The status of a question that can be answered no more (`B-8.2c` before it was ever taken).
const CONFLICT: u16 = 409;

impl Machine {
    /// Subscribe first: a decision that is faster than the subscription would be lost.
    pub(super) const fn may_ask(&self) -> bool {
        self.accepted.is_some() || matches!(self.stream, Stream::Open { .. })
    }

    pub(super) fn ask_timers(&mut self) {
        match self.asking {
            Asking::Idle { at } if self.now >= at && self.may_ask() => {
                let id = ExchangeId(self.next_id());
                let until = self.now.after(EXCHANGE_MS);
                self.asking = Asking::InFlight { id, until, again: false };
                self.queue.push_back(Output::Exchange(id, self.ask.request()));
            }
            Asking::InFlight { until, .. } if self.now >= until => {
                self.ask_failed(Fault::TimedOut.to_string(), None);
            }
            _ => {}
        }
    }

    /// The stream is down: look more often.
    pub(super) fn poll_sooner(&mut self) {
        if let Asking::Idle { at } = &mut self.asking
            && self.accepted.is_some()
        {
            *at = (*at).min(self.now.after(POLL_DOWN_MS));
        }
    }

    pub(super) fn replied(&mut self, id: ExchangeId, outcome: Outcome<'_>) {
        if self.ending.as_ref().is_some_and(|ending| ending.withdrawal == Some(id)) {
            if let Ok(asked) = Withdraw::parse(outcome)
                && asked.is_about(&self.ask.relay_key)
            {
                self.last_word(asked.state);
            }
            self.finish_ending();
            return;
        }
        let Asking::InFlight { id: ours, again, .. } = self.asking else { return };
        if ours != id {
            return;
        }
        let result = Ask::parse(outcome);
        if self.ending.is_some() {
            self.asking = Asking::Idle { at: self.now };
            self.replied_while_ending(result);
            return;
        }
        match result {
            Ok(asked) if asked.is_about(&self.ask.relay_key) => self.taken(asked, again),
            Ok(_) => self.ask_failed(String::from("the reply is about another question"), None),
            Err(ApiError::Temporary { message, retry_after_s, .. }) => {
                self.ask_failed(message, retry_after_s);
            }
            Err(ApiError::Permanent { status: CONFLICT, .. }) if self.accepted.is_some() => {
                self.finish(Because::Withdrawn);
            }
            Err(ApiError::Permanent { status, message, suggestion }) => {
                self.asking = Asking::Idle { at: self.now };
                self.end(Because::GatewayRefused { status, message, suggestion }, None);
            }
        }
    }

    /// The gateway has the question.
    fn taken(&mut self, asked: Asked, again: bool) {
        self.recovered();
        let pause = match self.stream {
            _ if again => 0,
            Stream::Open { .. } => POLL_MS,
            _ => POLL_DOWN_MS,
        };
        self.asking = Asking::Idle { at: self.now.after(pause) };
        let accepted = self.accepted.get_or_insert(Accepted { request_id: None, mail_id: None });
        if accepted.request_id.is_none() {
            accepted.request_id = asked.request_id;
        }
        if accepted.mail_id.is_none() {
            accepted.mail_id = asked.mail_id;
        }
        match asked.state {
            AskedState::Pending => self.use_held(),
            AskedState::Decided(answer) => self.decide(answer),
            AskedState::Withdrawn | AskedState::Expired => self.finish(Because::Withdrawn),
        }
    }

    fn ask_failed(&mut self, cause: String, retry_after_s: Option<u64>) {
        self.asking = Asking::Idle { at: self.now };
        if self.accepted.is_some() && matches!(self.stream, Stream::Open { .. }) {
            // The stream still brings the decision, so this is no outage.
            let pause = retry_after_s.unwrap_or(0).saturating_mul(1_000).max(POLL_MS);
            self.asking = Asking::Idle { at: self.now.after(pause) };
            return;
        }
        let Some(pause) = self.failed(cause, retry_after_s) else { return };
        let pause = if self.accepted.is_some() { pause.max(POLL_DOWN_MS) } else { pause };
        self.asking = Asking::Idle { at: self.now.after(pause) };
    }

    pub(super) fn decided_on_stream(&mut self, event: PermissionDecision) {
        // Foreign gateways name no digest; one that names another decided about another call.
        if event.digest.as_deref().is_some_and(|digest| digest != self.digest.hex()) {
            let what =
                self.lang.pick("决定针对的是另一份内容", "the decision is about other content");
            self.finish(Because::Changed(String::from(what)));
            return;
        }
        let answer = Answer {
            decision: event.decision.unwrap_or_default(),
            note: event.note,
            decided_by: event.decided_by,
        };
        match &self.ending {
            None => self.decide(answer),
            Some(_) => self.last_word(AskedState::Decided(answer)),
        }
    }

    /// Gives a decision its meaning; everything that is not exactly an approval refuses.
    fn decide(&mut self, answer: Answer) {
        let Answer { decision, note, decided_by } = answer;
        let person = Person { name: decided_by, note };
        let refuses = || [REJECT, "reject", "deny"].contains(&decision.trim());
        let because = match Decision::from_text(&decision) {
            Decision::Once => Because::ApprovedOnce(person),
            Decision::Always => {
                if let Some(session) = self.grant_session.clone() {
                    self.queue.push_back(Output::Remember { session, tool: self.tool.clone() });
                }
                Because::ApprovedAlways(person)
            }
            Decision::Reject if refuses() => Because::Refused(person),
            Decision::Reject => Because::Unclear(person, decision),
        };
        self.finish(because);
    }

    /// Ends with `because`, taking the question back first if the gateway has it. A decision that
    /// still comes before `open_until` counts.
    pub(super) fn end(&mut self, because: Because, open_until: Option<Millis>) {
        let key_refused = matches!(because, Because::GatewayRefused { status: KEY_REFUSED, .. });
        let verdict = Verdict::new(because, self.driven, Some(&self.tool), self.lang);
        let until = self.now.after(WITHDRAW_MS);
        if let Some(ending) = &mut self.ending {
            // The first end set the time; a signal on top only changes what is said.
            *ending = Ending { verdict, open_until, ..*ending };
            return;
        }
        self.ending = Some(Ending { verdict, until, open_until, withdrawal: None });
        let request_id = self.accepted.as_ref().and_then(|accepted| accepted.request_id.clone());
        match request_id {
            Some(request_id) if !key_refused => self.withdraw(request_id),
            // Without an id there is nothing to take back, unless the reply is on its way.
            None if self.accepted.is_none() && matches!(self.asking, Asking::InFlight { .. }) => {}
            _ => self.finish_ending(),
        }
    }

    fn withdraw(&mut self, request_id: String) {
        let id = ExchangeId(self.next_id());
        if let Some(ending) = &mut self.ending {
            ending.withdrawal = Some(id);
        }
        self.queue.push_back(Output::Exchange(id, Withdraw { request_id }.request()));
    }

    /// The question's reply comes while the machine already ends.
    fn replied_while_ending(&mut self, result: Result<Asked, ApiError>) {
        match result {
            Ok(asked) if asked.is_about(&self.ask.relay_key) => {
                let request_id = asked.request_id.clone();
                let pending = asked.state == AskedState::Pending;
                self.accepted =
                    Some(Accepted { request_id: asked.request_id, mail_id: asked.mail_id });
                self.last_word(asked.state);
                self.use_held();
                match request_id {
                    Some(id) if pending && self.verdict.is_none() => self.withdraw(id),
                    _ => self.finish_ending(),
                }
            }
            _ => self.finish_ending(),
        }
    }

    /// A state that is learnt while ending: a decision counts while it may.
    fn last_word(&mut self, state: AskedState) {
        let Some(ending) = &self.ending else { return };
        if let AskedState::Decided(answer) = state
            && ending.open_until.is_some_and(|open_until| self.now <= open_until)
        {
            self.decide(answer);
        }
    }
}
