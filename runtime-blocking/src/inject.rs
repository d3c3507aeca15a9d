//! Panics on request, so that tests can see that each one is caught.
//!
//! Only in builds with debug assertions: `AGENTMAIL_TEST_PANIC_AT` names the step that panics. A
//! release build has none of it.

/// The variable that names the step.
#[cfg(debug_assertions)]
const VARIABLE: &str = "AGENTMAIL_TEST_PANIC_AT";

/// Panics if a test asked for it at `step`.
#[cfg(debug_assertions)]
#[expect(clippy::panic, reason = "this is what it is for")]
pub(crate) fn here(step: &str) {
    if std::env::var_os(VARIABLE).is_some_and(|wanted| wanted == step) {
        panic!("a test asked for a panic at {step}");
    }
}

/// Does nothing in a release build.
#[cfg(not(debug_assertions))]
pub(crate) const fn here(_step: &str) {}
