//! Who is asked, once per key, with the whole story (`W-6`, `B-8`).

use super::*;

const ASK: &str = "/api/v1/permission/request";

#[test]
fn the_owner_of_the_session_is_asked_and_reads_task_and_giver() {
    let world = World::new();
    let session = world.session("workspace");
    let stream = world.ann.stream("/api/v1/me/events", None);
    let asked = world.zcode.ok(ASK, &question(&session, "k1"));
    assert_eq!(asked["status"], "pending");
    assert_eq!(asked["relay_key"], "k1");
    let mail = stream.next_named("new_mail").data;
    assert_eq!(mail["mail_type"], "permission_request");
    assert_eq!(mail["mail_id"], asked["mail_id"]);
    let told = stream.next_named("permission_request").data;
    assert_eq!((&told["request_id"], &told["status"]), (&asked["request_id"], &json!("pending")));
    let list = world.ann.look("/api/v1/me/permissions?status=pending");
    let request = &list["permissions"][0];
    assert_eq!(request["question"], "允许执行 Bash 吗？");
    assert_eq!(request["context"], "cargo test");
    assert_eq!(request["task_from"], "ann");
    assert_eq!(request["task"], "跑一遍测试\n\n请跑 cargo test。");
    let body = world.ann.look("/api/v1/me/mail/inbox")["mails"][0]["body"].to_string();
    assert!(body.contains("cargo test") && body.contains("任务来自：ann"), "{body}");
    assert_eq!(world.bob.look("/api/v1/me/permissions")["permissions"], json!([]));
}

#[test]
fn without_a_session_the_owner_of_the_key_is_asked() {
    let world = World::new();
    let body = json!({"question": "q", "context": "c", "relay_key": "k"});
    world.zcode.ok(ASK, &body);
    world.pi.ok(ASK, &body);
    for (person, agent) in [(&world.ann, "zcode"), (&world.bob, "pi")] {
        let list = person.look("/api/v1/me/permissions");
        assert_eq!(list["permissions"].as_array().unwrap().len(), 1);
        assert_eq!(list["permissions"][0]["agent_name"], agent);
        assert_eq!(list["permissions"][0]["session_id"], "");
        assert_eq!(list["permissions"][0]["options"], json!(["同意", "拒绝"]));
    }
}

#[test]
fn in_a_thread_between_agents_the_person_who_wrote_last_upstream_is_asked() {
    let world = World::new();
    let first = world.session("workspace");
    // zcode hands the work on: another session, but an answer to ann's mail.
    let mail = text(
        &world
            .database()
            .query_row("SELECT id FROM mails WHERE session_id = ?1", [&first], |row| {
                Ok(json!({"id": row.get::<_, String>(0)?}))
            })
            .unwrap(),
        "id",
    );
    let handed = world.zcode.ok(
        "/api/v1/mail/send",
        &json!({
            "to": "pi@/home/bob.new", "subject": "子任务", "body": "请做。", "reply_to": mail,
        }),
    );
    let session = text(&handed, "session_id");
    assert_ne!(session, first);
    let asked = world.pi.ok(ASK, &question(&session, "k1"));
    let request = world.ann.look(&format!("/api/v1/me/permissions/{}", text(&asked, "request_id")));
    assert_eq!(request["agent_name"], "pi");
    assert_eq!(request["task_from"], "zcode");
    assert_eq!(world.bob.look("/api/v1/me/permissions")["permissions"], json!([]));
}

#[test]
fn where_no_person_wrote_nobody_is_asked_and_the_reason_is_told() {
    let world = World::new();
    let sent = world.pi.ok(
        "/api/v1/mail/send",
        &json!({
            "to": "zcode@/p.new", "subject": "s", "body": "b", "cc": "ann",
        }),
    );
    // Being a recipient gives nobody authority: an agent could choose its decider that way.
    let (status, body) = world.zcode.refused(ASK, &question(&text(&sent, "session_id"), "k1"));
    assert_eq!(status, 409);
    assert!(body.contains("没有人类用户") && body.contains("suggestion"), "{body}");
    assert_eq!(world.count("SELECT count(*) FROM mails WHERE mail_type <> 'normal'"), 0);
}

#[test]
fn a_plan_session_asks_nobody() {
    let world = World::new();
    let session = world.session("plan");
    let (status, body) = world.zcode.refused(ASK, &question(&session, "k1"));
    assert_eq!(status, 409);
    assert!(body.contains("plan") && body.contains("suggestion"), "{body}");
    assert_eq!(world.count("SELECT count(*) FROM permission_requests"), 0);
}

