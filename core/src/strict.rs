//! Strict decoding of JSON request bodies, as the gateway does it (`W-2`, `W-9`).
//!
//! Everywhere but in the heartbeat an unknown or mistyped field answers 400, and a 400 is final
//! for the client, so each error names the field's path, the type that the contract wants and the
//! type that came: `字段 "workspaces[0]" 类型不对：期望 object，收到 string`. A key twice, a
//! document nested too deep, and anything after the document are errors too. `null` under an
//! optional field counts as absent.
//!
//! [`Fields::parse`] → take each known field by name → [`Fields::finish`] (strict) or
//! [`Fields::unknown`] (the lenient heartbeat).

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::json::{self, Node, Unreadable};
use crate::lang::Lang;

/// Unknown fields that an error names at most; the rest is counted.
pub const NAMED_LIMIT: usize = 8;
/// Characters of a field's path that an error shows at most; a path is as long as its sender
/// likes.
pub const PATH_LIMIT: usize = 100;

/// The type of a JSON value, in the words of `W-2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonType {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A whole number in the range of an `i64`.
    Integer,
    /// Any other number.
    Number,
    /// A string.
    String,
    /// A list.
    Array,
    /// An object.
    Object,
}

impl JsonType {
    /// The type's name in an error text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    fn of(node: &Node) -> Self {
        match node {
            Node::Null => Self::Null,
            Node::Bool(_) => Self::Bool,
            Node::Number(number) if number.is_i64() => Self::Integer,
            Node::Number(_) => Self::Number,
            Node::String(_) => Self::String,
            Node::Array(_) => Self::Array,
            Node::Object(_) => Self::Object,
        }
    }
}

/// Why a body is not what the contract asks for. Paths read like `platform_sessions[2].slug`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// Not one complete JSON document: empty, cut off, malformed, or followed by something else.
    Syntax {
        /// Line of the spot, from 1.
        line: usize,
        /// Column of the spot in bytes.
        column: usize,
    },
    /// The document is not an object.
    NotAnObject {
        /// What it is.
        received: JsonType,
    },
    /// Objects and arrays nest deeper than any body of the contract.
    TooDeep,
    /// A key occurs twice in one object.
    Duplicate {
        /// The key's path.
        field: String,
    },
    /// A field that must be there is not.
    Missing {
        /// The field's path.
        field: String,
        /// What it must be.
        expected: JsonType,
    },
    /// A field holds a value of another type.
    WrongType {
        /// The field's path.
        field: String,
        /// What it must be.
        expected: JsonType,
        /// What it is.
        received: JsonType,
    },
    /// Fields that the endpoint does not know, each by its path.
    Unknown {
        /// The paths, in document order; never empty.
        fields: Vec<String>,
    },
    /// A field has the right type and a value that the contract forbids.
    Forbidden {
        /// The field's path.
        field: String,
        /// What the contract asks for, in Chinese and English.
        rule: (&'static str, &'static str),
    },
}

impl Invalid {
    /// The error in one sentence. The wire speaks Chinese, which [`fmt::Display`] gives too.
    #[must_use]
    pub fn text(&self, lang: Lang) -> String {
        use alloc::format;
        let zh = lang == Lang::Zh;
        match self {
            Self::Syntax { line, column } if zh => {
                format!("请求体不是完整的 JSON（第 {line} 行第 {column} 列）")
            }
            Self::Syntax { line, column } => {
                format!("the body is not one complete JSON document (line {line} column {column})")
            }
            Self::NotAnObject { received } => {
                let received = received.as_str();
                if zh {
                    format!("请求体类型不对：期望 object，收到 {received}")
                } else {
                    format!("the body has the wrong type: expected object, received {received}")
                }
            }
            Self::TooDeep if zh => format!("请求体嵌套超过 {} 层", json::MAX_DEPTH),
            Self::TooDeep => format!("the body nests deeper than {} levels", json::MAX_DEPTH),
            Self::Duplicate { field } => {
                let field = shown(field);
                if zh {
                    format!("字段 \"{field}\" 重复")
                } else {
                    format!("field \"{field}\" occurs twice")
                }
            }
            Self::Missing { field, expected } => {
                let expected = expected.as_str();
                if zh {
                    format!("缺少字段 \"{field}\"：期望 {expected}")
                } else {
                    format!("field \"{field}\" is missing: expected {expected}")
                }
            }
            Self::WrongType { field, expected, received } => {
                let (expected, received) = (expected.as_str(), received.as_str());
                let field = shown(field);
                if zh {
                    format!("字段 \"{field}\" 类型不对：期望 {expected}，收到 {received}")
                } else {
                    format!(
                        "field \"{field}\" has the wrong type: \
                         expected {expected}, received {received}"
                    )
                }
            }
            Self::Unknown { fields } => {
                let named: Vec<_> =
                    fields.iter().take(NAMED_LIMIT).map(|name| shown(name)).collect();
                let list = named.join("\", \"");
                let more = match fields.len() - named.len() {
                    0 => String::new(),
                    more => format!(" (+{more})"),
                };
                if zh {
                    format!("未知字段 \"{list}\"{more}")
                } else {
                    format!("unknown field \"{list}\"{more}")
                }
            }
            Self::Forbidden { field, rule: (in_zh, _) } if zh => format!("{field} {in_zh}"),
            Self::Forbidden { field, rule: (_, in_en) } => format!("{field} {in_en}"),
        }
    }
}

