//! A tool call and what goes with it, made into a document.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::document::{Document, Kind, Line, warnings};
use super::marks::{Composed, Danger, Tally, danger, mark};
use super::{LIMIT, diff};
use crate::digest::{CallDigest, Operand, hex};
use crate::exact::Value;
use crate::lang::Lang;

/// Characters that have a meaning in a heading, marked in the names of fields.
pub(super) const IN_HEADINGS: [char; 6] = ['[', ']', '→', '/', '@', '='];
/// The heading of an input that is no object.
pub(super) const WHOLE: &str = "=";
/// Stands in a heading for the file on disk.
pub(super) const ON_DISK: &str = "@";
/// The fields of an edit.
pub(super) const EDIT: (&str, &str) = ("old_string", "new_string");
/// The field with several edits.
pub(super) const EDITS: &str = "edits";
/// How the lines of [`Kind::Bound`] that name a file begin.
pub(super) const BOUND_HASH: &str = "bound sha256:";
/// The same for a file that was not there.
pub(super) const BOUND_ABSENT: &str = "bound absent ";

/// Empty lines in a row that deserve a warning: more than a screen can be meant to hide something.
const BLANK_LINES: usize = 20;

/// Fields that are shown before the others.
const FIRST: [&str; 3] = ["file_path", "notebook_path", "command"];

/// A fact about the call, shown above its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Label {
    /// The tool's name.
    Tool,
    /// The working directory.
    Directory,
    /// The agent in whose name the call is made.
    Agent,
    /// The sub-agent that makes the call.
    SubAgent,
    /// The mail session that drives the agent.
    MailSession,
    /// The host's session.
    Session,
    /// The task in which the question arises (`B-8.4`).
    Task,
    /// Who gave the task (`B-8.4`).
    TaskFrom,
    /// The id of the call.
    Call,
    /// The host's own risk level.
    Risk,
    /// Why the host asks.
    Reason,
    /// How long an answer counts.
    TimeLimit,
}

impl Label {
    /// All labels.
    pub const ALL: [Self; 12] = [
        Self::Tool,
        Self::Directory,
        Self::Agent,
        Self::SubAgent,
        Self::MailSession,
        Self::Session,
        Self::Task,
        Self::TaskFrom,
        Self::Call,
        Self::Risk,
        Self::Reason,
        Self::TimeLimit,
    ];

    /// The word in front of the colon.
    #[must_use]
    pub const fn name(self, lang: Lang) -> &'static str {
        let (zh, en) = match self {
            Self::Tool => ("工具", "tool"),
            Self::Directory => ("目录", "directory"),
            Self::Agent => ("Agent", "agent"),
            Self::SubAgent => ("子 Agent", "sub-agent"),
            Self::MailSession => ("邮件会话", "mail session"),
            Self::Session => ("ZCode 会话", "ZCode session"),
            Self::Task => ("触发任务", "task"),
            Self::TaskFrom => ("任务来自", "task from"),
            Self::Call => ("调用 id", "call id"),
            Self::Risk => ("风险", "risk"),
            Self::Reason => ("ZCode 给出的原因", "ZCode's reason"),
            Self::TimeLimit => ("时限", "time limit"),
        };
        lang.pick(zh, en)
    }

    /// The label that `line` begins with, and the rest behind the colon.
    pub(super) fn split(line: &str) -> Option<(Self, &str)> {
        Self::ALL.into_iter().find_map(|label| {
            [Lang::Zh, Lang::En].into_iter().find_map(|lang| {
                let rest = line.strip_prefix(label.name(lang))?.strip_prefix(':')?;
                Some((label, rest))
            })
        })
    }
}

/// Whether `line` is one of the facts.
pub(super) fn is_fact(line: &str) -> bool {
    Label::split(line).is_some()
}

/// What is to be shown.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The working directory.
    pub cwd: &'a str,
    /// The tool's input.
    pub input: &'a Value,
    /// Further facts, in the order to show them.
    pub facts: &'a [(Label, &'a str)],
    /// What stands on disk where a `Write` goes, if that is known and text.
    pub before: Option<&'a str>,
    /// Risk hints in the reader's language, see [`crate::hints`].
    pub hints: &'a [&'a str],
    /// Remarks in the reader's language.
    pub notes: &'a [String],
    /// The files that the decision is bound to.
    pub operands: &'a [Operand],
    /// The digest line.
    pub digest: Option<CallDigest>,
    /// The reader's language.
    pub lang: Lang,
}

/// The rendering would have more than [`LIMIT`] bytes; a part of it is not shown in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// How many bytes it would have.
    pub bytes: usize,
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes to show, at most {LIMIT} can be; split the call", self.bytes)
    }
}

impl core::error::Error for TooLong {}

