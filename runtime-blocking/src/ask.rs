//! From a call that needs a human to a verdict: remembered approvals, what the decision is bound to,
//! credential, loop, and the second look right before an approval.

use std::cell::RefCell;

use zcode_mail_core::config::Settings;
use zcode_mail_core::hook::Call;
use zcode_mail_core::hook::machine::{Machine, Output, Setup};
use zcode_mail_core::hook::outcome::{Answer, Because, Verdict};

use crate::binding::Bound;
use crate::client::Client;
use crate::clock::Clock;
use crate::grants_file::GrantsFile;
use crate::pending::Pending;
use crate::signals::Flag;
use crate::{answered, credential, event_loop, inject};

/// Asks, unless a remembered approval covers the call.
pub(crate) fn ask(call: &Call, settings: &Settings, signals: &Flag) -> Verdict {
    let clock = Clock::start();
    inject::here("grants");
    let grants = GrantsFile::locate(settings)
        .inspect_err(|why| crate::log(&format!("NO remembered approvals: {why}")))
        .ok();
    let session = call.grant_session(settings);
    let granted = grants
        .as_ref()
        .zip(session)
        .is_some_and(|(file, session)| file.covers(session, &call.event.tool));
    if !granted && answered::take(call, settings) {
        return call.verdict(Because::Answered, settings);
    }
    let nonce = match getrandom::u64() {
        Ok(nonce) => nonce,
        Err(error) => {
            return call
                .verdict(Because::Internal(format!("no random numbers: {error}")), settings);
        }
    };
    let setup = Setup { call, settings, granted, nonce, now: clock.now() };
    inject::here("binding");
    // A remembered approval needs no question, so there is nothing to show or to bind.
    let bound = (!granted).then(|| Bound::read(call, settings.lang));
    let mut machine = match &bound {
        Some(bound) => Machine::bound(setup, &bound.binding),
        None => Machine::new(setup),
    };
    let first = machine.poll_output();
    if let Output::Done(verdict) = first {
        return verdict;
    }
    inject::here("credential");
    let client = credential::find(settings)
        .and_then(|credential| Client::new(settings, &credential))
        .map_err(Because::NotConfigured);
    let client = match client {
        Ok(client) => client,
        Err(because) => return call.verdict(because, settings),
    };
    let _pending =
        settings.mail_driven().then(|| Pending::note(settings, machine.relay_key())).flatten();
    let to_remember = RefCell::new(None);
    let verdict = event_loop::run(&mut machine, first, &client, clock, signals, |session, tool| {
        to_remember.replace(Some((session.to_owned(), tool.to_owned())));
    });
    if verdict.answer == Answer::Approve
        && let Some(what) = bound.as_ref().and_then(Bound::drift)
    {
        let verdict = call.verdict(Because::Changed(what), settings);
        answered::note(call, settings, &verdict);
        return verdict;
    }
    if let (Some(file), Some((session, tool))) = (&grants, to_remember.take()) {
        file.remember(&session, &tool);
    }
    answered::note(call, settings, &verdict);
    verdict
}
