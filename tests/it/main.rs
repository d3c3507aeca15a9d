//! The integration tests: one binary, a module per topic.

mod licences;
mod programs;
