//! A shell command line as simple commands, as far as that can be said without running it.
//!
//! What it is: the reader under [`crate::operands`] and [`crate::hints`]. Words are taken out of
//! their quotes by `shlex`, which splits like a POSIX shell; where words and operators begin is
//! found here, because `shlex` knows words only. The two check each other: a word counts as known
//! only if `shlex` reads exactly one word there.
//!
//! What it promises: it is never surer than it may be. A word with an expansion, a pattern or a
//! substitution is [`Word::literal`] `None`; a construct that it does not follow (here-documents,
//! functions, `case`, loops) ends the reading with [`Script::unread`] set.
//!
//! ```text
//!   text -> pieces (words, operators, redirections) -> commands between operators
//! ```

use alloc::string::String;
use alloc::vec::Vec;

mod pieces;

use pieces::{Piece, pieces};

/// Bytes of a command line that are read. Longer ones are generated data, and reading stays cheap.
pub const LIMIT: usize = 64 * 1024;

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// As it was written, quotes and all.
    pub raw: String,
    /// What the command gets, when that is certain.
    pub literal: Option<String>,
}

/// What stands between a command and the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joint {
    /// It is the first one, or follows a `;`, a line end or `&`.
    Sequence,
    /// `&&`: it runs only after success.
    And,
    /// `||`: it runs only after failure.
    Or,
    /// `|` or `|&`: it reads what the one before writes.
    Pipe,
}

/// A redirection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirection {
    /// `<`, `>`, `>>`, `>|`, `&>`, `<>` and the like, without a descriptor number.
    pub operator: String,
    /// Where to.
    pub target: Word,
}

/// A simple command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// How it is joined to the one before.
    pub joint: Joint,
    /// How many subshell parentheses it stands in.
    pub depth: usize,
    /// Assignments in front of it, as written.
    pub assignments: Vec<Word>,
    /// The command's name and its arguments.
    pub words: Vec<Word>,
    /// Its redirections.
    pub redirections: Vec<Redirection>,
}

/// What was read of a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// The simple commands, in their order.
    pub commands: Vec<Command>,
    /// Why reading ended before the end, if it did: the commands are then only a part.
    pub unread: Option<&'static str>,
}

/// Reads a command line.
#[must_use]
pub fn read(text: &str) -> Script {
    let mut script = Script::default();
    if text.len() > LIMIT {
        script.unread = Some("the command is too long to be read");
        return script;
    }
    let (found, unread) = pieces(text);
    script.unread = unread;
    let mut reader = Reader { command: Command::new(Joint::Sequence, 0), depth: 0 };
    let mut found = found.into_iter().peekable();
    while let Some(piece) = found.next() {
        match piece {
            Piece::Word(raw) => {
                if let Some(why) = reader.word(raw) {
                    script.unread = Some(why);
                    break;
                }
            }
            Piece::Redirection(operator) => {
                let Some(Piece::Word(raw)) = found.next_if(|piece| matches!(piece, Piece::Word(_)))
                else {
                    script.unread = Some("a redirection without a target");
                    break;
                };
                let target = Word::new(raw);
                reader.command.redirections.push(Redirection { operator: operator.into(), target });
            }
            Piece::Operator(operator) => reader.operator(operator, &mut script.commands),
        }
    }
    reader.end(Joint::Sequence, &mut script.commands);
    script
}

struct Reader {
    command: Command,
    depth: usize,
}

impl Reader {
    /// Takes a word; says why reading cannot go on.
    fn word(&mut self, raw: &str) -> Option<&'static str> {
        let first = self.command.words.is_empty();
        if first && self.command.assignments.is_empty() {
            match raw {
                // What they introduce is a command like any other.
                "if" | "then" | "elif" | "else" | "while" | "until" | "do" | "!" | "{" | "}"
                | "fi" | "done" | "time" => return None,
                "for" | "select" | "case" | "function" | "coproc" | "[[" | "((" => {
                    return Some("a loop, case, function or condition");
                }
                _ => {}
            }
        }
        if first && is_assignment(raw) {
            self.command.assignments.push(Word::new(raw));
        } else {
            self.command.words.push(Word::new(raw));
        }
        None
    }

    fn operator(&mut self, operator: &str, commands: &mut Vec<Command>) {
        let joint = match operator {
            "&&" => Joint::And,
            "||" => Joint::Or,
            "|" | "|&" => Joint::Pipe,
            _ => Joint::Sequence,
        };
        self.end(joint, commands);
        match operator {
            "(" => self.depth += 1,
            ")" => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.command.depth = self.depth;
    }

    fn end(&mut self, joint: Joint, commands: &mut Vec<Command>) {
        let next = Command::new(joint, self.depth);
        let command = core::mem::replace(&mut self.command, next);
        let is_empty = command.words.is_empty()
            && command.assignments.is_empty()
            && command.redirections.is_empty();
        if is_empty {
            // An opening parenthesis: what joins it joins the first command inside.
            if command.joint != Joint::Sequence && joint == Joint::Sequence {
                self.command.joint = command.joint;
            }
        } else {
            commands.push(command);
        }
    }
}

