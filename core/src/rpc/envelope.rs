//! One line read as a JSON-RPC envelope, with the parameters left as raw text.
//!
//! The envelope is read first and alone, so that a fault deeper inside (nesting, an impossible
//! number, half a surrogate pair) can be refused with the id of its request: a client that gets no
//! answer waits for ever. Ids are never interpreted: they are compared and sent back as bytes.
//!
//! Citations: JSON-RPC 2.0 sections 4 and 5; RFC 8259 sections 7, 8.1 and 9.

use alloc::borrow::Cow;
use core::fmt;

use serde::de::{DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{MAX_DEPTH, MAX_ID};

/// A readable message.
#[derive(Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// It wants exactly one answer.
    Request {
        /// The id as it stands in the line: a JSON string or integer.
        id: &'a str,
        /// The method's name.
        method: Cow<'a, str>,
        /// Raw parameters; `None` when they are absent or `null`.
        params: Option<&'a str>,
    },
    /// It never gets an answer.
    Notification {
        /// The method's name.
        method: Cow<'a, str>,
        /// Raw parameters; `None` when they are absent or `null`.
        params: Option<&'a str>,
    },
    /// An answer to a request; this server sends none, so nobody waits for it.
    Response,
    /// A JSON array: a batch. The text is the whole array.
    Batch(&'a str),
}

/// Why a line is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal<'a> {
    /// Not JSON, or not UTF-8.
    NotJson,
    /// JSON, but not a request; with the id where one can be read.
    NotRequest {
        /// The raw id to answer to.
        id: Option<&'a str>,
        /// What is wrong, for the error message.
        why: &'static str,
    },
}

/// Reads one line. White space around it and a byte order mark before it are ignored.
///
/// # Errors
/// [`Refusal`] says which error to answer, and to whom.
pub fn read(line: &[u8]) -> Result<Message<'_>, Refusal<'_>> {
    let Ok(text) = core::str::from_utf8(line) else {
        return Err(match find_id(line) {
            Some(id) => Refusal::NotRequest { id: Some(id), why: "the message is not UTF-8" },
            None => Refusal::NotJson,
        });
    };
    read_text(text.trim_matches(is_blank))
}

/// Whether a line holds nothing but white space and a byte order mark: such lines are skipped.
#[must_use]
pub fn is_empty(line: &[u8]) -> bool {
    core::str::from_utf8(line).is_ok_and(|text| text.trim_matches(is_blank).is_empty())
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '\u{feff}')
}

fn read_text(text: &str) -> Result<Message<'_>, Refusal<'_>> {
    match text.as_bytes().first() {
        Some(b'{') => {}
        Some(b'[') if is_json(text) => return Ok(Message::Batch(text)),
        _ if is_json(text) => {
            return Err(Refusal::NotRequest { id: None, why: "a message is a JSON object" });
        }
        _ => return Err(Refusal::NotJson),
    }
    let names = ["jsonrpc", "id", "method", "params", "result", "error"];
    let found = match members(text, names) {
        Ok(found) => found,
        Err(_) if !is_json(text) => return Err(Refusal::NotJson),
        Err(fault) => {
            return Err(Refusal::NotRequest { id: find_id(text.as_bytes()), why: fault.why() });
        }
    };
    let [version, id, method, params, result, error] = found;
    let params = params.filter(|raw| *raw != "null");
    let good_id = id.and_then(checked_id);
    let refuse = |why| Err(Refusal::NotRequest { id: good_id, why });
    let Some(method) = method else {
        if result.is_some() || error.is_some() {
            return Ok(Message::Response);
        }
        return refuse("method is missing");
    };
    if version != Some("\"2.0\"") {
        return refuse("jsonrpc must be \"2.0\"");
    }
    let Ok(method) = serde_json::from_str::<Text<'_>>(method) else {
        return refuse("method must be a string");
    };
    let method = method.0;
    match (id, good_id) {
        (None, _) => Ok(Message::Notification { method, params }),
        (Some(_), Some(id)) => Ok(Message::Request { id, method, params }),
        (Some(_), None) => refuse("id must be a string or an integer, of at most 16 KiB"),
    }
}

