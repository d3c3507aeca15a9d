//! The names of attachments: kept safe, and sent so that every client reads them (RFC 6266).

use http::header::HeaderValue;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Longest file name that is kept, in bytes: what file systems take.
const NAME_LIMIT: usize = 255;

/// The last component of a name, cut to what file systems take; "attachment" for none.
pub(super) fn kept(name: &str) -> String {
    let base = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let clean: String = base.chars().filter(|c| !c.is_control()).collect();
    let cut = &clean[..clean.floor_char_boundary(NAME_LIMIT)];
    match cut.trim() {
        "" | "." | ".." => "attachment".to_owned(),
        kept => kept.to_owned(),
    }
}

/// `Content-Disposition` of RFC 6266: a name in ASCII for old clients, the true one encoded.
pub(super) fn disposition(filename: &str) -> HeaderValue {
    // The characters of `attr-char` in RFC 5987.
    const KEEP: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'!')
        .remove(b'#')
        .remove(b'$')
        .remove(b'&')
        .remove(b'+')
        .remove(b'-')
        .remove(b'.')
        .remove(b'^')
        .remove(b'_')
        .remove(b'`')
        .remove(b'|')
        .remove(b'~');
    let plain: String = filename
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_. ".contains(c) { c } else { '_' })
        .collect();
    let encoded = utf8_percent_encode(filename, KEEP);
    let value = format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}");
    HeaderValue::from_str(&value).unwrap_or(HeaderValue::from_static("attachment"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_last_component_and_no_control_characters() {
        for (given, expected) in [
            ("报告.pdf", "报告.pdf"),
            ("../../etc/passwd", "passwd"),
            ("C:\\x\\y.txt", "y.txt"),
            ("a\r\nb\u{0}.txt", "ab.txt"),
            ("..", "attachment"),
            ("", "attachment"),
            ("x/", "attachment"),
            (" ", "attachment"),
        ] {
            assert_eq!(kept(given), expected, "{given:?}");
        }
        assert_eq!(kept(&"会".repeat(100)).len(), 255);
    }

    #[test]
    fn the_header_is_ascii_and_carries_the_true_name() {
        let value = disposition("a \"b\" 会\u{202e}.pdf");
        let text = value.to_str().unwrap();
        assert_eq!(
            text,
            "attachment; filename=\"a _b_ __.pdf\"; \
             filename*=UTF-8''a%20%22b%22%20%E4%BC%9A%E2%80%AE.pdf"
        );
        let read = zcode_mail_core::api::attachment::disposition_name(text);
        assert_eq!(read.as_deref(), Some("a \"b\" 会\u{202e}.pdf"));
    }
}
