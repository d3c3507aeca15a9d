//! Generators, oracles, fakes and harnesses of the tests.
//!
//! One byte format, one generator, one oracle for each machine, and three runners over them:
//!
//! ```text
//!   proptest (tests/it) ----+
//!   replay   (tests/it) ----+-> bytes -> script::<machine>::Script -> oracle::<machine>::check
//!   cargo-fuzz (fuzz/)  ----+                 (generator)                (all the laws)
//! ```
//!
//! A machine that has all this is one line in [`oracle::TARGETS`]; `fuzz/src/lib.rs` says how to
//! add one.

pub mod corpus;
pub mod fakes;
pub mod oracle;
pub mod plugin_host;
pub mod programs;
pub mod reference;
pub mod script;
