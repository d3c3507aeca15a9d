//! The asynchronous runtime of zcode-mail-bridge.

pub mod cli;
pub mod demo;
pub mod doctor;
pub mod durable;
pub mod gateway;
pub mod install;
pub mod mcp;
pub mod plugin;
pub mod service;
pub mod support;

/// The commit that this program is built from, or `unknown`.
pub const COMMIT: &str = env!("ZCODE_MAIL_COMMIT");
/// Version and commit, as `--version` shows them.
pub const VERSION: &str = env!("ZCODE_MAIL_VERSION");
