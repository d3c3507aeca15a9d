//! Shared by the targets.
