//! Messages to the client, appended to a byte buffer: one compact line each.

use alloc::vec::Vec;

use super::UNSUPPORTED_VERSION;
use super::era::{Era, Revision};
use crate::tool::Output;

/// What stands in `serverInfo`.
const SERVER_INFO: &str =
    concat!(r#"{"name":"zcode-mail","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);
/// How long a client may keep the tool list, in milliseconds (one hour): it changes only with the
/// program.
const TTL_MS: &str = "3600000";

/// Appends `text` as a JSON string, with the two separators that JavaScript takes for line ends
/// escaped.
pub(super) fn put_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text;
    while let Some(at) = rest.find(special) {
        let (plain, tail) = rest.split_at(at);
        out.extend_from_slice(plain.as_bytes());
        let mut chars = tail.chars();
        match chars.next() {
            Some('"') => out.extend_from_slice(b"\\\""),
            Some('\\') => out.extend_from_slice(b"\\\\"),
            Some('\n') => out.extend_from_slice(b"\\n"),
            Some('\r') => out.extend_from_slice(b"\\r"),
            Some('\t') => out.extend_from_slice(b"\\t"),
            Some(c) => {
                out.extend_from_slice(b"\\u");
                for shift in [12_u32, 8, 4, 0] {
                    let digit = (u32::from(c) >> shift) & 0xf;
                    out.push(char::from_digit(digit, 16).map_or(b'0', |c| c as u8));
                }
            }
            None => {}
        }
        rest = chars.as_str();
    }
    out.extend_from_slice(rest.as_bytes());
    out.push(b'"');
}

fn special(c: char) -> bool {
    matches!(c, '"' | '\\' | '\0'..='\x1f' | '\x7f' | '\u{2028}' | '\u{2029}')
}

/// Appends a raw JSON token of the client's, made safe for readers that split at U+2028.
fn put_raw(out: &mut Vec<u8>, raw: &str) {
    for (nth, part) in raw.split('\u{2028}').enumerate() {
        if nth > 0 {
            out.extend_from_slice(b"\\u2028");
        }
        for (nth, part) in part.split('\u{2029}').enumerate() {
            if nth > 0 {
                out.extend_from_slice(b"\\u2029");
            }
            out.extend_from_slice(part.as_bytes());
        }
    }
}

fn open(out: &mut Vec<u8>, id: &str) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    put_raw(out, id);
}

/// What every stateless result carries beside its own members.
fn put_complete(out: &mut Vec<u8>, era: Era) {
    if era == Era::Stateless {
        out.extend_from_slice(
            b",\"resultType\":\"complete\",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":",
        );
        out.extend_from_slice(SERVER_INFO.as_bytes());
        out.push(b'}');
    }
}

fn put_cache_hints(out: &mut Vec<u8>, era: Era) {
    if era == Era::Stateless {
        out.extend_from_slice(b",\"ttlMs\":");
        out.extend_from_slice(TTL_MS.as_bytes());
        out.extend_from_slice(b",\"cacheScope\":\"public\"");
    }
}

/// An error answer; without an id when none could be read (schema of 2025-11-25 and later).
pub(super) fn put_error(out: &mut Vec<u8>, id: Option<&str>, code: i32, message: &str) {
    match id {
        Some(id) => open(out, id),
        None => out.extend_from_slice(b"{\"jsonrpc\":\"2.0\""),
    }
    out.extend_from_slice(b",\"error\":{\"code\":");
    put_number(out, i64::from(code));
    out.extend_from_slice(b",\"message\":");
    put_string(out, message);
    out.extend_from_slice(b"}}\n");
}

/// -32022 with what is supported and what was asked for.
pub(super) fn put_unsupported(out: &mut Vec<u8>, id: &str, requested: &str) {
    open(out, id);
    out.extend_from_slice(b",\"error\":{\"code\":");
    put_number(out, i64::from(UNSUPPORTED_VERSION));
    out.extend_from_slice(
        b",\"message\":\"unsupported protocol version\",\"data\":{\"supported\":",
    );
    put_revisions(out);
    out.extend_from_slice(b",\"requested\":");
    put_raw(out, requested);
    out.extend_from_slice(b"}}}\n");
}