/// The elements of a batch; none when `text` is not a JSON array.
#[must_use]
pub fn elements(text: &str) -> alloc::vec::Vec<&RawValue> {
    serde_json::from_str(text).unwrap_or_default()
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// The id if it may be one: a JSON string of valid characters or an integer.
fn checked_id(raw: &str) -> Option<&str> {
    if raw.len() > MAX_ID {
        return None;
    }
    let valid = match raw.as_bytes().first()? {
        b'"' => serde_json::from_str::<Text<'_>>(raw).is_ok(),
        _ => {
            let digits = raw.strip_prefix('-').unwrap_or(raw);
            !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
        }
    };
    valid.then_some(raw)
}

/// A JSON string, borrowed where it holds no escape.
pub(super) struct Text<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Text<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrow;
        impl<'de> Visitor<'de> for Borrow {
            type Value = Cow<'de, str>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(text))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Cow::Owned(text.into()))
            }
        }
        deserializer.deserialize_str(Borrow).map(Text)
    }
}

/// Why an object could not be taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectFault {
    /// It is something else than an object.
    NotObject,
    /// A name that matters stands in it twice.
    Twice,
    /// A name in it is not a valid string.
    Unreadable,
}

impl ObjectFault {
    /// One sentence for an error message.
    #[must_use]
    pub const fn why(self) -> &'static str {
        match self {
            Self::NotObject => "a JSON object is expected",
            Self::Twice => "a member stands twice in the object",
            Self::Unreadable => "a member's name is not a valid string",
        }
    }
}

/// The raw values of the members `names` of the JSON object `text`.
///
/// # Errors
/// [`ObjectFault`], a repeated name included: which of the two a peer means cannot be known.
pub fn members<'a, const N: usize>(
    text: &'a str,
    names: [&str; N],
) -> Result<[Option<&'a str>; N], ObjectFault> {
    if !text.trim_start().starts_with('{') {
        return Err(ObjectFault::NotObject);
    }
    let mut twice = false;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let found = deserializer
        .deserialize_map(Members { names: &names, twice: &mut twice })
        .and_then(|found| deserializer.end().map(|()| found))
        .map_err(|_| ObjectFault::Unreadable)?;
    if twice { Err(ObjectFault::Twice) } else { Ok(found) }
}

struct Members<'n, const N: usize> {
    names: &'n [&'n str; N],
    twice: &'n mut bool,
}

impl<'de, const N: usize> Visitor<'de> for Members<'_, N> {
    type Value = [Option<&'de str>; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = [None; N];
        while let Some(place) = map.next_key_seed(Name(self.names))? {
            let Some(place) = place else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let raw: &RawValue = map.next_value()?;
            if let Some(slot) = found.get_mut(place) {
                *self.twice |= slot.is_some();
                slot.get_or_insert(raw.get());
            }
        }
        Ok(found)
    }
}

struct Name<'n>(&'n [&'n str]);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Option<usize>;
    fn deserialize<D: serde::Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
        d.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Option<usize>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|name| *name == text))
    }
}

/// Finds the id in the first bytes of a message that cannot be read as a whole.
///
/// Works on a cut message: the value found must be complete, and a `result` or `error` member
/// before it marks a response, which gets no answer.
#[must_use]
pub fn find_id(head: &[u8]) -> Option<&str> {
    let mut scan = Scan { head, at: 0 };
    scan.skip_blank();
    scan.take(b'{')?;
    loop {
        scan.skip_blank();
        let key = scan.string()?;
        scan.skip_blank();
        scan.take(b':')?;
        scan.skip_blank();
        match key {
            b"\"id\"" => {
                let value = scan.scalar()?;
                return core::str::from_utf8(value).ok().and_then(checked_id);
            }
            b"\"result\"" | b"\"error\"" => return None,
            _ => scan.skip_value()?,
        }
        scan.skip_blank();
        scan.take(b',')?;
    }
}

