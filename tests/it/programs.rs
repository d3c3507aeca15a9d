//! The harness itself.

use zcode_mail_tests::programs::{bin, run};

#[test]
fn every_program_says_its_version() {
    for name in ["zcode-mail", "zcode-mail-hook", "zcode-mail-mcp"] {
        assert!(bin(name).is_file(), "{name}");
    }
    for name in ["zcode-mail", "zcode-mail-hook", "zcode-mail-mcp"] {
        let out = run(name, &["--version"], &[]);
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.status.success(), "{out:?}");
        assert!(said.starts_with(&format!("{name} {}", env!("CARGO_PKG_VERSION"))), "{said}");
    }
}
