use super::*;

const DIR: &str = "/opt/x/current";

fn added(text: &str) -> String {
    let edit = add(text.as_bytes(), DIR, false).unwrap_or_else(|e| panic!("{text:?}: {e}"));
    String::from_utf8(edit.bytes).unwrap()
}

fn refusal(text: &str) -> (usize, usize) {
    let refusal = add(text.as_bytes(), DIR, false).unwrap_err();
    (refusal.line, refusal.column)
}

/// `after` is `before` with text put in between: every old byte is there, in order.
fn only_inserted(before: &str, after: &str) -> bool {
    let mut rest = after.chars();
    before.chars().all(|c| rest.any(|d| d == c))
}

#[test]
fn the_entry_follows_the_layout_around_it() {
    for (before, after) in [
        (
            "",
            "{\n  \"plugins\": {\n    \"dirs\": [\"/opt/x/current\"],\n    \"enabled\": true\n  }\n}\n",
        ),
        (
            "{}",
            "{\n  \"plugins\": {\n    \"dirs\": [\"/opt/x/current\"],\n    \"enabled\": true\n  }\n}",
        ),
        (
            "// mine\n",
            "// mine\n{\n  \"plugins\": {\n    \"dirs\": [\"/opt/x/current\"],\n    \"enabled\": true\n  }\n}\n",
        ),
        (r#"{"a":1}"#, r#"{"a":1,"plugins":{"dirs":["/opt/x/current"],"enabled":true}}"#),
        (
            r#"{ "a": 1 }"#,
            r#"{ "a": 1, "plugins": {"dirs": ["/opt/x/current"], "enabled": true} }"#,
        ),
        (
            "{\n\t\"a\": 1\n}\n",
            "{\n\t\"a\": 1,\n\t\"plugins\": {\n\t\t\"dirs\": [\"/opt/x/current\"],\n\t\t\"enabled\": true\n\t}\n}\n",
        ),
        (
            "{\r\n    \"a\": 1\r\n}\r\n",
            "{\r\n    \"a\": 1,\r\n    \"plugins\": {\r\n        \"dirs\": [\"/opt/x/current\"],\r\n        \"enabled\": true\r\n    }\r\n}\r\n",
        ),
        (
            "{\n  \"plugins\": {\n    \"enabled\": true, // yes\n    \"dirs\": [\n      \"/a\", // first\n      \"/b\" /* second */ // end\n      // more\n    ]\n  }\n}\n",
            "{\n  \"plugins\": {\n    \"enabled\": true, // yes\n    \"dirs\": [\n      \"/a\", // first\n      \"/b\", /* second */ // end\n      \"/opt/x/current\"\n      // more\n    ]\n  }\n}\n",
        ),
        (
            "{\n  \"plugins\": {\n    \"enabled\": true,\n    \"dirs\": [\n      \"/a\",\n    ],\n  },\n}\n",
            "{\n  \"plugins\": {\n    \"enabled\": true,\n    \"dirs\": [\n      \"/a\",\n      \"/opt/x/current\",\n    ],\n  },\n}\n",
        ),
        (
            r#"{"plugins":{"enabled":true,"dirs":["/a",]}}"#,
            r#"{"plugins":{"enabled":true,"dirs":["/a","/opt/x/current",]}}"#,
        ),
        (
            r#"{"plugins":{"enabled":true,"dirs":[ ]}}"#,
            r#"{"plugins":{"enabled":true,"dirs":["/opt/x/current" ]}}"#,
        ),
        (
            "{ // why\n}\n",
            "{ // why\n  \"plugins\": {\n    \"dirs\": [\"/opt/x/current\"],\n    \"enabled\": true\n  }\n}\n",
        ),
        (
            "{\n  \"plugins\": {}\n}",
            "{\n  \"plugins\": {\n    \"dirs\": [\"/opt/x/current\"],\n    \"enabled\": true\n  }\n}",
        ),
    ] {
        assert_eq!(added(before), after, "{before:?}");
        assert!(only_inserted(before, after), "{before:?}");
    }
}

#[test]
fn an_entry_that_is_there_changes_nothing() {
    let text = "{\"plugins\": {\"dirs\": [\"/opt\\/x/current\"], \"enabled\": true}}";
    let edit = add(text.as_bytes(), DIR, false).unwrap();
    assert_eq!(edit.bytes, text.as_bytes());
    assert_eq!(edit.created, Created::default());
}

#[test]
fn a_mark_of_byte_order_stays_first() {
    let text = added("\u{feff}{}");
    assert!(text.starts_with("\u{feff}{\n"));
    assert_eq!(text.matches('\u{feff}').count(), 1);
}

#[test]
fn what_can_be_read_in_two_ways_is_refused_where_it_stands() {
    for (text, line, column) in [
        ("[1]", 1, 1),
        ("// c\n  \"text\"", 2, 3),
        ("{\"a\":1,,}", 1, 8),
        ("{\n  \"a\": tru\n}", 2, 8),
        ("{\n  \"a\": 1\n", 1, 1),
        ("{\"a\":1}\n{\"b\":2}", 2, 1),
        ("{\"a\":1 \"b\":2}", 1, 7),
        ("{'a':1}", 1, 2),
        ("{\"plugins\": null}", 1, 13),
        ("{\"plugins\": {\"dirs\": \"/a\"}}", 1, 22),
        ("{\"plugins\": {\"dirs\": [], \"enabled\": 1}}", 1, 37),
        ("{\"plugins\": {\"dirs\": [], \"enabled\": false}}", 1, 37),
        ("{\r\n\"plugins\": {},\r\n\"plugins\": {}}", 3, 1),
        ("{\"plugins\": {\"dirs\": [],\n\"dirs\": []}}", 2, 1),
        ("{\n  \"名\": 1 2}", 2, 9),
    ] {
        assert_eq!(refusal(text), (line, column), "{text}: {:?}", add(text.as_bytes(), DIR, false));
    }
    let refused = add(b"{\n \"a\": \"\xff\"}", DIR, false).unwrap_err();
    assert_eq!((refused.line, refused.column), (2, 8));
    let refused = add(b"\xff\xfe{\0}\0", DIR, false).unwrap_err();
    assert_eq!((refused.line, refused.column), (1, 1));
}

#[test]
fn plugins_that_somebody_turned_off_are_turned_on_only_when_asked() {
    let text = "{\"plugins\": {\"dirs\": [], \"enabled\": /* no */ false}}";
    assert!(add(text.as_bytes(), DIR, false).is_err());
    let edit = add(text.as_bytes(), DIR, true).unwrap();
    assert!(edit.created.switched_on);
    assert_eq!(read(&edit.bytes).unwrap()["plugins"]["enabled"], true);
    assert!(String::from_utf8(edit.bytes).unwrap().contains("/* no */ true"));
}

#[test]
fn only_our_entry_comes_out_of_a_file_that_changed_meanwhile() {
    for (text, created, expected) in [
        (
            "{\n  // mine\n  \"plugins\": {\n    \"dirs\": [\n      \"/a\", // a\n      \"/opt/x/current\",\n      \"/b\"\n    ],\n    \"enabled\": true\n  }\n}\n",
            Created { plugins: true, dirs: true, enabled: true, switched_on: false },
            "{\n  // mine\n  \"plugins\": {\n    \"dirs\": [\n      \"/a\", // a\n      \"/b\"\n    ],\n    \"enabled\": true\n  }\n}\n",
        ),
        (
            r#"{"a":1,"plugins":{"dirs":["/opt/x/current"],"enabled":true},"b":2}"#,
            Created { plugins: true, dirs: true, enabled: true, switched_on: false },
            r#"{"a":1,"b":2}"#,
        ),
        (
            r#"{"plugins":{"dirs":["/opt/x/current"],"options":{},"enabled":true}}"#,
            Created { plugins: true, dirs: true, enabled: true, switched_on: false },
            r#"{"plugins":{"options":{}}}"#,
        ),
        (
            r#"{"plugins":{"dirs":["/opt/x/current"],"enabled":true}}"#,
            Created { dirs: true, ..Created::default() },
            r#"{"plugins":{"enabled":true}}"#,
        ),
        (
            r#"{"plugins":{"dirs":["/a","/opt/x/current"],"enabled":true}}"#,
            Created::default(),
            r#"{"plugins":{"dirs":["/a"],"enabled":true}}"#,
        ),
        ("{\"plugins\": 3}", Created::default(), ""),
    ] {
        let result = remove(text.as_bytes(), DIR, created);
        if expected.is_empty() {
            assert!(result.is_err(), "{text}");
            continue;
        }
        assert_eq!(String::from_utf8(result.unwrap()).unwrap(), expected, "{text}");
    }
}

#[test]
fn what_is_added_can_be_removed_by_its_meaning_alone() {
    for text in [
        "{\"a\":1}",
        "{\n  \"a\": 1\n}\n",
        "{\n  \"a\": 1, // one\n}\n",
        "{\r\n\t\"plugins\": {\r\n\t\t\"enabled\": true\r\n\t}\r\n}\r\n",
        "{\"plugins\":{\"enabled\":true,\"dirs\":[\"/a\"]}}",
        "{\n  \"plugins\": {\n    \"dirs\": [\n      \"/a\" // first\n    ],\n    \"enabled\": true\n  }\n}\n",
    ] {
        let edit = add(text.as_bytes(), DIR, false).unwrap();
        let back = remove(&edit.bytes, DIR, edit.created).unwrap();
        assert_eq!(String::from_utf8(back).unwrap(), text);
    }
}

#[test]
fn a_path_with_quotes_and_chinese_characters_is_one_entry() {
    let dir = "/srv/it's \"mine\" 邮件\\桥/current";
    let edit = add(b"{}", dir, false).unwrap();
    assert_eq!(read(&edit.bytes).unwrap()["plugins"]["dirs"], json!([dir]));
    assert_eq!(read(&remove(&edit.bytes, dir, edit.created).unwrap()).unwrap(), json!({}));
}

#[test]
fn a_large_file_is_edited_in_one_pass() {
    let filler: Vec<String> = (0..60_000).map(|n| format!("  \"key{n}\": [{n}, \"值\"]")).collect();
    let text = format!("{{\n{}\n}}\n", filler.join(",\n"));
    let after = added(&text);
    assert!(text.len() > 1_500_000 && only_inserted(&text, &after));
}
