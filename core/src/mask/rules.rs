//! The signs by which secrets are found. Each rule looks at the whole text and adds spans.

use alloc::vec::Vec;
use core::ops::Range;

use super::may_hide;

/// Prefixes that makers give their tokens, with the fewest characters that follow in a real one.
/// Two characters and a separator identify nothing, so short prefixes ask for long tails.
const VENDORS: [(&str, usize); 32] = [
    ("ghp_", 30),
    ("gho_", 30),
    ("ghu_", 30),
    ("ghs_", 30),
    ("ghr_", 30),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("gldt-", 16),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("xoxa-", 16),
    ("xoxr-", 16),
    ("xoxs-", 16),
    ("xapp-", 16),
    ("sk-ant-", 16),
    ("sk-proj-", 16),
    ("sk-", 20),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("whsec_", 16),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("ya29.", 20),
    ("npm_", 30),
    ("pypi-", 30),
    ("hf_", 26),
    ("dop_v1_", 30),
    ("SG.", 30),
    ("am_", 24),
    ("eyJ", 30),
];

/// Words that make the name of a setting the name of a secret when they are its last word, or its
/// last but one before `id`, `value` and the like are not.
const SECRET_WORDS: [&str; 9] = [
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "apikey",
    "credential",
    "credentials",
];

/// The same for two words in a row.
const SECRET_PAIRS: [(&str, &str); 6] = [
    ("api", "key"),
    ("access", "key"),
    ("private", "key"),
    ("secret", "key"),
    ("auth", "key"),
    ("agent", "key"),
];

/// Characters that end an unquoted value.
const ENDS_WORD: [char; 11] = [';', '&', '|', '<', '>', '(', ')', '"', '\'', '`', '⟦'];

/// Tokens with a maker's prefix.
pub(super) fn vendor_tokens(text: &str, spans: &mut Vec<Range<usize>>) {
    for (prefix, least) in VENDORS {
        let mut from = 0;
        while let Some(found) = text[from..].find(prefix) {
            let start = from + found;
            from = start + prefix.len();
            if text[..start].chars().next_back().is_some_and(token_char) {
                continue;
            }
            let tail = run(&text[from..], token_char);
            // A JSON web token has three parts; other words may begin with the same letters.
            let whole = prefix != "eyJ" || text[from..from + tail].matches('.').count() == 2;
            if tail >= least && whole {
                spans.push(start..from + tail);
                from += tail;
            }
        }
    }
}

/// Values behind a name that says that they are secret.
pub(super) fn named_values(text: &str, spans: &mut Vec<Range<usize>>) {
    let mut at = 0;
    while at < text.len() {
        let name = run(&text[at..], name_char);
        if name == 0 {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
            continue;
        }
        let end = at + name;
        if is_secret_name(&text[at..end]) {
            let option = text[at..end].starts_with("--");
            if let Some(value) = value_after(text, end, option) {
                hide_value(text, value, spans);
            }
        }
        at = end;
    }
}

/// Passwords in `scheme://user:password@host`.
pub(super) fn url_passwords(text: &str, spans: &mut Vec<Range<usize>>) {
    let mut from = 0;
    while let Some(found) = text[from..].find("://") {
        let start = from + found + 3;
        from = start;
        // The authority ends at the first slash, quote or blank; the last @ in it ends the user.
        let ends = |c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\'' | '?' | '#' | '⟦');
        let authority = text[start..].find(ends).map_or(&text[start..], |n| &text[start..][..n]);
        let Some((user, _)) = authority.rsplit_once('@') else { continue };
        let Some((name, password)) = user.split_once(':') else { continue };
        let first = start + name.len() + 1;
        hide_runs(text, first..first + password.len(), 1, spans);
    }
}

/// Credentials in headers named `...Authorization`.
pub(super) fn authorization(text: &str, spans: &mut Vec<Range<usize>>) {
    const NAME: &str = "authorization:";
    let lower = text.to_ascii_lowercase();
    let mut from = 0;
    while let Some(found) = lower[from..].find(NAME) {
        let scheme = from + found + NAME.len() + run(&lower[from + found + NAME.len()..], blank);
        from = scheme;
        let word = run(&lower[scheme..], char::is_alphanumeric);
        let gap = run(&lower[scheme + word..], blank);
        if word > 0 && gap > 0 {
            let start = scheme + word + gap;
            let length = run(&text[start..], may_hide);
            hide_runs(text, start..start + length, 1, spans);
        }
    }
}

/// The lines of private key blocks.
pub(super) fn key_blocks(text: &str, least: usize, spans: &mut Vec<Range<usize>>) {
    const BEGIN: &str = "-----BEGIN ";
    const KEY: &str = "PRIVATE KEY-----";
    let mut from = 0;
    while let Some(found) = text[from..].find(BEGIN) {
        let label = from + found + BEGIN.len();
        from = label;
        let Some(kind) = text[label..].find("-----") else { continue };
        let body = label + kind + 5;
        if !text[label..body].ends_with(KEY) {
            continue;
        }
        let end = text[body..].find("-----END ").map_or(text.len(), |n| body + n);
        hide_runs(text, body..end, least, spans);
        from = end;
    }
}

