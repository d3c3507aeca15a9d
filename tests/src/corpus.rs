//! Corpora: the inputs that guard the machines.
//!
//! `fuzz/corpus/<target>.pack` holds what fuzzing has found worth keeping, minimised, as one text
//! file: a header line, then one input a line in hexadecimal, shortest first and equal lengths in
//! byte order, none twice. So the same inputs are the same file, and changes can be read and merged.
//! The empty input is always tried and never listed.
//!
//! `fuzz/regressions/<target>/` holds one file of raw bytes for each bug that was found, named after
//! the bug.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::{fs, io};

const HEADER: &str = "# zcode-mail corpus 1: one input a line, hexadecimal";

/// The `fuzz` folder of this workspace.
#[must_use]
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fuzz")
}

/// Where the pack of `target` is.
#[must_use]
pub fn pack_path(target: &str) -> PathBuf {
    root().join("corpus").join(format!("{target}.pack"))
}

/// Where the regressions of `target` are.
#[must_use]
pub fn regressions_path(target: &str) -> PathBuf {
    root().join("regressions").join(target)
}

/// The text of a pack with these inputs.
#[must_use]
pub fn pack(mut inputs: Vec<Vec<u8>>) -> String {
    inputs.retain(|input| !input.is_empty());
    inputs.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    inputs.dedup();
    let mut text = format!("{HEADER}\n");
    for input in &inputs {
        for byte in input {
            let _ = write!(text, "{byte:02x}");
        }
        text.push('\n');
    }
    text
}

/// The inputs in the text of a pack.
///
/// # Errors
/// Says which line is not hexadecimal, or that the header is missing.
pub fn unpack(text: &str) -> Result<Vec<Vec<u8>>, String> {
    let Some(body) = text.strip_prefix(HEADER).and_then(|rest| rest.strip_prefix('\n')) else {
        return Err(format!("the first line is not {HEADER:?}"));
    };
    body.lines()
        .enumerate()
        .map(|(at, line)| from_hex(line).ok_or_else(|| format!("line {}: {line:?}", at + 2)))
        .collect()
}

fn from_hex(line: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> =
        line.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<_>>()?;
    digits
        .len()
        .is_multiple_of(2)
        .then(|| digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// All inputs of `target` with a name for messages: the empty one, its pack, its regressions.
///
/// # Errors
/// A file that cannot be read, or a pack that is not one.
pub fn inputs(target: &str) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut inputs = vec![("the empty input".to_owned(), Vec::new())];
    let pack = pack_path(target);
    let unpacked = unpack(&fs::read_to_string(&pack)?)
        .map_err(|why| io::Error::other(format!("{}: {why}", pack.display())))?;
    inputs.extend(
        (2..).zip(unpacked).map(|(line, input)| (format!("{}:{line}", pack.display()), input)),
    );
    match fs::read_dir(regressions_path(target)) {
        Err(none) if none.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
        Ok(entries) => {
            for entry in entries {
                let path = entry?.path();
                inputs.push((path.display().to_string(), fs::read(&path)?));
            }
        }
    }
    Ok(inputs)
}

/// Keeps an input that broke a law, so that every runner tries it from then on. Returns its place.
///
/// # Errors
/// The file or its folder cannot be written.
pub fn save_regression(target: &str, input: &[u8]) -> io::Result<PathBuf> {
    let folder = regressions_path(target);
    fs::create_dir_all(&folder)?;
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let path = folder.join(format!("found-{:016x}", hasher.finish()));
    fs::write(&path, input)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_is_independent_of_order_and_repetition() {
        let some = vec![vec![2], vec![], vec![1, 0xFF], vec![0], vec![2]];
        let text = pack(some.clone());
        assert_eq!(text, format!("{HEADER}\n00\n02\n01ff\n"));
        assert_eq!(pack(some.into_iter().rev().collect()), text);
        assert_eq!(unpack(&text).unwrap(), [vec![0], vec![2], vec![1, 0xFF]]);
    }

    #[test]
    fn what_is_no_pack_is_refused_with_its_line() {
        assert!(unpack("00\n").unwrap_err().contains("first line"));
        for (body, line) in [("00\n0\n", "line 3"), ("xx\n", "line 2"), ("+1\n", "line 2")] {
            let error = unpack(&format!("{HEADER}\n{body}")).unwrap_err();
            assert!(error.contains(line), "{error}");
        }
    }
}
