//! Which files a shell command runs as scripts, so that a decision can be bound to their bytes.
//!
//! What it is: `bash x.sh`, `python x.py`, `./x`, `source x`, `make`, `node x.js`, `npm run y` and
//! their like, found over [`crate::shell`]. Reading and hashing the files is the runtime's work.
//!
//! What it promises: [`Operands::files`] are files that the command names for running. It is never
//! said that these are all: whatever is not understood is a [`Operands::unbound`] fact that people
//! are shown. Faults row 8.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::lang::Lang;
use crate::shell::{Command, Joint, Redirection, Word, read};

/// How deep `bash -c` is followed into its text.
const NESTED: usize = 3;

/// The files of a command, and what could not be found out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operands {
    /// Paths, relative to the working directory unless absolute, each once, in their order.
    pub files: Vec<String>,
    /// What may run without being bound.
    pub unbound: Vec<Unbound>,
}

/// Something that runs and is not bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unbound {
    /// The word or construct, as it was written.
    pub what: String,
    /// Why it is not bound.
    pub why: Why,
}

/// Why something is not bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// The command line could not be read to its end.
    Unread,
    /// What the word stands for is known only when it runs.
    Expansion,
    /// The program takes its script from its input.
    Input,
    /// An option that may name code, or whose meaning is not known here.
    Option,
    /// A program that runs other commands in a way that is not followed.
    Runner,
    /// The working directory at that point is not known.
    Directory,
}

impl Unbound {
    /// One line for people.
    #[must_use]
    pub fn text(&self, lang: Lang) -> String {
        let (zh, en) = match self.why {
            Why::Unread => {
                ("命令没有读懂全部，后面的脚本未绑定", "the command was not read to its end")
            }
            Why::Expansion => ("运行时才展开，未绑定", "expanded when it runs, not bound"),
            Why::Input => ("脚本来自输入，未绑定", "takes its script from its input, not bound"),
            Why::Option => ("选项可能指向代码，未绑定", "an option may name code, not bound"),
            Why::Runner => ("会再启动别的命令，未绑定", "runs further commands, not bound"),
            Why::Directory => {
                ("所在目录不确定，未绑定", "in a directory that is not known, not bound")
            }
        };
        format!("{}{}{}", self.what, lang.pick("：", ": "), lang.pick(zh, en))
    }
}

/// The script operands of a command line.
#[must_use]
pub fn of_command(command: &str) -> Operands {
    let mut finder = Finder::default();
    finder.script(command, 0);
    finder.found
}

/// How a program finds its script among its arguments.
enum Program {
    /// The first argument that is no option. The options of the first list stand alone, those of
    /// the second take the next argument; all others may name code.
    Script { alone: &'static [&'static str], with_value: &'static [&'static str], shell: bool },
    /// `-f FILE`, else these names in the working directory.
    Make,
    /// These files in the working directory.
    Package(&'static [&'static str]),
    /// Runs its arguments, which are not followed.
    Runner,
}

const SHELL: Program = Program::Script {
    alone: &[
        "-e",
        "-u",
        "-x",
        "-v",
        "-eu",
        "-ex",
        "-eux",
        "-l",
        "-i",
        "-il",
        "-p",
        "--login",
        "--posix",
        "--norc",
        "--noprofile",
    ],
    with_value: &["-o", "-O", "+o"],
    shell: true,
};

fn program(name: &str) -> Option<Program> {
    let script = |alone, with_value| Program::Script { alone, with_value, shell: false };
    Some(match name {
        "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "mksh" => SHELL,
        name if is_python(name) => {
            script(&["-u", "-B", "-E", "-I", "-s", "-S", "-v", "-q", "-O", "-OO"], &["-X", "-W"])
        }
        "node" | "nodejs" => {
            script(&["--trace-warnings", "--no-warnings", "--enable-source-maps"], &[])
        }
        "bun" | "deno" | "npx" | "bunx" | "uv" | "uvx" | "pipx" | "tsx" | "ts-node" => {
            Program::Runner
        }
        "ruby" => script(&["-w", "-W"], &[]),
        "perl" => script(&["-w", "-T", "-t", "-W"], &[]),
        "php" => script(&["-n", "-q"], &[]),
        "lua" | "luajit" | "Rscript" | "fish" | "osascript" | "pwsh" | "tclsh" | "expect" => {
            script(&[], &[])
        }
        "source" | "." => script(&[], &[]),
        "make" | "gmake" => Program::Make,
        "npm" | "yarn" | "pnpm" => Program::Package(&["package.json"]),
        "just" => Program::Package(&["justfile", "Justfile", ".justfile"]),
        "xargs" | "find" | "parallel" | "watch" | "ssh" | "eval" | "trap" | "su" | "docker"
        | "podman" | "kubectl" | "screen" | "tmux" | "at" | "batch" | "crontab" | "awk"
        | "gawk" | "sed" | "vim" | "emacs" | "gdb" | "script" | "chroot" | "nsenter"
        | "unshare" | "systemd-run" => Program::Runner,
        _ => return None,
    })
}

