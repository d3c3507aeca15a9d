//! `GET /agent/contacts` (E14): every session the caller took part in, with its address (`T-9`).

use alloc::string::String;
use alloc::vec::Vec;

use super::ApiError;
use super::listing::{collect, label, list, read_listing};
use crate::http::{self, Outcome};
use crate::json::Node;

/// One contact. Absent texts are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contact {
    /// Who.
    pub name: String,
    /// Where a mail to them in that session goes.
    pub address: String,
    /// The session.
    pub session_id: String,
    /// The session's name.
    pub session_alias: String,
    /// What the session is about.
    pub subject: String,
    /// When the last mail went, as the gateway wrote it.
    pub last_mail_at: String,
    /// Whether it is a human, when the gateway says so.
    pub human: Option<bool>,
}

/// The exchange.
#[must_use]
pub fn request() -> http::Request {
    http::Request::get("/agent/contacts")
}

/// Reads the reply.
///
/// # Errors
/// [`ApiError`].
pub fn parse(outcome: Outcome<'_>) -> Result<Vec<Contact>, ApiError> {
    let body = read_listing(outcome)?;
    Ok(collect(list(&body, &["contacts"]), Contact::read).0)
}

impl Contact {
    fn read(node: &Node) -> Option<Self> {
        if let Node::String(text) = node {
            return (!text.is_empty()).then(|| Self { address: text.clone(), ..Self::default() });
        }
        let text = |keys: &[&str]| label(node, keys).unwrap_or_default();
        let contact = Self {
            name: text(&["name"]),
            address: text(&["reply_address", "address"]),
            session_id: super::session_id(node).unwrap_or_default(),
            session_alias: text(&["session_alias", "alias"]),
            subject: text(&["subject", "title"]),
            last_mail_at: text(&["last_mail_at", "updated_at"]),
            human: node.flag("human"),
        };
        (!contact.name.is_empty() || !contact.address.is_empty()).then_some(contact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Reply;

    #[test]
    fn a_contact_needs_a_name_or_an_address() {
        let body = br#"{"contacts":[{"name":"a","address":"a@","reply_address":"a@.s"},{},"b@x"]}"#;
        let contacts = parse(Outcome::Reply(Reply::json(200, body))).unwrap();
        let addresses: Vec<_> = contacts.iter().map(|c| c.address.as_str()).collect();
        assert_eq!(addresses, ["a@.s", "b@x"]);
    }
}
