//! Sending: addresses, sessions and what arrives (`W-4`, `W-5`).

use super::*;

const SEND: &str = "/api/v1/me/mail/send";
const STREAM: &str = "/api/v1/events/stream";

#[test]
fn a_mail_to_new_opens_a_session_and_arrives_with_every_field() {
    let world = World::new();
    let stream = world.zcode.stream(STREAM, None);
    world.zcode.ok("/api/v1/agent/heartbeat", &json!({"mode_enforcement": "native"}));
    let sent = world.ann.ok(
        SEND,
        &json!({
            "to": "zcode@/home/ann/a.b/project.new", "subject": "重构 导入/路径", "body": "b",
            "permission_mode": "full",
        }),
    );
    assert_eq!(sent["session_alias"], "重构-导入-路径");
    let event = stream.next();
    assert_eq!(event.name, "new_mail");
    assert_eq!(
        event.data,
        json!({
            "mail_id": sent["mail_id"], "session_id": sent["session_id"], "from_name": "ann",
            "subject": "重构 导入/路径", "mail_type": "normal", "role": "to",
            "to_workspace": "/home/ann/a.b/project", "session_alias": "重构-导入-路径",
            "reply_address": "ann@.重构-导入-路径",
            "self_address": "zcode@/home/ann/a.b/project.重构-导入-路径",
            "platform_session_id": "", "in_reply_to": "", "from_human": true,
            "permission_mode": "full", "permission_enforcement": "native",
        })
    );
    assert_eq!(world.count("SELECT count(*) FROM sessions WHERE owner = 'ann'"), 1);
}

#[test]
fn new_always_opens_another_session_and_names_stay_unique() {
    let world = World::new();
    let body = json!({"to": "zcode@/p.new", "subject": "fix leak", "body": "b"});
    let alias = |sent: &Value| text(sent, "session_alias");
    let aliases = [(); 3].map(|()| alias(&world.ann.ok(SEND, &body)));
    assert_eq!(aliases, ["fix-leak", "fix-leak-2", "fix-leak-3"]);
}

#[test]
fn without_a_third_part_the_last_active_session_of_the_two_goes_on() {
    let world = World::new();
    let send = |client: &Client, to: &str| {
        text(&client.ok(SEND, &json!({"to": to, "subject": "s", "body": "b"})), "session_id")
    };
    let first = send(&world.ann, "zcode@/p");
    assert_eq!(send(&world.ann, "zcode@/p"), first);
    let second = send(&world.ann, "zcode@/p.new");
    assert_eq!(send(&world.ann, "zcode@/p"), second);
    assert_ne!(send(&world.ann, "zcode@/q"), second, "another path");
    assert_ne!(send(&world.bob, "zcode@/p"), second, "another person's session is not joined");
}

#[test]
fn an_alias_that_leads_nowhere_is_404_and_nothing_is_made() {
    let world = World::new();
    world.ann.ok(SEND, &json!({"to": "zcode@/p.new", "subject": "known", "body": "b"}));
    for to in ["zcode@/p.unknown", "zcode@/elsewhere.known", "pi@/p.known", "zcode@/p.KNOWN"] {
        let (status, body) =
            world.ann.refused(SEND, &json!({"to": to, "subject": "s", "body": "b"}));
        assert_eq!(status, 404, "{to}");
        assert!(body.contains(".new") && body.contains("suggestion"), "{body}");
    }
    let body = json!({"to": "zcode@/p.known", "cc": "pi@/p.unknown", "subject": "s", "body": "b"});
    assert_eq!(world.ann.refused(SEND, &body).0, 404);
    assert_eq!(world.count("SELECT count(*) FROM sessions"), 1);
    assert_eq!(world.count("SELECT count(*) FROM mails"), 1);
    let sent = world.ann.ok(SEND, &json!({"to": "zcode@/p.known", "subject": "s", "body": "b"}));
    assert_eq!(sent["session_alias"], "known");
}

#[test]
fn unknown_names_and_texts_that_are_no_address_are_refused() {
    let world = World::new();
    for (to, expected) in [("nobody", 404), ("nobody@/p.new", 404), ("", 400), ("@/p", 400)] {
        let status = world.ann.refused(SEND, &json!({"to": to, "subject": "s", "body": "b"})).0;
        assert_eq!(status, expected, "{to}");
    }
}

