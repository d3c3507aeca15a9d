//! The page without a browser: what it serves and what its forms do.

use super::*;

pub(super) fn log_in(world: &World, name: &str) -> Client {
    let link = world.gateway.operator(&["user", "login-link", name, "--url", &world.gateway.url]);
    let reply = Client::new("", None).get(&link);
    assert_eq!((reply.status, reply.header("location")), (303, "/approvals"), "{reply:?}");
    let cookie = reply.header("set-cookie");
    assert!(cookie.contains("SameSite=Strict") && cookie.contains("HttpOnly"), "{cookie}");
    let pair = cookie.split(';').next().unwrap();
    Client::new(&world.gateway.url, None)
        .with("Cookie", pair)
        .with("Origin", &world.gateway.url)
        .with("Accept-Language", "en")
}

#[test]
fn a_request_is_seen_opened_decided_and_kept_in_the_history() {
    let world = World::new();
    let id = world.ask(&world.session("workspace"), "k1");
    let browser = log_in(&world, "ann");
    let list = browser.get("/approvals");
    assert!(list.body.contains("(1) Waiting") && list.body.contains("允许执行 Bash 吗？"));
    assert!(list.body.contains(&format!("href=\"/approvals/{id}\"")));
    let page = browser.get(&format!("/approvals/{id}")).body;
    for part in
        ["cargo test", "请跑 cargo test。", "Given by", "Approve", "Refuse", "If nobody answers"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    let form = "decision=%E6%8B%92%E7%BB%9D&note=first%0D%0Asecond";
    let done = browser.form(&format!("/approvals/{id}"), form);
    assert_eq!((done.status, done.header("location")), (303, format!("/approvals/{id}").as_str()));
    let request = world.ann.look(&format!("/api/v1/me/permissions/{id}"));
    assert_eq!((&request["decision"], &request["note"]), (&json!("拒绝"), &json!("first\nsecond")));
    assert!(browser.get("/approvals").body.contains("Nothing waits for you."));
    let history = browser.get("/approvals/history").body;
    assert!(history.contains("Refuse") && history.contains("first\nsecond"), "{history}");
    // A second click, in another tab.
    let late = browser.form(&format!("/approvals/{id}"), "decision=%E5%90%8C%E6%84%8F");
    assert_eq!(late.status, 409);
    assert!(late.body.contains("already decided by ann"), "{}", late.body);
}

#[test]
fn a_late_click_is_told_that_nothing_was_run() {
    let world = World::new();
    let id = world.ask(&world.session("workspace"), "k1");
    let browser = log_in(&world, "ann");
    world.zcode.ok(&format!("/api/v1/permission/{id}/withdraw"), &json!({}));
    let late = browser.form(&format!("/approvals/{id}"), "decision=%E5%90%8C%E6%84%8F");
    assert_eq!(late.status, 409);
    assert!(late.body.contains("too late, nothing was run"), "{}", late.body);
}

#[test]
fn pages_of_others_do_not_exist() {
    let world = World::new();
    let id = world.ask(&world.session("workspace"), "k1");
    let bob = log_in(&world, "bob");
    assert_eq!(bob.get(&format!("/approvals/{id}")).status, 404);
    assert_eq!(bob.form(&format!("/approvals/{id}"), "decision=%E5%90%8C%E6%84%8F").status, 404);
    assert!(bob.get("/approvals").body.contains("Nothing waits for you."));
}

#[test]
fn a_login_link_is_used_up_by_a_person_and_not_by_what_looks_ahead() {
    let world = World::new();
    let link = world.gateway.operator(&["user", "login-link", "ann", "--url", &world.gateway.url]);
    let anybody = Client::new("", None);
    for (name, value) in [
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Purpose", "prefetch;prerender"),
        ("Purpose", "prefetch"),
    ] {
        let reply = anybody.with(name, value).get(&link);
        assert_eq!(reply.status, 200, "{name}: {reply:?}");
        assert_eq!(reply.header("set-cookie"), "");
        assert!(reply.body.contains("method=\"post\""));
    }
    let head = anybody.http.head(&link).call().unwrap();
    assert!(!head.headers().contains_key("set-cookie"));
    assert_eq!(anybody.form(&link, "").status, 403, "a form of another site");
    let own = anybody.with("Origin", &world.gateway.url);
    assert_eq!(own.form(&link, "").status, 303);
    assert_eq!(own.form(&link, "").status, 410);
    assert_eq!(anybody.get(&link).status, 410);
}

#[test]
fn a_login_link_dies_with_its_quarter_of_an_hour() {
    let world = World::new();
    let link = world.gateway.operator(&["user", "login-link", "ann", "--url", &world.gateway.url]);
    world.database().execute("UPDATE logins SET expires_at = expires_at - 900001", []).unwrap();
    assert_eq!(Client::new("", None).get(&link).status, 410);
}

#[test]
fn passwords_can_be_guessed_ten_times() {
    let world = World::with(&[("ADMIN_USER", "root"), ("ADMIN_PASSWORD", "correct horse")]);
    let client = Client::new(&world.gateway.url, None).with("Origin", &world.gateway.url);
    for _ in 0..10 {
        assert_eq!(client.form("/login", "name=root&password=x").status, 401);
    }
    let refused = client.form("/login", "name=root&password=correct+horse");
    assert_eq!(refused.status, 429);
    assert!(refused.header("retry-after").parse::<u32>().is_ok());
}

#[test]
fn without_a_login_pages_lead_to_the_form_and_back() {
    let world = World::new();
    let browser = Client::new(&world.gateway.url, None);
    let reply = browser.get("/approvals/abc");
    assert_eq!((reply.status, reply.header("location")), (303, "/login?next=%2Fapprovals%2Fabc"));
    let form = browser.get("/login?next=%2Fapprovals%2Fabc").body;
    assert!(form.contains("name=\"next\" value=\"/approvals/abc\""), "{form}");
    let form = browser.get("/login?next=https%3A%2F%2Fevil.example").body;
    assert!(form.contains("name=\"next\" value=\"/approvals\""), "{form}");
    assert_eq!(browser.get("/").header("location"), "/approvals");
}

#[test]
fn texts_of_agents_and_people_never_become_markup() {
    const CORPUS: [&str; 8] = [
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "'><svg onload=alert(1)>",
        "</pre><script>alert(1)</script>",
        "</textarea><script>alert(1)</script>",
        "javascript:alert(1)",
        "{{ 7*7 }}<%= 7 %>${7}",
        "&lt;script&gt;",
    ];
    let world = World::new();
    let browser = log_in(&world, "ann");
    for (number, attack) in CORPUS.iter().enumerate() {
        let sent = world.ann.ok(
            "/api/v1/me/mail/send",
            &json!({
                "to": "zcode@/p.new", "subject": attack, "body": attack, "session_alias": attack,
            }),
        );
        let asked = world.zcode.ok(
            "/api/v1/permission/request",
            &json!({
                "question": attack, "context": attack, "options": [attack, "拒绝"],
                "session_id": sent["session_id"], "relay_key": format!("k{number}"),
            }),
        );
        let path = format!("/approvals/{}", text(&asked, "request_id"));
        let mut pages =
            vec![browser.get(&path), browser.get("/approvals"), browser.get("/approvals/list")];
        let decide = format!("/api/v1/me/permissions/{}/decide", text(&asked, "request_id"));
        world.ann.ok(&decide, &json!({"decision": attack, "note": attack}));
        pages.extend([browser.get(&path), browser.get("/approvals/history")]);
        for page in pages {
            assert_eq!(page.status, 200);
            let escaped: String = attack
                .chars()
                .map(|c| match c {
                    '<' => "&#60;".into(),
                    '>' => "&#62;".into(),
                    '&' => "&#38;".into(),
                    '"' => "&#34;".into(),
                    '\'' => "&#39;".into(),
                    other => other.to_string(),
                })
                .collect();
            assert!(page.body.contains(&escaped) || !page.body.contains("k0"), "{attack}");
            if escaped != *attack {
                assert!(!page.body.contains(attack), "{attack} in {}", page.body);
            }
        }
    }
    // What a stranger puts into the address and into the form.
    let anonymous = Client::new(&world.gateway.url, None).with("Origin", &world.gateway.url);
    let attack = "%22%3E%3Cscript%3Ealert(1)%3C/script%3E";
    for page in [
        anonymous.get(&format!("/login/{attack}")),
        anonymous.get(&format!("/login?next={attack}")),
        anonymous.form("/login", &format!("name={attack}&password=x")),
        browser.get(&format!("/approvals/{attack}")),
    ] {
        assert!(!page.body.contains("<script>alert"), "{}", page.body);
    }
}

#[test]
fn the_page_speaks_both_languages_and_remembers_the_switch() {
    let world = World::new();
    let browser = Client::new(&world.gateway.url, None);
    assert!(browser.get("/login").body.contains("lang=\"zh-CN\""));
    let english = browser.with("Accept-Language", "en-GB,en;q=0.9");
    assert!(english.get("/login").body.contains("Log in"));
    assert_eq!(browser.form("/language", "lang=en&next=/login").status, 403, "no origin");
    let own = browser.with("Origin", &world.gateway.url);
    let reply = own.form("/language", "lang=en&next=/login");
    assert_eq!((reply.status, reply.header("location")), (303, "/login"));
    let cookie = reply.header("set-cookie").split(';').next().unwrap().to_owned();
    assert!(browser.with("Cookie", &cookie).get("/login").body.contains("lang=\"en\""));
}

#[test]
fn pages_name_no_other_host_and_carry_no_inline_code() {
    let world = World::new();
    world.ask(&world.session("workspace"), "k1");
    let browser = log_in(&world, "ann");
    for path in ["/login", "/approvals", "/approvals/history", "/nowhere"] {
        let body = browser.get(path).body;
        assert!(!body.contains("http://") && !body.contains("https://"), "{path}");
        assert!(!body.contains("<style") && !body.contains(" style="), "{path}");
        assert!(body.matches("<script").count() == 1 && body.contains("src=\"/assets/page.js?v="));
        assert!(body.len() < 60 * 1024);
        for word in body.split_whitespace() {
            assert!(!word.starts_with("on") || !word.contains("=\""), "{word}");
        }
    }
    let script = browser.get("/assets/page.js");
    assert_eq!(script.header("content-type"), "text/javascript; charset=utf-8");
    assert!(script.header("cache-control").contains("immutable"));
    assert_eq!(browser.get("/assets/../gateway.rs").status, 404);
}
