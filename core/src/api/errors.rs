//! What a failed reply says: classification, message, advice, seconds to wait (`W-9`, TP-7, TP-8).

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use serde::Serialize;

use super::{ApiError, TemporaryCause, is_permanent};
use crate::http::Reply;
use crate::json::{self, Node};

/// Characters of an error text that are kept; the rest becomes `…`.
pub const MESSAGE_LIMIT: usize = 500;
/// Seconds to wait after a 429 that does not name any.
pub const DEFAULT_RETRY_AFTER_S: u64 = 60;

/// The body of an error reply as the gateway writes it.
///
/// `suggestion` is the next step for the model (409 of the permission endpoint), `retry_after_s`
/// the seconds of a 429, which also belong into the `Retry-After` header.
#[must_use]
pub fn error_body(message: &str, suggestion: Option<&str>, retry_after_s: Option<u64>) -> String {
    #[derive(Serialize)]
    struct Body<'b> {
        error: &'b str,
        #[serde(skip_serializing_if = "Option::is_none")]
        suggestion: Option<&'b str>,
        #[serde(rename = "retry_after", skip_serializing_if = "Option::is_none")]
        retry_after_s: Option<u64>,
    }
    super::encode_text(&Body { error: message, suggestion, retry_after_s })
}

/// The error of a reply that is not 2xx.
pub(super) fn classify(reply: &Reply<'_>) -> ApiError {
    let body = json::parse(reply.body).ok();
    let status = reply.status;
    let said = body.as_ref().and_then(message).map(|text| clean(&text));
    let message = said
        .filter(|text| !text.is_empty())
        .or_else(|| plain_text(reply))
        .unwrap_or_else(|| reason_phrase(status));
    if is_permanent(status) {
        let advice = body.as_ref().and_then(|node| node.text(&["suggestion", "hint"])).map(clean);
        let suggestion = advice.filter(|text| !text.is_empty());
        return ApiError::Permanent { status, message, suggestion };
    }
    let named = retry_after(reply, body.as_ref(), &message);
    let default = (status == 429).then_some(DEFAULT_RETRY_AFTER_S);
    let retry_after_s = named.or(default);
    ApiError::Temporary { cause: TemporaryCause::Status(status), message, retry_after_s }
}

/// Whether a reply is a page for people: by its type, or by its first character.
pub(super) fn is_html(reply: &Reply<'_>) -> bool {
    let typed = reply.content_type.is_some_and(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("text/html") || kind.eq_ignore_ascii_case("application/xhtml+xml")
    });
    typed || reply.body.trim_ascii_start().first() == Some(&b'<')
}

/// The first text among the usual keys; `error` may be an object with a `message`.
fn message(body: &Node) -> Option<String> {
    let nested = || body.get("error")?.text(&["message", "detail", "msg"]);
    let direct = body.text(&["error"]).or_else(nested);
    direct.or_else(|| body.text(&["message", "detail", "msg"])).map(ToOwned::to_owned)
}

/// A body without a known key, as it stands, unless it is a page or not text.
fn plain_text(reply: &Reply<'_>) -> Option<String> {
    if is_html(reply) {
        return None;
    }
    let text = clean(core::str::from_utf8(reply.body).ok()?);
    // A byte order mark, a NUL or a comment may stand before the markup.
    let lower = text.to_ascii_lowercase();
    if text.trim_start_matches('\u{feff}').starts_with('<')
        || ["<html", "<!doctype", "<head", "<body"].iter().any(|tag| lower.contains(tag))
    {
        return None;
    }
    // An object or list without any content says less than the reason phrase.
    (!matches!(text.as_str(), "" | "{}" | "[]" | "null")).then_some(text)
}

/// Trims, replaces control characters (a terminal or a log must not obey them) and cuts.
fn clean(text: &str) -> String {
    let visible = |c: char| if c.is_control() && c != '\n' { ' ' } else { c };
    let mut kept: String = text.trim().chars().take(MESSAGE_LIMIT).map(visible).collect();
    if text.trim().chars().nth(MESSAGE_LIMIT).is_some() {
        kept.pop();
        kept.push('…');
    }
    kept.trim().to_owned()
}

