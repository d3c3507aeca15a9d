//! The hook's files: remembered approvals, the key, the note of a pending question.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use zcode_mail_core::grants::Grants;
use zcode_mail_core::time::UnixMillis;
use zcode_mail_tests::fakes::gateway::{Endpoint, Gateway};
use zcode_mail_tests::fakes::hook::{Hook, Said, event, event_with, pre_tool_use};
use zcode_mail_tests::programs::PATIENCE;

fn state(hook: &Hook) -> PathBuf {
    let dir = hook.home().join(".agentmail");
    fs::create_dir_all(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    dir
}

fn grants_json(session: &str, tool: &str) -> String {
    let mut grants = Grants::new();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    assert!(grants.add(session, tool, UnixMillis(i64::try_from(now.as_millis()).unwrap())));
    grants.to_json()
}

fn write(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn always_is_remembered_for_this_session_and_tool_only() {
    let gateway = Gateway::start();
    let hook = Hook::driven(&gateway.url);
    assert_eq!(hook.run_decided(&gateway, "一直同意", "").code, "approved-always");
    let file = hook.home().join(".agentmail/permission-grants.json");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));

    let asked = gateway.seen().len();
    let again = hook.event(event("Bash", "call-2"));
    let said = again.run();
    assert_eq!((said.answer, said.code.as_str()), ('+', "granted"), "{said:?}");
    assert_eq!(gateway.seen().len(), asked, "nobody is asked");

    let other = again.clone().event(event("Write", "call-3")).wait_ms(300).run();
    assert_eq!(other.code, "timed-out", "another tool {other:?}");
    let other = again.wait_ms(300).set("AGENTMAIL_SESSION_ID", "mail-2").run();
    assert_eq!(other.code, "timed-out", "another session {other:?}");
}

#[test]
fn once_is_not_remembered() {
    let gateway = Gateway::start();
    let hook = Hook::driven(&gateway.url);
    assert_eq!(hook.run_decided(&gateway, "同意", "").answer, '+');
    let said = hook.event(event("Bash", "call-2")).wait_ms(300).run();
    assert_eq!(said.code, "timed-out");
}

#[test]
fn the_grants_file_stands_where_the_settings_say() {
    let other = tempfile::tempdir().unwrap();
    let at = |name: &str| other.path().join(name).display().to_string();
    for (vars, file) in [
        (vec![("AGENTMAIL_ZCODE_GRANTS_FILE", at("g.json"))], at("g.json")),
        (vec![("AGENTMAIL_CONFIG_DIR", at("config"))], at("config/permission-grants.json")),
        (vec![("ZCODE_PLUGIN_DATA", at("data"))], at("data/permission-grants.json")),
        (
            vec![("AGENTMAIL_CONFIG_DIR", at("c2")), ("ZCODE_PLUGIN_DATA", at("d2"))],
            at("c2/permission-grants.json"),
        ),
    ] {
        let gateway = Gateway::start();
        let mut hook = Hook::driven(&gateway.url).set("HOME", "");
        for (name, value) in &vars {
            hook = hook.set(name, value);
        }
        assert_eq!(hook.run_decided(&gateway, "一直同意", "").answer, '+');
        assert!(Path::new(&file).exists(), "{file}");
        assert_eq!(hook.run().code, "granted");
    }
}

#[test]
fn an_odd_grants_file_gives_no_approvals_and_a_loud_line() {
    let good = grants_json("mail-1", "Bash");
    let later = good.replace("\"version\": 1", "\"version\": 2");
    type Spoil = Box<dyn Fn(&Path)>;
    let cases: Vec<(&str, Spoil)> = vec![
        ("corrupt", Box::new(|f| write(f, "{\"version\":", 0o600))),
        ("empty", Box::new(|f| write(f, "", 0o600))),
        ("wrong type", {
            let text = good.replace("\"Bash\"", "[\"Bash\"]");
            Box::new(move |f| write(f, &text, 0o600))
        }),
        ("later version", Box::new(move |f| write(f, &later, 0o600))),
        ("group-writable", {
            let good = good.clone();
            Box::new(move |f| write(f, &good, 0o660))
        }),
        ("world-writable", {
            let good = good.clone();
            Box::new(move |f| write(f, &good, 0o602))
        }),
        ("symbolic link", {
            let good = good.clone();
            Box::new(move |f| {
                let target = f.with_extension("target");
                write(&target, &good, 0o600);
                symlink(&target, f).unwrap();
            })
        }),
        ("dangling link", Box::new(|f| symlink("/nonexistent/x", f).unwrap())),
        ("directory", Box::new(|f| fs::create_dir(f).unwrap())),
        ("group-writable directory", {
            let good = good.clone();
            Box::new(move |f| {
                write(f, &good, 0o600);
                let open = fs::Permissions::from_mode(0o770);
                fs::set_permissions(f.parent().unwrap(), open).unwrap();
            })
        }),
    ];
    for (what, spoil) in cases {
        let gateway = Gateway::start();
        let hook = Hook::driven(&gateway.url).wait_ms(300);
        let file = state(&hook).join("permission-grants.json");
        spoil(&file);
        let said = hook.run();
        assert_eq!((said.answer, said.code.as_str()), ('-', "timed-out"), "{what} {said:?}");
        assert!(said.stderr.contains("NO remembered approvals"), "{what} {said:?}");
    }
    // The same file, untouched, does cover: the cases above fail for their own reasons.
    let gateway = Gateway::start();
    let hook = Hook::driven(&gateway.url);
    write(&state(&hook).join("permission-grants.json"), &good, 0o600);
    assert_eq!(hook.run().code, "granted");
}

