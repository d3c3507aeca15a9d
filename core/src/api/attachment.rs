//! `POST /attachments` and `GET /attachments/{id}` (`W-8`).
//!
//! The bytes stream through the runtime; this module says where they go, how a multipart body
//! frames them and what the answers mean.

use alloc::format;
use alloc::string::String;

use super::ApiError;
use super::listing::label;
use crate::http::{self, Outcome, push_segment};

/// The path of an upload, below the API prefix.
pub const UPLOAD_PATH: &str = "/attachments";
/// Largest attachment by default, in bytes (25 MB of 1024 x 1024, `W-8`). The gateway decides; the
/// bridge checks first only so that nobody waits for a transfer that must fail.
pub const MAX_BYTES: u64 = 25 * 1024 * 1024;
/// The part's name (`W-8`).
const FIELD: &str = "file";

/// What stands before and after the bytes of an upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multipart {
    /// `Content-Type` of the request.
    pub content_type: String,
    /// Bytes before the file.
    pub head: String,
    /// Bytes after the file.
    pub tail: String,
}

impl Multipart {
    /// Frames a file named `filename`. `boundary` must not occur in the file: the caller makes one
    /// of random characters, `[0-9a-z]`.
    ///
    /// A quote, CR or LF in the name is written percent-encoded (WHATWG HTML, multipart form data).
    #[must_use]
    pub fn new(boundary: &str, filename: &str) -> Self {
        let mut name = String::with_capacity(filename.len());
        for c in filename.chars() {
            match c {
                '"' => name.push_str("%22"),
                '\r' => name.push_str("%0D"),
                '\n' => name.push_str("%0A"),
                c => name.push(c),
            }
        }
        Self {
            content_type: format!("multipart/form-data; boundary={boundary}"),
            head: format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"{FIELD}\"; \
                 filename=\"{name}\"\r\nContent-Type: application/octet-stream\r\n\r\n"
            ),
            tail: format!("\r\n--{boundary}--\r\n"),
        }
    }
}

/// An attachment that the gateway holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// What a send names it by; `None` when the gateway's answer has no id.
    pub attachment_id: Option<String>,
    /// The name it is stored under, if the gateway says so.
    pub filename: Option<String>,
    /// Bytes, if the gateway says so.
    pub size: Option<u64>,
}

/// Reads the answer to an upload.
///
/// # Errors
/// [`ApiError`]: 413 when the file is too large.
pub fn parse_upload(outcome: Outcome<'_>) -> Result<Stored, ApiError> {
    let body = super::read(outcome)?;
    let inner = ["attachment", "data"].iter().find_map(|key| body.get(key)).unwrap_or(&body);
    Ok(Stored {
        attachment_id: label(inner, &["attachment_id", "id"]),
        filename: inner.owned(&["filename", "name"]),
        size: inner.count("size"),
    })
}

/// The request for an attachment's bytes.
#[must_use]
pub fn download(attachment_id: &str) -> http::Request {
    let mut path = String::from("/attachments/");
    push_segment(&mut path, attachment_id);
    http::Request::get(&path)
}

/// Reads the answer to a download that is not the file.
///
/// # Errors
/// Always an [`ApiError`] for a status that is not 2xx; `Ok` means the reply was a success that
/// could not be saved.
pub fn parse_refusal(outcome: Outcome<'_>) -> Result<(), ApiError> {
    super::read(outcome).map(|_| ())
}

/// The file name in a `Content-Disposition` (RFC 6266): `filename*` in UTF-8 if there is one, else
/// `filename`. It is the sender's word and must be made safe before use.
#[must_use]
pub fn disposition_name(header: &str) -> Option<String> {
    let mut plain = None;
    let mut rest = header.split_once(';')?.1;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ';']);
        let (name, value) = rest.split_once('=')?;
        let name = name.trim();
        let (text, after) = parameter(value.trim_start());
        if name.eq_ignore_ascii_case("filename*") {
            let encoded = text.get(..7).filter(|p| p.eq_ignore_ascii_case("utf-8''"));
            if let Some(encoded) = encoded.and_then(|_| text.get(7..)) {
                let bytes = percent_encoding::percent_decode_str(encoded);
                return bytes.decode_utf8().ok().map(alloc::borrow::Cow::into_owned);
            }
        } else if name.eq_ignore_ascii_case("filename") {
            plain.get_or_insert(text);
        }
        rest = after;
        if !rest.contains('=') {
            return plain;
        }
    }
}

/// A token or quoted string, and what follows it.
fn parameter(value: &str) -> (String, &str) {
    let Some(quoted) = value.strip_prefix('"') else {
        let end = value.find(';').unwrap_or(value.len());
        let (token, after) = value.split_at(end);
        return (token.trim_end().into(), after);
    };
    let mut text = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (text, quoted.get(at + 1..).unwrap_or_default()),
            '\\' => text.extend(chars.next().map(|(_, c)| c)),
            c => text.push(c),
        }
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_break_out_of_its_header() {
        let form = Multipart::new("b0", "a\"; x=\"\r\n\r\n会.txt");
        assert_eq!(form.head.matches("\r\n").count(), 4);
        assert!(form.head.contains("filename=\"a%22; x=%22%0D%0A%0D%0A会.txt\""), "{}", form.head);
        assert_eq!(form.tail, "\r\n--b0--\r\n");
    }

    #[test]
    fn the_name_of_a_download_is_read_in_both_forms() {
        for (header, expected) in [
            ("attachment; filename=\"a b.txt\"", Some("a b.txt")),
            ("attachment; filename=plain.txt", Some("plain.txt")),
            ("attachment; filename=\"q\\\"uote\"", Some("q\"uote")),
            ("attachment; filename=\"x\"; filename*=UTF-8''%E4%BC%9A.txt", Some("会.txt")),
            ("attachment; filename*=utf-8''a%2Fb; filename=x", Some("a/b")),
            ("attachment; filename*=latin1''x; filename=y", Some("y")),
            ("attachment", None),
            ("attachment;", None),
            ("attachment; filename", None),
        ] {
            assert_eq!(disposition_name(header).as_deref(), expected, "{header}");
        }
    }
}
