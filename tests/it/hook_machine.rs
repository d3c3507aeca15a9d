//! The hook's decision machine in scripted worlds.

use crate::scripted::scripted;

#[test]
fn scripted_worlds_keep_every_law() {
    scripted("hook_machine");
}
