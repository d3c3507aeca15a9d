//! Session aliases.
