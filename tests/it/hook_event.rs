//! Every sample event of ZCode, as recorded in `tests/fixtures/hook`.

use std::fs;
use std::path::Path;

use zcode_mail_core::config::Settings;
use zcode_mail_core::hook::event::Kind;
use zcode_mail_core::hook::outcome::Answer;
use zcode_mail_core::hook::{Opening, open};

use crate::scripted::scripted;

/// What the rules say to a sample: `?` ask, `.` no opinion, `-` block, `+` approve.
fn said(name: &str, env: &[(&str, &str)]) -> char {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/hook").join(name);
    let bytes = fs::read(path).unwrap();
    let settings = Settings::from_env(|wanted| {
        env.iter().find(|(key, _)| *key == wanted).map(|(_, value)| (*value).to_string())
    });
    match open(&bytes, &settings) {
        Opening::Ask(_) => '?',
        Opening::Done { verdict, .. } => match verdict.answer {
            Answer::NoOpinion => '.',
            Answer::Block(_) => '-',
            Answer::Approve => '+',
        },
    }
}

#[test]
fn scripted_events_keep_every_law() {
    scripted("hook_event");
}

#[test]
fn every_sample_gets_the_answer_of_the_mode_table() {
    // Columns: interactive plan, workspace, full; mail-driven plan, workspace, full.
    let table = [
        ("a_permission_request.json", "-?+-?+"),
        ("b_camel_only.json", "-?+-?+"),
        ("c_snake_only.json", "-?+-?+"),
        ("d_own_tool.json", "....++"),
        ("e_node_repl.json", "-?+-?+"),
        ("f_ask_user_question.json", "......"),
        ("g_apply_patch.json", "-?+-?+"),
        ("h_pre_tool_use.json", "...-?+"),
        ("i_stop.json", "......"),
        ("j_post_tool_use.json", "......"),
        ("j_post_tool_use_failure.json", "......"),
        ("j_session_start.json", "......"),
        ("j_user_prompt_submit.json", "......"),
        ("k_array.json", "...---"),
        ("k_crlf.json", "-?+-?+"),
        ("k_empty.json", "...---"),
        ("k_no_newline.json", "-?+-?+"),
        ("k_no_tool_name.json", "...---"),
        ("k_truncated.json", "...---"),
    ];
    let mut files: Vec<_> = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/hook"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, table.map(|(name, _)| name), "every sample stands in the table");
    for (name, expected) in table {
        let mut got = String::new();
        for session in ["", "mail-1"] {
            for mode in ["plan", "workspace", "full"] {
                let env = [("AGENTMAIL_SESSION_ID", session), ("AGENTMAIL_PERMISSION_MODE", mode)];
                got.push(said(name, &env));
            }
        }
        assert_eq!(got, expected, "{name}");
    }
}

#[test]
fn the_samples_of_all_ages_carry_the_same_facts() {
    for (name, tool, session, call) in [
        (
            "a_permission_request.json",
            "Bash",
            "sess_11111111-2222-4333-8444-555555555555",
            "call_1",
        ),
        ("b_camel_only.json", "Write", "s1", "c2"),
        ("c_snake_only.json", "Edit", "s1", "c3"),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/hook").join(name);
        let settings = Settings::from_env(|_| None);
        let Opening::Ask(found) = open(&fs::read(path).unwrap(), &settings) else {
            panic!("{name}");
        };
        assert_eq!(found.event.kind, Kind::PermissionRequest, "{name}");
        assert_eq!(found.event.tool, tool, "{name}");
        assert_eq!(found.event.session.as_deref(), Some(session), "{name}");
        assert_eq!(found.event.call_id.as_deref(), Some(call), "{name}");
    }
}
