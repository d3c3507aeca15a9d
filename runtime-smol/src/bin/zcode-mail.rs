//! The operator's program.

use std::process::ExitCode;

fn main() -> ExitCode {
    zcode_mail_smol::cli::main()
}
