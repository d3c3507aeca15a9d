//! The asynchronous runtime of zcode-mail-bridge.

pub mod demo;
