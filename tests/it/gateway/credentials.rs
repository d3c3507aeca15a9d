//! Who may call what: keys, secret, cookies, hosts and origins (faults 1, 23, 24).

use super::*;

/// Agent routes, with a body for those that take one.
const AGENT_ROUTES: [(&str, &str); 19] = [
    ("POST", "/api/v1/agent/register"),
    ("POST", "/api/v1/agent/heartbeat"),
    ("GET", "/api/v1/events/stream"),
    ("POST", "/api/v1/mail/send"),
    ("POST", "/api/v1/permission/request"),
    ("GET", "/api/v1/permission/x"),
    ("POST", "/api/v1/permission/x/withdraw"),
    ("GET", "/api/v1/mail/inbox"),
    ("POST", "/api/v1/mail/read"),
    ("POST", "/api/v1/mail/x/forward"),
    ("POST", "/api/v1/attachments"),
    ("GET", "/api/v1/attachments/x"),
    ("POST", "/api/v1/sessions/x/sync"),
    ("GET", "/api/v1/agent/mail/x"),
    ("GET", "/api/v1/agent/mail/x/thread"),
    ("GET", "/api/v1/agent/contacts"),
    ("GET", "/api/v1/agent/contacts/suggest"),
    ("GET", "/api/v1/agent/sessions/x/participants"),
    ("GET", "/api/v1/agent/models/allowed"),
];

const HUMAN_ROUTES: [(&str, &str); 24] = [
    ("GET", "/api/v1/me/permissions"),
    ("GET", "/api/v1/me/permissions/x"),
    ("POST", "/api/v1/me/permissions/x/decide"),
    ("POST", "/api/v1/me/mail/send"),
    ("GET", "/api/v1/me/mail/inbox"),
    ("GET", "/api/v1/me/events"),
    ("POST", "/api/v1/me/mail/read"),
    ("GET", "/api/v1/me/mail/x"),
    ("GET", "/api/v1/me/mail/x/thread"),
    ("POST", "/api/v1/me/mail/x/forward"),
    ("POST", "/api/v1/me/attachments"),
    ("GET", "/api/v1/me/attachments/x"),
    ("PATCH", "/api/v1/me/sessions/x"),
    ("POST", "/api/v1/me/sessions/x/archive"),
    ("PUT", "/api/v1/sessions/x/alias"),
    ("DELETE", "/api/v1/sessions/x/rename-proposal"),
    ("POST", "/api/v1/admin/agent-keys"),
    ("PUT", "/api/v1/admin/agents/x/models"),
    ("GET", "/approvals"),
    ("GET", "/approvals/list"),
    ("GET", "/approvals/history"),
    ("GET", "/approvals/x"),
    ("POST", "/approvals/x"),
    ("POST", "/logout"),
];

fn call(client: &Client, method: &str, path: &str) -> Reply {
    match method {
        "GET" => client.get(path),
        "POST" => client.post(path, &json!({})),
        other => client.call(other, path, &json!({})),
    }
}

fn log_in(world: &World, name: &str) -> Client {
    let link =
        operator(&world.gateway.data, &["user", "login-link", name, "--url", &world.gateway.url]);
    let reply = Client::new("", None).get(&link);
    assert_eq!(reply.status, 303, "{reply:?}");
    let cookie = reply.header("set-cookie").split(';').next().unwrap().to_owned();
    Client::new(&world.gateway.url, None).with("Cookie", &cookie)
}

#[test]
fn no_agent_credential_opens_a_human_route() {
    let world = World::with(&[("AGENTMAIL_AGENT_SECRET", "shared")]);
    let secret = Client::new(&world.gateway.url, None)
        .with("X-Agent-Secret", "shared")
        .with("X-Agent-Name", "zcode");
    let cookie = log_in(&world, "ann");
    let with_cookie = |client: &Client| {
        let cookie = cookie.headers.iter().find(|(name, _)| name == "Cookie").unwrap();
        client.with("Cookie", &cookie.1).with("Origin", &world.gateway.url)
    };
    for client in [&world.zcode, &secret, &with_cookie(&world.zcode), &with_cookie(&secret)] {
        for (method, path) in HUMAN_ROUTES {
            assert_eq!(call(client, method, path).status, 403, "{method} {path}");
        }
    }
}