struct Scan<'a> {
    head: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    fn peek(&self) -> Option<u8> {
        self.head.get(self.at).copied()
    }

    fn take(&mut self, wanted: u8) -> Option<()> {
        (self.peek()? == wanted).then(|| self.at += 1)
    }

    fn skip_blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n' | 0xef | 0xbb | 0xbf)) {
            self.at += 1;
        }
    }

    /// A complete string with its quotes.
    fn string(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        self.take(b'"')?;
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return self.head.get(start..self.at);
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
    }

    /// A complete string or bare word; something must follow a bare word, or it may be cut.
    fn scalar(&mut self) -> Option<&'a [u8]> {
        if self.peek()? == b'"' {
            return self.string();
        }
        let start = self.at;
        while !matches!(self.peek()?, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n') {
            self.at += 1;
        }
        self.head.get(start..self.at)
    }

    fn skip_value(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => {
                    self.string()?;
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                }
                b',' | b'}' | b']' if depth == 0 => return Some(()),
                _ => self.at += 1,
            }
            if depth == 0 && matches!(self.peek()?, b',' | b'}' | b']') {
                return Some(());
            }
        }
    }
}

/// What in valid JSON text cannot be carried by ordinary readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// Nested deeper than [`MAX_DEPTH`].
    TooDeep,
    /// A number too large for a double.
    Number,
    /// Half of a surrogate pair.
    Surrogate,
}

impl Unfit {
    /// One sentence for an error message.
    #[must_use]
    pub const fn why(self) -> &'static str {
        match self {
            Self::TooDeep => "params are nested deeper than 128 levels",
            Self::Number => "params hold a number that no double can carry",
            Self::Surrogate => "params hold half of a surrogate pair",
        }
    }
}

