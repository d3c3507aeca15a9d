//! Names, proposals, budgets, modes and the archive (`W-7`, `D-5`, `T-13`).

use super::*;

fn marker(alias: &str) -> String {
    format!("done\n\n<!-- agentmail:rename-session alias=\"{alias}\" reason=\"已定位根因\" -->")
}

fn reply(world: &World, session: &str, body: &str) -> Value {
    let mail = world.zcode.look("/api/v1/mail/inbox")["mails"][0].clone();
    assert_eq!(mail["session_id"], session);
    let body = json!({"to": "ann", "subject": "s", "body": body, "reply_to": mail["mail_id"]});
    world.zcode.ok("/api/v1/mail/send", &body)
}

#[test]
fn the_platform_names_a_session_with_numbers_on_collision() {
    let world = World::new();
    let (one, two) = (world.session("workspace"), world.session("workspace"));
    let sync = |session: &str, body: &Value| {
        world.zcode.ok(&format!("/api/v1/sessions/{session}/sync"), body)
    };
    let named = sync(&one, &json!({"alias": "witty planet", "title": "重构导入路径"}));
    assert_eq!(
        (&named["alias"], &named["title"]),
        (&json!("witty-planet"), &json!("重构导入路径"))
    );
    assert_eq!(named["alias_source"], "platform");
    assert_eq!(sync(&two, &json!({"alias": "witty-planet"}))["alias"], "witty-planet-2");
    assert_eq!(
        sync(&two, &json!({"alias": "witty-planet-2"}))["alias"],
        "witty-planet-2",
        "its own"
    );
    assert_eq!(
        world.pi.refused(&format!("/api/v1/sessions/{one}/sync"), &json!({"alias": "x"})).0,
        404
    );
}

#[test]
fn placeholders_and_leaked_titles_are_not_written_back() {
    let world = World::new();
    let session = world.session("workspace");
    let path = format!("/api/v1/sessions/{session}/sync");
    for title in ["新会话", "处理邮件", "The user is asking me to generate a title", "  "] {
        let (status, body) = world.zcode.refused(&path, &json!({"alias": "x", "title": title}));
        assert_eq!(status, 400, "{title}");
        assert!(body.contains("title"), "{body}");
    }
    for alias in ["...", "@/."] {
        assert_eq!(world.zcode.refused(&path, &json!({"alias": alias})).0, 400, "{alias}");
    }
    assert_eq!(world.count("SELECT count(*) FROM sessions WHERE alias_source = 'subject'"), 1);
}

#[test]
fn a_name_that_a_person_chose_stays() {
    let world = World::new();
    let session = world.session("workspace");
    let path = format!("/api/v1/sessions/{session}/alias");
    let named = world.ann.call("PUT", &path, &json!({"alias": "login bug"})).json();
    assert_eq!((&named["alias"], &named["alias_source"]), (&json!("login-bug"), &json!("manual")));
    let sync = format!("/api/v1/sessions/{session}/sync");
    let synced = world.zcode.ok(&sync, &json!({"alias": "witty", "title": "t"}));
    assert_eq!((&synced["alias"], &synced["title"]), (&json!("login-bug"), &json!("t")));
    assert_eq!(world.zcode.call("PUT", &path, &json!({"alias": "mine"})).status, 403);
    assert_eq!(world.bob.call("PUT", &path, &json!({"alias": "mine"})).status, 404);
    let other = world.session("workspace");
    let taken = world.ann.call(
        "PUT",
        &format!("/api/v1/sessions/{other}/alias"),
        &json!({"alias": "login-bug"}),
    );
    assert_eq!(taken.status, 409);
}

#[test]
fn a_proposal_waits_for_a_person_and_a_rejected_one_is_not_offered_again() {
    let world = World::new();
    let session = world.session("workspace");
    let path = format!("/api/v1/sessions/{session}/rename-proposal");
    assert_eq!(world.ann.look(&path)["proposal"], Value::Null);
    let sent = reply(&world, &session, &marker("fix.leak"));
    assert_eq!(sent["rename_proposed"], "fix-leak");
    assert_eq!(sent["session_alias"], "跑一遍测试", "nothing has changed yet");
    let mail = world.ann.look("/api/v1/me/mail/inbox")["mails"][0].clone();
    assert_eq!((&mail["body"], &mail["rename_proposed"]), (&json!("done"), &json!("fix-leak")));
    let proposal = world.zcode.look(&path)["proposal"].clone();
    assert_eq!(
        (&proposal["alias"], &proposal["reason"]),
        (&json!("fix-leak"), &json!("已定位根因"))
    );
    assert_eq!(world.bob.get(&path).status, 404);
    assert_eq!(world.zcode.call("DELETE", &path, &json!({})).status, 403);
    assert_eq!(world.ann.call("DELETE", &path, &json!({})).json()["rejected"], 1);
    assert_eq!(world.ann.look(&path)["proposal"], Value::Null);
    assert_eq!(reply(&world, &session, &marker("fix-leak")).get("rename_proposed"), None);
    assert_eq!(world.ann.look(&path)["proposal"], Value::Null);
    assert_eq!(reply(&world, &session, &marker("other"))["rename_proposed"], "other");
    let accepted = world.ann.call(
        "PUT",
        &format!("/api/v1/sessions/{session}/alias"),
        &json!({"alias": "other"}),
    );
    assert_eq!(accepted.json()["alias"], "other");
    assert_eq!(world.ann.look(&path)["proposal"], Value::Null);
}