/// The document of `request`.
///
/// # Errors
/// [`TooLong`], and then there is no rendering at all.
pub fn render(request: &Request<'_>) -> Result<Document, TooLong> {
    let lang = request.lang;
    let mut tally = Tally::default();
    let mut lines = Vec::new();
    let tool = [(Label::Tool, request.tool), (Label::Directory, request.cwd)];
    for (label, value) in tool.iter().chain(request.facts) {
        let mut line = Composed::default();
        line.own(label.name(lang)).own(":");
        if !value.is_empty() {
            line.own(" ").text(value, &[]);
        }
        lines.push(Line { kind: Kind::Fact, segments: line.segments(&mut tally) });
    }

    let mut body = Vec::new();
    put_input(request, &mut body, &mut tally);
    for operand in request.operands {
        let mut line = Composed::default();
        match operand.sha256 {
            Some(sha256) => line.own(BOUND_HASH).own(&hex(&sha256)).own(" "),
            None => line.own(BOUND_ABSENT),
        };
        line.text(&operand.path, &[]);
        body.push(Line { kind: Kind::Bound, segments: line.segments(&mut tally) });
    }

    lines.extend(warnings(&tally, lang));
    let mut unworried = Tally::default();
    for hint in request.hints {
        lines.push(Line { kind: Kind::Hint, segments: mark(hint, &[], &mut unworried) });
    }
    for note in request.notes {
        lines.push(Line { kind: Kind::Note, segments: mark(note, &[], &mut unworried) });
    }
    lines.append(&mut body);
    if let Some(digest) = request.digest {
        lines.push(Line::own(Kind::Bound, digest.line()));
    }
    let document = Document { lines };
    let bytes = document.text().len();
    if bytes > LIMIT { Err(TooLong { bytes }) } else { Ok(document) }
}

fn put_input(request: &Request<'_>, out: &mut Vec<Line>, tally: &mut Tally) {
    let Value::Object(members) = request.input else {
        put_json(WHOLE, "", request.input, out, tally);
        return;
    };
    let before = request.before.filter(|_| request.tool == "Write");
    let mut ordered: Vec<&(String, Value)> = members.iter().collect();
    ordered.sort_by_key(|(name, _)| FIRST.iter().position(|first| first == name).unwrap_or(9));
    for (name, value) in ordered {
        match value {
            Value::Text(new) if name == "content" && before.is_some() => {
                put_diff((ON_DISK, name), before.unwrap_or_default(), new, out, tally);
            }
            Value::List(edits) if name == EDITS && are_edits(edits) => {
                for (at, edit) in edits.iter().enumerate() {
                    let Value::Object(members) = edit else { continue };
                    let prefix = format!("{EDITS}/{at}/");
                    for (name, value) in members {
                        put_member(&prefix, members, name, value, out, tally);
                    }
                }
            }
            _ => put_member("", members, name, value, out, tally),
        }
    }
}

/// Whether every element is an object with an old and a new text.
fn are_edits(items: &[Value]) -> bool {
    let is_edit = |item: &Value| {
        let text = |key| item.get(key).and_then(Value::as_text);
        text(EDIT.0).is_some() && text(EDIT.1).is_some()
    };
    !items.is_empty() && items.iter().all(is_edit)
}

/// One field; the two fields of an edit as one diff, at the place of the old text.
fn put_member(
    prefix: &str,
    all: &[(String, Value)],
    name: &str,
    value: &Value,
    out: &mut Vec<Line>,
    tally: &mut Tally,
) {
    let text =
        |key: &str| all.iter().find(|(name, _)| name == key).and_then(|(_, value)| value.as_text());
    let edit = text(EDIT.0).zip(text(EDIT.1));
    match (value, edit) {
        (_, Some((old, new))) if name == EDIT.0 => {
            let names = (format!("{prefix}{}", EDIT.0), format!("{prefix}{}", EDIT.1));
            put_diff((&names.0, &names.1), old, new, out, tally);
        }
        (_, Some(_)) if name == EDIT.1 => {}
        (Value::Text(text), _) => {
            let mut heading = Composed::default();
            heading.own("[").own(prefix).text(name, &IN_HEADINGS).own("]");
            out.push(Line { kind: Kind::Heading, segments: heading.segments(tally) });
            let lines = text.split('\n').map(|line| (Kind::Text, line));
            put_lines(lines, out, tally);
        }
        _ => put_json(prefix, name, value, out, tally),
    }
}

fn put_json(prefix: &str, name: &str, value: &Value, out: &mut Vec<Line>, tally: &mut Tally) {
    let mut heading = Composed::default();
    heading.own("[").own(prefix).text(name, &IN_HEADINGS).own("] ").text(&value.to_json(), &[]);
    out.push(Line { kind: Kind::Heading, segments: heading.segments(tally) });
    warn_of_escapes(value, tally);
}

/// Control characters that JSON shows as escapes deserve the warning of all others. Line ends and
/// tabs are what texts are made of.
fn warn_of_escapes(value: &Value, tally: &mut Tally) {
    let mut text = |text: &str| {
        let escaped = |c: &char| *c < ' ' && !matches!(c, '\n' | '\t');
        for (c, why) in text.chars().filter(escaped).filter_map(|c| Some((c, danger(c)?))) {
            tally.add(why, c);
        }
    };
    match value {
        Value::Text(value) => text(value),
        Value::List(items) => items.iter().for_each(|item| warn_of_escapes(item, tally)),
        Value::Object(members) => {
            members.iter().for_each(|(key, _)| text(key));
            members.iter().for_each(|(_, item)| warn_of_escapes(item, tally));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// `names` are the bridge's own words.
fn put_diff(names: (&str, &str), old: &str, new: &str, out: &mut Vec<Line>, tally: &mut Tally) {
    out.push(Line::own(Kind::Heading, format!("[{} → {}]", names.0, names.1)));
    put_lines(diff::lines(old, new).into_iter(), out, tally);
}

fn put_lines<'t>(
    lines: impl Iterator<Item = (Kind, &'t str)>,
    out: &mut Vec<Line>,
    tally: &mut Tally,
) {
    let mut blank = 0;
    for (kind, line) in lines {
        blank = if line.chars().all(char::is_whitespace) { blank + 1 } else { 0 };
        if blank == BLANK_LINES {
            tally.add(Danger::Padding, '\n');
        }
        out.push(Line { kind, segments: mark(line, &[], tally) });
    }
}
