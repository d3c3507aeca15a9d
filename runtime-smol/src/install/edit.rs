//! One entry in and out of ZCode's JSON configuration without touching anything else.
//!
//! What goes in is a pure insertion: every byte of the file stays where it was, and the new text
//! follows the indentation, line ends, spacing and trailing commas around it. What comes out by
//! [`remove`] is exactly the entry and whatever [`add`] created around it, comments of the user
//! excepted.
//!
//! The file is JSON with comments and trailing commas, as ZCode reads it. A byte-order mark stays.
//! Whatever could be read in two ways is refused with line and column: text that does not parse, a
//! key that appears twice on our path, a value of another type there.
//!
//! ```text
//! bytes -> parse -> where -> insert -> parse again -> same values and the entry? -> bytes
//! ```

use std::fmt;
use std::ops::Range;

use jsonc_parser::ParseOptions;
use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::cst::CstRootNode;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

mod place;

use place::{Doc, insert};

/// The byte-order mark that some editors of Windows put first.
const BOM: &str = "\u{feff}";

/// Why a configuration file is left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// What is wrong there and what to do.
    pub reason: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.reason)
    }
}

impl std::error::Error for Refusal {}

/// What [`add`] had to create. [`remove`] takes it away again when nothing else came to live in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Created {
    /// The key `plugins`.
    pub plugins: bool,
    /// The key `plugins.dirs`.
    pub dirs: bool,
    /// The key `plugins.enabled`.
    pub enabled: bool,
    /// `plugins.enabled` was `false`.
    pub switched_on: bool,
}

/// A changed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The new bytes; equal to the old ones when nothing had to change.
    pub bytes: Vec<u8>,
    /// What had to be created.
    pub created: Created,
}

/// Adds `dir` to `plugins.dirs` and makes sure that `plugins.enabled` is `true`.
///
/// A missing file is an empty one. The entry comes last, so that among plugins that answer the same
/// question ours is heard last. With `switch_on`, an explicit `"enabled": false` becomes `true`;
/// without it, it is refused: it turns off all plugins and is somebody's decision.
///
/// # Errors
///
/// Says where the file cannot be read in exactly one way.
pub fn add(bytes: &[u8], dir: &str, switch_on: bool) -> Result<Edit, Refusal> {
    let (bom, text) = decode(bytes)?;
    let before = Doc::parse(text)?;
    let mut created = Created::default();
    // Asked of the file as it is, so that a refusal names a place the user can find.
    let switch = switch(&before, switch_on)?;
    let mut text = add_entry(&before, dir, &mut created)?;
    let expected = expected(&before, dir);
    drop(before);
    if !created.plugins {
        text = switch_enabled(&Doc::parse(&text)?, switch, &mut created)?;
    }
    if Doc::parse(&text)?.json() != expected {
        return Err(at(&text, 0, "the edit would change other settings; add the entry by hand"));
    }
    Ok(Edit { bytes: format!("{bom}{text}").into_bytes(), created })
}

/// Takes every `dir` out of `plugins.dirs`, and what `created` names if nothing else lives in it.
///
/// # Errors
///
/// Says where the file cannot be read in exactly one way.
pub fn remove(bytes: &[u8], dir: &str, created: Created) -> Result<Vec<u8>, Refusal> {
    let (bom, text) = decode(bytes)?;
    let doc = Doc::parse(text)?;
    // The same checks as for adding: a key that appears twice is ambiguous.
    if let Some(root) = doc.root()?
        && let Some(plugins) = object(text, root, "plugins")?
    {
        array(text, plugins, "dirs")?;
    }
    let root = CstRootNode::parse(text, &options()).map_err(|e| unreadable(text, &e))?;
    let Some(object) = root.object_value() else { return Ok(bytes.to_vec()) };
    let Some(plugins) = object.object_value("plugins") else { return Ok(bytes.to_vec()) };
    let (mut ours, mut others) = (false, false);
    if let Some(dirs) = plugins.array_value("dirs") {
        for element in dirs.elements() {
            let text = element.as_string_lit().and_then(|lit| lit.decoded_value().ok());
            if text.as_deref() == Some(dir) {
                element.remove();
                ours = true;
            } else {
                others = true;
            }
        }
    }
    if ours && !others {
        let drop_key = |name: &str| {
            if let Some(property) = plugins.get(name) {
                property.remove();
            }
        };
        if created.dirs {
            drop_key("dirs");
        }
        if created.enabled {
            drop_key("enabled");
        }
        if created.plugins
            && plugins.properties().is_empty()
            && let Some(property) = object.get("plugins")
        {
            property.remove();
        }
    }
    Ok(format!("{bom}{root}").into_bytes())
}

/// Reads a configuration file as a value, for those who only look.
///
/// # Errors
///
/// Says where the file cannot be read.
pub fn read(bytes: &[u8]) -> Result<Json, Refusal> {
    Ok(Doc::parse(decode(bytes)?.1)?.json())
}

fn add_entry(doc: &Doc<'_>, dir: &str, created: &mut Created) -> Result<String, Refusal> {
    let text = doc.text;
    let Some(root) = doc.root()? else {
        *created = Created { plugins: true, dirs: true, enabled: true, switched_on: false };
        return Ok(doc.whole(&json!({ "plugins": { "enabled": true, "dirs": [dir] } })));
    };
    let Some(plugins) = object(text, root, "plugins")? else {
        *created = Created { plugins: true, dirs: true, enabled: true, switched_on: false };
        let value = json!({ "enabled": true, "dirs": [dir] });
        return Ok(insert(doc, root.range(), &spans(&root.properties), Some("plugins"), &value));
    };
    let Some(dirs) = array(text, plugins, "dirs")? else {
        created.dirs = true;
        let value = json!([dir]);
        return Ok(insert(doc, plugins.range(), &spans(&plugins.properties), Some("dirs"), &value));
    };
    let there = |value: &Value<'_>| value.as_string_lit().is_some_and(|lit| lit.value == dir);
    if dirs.elements.iter().any(there) {
        return Ok(text.to_owned());
    }
    Ok(insert(doc, dirs.range(), &spans(&dirs.elements), None, &json!(dir)))
}