/// Where the value of the name that ends at `end` begins: after `=` or `:` and an optional quote,
/// or after a blank when the name is an option.
fn value_after(text: &str, end: usize, option: bool) -> Option<usize> {
    let mut at = end;
    // The closing quote of a JSON key.
    at += usize::from(text[at..].starts_with(['"', '\'']));
    let joined = text[at..].starts_with(['=', ':']);
    if joined {
        let colon = text[at..].starts_with(':');
        at += 1;
        if colon {
            let gap = run(&text[at..], blank);
            // `name: value` and `"name":"value"`; a colon inside of a word is something else.
            if gap == 0 && !text[at..].starts_with(['"', '\'']) {
                return None;
            }
            at += gap;
        }
    } else if option && at == end {
        let gap = run(&text[at..], blank);
        if gap == 0 {
            return None;
        }
        at += gap;
        // Another option, no value.
        if text[at..].starts_with('-') {
            return None;
        }
    } else {
        return None;
    }
    Some(at)
}

fn hide_value(text: &str, start: usize, spans: &mut Vec<Range<usize>>) {
    let rest = &text[start..];
    let Some(first) = rest.chars().next() else { return };
    if let '"' | '\'' = first {
        let inner = &rest[1..];
        let line = inner.find('\n').unwrap_or(inner.len());
        let end = inner.find(first).unwrap_or(line).min(line);
        // A reference to a variable is no secret.
        if !inner.starts_with('$') {
            hide_outside_substitutions(text, start + 1..start + 1 + end, spans);
        }
        return;
    }
    if first == '$' || first == '`' {
        return;
    }
    // Up to a blank or an operator that ends the word; a substitution in the middle is part of it.
    let mut depth = 0_u32;
    let mut end = rest.len();
    let mut before = ' ';
    for (at, c) in rest.char_indices() {
        match c {
            '(' if before == '$' || depth > 0 => depth += 1,
            ')' if depth > 0 => depth -= 1,
            _ if depth > 0 => {}
            c if c.is_whitespace() || ENDS_WORD.contains(&c) => {
                end = at;
                break;
            }
            _ => {}
        }
        before = c;
    }
    hide_outside_substitutions(text, start..start + end, spans);
}

/// Hides the runs of a word except inside `$( )` and backticks, where commands stand.
fn hide_outside_substitutions(text: &str, range: Range<usize>, spans: &mut Vec<Range<usize>>) {
    let mut at = range.start;
    while at < range.end {
        let ends = text[at..range.end].find("$(").into_iter().chain(text[at..range.end].find('`'));
        let stop = ends.min().map_or(range.end, |n| at + n);
        hide_runs(text, at..stop, 1, spans);
        if stop == range.end {
            return;
        }
        if text[stop..].starts_with('`') {
            let body = stop + 1;
            at = text[body..range.end].find('`').map_or(range.end, |n| body + n + 1);
            continue;
        }
        let mut depth = 0_u32;
        at = range.end;
        for (n, c) in text[stop..range.end].char_indices() {
            match c {
                '(' => depth += 1,
                ')' if depth == 1 => {
                    at = stop + n + 1;
                    break;
                }
                ')' => depth -= 1,
                _ => {}
            }
        }
    }
}

/// Hides every run of at least `least` characters that may be hidden.
fn hide_runs(text: &str, range: Range<usize>, least: usize, spans: &mut Vec<Range<usize>>) {
    let mut at = range.start;
    while at < range.end {
        let length = run(&text[at..range.end], may_hide);
        if length >= least && length > 0 {
            spans.push(at..at + length);
        }
        at += length;
        let stop = text[at..range.end].chars().next();
        at += stop.map_or(0, char::len_utf8);
        if stop == Some('$') {
            // The name of a variable is no secret.
            at += run(&text[at..range.end], |c| c.is_ascii_alphanumeric() || c == '_');
        } else if stop == Some('⟦') {
            // A mark says what stands there and is never hidden itself.
            at += text[at..range.end].find('⟧').unwrap_or(0);
        }
    }
}

fn is_secret_name(name: &str) -> bool {
    let words = words(name);
    let Some(last) = words.last() else { return false };
    let is = |word: &str, expected: &str| word.eq_ignore_ascii_case(expected);
    if SECRET_WORDS.iter().any(|word| is(last, word)) {
        return true;
    }
    // PGPASSWORD and its like run their words together.
    if ["password", "passwd"].iter().any(|word| {
        last.len() > word.len()
            && last.is_char_boundary(last.len() - word.len())
            && is(&last[last.len() - word.len()..], word)
    }) {
        return true;
    }
    let [.., before, last] = words.as_slice() else { return false };
    SECRET_PAIRS.iter().any(|(a, b)| is(before, a) && is(last, b))
}

/// The words of `FOO_BAR`, `foo-bar`, `foo.bar` and `fooBar`.
fn words(name: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for part in name.split(['_', '-', '.']).filter(|part| !part.is_empty()) {
        let bytes = part.as_bytes();
        let mut start = 0;
        for at in 1..bytes.len() {
            if bytes[at].is_ascii_uppercase() && bytes[at - 1].is_ascii_lowercase() {
                words.push(&part[start..at]);
                start = at;
            }
        }
        words.push(&part[start..]);
    }
    words
}

/// Bytes of the longest start of `text` that has only characters like these.
fn run(text: &str, like: impl Fn(char) -> bool) -> usize {
    text.find(|c| !like(c)).unwrap_or(text.len())
}

const fn token_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

const fn name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

const fn blank(c: char) -> bool {
    matches!(c, ' ')
}
