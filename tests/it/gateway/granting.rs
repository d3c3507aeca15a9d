//! Approvals with an end (faults 16 and 18; section 3, row 6).

use zcode_mail_core::digest::{Call, CallDigest};
use zcode_mail_core::exact;
use zcode_mail_core::lang::Lang;
use zcode_mail_core::render::{Label, Request, render};
use zcode_mail_tests::programs::run;

use super::page::log_in;
use super::*;

fn context(session: &str, cwd: &str, command: &str) -> String {
    let input = exact::Value::object(vec![("command".into(), exact::Value::Text(command.into()))]);
    let facts = [(Label::Agent, "zcode"), (Label::MailSession, session)];
    let digest = CallDigest::of(&Call {
        tool: "Bash",
        input: &input,
        cwd,
        session: Some(session),
        agent: Some("zcode"),
        operands: &[],
    });
    render(&Request {
        tool: "Bash",
        cwd,
        input: &input,
        facts: &facts,
        before: None,
        hints: &[],
        notes: &[],
        operands: &[],
        digest: Some(digest),
        lang: Lang::Zh,
    })
    .unwrap()
    .text()
}

/// Asks for a command; the reply.
fn asked(world: &World, session: &str, key: &str, command: &str) -> Value {
    let mut question = question(session, key);
    question["context"] = context(session, "/p", command).into();
    world.zcode.ok("/api/v1/permission/request", &question)
}

fn give(world: &World, asked: &Value, wish: &Value) -> Reply {
    world.ann.post(&format!("/api/v1/me/permissions/{}/grant", text(asked, "request_id")), wish)
}

