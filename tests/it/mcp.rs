//! The MCP session and the mail tools, without a process.

mod golden;
mod transcripts;

use crate::scripted::scripted;

#[test]
fn scripts_keep_every_law_of_the_session() {
    scripted("rpc_session");
}

#[test]
fn scripts_keep_every_law_of_the_arguments() {
    scripted("tool_args");
}

#[test]
fn scripts_keep_every_law_of_the_renderings() {
    scripted("tool_render");
}
