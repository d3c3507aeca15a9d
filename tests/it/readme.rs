//! The two READMEs say the same, and what they say exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use zcode_mail_tests::programs::run;

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)).unwrap()
}

/// What stands between back quotes on one line, outside of code blocks.
fn code(text: &str) -> BTreeSet<&str> {
    let plain: Vec<&str> = text.split("```").step_by(2).collect();
    plain
        .iter()
        .flat_map(|part| part.lines())
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .collect()
}

fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.starts_with("http") && !target.starts_with("README")).collect()
}

#[test]
fn both_languages_name_the_same_commands_variables_and_files() {
    let (en, zh) = (read("README.md"), read("README.zh-CN.md"));
    assert_eq!(code(&en), code(&zh));
    assert_eq!(links(&en), links(&zh));
    let headings = |text: &str| text.lines().filter(|line| line.starts_with('#')).count();
    assert_eq!(headings(&en), headings(&zh));
    let rows = |text: &str| text.lines().filter(|line| line.starts_with('|')).count();
    assert_eq!(rows(&en), rows(&zh));
}

#[test]
fn every_linked_page_and_every_named_command_exists() {
    let en = read("README.md");
    for target in links(&en) {
        assert!(!read(target).is_empty(), "{target}");
    }
    let commands: BTreeSet<&str> = en
        .lines()
        .filter_map(|line| line.trim_start_matches("sudo ").strip_prefix("zcode-mail "))
        .filter_map(|rest| rest.split_whitespace().next())
        .collect();
    assert!(commands.len() >= 5, "{commands:?}");
    for command in commands {
        let out = run("zcode-mail", &[command, "--help"], &[]);
        assert!(out.status.success(), "zcode-mail {command}");
    }
}
