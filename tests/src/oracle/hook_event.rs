//! Laws of the hook before anybody is asked: [`open`], the question, the answer.
//!
//! 1. The same bytes give the same opening.
//! 2. Only a rule approves: full mode, or an own tool in a mail-driven session.
//! 3. Whatever cannot be read blocks when mail drives, and says nothing otherwise.
//! 4. What is asked about is what a plain JSON reader sees in the event: tool and input.
//! 5. A question shows no character that hides, and its key fits the gateway's limit.
//! 6. Each answer is nothing or one JSON line below the host's cut, for the event that came.

use crate::script::hook_event::Script;
use serde_json::Value;
use zcode_mail_core::hook::answer::{Dialect, encode};
use zcode_mail_core::hook::event::Event;
use zcode_mail_core::hook::outcome::{Answer, Because};
use zcode_mail_core::hook::question::{Asker, Binding, context, question};
use zcode_mail_core::hook::{Call, Opening, open};
use zcode_mail_core::lang::Lang;
use zcode_mail_core::mode::PermissionMode;
use zcode_mail_core::relay_key;
use zcode_mail_core::render::marks::{Danger, danger};

/// ZCode cuts stdout here.
const HOST_CUT: usize = 32_768;

/// Checks all laws.
///
/// # Panics
/// When one does not hold.
pub fn check(bytes: &[u8]) {
    let script = Script::decode(bytes);
    let settings = script.settings();
    let opening = open(&script.event, &settings);
    assert_eq!(opening, open(&script.event, &settings), "{script:?}");
    let parsed = Event::parse(&script.event);
    match &opening {
        Opening::Ask(call) => {
            assert_eq!(settings.mode, PermissionMode::Workspace, "{script:?}");
            asked(call, &script);
        }
        Opening::Done { kind, verdict } => {
            match (&verdict.answer, &verdict.because) {
                (Answer::Approve, Because::FullMode) => {
                    assert_eq!(settings.mode, PermissionMode::Full, "{script:?}");
                }
                (Answer::Approve, Because::OwnTool) => {
                    assert!(settings.mail_driven(), "{script:?}");
                }
                (Answer::Approve, other) => panic!("approved by {other:?}: {script:?}"),
                (Answer::Block(reason), _) => assert!(!reason.is_empty(), "{script:?}"),
                (Answer::NoOpinion, _) => {}
            }
            if parsed.is_err() {
                let blocked = matches!(verdict.answer, Answer::Block(_));
                assert_eq!(blocked, settings.mail_driven(), "{script:?}");
            }
            for dialect in [Dialect::Both, Dialect::Structured, Dialect::Flat] {
                let line = encode(dialect, *kind, verdict);
                assert_eq!(line.is_empty(), verdict.answer == Answer::NoOpinion, "{script:?}");
                if line.is_empty() {
                    continue;
                }
                assert!(line.len() < HOST_CUT, "{} bytes", line.len());
                assert!(line.ends_with('\n') && line.matches('\n').count() == 1, "{line:?}");
                let json: Value = serde_json::from_str(&line).expect("an answer is JSON");
                let named = json["hookSpecificOutput"]["hookEventName"].as_str();
                if let (Some(named), Ok(Event::Tool(event))) = (named, &parsed) {
                    assert_eq!(named, event.kind.as_str(), "{script:?}");
                }
            }
        }
    }
}

fn asked(call: &Call, script: &Script) {
    let text = String::from_utf8(script.event.clone()).expect("only UTF-8 is read");
    let seen: Value = serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .expect("what is asked about is JSON");
    let either = |snake: &str, camel: &str| {
        [&seen[snake], &seen[camel]].into_iter().find(|value| !value.is_null()).cloned()
    };
    let tool = either("tool_name", "toolName");
    assert_eq!(tool.as_ref().and_then(Value::as_str), Some(call.event.tool.as_str()), "{script:?}");
    let input: Value = serde_json::from_str(&call.input.raw).expect("the input is JSON");
    assert_eq!(Some(input), either("tool_input", "toolInput"), "{script:?}");

    let settings = script.settings();
    let key = call.relay_key(&settings, 1);
    assert!(!key.is_empty() && key.len() <= relay_key::LIMIT, "{key}");
    assert_eq!(key, call.relay_key(&settings, 1));
    for lang in [Lang::Zh, Lang::En] {
        let asker = Asker { agent: Some("a\u{202e}"), mail_session: None, wait_ms: 1, lang };
        let shown = context(&call.event, &call.input, asker, &Binding::default());
        let shown = shown.expect("a script is far too small to be too long");
        for text in [question(&call.event, asker), shown.text] {
            let hides = |c: char| c != '\n' && danger(c).is_some_and(|why| why != Danger::Mark);
            assert!(!text.contains(hides), "something hides: {script:?}");
        }
    }
}