fn grants(world: &World) -> Vec<String> {
    let data = world.gateway.data.to_str().unwrap();
    let out = run("zcode-mail", &["grants", "list", "--data", data], &[]);
    String::from_utf8(out.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_beginning_of_a_command_is_approved_until_it_is_revoked() {
    let world = World::new();
    let session = world.session("workspace");
    let first = asked(&world, &session, "k1", "cargo test --all");
    // Two more wait; one of them is reached.
    let sibling = asked(&world, &session, "k2", "cargo test -p core");
    let stranger = asked(&world, &session, "k3", "cargo test; rm -rf /");
    let reply = give(&world, &first, &json!({"prefix": ["cargo", "test"]}));
    assert_eq!((reply.status, &reply.json()["decision"]), (200, &json!("同意")), "{reply:?}");
    let state = |asked: &Value| {
        text(
            &world.ann.look(&format!("/api/v1/me/permissions/{}", text(asked, "request_id"))),
            "status",
        )
    };
    assert_eq!((state(&sibling).as_str(), state(&stranger).as_str()), ("decided", "pending"));
    // Asked later: answered at once, by whom and why.
    let later = asked(&world, &session, "k4", "cargo test");
    assert_eq!(
        (&later["status"], &later["decision"], &later["decided_by"]),
        (&json!("decided"), &json!("同意"), &json!("ann"))
    );
    for (key, command) in
        [("k5", "cargo build"), ("k6", "cargo test | sh"), ("k7", "cargo test $(x)")]
    {
        assert_eq!(asked(&world, &session, key, command)["status"], "pending", "{command}");
    }
    // Another session, agent-made text, or another directory: asked.
    let other = world.session("workspace");
    assert_eq!(asked(&world, &other, "k8", "cargo test")["status"], "pending");
    let mut forged = question(&session, "k9");
    forged["context"] =
        context(&session, "/p", "rm -rf /").replace("| rm -rf /", "| cargo test").into();
    assert_eq!(world.zcode.ok("/api/v1/permission/request", &forged)["status"], "pending");
    let mut elsewhere = question(&session, "k10");
    elsewhere["context"] = context(&session, "/q", "cargo test").into();
    assert_eq!(world.zcode.ok("/api/v1/permission/request", &elsewhere)["status"], "pending");

    let lines = grants(&world);
    assert!(
        lines.len() == 1
            && lines[0].contains("in force")
            && lines[0].contains("Bash cargo test")
            && lines[0].contains("used 2"),
        "{lines:?}"
    );
    let id = lines[0].split('\t').next().unwrap();
    let out = run(
        "zcode-mail",
        &["grants", "explain", id, "--data", world.gateway.data.to_str().unwrap()],
        &[],
    );
    let explained = String::from_utf8(out.stdout).unwrap();
    for part in [
        "given by ann",
        "| cargo test --all",
        "it decided 2 requests",
        &text(&sibling, "request_id"),
        &text(&later, "request_id"),
    ] {
        assert!(explained.contains(part), "{part}: {explained}");
    }
    let _ = world.gateway.operator(&["grants", "revoke", id]);
    assert_eq!(asked(&world, &session, "k11", "cargo test")["status"], "pending");
    assert!(grants(&world)[0].contains("(revoked)"));
    assert_eq!(world.count("SELECT count(*) FROM audit WHERE event IN ('grant', 'revoke')"), 2);
}

#[test]
fn a_grant_ends_by_count_by_time_and_with_its_session() {
    let world = World::new();
    let session = world.session("workspace");
    let status = |key: &str| asked(&world, &session, key, "ls -l")["status"].clone();
    assert_eq!(
        give(&world, &asked(&world, &session, "k1", "ls -l"), &json!({"uses": 2})).status,
        200
    );
    assert_eq!(
        [status("k2"), status("k3"), status("k4")],
        [json!("decided"), json!("decided"), json!("pending")]
    );

    assert_eq!(
        give(&world, &asked(&world, &session, "k5", "ls -l"), &json!({"minutes": 1})).status,
        200
    );
    assert_eq!(status("k6"), "decided");
    world
        .database()
        .execute("UPDATE grants SET until = until - 60001 WHERE ended_at IS NULL", [])
        .unwrap();
    assert_eq!(status("k7"), "pending");

    assert_eq!(
        give(&world, &asked(&world, &session, "k8", "ls -l"), &json!({"minutes": 60})).status,
        200
    );
    world.ann.ok(&format!("/api/v1/me/sessions/{session}/archive"), &json!({}));
    assert_eq!(world.count("SELECT count(*) FROM grants WHERE ended_at IS NULL"), 0);
    assert!(grants(&world).iter().any(|line| line.contains("(session archived)")));
}

#[test]
fn a_refusal_that_lasts_beats_every_approval() {
    let world = World::new();
    let session = world.session("workspace");
    assert_eq!(
        give(&world, &asked(&world, &session, "k1", "git status"), &json!({"minutes": 60})).status,
        200
    );
    let reply = give(&world, &asked(&world, &session, "k2x", "git push"), &json!({"minutes": 60}));
    assert_eq!(reply.status, 409, "answered already");
    // The refusal is read out of a request that waits in a session of its own approvals.
    world.database().execute("UPDATE grants SET prefix = '[\"git\",\"status\"]'", []).unwrap();
    let push = asked(&world, &session, "k3", "git push");
    assert_eq!(
        give(&world, &push, &json!({"prefix": ["git", "push"], "denies": true})).json()["decision"],
        "拒绝"
    );
    world.database().execute("UPDATE grants SET prefix = NULL WHERE denies = 0", []).unwrap();
    assert_eq!(asked(&world, &session, "k4", "git push --force")["decision"], "拒绝");
    assert_eq!(asked(&world, &session, "k5", "git log")["decision"], "同意");
}

#[test]
fn a_grant_needs_an_end_a_reason_and_the_right_person() {
    let world = World::new();
    let session = world.session("workspace");
    let bash = asked(&world, &session, "k1", "bash x.sh now");
    for wish in [
        json!({}),
        json!({"minutes": 0}),
        json!({"minutes": 10_081}),
        json!({"uses": 1_001}),
        json!({"uses": -1}),
        json!({"prefix": []}),
        json!({"prefix": ["bas"]}),
        json!({"prefix": ["bash"]}),
        json!({"prefix": "bash"}),
        json!({"minutes": 5, "more": 1}),
    ] {
        assert_eq!(give(&world, &bash, &wish).status, 400, "{wish}");
    }
    let path = format!("/api/v1/me/permissions/{}/grant", text(&bash, "request_id"));
    for (client, status) in [(&world.zcode, 403), (&world.bob, 404)] {
        assert_eq!(client.post(&path, &json!({"minutes": 5})).status, status);
    }
    // What does not show what its digest names cannot be approved for longer.
    let plain = world.zcode.ok("/api/v1/permission/request", &question(&session, "k2"));
    assert_eq!(give(&world, &plain, &json!({"minutes": 5})).status, 400);
    assert_eq!(world.count("SELECT count(*) FROM grants"), 0);
    assert_eq!(
        give(
            &world,
            &bash,
            &json!({"minutes": 10_080, "uses": 1_000, "prefix": ["bash", "x.sh", "now"]})
        )
        .status,
        200
    );
}

#[test]
fn the_page_offers_the_beginnings_of_the_command() {
    let world = World::new();
    let session = world.session("workspace");
    let id = text(&asked(&world, &session, "k1", "cargo test --all"), "request_id");
    let browser = log_in(&world, "ann");
    let page = browser.get(&format!("/approvals/{id}")).body;
    assert!(page.contains("<option value=\"2\">cargo test …</option>"), "{page}");
    let done = browser.form(&format!("/approvals/{id}/grant"), "words=2&minutes=10&uses=5");
    assert_eq!(done.status, 303, "{}", done.body);
    assert_eq!(asked(&world, &session, "k2", "cargo test -q")["status"], "decided");
    let line = &grants(&world)[0];
    assert!(
        line.contains("until ") && line.contains("4 uses left") && line.contains("cargo test"),
        "{line}"
    );
}
