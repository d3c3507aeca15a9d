//! What the listing endpoints share: query strings, documents that may be arrays, names that may
//! stand under several keys (TP-1 to TP-6).

use alloc::string::String;
use alloc::vec::Vec;

use super::ApiError;
use crate::http::{Outcome, push_segment};
use crate::json::{self, Node};

/// Appends `name=value` to a query.
pub(super) fn push_query(path: &mut String, name: &str, value: &str) {
    path.push(if path.contains('?') { '&' } else { '?' });
    path.push_str(name);
    path.push('=');
    push_segment(path, value);
}

/// As `read` of the parent module, but a listing may also be a bare array (TP-2).
pub(super) fn read_listing(outcome: Outcome<'_>) -> Result<Node, ApiError> {
    if let Outcome::Reply(reply) = outcome
        && (200..300).contains(&reply.status)
        && !super::errors::is_html(&reply)
        && let Ok(list @ Node::Array(_)) = json::parse(reply.body)
    {
        return Ok(list);
    }
    super::read(outcome)
}

/// The elements under the first of `names` that leads to a list, else none.
pub(super) fn list<'n>(node: &'n Node, names: &[&str]) -> &'n [Node] {
    names.iter().find_map(|name| list_under(node, name)).unwrap_or_default()
}

/// The document itself if it is a list, else the first list under `name` or one of the usual
/// wrappers; an object under `data` is looked into once (TP-2).
fn list_under<'n>(node: &'n Node, name: &str) -> Option<&'n [Node]> {
    let keys = [name, "items", "data", "results", "list"];
    let within = |node: &'n Node| keys.iter().find_map(|key| node.get(key)?.as_array());
    node.as_array().or_else(|| within(node)).or_else(|| within(node.get("data")?))
}

/// The elements of a list that `read` understands, and how many it does not (TP-1).
pub(super) fn collect<T>(items: &[Node], read: impl Fn(&Node) -> Option<T>) -> (Vec<T>, usize) {
    let known: Vec<T> = items.iter().filter_map(read).collect();
    let skipped = items.len() - known.len();
    (known, skipped)
}

/// A text that may also be a number, such as an id of a foreign gateway.
pub(super) fn label(node: &Node, keys: &[&str]) -> Option<String> {
    node.owned(keys).or_else(|| {
        keys.iter().find_map(|key| match node.get(key)? {
            Node::Number(number) => Some(alloc::format!("{number}")),
            _ => None,
        })
    })
}

/// Names or addresses (TP-5): one string, or a list of strings or of objects.
pub(super) fn names(node: Option<&Node>) -> Vec<String> {
    let split = |text: &str| -> Vec<String> {
        let parts = text.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '，' | '；'));
        parts.filter(|part| !part.is_empty()).map(String::from).collect()
    };
    match node {
        Some(Node::String(text)) => split(text),
        Some(Node::Array(items)) => items
            .iter()
            .filter_map(|item| match item {
                Node::String(text) if !text.is_empty() => Some(text.clone()),
                item => item.owned(&["address", "name"]),
            })
            .collect(),
        _ => Vec::new(),
    }
}
