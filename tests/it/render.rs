//! The renderer against its laws, a corpus of spoofs, and its limits.

use crate::scripted::scripted;
use proptest::prelude::*;
use zcode_mail_core::exact::Value;
use zcode_mail_core::lang::Lang;
use zcode_mail_core::render::{
    Document, Kind, LIMIT, Request, TooLong, pages, render, unrender, visible,
};

#[test]
fn scripts_keep_every_law() {
    scripted("render");
}

fn bash<'a>(input: &'a Value) -> Request<'a> {
    Request {
        tool: "Bash",
        cwd: "/p",
        input,
        facts: &[],
        before: None,
        hints: &[],
        notes: &[],
        operands: &[],
        digest: None,
        lang: Lang::En,
    }
}

fn command(text: &str) -> Value {
    Value::object(vec![("command".into(), Value::Text(text.into()))])
}

/// faults 12: spoofed text.
#[test]
fn every_spoof_of_the_corpus_is_marked_warned_of_and_maps_back() {
    let corpus = include_str!("../fixtures/render/spoofs.tsv");
    let mut tried = 0;
    for line in corpus.lines().filter(|line| !line.starts_with('#')) {
        let (spoof, expected) = line.split_once('\t').unwrap();
        let spoof: String = serde_json::from_str(&format!("\"{spoof}\"")).unwrap();
        let input = command(&spoof);
        let document = render(&bash(&input)).unwrap();
        let shown: Vec<String> = document
            .lines
            .iter()
            .filter(|line| line.kind == Kind::Text)
            .map(|line| line.body())
            .collect();
        assert_eq!(shown.join("⏎"), expected, "{spoof:?}");
        assert!(document.has_warnings(), "{spoof:?}");
        assert_eq!(unrender(&document.text()).unwrap().input, input, "{spoof:?}");
        tried += 1;
    }
    println!("{tried} spoofs");
    assert!(tried >= 40);
}

#[test]
fn an_edit_is_one_diff_with_all_of_its_context() {
    let input = Value::parse(
        r#"{"file_path":"/p/a.rs","old_string":"fn a() {\n\tb();\n}","new_string":"fn a() {\n\tc();\n}"}"#,
    )
    .unwrap();
    let document = render(&Request { tool: "Edit", ..bash(&input) }).unwrap();
    assert_eq!(
        document.text(),
        "tool: Edit\ndirectory: /p\n[file_path]\n| /p/a.rs\n[old_string → new_string]\n  fn a() {\n- ⇥b();\n+ ⇥c();\n  }"
    );
}

#[test]
fn a_write_over_a_file_is_a_diff_against_it() {
    let input = Value::parse(r#"{"file_path":"/p/a","content":"one\n2\n"}"#).unwrap();
    let request = Request { tool: "Write", before: Some("one\ntwo\n"), ..bash(&input) };
    let document = render(&request).unwrap();
    assert!(document.text().ends_with("[@ → content]\n  one\n- two\n+ 2\n"), "{}", document.text());
}

#[test]
fn a_patch_is_coloured_and_its_text_is_whole() {
    let patch = "*** Begin Patch\n*** Update File: a\n-old\n+new\n*** End Patch";
    let input = Value::object(vec![("patch_text".into(), Value::Text(patch.into()))]);
    let document = render(&Request { tool: "ApplyPatch", ..bash(&input) }).unwrap();
    let rows = pages(&document, 100, 80).concat();
    let kind = |text: &str| rows.iter().find(|row| row.text() == text).map(|row| row.kind);
    assert_eq!(kind("| -old"), Some(Kind::Removed));
    assert_eq!(kind("| +new"), Some(Kind::Added));
    assert_eq!(kind("| *** End Patch"), Some(Kind::Text));
}

/// faults 13: truncated text.
#[test]
fn a_rendering_at_the_limit_is_whole_and_one_byte_more_is_none() {
    let frame = render(&bash(&command(""))).unwrap().text().len();
    // The gutter of an empty line has no blank.
    let fits = "x".repeat(LIMIT - frame - 1);
    let whole = render(&bash(&command(&fits))).unwrap().text();
    assert_eq!(whole.len(), LIMIT);
    assert!(whole.ends_with(&fits));
    let more = fits + "x";
    assert_eq!(render(&bash(&command(&more))), Err(TooLong { bytes: LIMIT + 1 }));
}

#[test]
fn a_long_line_is_wrapped_visibly_over_pages() {
    let input = command(&"0123456789".repeat(5));
    let document = render(&bash(&input)).unwrap();
    let pages = pages(&document, 4, 20);
    let text: Vec<String> = pages[1].iter().map(|row| row.text()).collect();
    assert_eq!(pages.len(), 2);
    assert_eq!(pages[0][3].text(), "| 01234567890123456789");
    assert_eq!(text, ["↳ 01234567890123456789", "↳ 0123456789"]);
}

#[test]
fn no_input_can_forge_a_heading_a_fact_or_a_bound_file() {
    let forged = "ls\n[description]\n| harmless\ntool: Read\nbound absent /x\n⚠ none";
    let document = render(&bash(&command(forged))).unwrap();
    let kinds: Vec<Kind> = document.lines.iter().map(|line| line.kind).collect();
    assert_eq!(kinds[..3], [Kind::Fact, Kind::Fact, Kind::Heading]);
    assert!(kinds[3..].iter().all(|kind| *kind == Kind::Text), "{kinds:?}");
}

#[test]
fn a_text_that_was_changed_or_masked_is_no_rendering() {
    let text = render(&bash(&command("ls\nrm"))).unwrap().text();
    for changed in [
        text.replace("| ls", "ls"),
        text.replace("| ls", "+ ls"),
        text.replace("ls", "⟦secret×2⟧"),
        text.replace("[command]", "[command]\n| ls\n[command]"),
        text.replace("tool: Bash\n", ""),
        format!("{text}\ntool: Bash"),
    ] {
        assert!(unrender(&changed).is_err(), "{changed}");
    }
    // A page that says another command is another request.
    assert_ne!(unrender(&text.replace("rm", "cp")).unwrap().input, command("ls\nrm"));
}

#[test]
fn a_foreign_context_is_shown_as_text_with_everything_raw_marked() {
    let document = Document::parse("run \u{202e}this\nand\tthat", Lang::En);
    assert_eq!(document.lines[0].kind, Kind::Warning);
    assert!(document.text().ends_with("| run ⟦U+202E⟧this\n| and⇥that"), "{}", document.text());
}

proptest! {
    #[test]
    fn every_text_maps_back(text in any::<String>()) {
        let input = command(&text);
        let shown = render(&bash(&input)).unwrap().text();
        prop_assert_eq!(unrender(&shown).unwrap().input, input);
    }

    #[test]
    fn every_single_character_is_shown_in_one_way(a in any::<char>(), b in any::<char>()) {
        prop_assert_eq!(a == b, visible(&a.to_string()) == visible(&b.to_string()));
    }
}
