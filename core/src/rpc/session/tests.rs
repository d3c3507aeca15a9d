use alloc::string::ToString as _;

use serde_json::{Value, json};

use super::super::MAX_ID;
use super::*;
use crate::http::{Outcome, Reply};
use crate::lang::Lang;

fn session() -> Session {
    Session::new(Toolbox { lang: Lang::En, ..Toolbox::default() })
}

fn say(session: &mut Session, line: &str) -> Vec<Value> {
    let mut out = Vec::new();
    session.receive(line.as_bytes(), &mut out);
    messages(&out)
}

fn messages(out: &[u8]) -> Vec<Value> {
    let text = core::str::from_utf8(out).unwrap();
    assert!(out.is_empty() || text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn one(session: &mut Session, line: &str) -> Value {
    let mut all = say(session, line);
    assert_eq!(all.len(), 1, "{line}");
    all.remove(0)
}

fn request(id: &str, method: &str, params: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

fn modern(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

fn inbox_call(id: &str) -> String {
    request(id, "tools/call", &json!({"name": "read_inbox"}))
}

fn run(session: &mut Session) -> (CallId, Next) {
    match session.poll_event() {
        Some(Event::Run(call, next)) => (call, next),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_handshake_is_answered_and_may_come_again() {
    let mut session = session();
    for (asked, agreed) in [("2025-06-18", "2025-06-18"), ("2099-12-31", "2025-11-25")] {
        let line = request("0", "initialize", &json!({"protocolVersion": asked}));
        let answer = one(&mut session, &line);
        assert_eq!(answer["result"]["protocolVersion"], agreed);
        assert_eq!(answer["result"]["capabilities"], json!({"tools": {}}));
        assert_eq!(one(&mut session, &request("1", "ping", &json!({})))["result"], json!({}));
    }
    assert!(
        say(&mut session, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).is_empty()
    );
    assert!(matches!(session.poll_event(), Some(Event::Initialized)));
}

#[test]
fn the_stateless_era_is_served_without_and_beside_a_handshake() {
    let mut session = session();
    let found = one(&mut session, &request("\"d\"", "server/discover", &modern(json!({}))));
    assert_eq!(found["result"]["supportedVersions"][0], "2026-07-28");
    assert_eq!(found["result"]["supportedVersions"].as_array().unwrap().len(), 5);
    assert_eq!(found["result"]["resultType"], "complete");
    assert!(found["result"]["ttlMs"].as_u64().is_some());
    let list = one(&mut session, &request("2", "tools/list", &modern(json!({}))));
    assert_eq!(list["result"]["cacheScope"], "public");
    assert_eq!(list["result"]["tools"].as_array().unwrap().len(), 11);
    let handshake = request("3", "initialize", &json!({"protocolVersion": "2025-11-25"}));
    assert!(one(&mut session, &handshake)["result"]["protocolVersion"].is_string());
    let list = one(&mut session, &request("4", "tools/list", &json!({})));
    assert!(list["result"].get("ttlMs").is_none() && list["result"].get("resultType").is_none());
    let ping = one(&mut session, &request("5", "ping", &modern(json!({}))));
    assert_eq!(ping["error"]["code"], METHOD_NOT_FOUND);
}

#[test]
fn a_stateless_client_that_forgets_its_meta_is_told_so_until_it_shakes_hands() {
    let mut session = session();
    let bare = request("1", "tools/list", &json!({}));
    assert!(one(&mut session, &bare)["result"]["tools"].is_array());
    one(&mut session, &request("2", "server/discover", &modern(json!({}))));
    assert_eq!(one(&mut session, &bare)["error"]["code"], INVALID_PARAMS);
    assert_eq!(one(&mut session, &request("3", "ping", &json!({})))["result"], json!({}));
    one(&mut session, &request("4", "initialize", &json!({})));
    assert!(one(&mut session, &bare)["result"]["tools"].is_array());
}

#[test]
fn a_version_that_is_not_ours_is_answered_with_both_lists() {
    let mut params = modern(json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("1900-01-01");
    let answer = one(&mut session(), &request("1", "tools/list", &params));
    assert_eq!(answer["error"]["code"], -32022);
    assert_eq!(answer["error"]["data"]["requested"], "1900-01-01");
    assert_eq!(answer["error"]["data"]["supported"][0], "2026-07-28");
    let bare = one(&mut session(), &request("1", "server/discover", &json!({})));
    assert_eq!(bare["error"]["code"], INVALID_PARAMS);
    let mut params = modern(json!({}));
    params["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
    let answer = one(&mut session(), &request("1", "tools/list", &params));
    assert_eq!(answer["error"]["code"], INVALID_PARAMS);
}

#[test]
fn a_bad_argument_is_a_result_and_an_unknown_tool_is_an_error() {
    let mut session = session();
    let call = |name: &str, arguments: Value| {
        request("1", "tools/call", &json!({"name": name, "arguments": arguments}))
    };
    let answer = one(&mut session, &call("read_mail", json!({})));
    assert_eq!(answer["result"]["isError"], true);
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("mail_id"));
    let answer = one(&mut session, &call("request_permission", json!({})));
    assert_eq!(answer["error"]["code"], INVALID_PARAMS);
    assert!(answer["error"]["message"].as_str().unwrap().contains("session_participants"));
    for bad in [
        json!({"arguments": {}}),
        json!({"name": 5}),
        json!({"name": "read_mail", "arguments": [1]}),
        json!({"name": "read_mail", "arguments": "{}"}),
        json!([1, 2]),
        json!("x"),
        json!(null),
    ] {
        let answer = one(&mut session, &request("1", "tools/call", &bad));
        assert_eq!(answer["error"]["code"], INVALID_PARAMS, "{bad}");
        assert_eq!(answer["id"], 1);
    }
}

#[test]
fn a_call_runs_and_its_answer_carries_the_id_as_written() {
    let mut session = session();
    assert!(say(&mut session, &inbox_call("18446744073709551616")).is_empty());
    let (call, next) = run(&mut session);
    let Next::Http(need) = next else { panic!("{next:?}") };
    let Next::Done(output) = need.answer(Outcome::Reply(Reply::json(200, b"[]"))) else {
        panic!("an empty inbox marks nothing")
    };
    let mut out = Vec::new();
    session.finish(call, &output, &mut out);
    assert!(core::str::from_utf8(&out).unwrap().contains("\"id\":18446744073709551616,"));
    session.finish(call, &output, &mut out);
    assert_eq!(messages(&out).len(), 1);
}

#[test]
fn a_repeated_id_in_flight_is_refused_and_the_first_call_is_unharmed() {
    let mut session = session();
    say(&mut session, &inbox_call("7"));
    let (call, _) = run(&mut session);
    let refused = one(&mut session, &inbox_call("7"));
    assert_eq!(refused["error"]["code"], INVALID_REQUEST);
    assert_eq!(refused.get("id"), None);
    assert!(session.poll_event().is_none());
    let mut out = Vec::new();
    session.finish(call, &Output { text: "done".into(), is_error: false }, &mut out);
    assert_eq!(messages(&out)[0]["id"], 7);
    // Done means free again.
    assert_eq!(one(&mut session, &request("7", "ping", &json!({})))["id"], 7);
}

#[test]
fn a_late_result_after_cancel_is_silent() {
    let mut session = session();
    let cancel = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        )
    };
    say(&mut session, &inbox_call("\"a\""));
    let (call, _) = run(&mut session);
    for other in ["\"b\"", "1", "{\"a\":1}", "null"] {
        assert!(say(&mut session, &cancel(other)).is_empty());
        assert!(session.poll_event().is_none());
    }
    assert!(say(&mut session, &cancel("\"a\"")).is_empty());
    assert!(matches!(session.poll_event(), Some(Event::Abort(aborted)) if aborted == call));
    let mut out = Vec::new();
    session.finish(call, &Output { text: "late".into(), is_error: false }, &mut out);
    session.progress(call, 1, 2, &mut out);
    assert!(out.is_empty());
    assert_eq!(session.in_flight(), 0);
}

#[test]
fn progress_needs_a_token_grows_and_never_reaches_the_end() {
    let mut session = session();
    say(&mut session, &inbox_call("1"));
    let (silent, _) = run(&mut session);
    let params = json!({"name": "read_inbox", "_meta": {"progressToken": "t\u{2028}"}});
    say(&mut session, &request("2", "tools/call", &params));
    let (told, _) = run(&mut session);
    let mut out = Vec::new();
    session.progress(silent, 1, 9, &mut out);
    for done in [3, 3, 2, 5, 9, 10] {
        session.progress(told, done, 9, &mut out);
    }
    let all = messages(&out);
    let seen: Vec<_> = all.iter().map(|m| m["params"]["progress"].as_u64().unwrap()).collect();
    assert_eq!(seen, [3, 5]);
    assert_eq!(all[0]["params"]["progressToken"], "t\u{2028}");
}

#[test]
fn the_call_after_the_last_allowed_one_gets_an_error() {
    let mut session = session();
    for id in 0..MAX_IN_FLIGHT {
        assert!(say(&mut session, &inbox_call(&id.to_string())).is_empty());
    }
    assert_eq!(session.in_flight(), MAX_IN_FLIGHT);
    assert_eq!(one(&mut session, &inbox_call("\"over\""))["error"]["code"], INTERNAL_ERROR);
    assert_eq!(one(&mut session, &request("\"p\"", "ping", &json!({})))["id"], "p");
}

#[test]
fn noise_is_answered_without_an_id_and_only_so_often() {
    let mut session = session();
    let bad = one(&mut session, r#"{"jsonrpc":"2.0","id":7,"method":"#);
    assert_eq!((&bad["error"]["code"], bad.get("id")), (&json!(PARSE_ERROR), None));
    for _ in 1..MAX_NOISE {
        assert_eq!(one(&mut session, "42")["error"]["code"], INVALID_REQUEST);
    }
    assert!(say(&mut session, "hello").is_empty());
    assert_eq!(one(&mut session, &request("1", "ping", &json!({})))["id"], 1);
    assert_eq!(one(&mut session, "hello")["error"]["code"], PARSE_ERROR);
}

#[test]
fn what_needs_no_answer_gets_none() {
    let mut session = session();
    for line in [
        "",
        "  \t",
        "\u{feff}",
        r#"{"jsonrpc":"2.0","method":"notifications/made_up","params":{"a":1}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":99,"error":{"code":-1,"message":"x"}}"#,
    ] {
        assert!(say(&mut session, line).is_empty(), "{line}");
    }
}

#[test]
fn batches_belong_to_one_revision() {
    let mut session = session();
    let batch = format!(
        "[{},{},{},5,[]]",
        request("1", "ping", &json!({})),
        request("2", "initialize", &json!({})),
        r#"{"jsonrpc":"2.0","method":"x"}"#
    );
    assert_eq!(one(&mut session, &batch)["error"]["code"], INVALID_REQUEST);
    say(&mut session, &request("0", "initialize", &json!({"protocolVersion": "2025-03-26"})));
    let answers = say(&mut session, &batch);
    assert_eq!(answers.len(), 4);
    assert_eq!(answers[0]["result"], json!({}));
    assert_eq!(answers[1]["error"]["code"], INVALID_REQUEST);
    assert_eq!(one(&mut session, "[]")["error"]["code"], INVALID_REQUEST);
}

#[test]
fn a_body_that_cannot_be_read_is_refused_with_its_id() {
    let mut session = session();
    let deep = "[".repeat(5000) + &"]".repeat(5000);
    for params in [
        format!(r#"{{"name":"read_inbox","arguments":{{"x":{deep}}}}}"#),
        r#"{"name":"read_inbox","arguments":{"x":1e999}}"#.to_owned(),
        r#"{"name":"read_inbox","arguments":{"x":"\ud800"}}"#.to_owned(),
    ] {
        let line =
            format!(r#"{{"jsonrpc":"2.0","id":"k","method":"tools/call","params":{params}}}"#);
        let answer = one(&mut session, &line);
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!("k"), &json!(INVALID_PARAMS))
        );
    }
    let line = r#"{"jsonrpc":"1.0","id":"k","method":"ping"}"#;
    assert_eq!(one(&mut session, line)["id"], "k");
    let id = format!("\"{}\"", "x".repeat(MAX_ID));
    let refused = one(&mut session, &request(&id, "ping", &json!({})));
    assert_eq!(refused.get("id"), None);
}

#[test]
fn an_oversized_line_is_answered_with_its_id_and_the_next_line_is_read() {
    let mut session = session();
    let long = "x".repeat(MAX_LINE);
    let first =
        format!(r#"{{"jsonrpc":"2.0","id":"big","method":"ping","params":{{"x":"{long}"}}}}"#);
    let second = request("2", "ping", &json!({}));
    let stream = format!("{first}\n{first}\n{second}\n");
    for step in [usize::MAX, 1 << 20, 4096] {
        let (mut pending, mut out) = (Vec::new(), Vec::new());
        for chunk in stream.as_bytes().chunks(step.min(stream.len())) {
            pending.extend_from_slice(chunk);
            loop {
                let (used, more) = session.feed(&pending, &mut out);
                pending.drain(..used);
                if !more {
                    break;
                }
            }
        }
        let all = messages(&out);
        assert_eq!(all.len(), 3, "{step}");
        assert_eq!((&all[0]["id"], &all[0]["error"]["code"]), (&json!("big"), &json!(-32600)));
        assert_eq!(all[1]["id"], "big");
        assert_eq!(all[2]["result"], json!({}));
    }
}

#[test]
fn nothing_is_taken_after_the_end_but_what_runs_may_finish() {
    let mut session = session();
    say(&mut session, &inbox_call("1"));
    let (call, _) = run(&mut session);
    session.close();
    assert!(!session.is_drained());
    assert!(say(&mut session, &request("2", "ping", &json!({}))).is_empty());
    let mut out = Vec::new();
    session.finish(call, &Output { text: String::new(), is_error: false }, &mut out);
    assert_eq!(messages(&out).len(), 1);
    assert!(session.is_drained());
}

#[test]
fn the_tool_list_is_what_every_client_accepts() {
    for lang in [Lang::Zh, Lang::En] {
        let tools: Vec<Value> = serde_json::from_str(tool::list(lang)).unwrap();
        assert!(!tool::list(lang).contains('\n'));
        assert!(tool::list(lang).len() < 16 * 1024);
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, tool::NAMES);
        assert!(tool::guide(lang).chars().count() < 2000);
        for tool in &tools {
            let name = tool["name"].as_str().unwrap();
            assert!(name.len() <= 24 && !name.contains("__"));
            assert!(tool["description"].as_str().unwrap().chars().count() > 20);
            assert_eq!(tool["annotations"].as_object().unwrap().len(), 5, "{name}");
            let schema = &tool["inputSchema"];
            assert_eq!(schema["type"], "object");
            let properties = schema["properties"].as_object().unwrap();
            assert!(!properties.contains_key("relay") && !properties.contains_key("relay_key"));
            for (property, about) in properties {
                assert!(matches!(about["type"].as_str(), Some("string" | "integer")), "{property}");
                assert!(about["description"].is_string());
            }
            for required in schema["required"].as_array().into_iter().flatten() {
                assert!(properties.contains_key(required.as_str().unwrap()));
            }
        }
    }
}
