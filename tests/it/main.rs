//! Integration tests: one binary, one module for each machine or program.

mod scripted;

mod acceptance;
mod audit;
mod binding;
mod contract;
mod digest;
mod doctor;
mod framer;
mod gateway;
mod hook_crowd;
mod hook_event;
mod hook_failures;
mod hook_files;
mod hook_hosts;
mod hook_interleavings;
mod hook_machine;
mod hook_process;
mod install;
mod licences;
mod lifecycle;
mod mask;
mod mcp;
mod mcp_files;
mod mcp_gateway;
mod mcp_process;
mod mcp_real;
mod plugin;
mod programs;
mod readme;
mod render;
mod replay;
mod service;
mod sse;