fn is_python(name: &str) -> bool {
    name.strip_prefix("python").is_some_and(|v| v.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
}

/// Commands that run the rest of their words, with nothing in between.
const PREFIXES: [&str; 7] = ["sudo", "env", "nohup", "exec", "command", "time", "builtin"];

/// Whether the program `name` runs further programs that its arguments name: interpreters,
/// wrappers and the like. An approval of a command that merely begins with it would cover all.
#[must_use]
pub fn runs_others(name: &str) -> bool {
    const WRAPPERS: [&str; 14] = [
        "flock", "timeout", "nice", "ionice", "setsid", "stdbuf", "strace", "ltrace", "doas",
        "chronic", "unbuffer", "busybox", "toybox", "cmd",
    ];
    let name = base(name);
    PREFIXES.contains(&name) || WRAPPERS.contains(&name) || program(name).is_some()
}

#[derive(Default)]
struct Finder {
    found: Operands,
}

/// Where a command runs.
#[derive(Clone)]
enum Place {
    /// In the working directory, or this far from it.
    At(String),
    Unknown,
}

impl Finder {
    fn script(&mut self, text: &str, nested: usize) {
        let script = read(text);
        let mut place = Place::At(String::new());
        for (at, command) in script.commands.iter().enumerate() {
            let piped = command.joint == Joint::Pipe;
            self.command(command, piped, &place, nested);
            let next = script.commands.get(at + 1).map(|next| (next.joint, next.depth));
            place = after(command, place, next);
        }
        if let Some(why) = script.unread {
            self.unbound(why, Why::Unread);
        }
    }

    fn command(&mut self, command: &Command, piped: bool, place: &Place, nested: usize) {
        for word in command.words.iter().chain(&command.assignments) {
            if word.literal.is_none() && (word.raw.contains("$(") || word.raw.contains('`')) {
                self.unbound(&word.raw, Why::Expansion);
            }
        }
        let mut words = command.words.as_slice();
        while let [first, rest @ ..] = words {
            let known = first.literal.as_deref().is_some_and(|name| PREFIXES.contains(&base(name)));
            if !known {
                break;
            }
            words = rest;
            // env and sudo may set variables first; their options are not followed.
            while let [first, rest @ ..] = words {
                match first.literal.as_deref() {
                    Some(text) if text.contains('=') && !text.starts_with('-') => words = rest,
                    Some(text) if text.starts_with('-') => {
                        self.unbound(&first.raw, Why::Option);
                        return;
                    }
                    _ => break,
                }
            }
        }
        let [name, arguments @ ..] = words else { return };
        let Some(literal) = name.literal.as_deref() else {
            self.unbound(&name.raw, Why::Expansion);
            return;
        };
        if literal.contains('/') {
            self.file(literal, place);
        }
        match program(base(literal)) {
            None => {}
            Some(Program::Runner) => self.unbound(&name.raw, Why::Runner),
            Some(Program::Package(files)) => files.iter().for_each(|file| self.file(file, place)),
            Some(Program::Make) => self.make(arguments, place),
            Some(Program::Script { alone, with_value, shell }) => {
                let options = (alone, with_value, shell);
                let input = Input { redirections: &command.redirections, piped };
                self.interpreter(name, arguments, options, input, place, nested);
            }
        }
    }

    fn interpreter(
        &mut self,
        name: &Word,
        arguments: &[Word],
        (alone, with_value, shell): (&[&str], &[&str], bool),
        input: Input<'_>,
        place: &Place,
        nested: usize,
    ) {
        let mut at = 0;
        while let Some(word) = arguments.get(at) {
            let Some(text) = word.literal.as_deref() else {
                self.unbound(&word.raw, Why::Expansion);
                return;
            };
            match text {
                "-" => break,
                "--" => {
                    at += 1;
                    break;
                }
                "-c" | "-ec" | "-lc" | "-euc" if shell => {
                    match arguments.get(at + 1).map(|text| (&text.raw, text.literal.as_deref())) {
                        Some((_, Some(text))) if nested < NESTED => self.script(text, nested + 1),
                        Some((raw, _)) => self.unbound(raw, Why::Expansion),
                        None => {}
                    }
                    return;
                }
                text if alone.contains(&text) => at += 1,
                text if with_value.contains(&text) => at += 2,
                text if text.starts_with(['-', '+']) => {
                    self.unbound(&format!("{} {text}", name.raw), Why::Option);
                    return;
                }
                _ => break,
            }
        }
        match arguments.get(at).map(|word| (&word.raw, word.literal.as_deref())) {
            Some((_, Some(file))) if file != "-" => self.file(file, place),
            Some((raw, None)) => self.unbound(raw, Why::Expansion),
            _ => self.input(name, input, place),
        }
    }

    /// An interpreter without a script reads one from its input.
    fn input(&mut self, name: &Word, input: Input<'_>, place: &Place) {
        let from = input.redirections.iter().rev().find(|r| r.operator == "<");
        match from.map(|from| from.target.literal.as_deref()) {
            Some(Some(file)) => self.file(file, place),
            Some(None) => self.unbound(&name.raw, Why::Expansion),
            None if input.piped => self.unbound(&name.raw, Why::Input),
            // `bash --version`, an interactive shell: nothing comes in without a terminal.
            None => {}
        }
    }

    fn make(&mut self, arguments: &[Word], place: &Place) {
        let mut at = 0;
        let mut named = false;
        while let Some(word) = arguments.get(at) {
            at += 1;
            let Some(text) = word.literal.as_deref() else {
                self.unbound(&word.raw, Why::Expansion);
                continue;
            };
            let joined = text.strip_prefix("--file=").or_else(|| text.strip_prefix("--makefile="));
            match text {
                "-f" | "--file" | "--makefile" => {
                    named = true;
                    match arguments.get(at).and_then(|word| word.literal.as_deref()) {
                        Some(file) => self.file(file, place),
                        None => self.unbound(text, Why::Expansion),
                    }
                    at += 1;
                }
                "-s" | "-k" | "-B" | "-n" | "-i" | "-j" | "--silent" => {}
                _ if joined.is_some() => {
                    named = true;
                    self.file(joined.unwrap_or_default(), place);
                }
                text if text.starts_with("-j") && text[2..].bytes().all(|b| b.is_ascii_digit()) => {
                }
                text if text.starts_with('-') => {
                    self.unbound(&format!("make {text}"), Why::Option);
                    return;
                }
                _ => {}
            }
        }
        if !named {
            // In the order in which make looks; one that appears in between is drift as well.
            ["GNUmakefile", "makefile", "Makefile"].iter().for_each(|file| self.file(file, place));
        }
    }

    fn file(&mut self, path: &str, place: &Place) {
        let path = match place {
            _ if path.starts_with('/') => String::from(path),
            Place::At(at) if at.is_empty() => String::from(path),
            Place::At(at) => format!("{at}/{path}"),
            Place::Unknown => {
                self.unbound(path, Why::Directory);
                return;
            }
        };
        if !self.found.files.contains(&path) {
            self.found.files.push(path);
        }
    }

    fn unbound(&mut self, what: &str, why: Why) {
        let fact = Unbound { what: String::from(what), why };
        if !self.found.unbound.contains(&fact) {
            self.found.unbound.push(fact);
        }
    }
}

#[derive(Clone, Copy)]
struct Input<'c> {
    redirections: &'c [Redirection],
    piped: bool,
}

