//! The real hook inside ZCode of every age, loaded from a plugin directory.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use serde_json::{Value, json};
use tempfile::TempDir;
use zcode_mail_tests::fakes::gateway::{Endpoint, Gateway};
use zcode_mail_tests::fakes::host::{Dialog, Engine, Fate, Host, Mode, Ran, matches};
use zcode_mail_tests::programs::run;

/// A plugin directory, a gateway, and the environment that joins them.
struct World {
    gateway: Arc<Gateway>,
    dir: TempDir,
}

impl World {
    fn new() -> Self {
        Self { gateway: Arc::new(Gateway::start()), dir: tempfile::tempdir().unwrap() }
    }

    fn plugin(&self, dialect: &str) -> PathBuf {
        let dir = self.dir.path().join(format!("plugin-{dialect}"));
        let shown = dir.display().to_string();
        let written = run("zcode-mail", &["plugin", "write", &shown, "--dialect", dialect], &[]);
        assert!(written.status.success(), "{written:?}");
        dir
    }

    fn host(&self, engine: Engine, dialog: Dialog) -> Host {
        let home = self.dir.path().display().to_string();
        Host::new(engine, dialog, self.dir.path())
            .env("HOME", &home)
            .env("AGENTMAIL_GATEWAY_URL", &self.gateway.url)
            .env("AGENTMAIL_AGENT_KEY", "am_test")
            .env("AGENTMAIL_PERMISSION_WAIT_MS", "60000")
    }

    fn driven(&self, engine: Engine, dialog: Dialog) -> Host {
        self.host(engine, dialog).env("AGENTMAIL_SESSION_ID", "mail-1")
    }

    /// Decides the first question as soon as it is there.
    fn decide(&self, decision: &'static str, note: &'static str) -> thread::JoinHandle<()> {
        let gateway = Arc::clone(&self.gateway);
        thread::spawn(move || {
            let key = gateway.asked();
            gateway.decide(&key, decision, note);
        })
    }
}

fn bash() -> Value {
    json!({"command": "cargo test"})
}

fn said(runs: &[Ran]) -> Vec<bool> {
    runs.iter().map(|ran| !ran.stdout.is_empty()).collect()
}

#[test]
fn a_persons_decision_holds_on_every_host_with_its_dialect() {
    for (engine, dialect) in [
        (Engine::Strict, "structured"),
        (Engine::Lenient, "both"),
        (Engine::Lenient, "structured"),
        (Engine::Lenient, "flat"),
    ] {
        for driven in [true, false] {
            for (decision, runs) in [("同意", true), ("拒绝", false)] {
                let world = World::new();
                // The person at the keyboard would say the opposite.
                let dialog = match engine {
                    Engine::Strict => Dialog::After(!runs),
                    Engine::Lenient => Dialog::RacingSilent,
                };
                let host =
                    if driven { world.driven(engine, dialog) } else { world.host(engine, dialog) };
                let host = host.plugin(&world.plugin(dialect));
                let deciding = world.decide(decision, "看情况");
                let (fate, ran) = host.call("Bash", &bash(), "call_1");
                deciding.join().unwrap();
                assert_eq!(fate.runs(), runs, "{engine:?} {dialect} {driven} {fate:?} {ran:?}");
                assert!(runs || fate.reason().contains("看情况"), "{fate:?}");
                let asks =
                    world.gateway.seen().iter().filter(|s| s.endpoint == Endpoint::Ask).count();
                assert_eq!(asks, 1, "one question per call: {ran:?}");
            }
        }
    }
}

#[test]
fn a_strict_host_drops_every_other_dialect_so_the_installer_must_choose() {
    for dialect in ["both", "flat"] {
        let world = World::new();
        let host =
            world.driven(Engine::Strict, Dialog::After(false)).plugin(&world.plugin(dialect));
        let host = host.env("AGENTMAIL_PERMISSION_MODE", "full");
        let (fate, ran) = host.call("Bash", &bash(), "call_1");
        assert!(!fate.runs(), "the dialog decides: {ran:?}");
        assert!(said(&ran).iter().all(|said| *said), "{ran:?}");
    }
}

#[test]
fn plan_holds_even_when_zcode_runs_in_yolo() {
    for (engine, dialect) in [(Engine::Strict, "structured"), (Engine::Lenient, "both")] {
        let world = World::new();
        let host = world
            .driven(engine, Dialog::After(true))
            .plugin(&world.plugin(dialect))
            .env("AGENTMAIL_PERMISSION_MODE", "plan")
            .mode(Mode::Yolo);
        for tool in ["Bash", "Write", "Edit", "ApplyPatch", "MultiEdit", "NotebookEdit"] {
            let (fate, ran) = host.call(tool, &bash(), "call_1");
            assert!(!fate.runs() && fate.reason().contains("plan"), "{tool} {fate:?} {ran:?}");
        }
        assert!(host.call("Read", &json!({}), "call_2").0.runs());
        assert!(world.gateway.seen().is_empty(), "nobody is asked in plan mode");
    }
}

