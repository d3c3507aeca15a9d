//! Laws of the tools' arguments.
//!
//! 1. Whatever the arguments, a call ends after at most four answers, with a text that is not empty
//!    and keeps to its limit.
//! 2. An argument that a tool does not have costs no exchange.
//! 3. A mail of the model's never carries `relay`, and no address becomes `.new` by itself.
//! 4. At most one rename marker leaves, at the end, in the exact form; a typed one never does.
//! 5. After a 404 nothing more is asked.

use serde_json::{Map, Value};
use zcode_mail_core::api::ApiError;
use zcode_mail_core::http::{Fault, Method, Outcome, Reply, Request};
use zcode_mail_core::tool::{
    self, ConnectOutcome, FileFault, Next, Output, Toolbox, TransferOutcome,
};

use crate::script::tool_args::Script;

/// Most answers that any call takes: list, mark, mark again, and the note of a send.
const MOST_ANSWERS: usize = 4;

/// Checks all laws.
///
/// # Panics
/// When one does not hold.
pub fn check(bytes: &[u8]) {
    let script = Script::decode(bytes);
    let arguments: Map<String, Value> =
        serde_json::from_str(&script.arguments).expect("the tables hold JSON");
    let toolbox = Toolbox { lang: script.lang, ..Toolbox::default() };
    let next = tool::start(script.tool, &arguments, &toolbox, None).expect("the tool exists");
    let (requests, output) = run(&script, next);
    assert!(!output.text.is_empty(), "{script:?}");
    assert!(output.text.len() <= tool::MAX_TEXT, "{script:?}");
    if script.keys.iter().any(|key| ["relay", "relay_key", ""].contains(key)) {
        assert!(requests.is_empty() && output.is_error, "{script:?}");
    }
    for request in &requests {
        check_request(&script, &arguments, request);
    }
}

/// Plays a call to its end; what it asked the gateway, and what it said.
fn run(script: &Script, mut next: Next) -> (Vec<Request>, Output) {
    let (mut requests, mut gone) = (Vec::new(), false);
    for answers in 0.. {
        assert!(answers <= MOST_ANSWERS, "no end: {script:?}");
        next = match next {
            Next::Done(output) => return (requests, output),
            Next::Http(need) => {
                assert!(!gone, "asked on after a 404: {script:?}");
                let (status, body) = script.replies[requests.len().min(2)];
                gone = status == 404;
                requests.push(need.request().clone());
                need.answer(match status {
                    0 => Outcome::Failed(Fault::TimedOut),
                    _ => Outcome::Reply(Reply::json(status, body.as_bytes())),
                })
            }
            Next::Upload(need) => need.answer(transfer(script.outcome)),
            Next::Download(need) => {
                requests.push(need.request.clone());
                need.answer(transfer(script.outcome))
            }
            Next::Connect(need) => need.answer(connect(script.outcome)),
            Next::Record(need) => {
                assert!(need.record.to_line(Default::default()).ends_with("}\n"), "{script:?}");
                need.answer()
            }
        };
    }
    unreachable!("the loop ends by return or panic")
}

fn transfer(choice: u8) -> TransferOutcome {
    let path = || "/tmp/x\u{202e}\n".to_owned();
    let fault = match choice & 15 {
        0 => {
            let (id, filename) = (Some("att".into()), path());
            return TransferOutcome::Uploaded { attachment_id: id, filename, size: 1 };
        }
        1 => {
            return TransferOutcome::Uploaded { attachment_id: None, filename: path(), size: 1 };
        }
        2 => return TransferOutcome::Downloaded { path: path(), size: 1 },
        3 => return TransferOutcome::Api(refused()),
        4 => FileFault::NotFound(path()),
        5 => FileFault::NotRegular(path()),
        6 => FileFault::Outside(path(), path()),
        7 => FileFault::Secret(path()),
        8 => FileFault::TooLarge(2, 1),
        9 => FileFault::Exists(path()),
        _ => FileFault::Unusable(path(), "why".into()),
    };
    TransferOutcome::File(fault)
}

fn connect(choice: u8) -> ConnectOutcome {
    let url = "http://h".to_owned();
    match choice & 7 {
        0 | 1 => ConnectOutcome::Connected {
            url,
            agent_name: "z\n".into(),
            stored: (choice & 8 == 0).then(|| "/k".into()),
            only_this_process: choice & 1 == 0,
        },
        2 | 3 => {
            let new_key = (choice & 8 == 0).then(|| "/k".into());
            ConnectOutcome::Refused { url, error: refused(), new_key }
        }
        4 => ConnectOutcome::BadUrl("why".into()),
        5 => ConnectOutcome::KeyStays { url },
        _ => ConnectOutcome::NoKey("why".into()),
    }
}

fn refused() -> ApiError {
    ApiError::Permanent { status: 401, message: "no".into(), suggestion: None }
}

fn check_request(script: &Script, arguments: &Map<String, Value>, request: &Request) {
    assert!(request.path.starts_with("/api/v1/"), "{script:?}");
    assert!(request.path.is_ascii() && !request.path.contains([' ', '\n']), "{script:?}");
    if request.method == Method::Get {
        assert_eq!(request.body, None, "{script:?}");
        return;
    }
    let body: Value = serde_json::from_slice(request.body.as_deref().unwrap_or(b"null"))
        .unwrap_or_else(|error| panic!("{error}: {script:?}"));
    let body = body.as_object().unwrap_or_else(|| panic!("no object: {script:?}"));
    assert!(!body.contains_key("relay") && !body.contains_key("relay_key"), "{script:?}");
    if let (Some(to), Some(Value::String(given))) = (body.get("to"), arguments.get("to")) {
        assert_eq!(to.as_str(), Some(given.trim()), "{script:?}");
    }
    let text = body.get("body").and_then(Value::as_str).unwrap_or_default();
    // A reason may say anything, but it cannot open a marker of its own.
    let typed =
        text.rsplit_once("<!-- agentmail:rename-session").map_or(text, |(before, _)| before);
    assert!(!typed.contains("evil"), "a typed marker left: {script:?}");
    let markers = text.matches("<!--").count();
    assert!(markers <= 1, "{script:?}");
    if markers == 1 {
        let last = text.lines().last().unwrap_or_default();
        let attributes = last
            .strip_prefix("<!-- agentmail:rename-session alias=\"")
            .and_then(|rest| rest.strip_suffix("\" -->"))
            .and_then(|rest| rest.split_once("\" reason=\""))
            .unwrap_or_else(|| panic!("not the form: {last:?}"));
        for attribute in [attributes.0, attributes.1] {
            assert!(!attribute.is_empty() && !attribute.contains('"'), "{last:?}");
        }
    }
}
