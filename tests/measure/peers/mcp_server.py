"""The stock server of the official Python SDK (v2 line) with eleven tools that answer at once, as a
peer for tests/bench."""

from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, TextContent

NAMES = (
    "read_inbox read_mail read_thread send_mail forward_mail upload_attachment "
    "download_attachment suggest_address list_contacts session_participants connect_to_server"
)
server = MCPServer("peer")


def answer(mail_id: str | None = None) -> CallToolResult:
    text = mail_id or 'read_mail: argument "mail_id" is missing; expected a mail id.'
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=mail_id is None)


for name in NAMES.split():
    server.add_tool(answer, name=name, description="A tool of the peer")
server.run()
