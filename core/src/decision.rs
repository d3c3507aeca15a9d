//! What a human's decision text means (`B-8.7`, `B-8.8`, `N-9`).
//!
//! Whole strings are compared after trimming Unicode white space; a prefix match would turn
//! 同意 into 一直同意 or "approve? no" into an approval. Everything that is not exactly one of the
//! known texts is a refusal.

/// The three options offered to the human, in the order shown.
pub const OPTIONS: [&str; 3] = [ONCE, ALWAYS, REJECT];
/// Approves this call only.
pub const ONCE: &str = "同意";
/// Approves this call and grants (session, tool).
pub const ALWAYS: &str = "一直同意";
/// Refuses this call.
pub const REJECT: &str = "拒绝";

/// The class of a decision text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// This call may run.
    Once,
    /// This call may run, and later calls of the same tool in the same session need no question.
    Always,
    /// The call must not run.
    Reject,
}

impl Decision {
    /// Classifies a decision text.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        let text = text.trim();
        let is = |word: &str| text.eq_ignore_ascii_case(word);
        if text == ALWAYS || is("always") {
            Self::Always
        } else if text == ONCE || is("once") || is("approve") {
            Self::Once
        } else {
            Self::Reject
        }
    }

    /// Whether the call may run.
    #[must_use]
    pub const fn approves(self) -> bool {
        matches!(self, Self::Once | Self::Always)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approvals_are_exact() {
        for text in ["同意", " 同意 ", "同意\n", "\u{3000}同意", "once", "Once", "APPROVE"]
        {
            assert_eq!(Decision::from_text(text), Decision::Once, "{text:?}");
        }
        for text in ["一直同意", "Always", " always\r\n"] {
            assert_eq!(Decision::from_text(text), Decision::Always, "{text:?}");
        }
    }

    #[test]
    fn everything_else_is_a_refusal() {
        for text in [
            "",
            " ",
            "拒绝",
            "reject",
            "deny",
            "同意。",
            "同意吗",
            "不同意",
            "一直同意。",
            "一直同意 bash",
            "同 意",
            "approved?",
            "always!",
            "Yes",
            "OK",
            "true",
            "允许",
            "一直",
            "no, not ok",
            "不 可以",
            "approve?",
            "ａｐｐｒｏｖｅ",
            "同意\u{200b}",
            "同意拒绝",
            "null",
            "1",
        ] {
            assert_eq!(Decision::from_text(text), Decision::Reject, "{text:?}");
        }
    }

    #[test]
    fn the_offered_options_mean_what_they_say() {
        assert_eq!(
            OPTIONS.map(Decision::from_text),
            [Decision::Once, Decision::Always, Decision::Reject]
        );
    }
}
