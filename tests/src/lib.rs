//! Generators, oracles, fakes and harnesses of zcode-mail-bridge's tests.

pub mod programs;
