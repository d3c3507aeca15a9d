//! Every way a hook can end, and the fail-closed table.
//!
//! [`Because`] is the closed list of ends; [`Verdict::new`] is the one place that turns an end into
//! an answer. An approval needs a rule, a remembered approval or an exact decision of a human; no
//! fault has that power.
//!
//! | end | mail-driven | interactive |
//! |---|---|---|
//! | rule, grant, earlier answer, decision 同意 or 一直同意 | approve | approve |
//! | plan mode; any other decision text | block | block |
//! | permanent failure: 4xx except 408 and 429, or a request over the size limit | block | block |
//! | the request was withdrawn or ran out on the gateway | block | block |
//! | the request changed between the question and the approval | block | block |
//! | temporary failure, time limit, signal, no usable settings, unreadable event, own error | block | nothing |
//!
//! Sources: seed 000 "fail closed", `B-8.2`, `B-8.2b`, `B-8.8`, `B-9.2`.

use alloc::string::String;

use super::event::Unreadable;
use super::text;
use crate::lang::Lang;

/// What the host is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The call may run.
    Approve,
    /// The call must not run; the model reads why.
    Block(String),
    /// Nothing: the host's own permission flow decides.
    NoOpinion,
}

/// An answer and the end that led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What the host is told.
    pub answer: Answer,
    /// Why.
    pub because: Because,
}

/// Who decided, and in which words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Person {
    /// The person's name, if the gateway told it.
    pub name: Option<String>,
    /// The note that the person wrote.
    pub note: Option<String>,
}

/// Every end of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Because {
    /// The event or the tool is none of the hook's business.
    NotOurs,
    /// The session's mode does without questions.
    FullMode,
    /// A mail tool of ours in a mail-driven session.
    OwnTool,
    /// A person approved this tool for the whole session earlier.
    Granted,
    /// A person approved this very call a moment ago, at its first event.
    Answered,
    /// The session may plan, not act.
    PlanMode,
    /// A person approved this call.
    ApprovedOnce(Person),
    /// A person approved this tool for the rest of the session.
    ApprovedAlways(Person),
    /// A person refused.
    Refused(Person),
    /// A person answered with a text that is none of the options; it counts as a refusal.
    Unclear(Person, String),
    /// The event cannot be read.
    Unreadable(Unreadable),
    /// The gateway cannot even be called: no key, or a setting that cannot be used; which.
    NotConfigured(String),
    /// The request is larger than the gateway takes, in bytes; nothing is asked in part.
    TooLarge(usize),
    /// The gateway refuses the request for good.
    GatewayRefused {
        /// HTTP status.
        status: u16,
        /// The gateway's words.
        message: String,
        /// The gateway's advice.
        suggestion: Option<String>,
    },
    /// The gateway cannot be reached or cannot serve; the last failure.
    Unreachable(String),
    /// Nobody answered within the limit, in milliseconds.
    TimedOut(u64),
    /// The request was withdrawn or ran out before anybody decided.
    Withdrawn,
    /// A person approved, but what would run is not what they were shown; what changed.
    Changed(String),
    /// The host ended the hook.
    Signal,
    /// An error of this program.
    Internal(String),
}

impl Verdict {
    /// The fail-closed table. `driven` says whether mail drives the session, `tool` is named in the
    /// reason if it is known.
    #[must_use]
    pub fn new(because: Because, driven: bool, tool: Option<&str>, lang: Lang) -> Self {
        let answer = match &because {
            Because::FullMode
            | Because::OwnTool
            | Because::Granted
            | Because::Answered
            | Because::ApprovedOnce(_)
            | Because::ApprovedAlways(_) => Answer::Approve,
            Because::NotOurs => Answer::NoOpinion,
            Because::PlanMode
            | Because::Refused(_)
            | Because::Unclear(..)
            | Because::TooLarge(_)
            | Because::GatewayRefused { .. }
            | Because::Changed(_)
            | Because::Withdrawn => Answer::Block(text::reason(&because, tool, lang)),
            Because::Unreadable(_)
            | Because::NotConfigured(_)
            | Because::Unreachable(_)
            | Because::TimedOut(_)
            | Because::Signal
            | Because::Internal(_) => {
                if driven {
                    Answer::Block(text::reason(&because, tool, lang))
                } else {
                    Answer::NoOpinion
                }
            }
        };
        Self { answer, because }
    }
}

impl Because {
    /// A stable word for logs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotOurs => "not-ours",
            Self::FullMode => "full-mode",
            Self::OwnTool => "own-tool",
            Self::Granted => "granted",
            Self::Answered => "answered",
            Self::PlanMode => "plan-mode",
            Self::ApprovedOnce(_) => "approved-once",
            Self::ApprovedAlways(_) => "approved-always",
            Self::Refused(_) => "refused",
            Self::Unclear(..) => "unclear-decision",
            Self::Unreadable(_) => "unreadable-event",
            Self::NotConfigured(_) => "not-configured",
            Self::TooLarge(_) => "request-too-large",
            Self::GatewayRefused { .. } => "permanent-failure",
            Self::Unreachable(_) => "temporary-failure",
            Self::TimedOut(_) => "timed-out",
            Self::Changed(_) => "request-changed",
            Self::Withdrawn => "withdrawn",
            Self::Signal => "signal",
            Self::Internal(_) => "internal-error",
        }
    }
}
