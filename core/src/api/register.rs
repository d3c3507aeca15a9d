//! `POST /agent/register` (`W-2`, `B-1.2`): a program says who it is. Every start repeats it.

use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;

use super::ApiError;
use crate::http::{self, Outcome};
use crate::strict::{Fields, Invalid};

/// The path below the API prefix.
pub const PATH: &str = "/agent/register";

/// What to register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Request {
    /// The agent's name, which shares one namespace with human users.
    pub name: String,
    /// The platform, for display only; this bridge says `zcode`.
    pub platform: String,
    /// Named directories. The bridge sends none: each mail brings its own `to_workspace`.
    pub workspaces: Vec<Workspace>,
}

/// A named directory of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Workspace {
    /// The name used in addresses.
    pub name: String,
    /// The directory.
    pub path: String,
}

/// A registration that the gateway took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Registered {
    /// The name under which the gateway knows the agent, if it said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
    /// The platform as the gateway stored it, if it said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
}

impl Request {
    /// The exchange.
    #[must_use]
    pub fn request(&self) -> http::Request {
        http::Request::post(PATH, super::encode(self))
    }

    /// Reads the reply; any 2xx is a registration.
    ///
    /// # Errors
    /// [`ApiError`]: 401 needs an administrator, 409 another name.
    pub fn parse(outcome: Outcome<'_>) -> Result<Registered, ApiError> {
        let body = super::read(outcome)?;
        Ok(Registered {
            agent_name: body.owned(&["agent_name", "name"]),
            platform: body.owned(&["platform"]),
        })
    }

    /// Decodes a request body on the gateway's side.
    ///
    /// # Errors
    /// [`Invalid`] names the field.
    pub fn decode(body: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::parse(body)?;
        let name = fields.string("name")?;
        let platform = fields.opt_string("platform")?.unwrap_or_default();
        let mut workspaces = Vec::new();
        for mut entry in fields.opt_object_array("workspaces")?.unwrap_or_default() {
            workspaces.push(Workspace { name: entry.string("name")?, path: entry.string("path")? });
            entry.finish()?;
        }
        fields.finish()?;
        Ok(Self { name, platform, workspaces })
    }
}

impl Registered {
    /// The reply body as the gateway writes it.
    #[must_use]
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Body<'b> {
            status: &'static str,
            #[serde(flatten)]
            registered: &'b Registered,
        }
        super::encode_text(&Body { status: "ok", registered: self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Reply;
    use alloc::string::ToString as _;

    #[test]
    fn the_body_is_the_contracts_example() {
        let request =
            Request { name: "mybot".into(), platform: "myplatform".into(), workspaces: Vec::new() };
        let sent = request.request();
        assert_eq!(sent.path, "/api/v1/agent/register");
        let body = sent.body.unwrap();
        assert_eq!(body, br#"{"name":"mybot","platform":"myplatform","workspaces":[]}"#);
        assert_eq!(Request::decode(&body), Ok(request));
    }

    #[test]
    fn a_workspace_must_be_an_object() {
        let error = Request::decode(br#"{"name":"a","workspaces":["/home"]}"#).unwrap_err();
        assert_eq!(error.to_string(), "字段 \"workspaces[0]\" 类型不对：期望 object，收到 string");
        let error =
            Request::decode(br#"{"name":"a","workspaces":[{"name":"r","path":"/","x":1}]}"#);
        assert_eq!(error.unwrap_err().to_string(), "未知字段 \"workspaces[0].x\"");
        let error = Request::decode(br#"{"name":"a","key":"k"}"#).unwrap_err();
        assert_eq!(error.to_string(), "未知字段 \"key\"");
    }

    #[test]
    fn any_2xx_is_a_registration() {
        let parse = |status, body: &str| {
            Request::parse(Outcome::Reply(Reply::json(status, body.as_bytes())))
        };
        assert_eq!(parse(204, ""), Ok(Registered::default()));
        assert_eq!(parse(201, r#"{"name":"z"}"#).unwrap().agent_name.as_deref(), Some("z"));
        let written = Registered { agent_name: Some("z".into()), platform: Some("zcode".into()) };
        assert_eq!(parse(200, &written.to_json()), Ok(written));
        assert!(parse(401, r#"{"error":"no"}"#).unwrap_err().is_permanent());
    }
}