#[test]
fn a_file_of_another_user_gives_no_approvals() {
    use std::os::unix::fs::chown;
    let gateway = Gateway::start();
    let hook = Hook::driven(&gateway.url).wait_ms(300);
    let file = state(&hook).join("permission-grants.json");
    write(&file, &grants_json("mail-1", "Bash"), 0o600);
    if chown(&file, Some(12_345), None).is_err() {
        // Only root can give files away; elsewhere root's own files serve as foreign ones.
        let said = hook.set("AGENTMAIL_ZCODE_GRANTS_FILE", "/etc/hostname").run();
        assert!(said.stderr.contains("NO remembered approvals"), "{said:?}");
        return;
    }
    let said = hook.run();
    assert_eq!(said.code, "timed-out", "{said:?}");
    assert!(said.stderr.contains("belongs to user"), "{said:?}");
}

#[test]
fn a_damaged_file_is_kept_aside_and_a_later_version_is_left_alone() {
    for (text, kept) in [("{\"version\":", true), ("{\"version\":2,\"new\":1}", false)] {
        let gateway = Gateway::start();
        let hook = Hook::driven(&gateway.url);
        let dir = state(&hook);
        let file = dir.join("permission-grants.json");
        write(&file, text, 0o600);
        let said = hook.run_decided(&gateway, "一直同意", "");
        assert_eq!(said.answer, '+', "the yes counts for this call: {said:?}");
        let aside: Vec<_> = fs::read_dir(&dir)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.to_string_lossy().contains("damaged"))
            .collect();
        if kept {
            assert_eq!(fs::read_to_string(&aside[0]).unwrap(), text);
            assert!(Grants::parse(&fs::read(&file).unwrap()).is_ok());
        } else {
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
            assert!(said.stderr.contains("NOT remembered"), "{said:?}");
        }
    }
}

#[test]
fn a_place_that_cannot_be_written_does_not_turn_a_yes_into_a_no() {
    let gateway = Gateway::start();
    let hook = Hook::driven(&gateway.url).set("AGENTMAIL_CONFIG_DIR", "/proc/nonexistent");
    let said = hook.run_decided(&gateway, "一直同意", "");
    assert_eq!(said.answer, '+', "{said:?}");
    assert!(said.stderr.contains("NOT remembered"), "{said:?}");
}

#[test]
fn the_key_file_is_read_only_when_it_is_private() {
    let gateway = Gateway::start();
    let hook = Hook::driven(&gateway.url).set("AGENTMAIL_AGENT_KEY", "");
    let file = state(&hook).join("agent.key");
    write(&file, "am_file\n", 0o600);
    let before = fs::read(&file).unwrap();
    assert_eq!(hook.run_decided(&gateway, "同意", "").answer, '+');
    assert_eq!(gateway.seen()[0].headers["authorization"], "Bearer am_file");
    assert_eq!(fs::read(&file).unwrap(), before);

    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let said = hook.run();
    assert_eq!(said.code, "not-configured", "{said:?}");
    assert!(said.reason.contains("read by others"), "{said:?}");

    fs::remove_file(&file).unwrap();
    write(&file.with_extension("target"), "am_file\n", 0o600);
    symlink(file.with_extension("target"), &file).unwrap();
    let said = hook.set("AGENTMAIL_AGENT_SECRET", "s").run();
    assert_eq!(said.code, "not-configured", "an odd key file is no reason to look further");
    assert!(said.reason.contains("symbolic link"), "{said:?}");
}

