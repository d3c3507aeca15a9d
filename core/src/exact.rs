//! JSON values that lose nothing: numbers keep their digits, keys are unique and sorted.
//!
//! What it is: the canonical form of a tool input. Two texts of the same value give equal
//! [`Value`]s; two values that differ in one digit, byte or key differ here. A key that occurs twice
//! is refused, because two readers could take different ones and a person would see the wrong one.
//!
//! ```text
//!   JSON text -> parse -> Value -> to_json  (one line, keys in byte order, no white space)
//!             \-> Inexact: not JSON | a key twice | nested too deeply
//! ```

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// How deep lists and objects may nest. Tool inputs have three levels; each level is scanned again
/// by its parent, so the bound also keeps the work linear.
pub const MAX_DEPTH: usize = 32;

/// A JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number as it was written.
    Number(String),
    /// A string, decoded.
    Text(String),
    /// An array.
    List(Vec<Self>),
    /// An object: unique keys in byte order.
    Object(Vec<(String, Self)>),
}

/// Why a text is no [`Value`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inexact {
    /// Not JSON, or a string that is not Unicode; the parser's words.
    Syntax(String),
    /// This key occurs twice in one object.
    Twice(String),
    /// Nested deeper than [`MAX_DEPTH`].
    TooDeep,
}

impl fmt::Display for Inexact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(why) => write!(f, "not readable as JSON: {why}"),
            Self::Twice(key) => write!(f, "the key {key:?} occurs twice"),
            Self::TooDeep => write!(f, "nested deeper than {MAX_DEPTH} levels"),
        }
    }
}

impl core::error::Error for Inexact {}

impl Value {
    /// Reads one complete JSON text.
    ///
    /// # Errors
    /// See [`Inexact`].
    pub fn parse(text: &str) -> Result<Self, Inexact> {
        // The checks of the bytes outside of the raw pieces: one value, nothing after it.
        let raw: &RawValue = serde_json::from_str(text).map_err(syntax)?;
        read(raw.get(), 0)
    }

    /// The value under `key` of an object.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        let at = members.binary_search_by(|(name, _)| name.as_str().cmp(key)).ok()?;
        Some(&members[at].1)
    }

    /// The text of a string.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        let Self::Text(text) = self else { return None };
        Some(text)
    }

    /// An object of these members; of two with the same key the later one counts.
    #[must_use]
    pub fn object(members: Vec<(String, Self)>) -> Self {
        let mut sorted: Vec<(String, Self)> = Vec::with_capacity(members.len());
        for (key, value) in members {
            match sorted.binary_search_by(|(name, _)| name.cmp(&key)) {
                Ok(at) => sorted[at].1 = value,
                Err(at) => sorted.insert(at, (key, value)),
            }
        }
        Self::Object(sorted)
    }

    /// The canonical JSON text, on one line.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.put_json(&mut out);
        out
    }

    fn put_json(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Number(digits) => out.push_str(digits),
            Self::Text(text) => put_text(out, text),
            Self::List(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    item.put_json(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (at, (key, value)) in members.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    put_text(out, key);
                    out.push(':');
                    value.put_json(out);
                }
                out.push('}');
            }
        }
    }
}

fn put_text(out: &mut String, text: &str) {
    out.push_str(&serde_json::Value::from(text).to_string());
}

fn syntax(error: serde_json::Error) -> Inexact {
    Inexact::Syntax(error.to_string())
}

fn read(text: &str, depth: usize) -> Result<Value, Inexact> {
    if depth > MAX_DEPTH {
        return Err(Inexact::TooDeep);
    }
    Ok(match text.as_bytes().first() {
        Some(b'{') => {
            let Members(found) = serde_json::from_str(text).map_err(syntax)?;
            let mut members = Vec::with_capacity(found.len());
            for (key, raw) in found {
                members.push((key.into_owned(), read(raw.get(), depth + 1)?));
            }
            members.sort_by(|(a, _), (b, _)| a.cmp(b));
            if let Some(pair) = members.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                return Err(Inexact::Twice(pair[0].0.clone()));
            }
            Value::Object(members)
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text).map_err(syntax)?;
            let items = items.into_iter().map(|raw| read(raw.get(), depth + 1));
            Value::List(items.collect::<Result<_, _>>()?)
        }
        Some(b'"') => Value::Text(serde_json::from_str(text).map_err(syntax)?),
        Some(b't' | b'f') => Value::Bool(text == "true"),
        Some(b'n') => Value::Null,
        // A raw value is checked JSON: what is left is a number.
        _ => Value::Number(text.into()),
    })
}

/// The members of one object in their order, values unread.
struct Members<'a>(Vec<(Cow<'a, str>, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = source.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        source.deserialize_map(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn the_order_of_keys_and_white_space_do_not_count() {
        let a = Value::parse(r#" {"b":[1, 2.50],"a":"\u0041"} "#).unwrap();
        assert_eq!(a, Value::parse(r#"{"a":"A","b":[1,2.50]}"#).unwrap());
        assert_eq!(a.to_json(), r#"{"a":"A","b":[1,2.50]}"#);
    }

    #[test]
    fn every_digit_counts() {
        let text = "[1,1.0,1e0,-0,12345678901234567890123,1e999]";
        assert_eq!(Value::parse(text).unwrap().to_json(), text);
        assert_ne!(Value::parse("1").unwrap(), Value::parse("1.0").unwrap());
    }

    #[test]
    fn a_key_twice_is_refused_also_when_it_is_spelled_differently() {
        for text in [r#"{"a":1,"a":1}"#, r#"{"a":1,"\u0061":2}"#, r#"[{"x":{"a":1,"b":2,"a":3}}]"#]
        {
            assert_eq!(Value::parse(text), Err(Inexact::Twice("a".into())), "{text}");
        }
    }

    #[test]
    fn nesting_ends_at_the_limit() {
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(Value::parse(&nested(MAX_DEPTH + 1)).is_ok());
        assert_eq!(Value::parse(&nested(MAX_DEPTH + 2)), Err(Inexact::TooDeep));
    }

    #[test]
    fn what_is_not_one_json_value_is_refused() {
        for text in ["", " ", "{", "nul", "1 2", "{\"a\" 1}", r#""\ud800""#, "[1,]", "\u{feff}1"] {
            assert!(matches!(Value::parse(text), Err(Inexact::Syntax(_))), "{text:?}");
        }
    }
}
