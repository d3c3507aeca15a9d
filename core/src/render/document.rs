//! Lines with kinds, their plain text, and the way back from the text.

use alloc::string::String;
use alloc::vec::Vec;

use super::marks::{Danger, Segment, Tally, resegment};
use crate::digest::LINE_START;
use crate::lang::Lang;

/// What a line is, for colours and for a reader who cannot see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `name: value` above the input.
    Fact,
    /// Something about the input is not as it looks.
    Warning,
    /// A risk hint; hints never decide.
    Hint,
    /// A remark of the bridge, such as a file that could not be bound.
    Note,
    /// Names the field whose lines follow.
    Heading,
    /// A line of the input.
    Text,
    /// A line that the call adds.
    Added,
    /// A line that the call removes.
    Removed,
    /// A line that stays.
    Same,
    /// A file that the decision is bound to, or the digest line.
    Bound,
}

impl Kind {
    /// What stands in front of such a line in the plain text.
    #[must_use]
    pub const fn gutter(self) -> &'static str {
        match self {
            Self::Fact | Self::Heading | Self::Bound => "",
            Self::Warning => "⚠ ",
            Self::Hint => "⚑ ",
            Self::Note => "ⓘ ",
            Self::Text => "| ",
            Self::Added => "+ ",
            Self::Removed => "- ",
            Self::Same => "  ",
        }
    }

    /// Whether such a line shows part of the input.
    #[must_use]
    pub const fn shows_input(self) -> bool {
        matches!(self, Self::Heading | Self::Text | Self::Added | Self::Removed | Self::Same)
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What it is.
    pub kind: Kind,
    /// Its text behind the gutter; empty for an empty line.
    pub segments: Vec<Segment>,
}

/// A rendering.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// All lines from top to bottom.
    pub lines: Vec<Line>,
}

impl Document {
    /// The plain text: each line behind its gutter, with a line feed between two.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (at, line) in self.lines.iter().enumerate() {
            if at > 0 {
                out.push('\n');
            }
            line.put(&mut out);
        }
        out
    }

    /// The document of a text that [`Document::text`] made, or of any other text: what is not one
    /// of our lines is shown as [`Kind::Text`], every raw dangerous character is marked, and if
    /// there was one, warnings in `lang` come first.
    #[must_use]
    pub fn parse(text: &str, lang: Lang) -> Self {
        let mut tally = Tally::default();
        let mut lines = Vec::new();
        for line in text.split('\n') {
            let (kind, body) = split_gutter(line);
            lines.push(Line { kind, segments: resegment(body, &mut tally) });
        }
        let mut all = warnings(&tally, lang);
        all.append(&mut lines);
        Self { lines: all }
    }

    /// Whether a person has something to be careful about.
    #[must_use]
    pub fn has_warnings(&self) -> bool {
        self.lines.iter().any(|line| line.kind == Kind::Warning)
    }
}

impl Line {
    /// A line of the bridge's own words.
    #[must_use]
    pub fn own(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, segments: Vec::from([Segment { mark: false, text: text.into() }]) }
    }

    /// The text behind the gutter.
    #[must_use]
    pub fn body(&self) -> String {
        self.segments.iter().map(|segment| segment.text.as_str()).collect()
    }

    fn put(&self, out: &mut String) {
        let gutter = self.kind.gutter();
        // An empty line has no blank behind its gutter that somebody could trim away.
        let empty = self.segments.iter().all(|segment| segment.text.is_empty());
        out.push_str(if empty { gutter.trim_end() } else { gutter });
        for segment in &self.segments {
            out.push_str(&segment.text);
        }
    }
}

/// What a line of a text is, and what stands behind its gutter.
pub(super) fn split_gutter(line: &str) -> (Kind, &str) {
    const GUTTERS: [Kind; 7] =
        [Kind::Warning, Kind::Hint, Kind::Note, Kind::Text, Kind::Added, Kind::Removed, Kind::Same];
    for kind in GUTTERS {
        let gutter = kind.gutter();
        if let Some(body) = line.strip_prefix(gutter) {
            return (kind, body);
        }
        if line == gutter.trim_end() {
            return (kind, "");
        }
    }
    if line.starts_with('[') && line.contains(']') {
        (Kind::Heading, line)
    } else if line.starts_with("bound ") || line.starts_with(LINE_START) {
        (Kind::Bound, line)
    } else if super::request::is_fact(line) {
        (Kind::Fact, line)
    } else {
        (Kind::Text, line)
    }
}

/// One warning line for each kind of danger that was found.
pub(super) fn warnings(tally: &Tally, lang: Lang) -> Vec<Line> {
    let mut lines = Vec::new();
    for danger in Danger::ALL {
        let count = tally.count(danger);
        if count > 0 {
            let named = tally.named(danger);
            lines.push(Line::own(Kind::Warning, warning(danger, count, &named, lang)));
        }
    }
    lines
}

fn warning(danger: Danger, count: usize, named: &str, lang: Lang) -> String {
    let (zh, en) = match danger {
        Danger::Terminal => ("个操纵终端的控制符", "terminal control sequences"),
        Danger::Control => ("个控制字符", "control characters"),
        Danger::Direction => ("个改变文字方向的字符", "characters that change the text direction"),
        Danger::Invisible => ("个不可见字符", "invisible characters"),
        Danger::Lookalike => ("个形似其它字符的字符", "characters that imitate others"),
        Danger::Space => ("个异形空白", "unusual spaces"),
        Danger::Combining => ("个叠加字符", "piled-up combining characters"),
        Danger::Unassigned => ("个未定义或私用字符", "undefined or private characters"),
        Danger::Padding => ("处长空白或行尾空格", "long gaps or trailing spaces"),
        Danger::Mark => ("个与标记符号相同的字符", "characters that are also used for marks"),
    };
    match lang {
        Lang::Zh => alloc::format!("{count} {zh}（{named}），已换成可见标记"),
        Lang::En => alloc::format!("{count} {en} ({named}), shown as visible marks"),
    }
}