/// What `plugins.enabled` needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Switch {
    Fine,
    Missing,
    Off,
}

fn switch(doc: &Doc<'_>, switch_on: bool) -> Result<Switch, Refusal> {
    let text = doc.text;
    let Some(root) = doc.root()? else { return Ok(Switch::Missing) };
    let Some(plugins) = object(text, root, "plugins")? else { return Ok(Switch::Missing) };
    let Some(property) = only(text, plugins, "enabled")? else { return Ok(Switch::Missing) };
    let place = property.value.range().start;
    match &property.value {
        Value::BooleanLit(lit) if lit.value => Ok(Switch::Fine),
        Value::BooleanLit(_) if switch_on => Ok(Switch::Off),
        Value::BooleanLit(_) => Err(at(
            text,
            place,
            "plugins.enabled is false, so ZCode loads no plugin at all; \
             set it to true or pass --enable-plugins",
        )),
        _ => Err(at(text, place, "plugins.enabled is neither true nor false")),
    }
}

fn switch_enabled(doc: &Doc<'_>, need: Switch, created: &mut Created) -> Result<String, Refusal> {
    let text = doc.text;
    let same = || Ok(text.to_owned());
    let Some(root) = doc.root()? else { return same() };
    let Some(plugins) = object(text, root, "plugins")? else { return same() };
    match (need, only(text, plugins, "enabled")?) {
        (Switch::Missing, None) => {
            created.enabled = true;
            let children = spans(&plugins.properties);
            Ok(insert(doc, plugins.range(), &children, Some("enabled"), &json!(true)))
        }
        (Switch::Off, Some(property)) => {
            created.switched_on = true;
            let range = property.value.range();
            Ok(format!("{}true{}", &text[..range.start], &text[range.end..]))
        }
        _ => same(),
    }
}

/// The value that the file must have afterwards.
fn expected(doc: &Doc<'_>, dir: &str) -> Json {
    let mut value = doc.json();
    if value.is_null() {
        value = json!({});
    }
    let plugins = &mut value["plugins"];
    if plugins["dirs"].is_null() {
        plugins["dirs"] = json!([]);
    }
    if let Some(dirs) = plugins["dirs"].as_array_mut()
        && !dirs.contains(&json!(dir))
    {
        dirs.push(json!(dir));
    }
    plugins["enabled"] = json!(true);
    value
}

fn decode(bytes: &[u8]) -> Result<(&'static str, &str), Refusal> {
    let text = str::from_utf8(bytes).map_err(|error| {
        let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        at(&good, good.len(), "this byte is not UTF-8; save the file as UTF-8")
    })?;
    Ok(text.strip_prefix(BOM).map_or(("", text), |rest| (BOM, rest)))
}

/// JSON with comments and trailing commas; nothing else that a lenient reader would take.
pub(super) const fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

fn unreadable(text: &str, error: &jsonc_parser::errors::ParseError) -> Refusal {
    at(text, error.range().start, &format!("{}; repair the file first", error.kind()))
}

/// A refusal at a byte offset.
fn at(text: &str, offset: usize, reason: &str) -> Refusal {
    let before = &text[..text.floor_char_boundary(offset)];
    let line_start = before.rfind(['\n', '\r']).map_or(0, |at| at + 1);
    // CRLF is one line end; a lone CR counts as one as well, as it ends a line comment.
    let ends = before.matches('\n').count() + before.matches('\r').count()
        - before.matches("\r\n").count();
    Refusal {
        line: ends + 1,
        column: before[line_start..].chars().count() + 1,
        reason: reason.to_owned(),
    }
}

/// The one property of a name; twice is ambiguous.
fn only<'d, 'a>(
    text: &str,
    object: &'d Object<'a>,
    name: &str,
) -> Result<Option<&'d ObjectProp<'a>>, Refusal> {
    let mut found = object.properties.iter().filter(|property| property.name.as_str() == name);
    let first = found.next();
    match found.next() {
        Some(second) => Err(at(
            text,
            second.range().start,
            &format!("\"{name}\" appears a second time here; remove one of the two"),
        )),
        None => Ok(first),
    }
}

fn object<'d, 'a>(
    text: &str,
    parent: &'d Object<'a>,
    name: &str,
) -> Result<Option<&'d Object<'a>>, Refusal> {
    let Some(property) = only(text, parent, name)? else { return Ok(None) };
    property.value.as_object().map(Some).ok_or_else(|| {
        at(text, property.value.range().start, &format!("\"{name}\" is not an object"))
    })
}

fn array<'d, 'a>(
    text: &str,
    parent: &'d Object<'a>,
    name: &str,
) -> Result<Option<&'d jsonc_parser::ast::Array<'a>>, Refusal> {
    let Some(property) = only(text, parent, name)? else { return Ok(None) };
    property.value.as_array().map(Some).ok_or_else(|| {
        at(text, property.value.range().start, &format!("\"{name}\" is not an array"))
    })
}

fn spans<T: jsonc_parser::common::Ranged>(children: &[T]) -> Vec<Range<usize>> {
    children.iter().map(|child| child.start()..child.end()).collect()
}

#[cfg(test)]
mod tests;
