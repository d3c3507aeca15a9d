//! Every failure by kind, moment and mode: `tests/fixtures/hook_failures.txt` is the reviewed table.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use zcode_mail_tests::fakes::gateway::{Endpoint, Gateway, Play};
use zcode_mail_tests::fakes::hook::{Hook, Said};
use zcode_mail_tests::programs::{PATIENCE, bin};

const TABLE: &str = include_str!("../fixtures/hook_failures.txt");
const MOMENTS: [&str; 4] = ["subscribe", "ask", "waiting", "decided"];
/// Cells at once: hooks mostly wait.
const WORKERS: usize = 24;

#[derive(Clone, Debug)]
struct Cell {
    kind: &'static str,
    moment: &'static str,
    driven: bool,
    expected: &'static str,
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for line in TABLE.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let mut words = line.split_whitespace();
        let kind = words.next().unwrap();
        for moment in MOMENTS {
            for driven in [true, false] {
                let expected = words.next().unwrap_or_else(|| panic!("{kind} lacks cells"));
                if expected != "~" {
                    cells.push(Cell { kind, moment, driven, expected });
                }
            }
        }
        assert_eq!(words.next(), None, "{kind} has too many cells");
    }
    cells
}

fn reply(status: u16, kind: &str, extra: &[(&'static str, &str)], body: &str) -> Play {
    let mut headers = vec![("content-type", kind.to_owned())];
    headers.extend(extra.iter().map(|(name, value)| (*name, (*value).to_owned())));
    Play::Reply(status, headers, body.to_owned())
}

/// How a kind of failure looks on the wire.
fn play(kind: &str) -> Play {
    const JSON: &str = "application/json";
    const HTML: &str = "text/html";
    const PAGE: &str = "<!doctype html><title>Bad Gateway</title><form>log in</form>";
    let error = r#"{"error":"网关的原话","suggestion":"网关的建议"}"#;
    match kind {
        "409-nobody" => reply(409, JSON, &[], r#"{"error":"网关的原话：没有人类","suggestion":"网关的建议"}"#),
        "409-mode" => reply(409, JSON, &[], r#"{"error":"网关的原话：plan","suggestion":"网关的建议"}"#),
        "429-seconds" => reply(429, JSON, &[("retry-after", "1")], "{}"),
        "429-date" => reply(
            429,
            JSON,
            &[
                ("date", "Mon, 30 Nov 2026 10:00:00 GMT"),
                ("retry-after", "Mon, 30 Nov 2026 10:00:01 GMT"),
            ],
            "{}",
        ),
        "429-body" => reply(429, JSON, &[], r#"{"error":"busy","retry_after":1}"#),
        "429-plain" => reply(429, JSON, &[], "{}"),
        "502-html" => reply(502, HTML, &[], PAGE),
        "200-html" => reply(200, HTML, &[], PAGE),
        "200-empty" => reply(200, JSON, &[], ""),
        "200-null" => reply(200, JSON, &[], "null"),
        "200-truncated" => Play::Raw(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{\"decision\":\"\xe5\x90\x8c\xe6\x84\x8f\""
                .to_vec(),
        ),
        "301" => reply(301, JSON, &[("location", "/elsewhere")], ""),
        "302-login" => reply(302, HTML, &[("location", "http://login.invalid/")], PAGE),
        "reset" => Play::Reset,
        "half-open" => Play::Hold(b"HTTP/1.1 200 OK\r\n".to_vec()),
        "slow-drip" => {
            Play::Drip(b"HTTP/1.1 200 OK\r\nx: ".repeat(20), Duration::from_millis(100))
        }
        "not-http" => Play::Raw(b"SSH-2.0-OpenSSH_9.9\r\n\r\n".to_vec()),
        "closed" => Play::Raw(vec![]),
        status => reply(status.parse().unwrap_or_else(|_| panic!("{status}")), JSON, &[], error),
    }
}

fn fail_from_here(gateway: &Gateway, kind: &str) {
    if kind == "refused" {
        gateway.stop();
        return;
    }
    for endpoint in [Endpoint::Stream, Endpoint::Ask, Endpoint::Withdraw] {
        gateway.always(endpoint, play(kind));
    }
    gateway.drop_streams();
}

fn run(cell: &Cell) -> Said {
    let gateway = Gateway::start();
    let url = match cell.kind {
        "unresolvable" => "http://no-such-host.invalid:8180".to_owned(),
        "tls-to-plain" => gateway.url.replace("http:", "https:"),
        _ => gateway.url.clone(),
    };
    let hook = if cell.driven { Hook::driven(&url) } else { Hook::new(&url) };
    // Long enough for every step on a loaded machine where the end does not depend on it.
    let wait_ms = match (cell.moment, cell.expected) {
        ("decided", _) => 50_000,
        (_, "-P") => 30_000,
        ("waiting", _) => 10_000,
        _ => 5_000,
    };
    let hook = hook.wait_ms(wait_ms);
    match cell.moment {
        "subscribe" => {
            if !matches!(cell.kind, "unresolvable" | "tls-to-plain") {
                fail_from_here(&gateway, cell.kind);
            }
            hook.run()
        }
        "ask" => {
            if cell.kind == "refused" {
                gateway.once(Endpoint::Stream, Play::Last);
            } else {
                gateway.always(Endpoint::Ask, play(cell.kind));
            }
            hook.run()
        }
        "waiting" => {
            let running = hook.start();
            gateway.asked();
            fail_from_here(&gateway, cell.kind);
            Said::of(&running.finish(PATIENCE))
        }
        _ => {
            let running = hook.start();
            let key = gateway.asked();
            gateway.decide(&key, "同意", "");
            fail_from_here(&gateway, cell.kind);
            Said::of(&running.finish(PATIENCE))
        }
    }
}

/// What is wrong with a cell's answer, if anything is.
fn wrong(cell: &Cell, said: &Said) -> Option<String> {
    let (answer, because) = cell.expected.split_at(1);
    let code = match because {
        "P" => "permanent-failure",
        "T" => "temporary-failure",
        _ => "approved-once",
    };
    let mut wrong = Vec::new();
    if said.answer.to_string() != answer || said.code != code || said.status != 0 {
        wrong.push("another answer");
    }
    if said.reason.contains("用户拒绝") {
        wrong.push("it claims that a user refused");
    }
    if said.stdout.contains("doctype") || said.stdout.contains("OpenSSH") {
        wrong.push("it pastes a page to the model");
    }
    if because == "P"
        && (!said.reason.contains("网关的原话") || !said.reason.contains("网关的建议"))
    {
        wrong.push("it hides the gateway's words");
    }
    if because == "T" && answer == "-" && !said.reason.contains("联系不上") {
        wrong.push("it does not say that the gateway is unreachable");
    }
    (!wrong.is_empty()).then(|| format!("{cell:?}: {}: {said:?}", wrong.join(", ")))
}

#[test]
fn every_failure_at_every_moment_gets_the_answer_of_the_table() {
    // Built once, before anything is timed.
    let _ = bin("zcode-mail-hook");
    let cells = cells();
    assert!(cells.len() > 200, "{}", cells.len());
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(what) = wrong(cell, &run(cell)) {
                        found.lock().unwrap().push(what);
                    }
                }
            });
        }
    });
    let found = found.into_inner().unwrap();
    assert!(found.is_empty(), "{} cells:\n{}", found.len(), found.join("\n"));
}

