//! Integration tests: one binary, one module for each machine or program.

mod scripted;

mod contract;
mod framer;
mod gateway;
mod hook_event;
mod hook_files;
mod hook_process;
mod install;
mod licences;
mod lifecycle;
mod plugin;
mod programs;
mod replay;
mod sse;
