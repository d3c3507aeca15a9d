//! Strict decoding: 400 names the field, what was expected and what came (`W-2`, `W-9`).

use super::*;

#[test]
fn every_route_but_the_heartbeat_refuses_unknown_and_mistyped_fields() {
    let world = World::new();
    for (client, path, body, expected) in [
        (
            &world.zcode,
            "/api/v1/agent/register",
            json!({"name": "zcode", "platform": "p", "workspaces": ["x"]}),
            "字段 \"workspaces[0]\" 类型不对：期望 object，收到 string",
        ),
        (&world.zcode, "/api/v1/agent/register", json!({"name": "zcode", "extra": 1}), "extra"),
        (&world.zcode, "/api/v1/agent/register", json!({"platform": "p"}), "name"),
        (&world.zcode, "/api/v1/mail/send", json!({"to": "ann", "subject": 1}), "subject"),
        (
            &world.zcode,
            "/api/v1/mail/send",
            json!({"to": "ann", "permission_mode": "full"}),
            "permission_mode",
        ),
        (
            &world.zcode,
            "/api/v1/mail/send",
            json!({"to": "ann", "propose_alias": "x"}),
            "propose_alias",
        ),
        (&world.zcode, "/api/v1/permission/request", json!({"question": ["q"]}), "question"),
        (&world.zcode, "/api/v1/permission/x/withdraw", json!({"why": "x"}), "why"),
        (&world.ann, "/api/v1/me/permissions/x/decide", json!({"decision": true}), "decision"),
        (&world.ann, "/api/v1/me/permissions/x/decide", json!({"decision": "x", "to": "y"}), "to"),
        (&world.ann, "/api/v1/me/mail/send", json!({"to": "zcode", "relay": "summary"}), "relay"),
        (
            &world.ann,
            "/api/v1/me/mail/send",
            json!({"to": "zcode@/p.new", "permission_mode": "yolo"}),
            "permission_mode",
        ),
    ] {
        let reply = client.post(path, &body);
        assert_eq!(reply.status, 400, "{path} {body}: {reply:?}");
        let error = reply.json()["error"].as_str().unwrap().to_owned();
        assert!(error.contains(expected), "{path} {body}: {error}");
    }
    let relay = |kind: &str, key: &str| json!({"to": "ann", "subject": "s", "body": "b", "relay": kind, "relay_key": key});
    for (body, named) in [
        (relay("x", "k"), "relay"),
        (relay("summary", ""), "relay_key"),
        (relay("summary", &"k".repeat(161)), "relay_key"),
    ] {
        let (status, error) = world.zcode.refused("/api/v1/mail/send", &body);
        assert_eq!(status, 400, "{body}");
        assert!(error.contains(named), "{error}");
    }
    assert_eq!(world.count("SELECT count(*) FROM mails"), 0);
}

#[test]
fn broken_documents_are_refused_with_their_place() {
    let world = World::new();
    for body in ["{", "null", "[]", "{\"a\":1}x", "{\"name\":\"a\",\"name\":\"b\"}", "\u{0}"] {
        let reply = world.zcode.send("/api/v1/agent/register", "application/json", body.as_bytes());
        assert_eq!(reply.status, 400, "{body}: {reply:?}");
    }
}

#[test]
fn the_heartbeat_takes_unknown_fields_and_names_them() {
    let world = World::new();
    let body = json!({"mode_enforcement": "native", "new_thing": {"a": 1}});
    let beat = world.zcode.ok("/api/v1/agent/heartbeat", &body);
    assert_eq!(beat["unknown_fields"], json!(["new_thing"]));
    assert_eq!(beat["status"], "ok");
    assert_eq!(beat["models_unrestricted"], true);
    assert_eq!(
        beat["stats"],
        json!({"agent_name": "zcode", "default_rounds": 20, "sent_total": 0})
    );
    let body = json!({"models": "none"});
    assert_eq!(world.zcode.refused("/api/v1/agent/heartbeat", &body).0, 400);
}

#[test]
fn a_body_of_one_mebibyte_is_read_and_one_byte_more_is_413() {
    let world = World::new();
    let body = |length: usize| {
        let frame = json!({"to": "nobody", "body": ""}).to_string().len();
        json!({"to": "nobody", "body": "x".repeat(length - frame)})
    };
    let limit = 1024 * 1024;
    assert_eq!(world.zcode.post("/api/v1/mail/send", &body(limit)).status, 404);
    assert_eq!(world.zcode.post("/api/v1/mail/send", &body(limit + 1)).status, 413);
}

#[test]
fn errors_speak_english_when_the_gateway_does() {
    let world = World::with(&[("AGENTMAIL_LANG", "en")]);
    let reply = world.zcode.post("/api/v1/mail/send", &json!({"to": "nobody"}));
    assert_eq!(reply.json()["error"], "cannot deliver: no person or agent is called nobody");
}

#[test]
fn unknown_routes_and_methods_are_told_as_json() {
    let world = World::new();
    assert_eq!(world.ann.get("/api/v1/nothing").json()["error"], "这里什么都没有");
    assert_eq!(world.zcode.post("/api/v1/agents/register", &json!({})).status, 404, "singular");
    assert_eq!(world.ann.post("/api/v1/me/permissions", &json!({})).status, 405);
    let page = world.ann.get("/nothing");
    assert_eq!(page.status, 404);
    assert!(page.header("content-type").starts_with("text/html"), "{page:?}");
}
