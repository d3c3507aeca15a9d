//! Event streams: fan-out, ids over restarts, replay, ends (`W-4`, faults 6, 23, 26, 28).

use std::io::Write as _;
use std::net::TcpStream;

use super::*;

const STREAM: &str = "/api/v1/events/stream";

fn mail(world: &World, subject: &str) {
    world
        .ann
        .ok("/api/v1/me/mail/send", &json!({"to": "zcode@/p", "subject": subject, "body": "b"}));
}

fn subjects(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.data["subject"].as_str().unwrap()).collect()
}

#[test]
fn every_stream_of_the_agent_gets_the_event_and_no_other_agents() {
    let world = World::new();
    let (one, two) = (world.zcode.stream(STREAM, None), world.zcode.stream(STREAM, None));
    let other = world.pi.stream(STREAM, None);
    mail(&world, "s");
    let (first, second) = (one.next(), two.next());
    assert_eq!(first, second);
    assert_eq!((first.name.as_str(), &first.data["subject"]), ("new_mail", &json!("s")));
    assert_eq!(other.waiting(), []);
}

#[test]
fn the_stream_is_told_not_to_be_buffered_or_cached() {
    let world = World::new();
    let http = ureq::Agent::config_builder().proxy(None).build().new_agent();
    let reply = http
        .get(format!("{}{STREAM}", world.gateway.url))
        .header("Authorization", &world.zcode.headers[0].1)
        .call()
        .unwrap();
    let header = |name: &str| reply.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "text/event-stream");
    assert_eq!(header("cache-control"), "no-cache");
    assert_eq!(header("x-accel-buffering"), "no");
}

#[test]
fn a_reconnect_gets_what_it_missed_also_over_a_restart_and_ids_only_grow() {
    let world = World::new();
    let stream = world.zcode.stream(STREAM, None);
    mail(&world, "seen");
    let seen = stream.next();
    drop(stream);
    mail(&world, "missed 1");
    let world = world.restart();
    mail(&world, "missed 2");
    let stream = world.zcode.stream(STREAM, Some(&seen.id.to_string()));
    let missed = [stream.next(), stream.next()];
    assert_eq!(subjects(&missed), ["missed 1", "missed 2"]);
    mail(&world, "live");
    let live = stream.next();
    assert_eq!(live.data["subject"], "live");
    assert!(seen.id < missed[0].id && missed[0].id < missed[1].id && missed[1].id < live.id);
}

#[test]
fn a_decision_taken_while_nobody_listened_is_replayed() {
    let world = World::new();
    let session = world.session("workspace");
    let stream = world.zcode.stream(STREAM, None);
    mail(&world, "mark");
    let mark = stream.next().id;
    drop(stream);
    let id = world.ask(&session, "k1");
    world.ann.ok(&format!("/api/v1/me/permissions/{id}/decide"), &json!({"decision": "同意"}));
    let world = world.restart();
    let event = world.zcode.stream(STREAM, Some(&mark.to_string())).next();
    assert_eq!(
        (event.name.as_str(), &event.data["relay_key"]),
        ("permission_decision", &json!("k1"))
    );
}

#[test]
fn a_first_connection_replays_nothing_and_strange_ids_have_their_rules() {
    let world = World::new();
    mail(&world, "old");
    let last = world.count("SELECT max(id) FROM events");
    let marked = |last_id: Option<&str>| {
        let stream = world.zcode.stream(STREAM, last_id);
        mail(&world, "mark");
        let mut before = 0;
        while stream.next().data["subject"] != "mark" {
            before += 1;
        }
        before
    };
    assert_eq!(marked(None), 0, "first connection");
    let future = (last + 1_000_000).to_string();
    for nothing in ["", "x", "-1", "1.5", "99999999999999999999", " ", &future] {
        assert_eq!(marked(Some(nothing)), 0, "{nothing:?}");
    }
    // An id that was never this agent's replays what is still there.
    assert_eq!(world.zcode.stream(STREAM, Some("0")).next().data["subject"], "old");
}

