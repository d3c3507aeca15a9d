//! Decisions bound to bytes: what changes between the question and the approval, blocks (faults 8;
//! section 3, row 1). The real hook, real files, a gateway that approves everything.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};
use zcode_mail_core::digest::{CallDigest, Operand, sha256};
use zcode_mail_core::hook::question::Binding;
use zcode_mail_core::operands;
use zcode_mail_core::render::unrender;
use zcode_mail_tests::fakes::gateway::{Endpoint, Gateway};
use zcode_mail_tests::fakes::hook::{Hook, Said, event_with};
use zcode_mail_tests::programs::PATIENCE;

/// How many times each mutation is tried; `ZCODE_MAIL_SOAK` makes it the full size.
fn rounds(soak: usize, normal: usize) -> usize {
    if std::env::var_os("ZCODE_MAIL_SOAK").is_some() { soak } else { normal }
}

const SCRIPT: &str = "echo build\necho test\n";

/// A directory with a script, and the event of `bash x.sh` in it.
fn project() -> (tempfile::TempDir, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let cwd = dir.path().join("p");
    fs::create_dir(&cwd).unwrap();
    fs::write(cwd.join("x.sh"), SCRIPT).unwrap();
    let event = event_in(&cwd, "Bash", &json!({"command": "bash x.sh --all"}));
    (dir, event)
}

fn event_in(cwd: &Path, tool: &str, input: &Value) -> Vec<u8> {
    let event = event_with(tool, "call-1", &input.to_string());
    let text = String::from_utf8(event).unwrap();
    text.replace("/home/u/proj", cwd.to_str().unwrap()).into_bytes()
}

/// Runs the hook; between its question and the approval `change` happens.
fn approved_after(event: Vec<u8>, change: impl FnOnce()) -> Said {
    let gateway = Gateway::start();
    let running = Hook::driven(&gateway.url).event(event).start();
    let key = gateway.asked();
    change();
    gateway.decide(&key, "同意", "");
    Said::of(&running.finish(PATIENCE))
}

