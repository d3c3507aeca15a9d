//! What a decision is bound to: one digest over a tool call and everything that it depends on.
//!
//! What it is: SHA-256 over tool, canonical input, working directory, session, agent and the state
//! of each script operand, with a domain in front and every part behind a tag and its length, so
//! that no two different calls have the same bytes. The digest travels as one line inside the
//! `context` of the question (design row 18: the body carries only fields of the contract) and is
//! shown to people as a short code.
//!
//! ```text
//!   bytes   = DOMAIN part*            part = tag(1) length(8, big-endian) content
//!   parts   = t tool, i input, d directory, s session, a agent, then o operand*, in this order;
//!             an absent session or agent has no part
//!   input   = n | b 0/1 | # digits | " length text | [ count item* | { count (length key item)*
//!   operand = length path, then 0 (no file there) or 1 and the SHA-256 of its bytes
//!   line    = zcode-mail-digest v1 sha256:<64 hex> code:XXXX-XXXX
//! ```
//!
//! Design row 8 of "bound", faults rows 8 and 9, issue "a gate that can be trusted with a shell" 2.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use sha2::{Digest as _, Sha256};

use crate::exact::Value;

/// Stands in front of everything that is hashed here, so that a digest of another purpose or
/// version can never be taken for one of these.
const DOMAIN: &[u8] = b"zcode-mail-bridge call v1\n";

/// How the line in `context` begins.
pub const LINE_START: &str = "zcode-mail-digest v1 sha256:";

/// The digits of the short code: Crockford's base 32, which has no I, L, O and U.
const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// The state of one file that the call depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Operand {
    /// The path as it was opened.
    pub path: String,
    /// SHA-256 of its bytes; `None` when there was no file.
    pub sha256: Option<[u8; 32]>,
}

/// Everything that a decision is bound to.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// Its input.
    pub input: &'a Value,
    /// The working directory, as the host named it.
    pub cwd: &'a str,
    /// The session that the call belongs to.
    pub session: Option<&'a str>,
    /// The agent in whose name the call is made.
    pub agent: Option<&'a str>,
    /// The files that the call depends on, in the order of the command.
    pub operands: &'a [Operand],
}

/// The digest of a [`Call`].
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallDigest(pub [u8; 32]);

impl CallDigest {
    /// The digest of `call`.
    #[must_use]
    pub fn of(call: &Call<'_>) -> Self {
        let mut hash = Sha256::new();
        hash.update(DOMAIN);
        let mut bytes = Vec::new();
        put_value(&mut bytes, call.input);
        let mut part = |tag: u8, content: &[u8]| {
            hash.update([tag]);
            hash.update(length(content.len()));
            hash.update(content);
        };
        part(b't', call.tool.as_bytes());
        part(b'i', &bytes);
        part(b'd', call.cwd.as_bytes());
        for (tag, text) in [(b's', call.session), (b'a', call.agent)] {
            if let Some(text) = text {
                part(tag, text.as_bytes());
            }
        }
        for operand in call.operands {
            bytes.clear();
            put_counted(&mut bytes, operand.path.as_bytes());
            match operand.sha256 {
                None => bytes.push(0),
                Some(sha256) => {
                    bytes.push(1);
                    bytes.extend(sha256);
                }
            }
            part(b'o', &bytes);
        }
        Self(hash.finalize().into())
    }

    /// 64 lower-case hexadecimal digits.
    #[must_use]
    pub fn hex(&self) -> String {
        hex(&self.0)
    }

    /// Eight characters for people to compare, as `XXXX-XXXX`: the first 40 bits. Enough to notice
    /// a mix-up; programs compare the whole digest.
    #[must_use]
    pub fn code(&self) -> String {
        let bits = self.0[..5].iter().fold(0_u64, |bits, &byte| bits << 8 | u64::from(byte));
        let mut code = String::with_capacity(9);
        for at in 0..8 {
            if at == 4 {
                code.push('-');
            }
            let digit = (bits >> (35 - 5 * at)) & 31;
            code.push(char::from(CROCKFORD[digit as usize]));
        }
        code
    }

    /// The line that carries the digest inside `context`, without a line end.
    #[must_use]
    pub fn line(&self) -> String {
        format!("{LINE_START}{} code:{}", self.hex(), self.code())
    }

