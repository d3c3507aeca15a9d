//! Integration tests: one binary, one module for each machine or program.

mod scripted;

mod contract;
mod framer;
mod hook_event;
mod hook_files;
mod hook_process;
mod install;
mod licences;
mod lifecycle;
mod mcp;
mod mcp_files;
mod mcp_gateway;
mod mcp_process;
mod plugin;
mod programs;
mod replay;
mod sse;
