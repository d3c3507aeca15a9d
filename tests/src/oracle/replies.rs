//! Laws of the readers of the gateway's replies.
//!
//! 1. The status alone decides: 2xx is success or "not the gateway", a 4xx but 408 and 429 is
//!    permanent, anything else temporary; the same for every endpoint.
//! 2. A success is a JSON object without a key twice, and no page.
//! 3. A question is decided only by a text under `decision` (or `result`) of a reply that says so.
//! 4. Messages are never empty, keep to their limit, hold no control characters and no page.
//! 5. A 429 always says how long to wait.

use super::events::text;
use crate::script::replies::Script;
use zcode_mail_core::api::permission::{Ask, Asked, AskedState, Look, Withdraw};
use zcode_mail_core::api::{ApiError, MESSAGE_LIMIT, TemporaryCause, heartbeat, register, send};
use zcode_mail_core::http::{Outcome, Reply, is_permanent};

/// Checks all laws.
///
/// # Panics
/// When one does not hold.
pub fn check(bytes: &[u8]) {
    let script = Script::decode(bytes);
    let outcome = Outcome::Reply(Reply {
        status: script.status,
        content_type: script.content_type,
        retry_after: script.retry_after,
        date: script.date,
        body: &script.document.bytes,
    });
    let asked = Ask::parse(outcome);
    assert_eq!(Look::parse(outcome), asked, "{script:?}");
    assert_eq!(Withdraw::parse(outcome), asked, "{script:?}");
    let failure = asked.as_ref().err();
    assert_eq!(register::Request::parse(outcome).err().as_ref(), failure, "{script:?}");
    assert_eq!(heartbeat::Request::parse(outcome).err().as_ref(), failure, "{script:?}");
    assert_eq!(send::Request::parse(outcome).err().as_ref(), failure, "{script:?}");
    match &asked {
        Ok(asked) => check_success(&script, asked),
        Err(error) => check_failure(&script, error),
    }
}

fn check_success(script: &Script, asked: &Asked) {
    assert!((200..300).contains(&script.status), "{script:?}");
    if matches!(script.status, 204 | 205) && script.document.bytes.is_empty() {
        assert_eq!(asked.state, AskedState::Pending);
        return;
    }
    assert!(script.content_type.is_none_or(|kind| !kind.contains("html")), "{script:?}");
    let object = script.document.object().unwrap_or_else(|| panic!("out of nothing: {script:?}"));
    let status = object.get("status").map(|status| status.as_str().unwrap_or("?"));
    let decision = match status {
        None | Some("ok") => text(&object, &["decision"]),
        Some("decided" | "duplicate_relay") => text(&object, &["decision", "result"]),
        Some(_) => None,
    };
    match &asked.state {
        AskedState::Decided(answer) => {
            assert_eq!(Some(answer.decision.as_str()), decision, "{script:?}");
        }
        AskedState::Withdrawn => assert_eq!(status, Some("withdrawn"), "{script:?}"),
        AskedState::Expired => assert_eq!(status, Some("expired"), "{script:?}"),
        AskedState::Pending => {
            assert_eq!(decision, None, "{script:?}");
            assert!(!matches!(status, Some("withdrawn" | "expired")), "{script:?}");
        }
    }
}

fn check_failure(script: &Script, error: &ApiError) {
    let success = (200..300).contains(&script.status);
    match error {
        ApiError::Permanent { status, suggestion, .. } => {
            assert!(is_permanent(script.status) && *status == script.status, "{script:?}");
            if let Some(advice) = suggestion {
                check_words(script, advice);
            }
        }
        ApiError::Temporary { cause: TemporaryCause::NotTheGateway, retry_after_s, .. } => {
            assert!(success && retry_after_s.is_none(), "{script:?}");
            let page = script.content_type.is_some_and(|kind| kind.contains("html"));
            assert!(page || script.document.object().is_none(), "{script:?}");
        }
        ApiError::Temporary { cause: TemporaryCause::Status(status), retry_after_s, .. } => {
            assert!(*status == script.status && !success && !is_permanent(*status), "{script:?}");
            assert!(retry_after_s.is_some() || *status != 429, "{script:?}");
        }
        ApiError::Temporary { cause: TemporaryCause::Fault(_), .. } => panic!("{script:?}"),
    }
    check_words(script, error.message());
    // A page reaches a message only as a text that the gateway put into its JSON.
    if script.document.object().is_none() {
        assert!(!error.message().trim_start().starts_with('<'), "{script:?}");
    }
}

fn check_words(script: &Script, words: &str) {
    assert!(!words.is_empty(), "{script:?}");
    assert!(words.chars().count() <= MESSAGE_LIMIT, "{script:?}");
    assert!(!words.contains(|c: char| c.is_control() && c != '\n'), "{script:?}");
}
