use super::*;

/// A matcher of only these characters is a list of exact names for ZCode.
fn exact(matcher: &str) -> bool {
    matcher.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'|')
}

#[test]
fn the_manifest_leaves_hooks_to_their_own_file() {
    let manifest = manifest();
    assert_eq!(manifest["name"], NAME);
    assert!(manifest.get("hooks").is_none());
    assert!(!manifest.to_string().replace("${ZCODE_PLUGIN_ROOT}", "").contains("${"));
}

#[test]
fn hooks_are_exact_processes_with_a_limit_in_milliseconds() {
    for dialect in [Dialect::Both, Dialect::Structured, Dialect::Flat] {
        let file = hooks(dialect);
        assert!(file.get("events").is_none());
        let events = file["hooks"].as_object().unwrap();
        assert_eq!(events.keys().collect::<Vec<_>>(), ["PermissionRequest", "PreToolUse"]);
        for group in events.values().flat_map(|groups| groups.as_array().unwrap()) {
            let matcher = group["matcher"].as_str().unwrap();
            assert!(exact(matcher) && matcher != "*" && !matcher.is_empty(), "{matcher}");
            assert!(!matcher.contains("AskUserQuestion") && !matcher.contains("ExitPlanMode"));
            for hook in group["hooks"].as_array().unwrap() {
                assert_eq!(hook["type"], "process");
                assert_eq!(hook["timeoutMs"], 600_000);
                assert!(hook.get("timeout").is_none());
                assert_eq!(hook["args"], json!(["--dialect", dialect.as_str()]));
                let command = hook["command"].as_str().unwrap();
                assert!(command.starts_with("${ZCODE_PLUGIN_ROOT}/bin/zcode-mail-hook"));
            }
        }
    }
}

#[test]
fn every_guarded_tool_is_matched_by_both_events() {
    let file = hooks(Dialect::Both);
    for event in ["PermissionRequest", "PreToolUse"] {
        let names = file["hooks"][event][0]["matcher"].as_str().unwrap().to_owned();
        for tool in GUARDED {
            assert!(names.split('|').any(|name| name == tool), "{event} {tool}");
        }
    }
}

#[test]
fn the_digest_depends_on_every_byte_and_place() {
    let item = |place: &str, text: &str| Item {
        place: place.to_owned(),
        content: Content::Text(text.to_owned()),
    };
    let of = |items: &[Item]| digest(items).unwrap();
    let one = of(&[item("a", "1"), item("b", "2")]);
    assert_eq!(one, of(&[item("a", "1"), item("b", "2")]));
    assert_ne!(one, of(&[item("a", "1"), item("b", "3")]));
    assert_ne!(one, of(&[item("a", "1"), item("c", "2")]));
    assert_ne!(one, of(&[item("a", "1")]));
}

#[test]
fn a_directory_with_something_else_is_not_ours() {
    let dir = env::temp_dir().join(format!("zcode-mail-plugin-test-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    assert!(vacant_or_ours(&dir).unwrap());
    fs::write(dir.join("precious.txt"), "mine").unwrap();
    assert!(!vacant_or_ours(&dir).unwrap());
    fs::create_dir(dir.join(".zcode-plugin")).unwrap();
    fs::write(dir.join(".zcode-plugin/plugin.json"), r#"{"name":"other"}"#).unwrap();
    assert!(!vacant_or_ours(&dir).unwrap());
    fs::remove_dir_all(&dir).unwrap();
}