/// Looks for what makes valid JSON unfit to be read further; `None` when all is well.
#[must_use]
pub fn unfit(json: &str) -> Option<Unfit> {
    let bytes = json.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let (end, paired) = string_end(bytes, at + 1);
                if !paired {
                    return Some(Unfit::Surrogate);
                }
                at = end;
                continue;
            }
            b'[' | b'{' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Some(Unfit::TooDeep);
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'-' | b'0'..=b'9' => {
                let rest = json.get(at..).unwrap_or_default();
                let len = rest
                    .find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'))
                    .unwrap_or(rest.len());
                let number = rest.get(..len).unwrap_or_default();
                // Nothing short and without an exponent overflows.
                if (len > 300 || number.contains(['e', 'E']))
                    && !number.parse::<f64>().is_ok_and(f64::is_finite)
                {
                    return Some(Unfit::Number);
                }
                at += len.max(1);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The index after the closing quote, and whether all surrogates are paired.
fn string_end(bytes: &[u8], mut at: usize) -> (usize, bool) {
    let unit = |at: usize| -> Option<u32> {
        if bytes.get(at) != Some(&b'\\') || bytes.get(at + 1) != Some(&b'u') {
            return None;
        }
        let hex = core::str::from_utf8(bytes.get(at + 2..at + 6)?).ok()?;
        u32::from_str_radix(hex, 16).ok()
    };
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(step) = memchr::memchr2(b'"', b'\\', rest) else { return (bytes.len(), true) };
        at += step;
        if bytes.get(at) == Some(&b'"') {
            return (at + 1, true);
        }
        match unit(at) {
            Some(0xd800..=0xdbff) => {
                if !matches!(unit(at + 6), Some(0xdc00..=0xdfff)) {
                    return (at, false);
                }
                at += 12;
            }
            Some(0xdc00..=0xdfff) => return (at, false),
            Some(_) => at += 6,
            None => at += 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(line: &str) -> (&str, Option<&str>) {
        match read(line.as_bytes()) {
            Ok(Message::Request { id, params, .. }) => (id, params),
            other => panic!("{other:?}"),
        }
    }

    fn refused(line: &str) -> Option<&str> {
        match read(line.as_bytes()) {
            Err(Refusal::NotRequest { id, .. }) => id,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_id_comes_back_as_it_was_written() {
        for id in ["0", "-5", "9007199254740993", "18446744073709551616", "\"\"", "\"\\u00e9\""] {
            let line = alloc::format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            assert_eq!(request(&line).0, id);
        }
    }

    #[test]
    fn an_id_that_is_no_id_is_refused_without_one() {
        for id in ["1.0", "1e2", "true", "null", "{}", "[1]", "\"\\ud800\""] {
            let line = alloc::format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            assert_eq!(refused(&line), None, "{id}");
        }
    }

    #[test]
    fn the_longest_id_is_taken_and_one_byte_more_is_not() {
        let id = |len: usize| alloc::format!("\"{}\"", "x".repeat(len - 2));
        assert!(checked_id(&id(MAX_ID)).is_some());
        assert!(checked_id(&id(MAX_ID + 1)).is_none());
    }

    #[test]
    fn a_method_may_be_written_with_escapes() {
        let line = br#" {"jsonrpc":"2.0","id":1,"meth\u006fd":"tools\/call","params":null} "#;
        let message = Message::Request { id: "1", method: "tools/call".into(), params: None };
        assert_eq!(read(line), Ok(message));
    }

    #[test]
    fn a_repeated_member_is_refused_with_the_first_id() {
        let line = r#"{"jsonrpc":"2.0","id":"a","id":"b","method":"ping"}"#;
        assert_eq!(refused(line), Some("\"a\""));
    }

    #[test]
    fn a_body_that_is_not_utf8_is_refused_with_its_id() {
        let line = b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\",\"x\":\"\xff\"}";
        assert!(matches!(read(line), Err(Refusal::NotRequest { id: Some("7"), .. })));
        assert_eq!(read(b"\xc3\x28"), Err(Refusal::NotJson));
    }

    #[test]
    fn the_id_is_found_in_a_cut_message_only_when_it_is_whole() {
        let full: &[u8] = br#"{"jsonrpc":"2.0","a":{"id":1,"b":["}",{}]},"id":"x1","method":"m"#;
        assert_eq!(find_id(full), Some("\"x1\""));
        let end = full.windows(4).position(|w| w == b"\"x1\"").unwrap() + 4;
        for cut in 0..end {
            assert_eq!(find_id(&full[..cut]), None, "{cut}");
        }
        assert_eq!(find_id(br#"{"id":12"#), None);
        assert_eq!(find_id(br#"{"id":12,"#), Some("12"));
        assert_eq!(find_id(br#"{"result":{},"id":12,"#), None);
    }

    #[test]
    fn depth_is_counted_on_both_sides_of_the_limit() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(unfit(&nested(MAX_DEPTH)), None);
        assert_eq!(unfit(&nested(MAX_DEPTH + 1)), Some(Unfit::TooDeep));
        assert_eq!(unfit(r#"["[[[","\"[[{"]"#), None);
    }

    #[test]
    fn impossible_numbers_and_half_pairs_are_seen() {
        assert_eq!(unfit("[1e308,-1E+5,0.1]"), None);
        assert_eq!(unfit(r#"{"a":1e999}"#), Some(Unfit::Number));
        assert_eq!(unfit(&"9".repeat(400)), Some(Unfit::Number));
        assert_eq!(unfit(r#""\ud83d\ude00 \\ud800""#), None);
        assert_eq!(unfit(r#""\ud83d""#), Some(Unfit::Surrogate));
        assert_eq!(unfit(r#""\ude00""#), Some(Unfit::Surrogate));
        assert_eq!(unfit(r#""\ud83dx\ude00""#), Some(Unfit::Surrogate));
    }
}