impl Command {
    const fn new(joint: Joint, depth: usize) -> Self {
        Self { joint, depth, assignments: Vec::new(), words: Vec::new(), redirections: Vec::new() }
    }
}

impl Word {
    fn new(raw: &str) -> Self {
        Self { literal: literal(raw), raw: raw.into() }
    }
}

/// The one word that `raw` is, when nothing in it is expanded.
fn literal(raw: &str) -> Option<String> {
    let mut single = false;
    let mut double = false;
    let mut escaped = false;
    for (at, c) in raw.char_indices() {
        if escaped {
            escaped = false;
            continue;
        }
        match c {
            '\\' if !single => escaped = true,
            '\'' if !double => single = !single,
            '"' if !single => double = !double,
            '$' | '`' if !single => return None,
            '*' | '?' | '[' | '{' | '}' | '!' if !single && !double => return None,
            '~' if at == 0 => return None,
            _ => {}
        }
    }
    // A leading # or a line end would mean something else to shlex than to us: it must agree.
    let mut words = shlex::Shlex::new(raw);
    let word = words.next()?;
    (words.next().is_none() && !words.had_error).then_some(word)
}

fn is_assignment(raw: &str) -> bool {
    let Some((name, _)) = raw.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    let starts = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(starts) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    /// Commands as `joint depth: words`, unknown words as `?`.
    fn shown(text: &str) -> Vec<String> {
        let script = read(text);
        let mut lines: Vec<String> = Vec::new();
        for command in &script.commands {
            let words: Vec<&str> =
                command.words.iter().map(|word| word.literal.as_deref().unwrap_or("?")).collect();
            lines.push(format!("{:?} {}: {}", command.joint, command.depth, words.join("_")));
        }
        lines.extend(script.unread.map(|why| format!("unread: {why}")));
        lines
    }

    #[test]
    fn commands_are_split_at_operators() {
        assert_eq!(
            shown("cd a && ls -l|wc; (x; y) || z &\nA=1 b"),
            [
                "Sequence 0: cd_a",
                "And 0: ls_-l",
                "Pipe 0: wc",
                "Sequence 1: x",
                "Sequence 1: y",
                "Or 0: z",
                "Sequence 0: b",
            ]
        );
        assert_eq!(shown("a && (b; c)"), ["Sequence 0: a", "And 1: b", "Sequence 1: c"]);
        assert_eq!(shown("if a; then b; fi"), ["Sequence 0: a", "Sequence 0: b"]);
    }

    #[test]
    fn quotes_and_escapes_are_taken_off_and_nothing_is_split_in_them() {
        assert_eq!(shown(r#"a "b;c" 'd|e' f\ g h"i"'j'"#), ["Sequence 0: a_b;c_d|e_f g_hij"]);
        assert_eq!(shown("a # b; c\nd"), ["Sequence 0: a", "Sequence 0: d"]);
        assert_eq!(shown("a b#c"), ["Sequence 0: a_b#c"]);
        assert_eq!(shown("a \\\n b"), ["Sequence 0: a_b"]);
    }

    #[test]
    fn what_is_expanded_is_unknown() {
        for word in
            ["$a", "\"$a\"", "`a`", "$(a; b)", "a*", "a?", "[ab]", "{a,b}", "~", "~/a", "$'a'"]
        {
            assert_eq!(shown(&format!("x {word} y")), ["Sequence 0: x_?_y"], "{word}");
        }
        for word in ["'$a'", "\"a*\"", "\\$a"] {
            assert!(!shown(&format!("x {word}"))[0].contains("x_?"), "{word}");
        }
    }

    #[test]
    fn what_is_not_followed_ends_the_reading() {
        for text in [
            "cat <<E\nx\nE",
            "for a in b; do c; done",
            "case a in b) c;; esac",
            "f() { a; }",
            "a 'b",
            "a \"b",
            "a $(b",
            "a \\",
            "a <(b)",
            "a >",
            "[[ a ]]",
            "((a))",
        ] {
            assert!(read(text).unread.is_some(), "{text}: {:?}", read(text));
        }
    }

    #[test]
    fn redirections_are_apart_from_words() {
        let script = read("bash 2>&1 < in >>out x 3>'o p'");
        let command = &script.commands[0];
        assert_eq!(command.words.len(), 2);
        let shown: Vec<String> = command
            .redirections
            .iter()
            .map(|r| format!("{}{}", r.operator, r.target.literal.as_deref().unwrap_or("?")))
            .collect();
        assert_eq!(shown, [">&1", "<in", ">>out", ">o p"]);
    }

    #[test]
    fn a_command_at_the_limit_is_read_and_a_longer_one_is_not() {
        let text = "x".repeat(LIMIT);
        assert_eq!(read(&text).commands.len(), 1);
        assert!(read(&(text + "x")).unread.is_some());
    }
}
