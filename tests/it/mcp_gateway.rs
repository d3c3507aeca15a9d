//! The real mail server towards the gateway: being there, keys, refusals, another gateway.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use zcode_mail_tests::fakes::mailbox::{Answer, Mailbox, Seen};
use zcode_mail_tests::fakes::mcp::Setup;

const SENT: &str = r#"{"mail_id":"m2","session_id":"s1","session_alias":"fix"}"#;

fn empty_inbox() -> Mailbox {
    Mailbox::start(|_| Answer::json(200, r#"{"mails":[]}"#))
}

fn mail() -> serde_json::Value {
    json!({"to": "admin", "subject": "s", "body": "b"})
}

#[test]
fn the_first_call_registers_and_a_heartbeat_follows_at_once() {
    let gateway = empty_inbox();
    let mut server = Setup::new(&gateway.url).start();
    let (text, is_error) = server.text("read_inbox", &json!({}));
    assert!(!is_error, "{text}");
    let register = gateway.nth("POST /api/v1/agent/register", 0);
    assert_eq!(register.json(), json!({"name": "zcode", "platform": "zcode", "workspaces": []}));
    assert_eq!(register.headers["authorization"], "Bearer am_test");
    assert!(!register.headers.contains_key("x-agent-secret"));
    let beat = gateway.nth("POST /api/v1/agent/heartbeat", 0);
    // Both lists are absent, which keeps what the gateway has.
    assert_eq!(beat.json(), json!({"mode_enforcement": "advisory"}));
    let inbox = gateway.nth("GET /api/v1/mail/inbox", 0);
    assert_eq!(inbox.line, "GET /api/v1/mail/inbox?status=unread&limit=5");
    assert!(register.at < inbox.at);
    let _ = server.text("read_inbox", &json!({}));
    assert_eq!(gateway.lines("POST /api/v1/agent/register").len(), 1);
    assert!(gateway.lines("GET /api/v1/events").is_empty(), "it opened an event stream");
}

#[test]
fn a_client_that_settles_in_is_registered_without_a_call() {
    let gateway = empty_inbox();
    let mut server = Setup::new(&gateway.url).start();
    let id = server.request("initialize", &json!({"protocolVersion": "2025-11-25"}));
    let _ = server.answer(id);
    server.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let _ = gateway.nth("POST /api/v1/agent/heartbeat", 0);
    assert_eq!(gateway.seen()[0].line, "POST /api/v1/agent/register");
}

#[test]
fn a_gateway_that_fails_at_registering_costs_no_word_and_no_call() {
    let gateway = Mailbox::start_raw(|seen| match seen.line.contains("/agent/") {
        true => Answer::json(503, "{}"),
        false => Answer::json(200, "[]"),
    });
    let mut server = Setup::new(&gateway.url).start();
    let (text, is_error) = server.text("read_inbox", &json!({}));
    assert!(!is_error, "{text}");
    server.close();
    assert_eq!(server.wait().1, "");
    assert_eq!(gateway.lines("POST /api/v1/agent/register").len(), 2, "first contact, first beat");
}

#[test]
fn a_key_that_is_refused_is_said_once_and_stops_the_heartbeats() {
    for refused in ["register", "heartbeat"] {
        let gateway = Mailbox::start_raw(move |seen| match seen.line.contains(refused) {
            true => Answer::json(401, r#"{"error":"unknown key"}"#),
            false => Answer::json(200, "{}"),
        });
        let mut server = Setup::new(&gateway.url).start();
        let _ = server.text("list_contacts", &json!({}));
        let _ = gateway.nth(&format!("POST /api/v1/agent/{refused}"), 0);
        let _ = server.text("list_contacts", &json!({}));
        server.close();
        let (_, stderr) = server.wait();
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(
            stderr.contains("unknown key") && stderr.contains("no more heartbeats"),
            "{stderr}"
        );
        assert!(!stderr.contains("am_test"));
    }
}

#[test]
fn the_environments_key_goes_before_the_file_and_the_file_before_the_secret() {
    let gateway = empty_inbox();
    let setup = Setup::new(&gateway.url).set("AGENTMAIL_AGENT_SECRET", "shared");
    let setup = setup.set("AGENTMAIL_AGENT_KEY", "");
    let ask = |setup: &Setup| -> Seen {
        let before = gateway.lines("GET").len();
        let mut server = setup.start();
        let _ = server.text("read_inbox", &json!({}));
        gateway.nth("GET", before)
    };
    let shared = ask(&setup);
    assert_eq!(shared.headers["x-agent-secret"], "shared");
    assert_eq!(shared.headers["x-agent-name"], "zcode");
    assert!(!shared.headers.contains_key("authorization"));
    let folder = setup.home().join(".agentmail");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("agent.key"), "am_file\n").unwrap();
    assert_eq!(ask(&setup).headers["authorization"], "Bearer am_file");
    let setup = setup.set("AGENTMAIL_AGENT_KEY", "am_env");
    assert_eq!(ask(&setup).headers["authorization"], "Bearer am_env");
}

#[test]
fn without_any_key_one_is_made_stored_privately_and_printed_once() {
    let gateway = empty_inbox();
    let setup = Setup::new(&gateway.url).set("AGENTMAIL_AGENT_KEY", "");
    let run = || {
        let mut server = setup.start();
        let _ = server.text("read_inbox", &json!({}));
        server.close();
        server.wait().1
    };
    let printed = run();
    let path = setup.home().join(".agentmail/agent.key");
    let key = std::fs::read_to_string(&path).unwrap();
    let key = key.trim();
    assert!(key.starts_with("am_") && key.len() == 67, "{key}");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let folder = path.parent().unwrap();
    assert_eq!(std::fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(printed.matches(key).count(), 1, "{printed}");
    assert!(printed.contains("agent-key register zcode"), "{printed}");
    let bearer = format!("Bearer {key}");
    assert_eq!(gateway.nth("GET", 0).headers["authorization"], bearer);
    assert_eq!(run(), "");
    assert_eq!(gateway.nth("GET", 1).headers["authorization"], bearer);
}

#[test]
fn a_place_for_the_key_that_cannot_be_is_an_error_that_says_so() {
    let gateway = empty_inbox();
    let setup = Setup::new(&gateway.url).set("AGENTMAIL_AGENT_KEY", "");
    std::fs::write(setup.home().join("elsewhere"), "am_evil").unwrap();
    std::fs::create_dir(setup.home().join(".agentmail")).unwrap();
    let link = setup.home().join(".agentmail/agent.key");
    std::os::unix::fs::symlink(setup.home().join("elsewhere"), link).unwrap();
    let homeless = Setup::new(&gateway.url).set("AGENTMAIL_AGENT_KEY", "").set("HOME", "");
    for (setup, why) in [(setup, "agent.key cannot be used"), (homeless, "HOME is not set")] {
        let mut server = setup.start();
        let (text, is_error) = server.text("read_inbox", &json!({}));
        assert!(is_error && text.contains(why), "{text}");
    }
    assert!(gateway.seen().is_empty());
}

#[test]
fn only_what_changes_nothing_is_tried_again_and_only_so_often() {
    let gateway = Mailbox::start(|_| Answer::json(502, r#"{"error":"bad day"}"#));
    let mut server = Setup::new(&gateway.url).start();
    let (text, is_error) = server.text("read_inbox", &json!({}));
    assert!(is_error && text.contains("bad day") && text.contains("502"), "{text}");
    assert_eq!(gateway.lines("GET").len(), 3);
    let (text, is_error) = server.text("send_mail", &mail());
    assert!(is_error && text.contains("may have gone out"), "{text}");
    assert_eq!(gateway.lines("POST /api/v1/mail/send").len(), 1);
}

#[test]
fn a_refusal_is_told_with_its_reason_and_not_repeated() {
    for (status, body, said) in [
        (400, r#"{"error":"未知字段 \"x\""}"#, "未知字段"),
        (401, r#"{"error":"key revoked"}"#, "stop retrying"),
        (403, r#"{"error":"budget used up"}"#, "budget used up"),
        (404, r#"{"error":"no alias refactr"}"#, "Do not retry with .new"),
        (413, r#"{"error":"too large"}"#, "too large"),
        (429, r#"{"error":"slow down","retry_after":42}"#, "42 seconds"),
    ] {
        let gateway = Mailbox::start(move |_| Answer::json(status, body));
        let mut server = Setup::new(&gateway.url).start();
        let (text, is_error) = server.text("send_mail", &mail());
        assert!(is_error && text.contains(said), "{status}: {text}");
        let sends = gateway.lines("POST /api/v1/mail/send");
        assert_eq!(sends.len(), 1, "{status}");
        assert!(
            gateway.seen().iter().all(|seen| !String::from_utf8_lossy(&seen.body).contains(".new"))
        );
    }
}

#[test]
fn a_redirect_is_not_followed() {
    let other = empty_inbox();
    let target = format!("{}/api/v1/mail/inbox", other.url);
    let gateway =
        Mailbox::start(move |_| Answer::Reply(302, vec![("location", target.clone())], Vec::new()));
    let mut server = Setup::new(&gateway.url).start();
    let (text, is_error) = server.text("read_inbox", &json!({}));
    assert!(is_error && text.contains("302"), "{text}");
    assert!(other.seen().is_empty());
}

#[test]
fn a_page_or_garbage_in_the_gateways_place_is_named() {
    for (answer, said) in [
        (
            Answer::Reply(200, vec![("content-type", "text/html".into())], b"<html>".to_vec()),
            "not an AgentMail gateway",
        ),
        (Answer::json(200, "{\"mails\":"), "not an AgentMail gateway"),
        (Answer::Raw(b"SSH-2.0-x\r\n".to_vec()), "does not speak HTTP"),
        (Answer::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{".to_vec()), "broke before"),
        (Answer::Raw(Vec::new()), "broke before"),
    ] {
        let gateway = Mailbox::start(move |_| answer.clone());
        let mut server = Setup::new(&gateway.url).start();
        let (text, is_error) = server.text("list_contacts", &json!({}));
        assert!(is_error && text.contains(said), "{said}: {text}");
    }
}

#[test]
fn a_connection_that_the_gateway_closed_meanwhile_loses_no_mail() {
    let gateway = Mailbox::start(|_| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{SENT}", SENT.len());
        Answer::Raw(head.into_bytes())
    });
    let mut server = Setup::new(&gateway.url).start();
    for _ in 0..5 {
        let (text, is_error) = server.text("send_mail", &mail());
        assert!(!is_error, "{text}");
    }
    assert_eq!(gateway.lines("POST /api/v1/mail/send").len(), 5);
}

#[test]
fn connections_are_kept_and_used_again() {
    let gateway = empty_inbox();
    let mut server = Setup::new(&gateway.url).start();
    for _ in 0..20 {
        let _ = server.text("read_inbox", &json!({}));
    }
    let most = gateway.seen().iter().map(|seen| seen.connection).max().unwrap();
    assert!(most < 3, "{} connections for 20 calls", most + 1);
}

#[test]
fn the_marking_that_a_gateway_understands_is_remembered() {
    let gateway = Mailbox::start(|seen| match seen.line.as_str() {
        "POST /api/v1/mail/read" if seen.json().get("ids").is_none() => {
            Answer::json(400, r#"{"error":"未知字段 \"mail_ids\""}"#)
        }
        "POST /api/v1/mail/read" => Answer::json(200, "{}"),
        _ => Answer::json(200, r#"{"mails":[{"mail_id":"a"},{"mail_id":"b"},{"mail_id":"c"}]}"#),
    });
    let mut server = Setup::new(&gateway.url).start();
    for _ in 0..2 {
        let (text, is_error) = server.text("read_inbox", &json!({"limit": 2}));
        assert!(!is_error && !text.contains("failed"), "{text}");
    }
    let _ = server.text("read_inbox", &json!({"status": "all"}));
    let marks: Vec<_> = gateway
        .seen()
        .into_iter()
        .filter(|seen| seen.line == "POST /api/v1/mail/read")
        .map(|seen| seen.json())
        .collect();
    assert_eq!(
        marks,
        [json!({"mail_ids": ["a", "b"]}), json!({"ids": ["a", "b"]}), json!({"ids": ["a", "b"]})]
    );
}

#[test]
fn a_stored_key_never_goes_to_another_host_on_the_models_word() {
    let (home, other) = (empty_inbox(), empty_inbox());
    let mut server = Setup::new(&home.url).set("AGENTMAIL_AGENT_SECRET", "shared").start();
    for key in ["", "am_test", "shared"] {
        let mut arguments = json!({"url": other.url});
        if !key.is_empty() {
            arguments["agent_key"] = key.into();
        }
        let (text, is_error) = server.text("connect_to_server", &arguments);
        assert!(is_error && text.contains("belongs to another gateway"), "{text}");
    }
    assert!(other.seen().is_empty());
    let (text, is_error) =
        server.text("connect_to_server", &json!({"url": other.url, "agent_key": "am_other"}));
    assert!(!is_error && text.contains("this process only"), "{text}");
    let _ = server.text("read_inbox", &json!({}));
    let _ = other.nth("POST /api/v1/agent/heartbeat", 0);
    let inbox = other.nth("GET /api/v1/mail/inbox", 0);
    assert_eq!(inbox.headers["authorization"], "Bearer am_other");
    assert!(home.lines("GET").is_empty());
    // And back home the stored key counts again.
    let (text, is_error) = server.text("connect_to_server", &json!({"url": home.url}));
    assert!(!is_error, "{text}");
    let _ = server.text("read_inbox", &json!({}));
    assert_eq!(home.nth("GET", 0).headers["authorization"], "Bearer am_test");
    assert!(other.seen().iter().all(|seen| seen.headers["authorization"] == "Bearer am_other"));
}

#[test]
fn a_given_key_that_works_at_home_is_kept_when_there_is_none() {
    let gateway = Mailbox::start_raw(|seen| match seen.headers["authorization"].as_str() {
        "Bearer am_given" => Answer::json(200, "{}"),
        _ => Answer::json(401, "{}"),
    });
    let setup = Setup::new(&gateway.url).set("AGENTMAIL_AGENT_KEY", "");
    let mut server = setup.start();
    let path = setup.home().join(".agentmail/agent.key");
    let (text, is_error) = server.text("connect_to_server", &json!({"agent_key": "am_given"}));
    assert!(!is_error && text.contains("agent.key"), "{text}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "am_given\n");
    let (text, is_error) = server.text("list_contacts", &json!({}));
    assert!(!is_error, "{text}");
    let (text, is_error) = server.text("connect_to_server", &json!({"agent_key": "am_bad"}));
    assert!(is_error && text.contains("not valid"), "{text}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "am_given\n");
    for url in ["http://", "https://user:pw@host", "http://h?x=1"] {
        let (text, is_error) = server.text("connect_to_server", &json!({"url": url}));
        assert!(is_error && text.contains("cannot be used"), "{text}");
    }
}

#[test]
fn every_mail_of_the_models_stands_in_the_turn_log() {
    let number = AtomicUsize::new(0);
    let gateway = Mailbox::start(move |_| match number.fetch_add(1, Ordering::Relaxed) {
        1 => Answer::json(403, "{}"),
        _ => Answer::json(200, SENT),
    });
    let setup = Setup::new(&gateway.url);
    let log = setup.home().join("turn.jsonl");
    let setup = setup.set("AGENTMAIL_TURN_LOG", log.to_str().unwrap());
    let mut server = setup.start();
    let mut answer = mail();
    answer["reply_to"] = "m1".into();
    let _ = server.text("send_mail", &answer);
    let (_, refused) = server.text("send_mail", &mail());
    assert!(refused);
    let _ = server.text("forward_mail", &json!({"mail_id": "m1", "to": "pi"}));
    let text = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert_eq!(lines[0]["mail_id"], "m2");
    assert_eq!(lines[0]["session_id"], "s1");
    assert_eq!(lines[0]["reply_to"], "m1");
    assert!(lines[0]["t"].as_i64().unwrap() > 1_600_000_000_000);
    assert_eq!(lines[1]["reply_to"], "");
}

#[test]
fn a_proxy_is_used_for_other_hosts_and_never_for_this_one() {
    let proxy = Mailbox::start_raw(|_| Answer::json(200, "[]"));
    let gateway = empty_inbox();
    let mut server = Setup::new(&gateway.url).set("AGENTMAIL_PROXY", &proxy.url).start();
    let _ = server.text("read_inbox", &json!({}));
    assert!(proxy.seen().is_empty());
    let away = Setup::new("http://mail.invalid:8180/x").set("AGENTMAIL_PROXY", &proxy.url);
    let away = away.set("http_proxy", "http://127.0.0.1:1");
    let (text, is_error) = away.start().text("list_contacts", &json!({}));
    assert!(!is_error, "{text}");
    let seen = proxy.nth("GET", 0);
    assert_eq!(seen.line, "GET http://mail.invalid:8180/x/api/v1/agent/contacts");
    assert_eq!(seen.headers["host"], "mail.invalid:8180");
}

#[test]
fn a_field_that_the_gateway_does_not_know_is_left_out_from_then_on() {
    let gateway = Mailbox::start_raw(|seen| match seen.line.as_str() {
        "POST /api/v1/agent/heartbeat" => {
            Answer::json(200, r#"{"status":"ok","unknown_fields":["mode_enforcement"]}"#)
        }
        _ => Answer::json(200, "{}"),
    });
    let mut server = Setup::new(&gateway.url).set("AGENTMAIL_LOG", "info").start();
    let _ = server.text("list_contacts", &json!({}));
    let first = gateway.nth("POST /api/v1/agent/heartbeat", 0);
    assert_eq!(first.json(), json!({"mode_enforcement": "advisory"}));
    // Connecting again beats at once and drops a beat that still waits for its answer: the call in
    // between leaves the answer the time of an exchange.
    let left_out = (1..50).any(|n| {
        let _ = server.text("list_contacts", &json!({}));
        let (text, is_error) = server.text("connect_to_server", &json!({}));
        assert!(!is_error, "{text}");
        gateway.nth("POST /api/v1/agent/heartbeat", n).json() == json!({})
    });
    assert!(left_out);
    server.close();
    let (_, stderr) = server.wait();
    assert!(stderr.contains("does not know mode_enforcement"), "{stderr}");
}

#[test]
fn https_is_spoken_with_the_authority_that_the_settings_name_and_no_other() {
    use zcode_mail_tests::fakes::tls::{fixture, front};
    let gateway = Mailbox::start_raw(|_| {
        let close = ("connection", "close".to_owned());
        Answer::Reply(200, vec![close], b"{}".to_vec())
    });
    let url = front(&gateway.url);
    let trusting = Setup::new(&url).set("AGENTMAIL_CA_FILE", &fixture("ca.pem"));
    let (text, is_error) = trusting.start().text("list_contacts", &json!({}));
    assert!(!is_error, "{text}");
    assert_eq!(gateway.nth("GET", 0).headers["authorization"], "Bearer am_test");
    let before = gateway.seen().len();
    for authority in [String::new(), fixture("other-ca.pem"), fixture("missing.pem")] {
        let setup = Setup::new(&url).set("AGENTMAIL_CA_FILE", &authority);
        let (text, is_error) = setup.start().text("list_contacts", &json!({}));
        assert!(is_error && text.contains("TLS with the gateway failed"), "{authority}: {text}");
    }
    assert_eq!(gateway.seen().len(), before, "a key went to a host without a trusted certificate");
}
