//! The integration tests: one binary, a module per topic.

mod hook_event;
mod licences;
mod programs;