#[test]
fn no_user_key_opens_an_agent_route() {
    let world = World::new();
    for (method, path) in AGENT_ROUTES {
        let reply = call(&world.ann, method, path);
        assert_eq!(reply.status, 403, "{method} {path}");
        assert!(reply.body.contains("suggestion"), "{reply:?}");
    }
}

#[test]
fn without_a_good_credential_every_route_says_401_and_what_to_do() {
    let world = World::new();
    let revoked = operator(&world.gateway.data, &["agent-key", "create", "x", "--owner", "ann"]);
    let id = operator(&world.gateway.data, &["agent-key", "list"]);
    let id = id.split('\t').next().unwrap();
    let _ = operator(&world.gateway.data, &["agent-key", "revoke", id]);
    let anonymous = Client::new(&world.gateway.url, None);
    let wrong = Client::new(&world.gateway.url, Some("amk_wrong"));
    let basic = anonymous.with("Authorization", "Basic YTpi");
    let secret = anonymous.with("X-Agent-Secret", "").with("X-Agent-Name", "zcode");
    for client in [&anonymous, &wrong, &basic, &Client::new(&world.gateway.url, Some(&revoked))] {
        for (method, path) in AGENT_ROUTES.iter().chain(&HUMAN_ROUTES[..18]) {
            let reply = call(client, method, path);
            assert_eq!(reply.status, 401, "{method} {path}: {reply:?}");
            assert!(!reply.json()["error"].as_str().unwrap().is_empty());
        }
    }
    assert_eq!(secret.get("/api/v1/events/stream").status, 401);
}

#[test]
fn the_shared_secret_needs_a_name_that_is_no_persons() {
    let world = World::with(&[("AGENTMAIL_AGENT_SECRET", "shared")]);
    let secret = |shown: &str| Client::new(&world.gateway.url, None).with("X-Agent-Secret", shown);
    let beat = |client: &Client| client.post("/api/v1/agent/heartbeat", &json!({})).status;
    assert_eq!(beat(&secret("shared").with("X-Agent-Name", "newcomer")), 200);
    assert_eq!(beat(&secret("shared")), 401);
    assert_eq!(beat(&secret("shareD").with("X-Agent-Name", "zcode")), 401);
    assert_eq!(beat(&secret("shared").with("X-Agent-Name", "ann")), 403);
    assert_eq!(beat(&secret("shared").with("X-Agent-Name", "a@b")), 400);
    // The secret belongs to nobody, so nobody can be asked without a session.
    let client = secret("shared").with("X-Agent-Name", "newcomer");
    let (status, body) =
        client.refused("/api/v1/permission/request", &json!({"question": "q", "relay_key": "k"}));
    assert_eq!(status, 409, "{body}");
}

#[test]
fn a_key_registers_its_own_agent_only() {
    let world = World::new();
    let body = |name: &str| json!({"name": name, "platform": "zcode", "workspaces": []});
    let registered = world.zcode.ok("/api/v1/agent/register", &body("zcode"));
    assert_eq!(registered["agent_name"], "zcode");
    world.zcode.ok("/api/v1/agent/register", &body("zcode"));
    for other in ["pi", "ann", "nobody"] {
        assert_eq!(world.zcode.refused("/api/v1/agent/register", &body(other)).0, 403, "{other}");
    }
}

#[test]
fn a_one_time_key_is_good_for_one_request_and_a_timed_key_until_its_time() {
    let world = World::new();
    let data = &world.gateway.data;
    let once = operator(data, &["agent-key", "create", "zcode", "--owner", "ann", "--one-time"]);
    let once = Client::new(&world.gateway.url, Some(&once));
    let beat = |client: &Client| client.post("/api/v1/agent/heartbeat", &json!({})).status;
    assert_eq!((beat(&once), beat(&once)), (200, 401));
    let timed = operator(data, &["user", "key", "create", "ann", "--hours", "1"]);
    let timed = Client::new(&world.gateway.url, Some(&timed));
    assert_eq!(timed.get("/api/v1/me/permissions").status, 200);
    let sql = "UPDATE keys SET expires_at = expires_at - 3600001 WHERE lifetime = 'timed'";
    world.database().execute(sql, []).unwrap();
    assert_eq!(timed.get("/api/v1/me/permissions").status, 401);
}

