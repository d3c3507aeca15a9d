use alloc::borrow::ToOwned as _;
use alloc::vec::Vec;

use super::outcome::Answer;
use super::question::{Asker, Binding, context};
use super::*;
use crate::digest::CallDigest;
use crate::lang::Lang;
use crate::relay_key;
use crate::render::marks::{Danger, danger};
use crate::render::{unrender, visible};

fn settings(pairs: &[(&str, &str)]) -> Settings {
    Settings::from_env(|name| {
        pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    })
}

fn driven() -> Settings {
    settings(&[("AGENTMAIL_SESSION_ID", "mail-1"), ("AGENTMAIL_AGENT_NAME", "zcode")])
}

fn call(json: &str, settings: &Settings) -> Call {
    match open(json.as_bytes(), settings) {
        Opening::Ask(call) => *call,
        other => panic!("{other:?}"),
    }
}

fn bash(extra: &str) -> String {
    format!(
        r#"{{"hook_event_name":"PermissionRequest","session_id":"z1","tool_name":"Bash",
            "tool_input":{{"command":"ls"}}{extra}}}"#
    )
}

fn parse_error(bytes: &[u8]) -> Unreadable {
    Event::parse(bytes).unwrap_err()
}

#[test]
fn either_casing_is_read_and_two_that_disagree_are_not() {
    for (extra, expected) in [
        (r#","tool_use_id":"c1""#, Ok(Some("c1"))),
        (r#","toolCallId":"c1""#, Ok(Some("c1"))),
        (r#","tool_call_id":"c1","toolUseId":"c1""#, Ok(Some("c1"))),
        (r#","tool_use_id":null,"toolCallId":"c1""#, Ok(Some("c1"))),
        (r#","tool_use_id":"""#, Ok(None)),
        (r#","tool_use_id":"c1","toolCallId":"c2""#, Err(Unreadable::Conflict("tool_use_id"))),
        (r#","tool_use_id":"c1","toolCallId":"""#, Err(Unreadable::Conflict("tool_use_id"))),
        (r#","tool_use_id":5"#, Err(Unreadable::WrongType("tool_use_id"))),
        (r#","toolName":"Read""#, Err(Unreadable::Conflict("tool_name"))),
        (r#","hookEventName":"PreToolUse""#, Err(Unreadable::Conflict("hook_event_name"))),
        (r#","toolInput":{"command":"rm"}"#, Err(Unreadable::Conflict("tool_input"))),
        (r#","toolInput":{ "command" : "l\u0073" }"#, Ok(None)),
        (r#","sessionId":"z2""#, Err(Unreadable::Conflict("session_id"))),
    ] {
        let got = Event::parse(bash(extra).as_bytes()).map(|event| match event {
            Event::Tool(event) => event.call_id,
            Event::Other(name) => panic!("{name}"),
        });
        assert_eq!(got, expected.map(|id| id.map(str::to_owned)), "{extra}");
    }
}

#[test]
fn an_event_is_read_whole_or_not_at_all() {
    let ok = bash("");
    for prefix in ["", "\u{feff}", "\r\n ", "\u{feff}\n"] {
        for suffix in ["", "\n", "\r\n", " \t\r\n\n"] {
            let text = format!("{prefix}{ok}{suffix}");
            assert!(Event::parse(text.as_bytes()).is_ok(), "{text:?}");
        }
    }
    for bytes in [b"".as_slice(), b" \r\n", "\u{feff}".as_bytes()] {
        assert_eq!(parse_error(bytes), Unreadable::Empty);
    }
    for text in [
        "null",
        "[]",
        "\"x\"",
        "1",
        "{",
        "{}x",
        &ok[..ok.len() - 1],
        &format!("{ok}{ok}"),
        &bash(r#","session_id":"z1""#),
        &bash(r#","x":{"a":1,"a":1}"#),
        &bash(r#","x":"\ud800""#),
        &bash(r#","x":"\ude00\ud800""#),
        &bash(&format!(r#","x":{}{}"#, "[".repeat(200), "]".repeat(200))),
        &bash(",\"x\":\"\u{1}\""),
        &bash(r#","x":1e999"#),
    ] {
        let error = parse_error(text.as_bytes());
        assert!(matches!(error, Unreadable::NotJson(_)), "{text}: {error:?}");
    }
    assert_eq!(parse_error(b"{}"), Unreadable::Missing("hook_event_name"));
    assert_eq!(parse_error(b"{\"a\":\"\xff\"}"), Unreadable::NotUtf8(6));
    assert!(Event::parse(bash(r#","x":"\ud83d\ude00\u0000""#).as_bytes()).is_ok());
}

#[test]
fn the_size_limit_is_inclusive() {
    let filler = |total: usize| {
        let frame = bash(r#","x":"""#).len();
        bash(&format!(r#","x":"{}""#, "a".repeat(total - frame)))
    };
    assert!(Event::parse(filler(event::EVENT_LIMIT).as_bytes()).is_ok());
    assert_eq!(parse_error(filler(event::EVENT_LIMIT + 1).as_bytes()), Unreadable::TooLarge);
}

#[test]
fn events_and_tools_of_others_get_no_opinion_even_when_the_rest_is_odd() {
    for settings in [settings(&[]), driven()] {
        for text in [
            r#"{"hook_event_name":"Stop","session_id":7,"x":"\ud800"}"#,
            r#"{"hook_event_name":"SessionStart","source":"resume"}"#,
            r#"{"hook_event_name":"SomethingNew"}"#,
            r#"{"hook_event_name":"PermissionRequest","tool_name":"Read"}"#,
            r#"{"hook_event_name":"PreToolUse","tool_name":"AskUserQuestion","tool_input":{}}"#,
        ] {
            let Opening::Done { verdict, .. } = open(text.as_bytes(), &settings) else {
                panic!("{text}");
            };
            assert_eq!(verdict.answer, Answer::NoOpinion, "{text}");
        }
    }
}

#[test]
fn an_unreadable_event_blocks_only_when_mail_drives() {
    for text in [
        "",
        "[]",
        r#"{"hook_event_name":"PermissionRequest"}"#,
        r#"{"hook_event_name":"PermissionRequest","tool_name":"Bash"}"#,
        r#"{"hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":null}"#,
    ] {
        for (settings, blocked) in [(driven(), true), (settings(&[]), false)] {
            let Opening::Done { verdict, .. } = open(text.as_bytes(), &settings) else {
                panic!("{text}");
            };
            assert_eq!(matches!(verdict.answer, Answer::Block(_)), blocked, "{text}");
            assert_eq!(verdict.because.code(), "unreadable-event", "{text}");
        }
    }
    let broken = br#"{"hook_event_name":"PreToolUse","tool_name":"Ba"#;
    let Opening::Done { kind, .. } = open(broken, &driven()) else { panic!() };
    assert_eq!(kind, Some(Kind::PreToolUse), "the refusal is addressed to the event it claims");
}

#[test]
fn the_relay_key_is_the_hosts_id_or_names_the_call() {
    let settings = driven();
    let id = call(&bash(r#","requestId":"perm_1","tool_use_id":"c1""#), &settings);
    assert_eq!(id.relay_key(&settings, 1), "perm_1");

    let by_call = call(&bash(r#","tool_use_id":"c1""#), &settings);
    let key = by_call.relay_key(&settings, 1);
    assert!(key.starts_with("mail-1:Bash:c1:"), "{key}");
    assert_eq!(key, by_call.relay_key(&settings, 2), "a retry of one call is one question");

    let none = call(&bash(""), &settings);
    assert!(none.relay_key(&settings, 1).starts_with("mail-1:Bash:-:"));
    assert_ne!(none.relay_key(&settings, 1), none.relay_key(&settings, 2));

    let interactive = Settings::from_env(|_| None);
    let key = call(&bash(r#","tool_use_id":"c1""#), &interactive).relay_key(&interactive, 1);
    assert!(key.starts_with("z1:Bash:c1:"), "{key}");
}

#[test]
fn two_calls_never_share_a_key() {
    let settings = driven();
    let variants = [
        r#","tool_use_id":"c1""#,
        r#","tool_use_id":"c2""#,
        r#","tool_use_id":"c1","turn_id":"t1""#,
        r#","tool_use_id":"c1","turn_id":"t2""#,
        r#","tool_use_id":"c1","cwd":"/p""#,
    ];
    let mut keys: Vec<_> =
        variants.iter().map(|v| call(&bash(v), &settings).relay_key(&settings, 1)).collect();
    let other_input = bash(r#","tool_use_id":"c1""#).replace("ls", "rm -rf /");
    keys.push(call(&other_input, &settings).relay_key(&settings, 1));
    let other_session = bash(r#","tool_use_id":"c1""#).replace("z1", "z2");
    keys.push(call(&other_session, &settings).relay_key(&settings, 1));
    let long = bash(&format!(r#","tool_use_id":"{}""#, "s".repeat(13_601)));
    keys.push(call(&long, &settings).relay_key(&settings, 1));
    assert!(keys.iter().all(|key| key.len() <= relay_key::LIMIT));
    let all = keys.len();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), all);
}

#[test]
fn the_context_is_complete_and_says_who_asks() {
    let settings = driven();
    let asker =
        |lang| Asker { agent: Some("zcode"), mail_session: Some("mail-1"), wait_ms: 540_000, lang };
    let text = bash(r#","cwd":"/home/u/proj""#)
        .replace("ls", "cargo test\\n\\techo \\\"done\\\" \\u202e\\u001b[2J");
    let call = call(&text, &settings);
    let show = |lang| context(&call.event, &call.input, asker(lang), &Binding::default()).unwrap();
    let shown = show(Lang::Zh).text;
    for fact in [
        "工具: Bash\n",
        "目录: /home/u/proj\n",
        "Agent: zcode\n",
        "邮件会话: mail-1\n",
        "ZCode 会话: z1\n",
        "9 分钟",
        "[command]\n| cargo test\n| ⇥echo \"done\" ⟦U+202E⟧⟦U+001B⟧[2J\n",
    ] {
        assert!(shown.contains(fact), "{fact} is missing in\n{shown}");
    }
    let english = show(Lang::En);
    assert!(english.text.contains("tool: Bash\n") && english.text.contains("9 min"), "{english:?}");
    // The digest does not depend on the reader's language, and what is shown has it.
    assert_eq!(CallDigest::find(&shown), Ok(Some(english.digest)));
    assert_eq!(unrender(&shown).unwrap().shown_digest(), english.digest);
}

#[test]
fn no_value_passes_for_a_heading_and_nothing_hides() {
    let settings = driven();
    let text = bash("").replace(
        r#"{"command":"ls"}"#,
        r#"{"command":"ls\n工具: Read","工具":"x","n":{"a\n":[1,null,true,"\u200b"]},"e\nvil":2}"#,
    );
    let call = call(&text, &settings);
    let asker = Asker { agent: None, mail_session: None, wait_ms: 500, lang: Lang::Zh };
    let shown = context(&call.event, &call.input, asker, &Binding::default()).unwrap().text;
    let headings: Vec<_> = shown.lines().filter(|line| line.starts_with("工具")).collect();
    assert_eq!(headings, ["工具: Bash"]);
    assert!(shown.contains("[n] {\"a\\n\":[1,null,true,\"⟦U+200B⟧\"]}\n"), "{shown}");
    assert!(shown.contains("[e⟦U+000A⟧vil] 2\n"), "{shown}");
    let hidden = |c: char| c != '\n' && danger(c).is_some_and(|danger| danger != Danger::Mark);
    assert!(!shown.contains(hidden), "{shown}");
}

#[test]
fn different_texts_never_look_alike() {
    let texts = ["\t", "⇥", "⟦U+0009⟧", "\u{202e}", "⟦U+202E⟧", "a\u{200b}b", "ab", "\r", "\\r"];
    let mut shown: Vec<_> = texts.iter().map(|text| visible(text)).collect();
    shown.sort();
    shown.dedup();
    assert_eq!(shown.len(), texts.len());
}
