//! The way back: a text that [`super::render`] made, read as the request that it shows.

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::document::{Kind, split_gutter};
use super::marks::unmark;
use super::request::{BOUND_ABSENT, BOUND_HASH, EDITS, Label, ON_DISK, WHOLE};
use crate::digest::{Call, CallDigest, LINE_START, Operand};
use crate::exact::Value;

/// What a rendering says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unrendered {
    /// The tool's name.
    pub tool: String,
    /// The working directory.
    pub cwd: String,
    /// The other facts, in their order.
    pub facts: Vec<(Label, String)>,
    /// The tool's input.
    pub input: Value,
    /// What stood on disk, when a `Write` was shown as a diff.
    pub before: Option<String>,
    /// The files that the decision is bound to.
    pub operands: Vec<Operand>,
    /// The digest line's digest.
    pub digest: Option<CallDigest>,
}

impl Unrendered {
    /// The digest of what is shown, to be compared with [`Unrendered::digest`]: only when the two
    /// agree does the text show the call that its digest line names.
    #[must_use]
    pub fn shown_digest(&self) -> CallDigest {
        let fact = |label| {
            self.facts.iter().find(|(known, _)| *known == label).map(|(_, value)| value.as_str())
        };
        CallDigest::of(&Call {
            tool: &self.tool,
            input: &self.input,
            cwd: &self.cwd,
            session: fact(Label::MailSession).or_else(|| fact(Label::Session)),
            agent: fact(Label::Agent),
            operands: &self.operands,
        })
    }
}

/// The text was not made by [`super::render`], or something was changed or masked in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRendering {
    /// The line, counted from one.
    pub line: usize,
    /// What is wrong with it.
    pub why: &'static str,
}

impl fmt::Display for NoRendering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl core::error::Error for NoRendering {}

/// The request that `text` shows.
///
/// # Errors
/// [`NoRendering`] with the first line that no rendering has.
pub fn unrender(text: &str) -> Result<Unrendered, NoRendering> {
    let mut reader = Reader::default();
    for (at, line) in text.split('\n').enumerate() {
        reader.line(line).map_err(|why| NoRendering { line: at + 1, why })?;
    }
    let line = text.split('\n').count();
    reader.finish().map_err(|why| NoRendering { line, why })
}

/// Where in its field the reader stands.
enum Open {
    Text { path: String, lines: Vec<String> },
    Diff { old: String, new: String, removed: Vec<String>, added: Vec<String> },
}

