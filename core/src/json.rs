//! One JSON document as a tree, for everything that comes from outside.
//!
//! A document with a key twice is refused: readers that disagree about which one counts is how a
//! refusal becomes an approval. Nesting is limited, the order of keys is kept, and an error carries
//! the path of the spot. [`crate::strict`] decodes trees exactly, [`crate::api`] reads them
//! tolerantly (wire rules TP-1 to TP-6).

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt::{self, Write as _};

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};

/// How deep objects and arrays may nest. The contract's deepest body has three levels.
pub(crate) const MAX_DEPTH: usize = 32;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    String(String),
    Array(Vec<Self>),
    /// Keys in document order, each once.
    Object(Vec<(String, Self)>),
}

/// Why a document is no tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// Not JSON, cut off, or followed by something else.
    Syntax { line: usize, column: usize },
    /// A key occurs twice in one object.
    Duplicate(String),
    /// Nested deeper than [`MAX_DEPTH`].
    TooDeep,
}

/// Reads one complete document.
pub(crate) fn parse(body: &[u8]) -> Result<Node, Unreadable> {
    let found = RefCell::new(None);
    let seed = Seed { path: Path::Root, depth: 0, found: &found };
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let node = seed.deserialize(&mut deserializer).and_then(|node| {
        deserializer.end()?;
        Ok(node)
    });
    node.map_err(|error| {
        let place = || Unreadable::Syntax { line: error.line(), column: error.column() };
        found.take().unwrap_or_else(place)
    })
}

impl Node {
    /// The value under `key` of an object.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        let Self::Object(fields) = self else { return None };
        fields.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The text of a string.
    pub(crate) fn as_str(&self) -> Option<&str> {
        let Self::String(text) = self else { return None };
        Some(text)
    }

    /// The elements of an array.
    pub(crate) fn as_array(&self) -> Option<&[Self]> {
        let Self::Array(items) = self else { return None };
        Some(items)
    }

    /// A text under the first of `keys` that holds one which is not empty.
    pub(crate) fn text(&self, keys: &[&str]) -> Option<&str> {
        keys.iter().find_map(|key| self.get(key)?.as_str().filter(|text| !text.is_empty()))
    }

    /// As [`Node::text`], owned.
    pub(crate) fn owned(&self, keys: &[&str]) -> Option<String> {
        self.text(keys).map(ToOwned::to_owned)
    }

    /// A whole number, also as a numeric string (TP-6).
    pub(crate) fn int(&self, key: &str) -> Option<i64> {
        match self.get(key)? {
            Self::Number(number) => number.as_i64(),
            Self::String(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// As [`Node::int`], for counts.
    pub(crate) fn count(&self, key: &str) -> Option<u64> {
        self.int(key).and_then(|number| u64::try_from(number).ok())
    }

    /// A truth value, also as 0 or 1 (TP-6).
    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        match self.get(key)? {
            Self::Bool(value) => Some(*value),
            _ => match self.int(key)? {
                0 => Some(false),
                1 => Some(true),
                _ => None,
            },
        }
    }
}

/// Where in the document the reader stands; the chain lives on the stack.
#[derive(Clone, Copy)]
enum Path<'p> {
    Root,
    Key(&'p Self, &'p str),
    Index(&'p Self, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Key(Self::Root, key) => f.write_str(key),
            Self::Key(parent, key) => write!(f, "{parent}.{key}"),
            Self::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// Appends `.key` to a written path, or starts one.
pub(crate) fn join(path: &str, key: &str) -> String {
    let mut joined = path.to_owned();
    if !joined.is_empty() {
        joined.push('.');
    }
    joined.push_str(key);
    joined
}

/// Appends `[index]` to a written path.
pub(crate) fn index(path: &str, index: usize) -> String {
    let mut joined = path.to_owned();
    // Writing to a String cannot fail.
    let _ = write!(joined, "[{index}]");
    joined
}

struct Seed<'s> {
    path: Path<'s>,
    depth: usize,
    found: &'s RefCell<Option<Unreadable>>,
}

impl Seed<'_> {
    fn fail<E: serde::de::Error>(&self, problem: Unreadable) -> E {
        self.found.replace(Some(problem));
        E::custom("refused")
    }

    fn deeper<E: serde::de::Error>(&self) -> Result<usize, E> {
        if self.depth == MAX_DEPTH {
            return Err(self.fail(Unreadable::TooDeep));
        }
        Ok(self.depth + 1)
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Node;

    fn deserialize<D: serde::Deserializer<'de>>(self, source: D) -> Result<Node, D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Node, E> {
        serde_json::Number::from_f64(value)
            .map(Node::Number)
            .ok_or_else(|| E::custom("a number outside the range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Node, E> {
        Ok(Node::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<Node, A::Error> {
        let depth = self.deeper()?;
        let mut items = Vec::new();
        loop {
            let path = Path::Index(&self.path, items.len());
            let seed = Seed { path, depth, found: self.found };
            match source.next_element_seed(seed)? {
                Some(item) => items.push(item),
                None => return Ok(Node::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Node, A::Error> {
        let depth = self.deeper()?;
        let mut seen = alloc::collections::BTreeSet::new();
        let mut fields = Vec::new();
        while let Some(key) = source.next_key::<String>()? {
            let path = Path::Key(&self.path, &key);
            if !seen.insert(key.clone()) {
                let mut name = String::new();
                // Writing to a String cannot fail.
                let _ = write!(name, "{path}");
                return Err(self.fail(Unreadable::Duplicate(name)));
            }
            let value = source.next_value_seed(Seed { path, depth, found: self.found })?;
            fields.push((key, value));
        }
        Ok(Node::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn a_key_twice_is_refused_with_its_path() {
        assert_eq!(
            parse(br#"{"a":[{"b":1},{"c":1,"c":2}]}"#),
            Err(Unreadable::Duplicate("a[1].c".to_owned()))
        );
        // An escaped spelling is the same key.
        assert_eq!(parse(br#"{"to":1,"\u0074o":2}"#), Err(Unreadable::Duplicate("to".to_owned())));
    }

    #[test]
    fn nesting_ends_at_the_limit() {
        let nested = |depth: usize| {
            let mut body = vec![b'['; depth];
            body.extend(vec![b']'; depth]);
            parse(&body)
        };
        assert!(nested(MAX_DEPTH).is_ok());
        assert_eq!(nested(MAX_DEPTH + 1), Err(Unreadable::TooDeep));
        assert_eq!(parse(&vec![b'['; 1_000_000]), Err(Unreadable::TooDeep));
    }

    #[test]
    fn only_one_complete_document_counts() {
        for body in ["", " ", "{", "{} x", "{}{}", "nul", "\u{feff}{}", "[1,]", "{\"a\":1e999}"] {
            assert!(matches!(parse(body.as_bytes()), Err(Unreadable::Syntax { .. })), "{body:?}");
        }
        assert_eq!(parse(b" {} \n"), Ok(Node::Object(vec![])));
        assert!(parse(b"{\"a\":\"\xff\"}").is_err());
    }

    #[test]
    fn numbers_and_flags_may_be_texts() {
        let node = parse(br#"{"n":"7","m":7,"x":"7s","t":1,"f":"0","b":true,"o":2}"#).unwrap();
        assert_eq!(node.int("n"), Some(7));
        assert_eq!(node.int("m"), Some(7));
        assert_eq!(node.int("x"), None);
        assert_eq!(node.flag("t"), Some(true));
        assert_eq!(node.flag("f"), Some(false));
        assert_eq!(node.flag("b"), Some(true));
        assert_eq!(node.flag("o"), None);
    }
}
