//! Where a new child of an object or array goes, and how it is written there.

use std::ops::Range;

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, CommentCollectionStrategy};
use serde_json::Value as Json;

use super::{Refusal, at, options, unreadable};

/// A parsed file with what its layout says.
pub(super) struct Doc<'t> {
    pub(super) text: &'t str,
    value: Option<Value<'t>>,
    tokens: Vec<TokenAndRange<'t>>,
    /// The line end in use.
    line_end: &'static str,
    /// One step of indentation.
    unit: String,
    /// Whether a space follows a colon, and with it a comma on the same line.
    spaced: bool,
}

impl<'t> Doc<'t> {
    pub(super) fn parse(text: &'t str) -> Result<Self, Refusal> {
        let collect =
            CollectOptions { comments: CommentCollectionStrategy::AsTokens, tokens: true };
        let parsed = jsonc_parser::parse_to_ast(text, &collect, &options())
            .map_err(|error| unreadable(text, &error))?;
        let tokens = parsed.tokens.unwrap_or_default();
        let colon = tokens.iter().find(|token| token.token == Token::Colon);
        let spaced =
            colon.is_none_or(|colon| text[colon.range.end..].starts_with([' ', '\t', '\r', '\n']));
        let mut doc = Self {
            text,
            value: parsed.value,
            tokens,
            line_end: line_end(text),
            unit: "  ".to_owned(),
            spaced,
        };
        doc.unit = doc.indentation().unwrap_or(doc.unit);
        Ok(doc)
    }

    /// The object at the top; `None` for a file without a value.
    pub(super) fn root(&self) -> Result<Option<&Object<'t>>, Refusal> {
        match &self.value {
            None => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object)),
            Some(_) => {
                let start = self.tokens.iter().find(|token| !is_comment(&token.token));
                let start = start.map_or(0, |token| token.range.start);
                Err(at(self.text, start, "a configuration is an object, {...}"))
            }
        }
    }

    pub(super) fn json(&self) -> Json {
        self.value.clone().map_or(Json::Null, Into::into)
    }

    /// A file without a value, with `value` behind whatever comments it has.
    pub(super) fn whole(&self, value: &Json) -> String {
        let mut out = self.text.to_owned();
        if !out.is_empty() && !out.ends_with(['\n', '\r']) {
            out.push_str(self.line_end);
        }
        out.push_str(&self.render(value, Some("")));
        out.push_str(self.line_end);
        out
    }

    /// What the first child of the root that begins a line is indented by.
    fn indentation(&self) -> Option<String> {
        let Some(Value::Object(root)) = &self.value else { return None };
        let first = root.properties.iter().find(|child| self.begins_line(child.range.start))?;
        let indent = self.line_indent(first.range.start);
        (!indent.is_empty()).then(|| indent.to_owned())
    }

    fn line_start(&self, offset: usize) -> usize {
        self.text[..offset].rfind(['\n', '\r']).map_or(0, |at| at + 1)
    }

    fn begins_line(&self, offset: usize) -> bool {
        let start = self.line_start(offset);
        start > 0 && self.text[start..offset].chars().all(char::is_whitespace)
    }

    fn line_indent(&self, offset: usize) -> &str {
        let line = &self.text[self.line_start(offset)..];
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    }

    /// The end of the comma that follows a child.
    fn comma_after(&self, offset: usize) -> Option<usize> {
        let next = self
            .tokens
            .iter()
            .find(|token| token.range.start >= offset && !is_comment(&token.token))?;
        (next.token == Token::Comma).then_some(next.range.end)
    }

    /// The end of the comments that begin on the line of `offset`.
    fn after_comments(&self, offset: usize) -> usize {
        let mut end = offset;
        for token in self.tokens.iter().filter(|token| token.range.start >= offset) {
            let same_line = !self.text[end..token.range.start].contains(['\n', '\r']);
            if !is_comment(&token.token) || !same_line {
                break;
            }
            end = token.range.end;
        }
        end
    }

    /// Writes a value; with an indentation over several lines, else on one.
    fn render(&self, value: &Json, indent: Option<&str>) -> String {
        let space = if self.spaced { " " } else { "" };
        match value {
            Json::Object(map) => {
                let members = map.iter().map(|(name, value)| {
                    let inner = indent.map(|indent| format!("{indent}{}", self.unit));
                    let value = self.render(value, inner.as_deref());
                    format!("{}:{space}{value}", Json::from(name.as_str()))
                });
                let members: Vec<String> = members.collect();
                match indent {
                    Some(indent) => {
                        let (end, unit) = (self.line_end, &self.unit);
                        let inner = members.join(&format!(",{end}{indent}{unit}"));
                        format!("{{{end}{indent}{unit}{inner}{end}{indent}}}")
                    }
                    None => format!("{{{}}}", members.join(&format!(",{space}"))),
                }
            }
            Json::Array(items) => {
                let items: Vec<String> =
                    items.iter().map(|item| self.render(item, indent)).collect();
                format!("[{}]", items.join(&format!(",{space}")))
            }
            plain => plain.to_string(),
        }
    }
}

