//! The table of shapes: install, load, uninstall, and every byte is as it was.

use super::*;

/// A name and the bytes of a configuration that installs.
fn shapes() -> Vec<(&'static str, Vec<u8>)> {
    let huge = {
        let lines: Vec<String> = (0..30_000)
            .map(|n| format!("    \"server{n}\": {{ \"command\": \"程序{n}\" }}"))
            .collect();
        format!("{{\n  \"mcp\": {{\n{}\n  }}\n}}\n", lines.join(",\n"))
    };
    let deep = format!("{{\"deep\":{}1{}}}", "[".repeat(60), "]".repeat(60));
    let texts: Vec<(&str, &str)> = vec![
        ("empty file", ""),
        ("only white space", " \n\t\n"),
        ("only comments", "// nothing yet\n/* really */"),
        ("empty object", "{}"),
        ("empty object with a line end", "{}\n"),
        ("empty object over lines", "{\n}\n"),
        ("empty object with a comment", "{ /* later */ }\n"),
        ("empty object with a line comment", "{ // later\n}\n"),
        ("one line", r#"{"theme":"dark","model":{"main":"glm"}}"#),
        ("one line with spaces", r#"{ "theme": "dark", "model": { "main": "glm" } }"#),
        ("two spaces", "{\n  \"theme\": \"dark\"\n}\n"),
        ("four spaces", "{\n    \"theme\": \"dark\",\n    \"a\": {\n        \"b\": 1\n    }\n}\n"),
        ("tabs", "{\n\t\"theme\": \"dark\",\n\t\"a\": [\n\t\t1\n\t]\n}\n"),
        ("mixed indentation", "{\n  \"a\": 1,\n\t\"b\": 2,\n      \"c\": 3\n}\n"),
        ("no indentation", "{\n\"a\": 1,\n\"b\": 2\n}\n"),
        ("CRLF", "{\r\n  \"theme\": \"dark\"\r\n}\r\n"),
        ("CRLF and LF", "{\r\n  \"a\": 1,\n  \"b\": 2\r\n}\n"),
        ("lone CR", "{\r  \"a\": 1\r}\r"),
        ("byte-order mark", "\u{feff}{\n  \"a\": 1\n}\n"),
        ("byte-order mark alone", "\u{feff}"),
        ("byte-order mark and CRLF", "\u{feff}{\r\n\t\"a\": 1\r\n}"),
        ("no line end at the end", "{\n  \"a\": 1\n}"),
        ("many line ends at the end", "{\n  \"a\": 1\n}\n\n\n"),
        ("line comments", "// top\n{\n  // in\n  \"a\": 1 // behind\n  // last\n}\n// end\n"),
        ("block comments", "/* top */{/* in */\"a\"/* x */:/* y */1/* z */}/* end */"),
        (
            "trailing commas",
            "{\n  \"a\": [\n    1,\n  ],\n  \"plugins\": {\n    \"dirs\": [\n      \"/x\",\n    ],\n  },\n}\n",
        ),
        ("trailing comma on one line", "{\"a\":1,}"),
        ("plugins without dirs", "{\"plugins\":{\"enabled\":true}}"),
        ("plugins empty", "{\n  \"plugins\": {}\n}\n"),
        ("dirs empty", "{\"plugins\":{\"dirs\":[],\"enabled\":true}}"),
        ("dirs empty with space", "{\"plugins\":{\"dirs\":[ ],\"enabled\":true}}"),
        ("dirs empty over lines", "{\n  \"plugins\": {\n    \"dirs\": [\n    ]\n  }\n}\n"),
        (
            "other plugins",
            "{\n  \"plugins\": {\n    \"enabled\": true,\n    \"dirs\": [\"/a\", \"/b b/插件\"]\n  }\n}\n",
        ),
        (
            "other plugins over lines",
            "{\n  \"plugins\": {\n    \"dirs\": [\n      \"/a\", // A\n      \"/b\" // B\n      // C\n    ],\n    \"enabled\": true\n  }\n}\n",
        ),
        ("nested dirs elsewhere", "{\"x\":{\"plugins\":{\"dirs\":[\"/no\"]}},\"dirs\":[]}"),
        ("dirs that are no texts", "{\"plugins\":{\"dirs\":[1,null,{\"a\":[]},[\"/x\"]]}}"),
        (
            "other hooks",
            "{\"hooks\":{\"enabled\":true,\"events\":{\"PermissionRequest\":[{\"matcher\":\"*\",\"hooks\":[{\"type\":\"process\",\"command\":\"x\"}]}]}}}",
        ),
        (
            "marketplace and options",
            "{\"plugins\":{\"enabledPlugins\":{\"a@b\":true},\"options\":{\"a@b\":{\"k\":\"v\"}},\"suppressedBuiltins\":[\"x\"]}}",
        ),
        (
            "unicode",
            "{\n  \"主题\": \"深色\",\n  \"emoji\": \"🦀\",\n  \"nul\": \"\\u0000\",\n  \"pair\": \"\\ud83e\\udd80\"\n}\n",
        ),
        ("escaped key", "{\"\\u0070lugins\":{\"dirs\":[]}}"),
        ("slashes escaped", "{\"plugins\":{\"dirs\":[\"\\/a\\/b\"]}}"),
        ("numbers", "{\"a\":-0.0,\"b\":1e400,\"c\":12345678901234567890123,\"d\":0.1}"),
        (
            "spaces before the colon",
            "{\n  \"a\" : 1,\n  \"plugins\" : {\n    \"dirs\" : [ \"/a\" ]\n  }\n}\n",
        ),
        ("commas first", "{ \"a\": 1\n, \"b\": 2\n}\n"),
        ("braces in texts", "{\"a\":\"}{][,//\",\"b\":\"\\\"plugins\\\": {}\"}"),
        ("deep", &deep),
        ("huge", &huge),
    ];
    texts.into_iter().map(|(name, text)| (name, text.as_bytes().to_vec())).collect()
}

/// Every character of `before` is in `after`, in order: an insertion and nothing else.
fn only_inserted(before: &[u8], after: &[u8]) -> bool {
    let mut rest = after.iter();
    before.iter().all(|byte| rest.any(|other| other == byte))
}

#[test]
fn every_shape_comes_back_byte_for_byte() {
    let shapes = shapes();
    assert!(shapes.len() >= 30);
    for (name, before) in shapes {
        let place = Place::with(&before);
        let tree = place.tree();
        place.ok(&["install"]);
        let installed = place.bytes().unwrap();
        assert!(place.named(), "{name}");
        assert!(only_inserted(&before, &installed), "{name}: {installed:?}");
        place.dialect();
        place.ok(&["uninstall"]);
        assert_eq!(place.bytes().unwrap(), before, "{name}");
        assert!(place.tree() == tree, "{name}: something else is left");
    }
}

#[test]
fn a_missing_file_is_missing_again_with_all_directories_above_it() {
    let place = Place::empty();
    let tree = place.tree();
    place.ok(&["install"]);
    assert!(place.named());
    assert_eq!(fs::metadata(&place.config).unwrap().permissions().mode() & 0o777, 0o600);
    place.ok(&["uninstall"]);
    assert!(place.tree() == tree);
}

#[test]
fn the_mode_of_the_file_stays() {
    for mode in [0o600, 0o640, 0o644, 0o666] {
        let place = Place::with(b"{}");
        fs::set_permissions(&place.config, fs::Permissions::from_mode(mode)).unwrap();
        let tree = place.tree();
        place.ok(&["install"]);
        let now = fs::metadata(&place.config).unwrap().permissions().mode();
        assert_eq!(now & 0o777, mode);
        place.ok(&["uninstall"]);
        assert!(place.tree() == tree);
    }
}

#[test]
fn behind_a_link_the_file_changes_and_the_link_stays() {
    for chain in [1, 2] {
        let place = Place::empty();
        fs::create_dir_all(place.config.parent().unwrap()).unwrap();
        let dotfiles = place.dir.path().join("dot files");
        fs::create_dir(&dotfiles).unwrap();
        let real = dotfiles.join("zcode.json");
        fs::write(&real, "{\n\t\"a\": 1\n}\n").unwrap();
        if chain == 2 {
            link(&real, &dotfiles.join("second"));
            link(&dotfiles.join("second"), &place.config);
        } else {
            link(&real, &place.config);
        }
        let tree = place.tree();
        place.ok(&["install"]);
        assert!(place.named() && place.config.is_symlink());
        assert!(!real.is_symlink() && dotfiles.read_dir().unwrap().count() == chain);
        place.ok(&["uninstall"]);
        assert!(place.tree() == tree);
    }
}

#[test]
fn what_cannot_be_edited_safely_is_refused_with_line_and_column_and_stays() {
    for (name, text, needle) in [
        ("cut off", "{\n  \"a\": 1,\n", "line 1, column 1"),
        ("two values", "{}\n{}", "line 2, column 1"),
        ("no object", "[]", "line 1, column 1"),
        ("missing comma", "{\n  \"a\": 1\n  \"b\": 2\n}", "line 2, column 9"),
        ("single quotes", "{'a': 1}", "line 1, column 2"),
        ("plugins is a list", "{\"plugins\": []}", "line 1, column 13"),
        ("dirs is a text", "{\"plugins\":\n{\"dirs\": \"/a\"}}", "line 2, column 10"),
        ("plugins twice", "{\"plugins\": {},\n \"plugins\": {}}", "line 2, column 2"),
        ("plugins off", "{\"plugins\": {\"enabled\": false}}", "--enable-plugins"),
        ("conflict marks", "{\n<<<<<<< ours\n}\n", "line 2, column 1"),
    ] {
        let place = Place::with(text.as_bytes());
        let tree = place.tree();
        let refused = place.refused(&["install"]);
        assert!(refused.contains(needle), "{name}: {refused}");
        assert!(refused.contains("config.json"), "{name}: {refused}");
        assert!(place.tree() == tree, "{name}");
    }
    let place = Place::with(b"{\"a\": \"\xff\"}");
    assert!(place.refused(&["install"]).contains("line 1, column 8"));
    let place =
        Place::with("{}".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>().as_slice());
    assert!(place.refused(&["install"]).contains("line 1"));
}

#[test]
fn a_file_that_is_read_only_foreign_or_shared_is_refused_and_stays() {
    let place = Place::with(b"{}");
    fs::set_permissions(&place.config, fs::Permissions::from_mode(0o444)).unwrap();
    let tree = place.tree();
    assert!(place.refused(&["install"]).contains("read-only"));
    assert!(place.tree() == tree);

    let place = Place::with(b"{}");
    fs::hard_link(&place.config, place.dir.path().join("other name")).unwrap();
    assert!(place.refused(&["install"]).contains("several names"));

    let place = Place::empty();
    fs::create_dir_all(&place.config).unwrap();
    assert!(place.refused(&["install"]).contains("is not a file"));

    let place = Place::empty();
    fs::create_dir_all(place.config.parent().unwrap()).unwrap();
    link(Path::new("/nonexistent/config.json"), &place.config);
    assert!(place.refused(&["install"]).contains("leads nowhere"));

    let place = Place::with(&vec![b' '; 16 * 1024 * 1024 + 1]);
    assert!(place.refused(&["install"]).contains("no configuration"));
    let place = Place::with(&vec![b' '; 16 * 1024 * 1024]);
    place.ok(&["install"]);

    // Only root can give a file away.
    if rustix::process::geteuid().is_root() {
        let place = Place::with(b"{}");
        std::os::unix::fs::chown(&place.config, Some(65_534), None).unwrap();
        let tree = place.tree();
        let refused = place.refused(&["install"]);
        assert!(refused.contains("another user (number 65534)"), "{refused}");
        assert!(place.tree() == tree);
    }
}

#[test]
fn plugins_that_are_off_go_on_when_asked_and_off_again_afterwards() {
    let text = b"{\"plugins\": {\"enabled\": false}}";
    let place = Place::with(text);
    place.ok(&["install", "--enable-plugins"]);
    assert!(String::from_utf8(place.bytes().unwrap()).unwrap().contains("\"enabled\": true"));
    place.ok(&["uninstall"]);
    assert_eq!(place.bytes().unwrap(), text);
}