#[test]
fn a_waiting_hook_of_a_mail_driven_session_leaves_a_note() {
    use zcode_mail_core::relay_key::sha256_hex;
    for (driven, noted) in [(true, true), (false, false)] {
        let gateway = Gateway::start();
        let hook = if driven { Hook::driven(&gateway.url) } else { Hook::new(&gateway.url) };
        let running = hook.start();
        let key = gateway.asked();
        let name = format!("{}.json", sha256_hex(key.as_bytes()));
        let file = hook.home().join(".agentmail/pending").join(name);
        assert_eq!(file.exists(), noted);
        if noted {
            let text = fs::read_to_string(&file).unwrap();
            assert!(text.contains(&format!("\"pid\":{}", running.id())), "{text}");
        }
        gateway.decide(&key, "同意", "");
        assert_eq!(Said::of(&running.finish(PATIENCE)).answer, '+');
        assert!(!file.exists());
        assert_eq!(gateway.nth(Endpoint::Ask, 1).json()["relay_key"], key);
    }
}

#[test]
fn a_call_that_was_approved_before_its_check_is_not_asked_about_again() {
    let gateway = Gateway::start();
    let hook = Hook::driven(&gateway.url).wait_ms(20_000);
    let first = hook.clone().event(pre_tool_use("Bash", "call-1"));
    assert_eq!(first.run_decided(&gateway, "同意", "").code, "approved-once");

    let again = hook.clone().wait_ms(300);
    for (what, other) in [
        ("another call", event("Bash", "call-2")),
        ("another input", event_with("Bash", "call-1", r#"{"command":"rm -rf /"}"#)),
        ("another tool", event("Write", "call-1")),
    ] {
        // ZCode gives every permission request an id of its own.
        let other = String::from_utf8(other).unwrap().replace("perm_", &format!("perm_{what}_"));
        assert_eq!(again.clone().event(other).run().code, "timed-out", "{what}");
    }
    let event = String::from_utf8(event("Bash", "call-1")).unwrap();
    let again = |n: u32| again.clone().event(event.replace("perm_", &format!("perm_{n}_")));
    let elsewhere = again(1).set("AGENTMAIL_SESSION_ID", "mail-2").run();
    assert_eq!(elsewhere.code, "timed-out", "another mail session");
    let asked = gateway.seen().len();
    let said = again(2).run();
    assert_eq!((said.answer, said.code.as_str()), ('+', "answered"), "{said:?}");
    assert_eq!(gateway.seen().len(), asked, "nobody is asked");
    assert_eq!(again(3).run().code, "timed-out", "it counts once");
}

#[test]
fn an_earlier_answer_counts_only_from_a_private_fresh_note_in_a_mail_driven_session() {
    type Spoil = fn(&Path);
    let cases: [(&str, Spoil); 4] = [
        ("written by others", |f| {
            fs::set_permissions(f, fs::Permissions::from_mode(0o666)).unwrap()
        }),
        ("old", |f| {
            let old = std::time::SystemTime::now() - std::time::Duration::from_secs(601);
            fs::File::options().write(true).open(f).unwrap().set_modified(old).unwrap();
        }),
        ("another digest", |f| write(f, &"0".repeat(64), 0o600)),
        ("a link", |f| {
            let target = f.with_extension("target");
            fs::rename(f, &target).unwrap();
            symlink(target, f).unwrap();
        }),
    ];
    for (what, spoil) in cases {
        let gateway = Gateway::start();
        let hook = Hook::driven(&gateway.url);
        let first = hook.clone().event(pre_tool_use("Bash", "call-1"));
        assert_eq!(first.run_decided(&gateway, "同意", "").answer, '+');
        let dir = hook.home().join(".agentmail/answered");
        let note = fs::read_dir(dir).unwrap().next().unwrap().unwrap().path();
        spoil(&note);
        assert_eq!(hook.wait_ms(300).run().code, "timed-out", "{what}");
    }
    let gateway = Gateway::start();
    let hook = Hook::driven(&gateway.url);
    let first = hook.clone().event(pre_tool_use("Bash", "call-1"));
    assert_eq!(first.run_decided(&gateway, "同意", "").answer, '+');
    let alone = hook.set("AGENTMAIL_SESSION_ID", "").wait_ms(300).run();
    assert_eq!(alone.code, "timed-out", "{alone:?}");
}
