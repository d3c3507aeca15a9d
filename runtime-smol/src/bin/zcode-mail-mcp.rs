//! The mail tools as an MCP server on standard input and output.

use std::process::ExitCode;

fn main() -> ExitCode {
    zcode_mail_smol::mcp::main()
}