/// One way to change the script or the place where it runs; `n` makes each round different.
type Mutation = (&'static str, fn(&Path, usize));

const MUTATIONS: [Mutation; 8] = [
    ("a byte of the script flipped", |cwd, n| {
        let mut bytes = SCRIPT.as_bytes().to_vec();
        let at = n % bytes.len();
        bytes[at] ^= 1 << (n / bytes.len() % 7);
        fs::write(cwd.join("x.sh"), bytes).unwrap();
    }),
    ("a line appended", |cwd, n| {
        fs::write(cwd.join("x.sh"), format!("{SCRIPT}rm -rf {n}\n")).unwrap();
    }),
    ("cut short", |cwd, n| {
        fs::write(cwd.join("x.sh"), &SCRIPT[..n % SCRIPT.len()]).unwrap();
    }),
    ("swapped by a symbolic link", |cwd, n| {
        fs::write(cwd.join("evil"), format!("rm -rf {n}")).unwrap();
        fs::remove_file(cwd.join("x.sh")).unwrap();
        symlink("evil", cwd.join("x.sh")).unwrap();
    }),
    ("swapped by a rename", |cwd, n| {
        fs::write(cwd.join("evil"), format!("rm -rf {n}")).unwrap();
        fs::rename(cwd.join("evil"), cwd.join("x.sh")).unwrap();
    }),
    ("removed", |cwd, _| fs::remove_file(cwd.join("x.sh")).unwrap()),
    ("replaced by a directory", |cwd, _| {
        fs::remove_file(cwd.join("x.sh")).unwrap();
        fs::create_dir(cwd.join("x.sh")).unwrap();
    }),
    ("the working directory replaced by a copy", |cwd, _| {
        fs::rename(cwd, cwd.with_extension("old")).unwrap();
        fs::create_dir(cwd).unwrap();
        fs::write(cwd.join("x.sh"), SCRIPT).unwrap();
    }),
];

#[test]
fn an_unchanged_script_runs_after_a_yes() {
    let (_dir, event) = project();
    let said = approved_after(event, || {});
    assert_eq!((said.answer, said.code.as_str()), ('+', "approved-once"), "{said:?}");
}

/// faults 8: TOCTOU.
#[test]
fn every_mutation_between_question_and_approval_blocks() {
    let rounds = rounds(2_000, 4);
    let mut blocked = 0;
    for (name, change) in MUTATIONS {
        for n in 0..rounds {
            let (dir, event) = project();
            let said = approved_after(event, || change(&dir.path().join("p"), n));
            assert_eq!(
                (said.answer, said.code.as_str()),
                ('-', "request-changed"),
                "{name}: {said:?}"
            );
            assert!(!said.reason.contains("用户拒绝"), "{said:?}");
            blocked += 1;
        }
    }
    println!("{blocked} mutations of files and places, {blocked} blocked by the real hook");
}

/// The same mutations against the comparison itself, and against one that compares nothing.
#[test]
fn with_the_comparison_replaced_the_same_mutations_are_approved() {
    let read = |cwd: &Path, files: &[String]| -> Vec<Operand> {
        let state = |file: &String| Operand {
            path: file.clone(),
            sha256: fs::read(cwd.join(file)).ok().map(|bytes| sha256(&bytes)),
        };
        files.iter().map(state).collect()
    };
    let run = |guard: fn(&Binding, &[Operand]) -> bool| -> usize {
        let mut approved = 0;
        // The last one changes no file: the place is compared apart.
        for (_, change) in &MUTATIONS[..MUTATIONS.len() - 1] {
            for n in 0..rounds(2_000, 50) {
                let (dir, _) = project();
                let cwd = dir.path().join("p");
                let files = operands::of_command("bash x.sh --all").files;
                let before = Binding { operands: read(&cwd, &files), ..Binding::default() };
                change(&cwd, n);
                approved += usize::from(guard(&before, &read(&cwd, &files)));
            }
        }
        approved
    };
    let real = run(|before, now| before.drift(now).is_none());
    let replaced = run(|_, _| true);
    println!("{real} approved with the comparison, {replaced} without");
    assert_eq!(real, 0);
    assert_eq!(replaced, (MUTATIONS.len() - 1) * rounds(2_000, 50));
}

/// faults 6, 9 and 23: events of another request, another session, or another content.
#[test]
fn every_mutation_of_the_decision_event_is_no_approval() {
    let gateway = Gateway::start();
    let running = Hook::driven(&gateway.url).event(project().1).wait_ms(20_000).start();
    let key = gateway.asked();
    let context = gateway.nth(Endpoint::Ask, 1).json()["context"].as_str().unwrap().to_owned();
    let digest = CallDigest::find(&context).unwrap().unwrap().hex();
    let honest = json!({
        "mail_id": "mail-req-1", "decision": "同意", "session_id": "mail-1", "relay_key": key,
        "relay_kind": "permission", "decided_by": "han", "digest": digest,
    });
    // About something else: ignored, and the hook goes on waiting.
    let mut sent = 0;
    for n in 0..rounds(2_000, 200) {
        let flipped = |text: &str| {
            let mut bytes = text.as_bytes().to_vec();
            let at = n % bytes.len();
            bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
            String::from_utf8_lossy(&bytes).into_owned()
        };
        for field in ["relay_key", "session_id", "mail_id", "relay_kind"] {
            let mut event = honest.clone();
            event[field] = flipped(honest[field].as_str().unwrap()).into();
            gateway.publish(&event);
            sent += 1;
        }
    }
    assert_eq!(gateway.open_streams(), 1, "the hook still waits after {sent} events");
    // About this request with another digest: blocked, whatever it says.
    let mut event = honest.clone();
    event["digest"] =
        digest.replacen(&digest[..1], if digest.starts_with('0') { "1" } else { "0" }, 1).into();
    gateway.publish(&event);
    let said = Said::of(&running.finish(PATIENCE));
    assert_eq!((said.answer, said.code.as_str()), ('-', "request-changed"), "{said:?}");
    println!("{sent} forged or foreign events ignored, one with another digest blocked");
}

/// faults 3 and 22: decision bytes.
#[test]
fn a_decision_with_any_byte_changed_is_no_approval() {
    let honest = "一直同意".as_bytes();
    for n in 0..rounds(2_000, 24) {
        let mut bytes = honest.to_vec();
        bytes[n % honest.len()] ^= 1 << (n / honest.len() % 8);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let gateway = Gateway::start();
        let said = Hook::driven(&gateway.url).run_decided(&gateway, &text, "");
        assert_eq!(said.answer, '-', "{text:?} {said:?}");
    }
}

#[test]
fn the_context_binds_what_the_command_runs_and_says_what_it_cannot_bind() {
    let (dir, _) = project();
    let cwd = dir.path().join("p");
    let command = "bash x.sh && ./missing.sh && source \"$ENV\"";
    let gateway = Gateway::start();
    let said = Hook::driven(&gateway.url)
        .event(event_in(&cwd, "Bash", &json!({ "command": command })))
        .run_decided(&gateway, "拒绝", "");
    assert_eq!(said.answer, '-');
    let context = gateway.nth(Endpoint::Ask, 1).json()["context"].as_str().unwrap().to_owned();
    let shown = unrender(&context).unwrap();
    assert_eq!(
        shown.operands,
        [
            Operand { path: "x.sh".into(), sha256: Some(sha256(SCRIPT.as_bytes())) },
            Operand { path: "./missing.sh".into(), sha256: None },
        ]
    );
    assert!(context.contains("ⓘ \"$ENV\"："), "{context}");
    assert_eq!(shown.digest, Some(shown.shown_digest()));
}

#[test]
fn a_write_shows_what_it_replaces_and_blocks_when_that_changed() {
    let (dir, _) = project();
    let cwd = dir.path().join("p");
    let event = || {
        event_in(&cwd, "Write", &json!({"file_path": cwd.join("x.sh"), "content": "echo build\n"}))
    };
    let gateway = Gateway::start();
    let said = Hook::driven(&gateway.url).event(event()).run_decided(&gateway, "同意", "");
    assert_eq!(said.answer, '+', "{said:?}");
    let context = gateway.nth(Endpoint::Ask, 1).json()["context"].as_str().unwrap().to_owned();
    assert!(context.contains("\n[@ → content]\n  echo build\n- echo test\n"), "{context}");
    let said = approved_after(event(), || fs::write(cwd.join("x.sh"), "work of hours").unwrap());
    assert_eq!(said.code, "request-changed", "{said:?}");
}

#[test]
fn a_pipe_in_the_place_of_a_script_is_named_and_does_not_hang() {
    let (dir, event) = project();
    let script = dir.path().join("p/x.sh");
    fs::remove_file(&script).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &script, rustix::fs::Mode::RUSR).unwrap();
    let gateway = Gateway::start();
    let said = Hook::driven(&gateway.url).event(event).run_decided(&gateway, "同意", "");
    assert_eq!(said.answer, '+', "{said:?}");
    let context = gateway.nth(Endpoint::Ask, 1).json()["context"].as_str().unwrap().to_owned();
    assert!(context.contains("ⓘ x.sh：无法绑定"), "{context}");
}

/// faults 16: an approval for good is not remembered when what was approved has changed.
#[test]
fn always_is_not_remembered_for_a_changed_request() {
    let (dir, event) = project();
    let gateway = Gateway::start();
    let hook = Hook::driven(&gateway.url).event(event);
    let running = hook.start();
    let key = gateway.asked();
    fs::write(dir.path().join("p/x.sh"), "rm -rf /").unwrap();
    gateway.decide(&key, "一直同意", "");
    let said = Said::of(&running.finish(PATIENCE));
    assert_eq!(said.code, "request-changed", "{said:?}");
    assert!(!hook.home().join(".agentmail/permission-grants.json").exists());
}