fn put_revisions(out: &mut Vec<u8>) {
    for (nth, revision) in Revision::ALL.into_iter().enumerate() {
        out.push(if nth == 0 { b'[' } else { b',' });
        put_string(out, revision.name());
    }
    out.push(b']');
}

/// The answer to `ping`.
pub(super) fn put_pong(out: &mut Vec<u8>, id: &str) {
    open(out, id);
    out.extend_from_slice(b",\"result\":{}}\n");
}

/// The answer to `initialize`.
pub(super) fn put_initialized(out: &mut Vec<u8>, id: &str, revision: Revision, guide: &str) {
    open(out, id);
    out.extend_from_slice(b",\"result\":{\"protocolVersion\":");
    put_string(out, revision.name());
    out.extend_from_slice(b",\"capabilities\":{\"tools\":{}},\"serverInfo\":");
    out.extend_from_slice(SERVER_INFO.as_bytes());
    out.extend_from_slice(b",\"instructions\":");
    put_string(out, guide);
    out.extend_from_slice(b"}}\n");
}

/// The answer to `server/discover`.
pub(super) fn put_discovered(out: &mut Vec<u8>, id: &str, guide: &str) {
    open(out, id);
    out.extend_from_slice(b",\"result\":{\"supportedVersions\":");
    put_revisions(out);
    out.extend_from_slice(b",\"capabilities\":{\"tools\":{}},\"instructions\":");
    put_string(out, guide);
    put_cache_hints(out, Era::Stateless);
    put_complete(out, Era::Stateless);
    out.extend_from_slice(b"}}\n");
}

/// The answer to `tools/list`; `tools` is a JSON array.
pub(super) fn put_tools(out: &mut Vec<u8>, id: &str, era: Era, tools: &str) {
    open(out, id);
    out.extend_from_slice(b",\"result\":{\"tools\":");
    out.extend_from_slice(tools.as_bytes());
    put_cache_hints(out, era);
    put_complete(out, era);
    out.extend_from_slice(b"}}\n");
}

/// The answer to `tools/call`.
pub(super) fn put_output(out: &mut Vec<u8>, id: &str, era: Era, output: &Output) {
    open(out, id);
    out.extend_from_slice(b",\"result\":{\"content\":[{\"type\":\"text\",\"text\":");
    put_string(out, &output.text);
    out.extend_from_slice(b"}],\"isError\":");
    out.extend_from_slice(if output.is_error { b"true" } else { b"false" });
    put_complete(out, era);
    out.extend_from_slice(b"}}\n");
}

/// A progress notification for the client's own token.
pub(super) fn put_progress(out: &mut Vec<u8>, token: &str, done: u64, total: u64) {
    out.extend_from_slice(
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":",
    );
    put_raw(out, token);
    out.extend_from_slice(b",\"progress\":");
    put_number(out, i64::try_from(done).unwrap_or(i64::MAX));
    out.extend_from_slice(b",\"total\":");
    put_number(out, i64::try_from(total).unwrap_or(i64::MAX));
    out.extend_from_slice(b"}}\n");
}

fn put_number(out: &mut Vec<u8>, number: i64) {
    out.extend_from_slice(alloc::format!("{number}").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_survives_and_holds_no_line_separator() {
        let text = "a\u{2028}b\u{2029}\"\\\n\r\t\0\u{1b}\u{7f} 会 \u{1f600}\u{202e}";
        let mut out = Vec::new();
        put_string(&mut out, text);
        let wire = core::str::from_utf8(&out).unwrap();
        assert!(!wire.contains(['\n', '\r', '\u{2028}', '\u{2029}']));
        assert_eq!(serde_json::from_str::<alloc::string::String>(wire).unwrap(), text);
    }

    #[test]
    fn an_id_with_a_line_separator_is_escaped_and_stays_the_same_string() {
        let mut out = Vec::new();
        put_pong(&mut out, "\"a\u{2028}\u{2029}b\"");
        let text = core::str::from_utf8(&out).unwrap();
        assert!(text.contains(r#""id":"a\u2028\u2029b""#), "{text}");
    }
}
