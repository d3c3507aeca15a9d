//! The real mail server against the real gateway, with a person on the other side.

use serde_json::{Value, json};
use zcode_mail_tests::fakes::mcp::{Server, Setup};
use zcode_mail_tests::programs::Gateway;

/// A gateway with a person and an agent, and the agent's mail server.
struct World {
    gateway: Gateway,
    user_key: String,
    setup: Setup,
    _home: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let gateway = Gateway::start(&home.path().join("gateway"));
        let _ = gateway.operator(&["user", "add", "ann"]);
        let user_key = gateway.operator(&["user", "key", "create", "ann"]);
        let agent_key = gateway.operator(&["agent-key", "create", "zcode", "--owner", "ann"]);
        let setup = Setup::new(&gateway.url).set("AGENTMAIL_AGENT_KEY", &agent_key);
        Self { gateway, user_key, setup, _home: home }
    }

    fn server(&self) -> Server {
        let mut server = self.setup.start();
        // Registers the agent, so that mail can be addressed to it.
        let (text, is_error) = server.text("connect_to_server", &json!({}));
        assert!(!is_error && text.contains("as zcode"), "{text}");
        server
    }

    fn person(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let agent: ureq::Agent =
            ureq::Agent::config_builder().proxy(None).http_status_as_error(false).build().into();
        let url = format!("{}/api/v1/me{path}", self.gateway.url);
        let bearer = format!("Bearer {}", self.user_key);
        let reply = match (method, body) {
            ("POST", Some(body)) => agent
                .post(&url)
                .header("authorization", &bearer)
                .header("content-type", "application/json")
                .send(body.to_string()),
            _ => agent.get(&url).header("authorization", &bearer).call(),
        };
        let text = reply.unwrap().body_mut().read_to_string().unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The person writes to the agent.
    fn write(&self, subject: &str, body: &str) -> Value {
        let mail = json!({"to": "zcode@/srv/app.new", "subject": subject, "body": body});
        self.person("POST", "/mail/send", Some(&mail))
    }

    /// What the person has, newest first.
    fn inbox(&self) -> Vec<Value> {
        self.person("GET", "/mail/inbox", None)["mails"].as_array().unwrap().clone()
    }
}

fn after<'t>(text: &'t str, label: &str) -> &'t str {
    let rest = text.split_once(label).unwrap_or_else(|| panic!("no {label} in {text}")).1;
    rest.lines().next().unwrap_or_default().trim()
}

#[test]
fn the_inbox_marks_exactly_what_it_lists_and_all_marks_nothing() {
    let world = World::new();
    let mut server = world.server();
    for number in 0..5 {
        world.write(&format!("mail {number}"), "text");
    }
    let mut list = |arguments: Value| {
        let (text, is_error) = server.text("read_inbox", &arguments);
        assert!(!is_error, "{text}");
        text.matches("\nmail_id: ").count()
    };
    assert_eq!(list(json!({"status": "all"})), 5);
    assert_eq!(list(json!({"limit": 2})), 2);
    assert_eq!(list(json!({})), 3);
    assert_eq!(list(json!({})), 0);
    assert_eq!(list(json!({"status": "all", "limit": 50})), 5);
}

