//! The permission hook.
