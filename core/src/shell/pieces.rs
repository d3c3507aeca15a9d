//! Where words and operators begin and end.

use alloc::vec::Vec;

/// A piece of a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    /// A word with its quotes.
    Word(&'t str),
    /// What stands between commands; a line end is `;`.
    Operator(&'t str),
    /// A redirection without its descriptor number; its target is the next word.
    Redirection(&'t str),
}

/// Operators, the longer ones first.
const OPERATORS: [&str; 9] = ["&&", "||", "|&", ";;", "|", "&", ";", "(", ")"];
/// Redirections, the longer ones first.
const REDIRECTIONS: [&str; 9] = ["&>>", "&>", "<>", ">>", ">|", ">&", "<&", ">", "<"];

/// The pieces of `text`, and why they end before it does.
pub(super) fn pieces(text: &str) -> (Vec<Piece<'_>>, Option<&'static str>) {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if let Some(after) = rest.strip_prefix([' ', '\t']) {
            at = text.len() - after.len();
        } else if rest.starts_with("\\\n") {
            at += 2;
        } else if rest.starts_with('\n') {
            found.push(Piece::Operator(";"));
            at += 1;
        } else if rest.starts_with('#') {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("<<") {
            return (found, Some("a here-document"));
        } else if rest.starts_with("<(") || rest.starts_with(">(") {
            return (found, Some("a process substitution"));
        } else if rest.starts_with("((") || rest.starts_with(";;") {
            return (found, Some("arithmetic or case"));
        } else if let Some(operator) = REDIRECTIONS.into_iter().find(|o| rest.starts_with(o)) {
            // A number directly in front is a descriptor and no word.
            if let Some(Piece::Word(word)) = found.last()
                && word.bytes().all(|b| b.is_ascii_digit())
                && text[..at].ends_with(word)
            {
                found.pop();
            }
            found.push(Piece::Redirection(&rest[..operator.len()]));
            at += operator.len();
        } else if let Some(operator) = OPERATORS.into_iter().find(|o| rest.starts_with(o)) {
            if operator == "(" && matches!(found.last(), Some(Piece::Word(_))) {
                return (found, Some("a function or a pattern"));
            }
            found.push(Piece::Operator(&rest[..operator.len()]));
            at += operator.len();
        } else {
            match word(rest) {
                Ok(length) => {
                    found.push(Piece::Word(&rest[..length]));
                    at += length;
                }
                Err(why) => return (found, Some(why)),
            }
        }
    }
    (found, None)
}

/// Bytes of the word at the start of `text`.
fn word(text: &str) -> Result<usize, &'static str> {
    const OPEN: &str = "a quote or substitution without an end";
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let Some(c) = rest.chars().next() else { break };
        at += match c {
            ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
            '\\' => 1 + rest[1..].chars().next().ok_or("a backslash at the end")?.len_utf8(),
            '\'' => 2 + rest[1..].find('\'').ok_or(OPEN)?,
            '"' => double_quoted(rest).ok_or(OPEN)?,
            '`' => 2 + rest[1..].find('`').ok_or(OPEN)?,
            '$' if rest.starts_with("$(") => parenthesised(rest).ok_or(OPEN)?,
            '$' if rest.starts_with("${") => 1 + rest.find('}').ok_or(OPEN)?,
            c => c.len_utf8(),
        };
    }
    Ok(at)
}

/// Bytes of the double-quoted text at the start of `text`, quotes included.
fn double_quoted(text: &str) -> Option<usize> {
    let mut at = 1;
    loop {
        let rest = &text[at..];
        at += match rest.chars().next()? {
            '"' => return Some(at + 1),
            '\\' => 1 + rest[1..].chars().next()?.len_utf8(),
            '`' => 2 + rest[1..].find('`')?,
            '$' if rest.starts_with("$(") => parenthesised(rest)?,
            c => c.len_utf8(),
        };
    }
}

/// Bytes of `$(...)`, by counting parentheses outside of quotes. Quotes inside are not followed
/// deeply: with any, the end is unknown.
fn parenthesised(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            '\'' | '"' | '\\' | '#' => return None,
            _ => {}
        }
    }
    None
}
