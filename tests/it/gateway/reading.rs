//! Inbox, mail, thread, read state and forwarding (`T-1`, `T-5`, `T-11`, `T-12`, `B-7`).

use super::*;

const SEND: &str = "/api/v1/me/mail/send";

fn send(world: &World, to: &str, subject: &str) -> Value {
    world.ann.ok(SEND, &json!({"to": to, "subject": subject, "body": format!("text of {subject}")}))
}

fn subjects(list: &Value) -> Vec<String> {
    list["mails"].as_array().unwrap().iter().map(|mail| text(mail, "subject")).collect()
}

#[test]
fn the_inbox_is_newest_first_and_marks_only_what_it_is_told() {
    let world = World::new();
    let ids: Vec<_> =
        (1..=3).map(|n| text(&send(&world, "zcode@/p.new", &format!("s{n}")), "mail_id")).collect();
    let unread = world.zcode.look("/api/v1/mail/inbox?status=unread&limit=2");
    assert_eq!(subjects(&unread), ["s3", "s2"]);
    assert_eq!(unread["total"], 3);
    let marked =
        world.zcode.ok("/api/v1/mail/read", &json!({"mail_ids": [ids[2], ids[1], ids[1], "x"]}));
    assert_eq!(marked, json!({"status": "ok", "marked": 2}));
    assert_eq!(subjects(&world.zcode.look("/api/v1/mail/inbox?status=unread")), ["s1"]);
    assert_eq!(subjects(&world.zcode.look("/api/v1/mail/inbox?status=read")), ["s3", "s2"]);
    assert_eq!(subjects(&world.zcode.look("/api/v1/mail/inbox")), ["s3", "s2", "s1"]);
    assert_eq!(world.zcode.ok("/api/v1/agent/heartbeat", &json!({}))["pending_mails"], 1);
    for query in ["status=new", "limit=x", "limit=-1", "offset=1"] {
        assert_eq!(world.zcode.get(&format!("/api/v1/mail/inbox?{query}")).status, 400, "{query}");
    }
    assert_eq!(world.zcode.refused("/api/v1/mail/read", &json!({"ids": []})).0, 400);
}

#[test]
fn an_inbox_entry_holds_every_field_of_the_event_and_the_text() {
    let world = World::new();
    let stream = world.zcode.stream("/api/v1/events/stream", None);
    world.ann.ok(
        SEND,
        &json!({
            "to": "zcode@/p.new", "cc": "pi@/q", "subject": "s", "body": "b",
        }),
    );
    let event = stream.next().data;
    let list = world.zcode.look("/api/v1/mail/inbox");
    let entry = list["mails"][0].as_object().unwrap();
    for (field, value) in event.as_object().unwrap() {
        assert_eq!(entry.get(field), Some(value), "{field}");
    }
    assert_eq!(entry["body"], "b");
    assert_eq!(entry["is_read"], false);
    assert_eq!(entry["to_address"], "zcode@/p.s");
    assert_eq!(entry["cc"], json!([{"name": "pi", "address": "pi@/q.s"}]));
    assert_eq!(entry["attachments"], json!([]));
}

#[test]
fn read_state_is_per_reader() {
    let world = World::new();
    let sent = world
        .ann
        .ok(SEND, &json!({"to": "zcode@/p.new", "cc": "pi@/q", "subject": "s", "body": "b"}));
    let body = json!({"mail_ids": [sent["mail_id"]]});
    assert_eq!(world.zcode.ok("/api/v1/mail/read", &body)["marked"], 1);
    assert_eq!(subjects(&world.pi.look("/api/v1/mail/inbox?status=unread")), ["s"]);
}

#[test]
fn a_mail_is_shown_with_participants_and_not_marked() {
    let world = World::new();
    let sent = send(&world, "zcode@/p.new", "s");
    let path = format!("/api/v1/agent/mail/{}", text(&sent, "mail_id"));
    let mail = world.zcode.look(&path);
    assert_eq!(mail["reply_address"], "ann@.s");
    assert_eq!(
        mail["participants"],
        json!([
            {"name": "ann", "address": "ann@.s", "human": true, "role": "owner"},
            {"name": "zcode", "address": "zcode@/p.s", "human": false, "role": "to"},
        ])
    );
    assert_eq!(subjects(&world.zcode.look("/api/v1/mail/inbox?status=unread")), ["s"]);
    assert_eq!(world.pi.get(&path).status, 404);
    assert_eq!(world.bob.get(&format!("/api/v1/me/mail/{}", text(&sent, "mail_id"))).status, 404);
    assert_eq!(
        world.ann.look(&format!("/api/v1/me/mail/{}", text(&sent, "mail_id")))["role"],
        "from"
    );
}