#[test]
fn another_agents_session_is_not_found() {
    let world = World::new();
    let session = world.session("workspace");
    assert_eq!(world.pi.refused(ASK, &question(&session, "k1")).0, 404);
    assert_eq!(world.pi.refused(ASK, &question("no-such-session", "k1")).0, 404);
}

#[test]
fn an_archived_session_takes_no_questions() {
    let world = World::new();
    let session = world.session("workspace");
    world.database().execute("UPDATE sessions SET archived_at = 1", []).unwrap();
    assert_eq!(world.zcode.refused(ASK, &question(&session, "k1")).0, 409);
}

#[test]
fn the_agent_cannot_name_its_decider() {
    let world = World::new();
    let session = world.session("workspace");
    let mut body = question(&session, "k1");
    body["to"] = json!("bob");
    let (status, text) = world.zcode.refused(ASK, &body);
    assert_eq!(status, 400);
    assert!(text.contains("\\\"to\\\""), "{text}");
}

#[test]
fn a_key_of_160_bytes_is_taken_and_one_more_is_refused() {
    let world = World::new();
    let session = world.session("workspace");
    world.zcode.ok(ASK, &question(&session, &"k".repeat(160)));
    let (status, body) = world.zcode.refused(ASK, &question(&session, &"k".repeat(161)));
    assert_eq!(status, 400);
    assert!(body.contains("relay_key 过长（上限 160 字节）"), "{body}");
}

#[test]
fn asking_again_makes_no_second_mail_and_tells_state_and_decision() {
    let world = World::new();
    let session = world.session("workspace");
    let first = world.zcode.ok(ASK, &question(&session, "k1"));
    let again = world.zcode.ok(ASK, &question(&session, "k1"));
    assert_eq!(again["status"], "duplicate_relay");
    assert_eq!(again["request_id"], first["request_id"]);
    assert_eq!(again.get("decision"), None);
    let id = text(&first, "request_id");
    world.ann.ok(
        &format!("/api/v1/me/permissions/{id}/decide"),
        &json!({"decision": "拒绝", "note": "先跑 cargo check"}),
    );
    let again = world.zcode.ok(ASK, &question(&session, "k1"));
    assert_eq!(
        (&again["decision"], &again["note"], &again["decided_by"]),
        (&json!("拒绝"), &json!("先跑 cargo check"), &json!("ann"))
    );
    let query = "SELECT count(*) FROM mails WHERE mail_type = 'permission_request'";
    assert_eq!(world.count(query), 1);
    // Another agent's key of the same text is another request.
    world.pi.ok(ASK, &json!({"question": "q", "relay_key": "k1"}));
    assert_eq!(world.count(query), 2);
}

#[test]
fn a_key_belongs_to_one_question() {
    let world = World::new();
    let session = world.session("workspace");
    world.zcode.ok(ASK, &question(&session, "k1"));
    for (field, value) in [
        ("question", json!("允许执行 Write 吗？")),
        ("context", json!("rm -rf /")),
        ("options", json!(["同意"])),
    ] {
        let mut other = question(&session, "k1");
        other[field] = value;
        assert_eq!(world.zcode.refused(ASK, &other).0, 409, "{field}");
    }
}

#[test]
fn questions_without_a_key_are_never_repeats() {
    let world = World::new();
    let body = json!({"question": "q"});
    let (one, two) = (world.zcode.ok(ASK, &body), world.zcode.ok(ASK, &body));
    assert_ne!(one["request_id"], two["request_id"]);
}

#[test]
fn asking_costs_no_budget() {
    let world = World::new();
    let session = world.session("workspace");
    world.ask(&session, "k1");
    assert_eq!(world.count("SELECT used_rounds FROM sessions"), 0);
}

#[test]
fn empty_questions_and_impossible_options_are_refused() {
    let world = World::new();
    for body in [
        json!({"question": " ", "relay_key": "k"}),
        json!({"question": "q", "relay_key": "k", "options": ["a", "a"]}),
        json!({"question": "q", "relay_key": "k", "options": ["a", " "]}),
        json!({"question": "q", "relay_key": "k", "options": vec!["x"; 17]}),
    ] {
        assert_eq!(world.zcode.refused(ASK, &body).0, 400, "{body}");
    }
}
