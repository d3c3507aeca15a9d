//! The committed corpora and regressions through their oracles, without a fuzzer.

use std::collections::BTreeSet;
use std::{fs, panic};
use zcode_mail_tests::{corpus, oracle};

#[test]
fn every_committed_input_keeps_every_law() {
    for target in oracle::TARGETS {
        let inputs = corpus::inputs(target.name)
            .unwrap_or_else(|error| panic!("{}: {error}; run tests/fuzz --keep", target.name));
        for (name, input) in inputs {
            if panic::catch_unwind(|| (target.check)(&input)).is_err() {
                panic!("{} breaks a law on {name}", target.name);
            }
        }
    }
}

#[test]
fn packs_are_in_their_one_form() {
    for target in oracle::TARGETS {
        let text = fs::read_to_string(corpus::pack_path(target.name)).unwrap();
        assert!(corpus::pack(corpus::unpack(&text).unwrap()) == text, "{}", target.name);
    }
}

#[test]
fn targets_packs_and_regressions_belong_together() {
    let names: BTreeSet<String> =
        oracle::TARGETS.iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(names.len(), oracle::TARGETS.len(), "a name stands twice in oracle::TARGETS");
    let stems = |folder: &str| -> BTreeSet<String> {
        // git keeps no empty folder: one that is missing holds nothing.
        let Ok(entries) = fs::read_dir(corpus::root().join(folder)) else {
            return BTreeSet::new();
        };
        entries
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(stems("targets"), names, "fuzz/targets and oracle::TARGETS differ");
    assert_eq!(stems("corpus"), names, "fuzz/corpus and oracle::TARGETS differ");
    assert!(stems("regressions").is_subset(&names), "a regression that nobody replays");
    let manifest = fs::read_to_string(corpus::root().join("Cargo.toml")).unwrap();
    for name in &names {
        let entry = format!("[[bin]]\nname = \"{name}\"\npath = \"targets/{name}.rs\"\n");
        assert!(manifest.contains(&entry), "fuzz/Cargo.toml has no bin for {name}");
    }
}
