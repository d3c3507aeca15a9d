//! Which revision of the protocol a message speaks.
//!
//! A request whose `params._meta` names a protocol version carries everything with it and belongs
//! to the stateless era (2026-07-28); any other request belongs to the handshake era. The answer
//! depends on the message alone, so one process may serve both kinds in any order.
//!
//! Citations: MCP 2026-07-28 basic ("Statelessness", request `_meta`); lifecycle pages of
//! 2024-11-05 to 2025-11-25 (version negotiation).

use super::envelope::{Text, members};

/// A revision of the Model Context Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revision {
    /// 2024-11-05.
    R2024_11_05,
    /// 2025-03-26: the only one with batches.
    R2025_03_26,
    /// 2025-06-18.
    R2025_06_18,
    /// 2025-11-25: the newest with a handshake.
    R2025_11_25,
    /// 2026-07-28: stateless.
    R2026_07_28,
}

impl Revision {
    /// All revisions, newest first: the order in which they are offered.
    pub const ALL: [Self; 5] = [
        Self::R2026_07_28,
        Self::R2025_11_25,
        Self::R2025_06_18,
        Self::R2025_03_26,
        Self::R2024_11_05,
    ];

    /// The newest revision that opens with `initialize`.
    pub const NEWEST_HANDSHAKE: Self = Self::R2025_11_25;

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::R2024_11_05 => "2024-11-05",
            Self::R2025_03_26 => "2025-03-26",
            Self::R2025_06_18 => "2025-06-18",
            Self::R2025_11_25 => "2025-11-25",
            Self::R2026_07_28 => "2026-07-28",
        }
    }

    /// The revision of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.name() == name)
    }

    /// What `initialize` answers to a client that asks for `asked`: the same revision if it has a
    /// handshake, else the newest that has one. Never an error, since clients give up on those.
    #[must_use]
    pub fn negotiate(asked: Option<&str>) -> Self {
        asked
            .and_then(Self::from_name)
            .filter(|revision| revision.era() == Era::Handshake)
            .unwrap_or(Self::NEWEST_HANDSHAKE)
    }

    /// The era it belongs to.
    #[must_use]
    pub const fn era(self) -> Era {
        match self {
            Self::R2026_07_28 => Era::Stateless,
            _ => Era::Handshake,
        }
    }
}

/// The shape in which a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// 2024-11-05 to 2025-11-25.
    Handshake,
    /// 2026-07-28.
    Stateless,
}

/// The members of `_meta` that mean something here; everything else in it is ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta<'a> {
    /// Raw `io.modelcontextprotocol/protocolVersion`.
    pub version: Option<&'a str>,
    /// Raw `io.modelcontextprotocol/clientCapabilities`.
    pub capabilities: Option<&'a str>,
    /// Raw `progressToken`, kept only when it is a string or a number.
    pub progress_token: Option<&'a str>,
    /// Raw session id of the host: flat `session_id`, or the one in `com.zcode/request-context`.
    pub host_session: Option<&'a str>,
}

impl<'a> Meta<'a> {
    /// Reads a raw `_meta` object; anything else counts as empty.
    #[must_use]
    pub fn read(raw: Option<&'a str>) -> Self {
        let names = [
            "io.modelcontextprotocol/protocolVersion",
            "io.modelcontextprotocol/clientCapabilities",
            "progressToken",
            "session_id",
            "com.zcode/request-context",
        ];
        let Some(Ok([version, capabilities, token, session, context])) =
            raw.map(|raw| members(raw, names))
        else {
            return Self::default();
        };
        let nested = || members(context?, ["session_id"]).ok()?[0];
        Self {
            version,
            capabilities,
            progress_token: token.filter(|raw| raw.starts_with(['"', '-']) || is_digit(raw)),
            host_session: session.or_else(nested),
        }
    }

    /// The host's session id as text.
    #[must_use]
    pub fn host_session_text(&self) -> Option<alloc::string::String> {
        let text = serde_json::from_str::<Text<'_>>(self.host_session?).ok()?.0;
        (!text.is_empty()).then(|| text.into_owned())
    }