#[test]
fn a_thread_goes_over_sessions_and_shows_each_what_it_may_see() {
    let world = World::new();
    let first = send(&world, "zcode@/p.new", "task");
    let handed = world.zcode.ok(
        "/api/v1/mail/send",
        &json!({
            "to": "pi@/q.new", "subject": "part", "body": "b", "reply_to": first["mail_id"],
        }),
    );
    let answer = world.pi.ok(
        "/api/v1/mail/send",
        &json!({
            "to": "zcode", "subject": "Re: part", "body": "b", "reply_to": handed["mail_id"],
        }),
    );
    let thread = |client: &Client, id: &Value, base: &str| {
        client.look(&format!("/api/v1/{base}/{}/thread", id.as_str().unwrap()))
    };
    let whole = thread(&world.zcode, &answer["mail_id"], "agent/mail");
    assert_eq!(whole["root_mail_id"], first["mail_id"]);
    assert_eq!(subjects(&whole), ["task", "part", "Re: part"]);
    assert_eq!(whole["mails"][1]["in_reply_to"], first["mail_id"]);
    assert_eq!(
        subjects(&thread(&world.pi, &answer["mail_id"], "agent/mail")),
        ["part", "Re: part"]
    );
    assert_eq!(subjects(&thread(&world.ann, &first["mail_id"], "me/mail")), ["task"]);
    let hidden = format!("/api/v1/agent/mail/{}/thread", text(&first, "mail_id"));
    assert_eq!(world.pi.get(&hidden).status, 404);
}

#[test]
fn a_reply_to_a_bare_name_arrives_at_the_path_of_its_session() {
    let world = World::new();
    let first = send(&world, "zcode@/srv/a.b/p.new", "s");
    let stream = world.zcode.stream("/api/v1/events/stream", None);
    for to in ["zcode", "zcode@.s"] {
        world.ann.ok(
            SEND,
            &json!({"to": to, "subject": "more", "body": "b", "reply_to": first["mail_id"]}),
        );
        let event = stream.next().data;
        assert_eq!(
            (&event["to_workspace"], &event["session_id"]),
            (&json!("/srv/a.b/p"), &first["session_id"])
        );
    }
}

#[test]
fn a_forward_quotes_the_mail_takes_its_files_and_leaves_its_session() {
    let world = World::new();
    let file = super::attachments::upload(&world.ann, "/api/v1/me/attachments", "a.txt", b"x");
    let first = world.ann.ok(
        SEND,
        &json!({
            "to": "zcode@/p.new", "subject": "s", "body": "original", "attachment_ids": [file],
        }),
    );
    let path = format!("/api/v1/mail/{}/forward", text(&first, "mail_id"));
    let sent = world
        .zcode
        .ok(&path, &json!({"to": "pi@/q", "body": "see below", "session_alias": "look"}));
    assert_ne!(sent["session_id"], first["session_id"]);
    assert_eq!(sent["session_alias"], "look");
    let mail = world.pi.look("/api/v1/mail/inbox")["mails"][0].clone();
    assert_eq!((&mail["subject"], &mail["in_reply_to"]), (&json!("Fwd: s"), &first["mail_id"]));
    let body = text(&mail, "body");
    assert!(body.starts_with("see below\n\n") && body.ends_with("\n\noriginal"), "{body}");
    assert!(body.contains("ann"), "{body}");
    assert_eq!(mail["attachments"][0]["attachment_id"], json!(file));
    assert_eq!(world.pi.refused(&path, &json!({"to": "zcode"})).0, 404, "a mail pi cannot see");
    assert_eq!(world.zcode.refused(&path, &json!({"to": "pi@/q.nowhere"})).0, 404);
    assert_eq!(world.zcode.refused(&path, &json!({"to": "pi@/q", "subject": "x"})).0, 400);
    world.zcode.ok(&path, &json!({"to": "pi@/q.look", "note": "again"}));
}