/// A path for people: cut, and without control characters.
fn shown(path: &str) -> String {
    let visible = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut shown: String = path.chars().take(PATH_LIMIT).map(visible).collect();
    if path.chars().nth(PATH_LIMIT).is_some() {
        shown.push('…');
    }
    shown
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(Lang::Zh))
    }
}

impl core::error::Error for Invalid {}

/// The fields of one object, taken one by one.
#[derive(Debug)]
pub struct Fields {
    /// The object's own path; empty for the document.
    path: String,
    rest: Vec<(String, Node)>,
}

impl Fields {
    /// Reads a body that must be one JSON object.
    ///
    /// # Errors
    /// [`Invalid::Syntax`], [`Invalid::NotAnObject`], [`Invalid::TooDeep`], [`Invalid::Duplicate`].
    pub fn parse(body: &[u8]) -> Result<Self, Invalid> {
        let node = json::parse(body).map_err(|problem| match problem {
            Unreadable::Syntax { line, column } => Invalid::Syntax { line, column },
            Unreadable::Duplicate(field) => Invalid::Duplicate { field },
            Unreadable::TooDeep => Invalid::TooDeep,
        })?;
        match node {
            Node::Object(rest) => Ok(Self { path: String::new(), rest }),
            other => Err(Invalid::NotAnObject { received: JsonType::of(&other) }),
        }
    }

    /// Takes a string that must be there.
    ///
    /// # Errors
    /// [`Invalid::Missing`], [`Invalid::WrongType`].
    pub fn string(&mut self, name: &str) -> Result<String, Invalid> {
        self.required(name, JsonType::String, as_string)
    }

    /// Takes a string that may be absent.
    ///
    /// # Errors
    /// [`Invalid::WrongType`].
    pub fn opt_string(&mut self, name: &str) -> Result<Option<String>, Invalid> {
        self.optional(name, JsonType::String, as_string)
    }

    /// Takes a truth value that may be absent.
    ///
    /// # Errors
    /// [`Invalid::WrongType`].
    pub fn opt_bool(&mut self, name: &str) -> Result<Option<bool>, Invalid> {
        self.optional(name, JsonType::Bool, |node| match node {
            Node::Bool(value) => Ok(value),
            other => Err(other),
        })
    }

    /// Takes a whole number that must be there.
    ///
    /// # Errors
    /// [`Invalid::Missing`], [`Invalid::WrongType`].
    pub fn int(&mut self, name: &str) -> Result<i64, Invalid> {
        self.required(name, JsonType::Integer, as_int)
    }

    /// Takes a whole number that may be absent.
    ///
    /// # Errors
    /// [`Invalid::WrongType`], also for a fraction or a number that no `i64` holds.
    pub fn opt_int(&mut self, name: &str) -> Result<Option<i64>, Invalid> {
        self.optional(name, JsonType::Integer, as_int)
    }

