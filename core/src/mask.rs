//! Secrets in texts that travel by mail or stand in lists.
//!
//! What it is: a search for tokens, keys and passwords in rendered text, and a view of the text in
//! which each is replaced by `⟦secret×N⟧` (N characters). The original stays with whoever called.
//!
//! What it promises: outside of the spans nothing changes; a span never holds a shell
//! metacharacter, a quote, white space or a line end, so a masked command has the structure of the
//! real one. What it does not promise: that every secret is found. A secret looks like any other
//! word; this finds the ones that give themselves away:
//!
//! | sign | example, secret in brackets |
//! |---|---|
//! | a maker's prefix | `[ghp_...]`, `[AKIA...]`, `[eyJ...]` |
//! | a name that says so, then `=`, `:` or a space after an option | `FOO_TOKEN=[...]`, `--password [...]`, `"apiKey": "[...]"` |
//! | credentials in a URL | `https://user:[...]@host` |
//! | an authorization header | `Authorization: Bearer [...]` |
//! | a private key block | from `-----BEGIN ... PRIVATE KEY-----` to its end |
//!
//! Faults row 15.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

mod rules;

/// How the mark of a secret begins, inside of its brackets.
pub const NAME: &str = "secret×";

/// Shortest run of characters inside a private key block that is hidden; words of a sentence that
/// merely mentions such a block stay readable.
const KEY_LINE: usize = 16;

/// The secrets of `text`: byte ranges, ascending, without overlap.
#[must_use]
pub fn find(text: &str) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    rules::vendor_tokens(text, &mut spans);
    rules::named_values(text, &mut spans);
    rules::url_passwords(text, &mut spans);
    rules::authorization(text, &mut spans);
    rules::key_blocks(text, KEY_LINE, &mut spans);
    merged(spans)
}

/// `text` with every secret replaced by its mark.
#[must_use]
pub fn mask(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut shown = 0;
    for span in find(text) {
        out.push_str(&text[shown..span.start]);
        let count = text[span.clone()].chars().count();
        out.push_str(&format!("⟦{NAME}{count}⟧"));
        shown = span.end;
    }
    out.push_str(&text[shown..]);
    out
}

/// Whether a character may be part of a hidden span: what tokens, base64 and percent-encoded
/// passwords are made of, and nothing that a shell, a quote or a line gives a meaning to.
#[must_use]
pub const fn may_hide(c: char) -> bool {
    matches!(c, 'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' | '.' | '+' | '/' | '=' | '%' | ',' | ':' | '@' | '^')
        || (c >= '\u{a1}' && !matches!(c, '⟦' | '⟧' | '⇥'))
}

fn merged(mut spans: Vec<Range<usize>>) -> Vec<Range<usize>> {
    spans.sort_by_key(|span| (span.start, span.end));
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(spans.len());
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => merged.push(span),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each line: the text with its secrets in `{}`; the braces are not part of it.
    #[test]
    fn secrets_are_found_and_nothing_else() {
        for line in include_str!("mask/corpus.txt").lines().filter(|line| !line.starts_with('#')) {
            let mut text = String::new();
            let mut expected = Vec::new();
            for c in line.chars() {
                match c {
                    '{' => expected.push(text.len()..0),
                    '}' => expected.last_mut().unwrap().end = text.len(),
                    c => text.push(c),
                }
            }
            assert_eq!(find(&text), expected, "{line}");
        }
    }

    #[test]
    fn a_mask_says_how_many_characters_it_hides() {
        assert_eq!(mask("FOO_TOKEN=abcdefgh ls; rm"), "FOO_TOKEN=⟦secret×8⟧ ls; rm");
        assert_eq!(mask("curl -u u https://u:pässwort@h/"), "curl -u u https://u:⟦secret×8⟧@h/");
    }

    #[test]
    fn a_key_block_is_hidden_over_its_lines_up_to_its_end() {
        let line = "MIIEvQIBADANBgkqhkiG9w0B";
        let block = format!(
            "| -----BEGIN RSA PRIVATE KEY-----\n| {line}\n| {line}\n| -----END RSA PRIVATE KEY-----\n| {line}"
        );
        let masked = mask(&block);
        assert_eq!(masked.matches("⟦secret×24⟧").count(), 2, "{masked}");
        assert!(masked.ends_with(&format!("KEY-----\n| {line}")), "{masked}");
        // A mark stays.
        assert_eq!(mask("--token 'a⟦U+202E⟧b'"), "--token '⟦secret×1⟧⟦U+202E⟧⟦secret×1⟧'");
        // Without an end the rest of the text is hidden.
        assert!(!mask(&format!("-----BEGIN PRIVATE KEY-----\n{line}\n{line}")).contains(line));
        assert!(!mask(&format!(r#""-----BEGIN PRIVATE KEY-----\n{line}\n""#)).contains(line));
    }
}
