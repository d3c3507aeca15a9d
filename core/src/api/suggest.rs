//! `GET /agent/contacts/suggest` (E13): whom can a mail be addressed to, in three stages.
//!
//! Without a name it suggests names, with a name its directories, with both the sessions there.

use alloc::string::String;
use alloc::vec::Vec;

use super::ApiError;
use super::listing::{collect, label, list, push_query, read_listing};
use crate::http::{self, Outcome};
use crate::json::Node;

/// Which part of an address is being asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The name.
    Name,
    /// The path of that name.
    Path,
    /// The session at that path.
    Session,
}

impl Stage {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Path => "path",
            Self::Session => "session",
        }
    }
}

/// What is known of the address so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suggest {
    /// The name, if it is settled.
    pub name: Option<String>,
    /// The path, if it is settled.
    pub path: Option<String>,
    /// What the missing part should be like.
    pub query: Option<String>,
    /// Say the stage in the query: for gateways that answer 400 without it.
    pub explicit: bool,
}

/// One candidate. Absent texts are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suggestion {
    /// The name, path or alias itself; never empty.
    pub value: String,
    /// The address to send to, if the gateway says so.
    pub address: String,
    /// A human-readable title.
    pub title: String,
    /// `agent` or `human`.
    pub kind: String,
    /// Whether it is connected.
    pub online: Option<bool>,
    /// When it was last used, as the gateway wrote it.
    pub used_at: String,
    /// A session that lives in the agent's own interface.
    pub platform: bool,
}

/// The candidates of one stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggested {
    /// The candidates.
    pub suggestions: Vec<Suggestion>,
    /// A near match when there is no exact one, if the gateway offers it.
    pub did_you_mean: Vec<String>,
}

impl Suggest {
    /// The stage that follows from what is known.
    #[must_use]
    pub const fn stage(&self) -> Stage {
        match (&self.name, &self.path) {
            (None, _) => Stage::Name,
            (Some(_), None) => Stage::Path,
            (Some(_), Some(_)) => Stage::Session,
        }
    }

    /// The exchange.
    #[must_use]
    pub fn request(&self) -> http::Request {
        let mut path = String::from("/agent/contacts/suggest");
        if self.explicit {
            push_query(&mut path, "kind", self.stage().as_str());
        }
        for (name, value) in [("name", &self.name), ("path", &self.path), ("q", &self.query)] {
            if let Some(value) = value {
                push_query(&mut path, name, value);
            }
        }
        http::Request::get(&path)
    }

    /// Reads the reply.
    ///
    /// # Errors
    /// [`ApiError`]; on a 400 the `explicit` form is worth one try.
    pub fn parse(outcome: Outcome<'_>) -> Result<Suggested, ApiError> {
        let body = read_listing(outcome)?;
        let names = ["suggestions", "names", "paths", "sessions", "candidates"];
        let (suggestions, _) = collect(list(&body, &names), Suggestion::read);
        let near = body.get("did_you_mean");
        let (did_you_mean, _) = match near {
            Some(Node::String(one)) => (alloc::vec![one.clone()], 0),
            _ => collect(near.and_then(Node::as_array).unwrap_or_default(), |item| {
                Suggestion::read(item).map(|s| s.value)
            }),
        };
        Ok(Suggested { suggestions, did_you_mean })
    }
}

impl Suggestion {
    fn read(node: &Node) -> Option<Self> {
        if let Node::String(text) = node {
            return (!text.is_empty()).then(|| Self { value: text.clone(), ..Self::default() });
        }
        let address = node.owned(&["address", "reply_address"]).unwrap_or_default();
        let value = label(node, &["alias", "path", "name", "value"])
            .or_else(|| (!address.is_empty()).then(|| address.clone()))?;
        Some(Self {
            value,
            address,
            title: node.owned(&["title", "subject"]).unwrap_or_default(),
            kind: node.owned(&["kind", "type"]).unwrap_or_default(),
            online: node.flag("online"),
            used_at: node.owned(&["updated_at", "last_used", "last_seen"]).unwrap_or_default(),
            platform: node.flag("platform").unwrap_or(false),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Reply;

    #[test]
    fn the_stage_follows_from_what_is_known() {
        let mut suggest = Suggest { query: Some("re fac".into()), ..Suggest::default() };
        assert_eq!(suggest.request().path, "/api/v1/agent/contacts/suggest?q=re%20fac");
        suggest.name = Some("pi".into());
        assert_eq!(suggest.stage(), Stage::Path);
        suggest.path = Some("/a".into());
        suggest.explicit = true;
        let path = suggest.request().path;
        assert!(path.ends_with("?kind=session&name=pi&path=%2Fa&q=re%20fac"), "{path}");
    }

    #[test]
    fn candidates_are_read_in_every_shape() {
        for body in [
            r#"{"kind":"name","suggestions":[{"name":"pi","kind":"agent","online":true}]}"#,
            r#"{"paths":["pi"]}"#,
            r#"["pi"]"#,
            r#"{"sessions":[{"alias":"pi","path":"/x"}],"did_you_mean":["pj"]}"#,
        ] {
            let reply = Outcome::Reply(Reply::json(200, body.as_bytes()));
            let suggested = Suggest::parse(reply).unwrap();
            assert_eq!(suggested.suggestions[0].value, "pi", "{body}");
        }
    }
}