    /// Takes a list of strings that may be absent.
    ///
    /// # Errors
    /// [`Invalid::WrongType`], for the list or for an element by its index.
    pub fn opt_string_array(&mut self, name: &str) -> Result<Option<Vec<String>>, Invalid> {
        let Some(items) = self.array(name)? else { return Ok(None) };
        let path = json::join(&self.path, name);
        let read = |(at, item)| {
            as_string(item).map_err(|other| Invalid::WrongType {
                field: json::index(&path, at),
                expected: JsonType::String,
                received: JsonType::of(&other),
            })
        };
        items.into_iter().enumerate().map(read).collect::<Result<_, _>>().map(Some)
    }

    /// Takes an object that may be absent. It has to be finished too.
    ///
    /// # Errors
    /// [`Invalid::WrongType`].
    pub fn opt_object(&mut self, name: &str) -> Result<Option<Self>, Invalid> {
        let path = json::join(&self.path, name);
        let rest = self.optional(name, JsonType::Object, |node| match node {
            Node::Object(fields) => Ok(fields),
            other => Err(other),
        })?;
        Ok(rest.map(|rest| Self { path, rest }))
    }

    /// Takes a list of objects that may be absent. Each has to be finished too.
    ///
    /// # Errors
    /// [`Invalid::WrongType`], for the list or for an element by its index.
    pub fn opt_object_array(&mut self, name: &str) -> Result<Option<Vec<Self>>, Invalid> {
        let Some(items) = self.array(name)? else { return Ok(None) };
        let list = json::join(&self.path, name);
        let read = |(at, item)| {
            let path = json::index(&list, at);
            match item {
                Node::Object(rest) => Ok(Self { path, rest }),
                other => Err(Invalid::WrongType {
                    field: path,
                    expected: JsonType::Object,
                    received: JsonType::of(&other),
                }),
            }
        };
        items.into_iter().enumerate().map(read).collect::<Result<_, _>>().map(Some)
    }

    /// A value of the right type that the contract forbids.
    #[must_use]
    pub fn forbidden(&self, name: &str, rule: (&'static str, &'static str)) -> Invalid {
        Invalid::Forbidden { field: json::join(&self.path, name), rule }
    }

    /// Ends strict decoding.
    ///
    /// # Errors
    /// [`Invalid::Unknown`] with every field that nobody took.
    pub fn finish(self) -> Result<(), Invalid> {
        let fields = self.unknown();
        if fields.is_empty() { Ok(()) } else { Err(Invalid::Unknown { fields }) }
    }

    /// Ends lenient decoding with the paths of the fields that nobody took.
    #[must_use]
    pub fn unknown(self) -> Vec<String> {
        self.rest.iter().map(|(name, _)| json::join(&self.path, name)).collect()
    }

    fn array(&mut self, name: &str) -> Result<Option<Vec<Node>>, Invalid> {
        self.optional(name, JsonType::Array, |node| match node {
            Node::Array(items) => Ok(items),
            other => Err(other),
        })
    }

    fn take(&mut self, name: &str) -> Option<Node> {
        let at = self.rest.iter().position(|(key, _)| key == name)?;
        Some(self.rest.remove(at).1)
    }

    fn optional<T>(
        &mut self,
        name: &str,
        expected: JsonType,
        read: impl FnOnce(Node) -> Result<T, Node>,
    ) -> Result<Option<T>, Invalid> {
        match self.take(name) {
            None | Some(Node::Null) => Ok(None),
            Some(node) => self.read(name, expected, node, read).map(Some),
        }
    }

    fn required<T>(
        &mut self,
        name: &str,
        expected: JsonType,
        read: impl FnOnce(Node) -> Result<T, Node>,
    ) -> Result<T, Invalid> {
        match self.take(name) {
            None => Err(Invalid::Missing { field: json::join(&self.path, name), expected }),
            Some(node) => self.read(name, expected, node, read),
        }
    }

    fn read<T>(
        &self,
        name: &str,
        expected: JsonType,
        node: Node,
        read: impl FnOnce(Node) -> Result<T, Node>,
    ) -> Result<T, Invalid> {
        read(node).map_err(|other| Invalid::WrongType {
            field: json::join(&self.path, name),
            expected,
            received: JsonType::of(&other),
        })
    }
}

fn as_string(node: Node) -> Result<String, Node> {
    match node {
        Node::String(text) => Ok(text),
        other => Err(other),
    }
}

fn as_int(node: Node) -> Result<i64, Node> {
    match &node {
        Node::Number(number) => number.as_i64().ok_or(node),
        _ => Err(node),
    }
}

#[cfg(test)]
mod tests;
