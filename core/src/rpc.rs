//! JSON-RPC 2.0 and the Model Context Protocol over one line stream, without I/O.
//!
//! ```text
//!            bytes                            Run(CallId, Next)   runtime performs needs
//!  client ───────────────▶ Session::feed    ───────────────────▶ ...
//!            bytes out                        Abort(CallId)       runtime drops the task
//!         ◀─────────────── Session::finish ◀─────────────────── Output
//! ```
//!
//! What it promises:
//! * every request id that can be read gets exactly one answer, unless the client cancelled it or
//!   closed the stream; a notification and a response never get one;
//! * the two eras of the protocol are told apart message by message and never pinned: a request
//!   whose `_meta` names a protocol version is of the stateless era (2026-07-28), every other one
//!   of the handshake era (2024-11-05 to 2025-11-25);
//! * an id goes back as the very characters it came in;
//! * one message is one line, and no line separator of JavaScript stands in it unescaped;
//! * nothing is remembered but the agreed revision and the table of running calls.
//!
//! Citations: JSON-RPC 2.0 sections 4 to 6; MCP basic, lifecycle, cancellation, progress and tools
//! pages of 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 and 2026-07-28.
//!
//! What must change together: a new revision touches [`era`] (the list and its capabilities) and
//! the result writers in `wire`; a new need of the tools touches [`crate::tool`] and the runtime.

pub mod envelope;
pub mod era;
pub mod session;
mod wire;

pub use session::{CallId, Event, Session};

/// JSON-RPC: the line is not JSON.
pub const PARSE_ERROR: i32 = -32700;
/// JSON-RPC: the JSON is not a request.
pub const INVALID_REQUEST: i32 = -32600;
/// JSON-RPC: the method does not exist here.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// JSON-RPC: the parameters are wrong; MCP uses it for unknown tools and cursors too.
pub const INVALID_PARAMS: i32 = -32602;
/// JSON-RPC: the server cannot serve the request at this moment.
pub const INTERNAL_ERROR: i32 = -32603;
/// MCP 2026-07-28: the protocol version in `_meta` is not supported.
pub const UNSUPPORTED_VERSION: i32 = -32022;

/// Longest line taken, in bytes: four times the largest JSON body the gateway takes, so that a mail
/// of that size fits even when its characters are escaped.
pub const MAX_LINE: usize = crate::frame::LINE_LIMIT;
/// Deepest nesting of a request's parameters: twice what any tool argument needs, and what
/// `serde_json` reads without help.
pub const MAX_DEPTH: usize = 128;
/// Calls that run at the same time. A client that starts more gets an error for each, never
/// silence.
pub const MAX_IN_FLIGHT: usize = 1024;
/// Longest request id taken, in bytes. Ids are held while a call runs, so they must be bounded.
pub const MAX_ID: usize = 16 * 1024;
/// How many unreadable lines in a row are answered. Two programs that answer each other's errors
/// would otherwise never stop; a readable message starts the count again.
pub const MAX_NOISE: u32 = 32;
/// How much of an oversized line is searched for its id, in bytes.
pub const HEAD: usize = 4 * 1024;