    /// Which era the request is of.
    ///
    /// # Errors
    /// The fault that the request must be refused with.
    pub fn era(&self) -> Result<Era, EraFault<'a>> {
        let Some(raw) = self.version else { return Ok(Era::Handshake) };
        let Ok(Text(name)) = serde_json::from_str::<Text<'_>>(raw) else {
            return Err(EraFault::VersionNotText);
        };
        match Revision::from_name(&name).map(Revision::era) {
            None => Err(EraFault::Unsupported(raw)),
            // It names a revision with a handshake: that is its shape, and nothing else applies.
            Some(Era::Handshake) => Ok(Era::Handshake),
            Some(Era::Stateless) if self.capabilities.is_some_and(|c| c.starts_with('{')) => {
                Ok(Era::Stateless)
            }
            Some(Era::Stateless) => Err(EraFault::NoCapabilities),
        }
    }
}

fn is_digit(raw: &str) -> bool {
    raw.as_bytes().first().is_some_and(u8::is_ascii_digit)
}

/// Why a request's `_meta` cannot be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EraFault<'a> {
    /// The version is not a string.
    VersionNotText,
    /// The version (raw) is not one of ours: -32022 with both lists.
    Unsupported(&'a str),
    /// `io.modelcontextprotocol/clientCapabilities` is required and must be an object.
    NoCapabilities,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_handshake_version_is_echoed_and_everything_else_gets_the_newest() {
        for known in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            assert_eq!(Revision::negotiate(Some(known)).name(), known);
        }
        for other in ["2026-07-28", "2024-10-07", "2099-12-31", "garbage", ""] {
            assert_eq!(Revision::negotiate(Some(other)), Revision::R2025_11_25, "{other}");
        }
        assert_eq!(Revision::negotiate(None), Revision::R2025_11_25);
    }

    #[test]
    fn the_era_is_told_by_the_message_alone() {
        fn of(raw: &str) -> Result<Era, alloc::string::String> {
            Meta::read(Some(raw)).era().map_err(|fault| alloc::format!("{fault:?}"))
        }
        let version = r#""io.modelcontextprotocol/protocolVersion""#;
        let caps = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
        let with = |v: &str, rest: &str| alloc::format!("{{{version}:{v}{rest}}}");
        assert_eq!(of("{}"), Ok(Era::Handshake));
        assert_eq!(of("7"), Ok(Era::Handshake));
        let full = with("\"2026-07-28\"", &alloc::format!(",{caps}"));
        assert_eq!(of(&full), Ok(Era::Stateless));
        assert_eq!(of(&with("\"2026-07-28\"", "")), Err("NoCapabilities".into()));
        assert_eq!(of(&with("5", "")), Err("VersionNotText".into()));
        assert!(of(&with("\"1900-01-01\"", "")).unwrap_err().starts_with("Unsupported"));
        assert_eq!(of(&with("\"2025-06-18\"", "")), Ok(Era::Handshake));
    }

    #[test]
    fn the_host_session_is_read_flat_or_nested() {
        let flat = Meta::read(Some(r#"{"session_id":"s1","trace_id":"t"}"#));
        assert_eq!(flat.host_session_text().as_deref(), Some("s1"));
        let nested = Meta::read(Some(r#"{"com.zcode/request-context":{"session_id":"s2"}}"#));
        assert_eq!(nested.host_session_text().as_deref(), Some("s2"));
        assert_eq!(Meta::read(Some(r#"{"session_id":5}"#)).host_session_text(), None);
    }

    #[test]
    fn a_progress_token_is_a_string_or_a_number() {
        for (raw, kept) in [("\"t\"", true), ("7", true), ("null", false), ("{}", false)] {
            let meta = alloc::format!(r#"{{"progressToken":{raw}}}"#);
            assert_eq!(Meta::read(Some(&meta)).progress_token.is_some(), kept, "{raw}");
        }
    }
}
