//! Session names: what may be an alias, and how one is made from a title (`W-7`, `T-13`, `D-5`).
//!
//! An alias must be addressable, so it holds none of the separators of an address; Chinese stays.
//! The gateway has the last word: it normalises ([`normalize`]) and numbers on a collision
//! ([`first_free`]). Clients only propose ([`is_proposable`], [`slug_from_title`]). Names that say
//! nothing are never written back ([`is_unusable_name`], `N-4`).

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;

/// Longest alias, in characters: fits a line of a list, and an address stays typeable.
pub const LIMIT: usize = 64;
/// Longest alias made from a title, in characters.
pub const SLUG_LIMIT: usize = 40;
/// What becomes of the word `new`, which opens a session in an address.
const NOT_NEW: &str = "session-new";

/// The alias that `text` becomes on the gateway, or `None` when nothing usable is left.
///
/// Runs of white space, control characters, separators of addresses and lists, quotes and brackets
/// become one `-`; `new` in any case becomes `session-new`. Applying it twice changes nothing.
#[must_use]
pub fn normalize(text: &str) -> Option<String> {
    let illegal = |c: char| {
        let sign = "./@\\\"'<>,;:?#%，；-";
        c.is_whitespace() || c.is_control() || sign.contains(c)
    };
    not_new(dashed(text, illegal, LIMIT))
}

/// Whether a client may propose `text` (`T-13.3`): the gateway would make an alias of it, and it
/// fits into the rename marker's attribute as it stands.
#[must_use]
pub fn is_proposable(text: &str) -> bool {
    text.chars().count() <= LIMIT
        && !text.contains(|c: char| c.is_control() || matches!(c, '"' | '<' | '>'))
        && !text.contains(['\u{2028}', '\u{2029}'])
        && normalize(text).is_some()
}

/// An alias made from a title or a mail subject: its first line without leading `Re:` and the
/// like, lower case, every run that is neither letter nor digit as one `-`. `None` when nothing is
/// left.
#[must_use]
pub fn slug_from_title(title: &str) -> Option<String> {
    let line = without_prefixes(first_line(title));
    let slug = dashed(line, |c: char| !c.is_alphanumeric(), SLUG_LIMIT);
    not_new(slug.to_ascii_lowercase())
}

/// The first of `alias`, `alias-2`, `alias-3`, ... that is not taken (`W-7`: a collision never
/// fails). A long alias gives up its end for the number, so that the result keeps to [`LIMIT`].
pub fn first_free(alias: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut candidate = alias.to_owned();
    let mut number: u64 = 2;
    while taken(&candidate) {
        let suffix = format!("-{number}");
        let base = cut(alias, LIMIT - suffix.len()).trim_end_matches('-');
        candidate = format!("{base}{suffix}");
        number += 1;
    }
    candidate
}

/// Whether a platform's title says nothing about the work: empty, a placeholder, or the title
/// generator thinking aloud. The next source of a name counts then (`D-5`); the title is never
/// repaired.
#[must_use]
pub fn is_unusable_name(title: &str) -> bool {
    const PLACEHOLDERS: [&str; 8] = [
        "新会话",
        "新对话",
        "处理邮件",
        "未命名",
        "untitled",
        "new session",
        "new chat",
        "new conversation",
    ];
    const STARTS: [&str; 18] = [
        "new session - ",
        "the user is",
        "the user wants",
        "the user asked",
        "the user has",
        "i need",
        "i should",
        "i will",
        "i am",
        "let me",
        "we need to",
        "okay,",
        "我们只需要",
        "我需要",
        "用户要求",
        "用户希望",
        "用户想",
        "标题应",
    ];
    const WITHIN: [&str; 4] = ["generate a title", "asking me to", "生成标题", "不包含其他内容"];
    let title = first_line(title).to_lowercase();
    title.is_empty()
        || PLACEHOLDERS.contains(&title.as_str())
        || STARTS.iter().any(|start| starts_with_words(&title, start))
        || WITHIN.iter().any(|part| title.contains(part))
}

/// Whether `title` starts with `start` and no Latin word goes on there ("I will", not "I willow").
fn starts_with_words(title: &str, start: &str) -> bool {
    title.strip_prefix(start).is_some_and(|rest| {
        let word_goes_on = start.ends_with(|c: char| c.is_ascii_alphabetic())
            && rest.starts_with(|c: char| c.is_ascii_alphanumeric());
        !word_goes_on
    })
}

fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default().trim()
}

fn without_prefixes(subject: &str) -> &str {
    const PREFIXES: [&str; 6] = ["re", "fwd", "fw", "回复", "转发", "处理失败"];
    let mut rest = subject;
    loop {
        let Some((word, after)) = rest.split_once([':', '：']) else { return rest };
        let word = word.trim();
        if !PREFIXES.iter().any(|prefix| word.eq_ignore_ascii_case(prefix)) {
            return rest;
        }
        rest = after.trim_start();
    }
}

/// `text` with every run of unwanted characters as one `-`, none at the ends, at most `limit`
/// characters.
fn dashed(text: &str, unwanted: impl Fn(char) -> bool, limit: usize) -> String {
    let mut kept = String::with_capacity(text.len());
    for part in text.split(unwanted).filter(|part| !part.is_empty()) {
        if !kept.is_empty() {
            kept.push('-');
        }
        kept.push_str(part);
    }
    cut(&kept, limit).trim_end_matches('-').to_owned()
}

fn cut(text: &str, limit: usize) -> &str {
    text.char_indices().nth(limit).map_or(text, |(end, _)| &text[..end])
}

fn not_new(alias: String) -> Option<String> {
    match alias.as_str() {
        "" => None,
        word if word.eq_ignore_ascii_case("new") => Some(NOT_NEW.to_owned()),
        _ => Some(alias),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_count_characters() {
        let exact = "会".repeat(LIMIT);
        assert_eq!(normalize(&exact).as_deref(), Some(exact.as_str()));
        assert!(is_proposable(&exact));
        let over = "会".repeat(LIMIT + 1);
        assert_eq!(normalize(&over).as_deref(), Some(exact.as_str()));
        assert!(!is_proposable(&over));
        let slug = "会".repeat(SLUG_LIMIT);
        assert_eq!(slug_from_title(&slug).as_deref(), Some(slug.as_str()));
        assert_eq!(slug_from_title(&over).as_deref(), Some(slug.as_str()));
    }

    #[test]
    fn a_cut_never_ends_in_a_dash() {
        let title = format!("{} b", "a".repeat(SLUG_LIMIT - 1));
        assert_eq!(slug_from_title(&title), Some("a".repeat(SLUG_LIMIT - 1)));
    }

    #[test]
    fn a_collision_is_numbered_from_two() {
        assert_eq!(first_free("a", |_| false), "a");
        assert_eq!(first_free("a", |name| name == "a"), "a-2");
        assert_eq!(first_free("a", |name| ["a", "a-2"].contains(&name)), "a-3");
        let long = "会".repeat(LIMIT);
        let free = first_free(&long, |name| name == long);
        assert_eq!(free, format!("{}-2", "会".repeat(LIMIT - 2)));
        let dash = format!("{}-x", "a".repeat(LIMIT - 2));
        assert_eq!(first_free(&dash, |name| name == dash), format!("{}-2", "a".repeat(LIMIT - 2)));
    }
}
