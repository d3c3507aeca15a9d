//! Events to bytes.
//!
//! The one place where event-stream text is made, because framing holds only when no value can end
//! its line. Each function appends whole blocks, ended by their blank line, so that they can be
//! mixed freely and a comment never stands inside an event.

use alloc::vec::Vec;
use core::iter;
use memchr::{memchr2, memchr3};

/// Appends one event.
///
/// - `data` is split at CR, LF and CRLF into one `data` line each; a reader joins them with LF.
/// - `name`: every CR and LF becomes a space. An empty name is left out and means `message`.
/// - `id`: one with CR, LF or NUL cannot be carried and is left out, because a changed id would
///   resume somewhere else. `Some("")` resets the reader's id; `None` leaves it as it is.
pub fn put_event(out: &mut Vec<u8>, id: Option<&str>, name: &str, data: &str) {
    if let Some(id) = id.filter(|id| memchr3(b'\r', b'\n', 0, id.as_bytes()).is_none()) {
        put_field(out, b"id", id.as_bytes());
    }
    if !name.is_empty() {
        out.extend_from_slice(b"event: ");
        out.extend(name.bytes().map(|byte| if is_line_end(byte) { b' ' } else { byte }));
        out.push(b'\n');
    }
    for line in lines(data) {
        put_field(out, b"data", line);
    }
    out.push(b'\n');
}

/// Appends a comment: a sign of life that no reader takes for an event. Each line of `text` becomes
/// a comment line.
pub fn put_comment(out: &mut Vec<u8>, text: &str) {
    for line in lines(text) {
        put_field(out, b"", line);
    }
    out.push(b'\n');
}

/// Appends a wish for the reader's reconnection time, in milliseconds.
pub fn put_retry(out: &mut Vec<u8>, ms: u64) {
    use alloc::string::ToString as _;
    put_field(out, b"retry", ms.to_string().as_bytes());
    out.push(b'\n');
}

/// `value` holds no line end. The space keeps one that the value begins with.
fn put_field(out: &mut Vec<u8>, field: &[u8], value: &[u8]) {
    out.extend_from_slice(field);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.push(b'\n');
}

const fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// The lines of `text` by the format's own line ends; a text without any is one line.
fn lines(text: &str) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text.as_bytes());
    iter::from_fn(move || {
        let all = rest?;
        let Some(end) = memchr2(b'\r', b'\n', all) else {
            rest = None;
            return Some(all);
        };
        let long = if all[end..].starts_with(b"\r\n") { 2 } else { 1 };
        rest = Some(&all[end + long..]);
        Some(&all[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    fn event(id: Option<&str>, name: &str, data: &str) -> String {
        let mut out = Vec::new();
        put_event(&mut out, id, name, data);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_event_is_its_fields_and_a_blank_line() {
        assert_eq!(event(Some("7"), "new_mail", "{}"), "id: 7\nevent: new_mail\ndata: {}\n\n");
        assert_eq!(event(None, "", ""), "data: \n\n");
        assert_eq!(event(Some(""), "", " x"), "id: \ndata:  x\n\n");
    }

    #[test]
    fn data_is_split_at_every_kind_of_line_end() {
        assert_eq!(
            event(None, "", "a\nb\rc\r\nd\n\r"),
            "data: a\ndata: b\ndata: c\ndata: d\ndata: \ndata: \n\n"
        );
    }

    #[test]
    fn a_name_cannot_end_its_line() {
        assert_eq!(event(None, "a\nid: 1\r\n", "x"), "event: a id: 1  \ndata: x\n\n");
    }

    #[test]
    fn an_id_that_cannot_be_carried_is_left_out() {
        for id in ["1\n", "\r", "1\0"] {
            assert_eq!(event(Some(id), "", "x"), "data: x\n\n", "{id:?}");
        }
    }

    #[test]
    fn comments_and_retry_are_blocks_of_their_own() {
        let mut out = Vec::new();
        put_comment(&mut out, "still\r\nhere");
        put_comment(&mut out, "");
        put_retry(&mut out, 2000);
        assert_eq!(out, b": still\n: here\n\n: \n\nretry: 2000\n\n");
    }
}
