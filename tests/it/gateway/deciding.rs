//! One decision per request, by the one who was asked (faults 2, 3, 7, 10, 25).

use std::sync::{Arc, Barrier};

use super::*;

fn decide(client: &Client, id: &str, decision: &str) -> Reply {
    client.post(
        &format!("/api/v1/me/permissions/{id}/decide"),
        &json!({"decision": decision, "note": "好"}),
    )
}

#[test]
fn the_decision_reaches_the_agents_stream_with_every_field_of_the_contract() {
    let world = World::new();
    let session = world.session("workspace");
    let stream = world.zcode.stream("/api/v1/events/stream", None);
    let asked = world.zcode.ok("/api/v1/permission/request", &question(&session, "k1"));
    let decided = decide(&world.ann, &text(&asked, "request_id"), "同意");
    assert_eq!(decided.status, 200);
    assert_eq!(decided.json()["status"], "decided");
    let event = stream.next();
    assert_eq!(event.name, "permission_decision");
    let mut data = event.data;
    let decision_mail = data["decision_mail_id"].take();
    assert_eq!(decision_mail.as_str().unwrap().len(), 36);
    assert_eq!(
        data,
        json!({
            "mail_id": asked["mail_id"], "decision_mail_id": null, "decision": "同意", "note": "好",
            "decided_by": "ann", "session_id": session, "relay_key": "k1", "relay_kind": "permission",
        })
    );
    // The event is all the news there is: no mail waits for the agent because of it.
    assert_eq!(
        world.count(
            "SELECT count(*) FROM mail_recipients r JOIN mails m ON m.id = r.mail_id
        WHERE r.name = 'zcode' AND m.mail_type <> 'normal' AND r.read_at IS NULL"
        ),
        0
    );
}

#[test]
fn of_two_deciders_at_once_one_wins_and_the_other_learns_who_and_when() {
    let world = World::new();
    let session = world.session("workspace");
    let stream = world.zcode.stream("/api/v1/events/stream", None);
    for round in 0..20 {
        let id = world.ask(&session, &format!("k{round}"));
        let start = Arc::new(Barrier::new(2));
        let threads = ["同意", "拒绝"].map(|decision| {
            let (client, id, start) = (world.ann.clone(), id.clone(), Arc::clone(&start));
            thread::spawn(move || {
                start.wait();
                decide(&client, &id, decision)
            })
        });
        let replies = threads.map(|thread| thread.join().unwrap());
        let mut statuses = replies.each_ref().map(|reply| reply.status);
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409], "{replies:?}");
        let winner = replies.iter().find(|reply| reply.status == 200).unwrap().json();
        let loser = replies.iter().find(|reply| reply.status == 409).unwrap();
        let told = loser.json()["error"].to_string();
        assert!(told.contains("ann") && told.contains(winner["ended_at"].as_str().unwrap()));
        assert_eq!(stream.next().data["decision"], winner["decision"]);
    }
    assert_eq!(stream.waiting(), []);
}

#[test]
fn only_the_person_who_was_asked_decides_or_even_sees_the_request() {
    let world = World::new();
    let id = world.ask(&world.session("workspace"), "k1");
    let admin = operator(&world.gateway.data, &["user", "add", "root", "--admin"]);
    assert_eq!(admin, "");
    let key = operator(&world.gateway.data, &["user", "key", "create", "root"]);
    for other in [&world.bob, &Client::new(&world.gateway.url, Some(&key))] {
        assert_eq!(decide(other, &id, "同意").status, 404);
        assert_eq!(other.get(&format!("/api/v1/me/permissions/{id}")).status, 404);
        assert_eq!(other.look("/api/v1/me/permissions")["permissions"], json!([]));
    }
    assert_eq!(decide(&world.ann, "no-such-request", "同意").status, 404);
    assert_eq!(decide(&world.ann, &id, "同意").status, 200);
}

#[test]
fn only_an_option_in_every_byte_decides() {
    let world = World::new();
    let id = world.ask(&world.session("workspace"), "k1");
    for text in [
        "",
        "同意。",
        "同意吗",
        " 同意",
        "同意\n",
        "不同意",
        "一直",
        "approve",
        "yes",
        "同 意",
        "允许",
        "no, not ok",
        "不 可以",
        "approve?",
        "ｏｋ",
    ] {
        let reply = decide(&world.ann, &id, text);
        assert_eq!(reply.status, 400, "{text:?}: {reply:?}");
    }
    let request = world.ann.look(&format!("/api/v1/me/permissions/{id}"));
    assert_eq!(request["status"], "pending");
}

