//! The stock server of the official Rust SDK with eleven tools that answer at once, as a peer for
//! `tests/bench`. With an argument it uses the SDK's newer pipes on one thread.

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock, ServerCapabilities, ServerConfig};
use rmcp::transport::io::{stdio, stdio_pipes};
use rmcp::{ErrorData, ServerHandler, ServiceExt, schemars, tool, tool_handler, tool_router};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    /// A mail id.
    mail_id: Option<String>,
}

impl Arguments {
    fn answer(self) -> CallToolResult {
        match self.mail_id {
            Some(id) => CallToolResult::success(vec![ContentBlock::text(id)]),
            None => CallToolResult::error(vec![ContentBlock::text(
                "read_mail: argument \"mail_id\" is missing; expected a mail id, as read_inbox lists it.",
            )]),
        }
    }
}

#[derive(Clone)]
struct Peer {
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Peer {
    #[tool(description = "A tool of the peer")]
    fn read_inbox(&self, Parameters(arguments): Parameters<Arguments>) -> Result<CallToolResult, ErrorData> {
        Ok(arguments.answer())
    }

    #[tool(description = "A tool of the peer")]
    fn read_mail(&self, Parameters(arguments): Parameters<Arguments>) -> Result<CallToolResult, ErrorData> {
        Ok(arguments.answer())
    }

    #[tool(description = "A tool of the peer")]
    fn read_thread(&self, Parameters(arguments): Parameters<Arguments>) -> Result<CallToolResult, ErrorData> {
        Ok(arguments.answer())
    }

    #[tool(description = "A tool of the peer")]
    fn send_mail(&self, Parameters(arguments): Parameters<Arguments>) -> Result<CallToolResult, ErrorData> {
        Ok(arguments.answer())
    }

    #[tool(description = "A tool of the peer")]
    fn forward_mail(&self, Parameters(arguments): Parameters<Arguments>) -> Result<CallToolResult, ErrorData> {
        Ok(arguments.answer())
    }

    #[tool(description = "A tool of the peer")]
    fn upload_attachment(&self, Parameters(arguments): Parameters<Arguments>) -> Result<CallToolResult, ErrorData> {
        Ok(arguments.answer())
    }

    #[tool(description = "A tool of the peer")]
    fn download_attachment(&self, Parameters(arguments): Parameters<Arguments>) -> Result<CallToolResult, ErrorData> {
        Ok(arguments.answer())
    }

    #[tool(description = "A tool of the peer")]
    fn suggest_address(&self, Parameters(arguments): Parameters<Arguments>) -> Result<CallToolResult, ErrorData> {
        Ok(arguments.answer())
    }

    #[tool(description = "A tool of the peer")]
    fn list_contacts(&self, Parameters(arguments): Parameters<Arguments>) -> Result<CallToolResult, ErrorData> {
        Ok(arguments.answer())
    }

    #[tool(description = "A tool of the peer")]
    fn session_participants(&self, Parameters(arguments): Parameters<Arguments>) -> Result<CallToolResult, ErrorData> {
        Ok(arguments.answer())
    }

    #[tool(description = "A tool of the peer")]
    fn connect_to_server(&self, Parameters(arguments): Parameters<Arguments>) -> Result<CallToolResult, ErrorData> {
        Ok(arguments.answer())
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Peer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

fn main() {
    let peer = Peer { tool_router: Peer::tool_router() };
    if std::env::args().len() > 1 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { peer.serve(stdio_pipes()).await.unwrap().waiting().await.unwrap() });
    } else {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async { peer.serve(stdio()).await.unwrap().waiting().await.unwrap() });
    }
}
