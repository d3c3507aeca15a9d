//! The mail tools.
