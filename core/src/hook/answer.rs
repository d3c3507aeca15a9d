//! How an answer is written on stdout.
//!
//! Three dialects, two events, at most one line. No opinion writes nothing at all. No key beyond
//! these is ever written: strict hosts drop an answer with a key they do not know, and a dropped
//! refusal is an approval (faults row 19).

use alloc::string::String;
use core::fmt::Write as _;

use serde_json::Value;

use super::event::Kind;
use super::outcome::{Answer, Verdict};

/// Most bytes of a reason in an answer.
///
/// ZCode cuts stdout at 32 768 bytes, and a cut answer is no answer. A reason stands twice in
/// [`Dialect::Both`], and escaping doubles it at worst, so 4 000 bytes stay far below.
pub const REASON_LIMIT: usize = 4_000;

/// What stands at the end of a reason that was cut.
const CUT: &str = " […]";

/// Which form of answer the host understands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The seed's keys and the structured decision in one object: ZCode 3.14 and later, where the
    /// seed's `block` cannot be undone by a later plugin.
    #[default]
    Both,
    /// The structured decision alone: ZCode 3.8 and older, whose schema is strict.
    Structured,
    /// The seed's bytes.
    Flat,
}

impl Dialect {
    /// Reads a dialect's name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "both" => Some(Self::Both),
            "structured" => Some(Self::Structured),
            "flat" => Some(Self::Flat),
            _ => None,
        }
    }

    /// The dialect's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::Structured => "structured",
            Self::Flat => "flat",
        }
    }
}

/// Writes a verdict as one line with its newline, or as nothing.
///
/// `kind` is the event that is answered. `None` is an event too broken to say: a refusal is then
/// written without naming an event, since a wrong name makes the host drop the whole answer; only
/// [`Dialect::Structured`] has no such form and names the more common event.
#[must_use]
pub fn encode(dialect: Dialect, kind: Option<Kind>, verdict: &Verdict) -> String {
    let reason = match &verdict.answer {
        Answer::NoOpinion => return String::new(),
        Answer::Approve => None,
        Answer::Block(reason) => Some(bounded(reason)),
    };
    let reason = reason.as_deref();
    let dialect = match (dialect, kind) {
        (Dialect::Both, None) => Dialect::Flat,
        (dialect, _) => dialect,
    };
    let structured = structured(kind.unwrap_or(Kind::PermissionRequest), reason);
    let mut line = match dialect {
        Dialect::Both => alloc::format!("{{{},{structured}}}", flat(reason)),
        Dialect::Structured => alloc::format!("{{{structured}}}"),
        Dialect::Flat => alloc::format!("{{{}}}", flat(reason)),
    };
    line.push('\n');
    line
}

/// A reason as it may appear in an answer or on stderr: at most [`REASON_LIMIT`] bytes, cut between
/// two characters with a visible mark, and with control characters other than line feed replaced.
#[must_use]
pub fn bounded(reason: &str) -> String {
    let clean = |c: char| if c.is_control() && c != '\n' { '\u{fffd}' } else { c };
    let mut out: String = reason.chars().map(clean).collect();
    if out.len() > REASON_LIMIT {
        out.truncate(out.floor_char_boundary(REASON_LIMIT - CUT.len()));
        out.push_str(CUT);
    }
    out
}

