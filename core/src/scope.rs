//! How far a lasting approval reaches, and whether it reaches a call.
//!
//! What it is: the scope of an approval that a person gave with an end (until a time, a number of
//! times, a beginning of a command). The gateway keeps it and decides by it; nothing of it lies
//! where an agent could write.
//!
//! What it promises: a scope is never wider than what the person read. It is made of one rendering
//! that was shown, and it covers another call only if that call's own rendering can be read back
//! and is for the same tool in the same directory, with the same bound files, and its command
//! begins with the words of the scope. A command covered by its beginning is one simple command in
//! which every word is known: nothing is expanded, joined, redirected or run around it.
//!
//! ```text
//!   shown text -> Shape::read -> Scope::of(shape, prefix)     the person's act
//!   shown text -> Shape::read -> scope.covers(shape)          each later call
//! ```
//!
//! Faults row 16 ("always" widens), section 3 row 6.

use alloc::string::String;
use alloc::vec::Vec;

use crate::digest::Operand;
use crate::exact::Value;
use crate::operands;
use crate::render::unrender;
use crate::shell;

/// What a scope compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    tool: String,
    cwd: String,
    operands: Vec<Operand>,
    /// The words of the command, when it is one simple command whose words are all known.
    words: Option<Vec<String>>,
}

impl Shape {
    /// The shape of a call, out of its rendering. `None` when the text is no rendering or does not
    /// show the call that its digest names: no lasting approval can come of it or cover it.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let shown = unrender(text).ok()?;
        if shown.digest != Some(shown.shown_digest()) {
            return None;
        }
        let words = match (shown.tool.as_str(), shown.input.get("command")) {
            ("Bash", Some(Value::Text(command))) => simple(command),
            _ => None,
        };
        let (tool, cwd, operands) = (shown.tool, shown.cwd, shown.operands);
        Some(Self { tool, cwd, operands, words })
    }

    /// The words of the command, if a beginning of it can be approved.
    #[must_use]
    pub fn words(&self) -> Option<&[String]> {
        self.words.as_deref()
    }

    /// The tool.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }
}

/// The words of one simple command without assignments and redirections.
fn simple(command: &str) -> Option<Vec<String>> {
    let script = shell::read(command);
    let [only] = script.commands.as_slice() else { return None };
    let plain = script.unread.is_none()
        && only.depth == 0
        && only.assignments.is_empty()
        && only.redirections.is_empty()
        // A background or sequence operator at the end leaves one command all the same.
        && !command.contains([';', '&', '|', '\n', '(', ')', '`']);
    if !plain {
        return None;
    }
    only.words.iter().map(|word| word.literal.clone()).collect()
}

/// How far a lasting approval reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The tool.
    pub tool: String,
    /// The directory.
    pub cwd: String,
    /// The bound files and their states.
    pub operands: Vec<Operand>,
    /// With which words a command must begin; `None` for every call of the tool.
    pub prefix: Option<Vec<String>>,
}

/// Why no scope can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooWide {
    /// The command is not one simple command whose words are all known.
    NotSimple,
    /// The words do not stand at the beginning of the command.
    NotThere,
    /// The first word runs other programs: its beginning would cover everything.
    Runner,
}

