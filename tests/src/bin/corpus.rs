//! Packs and unpacks fuzz corpora, for `tests/fuzz`.
//!
//! `corpus list` names the targets, `corpus unpack TARGET DIR` writes a target's inputs as files,
//! `corpus pack TARGET DIR` makes its pack of the files there.

use std::process::ExitCode;
use std::{env, fs, io, io::Write as _, path::Path};
use zcode_mail_tests::{corpus, oracle};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["list"] => list(),
        ["unpack", target, folder] => unpack(target, Path::new(folder)),
        ["pack", target, folder] => pack(target, Path::new(folder)),
        _ => Err(io::Error::other("usage: corpus list | unpack TARGET DIR | pack TARGET DIR")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "corpus: {error}");
            ExitCode::FAILURE
        }
    }
}

fn list() -> io::Result<()> {
    let mut out = io::stdout().lock();
    oracle::TARGETS.iter().try_for_each(|target| writeln!(out, "{}", target.name))
}

fn unpack(target: &str, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    if !corpus::pack_path(target).exists() {
        return Ok(()); // A new target starts from nothing.
    }
    for (number, (_, input)) in corpus::inputs(target)?.iter().enumerate() {
        fs::write(folder.join(format!("{number:05}")), input)?;
    }
    Ok(())
}

fn pack(target: &str, folder: &Path) -> io::Result<()> {
    let inputs = fs::read_dir(folder)?
        .map(|entry| fs::read(entry?.path()))
        .collect::<io::Result<Vec<_>>>()?;
    fs::write(corpus::pack_path(target), corpus::pack(inputs))
}
