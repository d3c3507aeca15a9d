//! Characters that do not show as themselves, and the marks that stand for them.
//!
//! One line of text in, segments out: plain text, and marks such as `⟦U+202E⟧`, `⟦space×40⟧` and
//! `⇥` (a tab). The marks' own characters are marked where the input holds them, so [`unmark`]
//! gives exactly the input back. General categories and scripts come from the Unicode tables of
//! unicode-properties and unicode-script, look-alikes from UTS 39 by unicode-security.
//!
//! Faults row 12; laws in `tests/it/render.rs`.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory as _};
use unicode_script::{Script, UnicodeScript as _};

/// Opens a mark.
pub const OPEN: char = '⟦';
/// Closes a mark.
pub const CLOSE: char = '⟧';
/// Stands for a tab.
pub const TAB: char = '⇥';

/// Spaces in a row inside a line that are still shown as they are. Aligned code and tables have
/// gaps of this size; longer ones push text out of sight.
pub const SPACES_INSIDE: usize = 24;
/// Spaces at the start of a line that are still shown as they are: sixteen levels of indentation.
pub const SPACES_BEFORE: usize = 64;
/// Combining characters in a row that a letter may carry; scripts in use have at most two.
const COMBINING: usize = 2;

/// Why a character is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Danger {
    /// A control character, a lone carriage return among them; terminals obey these.
    Control,
    /// Starts a terminal sequence (ESC, CSI and its relatives).
    Terminal,
    /// Changes the direction in which text is shown.
    Direction,
    /// Takes no room: zero-width characters, fillers, language tags, variation selectors.
    Invisible,
    /// Looks like an ordinary space or line end and is none.
    Space,
    /// Looks like another character, usually of the Latin alphabet or the shell.
    Lookalike,
    /// A combining character that covers or piles up on its neighbour.
    Combining,
    /// No character at all, or one whose looks are private.
    Unassigned,
    /// One of the marks' own characters.
    Mark,
    /// Spaces that push text out of sight or stand unseen at the end of a line.
    Padding,
}

impl Danger {
    /// All of them, in the order in which warnings are given.
    pub const ALL: [Self; 10] = [
        Self::Terminal,
        Self::Control,
        Self::Direction,
        Self::Invisible,
        Self::Lookalike,
        Self::Space,
        Self::Combining,
        Self::Unassigned,
        Self::Padding,
        Self::Mark,
    ];
}

/// A piece of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Whether this is a mark.
    pub mark: bool,
    /// What is shown; never a character that [`danger`] names, except inside of nothing.
    pub text: String,
}

/// What was marked, for the warning lines: how often, and the first few code points.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    found: Vec<(Danger, usize, Vec<char>)>,
}

impl Tally {
    /// Code points that a warning names at most.
    const NAMED: usize = 6;

    pub(crate) fn add(&mut self, danger: Danger, c: char) {
        let at = self.found.iter().position(|(known, ..)| *known == danger);
        let at = at.unwrap_or_else(|| {
            self.found.push((danger, 0, Vec::new()));
            self.found.len() - 1
        });
        let (_, count, named) = &mut self.found[at];
        *count += 1;
        if named.len() < Self::NAMED && !named.contains(&c) {
            named.push(c);
        }
    }

    /// How often `danger` was found.
    #[must_use]
    pub fn count(&self, danger: Danger) -> usize {
        self.found.iter().find(|(known, ..)| *known == danger).map_or(0, |(_, count, _)| *count)
    }

    /// The first different code points of `danger`, as `U+XXXX` with commas between.
    #[must_use]
    pub fn named(&self, danger: Danger) -> String {
        let mut out = String::new();
        for (_, _, named) in self.found.iter().filter(|(known, ..)| *known == danger) {
            for c in named {
                let comma = if out.is_empty() { "" } else { ", " };
                // Writing to a String cannot fail.
                let _ = write!(out, "{comma}U+{:04X}", u32::from(*c));
            }
        }
        out
    }

    /// Whether nothing was marked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
}

