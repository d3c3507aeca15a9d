//! The harness itself.

use zcode_mail_tests::programs::{bin, run};

#[test]
fn every_program_says_its_version() {
    for name in ["zcode-mail", "zcode-mail-hook"] {
        assert!(bin(name).is_file(), "{name}");
    }
    let out = run("zcode-mail-hook", &["--version"], &[]);
    assert!(out.status.success());
}
