//! The real mail server as a process: its streams, its ends, what it does not do.

#[cfg(unix)]
mod streams;

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use zcode_mail_tests::fakes::mailbox::{Answer, Mailbox};
use zcode_mail_tests::fakes::mcp::Setup;

/// Far above what any end may take, far below what a hang takes.
const SOON: Duration = Duration::from_secs(5);

fn hanging() -> Mailbox {
    Mailbox::start(|_| Answer::Hang)
}

#[test]
fn nothing_happens_at_start() {
    let gateway = hanging();
    let setup = Setup::new(&gateway.url).set("AGENTMAIL_AGENT_KEY", "");
    let mut server = setup.start();
    let id = server.request("initialize", &json!({"protocolVersion": "2025-11-25"}));
    assert_eq!(server.answer(id)["result"]["serverInfo"]["name"], "zcode-mail");
    let id = server.request("tools/list", &json!({}));
    assert_eq!(server.answer(id)["result"]["tools"].as_array().unwrap().len(), 11);
    let (text, is_error) = server.text("read_mail", &json!({}));
    assert!(is_error && text.contains("mail_id"), "{text}");
    server.close();
    let (status, stderr) = server.wait();
    assert!(status.success());
    assert_eq!(stderr, "");
    assert!(gateway.seen().is_empty());
    let left: Vec<_> =
        std::fs::read_dir(setup.home()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["work"], "a file was made");
}

#[test]
fn end_of_input_before_any_message_is_a_silent_success() {
    let mut server = Setup::new("http://127.0.0.1:1").start();
    server.close();
    let (status, stderr) = server.wait();
    assert!(status.success());
    assert_eq!(stderr, "");
}

#[test]
fn what_was_asked_before_the_end_of_input_is_answered() {
    let gateway = Mailbox::start(|_| Answer::json(200, "[]"));
    let mut server = Setup::new(&gateway.url).start();
    let ping = server.request("ping", &json!({}));
    let inbox = server.call("read_inbox", &json!({}));
    server.close();
    assert_eq!(server.answer(ping)["result"], json!({}));
    assert_eq!(server.answer(inbox)["result"]["isError"], false);
    assert!(server.wait().0.success());
}

#[test]
fn a_call_that_hangs_does_not_outlive_the_input_for_long() {
    let gateway = hanging();
    let mut server = Setup::new(&gateway.url).start();
    server.call("read_inbox", &json!({}));
    let _ = gateway.nth("GET /api/v1/mail/inbox", 0);
    let start = Instant::now();
    server.close();
    assert!(server.wait().0.success());
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
}

#[test]
fn signals_end_it_with_a_call_in_flight_and_the_input_open() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let gateway = hanging();
        let mut server = Setup::new(&gateway.url).start();
        server.call("read_inbox", &json!({}));
        let _ = gateway.nth("GET /api/v1/mail/inbox", 0);
        let start = Instant::now();
        server.signal(signal);
        let (status, stderr) = server.wait();
        assert_eq!(status.code(), Some(code));
        assert_eq!(stderr, "");
        assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
        gateway.wait_dropped(1);
    }
}

#[test]
fn a_ping_is_answered_while_a_call_hangs() {
    let gateway = hanging();
    let mut server = Setup::new(&gateway.url).start();
    server.call("read_inbox", &json!({}));
    let _ = gateway.nth("GET /api/v1/mail/inbox", 0);
    let ping = server.request("ping", &json!({}));
    assert_eq!(server.message()["id"], ping);
}

#[test]
fn a_cancelled_call_drops_its_exchange_and_writes_nothing() {
    let gateway = hanging();
    let mut server = Setup::new(&gateway.url).start();
    let call = server.call("read_inbox", &json!({}));
    let _ = gateway.nth("GET /api/v1/mail/inbox", 0);
    server.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call}})
            .to_string(),
    );
    gateway.wait_dropped(1);
    let ping = server.request("ping", &json!({}));
    assert_eq!(server.message()["id"], ping);
    server.close();
    assert!(server.wait().0.success());
}

#[test]
fn twelve_cancelled_calls_leave_room_for_the_next() {
    // More than the client's places for exchanges.
    let gateway = Mailbox::start(|seen| {
        if seen.line.contains("inbox") { Answer::Hang } else { Answer::json(200, "[]") }
    });
    let mut server = Setup::new(&gateway.url).start();
    let calls: Vec<u64> = (0..12).map(|_| server.call("read_inbox", &json!({}))).collect();
    let _ = gateway.nth("GET /api/v1/mail/inbox", 7);
    for call in calls {
        let params = json!({"requestId": call});
        server.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
                .to_string(),
        );
    }
    let (text, is_error) = server.text("list_contacts", &json!({}));
    assert!(!is_error, "{text}");
}
