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