/// Why `c` is never shown as it is, wherever it stands. `None` for tab and space, whose treatment
/// depends on the place, and for look-alikes, which depend on their neighbours.
#[must_use]
pub fn danger(c: char) -> Option<Danger> {
    if (' '..='~').contains(&c) || c == '\t' {
        return None;
    }
    Some(match c {
        '\u{1b}' | '\u{90}' | '\u{98}' | '\u{9b}'..='\u{9f}' => Danger::Terminal,
        OPEN | CLOSE | TAB => Danger::Mark,
        '\u{85}' => Danger::Space,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            Danger::Direction
        }
        // Shown as nothing or as a blank although their category is letter, mark or symbol.
        '\u{34f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{3164}'
        | '\u{ffa0}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{e0100}'..='\u{e01ef}'
        | '\u{1d159}' => Danger::Invisible,
        '\u{2800}' => Danger::Space,
        '\u{335}'..='\u{338}' => Danger::Combining,
        _ => match c.general_category() {
            GeneralCategory::Control => Danger::Control,
            GeneralCategory::Format => Danger::Invisible,
            GeneralCategory::SpaceSeparator
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator => Danger::Space,
            GeneralCategory::EnclosingMark => Danger::Combining,
            GeneralCategory::Unassigned
            | GeneralCategory::PrivateUse
            | GeneralCategory::Surrogate => Danger::Unassigned,
            _ => return None,
        },
    })
}

/// Marks one line. `also` are further characters to mark, for places where they have a meaning.
/// What was marked is counted in `tally`, tabs excepted: they are marked but no reason to worry.
#[must_use]
pub fn mark(line: &str, also: &[char], tally: &mut Tally) -> Vec<Segment> {
    let mut whole = Composed::default();
    whole.text(line, also);
    whole.segments(tally)
}

/// A line put together of the bridge's own words and of text from elsewhere, marked as a whole, so
/// that what is marked does not depend on where the pieces meet.
#[derive(Default)]
pub(super) struct Composed<'t>(Vec<Item<'t>>);

impl<'t> Composed<'t> {
    /// Appends text from elsewhere; each character of `also` is marked in it.
    pub(super) fn text(&mut self, text: &str, also: &[char]) -> &mut Self {
        let items = text.chars().map(|c| Item { c, mark: None, force: also.contains(&c) });
        self.0.extend(items);
        self
    }

    /// Appends words of the bridge.
    pub(super) fn own(&mut self, text: &str) -> &mut Self {
        self.text(text, &[])
    }

    /// The marked line.
    pub(super) fn segments(&self, tally: &mut Tally) -> Vec<Segment> {
        mark_items(&self.0, tally)
    }
}

/// Splits text that may already hold marks, from whatever source, into segments: known marks are
/// kept, everything raw that must not be shown is marked and counted. Of the text of [`mark`] it
/// makes the same segments again.
#[must_use]
pub fn resegment(line: &str, tally: &mut Tally) -> Vec<Segment> {
    let mut items = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let (length, item) = match known_mark(rest) {
            Some((length, c)) => (length, Item { c, mark: Some(&rest[..length]), force: false }),
            None => (c.len_utf8(), Item { c, mark: None, force: false }),
        };
        items.push(item);
        rest = &rest[length..];
    }
    mark_items(&items, tally)
}

/// A character, and its mark where it already has one.
struct Item<'t> {
    c: char,
    mark: Option<&'t str>,
    /// It is marked because it has a meaning where it stands.
    force: bool,
}

