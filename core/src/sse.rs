//! Server-sent events: parser and writer.