#[test]
fn a_reply_stays_in_its_session_and_names_its_parent() {
    let world = World::new();
    let sent = world.ann.ok(SEND, &json!({"to": "zcode@/p.new", "subject": "s", "body": "b"}));
    let stream = world.ann.stream("/api/v1/me/events", None);
    let reply = world.zcode.ok(
        "/api/v1/mail/send",
        &json!({
            "to": "ann", "subject": "Re: s", "body": "done", "reply_to": sent["mail_id"],
        }),
    );
    assert_eq!(reply["session_id"], sent["session_id"]);
    assert_eq!((&reply["budget_remaining"], &reply["budget_max"]), (&json!(19), &json!(20)));
    let told = stream.next().data;
    assert_eq!(told["in_reply_to"], sent["mail_id"]);
    assert_eq!(told["reply_address"], "zcode@/p.s");
    assert_eq!(told["from_human"], false);
    let foreign = json!({"to": "pi@/p", "subject": "s", "body": "b", "reply_to": sent["mail_id"]});
    assert_eq!(world.bob.refused(SEND, &foreign).0, 404, "a mail that bob cannot see");
}

#[test]
fn copies_arrive_with_their_own_path_and_read_state_is_per_reader() {
    let world = World::new();
    let (zcode, pi) = (world.zcode.stream(STREAM, None), world.pi.stream(STREAM, None));
    world.ann.ok(
        SEND,
        &json!({
            "to": "zcode@/p.new", "cc": "pi@/q; bob，pi@/other", "subject": "s", "body": "b",
        }),
    );
    let (to, cc) = (zcode.next().data, pi.next().data);
    assert_eq!((&to["role"], &to["to_workspace"]), (&json!("to"), &json!("/p")));
    assert_eq!((&cc["role"], &cc["to_workspace"]), (&json!("cc"), &json!("/q")));
    assert_eq!(cc["self_address"], "pi@/q.s");
    assert_eq!(pi.waiting(), [], "a name counts once");
    let bobs = world.bob.look("/api/v1/me/mail/inbox?status=unread");
    assert_eq!(bobs["mails"][0]["role"], "cc");
    let pending = |client: &Client| {
        client.ok("/api/v1/agent/heartbeat", &json!({}))["pending_mails"].as_i64().unwrap()
    };
    assert_eq!((pending(&world.zcode), pending(&world.pi)), (1, 1));
}

#[test]
fn a_registered_workspace_name_stands_for_its_path() {
    let world = World::new();
    world.zcode.ok("/api/v1/agent/register", &json!({
        "name": "zcode", "platform": "zcode", "workspaces": [{"name": "root", "path": "/srv/root"}],
    }));
    let stream = world.zcode.stream(STREAM, None);
    world.ann.ok(SEND, &json!({"to": "zcode@root", "subject": "s", "body": "b"}));
    assert_eq!(stream.next().data["to_workspace"], "/srv/root");
}

#[test]
fn agents_run_out_of_rounds_and_people_do_not() {
    let world = World::new();
    let sent = world.ann.ok(SEND, &json!({"to": "zcode@/p.new", "subject": "s", "body": "b"}));
    world.database().execute("UPDATE sessions SET max_rounds = 2", []).unwrap();
    let reply = json!({"to": "ann", "subject": "s", "body": "b", "reply_to": sent["mail_id"]});
    for left in [1, 0] {
        assert_eq!(world.zcode.ok("/api/v1/mail/send", &reply)["budget_remaining"], left);
    }
    let (status, body) = world.zcode.refused("/api/v1/mail/send", &reply);
    assert_eq!(status, 403);
    assert!(body.contains("预算") && body.contains("suggestion"), "{body}");
    // What the bridge forwards is free (I-2).
    let mut relay = reply.clone();
    relay["relay"] = json!("summary");
    relay["relay_key"] = json!("m1");
    world.zcode.ok("/api/v1/mail/send", &relay);
    assert_eq!(world.zcode.ok("/api/v1/mail/send", &relay)["status"], "duplicate_relay");
    assert_eq!(world.count("SELECT count(*) FROM relayed_mails"), 1);
    assert_eq!(world.count("SELECT used_rounds FROM sessions"), 2);
    world.ann.ok(SEND, &json!({"to": "zcode@/p", "subject": "s", "body": "b"}));
}

