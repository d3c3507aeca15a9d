//! Writes the table of characters that look like ASCII ones.
//!
//! The Unicode data comes from `unicode-security`, whose own table is made of thousands of pointers:
//! a program that links it relocates them all at every start, which the hook's start would feel.
//! This table holds plain characters.

use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

use unicode_security::confusable_detection::skeleton;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let mut table = String::from("[\n");
    for c in ('\u{80}'..=char::MAX).filter(|c| !('\u{ff01}'..='\u{ff5e}').contains(c)) {
        let shape: Vec<char> = skeleton(c.encode_utf8(&mut [0; 4])).collect();
        if let Some(first) = shape.first()
            && shape.iter().all(char::is_ascii_graphic)
        {
            writeln!(table, "({c:?}, {first:?}),")?;
        }
    }
    table.push_str("]\n");
    let place = PathBuf::from(env::var("OUT_DIR")?).join("imitations.rs");
    fs::write(place, table)?;
    Ok(())
}