/// Seconds to wait: the header as a number or a date, else the body's fields, else the first whole
/// number in the message that stands before 秒 or `s`.
fn retry_after(reply: &Reply<'_>, body: Option<&Node>, message: &str) -> Option<u64> {
    let header = || {
        let value = reply.retry_after?.trim();
        value.parse().ok().or_else(|| {
            let until = http_date(value)?.checked_sub(http_date(reply.date?)?)?;
            Some(u64::try_from(until).unwrap_or(0))
        })
    };
    let fields = || {
        let keys = ["retry_after", "retry_after_seconds", "seconds"];
        let error = body?.get("error");
        keys.iter().find_map(|key| body?.count(key).or_else(|| error?.count(key)))
    };
    header().or_else(fields).or_else(|| seconds_in(message))
}

/// The first whole number followed by 秒 or by an `s` that is a word or starts "sec".
fn seconds_in(message: &str) -> Option<u64> {
    let mut rest = message;
    loop {
        let start = rest.find(|c: char| c.is_ascii_digit())?;
        rest = &rest[start..];
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, after) = rest.split_at(end);
        let unit = after.trim_start();
        let english = unit.strip_prefix(['s', 'S']).is_some_and(|tail| {
            !tail.starts_with(|c: char| c.is_alphanumeric())
                || tail.get(..2).is_some_and(|sec| sec.eq_ignore_ascii_case("ec"))
        });
        if unit.starts_with('秒') || english {
            return digits.parse().ok();
        }
        rest = after;
    }
}

/// Seconds since 1970 of an HTTP date in any of its three forms (RFC 9110 section 5.6.7).
fn http_date(text: &str) -> Option<i64> {
    const FORMS: [&str; 3] =
        ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];
    FORMS.iter().find_map(|form| {
        let stamp = jiff::civil::DateTime::strptime(form, text.trim()).ok()?;
        let utc = jiff::tz::Offset::UTC.to_timestamp(stamp).ok()?;
        Some(utc.as_second())
    })
}

