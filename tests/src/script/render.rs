//! Scripts for the renderer: a tool call with everything that goes with it.

use super::byte;
use arbitrary::Unstructured;
use zcode_mail_core::digest::Operand;
use zcode_mail_core::exact::Value;
use zcode_mail_core::lang::Lang;
use zcode_mail_core::render::Label;

/// Pieces of text that matter: what forges lines, hides, imitates, pads, or has a meaning to us.
const PIECES: [&str; 64] = [
    "a",
    "rm -rf build",
    "echo done",
    " ",
    "    ",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "\t",
    "| ",
    "+ ",
    "- ",
    "  ",
    "[command]",
    "[old_string → new_string]",
    "[@ → content]",
    "tool: Bash",
    "工具: Bash",
    "⚠ ",
    "⚑ x",
    "ⓘ x",
    "bound absent /x",
    "zcode-mail-digest v1 sha256:",
    "⟦",
    "⟧",
    "⟦U+202E⟧",
    "⟦space×3⟧",
    "⟦secret×3⟧",
    "⇥",
    "↳ ",
    "\u{202e}",
    "\u{2066}",
    "\u{200b}",
    "\u{200d}",
    "\u{feff}",
    "\u{ad}",
    "\u{fe0f}",
    "\u{e0041}",
    "\u{e0101}",
    "\u{1b}[31m",
    "\u{9b}1m",
    "\0",
    "\u{7f}",
    "\u{85}",
    "\u{a0}",
    "\u{3000}",
    "\u{2028}",
    "\u{2800}",
    "\u{3164}",
    "p\u{430}ypal",
    "\u{441}\u{43e}\u{440}\u{443}",
    "\u{ff52}\u{ff4d}",
    "\u{37e}",
    "修复；登录",
    "e\u{301}\u{302}\u{303}",
    "\u{338}",
    "\u{e000}",
    "\u{378}",
    "                                        ",
    "\n\n\n\n\n\n\n\n\n\n\n\n",
    "FOO_TOKEN=abcdefgh",
    "\"\\",
    "🚀",
];

const TOOLS: [&str; 7] =
    ["Bash", "Write", "Edit", "MultiEdit", "ApplyPatch", "NotebookEdit", "mcp__node_repl__js"];

const KEYS: [&str; 16] = [
    "command",
    "description",
    "file_path",
    "content",
    "old_string",
    "new_string",
    "replace_all",
    "edits",
    "patch_text",
    "new_source",
    "timeout",
    "",
    "a]b",
    "edits/0/x",
    "→",
    "@",
];

/// A tool call.
#[derive(Clone, Debug)]
pub struct Script {
    /// The reader's language.
    pub lang: Lang,
    /// The tool.
    pub tool: String,
    /// The working directory.
    pub cwd: String,
    /// The input.
    pub input: Value,
    /// Further facts.
    pub facts: Vec<(Label, String)>,
    /// The file on disk.
    pub before: Option<String>,
    /// Bound files.
    pub operands: Vec<Operand>,
    /// Notes of the bridge that quote text from elsewhere.
    pub notes: Vec<String>,
}

impl Script {
    /// Reads a script.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Self {
        let mut u = Unstructured::new(bytes);
        let u = &mut u;
        let lang = if next(u) & 1 == 0 { Lang::Zh } else { Lang::En };
        let tool = match usize::from(next(u) & 7) {
            7 => text(u),
            known => TOOLS[known].into(),
        };
        let input = value(u, 0);
        let cwd = text(u);
        let facts = (0..next(u) & 3)
            .map(|_| (Label::ALL[2 + usize::from(next(u)) % (Label::ALL.len() - 2)], text(u)))
            .collect();
        let before = (next(u) & 1 == 1).then(|| text(u));
        let operands = (0..next(u) & 3)
            .map(|_| Operand { path: text(u), sha256: (next(u) & 1 == 1).then_some([next(u); 32]) })
            .collect();
        let notes = (0..next(u) & 1).map(|_| text(u)).collect();
        Self { lang, tool, cwd, input, facts, before, operands, notes }
    }
}

fn next(u: &mut Unstructured<'_>) -> u8 {
    byte(u).unwrap_or(0)
}

/// Up to 31 pieces or single characters.
fn text(u: &mut Unstructured<'_>) -> String {
    let mut out = String::new();
    for _ in 0..next(u) & 31 {
        let code = next(u);
        match code >> 6 {
            0..=2 => out.push_str(PIECES[usize::from(code & 63)]),
            _ => {
                let code = u32::from_be_bytes([0, next(u), next(u), next(u)]) % 0x11_0000;
                out.push(char::from_u32(code).unwrap_or('?'));
            }
        }
    }
    out
}

/// Mostly an object; deeper down mostly a text.
fn value(u: &mut Unstructured<'_>, depth: usize) -> Value {
    let code = next(u);
    match code & 15 {
        0..=7 if depth == 0 => object(u, depth),
        8 => Value::Null,
        9 => Value::Bool(code & 16 == 0),
        10 => Value::Number(
            ["0", "-1.50", "1e999", "12345678901234567890123"][usize::from(code >> 6)].into(),
        ),
        11 if depth < 3 => Value::List((0..next(u) & 3).map(|_| value(u, depth + 1)).collect()),
        12 if depth < 3 => object(u, depth),
        // The element of a multiple edit.
        13 if depth < 3 => Value::List(
            (0..=next(u) & 1)
                .map(|_| {
                    let pair = [("old_string", text(u)), ("new_string", text(u))];
                    let pair = pair.map(|(key, text)| (key.to_owned(), Value::Text(text)));
                    let mut members = Vec::from(pair);
                    if next(u) & 1 == 1 {
                        members.push((key(u), value(u, 3)));
                    }
                    Value::object(members)
                })
                .collect(),
        ),
        _ => Value::Text(text(u)),
    }
}

fn object(u: &mut Unstructured<'_>, depth: usize) -> Value {
    Value::object((0..next(u) & 7).map(|_| (key(u), value(u, depth + 1))).collect())
}

fn key(u: &mut Unstructured<'_>) -> String {
    match usize::from(next(u)) {
        code @ 0..=223 => KEYS[code & 15].into(),
        _ => text(u),
    }
}
