//! Fuzz targets, each of which is also a program that replays files.
//!
//! A target is five lines, because everything it needs is in the `tests` crate: a generator that
//! makes a script of bytes, and an oracle that knows the machine's laws. Built without a fuzzer
//! (every ordinary build), a target checks the files and packs named on its command line; built by
//! cargo-fuzz, it is a libFuzzer program. So the ordinary build and clippy keep targets alive, and a
//! crash is looked at with `cargo run -p zcode-mail-fuzz --bin sse -- FILE`.
//!
//! To add one for a machine `foo`:
//! 1. `tests/src/script/foo.rs`: `Script::decode(bytes)`; `tests/src/oracle/foo.rs`: `check(bytes)`;
//!    a line for it in `tests/src/oracle.rs`, `TARGETS`.
//! 2. `fuzz/targets/foo.rs`: copy one, change the path of the oracle. A `[[bin]]` entry in
//!    `fuzz/Cargo.toml`.
//! 3. `tests/it/foo.rs`: `scripted("foo")` beside its other tests.
//! 4. `tests/fuzz --keep foo`: fuzzes it and writes `fuzz/corpus/foo.pack`. The replay test fails
//!    until that exists.

#[cfg(fuzzing)]
pub use libfuzzer_sys;

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs, io};

/// Makes a target of an oracle, a `fn(&[u8])`. The file starts with `#![cfg_attr(fuzzing, no_main)]`.
#[macro_export]
macro_rules! target {
    ($check:path) => {
        #[cfg(fuzzing)]
        $crate::libfuzzer_sys::fuzz_target!(|bytes: &[u8]| $check(bytes));

        #[cfg(not(fuzzing))]
        fn main() -> std::process::ExitCode {
            $crate::replay($check)
        }
    };
}

/// Checks the files named on the command line; a file that ends in `.pack` is a whole corpus.
pub fn replay(check: fn(&[u8])) -> ExitCode {
    for name in env::args_os().skip(1) {
        let inputs = match read(Path::new(&name)) {
            Ok(inputs) => inputs,
            Err(error) => {
                let _ = io::Write::write_fmt(
                    &mut io::stderr(),
                    format_args!("{}: {error}\n", name.display()),
                );
                return ExitCode::FAILURE;
            }
        };
        for input in inputs {
            check(&input);
        }
    }
    ExitCode::SUCCESS
}

fn read(path: &Path) -> io::Result<Vec<Vec<u8>>> {
    if path.extension().is_some_and(|extension| extension == "pack") {
        zcode_mail_tests::corpus::unpack(&fs::read_to_string(path)?).map_err(io::Error::other)
    } else {
        Ok(vec![fs::read(path)?])
    }
}
