//! Every package that ends up in our programs has a licence from a short list.

use std::process::Command;

use serde_json::Value;
use spdx::{Expression, LicenseReq, ParseMode};

/// Licences that ask for nothing but a notice.
const ALLOWED: [&str; 12] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "NCSA",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

fn allowed(requirement: &LicenseReq) -> bool {
    ALLOWED.contains(&requirement.license.to_string().as_str())
}

#[test]
fn every_dependency_has_an_allowed_licence() {
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let metadata: Value = serde_json::from_slice(&out.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let refused: Vec<String> = packages
        .iter()
        .filter(|package| {
            let text = package["license"].as_str().unwrap_or_default();
            let expression = Expression::parse_mode(text, ParseMode::LAX);
            !expression.is_ok_and(|expression| expression.evaluate(allowed))
        })
        .map(|package| {
            format!("{} {}: {}", package["name"], package["version"], package["license"])
        })
        .collect();
    assert!(packages.len() > 20, "the list of packages looks incomplete");
    assert!(refused.is_empty(), "not on the list of licences:\n{}", refused.join("\n"));
}

#[test]
fn the_list_is_read_as_an_expression() {
    let holds = |text: &str| Expression::parse(text).unwrap().evaluate(allowed);
    assert!(holds("MIT OR GPL-3.0-only"));
    assert!(!holds("MIT AND GPL-3.0-only"));
    assert!(!holds("GPL-3.0-only"));
}
