//! `zcode-mail plugin write`, judged by a loader that reads the directory as ZCode does.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use zcode_mail_tests::plugin_host::{Diagnostic, Plugin, Session, is_list, load, matches};
use zcode_mail_tests::programs::{PATIENCE, Running, run};

fn session(home: &Path, env: &[(&str, &str)]) -> Session {
    let project = home.join("project");
    fs::create_dir_all(&project).unwrap();
    let mut all: BTreeMap<String, String> =
        env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    all.insert("HOME".to_owned(), home.display().to_string());
    Session { project, data: home.join("plugin data"), id: "sess_1".to_owned(), env: all }
}

fn written(dir: &Path, dialect: &str) -> PathBuf {
    let out =
        run("zcode-mail", &["plugin", "write", dir.to_str().unwrap(), "--dialect", dialect], &[]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    PathBuf::from(String::from_utf8(out.stdout).unwrap().trim())
}

/// A directory with a manifest and a hook file of the given content.
fn handmade(manifest: &Value, hooks: &Value) -> TempDir {
    let dir = TempDir::new().unwrap();
    fs::create_dir_all(dir.path().join(".zcode-plugin")).unwrap();
    fs::create_dir_all(dir.path().join("hooks")).unwrap();
    fs::write(dir.path().join(".zcode-plugin/plugin.json"), manifest.to_string()).unwrap();
    fs::write(dir.path().join("hooks/hooks.json"), hooks.to_string()).unwrap();
    dir
}

fn loaded(manifest: &Value, hooks: &Value) -> Result<Plugin, Diagnostic> {
    let dir = handmade(manifest, hooks);
    load(dir.path(), &session(dir.path(), &[("ZCODE_X", "x"), ("PLAIN", "p")]))
}

#[test]
fn zcode_loads_the_written_directory_without_a_word() {
    let home = TempDir::new().unwrap();
    for dialect in ["both", "structured", "flat"] {
        let root = written(&home.path().join(dialect), dialect);
        let plugin = load(&root, &session(home.path(), &[])).unwrap();
        assert_eq!(plugin.diagnostics, []);
        assert_eq!(plugin.id, "agentmail@inline");
        assert_eq!(plugin.version, env!("CARGO_PKG_VERSION"));
        assert_eq!(plugin.skills, ["agentmail"]);
        assert_eq!(plugin.commands, ["mail-inbox", "mail-send", "mail-thread"]);
        for hook in &plugin.hooks {
            assert_eq!(hook.kind, "process");
            assert_eq!(hook.timeout_ms, 600_000);
            assert_eq!(hook.args, ["--dialect", dialect]);
            assert!(is_list(hook.matcher.as_deref().unwrap()), "{hook:?}");
            assert!(Path::new(&hook.command).is_file(), "{}", hook.command);
        }
        assert_eq!(plugin.servers.len(), 1);
        let server = &plugin.servers["plugin:agentmail:agentmail"];
        assert_eq!(server.timeout_ms, 120_000);
        assert!(server.env.is_empty() && server.args.is_empty());
        assert!(Path::new(&server.command).is_file(), "{}", server.command);
    }
}

#[test]
fn every_guarded_call_starts_the_hook_once_and_no_other_call_does() {
    let home = TempDir::new().unwrap();
    let root = written(&home.path().join("p"), "both");
    let plugin = load(&root, &session(home.path(), &[])).unwrap();
    let count = |event: &str, tool: &str| plugin.matching(event, tool).len();
    for tool in
        ["Bash", "Write", "Edit", "ApplyPatch", "MultiEdit", "NotebookEdit", "mcp__node_repl__js"]
    {
        assert_eq!(count("PermissionRequest", tool), 1, "{tool}");
        assert_eq!(count("PreToolUse", tool), 1, "{tool}");
    }
    for tool in ["read_inbox", "send_mail", "session_participants"] {
        for prefix in ["mcp__plugin_agentmail_agentmail__", "mcp__agentmail__"] {
            assert_eq!(count("PermissionRequest", &format!("{prefix}{tool}")), 1, "{prefix}{tool}");
        }
    }
    for tool in
        ["AskUserQuestion", "ExitPlanMode", "Read", "bash", "BashOutput", "mcp__github__push"]
    {
        assert_eq!(count("PermissionRequest", tool) + count("PreToolUse", tool), 0, "{tool}");
    }
    for event in ["SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop"] {
        assert_eq!(count(event, "Bash"), 0, "{event}");
    }
}

#[test]
fn a_path_with_spaces_quotes_and_chinese_characters_works_up_to_the_answer() {
    let home = TempDir::new().unwrap();
    let dir = home.path().join("it's a \"plugin\" 邮件 $HOME ${X}");
    let root = written(&dir, "structured");
    assert_eq!(root, fs::canonicalize(&dir).unwrap());
    let driven = [("AGENTMAIL_SESSION_ID", "ms_1"), ("AGENTMAIL_PERMISSION_MODE", "plan")];
    let session = session(home.path(), &driven);
    let plugin = load(&root, &session).unwrap();
    assert_eq!(plugin.diagnostics, []);
    let event = json!({
        "hook_event_name": "PermissionRequest", "session_id": "sess_1", "tool_name": "Bash",
        "tool_use_id": "c1", "tool_input": { "command": "rm -rf /" },
    });
    let hooks = plugin.matching("PermissionRequest", "Bash");
    let process = hooks[0].process(&root, &session);
    let out = Running::spawn(process, Some(event.to_string().as_bytes())).finish(PATIENCE);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let answer: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(answer["hookSpecificOutput"]["decision"]["behavior"], "deny");
    assert!(answer.get("decision").is_none(), "the dialect of hooks.json counts: {answer}");
}

#[test]
fn a_directory_with_something_else_is_left_alone_and_our_own_is_renewed() {
    let home = TempDir::new().unwrap();
    let dir = home.path().join("mine");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("precious.txt"), "mine").unwrap();
    let out = run("zcode-mail", &["plugin", "write", dir.to_str().unwrap()], &[]);
    assert_eq!(out.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&out.stderr).contains("not empty"), "{out:?}");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);

    let ours = written(&home.path().join("ours"), "both");
    fs::write(ours.join("bin/zcode-mail-hook"), "damaged").unwrap();
    written(&ours, "flat");
    let plugin = load(&ours, &session(home.path(), &[])).unwrap();
    assert_eq!(plugin.hooks[0].args, ["--dialect", "flat"]);
    assert!(fs::metadata(ours.join("bin/zcode-mail-hook")).unwrap().len() > 10_000);
}

