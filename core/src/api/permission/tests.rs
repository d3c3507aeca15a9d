use alloc::format;
use alloc::string::ToString as _;
use alloc::vec;

use super::*;
use crate::http::Reply;

fn ask() -> Ask {
    Ask {
        question: "允许执行 Bash 吗？".into(),
        options: vec!["同意".into(), "拒绝".into()],
        context: "cargo test".into(),
        session_id: Some("s-1".into()),
        relay_key: "perm_xyz".into(),
    }
}

fn parse(status: u16, body: &str) -> Result<Asked, ApiError> {
    Ask::parse(Outcome::Reply(Reply::json(status, body.as_bytes())))
}

fn state_of(body: &str) -> AskedState {
    parse(200, body).unwrap().state
}

#[test]
fn only_the_contracts_fields_are_sent() {
    let sent = ask().request();
    assert_eq!(sent.path, "/api/v1/permission/request");
    assert_eq!(
        String::from_utf8(sent.body.unwrap()).unwrap(),
        r#"{"question":"允许执行 Bash 吗？","options":["同意","拒绝"],"context":"cargo test","session_id":"s-1","relay_key":"perm_xyz"}"#
    );
    let interactive = Ask { session_id: None, options: vec![], ..ask() };
    assert_eq!(
        String::from_utf8(interactive.request().body.unwrap()).unwrap(),
        r#"{"question":"允许执行 Bash 吗？","context":"cargo test","relay_key":"perm_xyz"}"#
    );
}

#[test]
fn the_gateway_refuses_a_decider_chosen_by_the_client() {
    let error = Ask::decode(br#"{"question":"q","to":"admin"}"#).unwrap_err();
    assert_eq!(error.to_string(), "未知字段 \"to\"");
}

#[test]
fn the_gateway_takes_160_bytes_of_key_and_not_161() {
    let body = |length| format!(r#"{{"question":"q","relay_key":"{}"}}"#, "k".repeat(length));
    assert!(Ask::decode(body(160).as_bytes()).is_ok());
    let error = Ask::decode(body(161).as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "relay_key 过长（上限 160 字节）");
}

#[test]
fn absent_options_are_the_contracts_two() {
    for body in [r#"{"question":"q"}"#, r#"{"question":"q","options":[],"session_id":""}"#] {
        let decoded = Ask::decode(body.as_bytes()).unwrap();
        assert_eq!(decoded.shown_options(), DEFAULT_OPTIONS);
        assert_eq!(decoded.session_id, None);
    }
    assert_eq!(ask().shown_options(), ask().options);
}

#[test]
fn a_decision_counts_only_where_the_reply_says_decided() {
    for body in [
        r#"{"decision":"同意"}"#,
        r#"{"status":"ok","decision":"同意"}"#,
        r#"{"status":"decided","decision":"同意"}"#,
        r#"{"status":"decided","result":"同意"}"#,
        r#"{"status":"duplicate_relay","decision":"同意"}"#,
    ] {
        let AskedState::Decided(answer) = state_of(body) else { panic!("{body}") };
        assert_eq!(answer.decision, "同意");
    }
    for body in [
        "{}",
        r#"{"status":"pending"}"#,
        r#"{"status":"pending","decision":"同意"}"#,
        r#"{"status":"queued","decision":"同意"}"#,
        r#"{"status":7,"decision":"同意"}"#,
        r#"{"status":null,"decision":"同意"}"#,
        r#"{"result":"同意"}"#,
        r#"{"status":"ok","result":"同意"}"#,
        r#"{"status":"decided"}"#,
        r#"{"status":"decided","decision":""}"#,
        r#"{"status":"decided","decision":true}"#,
        r#"{"status":"decided","decision":["同意"]}"#,
        r#"{"data":{"status":"decided","decision":"同意"}}"#,
    ] {
        assert_eq!(state_of(body), AskedState::Pending, "{body}");
    }
    assert_eq!(state_of(r#"{"status":"withdrawn","decision":"同意"}"#), AskedState::Withdrawn);
    assert_eq!(state_of(r#"{"status":"expired","decision":"同意"}"#), AskedState::Expired);
}

#[test]
fn a_reply_about_another_key_is_recognised() {
    let asked = parse(200, r#"{"relay_key":"other"}"#).unwrap();
    assert!(!asked.is_about("perm_xyz"));
    assert!(parse(200, "{}").unwrap().is_about("perm_xyz"));
}

#[test]
fn every_state_survives_the_wire() {
    let answer = Answer {
        decision: "拒绝".into(),
        note: Some("改用 cargo check".into()),
        decided_by: Some("admin".into()),
    };
    for state in [
        AskedState::Pending,
        AskedState::Decided(answer),
        AskedState::Withdrawn,
        AskedState::Expired,
    ] {
        let asked = Asked {
            request_id: Some("r".into()),
            mail_id: Some("m".into()),
            relay_key: Some("k".into()),
            state,
        };
        for repeat in [false, true] {
            assert_eq!(parse(200, &asked.to_json(repeat)), Ok(asked.clone()));
        }
    }
}

#[test]
fn a_409_keeps_reason_and_advice() {
    let body = super::super::error_body("这条链上没有人类", Some("请直接回信说明"), None);
    let ApiError::Permanent { status, message, suggestion } = parse(409, &body).unwrap_err() else {
        panic!("409 is permanent")
    };
    assert_eq!((status, message.as_str()), (409, "这条链上没有人类"));
    assert_eq!(suggestion.as_deref(), Some("请直接回信说明"));
}

#[test]
fn an_id_stays_one_path_segment() {
    let request_id = "a/../b".to_string();
    let look = Look { request_id: request_id.clone() }.request();
    assert_eq!(look.path, "/api/v1/permission/a%2F%2E%2E%2Fb");
    let withdraw = Withdraw { request_id }.request();
    assert_eq!(withdraw.path, "/api/v1/permission/a%2F%2E%2E%2Fb/withdraw");
    assert_eq!(withdraw.body.as_deref(), Some(&b"{}"[..]));
}
