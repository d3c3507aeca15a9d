//! `POST /agent/heartbeat` (`W-3`, `B-2`), every 30 seconds.
//!
//! A list that is absent keeps what the gateway has; an empty list clears it. So a list that could
//! not be fetched must be `None` and never `Some(vec![])` (`N-7`). This is the one endpoint that
//! tolerates unknown fields; it answers their names.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Serialize, Serializer};

use super::ApiError;
use crate::http::{self, Outcome};
use crate::json::Node;
use crate::mode::Enforcement;
use crate::strict::{Fields, Invalid};

/// The path below the API prefix.
pub const PATH: &str = "/agent/heartbeat";
/// Milliseconds between two heartbeats (`B-2.1`).
pub const INTERVAL_MS: u64 = 30_000;

/// Unknown fields that a reply names at most: an agent needs to learn its few, not to have a body
/// of strange keys sent back.
pub const UNKNOWN_LIMIT: usize = 64;

/// What an agent reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Request {
    /// The platform's own sessions; `None` keeps the gateway's mirror, empty clears it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform_sessions: Option<Vec<PlatformSession>>,
    /// The models on offer; `None` keeps the gateway's catalogue, empty clears it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<Model>>,
    /// What the platform can do about a permission mode. Clients always send it (`B-2.6`), unless
    /// `unknown_fields` of an earlier reply names it.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "enforcement")]
    pub mode_enforcement: Option<Enforcement>,
}

/// One session of the platform.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PlatformSession {
    /// The platform's id.
    pub platform_id: String,
    /// The directory that it works in.
    pub workspace: String,
    /// Its short name, by which mail can adopt it.
    pub slug: String,
    /// Its title.
    pub title: String,
    /// Whether mail started it.
    pub mail_driven: bool,
    /// When it last changed, RFC 3339 in UTC.
    pub updated_at: String,
}

/// One model of the platform.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Model {
    /// Who serves it.
    pub provider: String,
    /// Its id.
    pub model: String,
    /// Its name for people.
    pub display_name: String,
}

/// A model that may be used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ModelRef {
    /// Who serves it.
    pub provider: String,
    /// Its id.
    pub model: String,
}

/// Which models the administrator allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ModelRange {
    /// No range is set, or the gateway does not say: the platform's default model.
    #[default]
    Unrestricted,
    /// These, best first. Empty means that no model may be used.
    Only(Vec<ModelRef>),
}

/// What the gateway answers. Numbers that it does not send are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beat {
    /// Unread mails of this agent; more than none at the first heartbeat starts the catch-up
    /// (`B-7.1`).
    pub pending_mails: u64,
    /// The agent's name, from `stats`.
    pub agent_name: Option<String>,
    /// The round budget of its new sessions, from `stats`.
    pub default_rounds: Option<u64>,
    /// Mails that it has sent, from `stats`.
    pub sent_total: Option<u64>,
    /// Sessions that the gateway took into its mirror.
    pub platform_sessions_synced: Option<u64>,
    /// Models that the gateway took into its catalogue.
    pub models_synced: Option<u64>,
    /// Which models may be used (`B-2.2`).
    pub models: ModelRange,
    /// Request fields that the gateway does not know and that need not be sent again.
    pub unknown_fields: Vec<String>,
}

/// A heartbeat as the gateway reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The known part.
    pub request: Request,
    /// Paths of the fields that the gateway does not know, for the reply, at most
    /// [`UNKNOWN_LIMIT`].
    pub unknown_fields: Vec<String>,
}

impl Request {
    /// The exchange.
    #[must_use]
    pub fn request(&self) -> http::Request {
        http::Request::post(PATH, super::encode(self))
    }

    /// Reads the reply.
    ///
    /// # Errors
    /// [`ApiError`]. A temporary one is neither retried nor reported (`B-2.1`).
    pub fn parse(outcome: Outcome<'_>) -> Result<Beat, ApiError> {
        let body = super::read(outcome)?;
        let stats = body.get("stats").unwrap_or(&Node::Null);
        let names = body.get("unknown_fields").and_then(Node::as_array).unwrap_or_default();
        Ok(Beat {
            pending_mails: body.count("pending_mails").unwrap_or_default(),
            agent_name: stats.owned(&["agent_name"]),
            default_rounds: stats.count("default_rounds"),
            sent_total: stats.count("sent_total"),
            platform_sessions_synced: body.count("platform_sessions_synced"),
            models_synced: body.count("models_synced"),
            models: range(&body),
            unknown_fields: names.iter().filter_map(Node::as_str).map(Into::into).collect(),
        })
    }