impl Scope {
    /// The scope of `shape`, with a beginning of its command or without.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn of(shape: &Shape, prefix: Option<&[String]>) -> Result<Self, TooWide> {
        if let Some(prefix) = prefix {
            let words = shape.words.as_deref().ok_or(TooWide::NotSimple)?;
            if prefix.is_empty() || !words.starts_with(prefix) {
                return Err(TooWide::NotThere);
            }
            if prefix.len() < words.len() && operands::runs_others(&prefix[0]) {
                return Err(TooWide::Runner);
            }
        }
        Ok(Self {
            tool: shape.tool.clone(),
            cwd: shape.cwd.clone(),
            operands: shape.operands.clone(),
            prefix: prefix.map(<[String]>::to_vec),
        })
    }

    /// Whether it reaches `call`.
    #[must_use]
    pub fn covers(&self, call: &Shape) -> bool {
        let begins = match &self.prefix {
            None => true,
            Some(prefix) => call.words.as_deref().is_some_and(|words| words.starts_with(prefix)),
        };
        self.tool == call.tool && self.cwd == call.cwd && self.operands == call.operands && begins
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::{Call, CallDigest};
    use crate::lang::Lang;
    use crate::render::{Request, render};
    use alloc::borrow::ToOwned as _;
    use alloc::vec;

    fn shape_in(command: &str, cwd: &str, operands: &[Operand]) -> Shape {
        let input = Value::object(vec![("command".into(), Value::Text(command.into()))]);
        let (session, agent, tool) = (None, None, "Bash");
        let digest = CallDigest::of(&Call { tool, input: &input, cwd, session, agent, operands });
        let (facts, hints, notes): (&[_], &[_], &[_]) = (&[], &[], &[]);
        let (before, digest, lang, input) = (None, Some(digest), Lang::En, &input);
        let request =
            Request { tool, cwd, input, facts, before, hints, notes, operands, digest, lang };
        Shape::read(&render(&request).unwrap().text()).unwrap()
    }

    fn shape(command: &str) -> Shape {
        shape_in(command, "/p", &[])
    }

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(|word| word.to_owned()).collect()
    }

    #[test]
    fn a_beginning_covers_what_begins_with_its_words_and_nothing_else() {
        let scope =
            Scope::of(&shape("cargo test --workspace"), Some(&words("cargo test"))).unwrap();
        for inside in ["cargo test", "cargo test -p core", "cargo  'test' \"a b\""] {
            assert!(scope.covers(&shape(inside)), "{inside}");
        }
        for outside in [
            "cargo",
            "cargo testing",
            "cargo build",
            "cargo test; rm -rf /",
            "cargo test && ls",
            "cargo test | sh",
            "cargo test &",
            "cargo test > /etc/passwd",
            "cargo test $(rm -rf /)",
            "cargo test `rm`",
            "cargo test $X",
            "cargo test *",
            "X=1 cargo test",
            "(cargo test)",
            "cargo test\nrm -rf /",
            "sudo cargo test",
        ] {
            assert!(!scope.covers(&shape(outside)), "{outside}");
        }
        assert!(!scope.covers(&shape_in("cargo test", "/q", &[])), "another directory");
        let bound = [Operand { path: "x".into(), sha256: None }];
        assert!(!scope.covers(&shape_in("cargo test", "/p", &bound)), "other bound files");
    }

    /// faults 16: allow `/bin/zsh`, `python3`, `flock`.
    #[test]
    fn no_scope_is_made_of_what_runs_other_programs() {
        for command in [
            "bash x.sh",
            "/bin/zsh -c ls",
            "python3 x.py",
            "sudo ls",
            "env ls",
            "xargs rm",
            "flock f ls",
            "timeout 9 ls",
        ] {
            let first = words(command)[..1].to_vec();
            assert_eq!(Scope::of(&shape(command), Some(&first)), Err(TooWide::Runner), "{command}");
        }
        assert_eq!(Scope::of(&shape("a; b"), Some(&words("a"))), Err(TooWide::NotSimple));
        assert_eq!(Scope::of(&shape("a b"), Some(&words("b"))), Err(TooWide::NotThere));
        assert_eq!(Scope::of(&shape("a b"), Some(&[])), Err(TooWide::NotThere));
    }

    #[test]
    fn a_text_that_shows_another_call_than_its_digest_has_no_shape() {
        assert_eq!(Shape::read("cargo test"), None);
        let input = Value::object(vec![("command".into(), Value::Text("ls".into()))]);
        let call = Call {
            tool: "Bash",
            input: &input,
            cwd: "/p",
            session: None,
            agent: None,
            operands: &[],
        };
        let line = CallDigest::of(&call).line();
        let text = |command: &str| {
            alloc::format!("tool: Bash\ndirectory: /p\n[command]\n| {command}\n{line}")
        };
        assert!(Shape::read(&text("ls")).is_some());
        assert_eq!(Shape::read(&text("rm")), None);
    }
}
