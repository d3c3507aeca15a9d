//! Laws of the renderer, and of the digest and the masks over it.
//!
//! 1. `unrender(render(x).text())` is `x`.
//! 2. No raw dangerous character in any output: text, rows of pages, masked text. The list of them
//!    here is written by hand from the Unicode charts; the renderer's comes from general categories.
//! 3. Where the request holds one, there is a warning line; where there is none, nothing is marked
//!    but look-alikes, padding and our own marks.
//! 4. `parse(text)` is the document again, and its text the same text.
//! 5. The only digest line of the text is ours, and it agrees with what is shown.
//! 6. Pages hold every row of the document once, in order and within bounds.
//! 7. Masking changes nothing outside of its spans and hides no character with a meaning.

use crate::script::render::Script;
use zcode_mail_core::digest::{Call, CallDigest};
use zcode_mail_core::exact::Value;
use zcode_mail_core::mask;
use zcode_mail_core::render::{Document, Label, Request, pages, render, unrender, visible};

/// Checks all laws.
///
/// # Panics
/// When one does not hold.
pub fn check(bytes: &[u8]) {
    let script = Script::decode(bytes);
    let fact = |label| script.facts.iter().find(|(known, _)| *known == label);
    let session = fact(Label::MailSession).or_else(|| fact(Label::Session));
    let digest = CallDigest::of(&Call {
        tool: &script.tool,
        input: &script.input,
        cwd: &script.cwd,
        session: session.map(|(_, text)| text.as_str()),
        agent: fact(Label::Agent).map(|(_, text)| text.as_str()),
        operands: &script.operands,
    });
    let facts: Vec<(Label, &str)> = script.facts.iter().map(|(l, t)| (*l, t.as_str())).collect();
    let rendered = render(&Request {
        tool: &script.tool,
        cwd: &script.cwd,
        input: &script.input,
        facts: &facts,
        before: script.before.as_deref(),
        hints: &[],
        notes: &script.notes,
        operands: &script.operands,
        digest: Some(digest),
        lang: script.lang,
    });
    // A script is far too small to be too long.
    let document = rendered.unwrap_or_else(|error| panic!("{error}: {script:?}"));
    let text = document.text();

    let back = unrender(&text).unwrap_or_else(|error| panic!("{error}: {text}\n{script:?}"));
    assert_eq!(back.tool, script.tool, "{text}");
    assert_eq!(back.cwd, script.cwd, "{text}");
    assert_eq!(back.input, script.input, "{text}");
    assert_eq!(back.facts, script.facts, "{text}");
    assert_eq!(back.operands, script.operands, "{text}");
    assert_eq!(back.before, disk(&script), "{text}");
    assert_eq!(back.digest, Some(digest), "{text}");
    assert_eq!(back.shown_digest(), digest, "{text}");
    assert_eq!(CallDigest::find(&text), Ok(Some(digest)), "{text}");

    no_danger(&text);
    let worried = texts(&script).iter().any(|text| text.chars().any(dangerous));
    assert!(!worried || document.has_warnings(), "no warning: {text}");

    let again = Document::parse(&text, script.lang);
    assert_eq!(again, document, "parsed again: {text}");
    assert_eq!(again.text(), text);

    paged(&document, usize::from(bytes.first().copied().unwrap_or(0) & 7), 20);
    masked(&text);
}

/// Any text at all as a document: nothing raw is left, and doing it twice changes nothing.
///
/// # Panics
/// When a law does not hold.
pub fn check_any_text(text: &str) {
    let shown = Document::parse(text, zcode_mail_core::lang::Lang::En).text();
    no_danger(&shown);
    no_danger(&visible(text));
    paged(&Document::parse(text, zcode_mail_core::lang::Lang::Zh), 3, 7);
    masked(text);
}