fn mark_items(items: &[Item<'_>], tally: &mut Tally) -> Vec<Segment> {
    let mut out = Writer { segments: Vec::new() };
    let chars: Vec<char> = items.iter().map(|item| item.c).collect();
    let mut twins = lookalikes(&chars).into_iter().peekable();
    let mut combining = COMBINING;
    let mut at = 0;
    while let Some(&Item { c, mark: known, force }) = items.get(at) {
        if c == ' ' && known.is_none() {
            let is_space = |item: &&Item<'_>| item.c == ' ' && item.mark.is_none();
            let run = items[at..].iter().take_while(is_space).count();
            let limit = if at == 0 { SPACES_BEFORE } else { SPACES_INSIDE };
            if at + run == items.len() || run > limit {
                tally.add(Danger::Padding, ' ');
                out.mark(&format!("{OPEN}space×{run}{CLOSE}"));
            } else {
                out.plain_run(&chars[at..at + run]);
            }
            combining = COMBINING;
            at += run;
            continue;
        }
        let twin = twins.next_if_eq(&at).is_some();
        let joins = is_combining(c);
        combining = match (joins, c.is_alphabetic()) {
            (true, _) => combining + 1,
            (false, true) => 0,
            // Nothing to combine with: the first one is too many.
            (false, false) => COMBINING,
        };
        let found = danger(c).or_else(|| {
            if joins && combining > COMBINING {
                Some(Danger::Combining)
            } else if twin {
                Some(Danger::Lookalike)
            } else {
                force.then_some(Danger::Mark)
            }
        });
        match (known, found) {
            (Some(known), _) => out.mark(known),
            (None, Some(found)) => {
                tally.add(found, c);
                out.mark(&format!("{OPEN}U+{:04X}{CLOSE}", u32::from(c)));
            }
            (None, None) if c == '\t' => out.mark(TAB.encode_utf8(&mut [0; 4])),
            (None, None) => out.plain_run(&[c]),
        }
        at += 1;
    }
    out.segments
}

/// Why a text cannot come from [`mark`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMark;

/// The text that [`mark`] made `shown` of.
///
/// # Errors
/// [`NoMark`] when `shown` holds a mark of another kind (a masked secret is one) or a raw character
/// that would have been marked.
pub fn unmark(shown: &str) -> Result<String, NoMark> {
    let mut text = String::with_capacity(shown.len());
    let mut rest = shown;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            TAB => text.push('\t'),
            OPEN => {
                let (name, after) = rest.split_once(CLOSE).ok_or(NoMark)?;
                rest = after;
                if let Some(count) = name.strip_prefix("space×") {
                    let count: usize = count.parse().map_err(|_| NoMark)?;
                    // No line is longer than a rendering may be, so neither is its padding.
                    if count > super::LIMIT {
                        return Err(NoMark);
                    }
                    text.extend(core::iter::repeat_n(' ', count));
                } else {
                    text.push(named(name).ok_or(NoMark)?);
                }
            }
            c if c == '\t' || danger(c).is_some() => return Err(NoMark),
            c => text.push(c),
        }
    }
    Ok(text)
}

/// Bytes of the well-formed mark at the start of `text`, and the character behind it; for padding
/// and secrets one of their kind.
fn known_mark(text: &str) -> Option<(usize, char)> {
    if text.starts_with(TAB) {
        return Some((TAB.len_utf8(), '\t'));
    }
    let (name, _) = text.strip_prefix(OPEN)?.split_once(CLOSE)?;
    let counted = |prefix: &str| {
        let digits = name.strip_prefix(prefix)?;
        (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then_some(())
    };
    let c = named(name)
        .or_else(|| counted("space×").map(|()| ' '))
        .or_else(|| counted(crate::mask::NAME).map(|()| 'x'))?;
    Some((OPEN.len_utf8() + name.len() + CLOSE.len_utf8(), c))
}

fn named(name: &str) -> Option<char> {
    let digits = name.strip_prefix("U+")?;
    let c = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)?;
    // Exactly as it is written by `mark`, so that one text has one rendering.
    (format!("{:04X}", u32::from(c)) == digits).then_some(c)
}

fn is_combining(c: char) -> bool {
    matches!(c.general_category(), GeneralCategory::NonspacingMark | GeneralCategory::SpacingMark)
}

/// The positions of characters that imitate another one, ascending.
fn lookalikes(chars: &[char]) -> Vec<usize> {
    let mut found = Vec::new();
    if chars.iter().all(char::is_ascii) {
        return found;
    }
    let mut at = 0;
    while at < chars.len() {
        let word = chars[at..].iter().take_while(|c| in_word(**c)).count();
        if word == 0 {
            if imitates(chars[at]).is_some() && !at_home(chars, at) {
                found.push(at);
            }
            at += 1;
        } else {
            in_one_word(&chars[at..at + word], at, &mut found);
            at += word;
        }
    }
    found
}