/// The text of `doc` with a new last child in the container at `range`, whose children are
/// `children`. A name makes it a property.
pub(super) fn insert(
    doc: &Doc<'_>,
    range: jsonc_parser::common::Range,
    children: &[Range<usize>],
    name: Option<&str>,
    value: &Json,
) -> String {
    let space = if doc.spaced { " " } else { "" };
    let child = |indent: Option<&str>| {
        let value = doc.render(value, indent);
        name.map_or_else(|| value.clone(), |name| format!("{}:{space}{value}", Json::from(name)))
    };
    let (open, close) = (range.start + 1, range.end - 1);
    let inner = &doc.text[open..close];
    let line_end = doc.line_end;
    let mut pieces: Vec<(usize, String)> = Vec::new();
    if let Some(last) = children.last() {
        let comma = doc.comma_after(last.end).filter(|end| *end <= close);
        if doc.begins_line(last.start) {
            let indent = doc.line_indent(last.start).to_owned();
            if comma.is_none() {
                pieces.push((last.end, ",".to_owned()));
            }
            let end = doc.after_comments(comma.unwrap_or(last.end));
            let trailing = if comma.is_some() { "," } else { "" };
            let child = child(Some(&indent));
            pieces.push((end, format!("{line_end}{indent}{child}{trailing}")));
        } else if let Some(comma) = comma {
            pieces.push((comma, format!("{space}{},", child(None))));
        } else {
            pieces.push((last.end, format!(",{space}{}", child(None))));
        }
    } else if inner.contains(['\n', '\r']) {
        let end = open + inner.trim_end().len();
        let indent = format!("{}{}", doc.line_indent(close), doc.unit);
        pieces.push((end, format!("{line_end}{indent}{}", child(Some(&indent)))));
    } else if inner.is_empty() && name.is_some() && is_laid_out(doc, range) {
        let outer = doc.line_indent(range.start).to_owned();
        let indent = format!("{outer}{}", doc.unit);
        let child = child(Some(&indent));
        pieces.push((open, format!("{line_end}{indent}{child}{line_end}{outer}")));
    } else {
        pieces.push((open, child(None)));
    }
    let mut out = String::with_capacity(doc.text.len() + 256);
    let mut from = 0;
    for (offset, piece) in pieces {
        out.push_str(&doc.text[from..offset]);
        out.push_str(&piece);
        from = offset;
    }
    out.push_str(&doc.text[from..]);
    out
}

/// Whether an empty object may be opened over several lines: it is all there is, or it stands in a
/// file that has more than one line of JSON.
fn is_laid_out(doc: &Doc<'_>, range: jsonc_parser::common::Range) -> bool {
    let Some(Value::Object(root)) = &doc.value else { return false };
    range == root.range || doc.text[root.range.start..root.range.end].contains(['\n', '\r'])
}

fn line_end(text: &str) -> &'static str {
    match text.find(['\n', '\r']) {
        Some(at) if text[at..].starts_with("\r\n") => "\r\n",
        Some(at) if text[at..].starts_with('\r') => "\r",
        _ => "\n",
    }
}

const fn is_comment(token: &Token<'_>) -> bool {
    matches!(token, Token::CommentLine(_) | Token::CommentBlock(_))
}
