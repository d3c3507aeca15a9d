//! Which commit a program is built from. Without git, or outside a repository, it says nothing; the
//! network is never asked.

use std::path::Path;
use std::process::Command;

fn git(args: &[&str]) -> Option<String> {
    let out = Command::new("git").args(args).output().ok().filter(|out| out.status.success())?;
    let text = String::from_utf8(out.stdout).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

fn main() {
    println!("cargo::rerun-if-env-changed=ZCODE_MAIL_COMMIT");
    let given = std::env::var("ZCODE_MAIL_COMMIT").ok().filter(|text| !text.is_empty());
    // A build for tests would be made anew after every commit for one line nobody reads.
    let release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = given.or_else(|| release.then(head).flatten());
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let long = commit.as_ref().map_or(version.clone(), |commit| format!("{version} ({commit})"));
    let commit = commit.unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=ZCODE_MAIL_COMMIT={commit}");
    println!("cargo::rustc-env=ZCODE_MAIL_VERSION={long}");
}

/// The commit that is checked out.
fn head() -> Option<String> {
    // A commit moves the branch that HEAD names, or HEAD itself; both are in its log.
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", name]);
        if let Some(path) = path.filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}