#[test]
fn after_a_withdrawal_a_decision_is_too_late_and_nothing_was_run() {
    let world = World::new();
    let session = world.session("workspace");
    let id = world.ask(&session, "k1");
    let agent = world.zcode.stream("/api/v1/events/stream", None);
    let person = world.ann.stream("/api/v1/me/events", None);
    let withdrawn = world.zcode.ok(&format!("/api/v1/permission/{id}/withdraw"), &json!({}));
    assert_eq!(withdrawn["status"], "withdrawn");
    assert_eq!(person.next_named("permission_request").data["status"], "withdrawn");
    let late = decide(&world.ann, &id, "同意");
    assert_eq!(late.status, 409);
    assert!(late.body.contains("太晚了，什么都没有执行"), "{late:?}");
    let again = world.zcode.ok("/api/v1/permission/request", &question(&session, "k1"));
    assert_eq!(again["status"], "withdrawn");
    assert_eq!(agent.waiting(), []);
}

#[test]
fn a_withdrawal_that_comes_second_tells_the_decision() {
    let world = World::new();
    let id = world.ask(&world.session("workspace"), "k1");
    assert_eq!(decide(&world.ann, &id, "一直同意").status, 200);
    let path = format!("/api/v1/permission/{id}/withdraw");
    let told = world.zcode.ok(&path, &json!({}));
    assert_eq!((&told["status"], &told["decision"]), (&json!("decided"), &json!("一直同意")));
    assert_eq!(world.pi.refused(&path, &json!({})).0, 404);
    let seen = world.zcode.look(&format!("/api/v1/permission/{id}"));
    assert_eq!(seen["decided_by"], "ann");
    assert_eq!(world.pi.get(&format!("/api/v1/permission/{id}")).status, 404);
}

#[test]
fn ten_questions_answered_in_reverse_each_get_their_own_answer() {
    let world = World::new();
    let session = world.session("workspace");
    let ids: Vec<_> = (0..10).map(|n| world.ask(&session, &format!("k{n}"))).collect();
    for (number, id) in ids.iter().enumerate().rev() {
        let decision = if number % 2 == 0 { "同意" } else { "拒绝" };
        assert_eq!(decide(&world.ann, id, decision).status, 200);
    }
    for (number, id) in ids.iter().enumerate() {
        let expected = if number % 2 == 0 { "同意" } else { "拒绝" };
        assert_eq!(world.zcode.look(&format!("/api/v1/permission/{id}"))["decision"], expected);
    }
}

#[test]
fn a_note_of_the_limit_is_taken_and_one_more_byte_is_refused() {
    let world = World::new();
    let id = world.ask(&world.session("workspace"), "k1");
    let path = format!("/api/v1/me/permissions/{id}/decide");
    let body = |length| json!({"decision": "同意", "note": "x".repeat(length)});
    assert_eq!(world.ann.refused(&path, &body(8 * 1024 + 1)).0, 400);
    world.ann.ok(&path, &body(8 * 1024));
}

#[test]
fn listings_filter_by_status_session_and_agent() {
    let world = World::new();
    let (one, two) = (world.session("workspace"), world.session("workspace"));
    let first = world.ask(&one, "k1");
    world.ask(&two, "k2");
    world.zcode.ok("/api/v1/permission/request", &json!({"question": "q", "relay_key": "k3"}));
    assert_eq!(decide(&world.ann, &first, "同意").status, 200);
    let count = |query: &str| {
        let path = format!("/api/v1/me/permissions?{query}");
        world.ann.look(&path)["permissions"].as_array().unwrap().len()
    };
    assert_eq!(count("status=pending"), 2);
    assert_eq!(count("status=decided"), 1);
    assert_eq!(count(&format!("session_id={two}")), 1);
    assert_eq!(count("agent_name=zcode"), 3);
    assert_eq!(count("agent_name=pi"), 0);
    assert_eq!(world.ann.get("/api/v1/me/permissions?status=open").status, 400);
    assert_eq!(world.ann.get("/api/v1/me/permissions?state=pending").status, 400);
}
