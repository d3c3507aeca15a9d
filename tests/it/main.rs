//! Integration tests: one binary, one module for each machine or program.

mod scripted;

mod framer;
mod hook_event;
mod licences;
mod programs;
mod replay;
mod sse;
