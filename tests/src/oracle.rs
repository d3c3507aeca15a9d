//! Oracles: every law of a machine, as one function over the bytes of a script.
//!
//! `check(bytes)` returns when all laws hold and panics with the script and the difference when one
//! does not. proptest, the replay test and cargo-fuzz call the same function, so what one of them
//! finds guards all three.

pub mod bodies;
pub mod events;
pub mod framer;
pub mod grants;
pub mod hook_event;
pub mod hook_machine;
pub mod mask;
pub mod render;
pub mod replies;
pub mod rpc_session;
pub mod sse;
pub mod sse_writer;
pub mod tool_args;
pub mod tool_render;

/// One machine under test.
#[derive(Clone, Copy)]
pub struct Target {
    /// The name of the fuzz target and of its corpus.
    pub name: &'static str,
    /// Its oracle.
    pub check: fn(&[u8]),
}

/// Every machine that has an oracle, in the order of their names.
pub const TARGETS: &[Target] = &[
    Target { name: "bodies", check: bodies::check },
    Target { name: "events", check: events::check },
    Target { name: "framer", check: framer::check },
    Target { name: "grants", check: grants::check },
    Target { name: "hook_event", check: hook_event::check },
    Target { name: "hook_machine", check: hook_machine::check },
    Target { name: "mask", check: mask::check },
    Target { name: "render", check: render::check },
    Target { name: "replies", check: replies::check },
    Target { name: "rpc_session", check: rpc_session::check },
    Target { name: "sse", check: sse::check },
    Target { name: "sse_writer", check: sse_writer::check },
    Target { name: "tool_args", check: tool_args::check },
    Target { name: "tool_render", check: tool_render::check },
];

/// The oracle of `name`.
#[must_use]
pub fn find(name: &str) -> Option<Target> {
    TARGETS.iter().copied().find(|target| target.name == name)
}
