//! Which ZCode is installed, and which answer dialect it understands.
//!
//! ZCode 3.14.3 and later take the seed's keys and the structured decision in one object, and its
//! `block` cannot be undone by a later plugin. Older ones drop an answer with a key that they do not
//! expect, and a dropped refusal is an approval; they get the structured decision alone, as does a
//! version that cannot be found, since every ZCode from 3.3 on reads it.

use std::env;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use zcode_mail_core::hook::answer::Dialect;

/// The first ZCode whose schema takes more than one form of answer at once.
pub const FIRST_LENIENT: ZcodeVersion = ZcodeVersion { major: 3, minor: 14, patch: 3 };
/// The first engine known to be inside such a ZCode; engines count from 0.
pub const FIRST_LENIENT_ENGINE: ZcodeVersion = ZcodeVersion { major: 0, minor: 16, patch: 9 };
/// How long `zcode --version` may take: it is a script for Node.js, and its start is slow.
const PATIENCE: Duration = Duration::from_secs(5);

/// A version of ZCode, or of its engine (whose major number is 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ZcodeVersion {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
    /// The third number; 0 when it is missing.
    pub patch: u32,
}

impl ZcodeVersion {
    /// The dialect that this version understands.
    #[must_use]
    pub fn dialect(self) -> Dialect {
        let first = if self.major == 0 { FIRST_LENIENT_ENGINE } else { FIRST_LENIENT };
        if self >= first { Dialect::Both } else { Dialect::Structured }
    }
}

impl fmt::Display for ZcodeVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl FromStr for ZcodeVersion {
    type Err = String;

    /// Reads the first version in a text such as `3.14.3`, `v0.16.9` or `ZCode 3.5.3.3911`.
    fn from_str(text: &str) -> Result<Self, String> {
        for word in text.split_whitespace() {
            let word = word.strip_prefix(['v', 'V']).unwrap_or(word);
            let mut numbers = word.split(['.', '-', '+']).map(str::parse::<u32>);
            let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
                continue;
            };
            let patch = numbers.next().and_then(Result::ok).unwrap_or(0);
            return Ok(Self { major, minor, patch });
        }
        Err(format!("\"{}\" is no version such as 3.14.3", text.trim()))
    }
}

/// The dialect of an installation, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// How the hook answers.
    pub dialect: Dialect,
    /// The version that was found or given.
    pub version: Option<ZcodeVersion>,
    /// The dialect was named by the user.
    pub named: bool,
}

impl Choice {
    /// Takes what the user named, else looks for ZCode.
    #[must_use]
    pub fn make(dialect: Option<Dialect>, version: Option<ZcodeVersion>) -> Self {
        if let Some(dialect) = dialect {
            return Self { dialect, version, named: true };
        }
        let version = version.or_else(find);
        let dialect = version.map_or(Dialect::Structured, ZcodeVersion::dialect);
        Self { dialect, version, named: false }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dialect = self.dialect.as_str();
        match (self.named, self.version) {
            (true, _) => write!(f, "the hook answers in the dialect {dialect}, as asked"),
            (false, Some(version)) => {
                write!(f, "the hook answers in the dialect {dialect}, for ZCode {version}")
            }
            (false, None) => write!(
                f,
                "the hook answers in the dialect {dialect}, which every ZCode reads, since none \
                 was found; name yours by --zcode-version"
            ),
        }
    }
}

/// Looks for an installed ZCode: its engine's `package.json`, then `zcode --version`.
#[must_use]
pub fn find() -> Option<ZcodeVersion> {
    engines().iter().find_map(|dir| packaged(dir)).or_else(asked)
}

/// The engine's script for Node.js, where there is one: it is not on `PATH` by default.
#[must_use]
pub fn engine_script() -> Option<PathBuf> {
    engines().into_iter().map(|dir| dir.join("zcode.cjs")).find(|path| path.is_file())
}

/// Directories in which installers of ZCode put the engine.
fn engines() -> Vec<PathBuf> {
    let named = env::var_os("ZCODE_ENGINE_DIR").map(PathBuf::from);
    let mut out: Vec<PathBuf> = named.into_iter().collect();
    if cfg!(target_os = "macos") {
        out.push("/Applications/ZCode.app/Contents/Resources/glm".into());
        if let Some(home) = super::paths::home() {
            out.push(home.join("Applications/ZCode.app/Contents/Resources/glm"));
        }
    } else if cfg!(windows) {
        if let Some(local) = env::var_os("LOCALAPPDATA") {
            out.push(Path::new(&local).join("Programs").join("ZCode").join("resources/glm"));
        }
    } else {
        out.extend(["/opt/ZCode/resources/glm", "/usr/lib/zcode/resources/glm"].map(PathBuf::from));
    }
    out
}

fn packaged(engine: &Path) -> Option<ZcodeVersion> {
    let package = fs::read(engine.join("package.json")).ok()?;
    let package: Value = serde_json::from_slice(&package).ok()?;
    package["version"].as_str()?.parse().ok()
}

/// Asks `zcode --version`, and gives up on one that opens a window.
fn asked() -> Option<ZcodeVersion> {
    let mut child = Command::new("zcode")
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match child.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(20)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
    let out = child.wait_with_output().ok()?;
    String::from_utf8_lossy(&out.stdout).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_out_of_what_programs_print() {
        for (text, expected) in [
            ("3.14.3", Some((3, 14, 3))),
            ("v0.16.9\n", Some((0, 16, 9))),
            ("ZCode 3.5.3.3911", Some((3, 5, 3))),
            ("zcode/3.8.1", None),
            ("3.15.0-beta.1", Some((3, 15, 0))),
            ("3.15", Some((3, 15, 0))),
            ("three", None),
            ("", None),
            ("99999999999.1.1", None),
        ] {
            let read = text.parse::<ZcodeVersion>().ok();
            let read = read.map(|version| (version.major, version.minor, version.patch));
            assert_eq!(read, expected, "{text}");
        }
    }

    #[test]
    fn the_dialect_changes_at_exactly_one_version() {
        for (text, expected) in [
            ("3.3.6", Dialect::Structured),
            ("3.8.1", Dialect::Structured),
            ("3.14.2", Dialect::Structured),
            ("3.14.3", Dialect::Both),
            ("3.15.1", Dialect::Both),
            ("4.0.0", Dialect::Both),
            ("0.15.2", Dialect::Structured),
            ("0.16.8", Dialect::Structured),
            ("0.16.9", Dialect::Both),
            ("0.17.0", Dialect::Both),
        ] {
            assert_eq!(text.parse::<ZcodeVersion>().unwrap().dialect(), expected, "{text}");
        }
    }

    #[test]
    fn what_the_user_names_comes_before_what_is_found() {
        let version = "3.8.1".parse().ok();
        let choice = Choice::make(Some(Dialect::Flat), version);
        assert_eq!((choice.dialect, choice.named), (Dialect::Flat, true));
        let choice = Choice::make(None, version);
        assert_eq!((choice.dialect, choice.named), (Dialect::Structured, false));
        assert!(choice.to_string().contains("3.8.1"));
    }
}
