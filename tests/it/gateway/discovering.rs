//! Whom a mail can be addressed to (`T-8` to `T-10`), and platform sessions (`W-3`, `B-3.7`).

use super::*;

const SUGGEST: &str = "/api/v1/agent/contacts/suggest";

fn values(list: &Value, field: &str) -> Vec<String> {
    list["suggestions"].as_array().unwrap().iter().map(|item| text(item, field)).collect()
}

fn mirror(world: &World, sessions: &Value) -> Value {
    world.zcode.ok("/api/v1/agent/heartbeat", &json!({"platform_sessions": sessions}))
}

fn platform_session(id: &str, slug: &str, updated_at: &str) -> Value {
    json!({
        "platform_id": id, "workspace": "/p", "slug": slug, "title": "重构导入路径",
        "mail_driven": false, "updated_at": updated_at,
    })
}

#[test]
fn names_then_paths_then_sessions() {
    let world = World::new();
    world.zcode.ok("/api/v1/agent/heartbeat", &json!({}));
    let names = world.pi.look(SUGGEST);
    assert_eq!(names["kind"], "name");
    assert_eq!(values(&names, "name"), ["zcode", "admin", "ann", "bob", "pi"]);
    assert_eq!(
        names["suggestions"][0],
        json!({
            "name": "zcode", "kind": "agent", "online": true, "address": "zcode",
        })
    );
    assert_eq!(values(&world.pi.look(&format!("{SUGGEST}?q=COD")), "name"), ["zcode"]);
    world.pi.ok(
        "/api/v1/mail/send",
        &json!({"to": "zcode@/srv/a.b.new", "subject": "one", "body": "b"}),
    );
    world.zcode.ok("/api/v1/agent/register", &json!({
        "name": "zcode", "platform": "zcode", "workspaces": [{"name": "root", "path": "/srv/root"}],
    }));
    let paths = world.pi.look(&format!("{SUGGEST}?name=zcode"));
    assert_eq!(values(&paths, "path"), ["/srv/a.b", "/srv/root"]);
    assert_eq!(values(&paths, "address"), ["zcode@/srv/a.b.", "zcode@/srv/root"]);
    let sessions = world.pi.look(&format!("{SUGGEST}?name=zcode&path=/srv/a.b"));
    assert_eq!(values(&sessions, "address"), ["zcode@/srv/a.b.one", "zcode@/srv/a.b.new"]);
    for address in values(&sessions, "address") {
        let body = json!({"to": address, "subject": "s", "body": "b"});
        world.pi.ok("/api/v1/mail/send", &body);
    }
    assert_eq!(world.pi.get(&format!("{SUGGEST}?kind=nothing")).status, 400);
}

#[test]
fn an_agent_is_online_for_thirty_seconds_after_its_heartbeat() {
    let world = World::new();
    let online =
        || world.pi.look(&format!("{SUGGEST}?q=zcode"))["suggestions"][0]["online"].clone();
    assert_eq!(online(), false, "never seen");
    world.zcode.ok("/api/v1/agent/heartbeat", &json!({}));
    assert_eq!(online(), true);
    world.database().execute("UPDATE agents SET last_seen_at = last_seen_at - 30001", []).unwrap();
    assert_eq!(online(), false);
    let seen = || world.count("SELECT last_seen_at FROM agents WHERE name = 'zcode'");
    let before = seen();
    world.zcode.ok("/api/v1/agent/heartbeat", &json!({}));
    assert!(seen() > before);
}

#[test]
fn a_name_with_a_slip_is_met_with_the_near_ones() {
    let world = World::new();
    assert_eq!(world.pi.look(&format!("{SUGGEST}?q=zcdoe"))["did_you_mean"], json!([]));
    assert_eq!(
        world.pi.look(&format!("{SUGGEST}?q=zcod"))["did_you_mean"],
        json!([]),
        "it matches"
    );
    assert_eq!(world.pi.look(&format!("{SUGGEST}?q=zzode"))["did_you_mean"], json!(["zcode"]));
    let (status, body) = {
        let reply = world.pi.get(&format!("{SUGGEST}?name=zcodd"));
        (reply.status, reply.body)
    };
    assert_eq!(status, 404);
    assert!(body.contains("zcode"), "{body}");
}