fn masked(text: &str) {
    let spans = mask::find(text);
    let mut rest = text;
    let mut rebuilt = String::new();
    let mut at = 0;
    for span in &spans {
        assert!(span.start >= at && span.start < span.end, "{spans:?} in {text:?}");
        rebuilt.push_str(&text[at..span.start]);
        let hidden = &text[span.clone()];
        for c in hidden.chars() {
            assert!(!c.is_whitespace() && !META.contains(&c), "{c:?} is hidden in {text:?}");
            assert!(!c.is_control(), "{c:?} is hidden in {text:?}");
        }
        rebuilt.push_str(&format!("⟦secret×{}⟧", hidden.chars().count()));
        at = span.end;
        rest = &text[at..];
    }
    if spans.is_empty() {
        assert_eq!(mask::mask(text), text);
    } else {
        rebuilt.push_str(rest);
        assert_eq!(mask::mask(text), rebuilt);
    }
    assert_eq!(text.matches('\n').count(), mask::mask(text).matches('\n').count());
}

/// What a shell gives a meaning to.
const META: [char; 23] = [
    '|', '&', ';', '<', '>', '(', ')', '$', '`', '\\', '"', '\'', '*', '?', '[', ']', '#', '~',
    '!', '{', '}', '⟦', '⟧',
];

fn paged(document: &Document, rows: usize, columns: usize) {
    let pages = pages(document, rows, columns);
    assert!(!pages.is_empty());
    let mut lines: Vec<String> = Vec::new();
    for page in &pages {
        assert!(page.len() <= rows.max(1), "a page of {} rows", page.len());
        for row in page {
            no_danger(&row.text());
            let width: usize = row.segments.iter().map(|s| s.text.chars().count()).sum();
            let one_mark = row.segments.iter().all(|s| s.mark);
            assert!(width <= columns || one_mark, "{width} columns: {:?}", row.text());
            let body: String = row.segments.iter().map(|s| s.text.as_str()).collect();
            if row.gutter == "↳ " {
                lines.last_mut().expect("a row before").push_str(&body);
            } else {
                lines.push(body);
            }
        }
    }
    let expected: Vec<String> = document.lines.iter().map(|line| line.body()).collect();
    assert_eq!(lines, expected);
}

fn disk(script: &Script) -> Option<String> {
    let writes =
        script.tool == "Write" && matches!(script.input.get("content"), Some(Value::Text(_)));
    script.before.clone().filter(|_| writes)
}

fn texts(script: &Script) -> Vec<String> {
    let mut all = vec![script.tool.clone(), script.cwd.clone()];
    all.extend(script.facts.iter().map(|(_, text)| text.clone()));
    all.extend(script.operands.iter().map(|operand| operand.path.clone()));
    all.extend(disk(script));
    collect(&script.input, &mut all);
    // Line feeds break lines of the input, they are not marked there.
    all.iter().map(|text| text.replace('\n', "")).collect()
}

fn collect(value: &Value, all: &mut Vec<String>) {
    match value {
        Value::Text(text) => all.push(text.clone()),
        Value::List(items) => items.iter().for_each(|item| collect(item, all)),
        Value::Object(members) => {
            for (key, value) in members {
                all.push(key.clone());
                collect(value, all);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn no_danger(text: &str) {
    for c in text.chars() {
        assert!(c == '\n' || !dangerous(c), "{c:?} is raw in {text:?}");
    }
}

/// Characters that must never be shown, from the charts.
fn dangerous(c: char) -> bool {
    matches!(u32::from(c),
        0x00..=0x08 | 0x0A..=0x1F | 0x7F..=0xA0 | 0xAD
        | 0x034F | 0x061C | 0x070F | 0x115F | 0x1160 | 0x1680 | 0x17B4 | 0x17B5 | 0x180B..=0x180F
        | 0x2000..=0x200F | 0x2028..=0x202F | 0x205F..=0x206F | 0x2800 | 0x3000 | 0x3164
        | 0xE000..=0xF8FF | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFFB | 0xFFFE | 0xFFFF
        | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A | 0xE0000..=0xE0FFF | 0xF0000..=0x10FFFF)
}