#[test]
fn mail_driven_sessions_ask_in_every_mode_of_zcode() {
    for mode in [Mode::Build, Mode::Edit, Mode::Yolo] {
        for dialog in [Dialog::Headless, Dialog::RacingSilent] {
            for (decision, runs) in [("同意", true), ("拒绝", false)] {
                let world = World::new();
                let host =
                    world.driven(Engine::Lenient, dialog).plugin(&world.plugin("both")).mode(mode);
                let deciding = world.decide(decision, "");
                let (fate, ran) =
                    host.call("Write", &json!({"file_path": "/p", "content": "x"}), "call_1");
                deciding.join().unwrap();
                assert_eq!(fate.runs(), runs, "{mode:?} {dialog:?} {fate:?} {ran:?}");
            }
        }
    }
}

#[test]
fn interactive_pre_tool_use_costs_nothing_and_says_nothing() {
    let world = World::new();
    let host = world.host(Engine::Lenient, Dialog::After(true)).plugin(&world.plugin("both"));
    let (fate, ran) = host.mode(Mode::Yolo).call("Bash", &bash(), "call_1");
    assert_eq!((fate, said(&ran)), (Fate::Runs, vec![false]), "{ran:?}");
    assert!(world.gateway.seen().is_empty());
}

#[test]
fn own_tools_pass_without_network_and_the_two_exceptions_do_not() {
    for (tool, runs) in [
        ("mcp__plugin_agentmail_agentmail__read_inbox", true),
        ("mcp__agentmail__send_mail", true),
        ("mcp__agentmail__connect_to_server", false),
        ("mcp__plugin_agentmail_agentmail__upload_attachment", false),
    ] {
        let world = World::new();
        let host =
            world.driven(Engine::Lenient, Dialog::RacingSilent).plugin(&world.plugin("both"));
        let (fate, ran) = host.call(tool, &json!({}), "call_1");
        assert_eq!(fate.runs(), runs, "{tool} {ran:?}");
        assert!(world.gateway.seen().is_empty());
    }
}

#[test]
fn a_refusal_cannot_be_undone_by_a_later_plugin() {
    let approve = r#"echo '{"decision":"approve","hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}'"#;
    for (dialect, undone) in [("both", false), ("flat", false), ("structured", true)] {
        let world = World::new();
        let host = world
            .host(Engine::Lenient, Dialog::RacingSilent)
            .plugin(&world.plugin(dialect))
            .other("PermissionRequest", "Bash", approve);
        let deciding = world.decide("拒绝", "");
        let (fate, ran) = host.call("Bash", &bash(), "call_1");
        deciding.join().unwrap();
        assert_eq!(fate.runs(), undone, "{dialect} {ran:?}");
    }
}

#[test]
fn hooks_of_others_before_ours_change_nothing_by_noise_or_failure() {
    for script in
        ["echo noise", "exit 1", "kill -9 $$", "echo '{\"x\":1}'", "yes | head -c 100000", "true"]
    {
        let world = World::new();
        let host = world
            .driven(Engine::Lenient, Dialog::RacingSilent)
            .other("PreToolUse", "", script)
            .plugin(&world.plugin("both"));
        let deciding = world.decide("拒绝", "不行");
        let (fate, ran) = host.call("Bash", &bash(), "call_1");
        deciding.join().unwrap();
        assert!(!fate.runs() && fate.reason().contains("不行"), "{script}: {ran:?}");
    }
}

#[test]
fn the_person_who_answers_in_zcode_first_ends_the_question() {
    for yes in [true, false] {
        let world = World::new();
        let host =
            world.host(Engine::Lenient, Dialog::Racing(yes, 1_500)).plugin(&world.plugin("both"));
        let (fate, ran) = host.call("Bash", &bash(), "call_1");
        assert_eq!(fate.runs(), yes, "{ran:?}");
        let last = ran.last().unwrap();
        assert!(last.aborted && last.stdout.is_empty(), "{ran:?}");
        let questions = world.gateway.questions();
        assert!(questions.values().all(|question| question.withdrawn), "{questions:?} {ran:?}");
    }
}

#[test]
fn a_mail_driven_approval_races_a_dialog_that_denies_at_once() {
    // Headless ZCode denies every question at once; only the PreToolUse answer counts there.
    let world = World::new();
    let host = world.driven(Engine::Lenient, Dialog::Headless).plugin(&world.plugin("both"));
    let deciding = world.decide("同意", "");
    let (fate, ran) = host.call("Bash", &bash(), "call_1");
    deciding.join().unwrap();
    assert!(fate.runs(), "{ran:?}");
    assert_eq!(ran.len(), 1, "the yes is not asked for twice: {ran:?}");
}

#[test]
fn matchers_are_exact_lists_or_patterns_with_zcodes_aliases() {
    for (matcher, tool, expected) in [
        ("", "Anything", true),
        ("*", "Anything", true),
        ("Bash|Write", "Write", true),
        ("Bash|Write", "MultiWrite", false),
        ("Edit", "ApplyPatch", true),
        ("Task", "Agent", true),
        ("^mcp__agentmail__", "mcp__agentmail__read_mail", true),
        ("^mcp__agentmail__", "xmcp__agentmail__read_mail", false),
        ("mcp__.*__js", "mcp__node_repl__js", true),
        ("(", "Bash", false),
    ] {
        assert_eq!(matches(matcher, tool), expected, "{matcher} {tool}");
    }
}