fn in_one_word(word: &[char], start: usize, found: &mut Vec<usize>) {
    if word.iter().all(char::is_ascii) {
        return;
    }
    let mut scripts: Vec<Script> = Vec::new();
    let (mut letters, mut imitations) = (0, 0);
    for c in word {
        let script = script_group(*c);
        if !matches!(script, Script::Common | Script::Inherited | Script::Unknown)
            && !scripts.contains(&script)
        {
            scripts.push(script);
        }
        letters += usize::from(c.is_alphabetic() && !c.is_ascii());
        imitations += usize::from(c.is_alphabetic() && !c.is_ascii() && imitates(*c).is_some());
    }
    let foreign = |script: Script| !matches!(script, Script::Latin | Script::Han);
    // More scripts than Latin and the East Asian ones, which are written together every day.
    let mixed = scripts.len() > 1 && scripts.iter().any(|script| foreign(*script));
    // All letters imitate Latin ones: сору is no word of any language that uses its letters.
    let disguised = letters > 0 && letters == imitations;
    for (at, c) in word.iter().enumerate().filter(|(_, c)| !c.is_ascii()) {
        let script = script_group(*c);
        let marked = match script {
            // Full-width and mathematical letters, dotless i and the like.
            Script::Latin | Script::Common => imitates(*c).is_some(),
            Script::Han | Script::Inherited | Script::Unknown => false,
            _ => mixed || disguised,
        };
        if marked {
            found.push(start + at);
        }
    }
}

fn in_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric() || is_combining(c)
}

/// The script, with those that East Asian text mixes counted as one.
fn script_group(c: char) -> Script {
    match c.script() {
        Script::Han | Script::Hiragana | Script::Katakana | Script::Bopomofo | Script::Hangul => {
            Script::Han
        }
        script => script,
    }
}

/// Whether East Asian letters are near, in whose text full-width punctuation belongs: with nothing
/// but words, blanks and such punctuation between.
fn at_home(chars: &[char], at: usize) -> bool {
    /// Characters of a clause; bounds the work for a line of punctuation.
    const NEAR: usize = 64;
    let wide = |c: char| matches!(c, '\u{3001}'..='\u{303f}' | '\u{ff01}'..='\u{ff65}');
    let finds = |side: &mut dyn Iterator<Item = &char>| {
        side.take(NEAR)
            .take_while(|c| in_word(**c) || **c == ' ' || wide(**c))
            .any(|c| script_group(*c) == Script::Han)
    };
    wide(chars[at]) && (finds(&mut chars[..at].iter().rev()) || finds(&mut chars[at + 1..].iter()))
}

/// The printable ASCII character that `c`, which is another one, can be taken for.
fn imitates(c: char) -> Option<char> {
    if c.is_ascii() {
        return None;
    }
    if let 0xff01..=0xff5e = u32::from(c) {
        return char::from_u32(u32::from(c) - 0xfee0);
    }
    let at = IMITATIONS.binary_search_by_key(&c, |(imitation, _)| *imitation).ok()?;
    Some(IMITATIONS[at].1)
}

/// Characters and the first of the printable ASCII characters that they look like, in order; made by
/// `build.rs` from the confusables of UTS 39.
const IMITATIONS: &[(char, char)] = &include!(concat!(env!("OUT_DIR"), "/imitations.rs"));

struct Writer {
    segments: Vec<Segment>,
}

impl Writer {
    fn mark(&mut self, text: &str) {
        self.push(Segment { mark: true, text: text.into() });
    }

    fn plain_run(&mut self, chars: &[char]) {
        match self.segments.last_mut() {
            Some(last) if !last.mark => last.text.extend(chars),
            _ => self.segments.push(Segment { mark: false, text: chars.iter().collect() }),
        }
    }