/// Where the next command runs. A `cd` is followed when the next one runs only after its success,
/// in the same shell; everything else makes the place unknown.
fn after(command: &Command, place: Place, next: Option<(Joint, usize)>) -> Place {
    let Some((joint, depth)) = next else { return place };
    if let [name, arguments @ ..] = command.words.as_slice()
        && matches!(name.literal.as_deref(), Some("cd" | "pushd" | "popd"))
    {
        let target = match arguments {
            [one] => one.literal.as_deref().filter(|to| !to.starts_with('-') && !to.is_empty()),
            _ => None,
        };
        let is_cd = name.literal.as_deref() == Some("cd");
        return match (target, place) {
            (Some(to), place) if is_cd && joint == Joint::And && depth == command.depth => {
                match place {
                    _ if to.starts_with('/') => Place::At(String::from(to)),
                    Place::At(at) if at.is_empty() => Place::At(String::from(to)),
                    Place::At(at) => Place::At(format!("{at}/{to}")),
                    Place::Unknown => Place::Unknown,
                }
            }
            _ => Place::Unknown,
        };
    }
    match place {
        // A place that a `cd` chose holds as long as everything since has succeeded.
        Place::At(at) if !at.is_empty() && (joint != Joint::And || depth != command.depth) => {
            Place::Unknown
        }
        place => place,
    }
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `files | unbound words`, for the table.
    fn shown(command: &str) -> String {
        let found = of_command(command);
        let unbound: Vec<String> =
            found.unbound.iter().map(|u| format!("{}({:?})", u.what, u.why)).collect();
        format!("{} | {}", found.files.join(" "), unbound.join(" ")).trim().into()
    }

    #[test]
    fn the_table_of_commands_holds() {
        for line in include_str!("operands/table.txt").lines() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (command, expected) = line.split_once(" =>").unwrap();
            assert_eq!(shown(&command.replace("\\n", "\n")), expected.trim(), "{command}");
        }
    }
}
