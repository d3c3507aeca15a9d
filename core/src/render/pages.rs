//! A document cut into pages of bounded rows, for views that show one page at a time.

use alloc::string::String;
use alloc::vec::Vec;

use super::document::{Document, Kind, Line};
use super::marks::Segment;

/// One row of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// How it is coloured. Lines of a patch have the kind that their first character says.
    pub kind: Kind,
    /// What stands in front of it: the gutter of its line, or `↳ ` for the rest of a line that is
    /// wider than the page.
    pub gutter: &'static str,
    /// Its text.
    pub segments: Vec<Segment>,
}

/// In front of the rest of a long line.
const CONTINUED: &str = "↳ ";

impl Row {
    /// Gutter and text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::from(self.gutter);
        text.extend(self.segments.iter().map(|segment| segment.text.as_str()));
        text
    }
}

/// The pages of `document`: at most `rows` rows of at most `columns` characters, gutter not
/// counted. There is always at least one page, and every line of the document is on exactly one or,
/// when it is wrapped, on consecutive rows. Marks are never cut. Zero counts as one; a mark that is
/// wider than the page has a row of its own.
#[must_use]
pub fn pages(document: &Document, rows: usize, columns: usize) -> Vec<Vec<Row>> {
    let mut patch = false;
    let mut all = Vec::new();
    for line in &document.lines {
        if line.kind == Kind::Heading {
            patch = line.body() == "[patch_text]";
        }
        wrap(line, tone(line, patch), columns.max(1), &mut all);
    }
    let mut pages: Vec<Vec<Row>> = Vec::new();
    let mut all = all.into_iter().peekable();
    while all.peek().is_some() {
        pages.push(all.by_ref().take(rows.max(1)).collect());
    }
    if pages.is_empty() {
        pages.push(Vec::new());
    }
    pages
}

fn tone(line: &Line, patch: bool) -> Kind {
    if !patch || line.kind != Kind::Text {
        return line.kind;
    }
    match line.segments.first().and_then(|segment| segment.text.chars().next()) {
        Some('+') => Kind::Added,
        Some('-') => Kind::Removed,
        _ => Kind::Text,
    }
}

fn wrap(line: &Line, kind: Kind, columns: usize, out: &mut Vec<Row>) {
    let mut row = Row { kind, gutter: line.kind.gutter(), segments: Vec::new() };
    let mut used = 0;
    let mut put = |row: &mut Row, used: &mut usize, text: &str, mark: bool| {
        let width = text.chars().count();
        if *used > 0 && *used + width > columns {
            let next = Row { kind, gutter: CONTINUED, segments: Vec::new() };
            out.push(core::mem::replace(row, next));
            *used = 0;
        }
        *used += width;
        match row.segments.last_mut() {
            Some(last) if last.mark == mark => last.text.push_str(text),
            _ => row.segments.push(Segment { mark, text: text.into() }),
        }
    };
    for segment in &line.segments {
        if segment.mark {
            // Neighbouring marks are one segment; each is kept whole.
            for mark in segment.text.split_inclusive(['⟧', '⇥']) {
                put(&mut row, &mut used, mark, true);
            }
        } else {
            let mut buffer = [0; 4];
            for c in segment.text.chars() {
                put(&mut row, &mut used, c.encode_utf8(&mut buffer), false);
            }
        }
    }
    out.push(row);
}