/// What a status means when the reply does not say.
fn reason_phrase(status: u16) -> String {
    let words = match status {
        300..=399 => "redirected elsewhere; redirects are not followed with credentials",
        400 => "bad request",
        401 => "the key is not valid",
        402 => "payment required",
        403 => "forbidden",
        404 => "not found",
        405 => "method not allowed",
        408 => "request timeout",
        409 => "conflict",
        410 => "gone",
        413 => "too large",
        415 => "unsupported media type",
        422 => "not acceptable as sent",
        429 => "too many requests",
        500 => "internal server error",
        502 => "bad gateway",
        503 => "service unavailable",
        504 => "gateway timeout",
        _ => return format!("HTTP {status}"),
    };
    format!("HTTP {status} {words}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;

    fn failed(status: u16, body: &str) -> ApiError {
        classify(&Reply::json(status, body.as_bytes()))
    }

    #[test]
    fn the_message_is_found_under_any_usual_key() {
        for body in [
            r#"{"error":"why"}"#,
            r#"{"error":{"code":4,"message":"why"}}"#,
            r#"{"error":{"code":4},"message":"why"}"#,
            r#"{"error":"","message":7,"detail":"why"}"#,
            r#"{"msg":" why "}"#,
            "why",
        ] {
            assert_eq!(failed(400, body).message(), "why", "{body}");
        }
        assert_eq!(failed(409, r#"{"code":7}"#).message(), r#"{"code":7}"#);
        assert_eq!(failed(409, "{}").message(), "HTTP 409 conflict");
        assert_eq!(failed(418, "").message(), "HTTP 418");
    }

    #[test]
    fn a_page_is_never_pasted() {
        for body in
            ["<!DOCTYPE html><p>secret</p>", " \n<html>", "\0<p>", "\u{feff}<p>", "x <BODY>"]
        {
            for status in [302, 403, 404, 502] {
                assert!(!failed(status, body).to_string().contains('<'), "{status}");
            }
        }
        let typed = Reply { content_type: Some("text/html"), ..Reply::json(404, b"page") };
        assert_eq!(classify(&typed).message(), "HTTP 404 not found");
        let binary = Reply::json(500, b"\xff\xfe");
        assert_eq!(classify(&binary).message(), "HTTP 500 internal server error");
    }

    #[test]
    fn the_text_is_cut_at_the_limit_and_holds_no_control_characters() {
        let exact = "会".repeat(MESSAGE_LIMIT);
        assert_eq!(failed(400, &exact).message(), exact);
        let long = failed(400, &"会".repeat(MESSAGE_LIMIT + 1));
        assert_eq!(long.message().chars().count(), MESSAGE_LIMIT);
        assert!(long.message().ends_with('…'));
        assert_eq!(failed(400, "a\u{1b}[31mb\r\nc\u{9b}").message(), "a [31mb \nc");
    }

    #[test]
    fn advice_comes_along_with_a_permanent_failure() {
        let body = error_body("没有人类", Some("请改用别的办法"), None);
        let ApiError::Permanent { status: 409, message, suggestion } = failed(409, &body) else {
            panic!("409 is permanent")
        };
        assert_eq!((message.as_str(), suggestion.as_deref()), ("没有人类", Some("请改用别的办法")));
        let ApiError::Permanent { suggestion, .. } = failed(409, r#"{"error":"e","hint":"h"}"#)
        else {
            panic!("409 is permanent")
        };
        assert_eq!(suggestion.as_deref(), Some("h"));
    }

    fn seconds(retry_after: Option<&str>, date: Option<&str>, body: &str) -> Option<u64> {
        let reply = Reply { retry_after, date, ..Reply::json(429, body.as_bytes()) };
        match classify(&reply) {
            ApiError::Temporary { retry_after_s, .. } => retry_after_s,
            ApiError::Permanent { .. } => panic!("429 is temporary"),
        }
    }

    #[test]
    fn the_header_counts_first_then_the_fields_then_the_message() {
        assert_eq!(seconds(Some(" 7 "), None, r#"{"retry_after":9}"#), Some(7));
        assert_eq!(seconds(Some("soon"), None, r#"{"retry_after":9}"#), Some(9));
        assert_eq!(seconds(None, None, r#"{"retry_after_seconds":"9","seconds":8}"#), Some(9));
        assert_eq!(seconds(None, None, r#"{"seconds":8,"error":"in 3 s"}"#), Some(8));
        assert_eq!(seconds(None, None, r#"{"error":"1 小时 20 次，请 42 秒后再试"}"#), Some(42));
        assert_eq!(seconds(None, None, r#"{"error":"20 sessions; wait 90s"}"#), Some(90));
        assert_eq!(seconds(None, None, r#"{"error":"wait 12 Seconds."}"#), Some(12));
        assert_eq!(seconds(None, None, r#"{"error":"limit 20"}"#), Some(DEFAULT_RETRY_AFTER_S));
        assert_eq!(seconds(None, None, r#"{"retry_after":-1}"#), Some(DEFAULT_RETRY_AFTER_S));
        assert_eq!(seconds(None, None, ""), Some(DEFAULT_RETRY_AFTER_S));
    }

    #[test]
    fn a_date_is_measured_by_the_replys_own_clock() {
        let now = Some("Sun, 06 Nov 1994 08:49:07 GMT");
        for until in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(seconds(Some(until), now, ""), Some(30), "{until}");
        }
        assert_eq!(seconds(Some("Sun, 06 Nov 1994 08:00:00 GMT"), now, ""), Some(0));
        let without_clock = seconds(Some("Sun, 06 Nov 1994 08:49:37 GMT"), None, "");
        assert_eq!(without_clock, Some(DEFAULT_RETRY_AFTER_S));
    }

    #[test]
    fn only_429_has_a_default() {
        let ApiError::Temporary { retry_after_s, .. } = failed(503, "{}") else { panic!("503") };
        assert_eq!(retry_after_s, None);
    }
}
