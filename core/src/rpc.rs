//! JSON-RPC and MCP.
