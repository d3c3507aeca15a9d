//! Slow, obvious twins of the machines, written from the specification and over the whole input.

pub mod framer;
pub mod grants;
pub mod sse;