    /// Decodes a request body on the gateway's side: unknown fields are reported, a known field of
    /// a wrong type is an error.
    ///
    /// # Errors
    /// [`Invalid`] names the field.
    pub fn decode(body: &[u8]) -> Result<Decoded, Invalid> {
        let mut fields = Fields::parse(body)?;
        let mut unknown_fields = Vec::new();
        let platform_sessions = list(&mut fields, "platform_sessions", &mut unknown_fields, |s| {
            Ok(PlatformSession {
                platform_id: s.string("platform_id")?,
                workspace: s.opt_string("workspace")?.unwrap_or_default(),
                slug: s.opt_string("slug")?.unwrap_or_default(),
                title: s.opt_string("title")?.unwrap_or_default(),
                mail_driven: s.opt_bool("mail_driven")?.unwrap_or_default(),
                updated_at: s.opt_string("updated_at")?.unwrap_or_default(),
            })
        })?;
        let models = list(&mut fields, "models", &mut unknown_fields, |m| {
            Ok(Model {
                provider: m.opt_string("provider")?.unwrap_or_default(),
                model: m.string("model")?,
                display_name: m.opt_string("display_name")?.unwrap_or_default(),
            })
        })?;
        let mode_enforcement =
            fields.opt_string("mode_enforcement")?.map(|text| Enforcement::from_wire(&text));
        unknown_fields.extend(fields.unknown());
        unknown_fields.truncate(UNKNOWN_LIMIT);
        let request = Self { platform_sessions, models, mode_enforcement };
        Ok(Decoded { request, unknown_fields })
    }
}

/// A list of objects, each read by `read`; what is left of an element goes to `unknown`.
fn list<T>(
    fields: &mut Fields,
    name: &str,
    unknown: &mut Vec<String>,
    read: impl Fn(&mut Fields) -> Result<T, Invalid>,
) -> Result<Option<Vec<T>>, Invalid> {
    let Some(entries) = fields.opt_object_array(name)? else { return Ok(None) };
    let mut items = Vec::with_capacity(entries.len());
    for mut entry in entries {
        items.push(read(&mut entry)?);
        unknown.extend(entry.unknown());
    }
    Ok(Some(items))
}

/// Only a literal restriction restricts: an absent flag with an absent or empty list is unknown.
fn range(body: &Node) -> ModelRange {
    let listed = body.get("allowed_models").and_then(Node::as_array);
    let allowed = || {
        let read = |node: &Node| {
            let model = node.owned(&["model"])?;
            Some(ModelRef { provider: node.owned(&["provider"]).unwrap_or_default(), model })
        };
        listed.unwrap_or_default().iter().filter_map(read).collect()
    };
    match body.flag("models_unrestricted") {
        Some(true) => ModelRange::Unrestricted,
        Some(false) => ModelRange::Only(allowed()),
        None if listed.is_some_and(|list| !list.is_empty()) => ModelRange::Only(allowed()),
        None => ModelRange::Unrestricted,
    }
}

impl Beat {
    /// The reply body as the gateway writes it, every field of `W-3` present.
    #[must_use]
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Stats<'b> {
            agent_name: &'b str,
            default_rounds: u64,
            sent_total: u64,
        }
        #[derive(Serialize)]
        struct Body<'b> {
            status: &'static str,
            pending_mails: u64,
            stats: Stats<'b>,
            platform_sessions_synced: u64,
            models_synced: u64,
            allowed_models: &'b [ModelRef],
            models_unrestricted: bool,
            unknown_fields: &'b [String],
        }
        let (allowed_models, models_unrestricted): (&[_], _) = match &self.models {
            ModelRange::Unrestricted => (&[], true),
            ModelRange::Only(models) => (models, false),
        };
        super::encode_text(&Body {
            status: "ok",
            pending_mails: self.pending_mails,
            stats: Stats {
                agent_name: self.agent_name.as_deref().unwrap_or_default(),
                default_rounds: self.default_rounds.unwrap_or_default(),
                sent_total: self.sent_total.unwrap_or_default(),
            },
            platform_sessions_synced: self.platform_sessions_synced.unwrap_or_default(),
            models_synced: self.models_synced.unwrap_or_default(),
            allowed_models,
            models_unrestricted,
            unknown_fields: &self.unknown_fields,
        })
    }
}