#[derive(Default)]
struct Reader {
    facts: Vec<(Label, String)>,
    fields: Vec<(String, Value)>,
    whole: Option<Value>,
    before: Option<String>,
    operands: Vec<Operand>,
    digest: Option<CallDigest>,
    open: Option<Open>,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), &'static str> {
        if self.digest.is_some() {
            return Err("a line after the digest line");
        }
        let (kind, body) = split_gutter(line);
        let text = || unmark(body).map_err(|_| "a character or mark that no rendering has");
        match (kind, &mut self.open) {
            (Kind::Fact, None) if self.fields.is_empty() => {
                let text = text()?;
                let (label, value) = Label::split(&text).ok_or("a fact without a label")?;
                let value = match value.strip_prefix(' ') {
                    Some(value) => value,
                    None if value.is_empty() => value,
                    None => return Err("a fact without a blank behind its colon"),
                };
                self.facts.push((label, value.to_owned()));
            }
            (Kind::Warning | Kind::Hint | Kind::Note, None) if self.fields.is_empty() => {}
            (Kind::Heading, _) => {
                self.close();
                self.heading(body)?;
            }
            (Kind::Text, Some(Open::Text { lines, .. })) if line.starts_with('|') => {
                lines.push(text()?);
            }
            (Kind::Same, Some(Open::Diff { removed, added, .. })) => {
                let text = text()?;
                removed.push(text.clone());
                added.push(text);
            }
            (Kind::Removed, Some(Open::Diff { removed, .. })) => removed.push(text()?),
            (Kind::Added, Some(Open::Diff { added, .. })) => added.push(text()?),
            (Kind::Bound, _) => {
                self.close();
                self.bound(&text()?)?;
            }
            _ => return Err("a line of this kind cannot stand here"),
        }
        Ok(())
    }

    fn heading(&mut self, body: &str) -> Result<(), &'static str> {
        const NO: &str = "a heading that no rendering has";
        if !self.operands.is_empty() {
            return Err("a field after the bound files");
        }
        let (name, rest) = body.strip_prefix('[').and_then(|b| b.split_once(']')).ok_or(NO)?;
        if let Some((old, new)) = name.split_once(" → ") {
            if !rest.is_empty() {
                return Err(NO);
            }
            let (removed, added) = (Vec::new(), Vec::new());
            self.open = Some(Open::Diff { old: old.into(), new: new.into(), removed, added });
            return Ok(());
        }
        if rest.is_empty() {
            self.open = Some(Open::Text { path: name.into(), lines: Vec::new() });
            return Ok(());
        }
        let json = rest.strip_prefix(' ').and_then(|json| unmark(json).ok()).ok_or(NO)?;
        let value = Value::parse(&json).map_err(|_| "a field that is not JSON")?;
        if value.to_json() != json {
            return Err("a field that is not canonical JSON");
        }
        if name == WHOLE {
            self.whole = Some(value);
        } else {
            self.fields.push((name.into(), value));
        }
        Ok(())
    }

    fn bound(&mut self, text: &str) -> Result<(), &'static str> {
        const NO: &str = "a bound file that no rendering has";
        if text.starts_with(LINE_START) {
            self.digest = Some(CallDigest::from_line(text).ok_or("a malformed digest line")?);
        } else if let Some(path) = text.strip_prefix(BOUND_ABSENT) {
            self.operands.push(Operand { path: path.into(), sha256: None });
        } else {
            let rest = text.strip_prefix(BOUND_HASH).ok_or(NO)?;
            let (digits, path) = rest.split_once(' ').ok_or(NO)?;
            let CallDigest(sha256) = CallDigest::from_hex(digits).ok_or(NO)?;
            self.operands.push(Operand { path: path.into(), sha256: Some(sha256) });
        }
        Ok(())
    }

    fn close(&mut self) {
        match self.open.take() {
            None => {}
            Some(Open::Text { path, lines }) => {
                self.fields.push((path, Value::Text(lines.join("\n"))));
            }
            Some(Open::Diff { old, new, removed, added }) => {
                if old == ON_DISK {
                    self.before = Some(removed.join("\n"));
                } else {
                    self.fields.push((old, Value::Text(removed.join("\n"))));
                }
                self.fields.push((new, Value::Text(added.join("\n"))));
            }
        }
    }

    fn finish(mut self) -> Result<Unrendered, &'static str> {
        self.close();
        let mut facts = self.facts.into_iter();
        let mut expect = |expected, why| match facts.next() {
            Some((label, value)) if label == expected => Ok(value),
            _ => Err(why),
        };
        let tool = expect(Label::Tool, "the tool is missing")?;
        let cwd = expect(Label::Directory, "the directory is missing")?;
        let input = match self.whole {
            Some(value) if self.fields.is_empty() => value,
            Some(_) => return Err("both a whole input and fields"),
            None => assemble(self.fields)?,
        };
        Ok(Unrendered {
            tool,
            cwd,
            facts: facts.collect(),
            input,
            before: self.before,
            operands: self.operands,
            digest: self.digest,
        })
    }
}

/// The object of fields at `name` and `edits/N/name`.
fn assemble(fields: Vec<(String, Value)>) -> Result<Value, &'static str> {
    let mut members: Vec<(String, Value)> = Vec::new();
    let mut edits: Vec<Vec<(String, Value)>> = Vec::new();
    for (path, value) in fields {
        let target = match path.strip_prefix(EDITS).and_then(|rest| rest.strip_prefix('/')) {
            None => (&mut members, path.as_str()),
            Some(rest) => {
                let (index, name) = rest.split_once('/').ok_or("a path that no rendering has")?;
                let index: usize = index.parse().map_err(|_| "an edit without a number")?;
                if index == edits.len() {
                    edits.push(Vec::new());
                }
                (edits.get_mut(index).ok_or("an edit out of order")?, name)
            }
        };
        let name = unmark(target.1).map_err(|_| "a field's name that no rendering has")?;
        if target.0.iter().any(|(known, _)| *known == name) {
            return Err("a field twice");
        }
        target.0.push((name, value));
    }
    if !edits.is_empty() {
        if members.iter().any(|(name, _)| name == EDITS) {
            return Err("a field twice");
        }
        let edits = edits.into_iter().map(Value::object).collect();
        members.push((EDITS.to_owned(), Value::List(edits)));
    }
    Ok(Value::object(members))
}