#[test]
fn sessions_of_others_are_not_suggested() {
    let world = World::new();
    world.ann.ok(
        "/api/v1/me/mail/send",
        &json!({"to": "zcode@/p.new", "subject": "private", "body": "b"}),
    );
    let sessions = world.pi.look(&format!("{SUGGEST}?name=zcode&path=/p"));
    assert_eq!(values(&sessions, "alias"), ["new"]);
    assert_eq!(world.pi.look(&format!("{SUGGEST}?name=zcode"))["suggestions"], json!([]));
}

#[test]
fn contacts_are_the_others_of_live_sessions_with_addresses_that_deliver() {
    let world = World::new();
    world.ann.ok(
        "/api/v1/me/mail/send",
        &json!({
            "to": "zcode@/p.new", "cc": "pi@/q", "subject": "one", "body": "b",
        }),
    );
    world
        .ann
        .ok("/api/v1/me/mail/send", &json!({"to": "zcode@/p.new", "subject": "two", "body": "b"}));
    let list = world.zcode.look("/api/v1/agent/contacts");
    let addresses: Vec<_> = list["contacts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|contact| text(contact, "address"))
        .collect();
    assert_eq!(addresses, ["ann@.two", "ann@.one", "pi@/q.one"]);
    for address in addresses {
        world.zcode.ok("/api/v1/mail/send", &json!({"to": address, "subject": "s", "body": "b"}));
    }
    let session = text(&list["contacts"][1], "session_id");
    let path = format!("/api/v1/agent/sessions/{session}/participants");
    let people = world.pi.look(&path)["participants"].clone();
    let roles: Vec<_> =
        people.as_array().unwrap().iter().map(|p| (text(p, "name"), text(p, "role"))).collect();
    let expected = [("ann", "owner"), ("pi", "cc"), ("zcode", "to")];
    assert_eq!(roles, expected.map(|(name, role)| (name.to_owned(), role.to_owned())));
    world
        .database()
        .execute("UPDATE sessions SET archived_at = 1 WHERE alias = 'two'", [])
        .unwrap();
    assert_eq!(world.zcode.look("/api/v1/agent/contacts")["contacts"].as_array().unwrap().len(), 2);
}

#[test]
fn participants_of_a_session_of_others_do_not_exist() {
    let world = World::new();
    let session = world.session("workspace");
    assert_eq!(world.pi.get(&format!("/api/v1/agent/sessions/{session}/participants")).status, 404);
}

#[test]
fn an_absent_list_keeps_the_mirror_and_an_empty_one_clears_it() {
    let world = World::new();
    let count = || world.count("SELECT count(*) FROM agent_platform_sessions");
    let list = json!([
        platform_session("1", "old", "2026-09-01T00:00:00.000Z"),
        platform_session("2", "witty", "2026-09-02T00:00:00.000Z"),
        platform_session("3", "old", "2026-09-03T00:00:00.000Z"),
        platform_session("4", "", "2026-09-04T00:00:00.000Z"),
    ]);
    assert_eq!(mirror(&world, &list)["platform_sessions_synced"], 2);
    let kept = "SELECT platform_id FROM agent_platform_sessions WHERE slug = 'old'";
    let kept: String = world.database().query_row(kept, [], |row| row.get(0)).unwrap();
    assert_eq!(kept, "3", "of two with one slug the fresher stays");
    world.zcode.ok("/api/v1/agent/heartbeat", &json!({}));
    assert_eq!(count(), 2);
    mirror(&world, &json!([platform_session("5", "x", "")]));
    assert_eq!(count(), 1, "replaced as a whole");
    mirror(&world, &json!([]));
    assert_eq!(count(), 0);
    let many: Vec<_> =
        (0..250).map(|n| platform_session(&format!("{n}"), &format!("s{n}"), "")).collect();
    assert_eq!(mirror(&world, &json!(many))["platform_sessions_synced"], 200);
    let models = json!({"models": [{"provider": "p", "model": "m", "display_name": "M"}]});
    assert_eq!(world.zcode.ok("/api/v1/agent/heartbeat", &models)["models_synced"], 1);
    world.zcode.ok("/api/v1/agent/heartbeat", &json!({}));
    assert_eq!(world.count("SELECT count(*) FROM agent_model_catalog"), 1);
    world.zcode.ok("/api/v1/agent/heartbeat", &json!({"models": []}));
    assert_eq!(world.count("SELECT count(*) FROM agent_model_catalog"), 0);
}

#[test]
fn an_address_with_a_mirrored_slug_takes_the_platform_session_over_once() {
    let world = World::new();
    mirror(&world, &json!([platform_session("ses_abc", "witty-planet", "2026-09-02T00:00:00Z")]));
    let offered = world.pi.look(&format!("{SUGGEST}?name=zcode&path=/p"));
    assert_eq!(offered["suggestions"][0]["platform"], true);
    let stream = world.zcode.stream("/api/v1/events/stream", None);
    let body = json!({"to": "zcode@/p.witty-planet", "subject": "s", "body": "b"});
    let first = world.ann.ok("/api/v1/me/mail/send", &body);
    assert_eq!(first["session_alias"], "witty-planet");
    let event = stream.next().data;
    assert_eq!(
        (&event["platform_session_id"], &event["to_workspace"]),
        (&json!("ses_abc"), &json!("/p"))
    );
    let later = world.bob.ok("/api/v1/me/mail/send", &body);
    assert_eq!(later["session_id"], first["session_id"]);
    assert_eq!(stream.next().data["platform_session_id"], "ses_abc");
    let short = json!({"to": "zcode@.witty-planet", "subject": "s", "body": "b"});
    assert_eq!(world.bob.ok("/api/v1/me/mail/send", &short)["session_id"], first["session_id"]);
    assert_eq!(stream.next().data["to_workspace"], "/p");
    let other = json!({"to": "zcode@/other.witty-planet", "subject": "s", "body": "b"});
    assert_eq!(world.ann.refused("/api/v1/me/mail/send", &other).0, 404);
    assert_eq!(world.count("SELECT count(*) FROM sessions"), 1);
    let archive = format!("/api/v1/me/sessions/{}/archive", text(&first, "session_id"));
    world.ann.ok(&archive, &json!({}));
    assert_eq!(world.ann.refused("/api/v1/me/mail/send", &body).0, 404);
}

#[test]
fn the_model_range_comes_back_with_the_heartbeat_and_only_an_administrator_sets_it() {
    let world = World::with(&[("ADMIN_USER", "admin"), ("ADMIN_PASSWORD", "correct horse")]);
    let key = operator(&world.gateway.data, &["user", "key", "create", "admin"]);
    let admin = Client::new(&world.gateway.url, Some(&key));
    let path = "/api/v1/admin/agents/zcode/models";
    let range =
        json!({"models": [{"provider": "p", "model": "b"}, {"provider": "p", "model": "a"}]});
    assert_eq!(world.ann.call("PUT", path, &range).status, 403);
    assert_eq!(world.zcode.call("PUT", path, &range).status, 403);
    let beat = || world.zcode.ok("/api/v1/agent/heartbeat", &json!({}));
    assert_eq!(beat()["models_unrestricted"], true);
    assert_eq!(admin.call("PUT", path, &range).status, 200);
    assert_eq!(
        (&beat()["allowed_models"], &beat()["models_unrestricted"]),
        (&range["models"], &json!(false))
    );
    let allowed = world.zcode.look("/api/v1/agent/models/allowed");
    assert_eq!(allowed, json!({"allowed_models": range["models"], "models_unrestricted": false}));
    assert_eq!(admin.call("PUT", path, &json!({"models": []})).status, 200);
    assert_eq!(
        (&beat()["allowed_models"], &beat()["models_unrestricted"]),
        (&json!([]), &json!(false))
    );
    assert_eq!(admin.call("PUT", path, &json!({})).status, 200);
    assert_eq!(beat()["models_unrestricted"], true);
    assert_eq!(admin.call("PUT", "/api/v1/admin/agents/nobody/models", &range).status, 404);
}
