//! The rename marker (`T-13`): how a model proposes a better name for a session.
//!
//! The proposal is a comment at the end of the mail's body, which the gateway takes out and keeps
//! for a human to decide. This is the only place that writes it: a blank too few and the proposal
//! vanishes without an error (pitfall 9.14).

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;

use crate::alias::is_proposable;
use crate::lang::Lang;

/// How every marker starts, whatever follows.
const OPENING: &str = "<!-- agentmail:rename-session";
/// Characters of a reason that are kept.
const MAX_REASON: usize = 200;

/// Whether `alias` may be proposed; if not, no marker is added (`T-13.3`).
#[must_use]
pub fn may_propose(alias: &str) -> bool {
    is_proposable(alias)
}

/// The marker for a proposal. `alias` must be one that [`may_propose`] allows; the reason is made
/// to fit, and an empty one gets a fixed text, because gateways ignore an empty attribute.
#[must_use]
pub fn marker(alias: &str, reason: &str, lang: Lang) -> String {
    let mut clean = String::new();
    for c in reason.chars() {
        match c {
            '"' => clean.push('\''),
            '<' | '>' => clean.push(' '),
            c if c.is_whitespace() || c.is_control() => clean.push(' '),
            c => clean.push(c),
        }
    }
    let words: alloc::vec::Vec<&str> = clean.split(' ').filter(|word| !word.is_empty()).collect();
    let joined: String = words.join(" ").chars().take(MAX_REASON).collect();
    let mut reason = joined.trim();
    if reason.is_empty() {
        reason = lang.pick("更贴切的名字", "a better name");
    }
    let alias = alias.trim();
    format!("{OPENING} alias=\"{alias}\" reason=\"{reason}\" -->")
}

/// `body` with the proposal appended on a line of its own, and without any marker that was typed
/// into it: a marker must pass the check, and there is never more than one.
#[must_use]
pub fn append(body: &str, marker: &str) -> String {
    let kept = strip(body);
    let kept = kept.trim_end();
    if kept.is_empty() { marker.to_owned() } else { format!("{kept}\n\n{marker}") }
}

/// `body` without markers that were typed into it.
#[must_use]
pub fn strip(body: &str) -> String {
    let mut kept = String::new();
    let mut rest = body;
    while let Some(start) = find_opening(rest) {
        let (before, marked) = rest.split_at(start);
        kept.push_str(before);
        // Without an end it is no marker for anybody, but it may become one by what follows.
        rest = marked.split_once("-->").map_or("", |(_, after)| after);
    }
    if kept.is_empty() && rest.len() == body.len() {
        return body.to_owned();
    }
    kept.push_str(rest);
    // Taking one out may join two halves of another.
    if find_opening(&kept).is_some() { strip(&kept) } else { kept }
}

/// Where the next marker starts, however its blanks are written.
fn find_opening(text: &str) -> Option<usize> {
    text.match_indices("<!--").map(|(at, _)| at).find(|at| {
        let inner = text.get(at + 4..).unwrap_or_default().trim_start();
        inner.starts_with("agentmail:rename-session")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marker_is_the_contracts_byte_for_byte() {
        assert_eq!(
            marker("fix-leak", "已定位根因", Lang::Zh),
            "<!-- agentmail:rename-session alias=\"fix-leak\" reason=\"已定位根因\" -->"
        );
    }

    #[test]
    fn a_reason_cannot_end_the_marker_or_be_empty() {
        let made = marker("x", "say \"hi\" --> <b>\nnow", Lang::En);
        assert_eq!(made.matches("-->").count(), 1);
        assert_eq!(made.matches('"').count(), 4);
        assert!(made.contains("reason=\"say 'hi' -- b now\""), "{made}");
        assert!(marker("x", " \n", Lang::En).contains("reason=\"a better name\""));
        assert!(marker("x", &"长".repeat(300), Lang::Zh).chars().count() < 280);
    }

    #[test]
    fn a_typed_marker_is_taken_out_and_ours_is_the_only_one() {
        let ours = marker("good", "r", Lang::En);
        for typed in [
            "a <!-- agentmail:rename-session alias=\"evil\" reason=\"x\" --> b",
            "a <!--agentmail:rename-session alias=\"evil\"--> b",
            "a <!-- \n agentmail:rename-session alias=\"evil\" reason=\"x\" --> b",
            "a <!-- agent<!-- agentmail:rename-session x -->mail:rename-session alias=\"evil\" --> b",
            "a <!-- agentmail:rename-session alias=\"evil\" reason=\"",
        ] {
            let body = append(typed, &ours);
            assert!(!body.contains("evil"), "{body}");
            assert_eq!(body.matches("agentmail:rename-session").count(), 1, "{body}");
            assert!(body.ends_with(&alloc::format!("\n\n{ours}")), "{body}");
        }
        assert_eq!(append("text\n", &ours), alloc::format!("text\n\n{ours}"));
        assert_eq!(append("", &ours), ours);
        assert_eq!(strip("keeps <!-- other --> comments "), "keeps <!-- other --> comments ");
    }
}
