//! What was shown, decided and recorded: pages, masks, the audit log (faults 13, 15; section 3, row 3).

use std::path::Path;

use zcode_mail_core::digest::{Call, CallDigest};
use zcode_mail_core::exact;
use zcode_mail_core::lang::Lang;
use zcode_mail_core::render::{Request, render};
use zcode_mail_tests::programs::run;

use super::page::log_in;
use super::*;

/// A context as our hook makes it.
fn context(command: &str) -> (String, CallDigest) {
    let input = exact::Value::object(vec![("command".into(), exact::Value::Text(command.into()))]);
    let call =
        Call { tool: "Bash", input: &input, cwd: "/p", session: None, agent: None, operands: &[] };
    let digest = CallDigest::of(&call);
    let document = render(&Request {
        tool: "Bash",
        cwd: "/p",
        input: &input,
        facts: &[],
        before: None,
        hints: &[],
        notes: &[],
        operands: &[],
        digest: Some(digest),
        lang: Lang::Zh,
    });
    (document.unwrap().text(), digest)
}

fn ask_with(world: &World, context: &str, key: &str) -> String {
    let session = world.session("workspace");
    let mut question = question(&session, key);
    question["context"] = context.into();
    text(&world.zcode.ok("/api/v1/permission/request", &question), "request_id")
}

fn audit(args: &[&str], database: &Path) -> (bool, String) {
    let mut all = vec!["audit"];
    all.extend(args);
    let database = database.to_str().unwrap();
    all.extend(["--database", database]);
    let out = run("zcode-mail", &all, &[]);
    let text = [out.stdout, out.stderr].concat();
    (out.status.success(), String::from_utf8(text).unwrap())
}