fn enforcement<S: Serializer>(value: &Option<Enforcement>, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(value.unwrap_or_default().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Reply;
    use alloc::vec;

    fn body(request: &Request) -> String {
        String::from_utf8(request.request().body.unwrap()).unwrap()
    }

    fn parse(body: &str) -> Beat {
        Request::parse(Outcome::Reply(Reply::json(200, body.as_bytes()))).unwrap()
    }

    #[test]
    fn absent_and_empty_lists_are_different_on_the_wire_and_back() {
        let nothing = Request { mode_enforcement: Some(Enforcement::Native), ..Request::default() };
        assert_eq!(body(&nothing), r#"{"mode_enforcement":"native"}"#);
        let cleared = Request {
            platform_sessions: Some(vec![]),
            models: Some(vec![]),
            mode_enforcement: None,
        };
        assert_eq!(body(&cleared), r#"{"platform_sessions":[],"models":[]}"#);
        for request in [nothing, cleared, Request::default()] {
            let decoded = Request::decode(body(&request).as_bytes()).unwrap();
            assert_eq!(decoded, Decoded { request, unknown_fields: vec![] });
        }
        let null = Request::decode(br#"{"models":null}"#).unwrap();
        assert_eq!(null.request.models, None);
    }

    #[test]
    fn unknown_fields_are_named_and_wrong_types_refused() {
        let sent = br#"{"x":1,"models":[{"model":"m","price":2}],"mode_enforcement":"native"}"#;
        let decoded = Request::decode(sent).unwrap();
        assert_eq!(decoded.unknown_fields, ["models[0].price", "x"]);
        assert_eq!(decoded.request.mode_enforcement, Some(Enforcement::Native));
        let error = Request::decode(br#"{"platform_sessions":["s"]}"#).unwrap_err();
        assert!(alloc::format!("{error}").contains("platform_sessions[0]"));
    }

    #[test]
    fn a_reply_names_a_bounded_number_of_unknown_fields() {
        for (sent, named) in [(UNKNOWN_LIMIT, UNKNOWN_LIMIT), (UNKNOWN_LIMIT + 1, UNKNOWN_LIMIT)] {
            let members: Vec<_> = (0..sent).map(|nth| alloc::format!("\"f{nth}\":1")).collect();
            let body = alloc::format!("{{{}}}", members.join(","));
            assert_eq!(Request::decode(body.as_bytes()).unwrap().unknown_fields.len(), named);
        }
    }

    #[test]
    fn no_range_and_an_empty_range_are_different() {
        let one = ModelRange::Only(vec![ModelRef { provider: "p".into(), model: "m".into() }]);
        for (text, expected) in [
            ("{}", ModelRange::Unrestricted),
            (r#"{"allowed_models":[]}"#, ModelRange::Unrestricted),
            (r#"{"models_unrestricted":true,"allowed_models":[]}"#, ModelRange::Unrestricted),
            (r#"{"models_unrestricted":false,"allowed_models":[]}"#, ModelRange::Only(vec![])),
            (r#"{"models_unrestricted":false}"#, ModelRange::Only(vec![])),
            (r#"{"allowed_models":[{"provider":"p","model":"m"},7]}"#, one),
        ] {
            assert_eq!(parse(text).models, expected, "{text}");
        }
    }

    #[test]
    fn the_reply_survives_the_wire() {
        let beat = Beat {
            pending_mails: 3,
            agent_name: Some("zcode".into()),
            default_rounds: Some(20),
            sent_total: Some(1),
            platform_sessions_synced: Some(0),
            models_synced: Some(9),
            models: ModelRange::Only(vec![ModelRef { provider: "p".into(), model: "m".into() }]),
            unknown_fields: vec!["x".into()],
        };
        assert_eq!(parse(&beat.to_json()), beat);
        assert_eq!(parse("{}"), Beat::default());
    }
}
