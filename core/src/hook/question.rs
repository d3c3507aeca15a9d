//! What a person is shown: one question and its context.
//!
//! Complete or not at all: the context is [`crate::render`]'s rendering of the whole call, and a
//! request that would exceed the gateway's limit is never sent (faults row 13). Its last line is the
//! digest that binds the decision to the call and to the files that the call runs (row 8).

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use super::event::{ToolEvent, ToolInput, Unreadable};
use super::outcome::Because;
use super::text::{span_en, span_zh};
use crate::digest::{Call, CallDigest, Operand};
use crate::exact::Value;
use crate::hints;
use crate::lang::Lang;
use crate::operands;
use crate::render::{Label, Request, render, visible};

/// Most bytes of a JSON body that the gateway takes; larger requests are not sent.
pub const BODY_LIMIT: usize = 1024 * 1024;

/// Longest tool name that the question quotes whole, in bytes; the context always has all of it.
const NAME_LIMIT: usize = 100;

/// Who asks, for how long.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'a> {
    /// The agent's name in AgentMail.
    pub agent: Option<&'a str>,
    /// The mail session that drives the agent.
    pub mail_session: Option<&'a str>,
    /// How long the hook waits after asking, in milliseconds.
    pub wait_ms: u64,
    /// The language of both texts.
    pub lang: Lang,
}

/// The one-line question.
#[must_use]
pub fn question(event: &ToolEvent, asker: Asker<'_>) -> String {
    let mut tool = visible(&event.tool);
    if tool.len() > NAME_LIMIT {
        tool.truncate(tool.floor_char_boundary(NAME_LIMIT));
        tool.push('…');
    }
    match (asker.lang, asker.agent) {
        (Lang::Zh, Some(agent)) => format!("是否允许 {} 执行 {tool}？", visible(agent)),
        (Lang::Zh, None) => format!("是否允许 ZCode 执行 {tool}？"),
        (Lang::En, Some(agent)) => format!("May {} run {tool}?", visible(agent)),
        (Lang::En, None) => format!("May ZCode run {tool}?"),
    }
}

/// What a decision is bound to outside of the call itself: the files that it depends on, as they
/// are when the question is asked. Reading them is the runtime's work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binding {
    /// The files, in the order of [`Dependencies::files`].
    pub operands: Vec<Operand>,
    /// The text that a `Write` replaces, if there is a file and it is text.
    pub before: Option<String>,
    /// What could not be bound, in the reader's language.
    pub notes: Vec<String>,
}

impl Binding {
    /// The first file whose state in `now`, read again, is not what it was; also one that is new or
    /// can be read no more. This comparison is what stands between a changed file and an approval.
    #[must_use]
    pub fn drift<'a>(&'a self, now: &'a [Operand]) -> Option<&'a str> {
        let changed = now.iter().find(|operand| !self.operands.contains(operand));
        let gone = self.operands.iter().find(|operand| !now.contains(operand));
        changed.or(gone).map(|operand| operand.path.as_str())
    }
}

/// The files that a call depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependencies {
    /// Paths, relative to the call's directory unless absolute.
    pub files: Vec<String>,
    /// The file that a `Write` replaces; it is one of `files`.
    pub replaced: Option<String>,
    /// What may run without being bound, in words.
    pub notes: Vec<String>,
}

/// The files that a call depends on: the scripts that a shell command runs, and the file that a
/// `Write` replaces, whose loss is part of what is decided. An `Edit` names the text that it
/// replaces and fails when that is gone, so it depends on nothing else.
#[must_use]
pub fn dependencies(event: &ToolEvent, input: &ToolInput, lang: Lang) -> Dependencies {
    let Ok(value) = Value::parse(&input.raw) else { return Dependencies::default() };
    let text = |key: &str| value.get(key).and_then(Value::as_text);
    match event.tool.as_str() {
        "Bash" => {
            let found = operands::of_command(text("command").unwrap_or_default());
            let notes = found.unbound.iter().map(|unbound| unbound.text(lang)).collect();
            Dependencies { files: found.files, replaced: None, notes }
        }
        "Write" => {
            let replaced = text("file_path").map(String::from);
            Dependencies { files: replaced.iter().cloned().collect(), replaced, notes: Vec::new() }
        }
        _ => Dependencies::default(),
    }
}

/// A question's context and what it is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// The context.
    pub text: String,
    /// The digest in its last line.
    pub digest: CallDigest,
}

/// The full context of a question.
///
/// # Errors
/// Why nothing can be asked: the rendering would be too long, or the input cannot be read exactly.
pub fn context(
    event: &ToolEvent,
    input: &ToolInput,
    asker: Asker<'_>,
    binding: &Binding,
) -> Result<Shown, Because> {
    let lang = asker.lang;
    let value = Value::parse(&input.raw)
        .map_err(|error| Because::Unreadable(Unreadable::NotJson(error.to_string())))?;
    let cwd = event.cwd.as_deref().unwrap_or_default();
    let digest = CallDigest::of(&Call {
        tool: &event.tool,
        input: &value,
        cwd,
        session: asker.mail_session.or(event.session.as_deref()),
        agent: asker.agent,
        operands: &binding.operands,
    });
    let limit = match lang {
        Lang::Zh => format!("{}内答复有效，之后请求自动撤回", span_zh(asker.wait_ms)),
        Lang::En => {
            format!("answers count for {}, then the request is withdrawn", span_en(asker.wait_ms))
        }
    };
    let facts = [
        (Label::Agent, asker.agent),
        (Label::SubAgent, event.agent.as_deref()),
        (Label::MailSession, asker.mail_session),
        (Label::Session, event.session.as_deref()),
        (Label::Call, event.call_id.as_deref()),
        (Label::Risk, event.risk.as_deref()),
        (Label::Reason, event.why.as_deref()),
        (Label::TimeLimit, Some(limit.as_str())),
    ];
    let facts: Vec<(Label, &str)> =
        facts.into_iter().filter_map(|(label, value)| Some((label, value?))).collect();
    let hints = hints::of(&event.tool, &value, cwd);
    let hints: Vec<&str> = hints.iter().map(|hint| hint.text(lang)).collect();
    let document = render(&Request {
        tool: &event.tool,
        cwd,
        input: &value,
        facts: &facts,
        before: binding.before.as_deref(),
        hints: &hints,
        notes: &binding.notes,
        operands: &binding.operands,
        digest: Some(digest),
        lang,
    });
    let document = document.map_err(|long| Because::TooLarge(long.bytes))?;
    Ok(Shown { text: document.text(), digest })
}