/// The records of the log: event, who, how, subject, digest, detail.
fn records(world: &World) -> Vec<Value> {
    let (ok, text) = audit(&["export"], &world.gateway.data.join("agentmail.db"));
    assert!(ok, "{text}");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn events(world: &World, subject: &str) -> Vec<String> {
    let about = records(world);
    let about = about.iter().filter(|record| record["subject"] == subject);
    about
        .map(|record| {
            format!("{} {} {}", text(record, "event"), text(record, "who"), text(record, "how"))
        })
        .collect()
}

const APPROVE: &str = "decision=%E5%90%8C%E6%84%8F";

#[test]
fn every_act_leaves_its_record_with_who_how_and_digest() {
    let world = World::new();
    let (context, digest) = context("cargo test");
    let id = ask_with(&world, &context, "k1");
    let browser = log_in(&world, "ann");
    let page = browser.get(&format!("/approvals/{id}")).body;
    assert!(page.contains(&digest.code()), "{page}");
    browser.form(&format!("/approvals/{id}"), APPROVE);
    // A second click is refused and recorded as well.
    assert_eq!(browser.form(&format!("/approvals/{id}"), APPROVE).status, 409);
    assert_eq!(
        events(&world, &id),
        ["ask zcode api", "notify ann mail", "view ann page", "decide ann page", "refuse ann page"]
    );
    let all = records(&world);
    let decide = all.iter().find(|record| record["event"] == "decide").unwrap();
    assert_eq!((&decide["digest"], &decide["detail"]), (&json!(digest.hex()), &json!("同意")));
    assert!(all.iter().any(|record| record["event"] == "login" && record["how"] == "link"));
    assert!(all.iter().filter(|record| record["event"] == "key").count() >= 4);
    let (ok, said) = audit(&["verify"], &world.gateway.data.join("agentmail.db"));
    assert!(ok && said.contains(&format!("{} records", all.len() - 1)), "{said}");

    let other = ask_with(&world, &context, "k2");
    world.zcode.ok(&format!("/api/v1/permission/{other}/withdraw"), &json!({}));
    assert_eq!(events(&world, &other).last().unwrap(), "withdraw zcode api");
}

/// section 3, row 3: flip, drop, swap, truncate, append.
#[test]
fn whatever_is_done_to_a_copy_of_the_log_is_found_and_located() {
    let world = World::new();
    for key in ["k1", "k2", "k3"] {
        ask_with(&world, "x", key);
    }
    let folder = TempDir::new().unwrap();
    let export = folder.path().join("log");
    let last = records(&world).len() - 1;
    for (damage, place) in [
        ("UPDATE audit SET who = who || 'x' WHERE number = 3", "record 3 is not as".to_owned()),
        ("UPDATE audit SET event = 'nothing' WHERE number = 4", "record 4 cannot be read".into()),
        ("UPDATE audit SET hash = zeroblob(32) WHERE number = 5", "record 5 is not as".into()),
        ("DELETE FROM audit WHERE number = 2", "record 2 is missing".into()),
        (
            "UPDATE audit SET number = -2 WHERE number = 2; UPDATE audit SET number = 2 WHERE number = 3; UPDATE audit SET number = 3 WHERE number = -2",
            "record 2 is not as".into(),
        ),
        (
            "DELETE FROM audit WHERE number > 6",
            format!("{} of {last} records are missing at the end", last - 6),
        ),
        (
            "INSERT INTO audit SELECT max(number) + 1, at, event, who, how, subject, digest, detail, hash FROM audit",
            format!("record {} is not as", last + 1),
        ),
        ("UPDATE audit_head SET number = number - 1", format!("record {last} was appended")),
    ] {
        let copy = folder.path().join("copy.db");
        let _ = std::fs::remove_file(&copy);
        let to = copy.to_str().unwrap();
        world.database().execute("VACUUM INTO ?1", [to]).unwrap();
        assert!(audit(&["verify"], &copy).0, "the copy holds");
        let db = rusqlite::Connection::open(&copy).unwrap();
        assert!(
            db.execute_batch(damage).is_err()
                || damage.contains("head")
                || damage.contains("INSERT"),
            "append-only"
        );
        db.execute_batch(
            "DROP TRIGGER audit_is_append_only_1; DROP TRIGGER audit_is_append_only_2",
        )
        .unwrap();
        if !damage.contains("head") && !damage.contains("INSERT") {
            db.execute_batch(damage).unwrap();
        }
        drop(db);
        let (ok, said) = audit(&["verify"], &copy);
        assert!(!ok && said.contains(&place), "{damage}: {said}");
        // An export of the damaged log is found out as well.
        let (_, lines) = audit(&["export"], &copy);
        std::fs::write(&export, lines).unwrap();
        let (ok, said) = audit(&["verify", "--export", export.to_str().unwrap()], &copy);
        assert!(!ok, "{damage}: {said}");
    }
}

/// section 3, row 3: kill −9 at any write.
#[test]
fn a_gateway_killed_at_any_moment_leaves_a_chain_that_holds() {
    let soak = std::env::var_os("ZCODE_MAIL_SOAK").is_some();
    let (approvals, per_life) = if soak { (1_000, 25) } else { (24, 8) };
    let mut world = World::new();
    let session = world.session("workspace");
    let (mut taken, mut kills) = (Vec::new(), 0);
    for round in 0..approvals {
        let id = world.ask(&session, &format!("k{round}"));
        let (client, path) = (world.ann.clone(), format!("/api/v1/me/permissions/{id}/decide"));
        let body = json!({"decision": "同意"});
        if round % per_life != per_life - 1 {
            client.ok(&path, &body);
            taken.push(id);
            continue;
        }
        // The kill comes while decisions are under way, at a moment that differs each time.
        let busy = thread::spawn(move || {
            client
                .http
                .post(format!("{}{path}", client.url))
                .header("Authorization", &client.headers[0].1)
                .content_type("application/json")
                .send(body.to_string())
                .is_ok_and(|reply| reply.status() == 200)
        });
        thread::sleep(Duration::from_micros(137 * (round as u64 % 31)));
        let (address, data) = (world.gateway.address().to_owned(), world.gateway.data.clone());
        let old = world;
        old.gateway.kill();
        if busy.join().unwrap() {
            taken.push(id);
        }
        kills += 1;
        let (ok, said) = audit(&["verify"], &data.join("agentmail.db"));
        assert!(ok, "{said}");
        let gateway = Gateway::start_with(&data, &address, &[]);
        world = World {
            gateway,
            folder: old.folder,
            ann: old.ann,
            bob: old.bob,
            zcode: old.zcode,
            pi: old.pi,
        };
    }
    let recorded: Vec<String> = records(&world)
        .iter()
        .filter(|r| r["event"] == "decide")
        .map(|r| text(r, "subject"))
        .collect();
    for id in &taken {
        assert!(recorded.contains(id), "a decision that was taken has no record");
    }
    println!(
        "{approvals} approvals, {kills} kills, {} records, the chain holds",
        records(&world).len() - 1
    );
}

/// faults 13: the dangerous end of a long text.
#[test]
fn a_long_request_is_decided_only_after_its_last_page_was_shown() {
    let world = World::new();
    let (long, _) = context(&("echo step\n".repeat(400) + "rm -rf /"));
    let id = ask_with(&world, &long, "k1");
    let path = format!("/api/v1/me/permissions/{id}");
    let decide = |token: Option<&str>| {
        let mut body = json!({"decision": "同意"});
        if let Some(token) = token {
            body["view_token"] = token.into();
        }
        world.ann.post(&format!("{path}/decide"), &body)
    };
    assert_eq!(decide(None).status, 428);
    let first = world.ann.look(&format!("{path}?page=1"));
    let pages = first["pages"].as_u64().unwrap();
    assert!(pages > 1 && first.get("view_token").is_none(), "{first}");
    assert!(!first["text"].as_str().unwrap().contains("rm -rf"));
    assert_eq!(decide(None).status, 428);
    for wrong in ["", "x", &"0".repeat(43)] {
        assert_eq!(decide(Some(wrong)).status, 428, "{wrong}");
    }
    assert_eq!(world.ann.get(&format!("{path}?page={}", pages + 1)).status, 404);
    assert_eq!(world.ann.get(&format!("{path}?page=0")).status, 404);
    // The page: no form before the last page, and a form without its token is refused.
    let browser = log_in(&world, "ann");
    assert!(!browser.get(&format!("/approvals/{id}")).body.contains("name=\"decision\""));
    assert_eq!(browser.form(&format!("/approvals/{id}"), APPROVE).status, 428);
    // Another person's token is nobody's.
    assert_eq!(world.bob.get(&format!("{path}?page={pages}")).status, 404);
    let last = browser.get(&format!("/approvals/{id}?page={pages}")).body;
    assert!(last.contains("rm -rf /") && last.contains("name=\"decision\""), "{last}");
    let token =
        last.split_once("name=\"view_token\" value=\"").unwrap().1.split('"').next().unwrap();
    assert_eq!(text(&world.ann.look(&format!("{path}?page={pages}")), "view_token"), token);
    assert_eq!(decide(Some(token)).status, 200);
    assert!(events(&world, &id).iter().filter(|event| *event == "refuse ann api").count() >= 5);
}

/// faults 15: secrets in the command.
#[test]
fn secrets_are_masked_everywhere_and_shown_to_the_deciders_browser_only() {
    let world = World::new();
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ0123";
    let (context, digest) =
        context(&format!("curl -H 'Authorization: Bearer {secret}' https://example.org"));
    let id = ask_with(&world, &context, "k1");
    let browser = log_in(&world, "ann");
    let shown = [
        browser.get("/approvals").body,
        browser.get(&format!("/approvals/{id}")).body,
        world.ann.get(&format!("/api/v1/me/permissions/{id}")).body,
        world.ann.get("/api/v1/me/permissions").body,
        world.ann.get("/api/v1/me/mail/inbox").body,
    ];
    for body in &shown {
        assert!(!body.contains(secret), "{body}");
    }
    assert!(shown[1].contains("⟦secret×38⟧") && shown[1].contains(&digest.code()), "{}", shown[1]);
    assert_eq!(world.count("SELECT count(*) FROM mails WHERE body LIKE '%ghp_0123%'"), 0);
    // Asking again with the same text is still the same question.
    let mut again = question(
        &text(&world.ann.look(&format!("/api/v1/me/permissions/{id}")), "session_id"),
        "k1",
    );
    again["context"] = context.as_str().into();
    assert_eq!(text(&world.zcode.ok("/api/v1/permission/request", &again), "request_id"), id);

    // No lasting approval keeps the secret.
    let lasting =
        world.ann.post(&format!("/api/v1/me/permissions/{id}/grant"), &json!({"minutes": 5}));
    assert!(lasting.status == 400 && !shown[1].contains("/grant"), "{lasting:?}");

    let reveal = format!("/approvals/{id}/reveal");
    assert_eq!(log_in(&world, "bob").form(&reveal, "").status, 404);
    for client in [&world.ann, &world.zcode] {
        assert_eq!(client.form(&reveal, "").status, 403, "a key is no browser");
    }
    let revealed = browser.form(&reveal, "");
    assert!(revealed.status == 200 && revealed.body.contains(secret), "{}", revealed.body);
    assert!(events(&world, &id).contains(&"reveal ann page".to_owned()));

    // A day after the end it is gone: the next act of anybody erases it.
    browser.form(&format!("/approvals/{id}"), APPROVE);
    let kept = "SELECT count(*) FROM permission_requests WHERE original IS NOT NULL";
    let later = |ms: i64| {
        world
            .database()
            .execute(
                "UPDATE permission_requests SET ended_at = ended_at - ?1 WHERE status = 'decided'",
                [ms],
            )
            .unwrap();
        ask_with(&world, "x", &format!("later {ms}"));
    };
    later(24 * 3_600_000 - 60_000);
    assert_eq!(world.count(kept), 1, "a minute before the day is over");
    later(60_000);
    assert_eq!(world.count(kept), 0);
    assert!(!browser.form(&reveal, "").body.contains(secret));
}

/// faults 1 and 7 of the attack table: an agent at the human routes leaves a line.
#[test]
fn an_agent_at_a_human_route_is_refused_and_recorded() {
    let world = World::new();
    let id = world.ask(&world.session("workspace"), "k1");
    let path = format!("/api/v1/me/permissions/{id}/decide");
    for agent in [&world.zcode, &world.pi] {
        assert_eq!(agent.post(&path, &json!({"decision": "同意"})).status, 403);
    }
    let lines = records(&world)
        .into_iter()
        .filter(|record| record["event"] == "refuse" && record["subject"] == path);
    assert_eq!(lines.count(), 2);
    assert_eq!(text(&world.ann.look(&format!("/api/v1/me/permissions/{id}")), "status"), "pending");
}