#[test]
fn the_loader_takes_the_first_manifest_and_checks_its_name() {
    let name = |name: &str| loaded(&json!({ "name": name }), &json!({})).map(|plugin| plugin.id);
    assert_eq!(name(" a.b_c-1 ").unwrap(), "a.b_c-1@inline");
    assert_eq!(name(&"a".repeat(128)).unwrap().len(), 135);
    for bad in ["", "A", "-a", ".a", "a b", "é", &"a".repeat(129)] {
        assert_eq!(name(bad).unwrap_err().code, "plugin_manifest_invalid", "{bad}");
    }
    let dir = handmade(&json!({ "name": "first" }), &json!({}));
    fs::create_dir(dir.path().join(".claude-plugin")).unwrap();
    fs::write(dir.path().join(".claude-plugin/plugin.json"), r#"{"name":"second"}"#).unwrap();
    assert_eq!(load(dir.path(), &session(dir.path(), &[])).unwrap().id, "first@inline");
    fs::remove_dir_all(dir.path().join(".zcode-plugin")).unwrap();
    assert_eq!(load(dir.path(), &session(dir.path(), &[])).unwrap().id, "second@inline");
    fs::remove_dir_all(dir.path().join(".claude-plugin")).unwrap();
    let missing = load(dir.path(), &session(dir.path(), &[])).unwrap_err();
    assert_eq!(missing.code, "plugin_manifest_not_found");
}

#[test]
fn the_loader_finds_the_mistakes_that_others_made() {
    let hook = json!({ "type": "process", "command": "x" });
    let good = json!({ "hooks": { "Stop": [{ "hooks": [hook] }] } });
    let codes = |manifest: Value, hooks: &Value| {
        let plugin = loaded(&manifest, hooks).unwrap();
        let codes = plugin.diagnostics.iter().map(|d| (d.code, d.error)).collect::<Vec<_>>();
        (plugin.hooks.len(), codes)
    };
    assert_eq!(codes(json!({ "name": "p" }), &good), (1, vec![]));
    let named_twice = json!({ "name": "p", "hooks": "hooks/hooks.json" });
    assert_eq!(codes(named_twice, &good), (1, vec![("plugin_hook_invalid", false)]));
    let directory = json!({ "name": "p", "hooks": "hooks" });
    assert_eq!(codes(directory, &good), (1, vec![("plugin_hook_invalid", true)]));
    let events = json!({ "enabled": true, "events": { "Stop": [{ "hooks": [hook] }] } });
    assert_eq!(codes(json!({ "name": "p" }), &events), (0, vec![]));
    let unknown = json!({ "hooks": { "SessionEnd": [{ "hooks": [hook] }] } });
    let expected = (0, vec![("plugin_hook_unsupported_event", false)]);
    assert_eq!(codes(json!({ "name": "p" }), &unknown), expected);
    let placeholder = json!({ "name": "p", "mcpServers": { "s": { "command": "${PLAIN}" } } });
    assert_eq!(codes(placeholder, &good), (1, vec![("plugin_variable_missing", true)]));
}

#[test]
fn the_loader_reads_limits_in_their_own_units() {
    let limit = |hook: Value| {
        let file = json!({ "hooks": { "Stop": [{ "hooks": [hook] }] } });
        loaded(&json!({ "name": "p" }), &file).unwrap().hooks[0].timeout_ms
    };
    assert_eq!(limit(json!({ "type": "process", "command": "x" })), 60_000);
    assert_eq!(limit(json!({ "type": "process", "command": "x", "timeout": 5 })), 60_000);
    assert_eq!(limit(json!({ "type": "command", "command": "x", "timeout": 5 })), 5_000);
    let both = json!({ "type": "command", "command": "x", "timeout": 5, "timeoutMs": 7 });
    assert_eq!(limit(both), 7);
}

#[test]
fn the_loader_expands_known_names_and_keeps_the_others() {
    let args = |text: &str| {
        let hook = json!({ "type": "process", "command": "x", "args": [text] });
        let file = json!({ "hooks": { "Stop": [{ "hooks": [hook] }] } });
        let plugin = loaded(&json!({ "name": "p" }), &file).unwrap();
        plugin.hooks.first().map(|hook| hook.args[0].clone())
    };
    assert_eq!(args("${CLAUDE_SESSION_ID}-").unwrap(), "sess_1-");
    for kept in ["${PLAIN}", "${ZCODE_X}", "${user_config.k}", "${ZCODE_PLUGIN_ROOT:-/x}", "${open"]
    {
        assert_eq!(args(kept).unwrap(), kept);
    }
    assert_eq!(args("${ZCODE_SKILL_DIR}"), None);

    let server = |text: &str, place: &str| {
        let mut server = json!({ "command": "x" });
        server[place] = if place == "env" { json!({ "K": text }) } else { json!([text]) };
        let manifest = json!({
            "name": "p", "mcpServers": { "s": server },
            "userConfig": { "empty": { "default": "" }, "none": {} },
        });
        let plugin = loaded(&manifest, &json!({})).unwrap();
        let server = plugin.servers.get("plugin:p:s")?;
        Some(server.env.get("K").unwrap_or_else(|| &server.args[0]).clone())
    };
    assert_eq!(server("${ZCODE_X}", "args").unwrap(), "x");
    assert_eq!(server("${PLAIN}", "env").unwrap(), "p");
    assert_eq!(server("${PLAIN}", "args"), None);
    assert_eq!(server("${ZCODE_UNSET}", "env"), None);
    assert_eq!(server("${user_config.empty}", "env").unwrap(), "");
    assert_eq!(server("${user_config.none}", "env"), None);
}

#[test]
fn a_list_of_names_matches_whole_names_only() {
    for (matcher, subject, expected) in [
        (None, "Bash", true),
        (Some(""), "Bash", true),
        (Some("*"), "Bash", true),
        (Some("Edit|Write"), "Edit", true),
        (Some("Edit|Write"), "MultiEdit", false),
        (Some("Edit"), "edit", false),
    ] {
        assert_eq!(matches(matcher, subject), expected, "{matcher:?} {subject}");
    }
    assert!(!is_list("mcp__.*") && !is_list("a b") && is_list("mcp__a__b|C1"));
}