    /// The digest that 64 hexadecimal digits of either case spell.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16);
            *byte = (digit(0)? << 4 | digit(1)?) as u8;
        }
        Some(Self(bytes))
    }

    /// The digest of a line made by [`CallDigest::line`]. The line must be exactly that: another
    /// code, case or a trailing character is no digest line.
    #[must_use]
    pub fn from_line(line: &str) -> Option<Self> {
        let digest = Self::from_hex(line.strip_prefix(LINE_START)?.get(..64)?)?;
        (digest.line() == line).then_some(digest)
    }

    /// The digest in `context`: `Ok(None)` when no line begins like one, as with foreign bridges.
    ///
    /// # Errors
    /// [`Unclear`] when such a line is malformed or there are two.
    pub fn find(context: &str) -> Result<Option<Self>, Unclear> {
        let mut found = None;
        for line in context.split('\n') {
            let line = line.strip_suffix('\r').unwrap_or(line);
            if !line.starts_with(LINE_START) {
                continue;
            }
            let digest = Self::from_line(line).ok_or(Unclear::Malformed)?;
            if found.replace(digest).is_some() {
                return Err(Unclear::Twice);
            }
        }
        Ok(found)
    }
}

impl fmt::Debug for CallDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallDigest({})", self.code())
    }
}

/// Why a context names no digest although it seems to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unclear {
    /// A digest line that [`CallDigest::line`] cannot have made.
    Malformed,
    /// More than one digest line.
    Twice,
}

impl fmt::Display for Unclear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "the context has a malformed digest line",
            Self::Twice => "the context has two digest lines",
        })
    }
}

impl core::error::Error for Unclear {}

/// SHA-256 of a file's bytes, for [`Operand::sha256`].
#[must_use]
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Lower-case hexadecimal digits of `bytes`.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

fn length(count: usize) -> [u8; 8] {
    (count as u64).to_be_bytes()
}

fn put_counted(out: &mut Vec<u8>, content: &[u8]) {
    out.extend(length(content.len()));
    out.extend(content);
}

fn put_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.push(b'n'),
        Value::Bool(value) => out.extend([b'b', u8::from(*value)]),
        Value::Number(digits) => {
            out.push(b'#');
            put_counted(out, digits.as_bytes());
        }
        Value::Text(text) => {
            out.push(b'"');
            put_counted(out, text.as_bytes());
        }
        Value::List(items) => {
            out.push(b'[');
            out.extend(length(items.len()));
            items.iter().for_each(|item| put_value(out, item));
        }
        Value::Object(members) => {
            out.push(b'{');
            out.extend(length(members.len()));
            for (key, value) in members {
                put_counted(out, key.as_bytes());
                put_value(out, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_spells_the_first_forty_bits() {
        let mut bytes = [0; 32];
        assert_eq!(CallDigest(bytes).code(), "0000-0000");
        bytes[..5].fill(0xFF);
        assert_eq!(CallDigest(bytes).code(), "ZZZZ-ZZZZ");
        bytes[..5].copy_from_slice(&[
            0b0000_1000,
            0b1000_0110,
            0b0100_0010,
            0b1001_1000,
            0b1110_1000,
        ]);
        assert_eq!(CallDigest(bytes).code(), "1234-5678");
    }

    #[test]
    fn only_the_exact_line_is_a_digest_line() {
        let digest = CallDigest([7; 32]);
        let line = digest.line();
        assert_eq!(CallDigest::from_line(&line), Some(digest));
        for wrong in [
            format!("{line} "),
            format!(" {line}"),
            line.replace("code:", "code: "),
            line.replace("code:0", "code:1"),
            line.replace("0707", "0708"),
            line.replace(&digest.hex(), &"A".repeat(64)),
            line[..line.len() - 1].into(),
            line.replace("v1", "v2"),
        ] {
            assert_eq!(CallDigest::from_line(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_context_names_one_digest_or_none() {
        let line = CallDigest([7; 32]).line();
        assert_eq!(CallDigest::find("tool: Bash\n| ls"), Ok(None));
        assert_eq!(CallDigest::find(&format!("a\n{line}\nb")), Ok(Some(CallDigest([7; 32]))));
        assert_eq!(CallDigest::find(&format!("a\r\n{line}\r\n")), Ok(Some(CallDigest([7; 32]))));
        // Inside the shown input every line stands behind a gutter.
        assert_eq!(CallDigest::find(&format!("| {line}")), Ok(None));
        assert_eq!(CallDigest::find(&format!("{line}\n{line}")), Err(Unclear::Twice));
        assert_eq!(CallDigest::find(&format!("{line}x")), Err(Unclear::Malformed));
        assert_eq!(CallDigest::find(LINE_START), Err(Unclear::Malformed));
    }
}
