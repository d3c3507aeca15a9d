//! Integration tests: one binary, one module for each machine or program.

mod scripted;

mod contract;
mod framer;
mod hook_event;
mod licences;
mod lifecycle;
mod programs;
mod replay;
mod sse;
