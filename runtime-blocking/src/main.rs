//! ZCode's permission hook.
fn main() {}
