//! `GET /agent/sessions/{id}/participants` (E15): who takes part in a session (`T-10`).

use alloc::string::String;
use alloc::vec::Vec;

use super::ApiError;
use super::listing::{collect, list, read_listing};
use crate::http::{self, Outcome, push_segment};
use crate::json::Node;

/// Somebody who takes part. Absent texts are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Participant {
    /// Who.
    pub name: String,
    /// Where a mail to them goes.
    pub address: String,
    /// Whether it is a human, when the gateway says so.
    pub human: Option<bool>,
    /// `owner`, `to`, `cc`, ...
    pub role: String,
}

/// The exchange.
#[must_use]
pub fn request(session_id: &str) -> http::Request {
    let mut path = String::from("/agent/sessions/");
    push_segment(&mut path, session_id);
    path.push_str("/participants");
    http::Request::get(&path)
}

/// Reads the reply.
///
/// # Errors
/// [`ApiError`]: 404 when the session is unknown or not visible to the caller.
pub fn parse(outcome: Outcome<'_>) -> Result<Vec<Participant>, ApiError> {
    let body = read_listing(outcome)?;
    Ok(collect(list(&body, &["participants"]), Participant::read).0)
}

impl Participant {
    pub(super) fn read(node: &Node) -> Option<Self> {
        if let Node::String(text) = node {
            return (!text.is_empty()).then(|| Self { name: text.clone(), ..Self::default() });
        }
        let text = |key: &str| node.owned(&[key]).unwrap_or_default();
        let (name, address) = (text("name"), text("address"));
        (!name.is_empty() || !address.is_empty()).then(|| Self {
            name,
            address,
            human: node.flag("human"),
            role: text("role"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Reply;

    #[test]
    fn people_may_be_bare_names() {
        let body = br#"{"session_id":"s","participants":["a",{"address":"b@x","human":true},{}]}"#;
        let people = parse(Outcome::Reply(Reply::json(200, body))).unwrap();
        assert_eq!(people.len(), 2);
        assert_eq!((people[0].name.as_str(), people[1].human), ("a", Some(true)));
        assert_eq!(request("s/1").path, "/api/v1/agent/sessions/s%2F1/participants");
    }
}