#[test]
fn the_key_follows_no_redirect() {
    let (gateway, other) = (Gateway::start(), Gateway::start());
    let there = format!("{}/api/v1/events/stream", other.url);
    gateway.always(Endpoint::Stream, reply(302, "text/html", &[("location", &there)], ""));
    let said = Hook::driven(&gateway.url).run();
    assert_eq!((said.answer, said.code.as_str()), ('-', "temporary-failure"), "{said:?}");
    assert!(other.seen().is_empty());
}

#[test]
fn a_revoked_key_ends_the_wait_with_one_line() {
    let gateway = Gateway::start();
    let running = Hook::driven(&gateway.url).start();
    gateway.asked();
    gateway.always(Endpoint::Stream, play("401"));
    gateway.drop_streams();
    let said = Said::of(&running.finish(PATIENCE));
    assert_eq!((said.answer, said.code.as_str()), ('-', "permanent-failure"), "{said:?}");
    assert_eq!(said.stderr.lines().count(), 1, "{said:?}");
    assert!(said.stderr.contains("permanent failure"), "{said:?}");
    let streams = gateway.seen().iter().filter(|seen| seen.endpoint == Endpoint::Stream).count();
    assert_eq!(streams, 2);
}

#[test]
fn a_decision_made_while_the_stream_was_down_is_found() {
    for with_id in [true, false] {
        let gateway = Gateway::start();
        let running = Hook::driven(&gateway.url).start();
        let key = gateway.asked();
        if with_id {
            // An event of somebody else gives the stream an id to resume from.
            gateway.publish(&serde_json::json!({"relay_key": "other", "decision": "同意"}));
        }
        gateway.drop_streams();
        gateway.decide(&key, "同意", "");
        let said = Said::of(&running.finish(PATIENCE));
        assert_eq!(said.code, "approved-once", "{with_id} {said:?}");
        let again = gateway.nth(Endpoint::Stream, 2);
        assert_eq!(again.headers.contains_key("last-event-id"), with_id, "{again:?}");
    }
}

#[test]
fn a_proxy_that_holds_the_stream_back_does_not_hold_back_the_decision() {
    let gateway = Gateway::start();
    // The head comes through, events never do.
    let head = zcode_mail_tests::fakes::gateway::stream_head();
    gateway.always(Endpoint::Stream, Play::Hold(head));
    let running = Hook::driven(&gateway.url).start();
    let key = gateway.asked();
    gateway.decide(&key, "同意", "");
    let said = Said::of(&running.finish(PATIENCE));
    assert_eq!(said.code, "approved-once", "{said:?}");
}

#[test]
fn a_gateway_is_trusted_by_the_authority_that_the_settings_name() {
    use zcode_mail_tests::fakes::tls::{fixture, front};
    let gateway = Gateway::start();
    let url = front(&gateway.url);
    let trusted = Hook::driven(&url).set("AGENTMAIL_CA_FILE", &fixture("ca.pem"));
    assert_eq!(trusted.run_decided(&gateway, "同意", "").code, "approved-once");
    let seen = gateway.seen().len();
    for ca in ["", &fixture("other-ca.pem")] {
        for (driven, answer) in [(true, '-'), (false, '.')] {
            let hook = if driven { Hook::driven(&url) } else { Hook::new(&url) };
            let said = hook.set("AGENTMAIL_CA_FILE", ca).run();
            assert_eq!(
                (said.answer, said.code.as_str()),
                (answer, "temporary-failure"),
                "{said:?}"
            );
            assert!(said.stderr.contains("TLS"), "{said:?}");
        }
    }
    assert_eq!(gateway.seen().len(), seen, "no key went to a gateway that is not trusted");
}
