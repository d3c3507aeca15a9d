use alloc::format;
use alloc::vec;

use super::*;
use crate::hook::outcome::Answer as Said;
use crate::hook::{Opening, open};
use crate::http::Reply;
use crate::render::LIMIT;

const STREAM: Reply<'static> = Reply {
    status: 200,
    content_type: Some("text/event-stream; charset=utf-8"),
    retry_after: None,
    date: None,
    body: b"",
};
const PENDING: &str =
    r#"{"request_id":"r1","mail_id":"m1","status":"pending","relay_key":"perm_1"}"#;

/// A machine, its clock, and everything it said, one line each.
struct World {
    machine: Machine,
    now: u64,
    log: Vec<String>,
}

impl World {
    fn new(env: &[(&str, &str)]) -> Self {
        Self::of(env, r#"{"command":"ls"}"#, false)
    }

    fn driven() -> Self {
        Self::new(&[("AGENTMAIL_SESSION_ID", "mail-1")])
    }

    fn of(env: &[(&str, &str)], input: &str, granted: bool) -> Self {
        let settings = Settings::from_env(|name| {
            env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        });
        let text = format!(
            r#"{{"hook_event_name":"PermissionRequest","session_id":"z1","tool_name":"Bash",
                "requestId":"perm_1","tool_input":{input}}}"#
        );
        let Opening::Ask(call) = open(text.as_bytes(), &settings) else { panic!("{text}") };
        let setup = Setup { call: &call, settings: &settings, granted, nonce: 7, now: Millis(0) };
        let mut world = Self { machine: Machine::new(setup), now: 0, log: vec![] };
        world.drain();
        world
    }

    fn drain(&mut self) -> Option<Wait> {
        for _ in 0..64 {
            let line = match self.machine.poll_output() {
                Output::OpenStream(id, request) => match request.last_event_id {
                    None => format!("open {}", id.0),
                    Some(last) => format!("open {} after {last}", id.0),
                },
                Output::CloseStream(id) => format!("close {}", id.0),
                Output::Exchange(id, request) => {
                    format!("{} {} {}", request.method.as_str(), id.0, request.path)
                }
                Output::Remember { session, tool } => format!("remember {session} {tool}"),
                Output::Done(verdict) => {
                    let said = match verdict.answer {
                        Said::Approve => "approve",
                        Said::Block(_) => "block",
                        Said::NoOpinion => "nothing",
                    };
                    let line = format!("{said}: {}", verdict.because.code());
                    if self.log.last() != Some(&line) {
                        self.log.push(line);
                    }
                    return None;
                }
                Output::Wait(wait) => return Some(wait),
            };
            self.log.push(line);
        }
        panic!("endless output: {:?}", self.log);
    }

    fn feed(&mut self, input: Input<'_>) -> &mut Self {
        self.machine.handle(input, Millis(self.now));
        self.drain();
        self
    }

    fn at(&mut self, now: u64) -> &mut Self {
        self.now = now;
        self.feed(Input::Tick)
    }

    /// Lets time pass to the instant that the machine waits for.
    fn sleep(&mut self) -> Wait {
        let wait = self.drain().expect("the machine waits");
        self.at(wait.until.unwrap().0);
        wait
    }

    fn opened(&mut self, id: u32) -> &mut Self {
        self.feed(Input::StreamReply(StreamId(id), Outcome::Reply(STREAM)))
    }

    fn reply(&mut self, id: u32, status: u16, body: &str) -> &mut Self {
        let reply = Reply::json(status, body.as_bytes());
        self.feed(Input::Replied(ExchangeId(id), Outcome::Reply(reply)))
    }

    fn event(&mut self, id: u32, json: &str) -> &mut Self {
        let text = format!("id: 9\nevent: permission_decision\ndata: {json}\n\n");
        self.feed(Input::Chunk(StreamId(id), text.as_bytes()))
    }

    fn asked() -> Self {
        let mut world = Self::driven();
        world.opened(1).reply(2, 200, PENDING);
        world
    }

    #[track_caller]
    fn said(&self, expected: &[&str]) {
        assert_eq!(self.log, expected);
    }

    #[track_caller]
    fn ends(&self, expected: &str) {
        assert_eq!(self.log.last().map(String::as_str), Some(expected), "{:?}", self.log);
    }
}

