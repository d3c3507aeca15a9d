//! HTTP exchanges as plain data.
//!
//! A [`Request`] says what to send, an [`Outcome`] what came back. Host, credentials, TLS,
//! redirects and header casing belong to the runtime: it adds the base URL and the
//! authentication headers, never follows a redirect (a credential must not travel to another
//! host), and reports everything that is not an HTTP reply as a [`Fault`].

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The prefix of every AgentMail path (`W-1`).
pub const API_PREFIX: &str = "/api/v1";

/// Bytes of a reply body that a runtime reads at most before it reports [`Fault::TooLarge`].
///
/// Replies are JSON listings of at most a few hundred entries; attachments do not travel through
/// [`Outcome`].
pub const REPLY_BODY_LIMIT: usize = 4 * 1024 * 1024;

/// An HTTP method that the AgentMail contract uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `GET`
    Get,
    /// `POST`
    Post,
}

impl Method {
    /// The method's name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

/// One request to the gateway, without host and credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// Path and query, starting with [`API_PREFIX`], already percent-encoded.
    pub path: String,
    /// A JSON body for [`Method::Post`]; `None` sends no body and no content type.
    pub body: Option<Vec<u8>>,
    /// Value for `Last-Event-ID`; only a reconnecting event stream has one (`B-1.4`, `D-7.2`).
    pub last_event_id: Option<String>,
}

impl Request {
    /// A `GET` of `path` below [`API_PREFIX`].
    #[must_use]
    pub fn get(path: &str) -> Self {
        Self { method: Method::Get, path: prefixed(path), body: None, last_event_id: None }
    }

    /// A `POST` of a JSON `body` to `path` below [`API_PREFIX`].
    #[must_use]
    pub fn post(path: &str, body: Vec<u8>) -> Self {
        Self { method: Method::Post, path: prefixed(path), body: Some(body), last_event_id: None }
    }
}

fn prefixed(path: &str) -> String {
    let mut full = String::with_capacity(API_PREFIX.len() + path.len());
    full.push_str(API_PREFIX);
    full.push_str(path);
    full
}

/// Appends `segment` to `path`, percent-encoded so that it stays one segment.
pub fn push_segment(path: &mut String, segment: &str) {
    use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
    // RFC 3986 unreserved characters stay readable; everything else is encoded.
    const KEEP: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');
    path.extend(utf8_percent_encode(segment, KEEP));
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// The gateway (or something in its place) answered.
    Reply(Reply<'a>),
    /// No HTTP reply exists.
    Failed(Fault),
}

/// The parts of an HTTP reply that the contract gives a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The HTTP status code. It alone decides whether a failure is permanent ([`is_permanent`]).
    pub status: u16,
    /// `Content-Type`, if one was sent.
    pub content_type: Option<&'a str>,
    /// `Retry-After` as it stood, if one was sent.
    pub retry_after: Option<&'a str>,
    /// `Date` as it stood, if one was sent: the clock that a `Retry-After` date is measured by, so
    /// that no clock of this machine is needed.
    pub date: Option<&'a str>,
    /// The body, at most [`REPLY_BODY_LIMIT`] bytes.
    pub body: &'a [u8],
}

impl<'a> Reply<'a> {
    /// A reply with a JSON body and no other header.
    #[must_use]
    pub const fn json(status: u16, body: &'a [u8]) -> Self {
        let content_type = Some("application/json");
        Self { status, content_type, retry_after: None, date: None, body }
    }
}

/// A failure that has no HTTP status. All of them are temporary (`B-8.2b`: "no status code").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The host name did not resolve.
    Unresolvable,
    /// The connection was refused or could not be made.
    Unreachable,
    /// TLS failed: certificate not trusted, wrong host, handshake broken.
    Tls,
    /// Nothing came within the time given.
    TimedOut,
    /// The connection broke before the reply was complete.
    Truncated,
    /// The reply is longer than [`REPLY_BODY_LIMIT`].
    TooLarge,
    /// What came back is not HTTP.
    NotHttp,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unresolvable => "the gateway's host name does not resolve",
            Self::Unreachable => "the gateway refused the connection or cannot be reached",
            Self::Tls => "the TLS handshake with the gateway failed",
            Self::TimedOut => "the gateway did not answer in time",
            Self::Truncated => "the connection broke before the answer was complete",
            Self::TooLarge => "the gateway's answer is larger than this program accepts",
            Self::NotHttp => "what answered does not speak HTTP",
        })
    }
}

/// Whether repeating the request can never help (`B-8.2b`): a 4xx other than 408 and 429.
///
/// Statuses outside 400..=499 are temporary, redirects included: they come from proxies and login
/// pages, not from the contract.
#[must_use]
pub const fn is_permanent(status: u16) -> bool {
    matches!(status, 400..=499) && status != 408 && status != 429
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_stays_one_segment() {
        let mut path = String::from("/permission/");
        push_segment(&mut path, "a/b?c#d%e 会.-_~");
        assert_eq!(path, "/permission/a%2Fb%3Fc%23d%25e%20%E4%BC%9A%2E-_~");
    }

    #[test]
    fn permanent_is_any_4xx_but_timeout_and_rate() {
        for status in 0..=999 {
            let expected = (400..500).contains(&status) && status != 408 && status != 429;
            assert_eq!(is_permanent(status), expected, "{status}");
        }
    }
}