fn flat(reason: Option<&str>) -> String {
    reason.map_or_else(
        || String::from(r#""decision":"approve""#),
        |reason| alloc::format!(r#""decision":"block","reason":{}"#, quoted(reason)),
    )
}

fn structured(kind: Kind, reason: Option<&str>) -> String {
    let mut out = alloc::format!(r#""hookSpecificOutput":{{"hookEventName":"{}","#, kind.as_str());
    // Writing to a String cannot fail.
    let _ = match (kind, reason) {
        (Kind::PermissionRequest, None) => {
            write!(out, r#""decision":{{"behavior":"allow"}}}}"#)
        }
        (Kind::PermissionRequest, Some(reason)) => {
            let message = quoted(reason);
            write!(out, r#""decision":{{"behavior":"deny","message":{message}}}}}"#)
        }
        (Kind::PreToolUse, None) => write!(out, r#""permissionDecision":"allow"}}"#),
        (Kind::PreToolUse, Some(reason)) => {
            let message = quoted(reason);
            write!(out, r#""permissionDecision":"deny","permissionDecisionReason":{message}}}"#)
        }
    };
    out
}

fn quoted(text: &str) -> Value {
    Value::String(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::outcome::Because;

    fn verdict(answer: Answer) -> Verdict {
        Verdict { answer, because: Because::NotOurs }
    }

    #[test]
    fn every_dialect_has_exactly_these_bytes() {
        use Dialect::{Both, Flat, Structured};
        use Kind::{PermissionRequest as P, PreToolUse as T};
        let no = || Answer::Block("因为 \"x\"\n不行".into());
        for (dialect, kind, answer, expected) in [
            (Flat, P, Answer::Approve, r#"{"decision":"approve"}"#),
            (Flat, T, Answer::Approve, r#"{"decision":"approve"}"#),
            (Flat, P, no(), r#"{"decision":"block","reason":"因为 \"x\"\n不行"}"#),
            (
                Structured,
                P,
                Answer::Approve,
                r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}"#,
            ),
            (
                Structured,
                P,
                no(),
                r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"因为 \"x\"\n不行"}}}"#,
            ),
            (
                Structured,
                T,
                Answer::Approve,
                r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}"#,
            ),
            (
                Structured,
                T,
                no(),
                r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"因为 \"x\"\n不行"}}"#,
            ),
            (
                Both,
                P,
                Answer::Approve,
                r#"{"decision":"approve","hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}"#,
            ),
            (
                Both,
                P,
                no(),
                r#"{"decision":"block","reason":"因为 \"x\"\n不行","hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"因为 \"x\"\n不行"}}}"#,
            ),
            (
                Both,
                T,
                Answer::Approve,
                r#"{"decision":"approve","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}"#,
            ),
            (
                Both,
                T,
                no(),
                r#"{"decision":"block","reason":"因为 \"x\"\n不行","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"因为 \"x\"\n不行"}}"#,
            ),
        ] {
            let line = encode(dialect, Some(kind), &verdict(answer));
            assert_eq!(line, alloc::format!("{expected}\n"), "{dialect:?} {kind:?}");
        }
    }

    #[test]
    fn no_opinion_writes_nothing() {
        for dialect in [Dialect::Both, Dialect::Structured, Dialect::Flat] {
            for kind in [None, Some(Kind::PermissionRequest), Some(Kind::PreToolUse)] {
                assert_eq!(encode(dialect, kind, &verdict(Answer::NoOpinion)), "");
            }
        }
    }

    #[test]
    fn a_refusal_of_an_unnamed_event_names_none() {
        let no = verdict(Answer::Block("x".into()));
        assert_eq!(encode(Dialect::Both, None, &no), "{\"decision\":\"block\",\"reason\":\"x\"}\n");
        assert!(encode(Dialect::Structured, None, &no).contains("PermissionRequest"));
    }

    #[test]
    fn a_reason_is_cut_at_the_limit_and_not_before() {
        let just = "a".repeat(REASON_LIMIT);
        assert_eq!(bounded(&just), just);
        let over = bounded(&"会".repeat(REASON_LIMIT));
        assert!(over.len() <= REASON_LIMIT && over.ends_with(CUT));
        assert!(over.trim_end_matches(CUT).chars().all(|c| c == '会'));
    }

    #[test]
    fn the_worst_reason_stays_below_the_hosts_cut() {
        for worst in ["\"", "\n", "\\", "\u{1}", "\u{7f}", "\u{85}", "😀"] {
            let line = encode(
                Dialect::Both,
                Some(Kind::PreToolUse),
                &verdict(Answer::Block(worst.repeat(100_000))),
            );
            assert!(line.len() < 32_768, "{worst:?}: {}", line.len());
            assert_eq!(line.matches('\n').count(), 1);
            assert!(serde_json::from_str::<Value>(&line).is_ok());
        }
    }
}