fn decision(text: &str) -> String {
    format!(
        r#"{{"mail_id":"m1","decision":"{text}","session_id":"mail-1","relay_key":"perm_1","relay_kind":"permission","decided_by":"han","note":"n"}}"#
    )
}

#[test]
fn it_subscribes_sees_the_200_asks_and_waits_for_its_own_key() {
    let mut world = World::driven();
    world.said(&["open 1"]);
    world.opened(1).reply(2, 200, PENDING).event(1, &decision("同意"));
    world.said(&[
        "open 1",
        "POST 2 /api/v1/permission/request",
        "close 1",
        "approve: approved-once",
    ]);
}

#[test]
fn always_is_remembered_before_the_answer() {
    let mut world = World::asked();
    world.event(1, &decision("一直同意"));
    assert_eq!(world.log[2..], ["remember mail-1 Bash", "close 1", "approve: approved-always"]);
}

#[test]
fn a_remembered_call_asks_nobody() {
    let world = World::of(&[], r#"{"command":"ls"}"#, true);
    world.said(&["approve: granted"]);
}

#[test]
fn every_other_text_is_a_refusal() {
    for (text, code) in [
        ("拒绝", "refused"),
        ("deny", "refused"),
        ("同意吗", "unclear-decision"),
        ("", "unclear-decision"),
    ] {
        let mut world = World::asked();
        world.event(1, &decision(text));
        world.ends(&format!("block: {code}"));
    }
}

#[test]
fn decisions_about_anything_else_are_ignored() {
    let yes = decision("同意");
    for other in [
        yes.replace("perm_1", "perm_2"),
        yes.replace("perm_1", "perm_1 "),
        yes.replace(r#""relay_key":"perm_1","#, ""),
        yes.replace("permission\"", "summary\""),
        yes.replace("\"m1\"", "\"m2\""),
        yes.replace("mail-1", "mail-2"),
        yes.replace('{', "["),
        yes.replace(r#""decision":"同意""#, r#""decision":"同意","decision":"同意""#),
    ] {
        let mut world = World::asked();
        world.event(1, &other);
        assert!(world.drain().is_some(), "{other}: {:?}", world.log);
    }
    for same in [
        yes.replace(r#""relay_kind":"permission","#, ""),
        yes.replace(r#""mail_id":"m1","#, ""),
        yes.replace(r#""session_id":"mail-1","#, ""),
    ] {
        let mut world = World::asked();
        world.event(1, &same).ends("approve: approved-once");
    }
}

#[test]
fn a_decision_that_overtakes_the_reply_is_held_until_it() {
    let mut world = World::driven();
    world.opened(1).event(1, &decision("同意"));
    assert!(world.drain().is_some());
    world.reply(2, 200, PENDING).ends("approve: approved-once");

    let mut world = World::driven();
    world.opened(1).event(1, &decision("同意").replace("\"m1\"", "\"m2\""));
    world.reply(2, 200, PENDING);
    assert!(world.drain().is_some(), "another mail's decision approves nothing");
}

#[test]
fn the_reply_may_already_hold_the_decision() {
    let mut world = World::driven();
    world.opened(1).reply(2, 200, r#"{"status":"duplicate_relay","decision":"同意"}"#);
    world.ends("approve: approved-once");
    let mut world = World::driven();
    let other = r#"{"status":"decided","decision":"同意","relay_key":"perm_2"}"#;
    world.opened(1).reply(2, 200, other);
    assert!(world.drain().is_some(), "a reply about another question approves nothing");
}

#[test]
fn a_broken_stream_is_opened_again_after_the_last_id_and_the_question_asked_again() {
    let mut world = World::asked();
    world.event(1, &decision("同意").replace("perm_1", "perm_other"));
    world.feed(Input::StreamClosed(StreamId(1), Fault::Truncated));
    assert_eq!(world.sleep().why, "reconnect");
    assert!((800..=1000).contains(&world.now), "{}", world.now);
    world.opened(3).reply(4, 200, r#"{"status":"duplicate_relay","decision":"同意"}"#);
    assert_eq!(
        world.log[2..],
        [
            "open 3 after 9",
            "POST 4 /api/v1/permission/request",
            "close 3",
            "approve: approved-once"
        ]
    );
}

#[test]
fn pauses_grow_while_the_gateway_is_away_and_then_it_is_unreachable() {
    for (env, limit, end) in [
        (&[("AGENTMAIL_SESSION_ID", "mail-1")][..], OUTAGE_DRIVEN_MS, "block: temporary-failure"),
        (&[], OUTAGE_INTERACTIVE_MS, "nothing: temporary-failure"),
    ] {
        let mut world = World::new(env);
        world.opened(1).reply(2, 200, PENDING);
        world.feed(Input::StreamClosed(StreamId(1), Fault::Truncated));
        let mut stream = 0;
        while world.drain().is_some() {
            world.sleep();
            for line in world.log.clone() {
                if let Some(id) = line.strip_prefix("open ")
                    && let Ok(id) = id.parse::<u32>()
                    && id > stream
                {
                    stream = id;
                    let down = Outcome::Failed(Fault::Unreachable);
                    world.feed(Input::StreamReply(StreamId(id), down));
                }
                if let Some(id) = line.strip_prefix("POST ") {
                    let id: u32 = id.split(' ').next().unwrap().parse().unwrap();
                    let down = Outcome::Failed(Fault::Unreachable);
                    world.feed(Input::Replied(ExchangeId(id), down));
                }
            }
            assert!(world.now <= limit + WITHDRAW_MS, "{:?}", world.log);
        }
        world.ends(end);
        assert!(world.now >= limit, "{}", world.now);
        assert!(world.log.iter().any(|line| line.ends_with("/permission/r1/withdraw")));
    }
}

#[test]
fn three_tries_are_all_before_the_question_is_taken() {
    let mut world = World::driven();
    let down = Outcome::Failed(Fault::Unreachable);
    world.feed(Input::StreamReply(StreamId(1), down));
    world.sleep();
    world.opened(2).reply(3, 503, "");
    world.sleep();
    world.reply(4, 502, "<html>").ends("block: temporary-failure");
    assert_eq!(world.now, 1_250);
}

#[test]
fn retry_after_is_honoured_inside_the_budget_and_not_waited_for_beyond() {
    let busy = Reply { retry_after: Some("100"), ..Reply::json(429, b"") };
    let mut world = World::driven();
    world.opened(1).feed(Input::Replied(ExchangeId(2), Outcome::Reply(busy)));
    for now in [50_000, 99_999] {
        world.at(now).feed(Input::Chunk(StreamId(1), b": ping\n\n"));
        assert_eq!(world.log.len(), 2, "{:?}", world.log);
    }
    world.at(100_000).ends("POST 3 /api/v1/permission/request");

    let mut world = World::new(&[]);
    world.opened(1).feed(Input::Replied(ExchangeId(2), Outcome::Reply(busy)));
    world.ends("nothing: temporary-failure");
    assert_eq!(world.now, 0);
}

#[test]
fn a_permanent_failure_blocks_at_once_in_both_modes() {
    for env in [&[("AGENTMAIL_SESSION_ID", "mail-1")][..], &[]] {
        for status in [400, 401, 403, 404, 409, 413, 422] {
            let mut world = World::new(env);
            world.opened(1).reply(2, status, r#"{"error":"no","suggestion":"ask"}"#);
            world.ends("block: permanent-failure");
            let mut world = World::new(env);
            let reply = Outcome::Reply(Reply::json(status, b""));
            world.feed(Input::StreamReply(StreamId(1), reply)).ends("block: permanent-failure");
        }
    }
}

#[test]
fn a_revoked_key_ends_the_wait_at_once() {
    let mut world = World::asked();
    world.feed(Input::StreamClosed(StreamId(1), Fault::Truncated));
    world.sleep();
    let reply = Outcome::Reply(Reply::json(401, b""));
    world.feed(Input::StreamReply(StreamId(3), reply)).ends("block: permanent-failure");
    assert!(!world.log.iter().any(|line| line.contains("withdraw")));
}

#[test]
fn a_login_page_is_no_stream_and_no_reply() {
    let page = Reply { content_type: Some("text/html"), ..STREAM };
    let mut world = World::new(&[]);
    for id in 1..=3 {
        world.feed(Input::StreamReply(StreamId(id), Outcome::Reply(page)));
        if id < 3 {
            world.sleep();
        }
    }
    world.ends("nothing: temporary-failure");
}

#[test]
fn silence_is_a_broken_stream_and_a_comment_is_life() {
    let mut world = World::asked();
    for _ in 0..20 {
        world.now += 15_000;
        world.feed(Input::Chunk(StreamId(1), b":\n\n"));
    }
    assert!(!world.log.iter().any(|line| line.starts_with("close")), "{:?}", world.log);
    let heard = world.now;
    while !world.log.iter().any(|line| line == "close 1") {
        world.sleep();
    }
    assert_eq!(world.now, heard + IDLE_MS);
}

#[test]
fn the_question_is_asked_again_now_and_then_for_streams_that_are_held_back() {
    let mut world = World::asked();
    assert_eq!(world.sleep().why, "next question");
    assert_eq!(world.now, POLL_MS);
    world.reply(3, 200, r#"{"status":"duplicate_relay","decision":"拒绝","note":"不"}"#);
    world.ends("block: refused");
}

#[test]
fn an_answered_look_keeps_the_wait_alive_and_the_trouble_in_mind() {
    let mut world = World::new(&[("AGENTMAIL_PERMISSION_WAIT_MS", "60000")]);
    world.opened(1);
    world.feed(Input::StreamClosed(StreamId(1), Fault::Truncated));
    world.reply(2, 200, PENDING);
    // Streams fail at once, looks succeed: longer than the outage limit of an interactive hook.
    let (mut streams, mut looks) = (0, 0);
    while world.now < 60_000 {
        world.sleep();
        let opened: Vec<u32> = numbers(&world.log, "open ");
        for id in opened.into_iter().skip(1 + streams) {
            streams += 1;
            let down = Outcome::Failed(Fault::Unreachable);
            world.feed(Input::StreamReply(StreamId(id), down));
        }
        let asked = numbers(&world.log, "POST ");
        for id in asked.into_iter().skip(1 + looks) {
            looks += 1;
            world.reply(id, 200, r#"{"status":"duplicate_relay"}"#);
        }
    }
    assert!(streams > 3 && looks > 3, "{:?}", world.log);
    world.at(60_000 + WITHDRAW_MS).ends("nothing: temporary-failure");
}

/// The numbers after `prefix` in a log.
fn numbers(log: &[String], prefix: &str) -> Vec<u32> {
    let number = |line: &String| line.strip_prefix(prefix)?.split(' ').next()?.parse().ok();
    log.iter().filter_map(number).collect()
}

#[test]
fn a_withdrawn_question_is_nobodys_refusal() {
    for (status, body) in
        [(200, r#"{"status":"withdrawn"}"#), (200, r#"{"status":"expired"}"#), (409, "")]
    {
        let mut world = World::asked();
        world.at(POLL_MS).reply(3, status, body).ends("block: withdrawn");
    }
}

#[test]
fn the_time_limit_withdraws_and_a_last_decision_still_counts() {
    let wait = ("AGENTMAIL_PERMISSION_WAIT_MS", "20000");
    for (session, end) in [("mail-1", "block: timed-out"), ("", "nothing: timed-out")] {
        let env = [("AGENTMAIL_SESSION_ID", session), wait];
        let asked = || {
            let mut world = World::new(&env);
            world.opened(1).reply(2, 200, PENDING);
            world
        };
        let mut world = asked();
        world.at(20_000).said(&[
            "open 1",
            "POST 2 /api/v1/permission/request",
            "POST 3 /api/v1/permission/r1/withdraw",
        ]);
        world.at(20_299);
        assert!(world.drain().is_some());
        world.at(20_300).ends(end);

        let mut world = asked();
        world.at(20_000).reply(3, 404, "").ends(end);

        let mut world = asked();
        let late = r#"{"status":"decided","decision":"同意"}"#;
        world.at(20_000).reply(3, 200, late).ends("approve: approved-once");

        let mut world = asked();
        world.at(20_000).event(1, &decision("同意")).ends("approve: approved-once");

        // The process was stopped and continued long after its time.
        let mut world = asked();
        world.now = 60_000;
        world.event(1, &decision("同意")).reply(3, 200, late).ends(end);
    }
}

#[test]
fn a_signal_withdraws_and_no_decision_counts_after_it() {
    for (env, end) in
        [(&[("AGENTMAIL_SESSION_ID", "mail-1")][..], "block: signal"), (&[], "nothing: signal")]
    {
        let mut world = World::new(env);
        world.opened(1).reply(2, 200, PENDING).feed(Input::Signal);
        world.event(1, &decision("同意"));
        world.reply(3, 200, r#"{"status":"decided","decision":"同意"}"#).ends(end);

        let mut world = World::new(env);
        world.feed(Input::Signal).ends(end);

        // The reply to the question is on its way: it tells what to withdraw.
        let mut world = World::new(env);
        world.opened(1).feed(Input::Signal).reply(2, 200, PENDING);
        assert!(world.log.iter().any(|line| line.ends_with("/r1/withdraw")), "{:?}", world.log);
        world.feed(Input::Signal).at(200).feed(Input::Signal).at(WITHDRAW_MS).ends(end);
    }
}

#[test]
fn a_request_is_complete_or_not_sent() {
    let with = |n: usize| World::of(&[], &format!(r#"{{"command":"{}"}}"#, "a".repeat(n)), false);
    // A command too long to be read has a hint that says so.
    let frame = with(100_000).machine.ask.context.len() - 100_000;
    with(LIMIT - frame).said(&["open 1"]);
    with(LIMIT - frame + 1).said(&["block: request-too-large"]);
}

#[test]
fn a_rendering_at_its_limit_fits_into_a_request_whatever_it_holds() {
    // Quotes, backslashes and line feeds double in JSON, and nothing grows more.
    for piece in [r#"\""#, r"\\", r"\n"] {
        let command = piece.repeat(LIMIT / 2 - 200);
        let world = World::of(&[], &format!(r#"{{"command":"{command}"}}"#), false);
        assert!(world.machine.ask.context.len() > LIMIT / 2 - 200, "{piece}");
        let size = world.machine.ask.request().body.unwrap().len();
        assert!(size <= BODY_LIMIT, "{piece}: {size}");
    }
}

/// faults 8, and "a decision event's extra members are optional".
#[test]
fn a_decision_about_another_digest_blocks_and_one_without_a_digest_counts() {
    let with = |digest: &str| {
        let mut world = World::asked();
        let digest = digest.replace("OURS", &world.machine.digest.hex());
        let event = decision("同意").replace('}', &format!("{digest}}}"));
        world.event(1, &event);
        world.log.last().cloned().unwrap_or_default()
    };
    for same in ["", r#","digest":"OURS""#, r#","digest":null"#] {
        assert!(with(same).starts_with("approve"), "{same}: {}", with(same));
    }
    let other = format!(r#","digest":"{}""#, "0".repeat(64));
    for other in [other.as_str(), r#","digest":"""#, r#","digest":7"#, r#","digest":"OURS ""#] {
        assert_eq!(with(other), "block: request-changed", "{other}");
    }
}

#[test]
fn the_question_holds_only_fields_of_the_contract() {
    for (env, session) in [(&[("AGENTMAIL_SESSION_ID", "mail-1")][..], true), (&[], false)] {
        let world = World::new(env);
        let body = world.machine.ask.request().body.unwrap();
        let json: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let mut expected = vec!["context", "options", "question", "relay_key"];
        if session {
            expected.insert(4, "session_id");
        }
        let mut keys: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
        keys.sort_unstable();
        assert_eq!(keys, expected);
        assert_eq!(json["options"], serde_json::json!(["同意", "一直同意", "拒绝"]));
    }
}

#[test]
fn an_event_over_the_limit_breaks_the_stream() {
    let mut world = World::asked();
    let huge = vec![b'x'; sse::LINE_LIMIT + 16];
    world.feed(Input::Chunk(StreamId(1), b"data: "));
    world.feed(Input::Chunk(StreamId(1), &huge));
    assert_eq!(world.log.last().unwrap(), "close 1");
    assert_eq!(world.sleep().why, "reconnect");
}
