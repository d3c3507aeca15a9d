//! The event-stream parser and writer against their laws.

use crate::scripted::scripted;

#[test]
fn scripts_keep_every_law_of_the_parser() {
    scripted("sse");
}

#[test]
fn scripts_keep_every_law_of_the_writer() {
    scripted("sse_writer");
}