    fn push(&mut self, segment: Segment) {
        match self.segments.last_mut() {
            Some(last) if last.mark == segment.mark => last.text.push_str(&segment.text),
            _ => self.segments.push(segment),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> String {
        mark(line, &[], &mut Tally::default()).into_iter().map(|s| s.text).collect()
    }

    #[test]
    fn ordinary_text_of_many_languages_is_shown_as_it_is() {
        for text in [
            "cargo test --workspace && echo done",
            "修复：登录页，改为 cargo test；再试",
            "テストを実行する（Rust）",
            "테스트 실행",
            "Привет, мир",
            "größer façade naïve Ł",
            "สวัสดี",
            "नमस्ते",
            "→ ✓ 🚀 ±",
        ] {
            assert_eq!(shown(text), text);
        }
    }

    #[test]
    fn imitations_are_marked() {
        for (text, expected) in [
            ("p\u{430}ypal", "p⟦U+0430⟧ypal"),
            ("\u{441}\u{43e}\u{440}\u{443}", "⟦U+0441⟧⟦U+043E⟧⟦U+0440⟧⟦U+0443⟧"),
            ("\u{ff52}\u{ff4d} x", "⟦U+FF52⟧⟦U+FF4D⟧ x"),
            ("\u{1d42b}m", "⟦U+1D42B⟧m"),
            ("ls\u{37e} rm", "ls⟦U+037E⟧ rm"),
            ("ls\u{ff1b} rm", "ls⟦U+FF1B⟧ rm"),
            ("a\u{2215}b", "a⟦U+2215⟧b"),
            ("rm \u{2010}rf", "rm ⟦U+2010⟧rf"),
        ] {
            assert_eq!(shown(text), expected);
        }
    }

    #[test]
    fn padding_is_marked_one_space_beyond_the_limit() {
        let gap = |n: usize| format!("a{}b", " ".repeat(n));
        assert_eq!(shown(&gap(SPACES_INSIDE)), gap(SPACES_INSIDE));
        assert_eq!(shown(&gap(SPACES_INSIDE + 1)), "a⟦space×25⟧b");
        let indent = |n: usize| format!("{}b", " ".repeat(n));
        assert_eq!(shown(&indent(SPACES_BEFORE)), indent(SPACES_BEFORE));
        assert_eq!(shown(&indent(SPACES_BEFORE + 1)), "⟦space×65⟧b");
        assert_eq!(shown("a "), "a⟦space×1⟧");
    }

    #[test]
    fn piled_up_combining_characters_are_marked_and_accents_are_not() {
        assert_eq!(shown("e\u{301}"), "e\u{301}");
        assert_eq!(shown("e\u{301}\u{302}\u{303}"), "e\u{301}\u{302}⟦U+0303⟧");
        assert_eq!(shown("\u{301}x"), "⟦U+0301⟧x");
        assert_eq!(shown("-\u{301}"), "-⟦U+0301⟧");
        assert_eq!(shown("a\u{338}"), "a⟦U+0338⟧");
    }

    #[test]
    fn a_mark_has_one_spelling() {
        for no in
            ["⟦U+202e⟧", "⟦U+0202E⟧", "⟦U+D800⟧", "⟦⟧", "⟦", "⟧", "⟦secret×3⟧", "\u{202e}", "\t"]
        {
            assert_eq!(unmark(no), Err(NoMark), "{no}");
        }
        assert_eq!(unmark("a⟦U+202E⟧⇥⟦space×2⟧").as_deref(), Ok("a\u{202e}\t  "));
    }

    #[test]
    fn text_with_marks_keeps_them_and_gets_more_where_something_raw_is_left() {
        let mut tally = Tally::default();
        let segments = resegment("a⟦U+202E⟧⇥\u{202e}⟦x⟧⟦secret×12⟧", &mut tally);
        let text: String = segments.iter().map(|s| s.text.as_str()).collect();
        assert_eq!(text, "a⟦U+202E⟧⇥⟦U+202E⟧⟦U+27E6⟧x⟦U+27E7⟧⟦secret×12⟧");
        assert_eq!((tally.count(Danger::Direction), tally.count(Danger::Mark)), (1, 2));
    }
}
