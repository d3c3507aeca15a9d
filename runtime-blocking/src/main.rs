//! ZCode's permission hook: an event on stdin, an answer on stdout.

fn main() -> std::process::ExitCode {
    zcode_mail_blocking::main()
}
