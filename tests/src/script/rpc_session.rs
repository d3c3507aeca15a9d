//! Scripts for the MCP session: a client that talks in both eras at once, cancels, repeats ids and
//! sends nonsense, and a runtime that finishes calls in any order.

use super::byte;
use arbitrary::Unstructured;

/// Ids as they stand in a message.
pub const IDS: [&str; 8] =
    ["0", "1", "-5", "18446744073709551616", "\"a\"", "\"\"", "\"\\u00e9\u{2028}\"", "\"1\""];

/// Lines that are no request with a readable id, and never get an answer with one.
pub const NOISE: [&str; 16] = [
    "",
    "  ",
    "hello",
    "42",
    "null",
    "{",
    "[]",
    "[1]",
    "{}",
    r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/made_up","params":[]}"#,
    r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"read_inbox"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{"a":1}}}"#,
    "{\"jsonrpc\":\"2.0\",\"id\":\"\\ud800\",\"method\":\"ping\"}",
];

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// `initialize` with this version.
    Initialize(&'static str),
    /// `ping`.
    Ping,
    /// `server/discover`.
    Discover,
    /// `tools/list`.
    List,
    /// A call that ends at once because an argument is missing.
    BadArgument,
    /// A call that runs.
    Run,
    /// A call of a tool that is not there.
    UnknownTool,
    /// A method that is not there.
    UnknownMethod,
    /// Parameters nested too deep.
    TooDeep,
    /// Another version of JSON-RPC.
    WrongVersion,
    /// A cursor that nobody issued.
    Cursor,
}

const VERSIONS: [&str; 4] = ["2025-11-25", "2025-03-26", "2024-11-05", "garbage"];
const ASKS: [Ask; 16] = [
    Ask::Run,
    Ask::Run,
    Ask::Run,
    Ask::Run,
    Ask::Run,
    Ask::BadArgument,
    Ask::Ping,
    Ask::Ping,
    Ask::Discover,
    Ask::List,
    Ask::UnknownTool,
    Ask::UnknownMethod,
    Ask::TooDeep,
    Ask::WrongVersion,
    Ask::Cursor,
    Ask::Initialize(""),
];

/// The `_meta` of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meta {
    /// None: the handshake era.
    Absent,
    /// The stateless era.
    Stateless,
    /// A version that nobody speaks.
    Unsupported,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A request.
    Request {
        /// The raw id.
        id: &'static str,
        /// What it asks for.
        ask: Ask,
        /// Its era.
        meta: Meta,
    },
    /// A cancellation of this raw id.
    Cancel(&'static str),
    /// A line of [`NOISE`].
    Noise(&'static str),
    /// The runtime ends the running call with this number, modulo how many run.
    Finish(usize),
    /// The runtime ends a call that ended before.
    FinishAgain,
    /// The input ends.
    Close,
}

/// A session.
#[derive(Clone, Debug)]
pub struct Script {
    /// What happens.
    pub steps: Vec<Step>,
    /// Sizes of the reads in which the same lines arrive the second time.
    pub reads: usize,
}

impl Script {
    /// Reads a script.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Self {
        let mut u = Unstructured::new(bytes);
        let reads = usize::from(byte(&mut u).unwrap_or(0)) + 1;
        let mut steps = Vec::new();
        while let Some(code) = byte(&mut u) {
            let argument = usize::from(code & 0x1F);
            steps.push(match code >> 5 {
                0..=3 => {
                    let more = byte(&mut u).unwrap_or(0);
                    let version = VERSIONS[usize::from(more >> 6)];
                    let ask = match ASKS[usize::from(more & 15)] {
                        Ask::Initialize(_) => Ask::Initialize(version),
                        ask => ask,
                    };
                    let meta = match argument >> 3 {
                        0 | 1 => Meta::Absent,
                        2 => Meta::Stateless,
                        _ if more & 16 == 0 => Meta::Stateless,
                        _ => Meta::Unsupported,
                    };
                    Step::Request { id: IDS[argument & 7], ask, meta }
                }
                4 => Step::Cancel(IDS[argument & 7]),
                5 => Step::Noise(NOISE[argument & 15]),
                6 => Step::Finish(argument),
                _ if argument == 31 => Step::Close,
                _ if argument & 1 == 0 => Step::FinishAgain,
                _ => Step::Finish(argument >> 1),
            });
        }
        Self { steps, reads }
    }
}

impl Step {
    /// The line that a client sends for it, if it is the client's.
    #[must_use]
    pub fn line(&self) -> Option<String> {
        match self {
            Self::Request { id, ask, meta } => Some(request(id, *ask, *meta)),
            Self::Cancel(id) => Some(format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
            )),
            Self::Noise(line) => Some((*line).to_owned()),
            Self::Finish(_) | Self::FinishAgain | Self::Close => None,
        }
    }
}

fn request(id: &str, ask: Ask, meta: Meta) -> String {
    let meta = match meta {
        Meta::Absent => String::new(),
        Meta::Stateless => stateless("2026-07-28"),
        Meta::Unsupported => stateless("1900-01-01"),
    };
    let (method, mut members) = match ask {
        Ask::Initialize(version) => ("initialize", format!("\"protocolVersion\":\"{version}\"")),
        Ask::Ping => ("ping", String::new()),
        Ask::Discover => ("server/discover", String::new()),
        Ask::List => ("tools/list", String::new()),
        Ask::BadArgument => ("tools/call", "\"name\":\"read_mail\",\"arguments\":{}".into()),
        Ask::Run => ("tools/call", "\"name\":\"read_inbox\"".into()),
        Ask::UnknownTool => ("tools/call", "\"name\":\"report_status\"".into()),
        Ask::UnknownMethod => ("resources/list", String::new()),
        Ask::TooDeep => ("ping", format!("\"x\":{}{}", "[".repeat(200), "]".repeat(200))),
        Ask::WrongVersion => ("ping", String::new()),
        Ask::Cursor => ("tools/list", "\"cursor\":\"x\"".into()),
    };
    if !meta.is_empty() {
        let comma = if members.is_empty() { "" } else { "," };
        members = format!("{meta}{comma}{members}");
    }
    let version = if ask == Ask::WrongVersion { "1.0" } else { "2.0" };
    format!(r#"{{"jsonrpc":"{version}","id":{id},"method":"{method}","params":{{{members}}}}}"#)
}

fn stateless(version: &str) -> String {
    format!(
        "\"_meta\":{{\"io.modelcontextprotocol/protocolVersion\":\"{version}\",\
         \"io.modelcontextprotocol/clientCapabilities\":{{}}}}"
    )
}
