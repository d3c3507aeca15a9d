//! Stand-ins for the worlds on both sides.

pub mod gateway;
pub mod hook;
pub mod host;
pub mod mailbox;
pub mod mcp;
pub mod tls;