#[test]
fn a_replay_is_bounded_to_the_newest_1024() {
    let world = World::new();
    let mut database = world.database();
    let bulk = database.transaction().unwrap();
    bulk.execute("INSERT INTO names (name, kind) VALUES ('zz', 'user')", []).unwrap();
    for number in 0..1500 {
        bulk.execute(
            "INSERT INTO events (recipient, name, data, created_at)
             VALUES ('zcode', 'new_mail', ?1, 0)",
            [json!({"number": number}).to_string()],
        )
        .unwrap();
    }
    bulk.commit().unwrap();
    let stream = world.zcode.stream(STREAM, Some("0"));
    assert_eq!(stream.next().data["number"], 1500 - 1024);
    for _ in 1..1023 {
        stream.next();
    }
    assert_eq!(stream.next().data["number"], 1499);
}

#[test]
fn stopping_the_gateway_ends_streams_and_exits_0_at_once() {
    let world = World::new();
    let streams = [world.zcode.stream(STREAM, None), world.ann.stream("/api/v1/me/events", None)];
    let idle = TcpStream::connect(world.gateway.address()).unwrap();
    let before = std::time::Instant::now();
    let (status, log) = world.gateway.stop();
    assert!(status.success(), "{status} {log}");
    assert!(before.elapsed() < Duration::from_secs(30));
    assert!(streams.iter().all(Stream::ends));
    drop(idle);
}

#[test]
fn a_revoked_key_ends_its_streams_and_gets_401() {
    let world = World::new();
    let stream = world.zcode.stream(STREAM, None);
    let keys = zcode_mail_tests::programs::run(
        "zcode-mail",
        &["agent-key", "list", "--data", world.gateway.data.to_str().unwrap()],
        &[],
    );
    let keys = String::from_utf8(keys.stdout).unwrap();
    let line = keys.lines().find(|line| line.contains("\tzcode\t")).unwrap();
    let _ = world.gateway.operator(&["agent-key", "revoke", line.split('\t').next().unwrap()]);
    mail(&world, "not for a revoked key");
    assert!(stream.ends());
    assert_eq!(world.zcode.get(STREAM).status, 401);
}

#[test]
fn a_person_who_logs_out_hears_no_more() {
    let world = World::new();
    let link = world.gateway.operator(&["user", "login-link", "ann", "--url", &world.gateway.url]);
    let reply = Client::new("", None).get(&link);
    let cookie = reply.header("set-cookie").split(';').next().unwrap().to_owned();
    let browser = Client::new(&world.gateway.url, None).with("Cookie", &cookie);
    let stream = browser.stream("/api/v1/me/events", None);
    assert_eq!(browser.with("Origin", &world.gateway.url).form("/logout", "").status, 303);
    world.ask(&world.session("workspace"), "k1");
    assert!(stream.ends());
    assert_eq!(browser.get("/api/v1/me/events").status, 401);
}

#[test]
fn a_reader_that_does_not_read_is_dropped_and_the_gateway_goes_on() {
    let world = World::new();
    let mut slow = TcpStream::connect(world.gateway.address()).unwrap();
    let head = format!(
        "GET {STREAM} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
        world.zcode.key()
    );
    slow.write_all(head.as_bytes()).unwrap();
    let quick = world.zcode.stream(STREAM, None);
    // More than a queue and the socket's buffers hold.
    let body = json!({
        "to": format!("zcode@/{}", "p".repeat(4000)), "subject": "s".repeat(2000), "body": "b",
    });
    for _ in 0..1500 {
        world.ann.ok("/api/v1/me/mail/send", &body);
    }
    for _ in 0..1500 {
        quick.next();
    }
    // The connection is closed although its reader still reads nothing.
    slow.set_nonblocking(true).unwrap();
    eventually("the slow connection is closed", || {
        let error = slow.write(b"x").err()?;
        let closed = [std::io::ErrorKind::ConnectionReset, std::io::ErrorKind::BrokenPipe];
        closed.contains(&error.kind()).then_some(())
    });
}