#[test]
fn people_write_about_markers_without_proposing() {
    let world = World::new();
    let stream = world.zcode.stream("/api/v1/events/stream", None);
    let body = marker("x");
    let sent = world
        .ann
        .ok("/api/v1/me/mail/send", &json!({"to": "zcode@/p.new", "subject": "s", "body": body}));
    assert_eq!(sent.get("rename_proposed"), None);
    stream.next();
    assert_eq!(world.zcode.look("/api/v1/mail/inbox")["mails"][0]["body"], json!(body));
}

#[test]
fn the_owner_changes_budget_and_mode() {
    let world = World::new();
    let session = world.session("workspace");
    let path = format!("/api/v1/me/sessions/{session}");
    let change = json!({"max_rounds": 5, "used_rounds": 0, "permission_mode": "plan"});
    let changed = world.ann.call("PATCH", &path, &change).json();
    assert_eq!((&changed["max_rounds"], &changed["permission_mode"]), (&json!(5), &json!("plan")));
    assert_eq!(world.zcode.refused("/api/v1/permission/request", &question(&session, "k")).0, 409);
    world.ann.call("PATCH", &path, &json!({"permission_mode": "workspace"}));
    world.ask(&session, "k");
    for (client, body, status) in [
        (&world.ann, json!({"max_rounds": -1}), 400),
        (&world.ann, json!({"permission_mode": "yolo"}), 400),
        (&world.ann, json!({"owner": "bob"}), 400),
        (&world.bob, json!({"max_rounds": 1}), 404),
        (&world.zcode, json!({"permission_mode": "full"}), 403),
    ] {
        assert_eq!(client.call("PATCH", &path, &body).status, status, "{body}");
    }
}

#[test]
fn archiving_ends_requests_and_addresses_and_everybody_hears_of_it() {
    let world = World::new();
    let session = world.session("workspace");
    let id = world.ask(&session, "k1");
    world.zcode.ok("/api/v1/mail/send", &json!({
        "to": "ann@.跑一遍测试", "subject": "s", "body": "b", "relay": "summary", "relay_key": "m1",
    }));
    let (agent, person) = (
        world.zcode.stream("/api/v1/events/stream", None),
        world.ann.stream("/api/v1/me/events", None),
    );
    let path = format!("/api/v1/me/sessions/{session}/archive");
    assert_eq!(world.bob.refused(&path, &json!({})).0, 404);
    assert_eq!(world.zcode.refused(&path, &json!({})).0, 403);
    assert_eq!(world.ann.ok(&path, &json!({}))["archived"], true);
    let told = agent.next();
    assert_eq!(
        (told.name.as_str(), &told.data["session_id"]),
        ("session_archived", &json!(session))
    );
    assert_eq!(person.next_named("permission_request").data["status"], "withdrawn");
    assert_eq!(person.next().name, "session_archived");
    assert_eq!(world.zcode.look(&format!("/api/v1/permission/{id}"))["status"], "withdrawn");
    let mail = json!({"to": "zcode@/home/ann/project.跑一遍测试", "subject": "s", "body": "b"});
    assert_eq!(world.ann.refused("/api/v1/me/mail/send", &mail).0, 404);
    let inbox = world.zcode.look("/api/v1/mail/inbox");
    let reply =
        json!({"to": "ann", "subject": "s", "body": "b", "reply_to": inbox["mails"][0]["mail_id"]});
    assert_eq!(world.zcode.refused("/api/v1/mail/send", &reply).0, 404);
    world.ann.ok(&path, &json!({}));
    assert_eq!(agent.waiting(), [], "told once");
    assert_eq!(world.count("SELECT count(*) FROM relayed_mails"), 0, "its relay keys go with it");
}

#[test]
fn an_administrator_registers_keys_by_key_token_only() {
    let world = World::new();
    let key = operator(&world.gateway.data, &["user", "key", "create", "admin"]);
    let admin = Client::new(&world.gateway.url, Some(&key));
    let path = "/api/v1/admin/agent-keys";
    let token = "an-agents-own-token-0123456789";
    let body = json!({"agent_name": "fresh", "owner": "ann", "key_token": token});
    assert_eq!(world.ann.refused(path, &body).0, 403);
    assert_eq!(world.zcode.refused(path, &body).0, 403);
    let wrong = json!({"agent_name": "fresh", "owner": "ann", "key": token});
    let (status, text) = admin.refused(path, &wrong);
    assert_eq!(status, 400);
    assert!(text.contains("\\\"key\\\""), "{text}");
    assert_eq!(admin.ok(path, &body)["key_token"], Value::Null, "it does not travel back");
    let agent = Client::new(&world.gateway.url, Some(token));
    agent.ok("/api/v1/agent/heartbeat", &json!({}));
    let made = admin.ok(path, &json!({"agent_name": "fresh"}));
    let made = Client::new(&world.gateway.url, made["key_token"].as_str());
    made.ok("/api/v1/agent/heartbeat", &json!({}));
}