#[test]
fn an_answer_joins_the_session_with_file_and_proposal_and_the_text_stays_clean() {
    let world = World::new();
    let mut server = world.server();
    world.write("排查登录问题", "please look");
    let (text, _) = server.text("read_inbox", &json!({}));
    let reply_address = after(&text, "reply_address: ").to_owned();
    let mail_id = after(&text, "mail_id: ").to_owned();
    let (text, _) = server.text("read_mail", &json!({"mail_id": mail_id}));
    assert_eq!(after(&text, "reply_address: "), reply_address);
    let file: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    std::fs::write(world.setup.work().join("结果 1.bin"), &file).unwrap();
    let (text, is_error) = server.text("upload_attachment", &json!({"path": "结果 1.bin"}));
    assert!(!is_error, "{text}");
    let attachment = after(&text, "attachment_id: ").to_owned();
    let answer = json!({
        "to": reply_address, "reply_to": mail_id, "subject": "Re", "body": "done \"x\"\r\n会",
        "attachment_ids": attachment, "propose_alias": "a.b fix", "propose_reason": "found it",
    });
    let (text, is_error) = server.text("send_mail", &answer);
    assert!(!is_error, "{text}");
    // The gateway's own form of the alias, and that a person decides.
    assert!(text.contains("Rename proposed: a-b-fix. A human has to confirm it"), "{text}");
    let got = &world.inbox()[0];
    assert_eq!(got["body"], "done \"x\"\r\n会");
    assert_eq!(got["in_reply_to"], mail_id);
    assert_eq!(got["attachments"][0]["filename"], "结果 1.bin");
    let (text, is_error) =
        server.text("download_attachment", &json!({"attachment_id": attachment, "save_to": "b"}));
    assert!(!is_error, "{text}");
    assert!(std::fs::read(world.setup.work().join("b")).unwrap() == file);
    let (text, _) = server.text("read_thread", &json!({"mail_id": mail_id}));
    assert!(text.starts_with("Mails in the thread: 2"), "{text}");
}

#[test]
fn a_wrong_alias_is_told_and_opens_nothing() {
    let world = World::new();
    let mut server = world.server();
    let mail = json!({"to": "zcode@/srv/app.no-such", "subject": "s", "body": "b"});
    let (text, is_error) = server.text("send_mail", &mail);
    assert!(is_error && text.contains("404") && text.contains("Do not retry with .new"), "{text}");
    let (text, _) = server.text("list_contacts", &json!({}));
    assert!(text.contains("No contacts"), "{text}");
}

#[test]
fn addresses_are_found_step_by_step_and_deliver() {
    let world = World::new();
    let mut server = world.server();
    world.write("hello", "b");
    let (text, is_error) = server.text("suggest_address", &json!({}));
    assert!(!is_error && text.contains("- ann"), "{text}");
    let (text, _) = server.text("list_contacts", &json!({}));
    let line = text.lines().find(|line| line.starts_with("- ")).unwrap_or_else(|| panic!("{text}"));
    let address = line.trim_start_matches("- ").split("  ").next().unwrap();
    let session = after(line, "session_id=").split_whitespace().next().unwrap();
    let (people, _) = server.text("session_participants", &json!({"session_id": session}));
    assert!(people.contains("- ann (human)"), "{people}");
    let (text, is_error) =
        server.text("send_mail", &json!({"to": address, "subject": "s", "body": "b"}));
    assert!(!is_error, "{text}");
    let forwarded = after(&text, "mail_id: ").to_owned();
    let (text, is_error) = server
        .text("forward_mail", &json!({"mail_id": forwarded, "to": "ann@.new", "note": "fyi"}));
    assert!(!is_error, "{text}");
    assert_eq!(world.inbox().len(), 2);
}

#[test]
fn odd_texts_come_through_as_they_are() {
    let world = World::new();
    let mut server = world.server();
    let long = "长".repeat(20_000);
    for body in ["> quoted\n\n\ttab", "\u{202e}evil\u{2028}line", "\"'`\\ %s ${x}", "🎈👩‍💻", &long]
    {
        let mail = json!({"to": "ann", "subject": body.chars().take(40).collect::<String>(), "body": body});
        let (text, is_error) = server.text("send_mail", &mail);
        assert!(!is_error, "{text}");
        assert_eq!(world.inbox()[0]["body"], body);
    }
    world.write("s", &long);
    let (text, _) = server.text("read_inbox", &json!({}));
    let (mail_id, mut offset, mut read) = (after(&text, "mail_id: ").to_owned(), 0, String::new());
    loop {
        let (text, is_error) =
            server.text("read_mail", &json!({"mail_id": mail_id, "offset": offset}));
        assert!(!is_error && text.len() <= 48_000, "{}", text.len());
        read.extend(text.lines().filter_map(|line| line.strip_prefix("> ")));
        match text.split_once("\"offset\": ") {
            Some((_, rest)) => offset = rest.split_once('}').unwrap().0.parse().unwrap(),
            None => break,
        }
    }
    assert!(read == long, "the pages do not join");
}
