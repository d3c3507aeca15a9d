//! The protocol core of zcode-mail-bridge.
//!
//! In scope: bytes to meaning and back, decisions, deadlines. Out of scope: reading, writing,
//! connecting, sleeping, telling the time, spawning, logging, randomness.
//!
//! Every machine obeys three sentences. **You own the bytes; the machine tells you how many it
//! used. After each input, drain until it says wait. Time only moves when you say so.**
//!
//! | module | what it holds |
//! |---|---|
//! | [`time`] | monotonic and wall-clock time as data |
//! | [`http`] | requests, replies and faults as data |
//! | [`frame`], [`inbox`] | lines out of a byte stream |
//! | [`sse`] | server-sent events, both directions |
//! | [`strict`] | JSON decoding that names the wrong field |
//! | [`api`] | one struct per gateway endpoint |
//! | [`address`], [`alias`] | three-part addresses and session names |
//! | [`relay_key`] | the idempotency key and its 160-byte limit (`B-8.9`) |
//! | [`decision`] | the meaning of a human's decision text (`B-8.8`) |
//! | [`mode`] | permission modes and enforcement (`W-4`) |
//! | [`lifecycle`] | a permission request from pending to its end |
//! | [`grants`] | remembered approvals |
//! | [`hook`] | ZCode's permission hook: event, policy, machine, answer |
//! | [`exact`], [`digest`] | a tool input without loss, and what a decision is bound to |
//! | [`render`], [`mask`] | what a person is shown, whole and without secrets |
//! | [`shell`], [`operands`], [`hints`] | a command line, the files it runs, what to look at twice |
//! | [`scope`] | how far a lasting approval reaches |
//! | [`audit`] | the hash-chained log as data |
//! | [`rpc`], [`tool`] | the MCP server and its mail tools |
//! | [`config`] | settings out of environment variables |
//! | [`another_runtime`] | how to write a runtime, with one in thirty lines |
//! | [`lang`] | which of the two languages a text is made in |
#![no_std]

extern crate alloc;

pub mod address;
pub mod alias;
pub mod api;
pub mod audit;
pub mod config;
pub mod decision;
pub mod digest;
pub mod exact;
pub mod frame;
pub mod grants;
pub mod hints;
pub mod hook;
pub mod http;
pub mod inbox;
mod json;
pub mod lang;
pub mod lifecycle;
pub mod mask;
pub mod mode;
pub mod operands;
pub mod relay_key;
pub mod render;
pub mod rpc;
pub mod scope;
pub mod shell;
pub mod sse;
pub mod strict;
pub mod time;
pub mod tool;

#[doc = include_str!("../docs/another-runtime.md")]
pub mod another_runtime {}