#[test]
fn keys_codes_and_cookies_are_stored_as_digests_only() {
    let world = World::new();
    let cookie = log_in(&world, "ann");
    let cookie = cookie.headers[0].1.split('=').nth(1).unwrap();
    let keys = [world.ann.key(), world.zcode.key(), cookie].map(str::as_bytes);
    let (status, log) = world.gateway.stop();
    assert!(status.success());
    let file = std::fs::read(world.folder.path().join("data/agentmail.db")).unwrap();
    for key in keys {
        assert!(!file.windows(key.len()).any(|window| window == key), "a secret is in the file");
        assert!(!log.contains(std::str::from_utf8(key).unwrap()), "a secret is in the log");
    }
}

#[test]
fn a_request_for_another_host_is_refused_on_every_route() {
    let world = World::new();
    let address = world.gateway.address().to_owned();
    let port = address.rsplit(':').next().unwrap();
    for (host, expected) in [
        (address.as_str(), 200),
        ("localhost", 200),
        (&format!("LOCALHOST:{port}"), 200),
        ("[::1]:80", 200),
        ("evil.example", 403),
        (&format!("evil.example:{port}"), 403),
        ("127.0.0.1.evil.example", 403),
        ("192.168.1.20", 403),
        ("", 403),
    ] {
        for path in ["/health", "/api/v1/me/permissions", "/login", "/assets/page.js"] {
            let head = format!(
                "GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\n",
                world.ann.key()
            );
            assert_eq!(raw_status(&address, &head), expected, "{host} {path}");
        }
    }
    // The target names the host in absolute form; two Host headers; none.
    for (head, expected) in [
        ("GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\n", 403),
        ("GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n", 400),
        ("GET /health HTTP/1.1\r\n", 400),
    ] {
        assert_eq!(raw_status(&address, head), expected, "{head}");
    }
}

#[test]
fn a_cookie_changes_state_only_from_the_gateways_own_origin() {
    let world = World::new();
    let id = world.ask(&world.session("workspace"), "k1");
    let cookie = log_in(&world, "ann");
    let own = world.gateway.url.clone();
    let decide = |client: &Client| {
        let path = format!("/api/v1/me/permissions/{id}/decide");
        let api = client.post(&path, &json!({"decision": "同意"})).status;
        let form = client.form(&format!("/approvals/{id}"), "decision=%E5%90%8C%E6%84%8F").status;
        (api, form)
    };
    for (name, value) in [
        ("Origin", "http://evil.example"),
        ("Origin", "null"),
        ("Origin", "http://127.0.0.1:1"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
    ] {
        assert_eq!(decide(&cookie.with(name, value)), (403, 403), "{name}: {value}");
    }
    assert_eq!(decide(&cookie), (403, 403), "neither header");
    let crossed = cookie.with("Origin", &own).with("Sec-Fetch-Site", "cross-site");
    assert_eq!(decide(&crossed), (403, 403));
    let plain = cookie.with("Origin", &own);
    let path = format!("/api/v1/me/permissions/{id}/decide");
    assert_eq!(plain.send(&path, "text/plain", b"{\"decision\":\"x\"}").status, 415);
    assert_eq!(plain.form(&path, "decision=x").status, 415);
    assert_eq!(world.ann.look(&format!("/api/v1/me/permissions/{id}"))["status"], "pending");
    assert_eq!(plain.form(&format!("/approvals/{id}"), "decision=%E5%90%8C%E6%84%8F").status, 303);
}

#[test]
fn answers_carry_the_security_headers_and_no_cors() {
    let world = World::new();
    for path in ["/login", "/health", "/api/v1/me/permissions", "/assets/page.css", "/nowhere"] {
        let reply = world.ann.with("Origin", "http://evil.example").get(path);
        assert!(reply.header("content-security-policy").starts_with("default-src 'none'"));
        assert_eq!(reply.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(reply.header("x-frame-options"), "DENY");
        assert_eq!(reply.header("referrer-policy"), "same-origin");
        assert_eq!(reply.header("access-control-allow-origin"), "");
    }
}

/// The status of the answer to a raw request head.
fn raw_status(address: &str, head: &str) -> u16 {
    use std::io::{Read as _, Write as _};
    let mut socket = std::net::TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default()
}