#[test]
fn an_agent_opens_twenty_sessions_an_hour_and_is_told_when_to_come_back() {
    let world = World::new();
    let body = json!({"to": "pi@/p.new", "subject": "s", "body": "b"});
    for _ in 0..20 {
        world.zcode.ok("/api/v1/mail/send", &body);
    }
    let reply = world.zcode.post("/api/v1/mail/send", &body);
    assert_eq!(reply.status, 429);
    let seconds: u64 = reply.header("retry-after").parse().unwrap();
    assert!((3500..=3600).contains(&seconds), "{reply:?}");
    assert_eq!(reply.json()["retry_after"], seconds);
    world.database().execute("UPDATE sessions SET created_at = created_at - 3600001", []).unwrap();
    world.zcode.ok("/api/v1/mail/send", &body);
    let person = json!({"to": "pi@/p.new", "subject": "s", "body": "b"});
    for _ in 0..21 {
        world.ann.ok(SEND, &person);
    }
}

#[test]
fn agents_alone_write_six_times_and_then_stop() {
    let world = World::new();
    let mut last = text(
        &world
            .zcode
            .ok("/api/v1/mail/send", &json!({"to": "pi@/p.new", "subject": "s", "body": "b"})),
        "mail_id",
    );
    let reply = |client: &Client, to: &str, last: &str| {
        client.post(
            "/api/v1/mail/send",
            &json!({"to": to, "subject": "s", "body": "b", "reply_to": last}),
        )
    };
    for hop in 2..=6 {
        let (client, to) = if hop % 2 == 0 { (&world.pi, "zcode") } else { (&world.zcode, "pi") };
        let sent = reply(client, to, &last);
        assert_eq!(sent.status, 200, "hop {hop}: {sent:?}");
        last = text(&sent.json(), "mail_id");
    }
    let refused = reply(&world.zcode, "pi", &last);
    assert_eq!(refused.status, 409);
    assert!(refused.body.contains("suggestion"), "{refused:?}");
    // To a person the way is open.
    assert_eq!(reply(&world.zcode, "ann", &last).status, 200);
}

#[test]
fn a_session_that_an_agent_opens_is_never_freer_than_where_it_comes_from() {
    let world = World::new();
    for (mode, expected) in [("plan", "plan"), ("workspace", "workspace"), ("full", "workspace")] {
        let sent = world.ann.ok(
            SEND,
            &json!({
                "to": "zcode@/p.new", "subject": mode, "body": "b", "permission_mode": mode,
            }),
        );
        let stream = world.pi.stream(STREAM, None);
        world.zcode.ok(
            "/api/v1/mail/send",
            &json!({
                "to": "pi@/p.new", "subject": "s", "body": "b", "reply_to": sent["mail_id"],
            }),
        );
        assert_eq!(stream.next().data["permission_mode"], expected, "{mode}");
    }
}

#[test]
fn relay_keys_are_bounded_and_the_oldest_go_first() {
    let world = World::new();
    let relay = |key: &str| {
        world.zcode.ok(
            "/api/v1/mail/send",
            &json!({
                "to": "ann", "subject": "s", "body": "b", "relay": "summary", "relay_key": key,
            }),
        )
    };
    let first = relay("first");
    world
        .database()
        .execute(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10098)
             INSERT INTO relayed_mails (agent_name, relay_key, relay_kind, mail_id, created_at)
             SELECT 'zcode', 'k' || i, 'summary', ?1, i FROM n",
            [text(&first, "mail_id")],
        )
        .unwrap();
    let count = || world.count("SELECT count(*) FROM relayed_mails");
    assert_eq!(count(), 10_099);
    relay("last");
    assert_eq!(count(), 10_000);
    assert_eq!(world.count("SELECT min(created_at) FROM relayed_mails"), 101);
    assert_eq!(relay("first")["status"], "duplicate_relay");
}
