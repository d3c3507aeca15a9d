//! The evil agent: everything that it has (its key, the shared secret, loopback, mail) against the
//! decision. Each row is an act that would approve or widen something. It is refused and leaves a
//! line in the audit log; the same act with the guard's question answered goes through, so what
//! fails is the guard's doing and not the act's.
//!
//! Rows are named after the faults that they come from (authority, grants, network).

use super::page::log_in;
use super::*;

struct Attack {
    /// The row of the list of faults, and what is tried.
    name: &'static str,
    /// Tries it; the status.
    attack: fn(&World, &str) -> u16,
    /// What the guard must say.
    refusal: u16,
    /// Whether the refusal must be in the audit log: acts that name no request and no person are
    /// only counted in the gateway's own log.
    recorded: bool,
    /// The same act by somebody who may; the status.
    control: fn(&World, &str) -> u16,
}

const YES: &str = "decision=%E5%90%8C%E6%84%8F";

fn path(id: &str) -> String {
    format!("/api/v1/me/permissions/{id}/decide")
}

fn yes() -> Value {
    json!({"decision": "同意"})
}

fn by_ann(world: &World, id: &str) -> u16 {
    world.ann.post(&path(id), &yes()).status
}

fn by_anns_browser(world: &World, id: &str) -> u16 {
    log_in(world, "ann").form(&format!("/approvals/{id}"), YES).status
}

fn nobody(world: &World) -> Client {
    Client::new(&world.gateway.url, None)
}

const ATTACKS: &[Attack] = &[
    Attack {
        name: "1 an agent decides its own request with its key",
        attack: |world, id| world.zcode.post(&path(id), &yes()).status,
        refusal: 403,
        recorded: true,
        control: by_ann,
    },
    Attack {
        name: "1 another agent decides it",
        attack: |world, id| world.pi.post(&path(id), &yes()).status,
        refusal: 403,
        recorded: true,
        control: by_ann,
    },
    Attack {
        name: "1 the shared secret decides",
        attack: |world, id| {
            nobody(world)
                .with("X-Agent-Secret", "secret")
                .with("X-Agent-Name", "zcode")
                .post(&path(id), &yes())
                .status
        },
        refusal: 403,
        recorded: true,
        control: by_ann,
    },
    Attack {
        name: "1 an agent's key on the page's form",
        attack: |world, id| world.zcode.form(&format!("/approvals/{id}"), YES).status,
        refusal: 403,
        recorded: false,
        control: by_anns_browser,
    },
    Attack {
        name: "1 an agent's key beside a person's is still an agent's",
        attack: |world, id| {
            world.ann.with("X-Agent-Secret", "secret").post(&path(id), &yes()).status
        },
        refusal: 403,
        recorded: true,
        control: by_ann,
    },
    Attack {
        name: "2 another person decides",
        attack: |world, id| world.bob.post(&path(id), &yes()).status,
        refusal: 404,
        recorded: true,
        control: by_ann,
    },
    Attack {
        name: "2 another person decides in a browser",
        attack: |world, id| log_in(world, "bob").form(&format!("/approvals/{id}"), YES).status,
        refusal: 404,
        recorded: true,
        control: by_anns_browser,
    },
    Attack {
        name: "3 free text decides",
        attack: |world, id| {
            world.ann.post(&path(id), &json!({"decision": "ok, but don't send"})).status
        },
        refusal: 400,
        recorded: true,
        control: by_ann,
    },
    Attack {
        name: "3 an option with a tail decides",
        attack: |world, id| world.ann.post(&path(id), &json!({"decision": "同意\u{200b}"})).status,
        refusal: 400,
        recorded: true,
        control: by_ann,
    },
    Attack {
        name: "4 an agent sends the mail that tells of a decision, marked as relayed",
        attack: |world, id| {
            let request = world.ann.look(&format!("/api/v1/me/permissions/{id}"));
            world.zcode.post("/api/v1/mail/send", &json!({
                "to": "zcode", "subject": "同意", "body": "同意", "mail_type": "permission_decision",
                "reply_to": request["mail_id"],
            })).status
        },
        refusal: 400,
        recorded: false,
        control: by_ann,
    },
    Attack {
        name: "6 a decision is sent again after the request has ended",
        attack: |world, id| {
            world.zcode.ok(&format!("/api/v1/permission/{id}/withdraw"), &json!({}));
            by_ann(world, id)
        },
        refusal: 409,
        recorded: true,
        control: |world, id| {
            by_ann(
                world,
                &world.ask(
                    &text(&world.ann.look(&format!("/api/v1/me/permissions/{id}")), "session_id"),
                    "again",
                ),
            )
        },
    },
    Attack {
        name: "9 a taken key asks another question, to be answered by the first decision",
        attack: |world, id| {
            let request = world.ann.look(&format!("/api/v1/me/permissions/{id}"));
            let mut other = question(&text(&request, "session_id"), &text(&request, "relay_key"));
            other["context"] = "rm -rf /".into();
            world.zcode.post("/api/v1/permission/request", &other).status
        },
        refusal: 409,
        recorded: false,
        control: by_ann,
    },
    Attack {
        name: "23 an agent withdraws another agent's request",
        attack: |world, id| {
            world.pi.post(&format!("/api/v1/permission/{id}/withdraw"), &json!({})).status
        },
        refusal: 404,
        recorded: false,
        control: |world, id| {
            world.zcode.post(&format!("/api/v1/permission/{id}/withdraw"), &json!({})).status
        },
    },
    Attack {
        name: "23 an agent looks at another agent's request",
        attack: |world, id| world.pi.get(&format!("/api/v1/permission/{id}")).status,
        refusal: 404,
        recorded: false,
        control: |world, id| world.zcode.get(&format!("/api/v1/permission/{id}")).status,
    },
    Attack {
        name: "23 an agent listens to a person's events",
        attack: |world, _| world.zcode.get("/api/v1/me/events").status,
        refusal: 403,
        recorded: true,
        control: |world, _| world.ann.get("/api/v1/me/permissions").status,
    },
    Attack {
        name: "24 a page elsewhere posts the form with the person's cookie",
        attack: |world, id| {
            let browser = log_in(world, "ann");
            let (name, cookie) =
                browser.headers.iter().find(|(name, _)| name == "Cookie").unwrap().clone();
            nobody(world)
                .with(&name, &cookie)
                .with("Origin", "https://evil.example")
                .form(&format!("/approvals/{id}"), YES)
                .status
        },
        refusal: 403,
        recorded: false,
        control: by_anns_browser,
    },
    Attack {
        name: "24 the same without any origin",
        attack: |world, id| {
            let browser = log_in(world, "ann");
            let (name, cookie) =
                browser.headers.iter().find(|(name, _)| name == "Cookie").unwrap().clone();
            nobody(world).with(&name, &cookie).form(&format!("/approvals/{id}"), YES).status
        },
        refusal: 403,
        recorded: false,
        control: by_anns_browser,
    },
    Attack {
        name: "24 a name that was rebound to this address",
        attack: |world, id| world.ann.with("Host", "evil.example").post(&path(id), &yes()).status,
        refusal: 403,
        recorded: false,
        control: by_ann,
    },
    Attack {
        name: "25 a guessed login code",
        attack: |world, _| {
            nobody(world).get("/login/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA").status
        },
        refusal: 410,
        recorded: false,
        control: |world, _| log_in(world, "ann").get("/approvals").status,
    },
    Attack {
        name: "15 a key reads the original",
        attack: |world, id| world.zcode.form(&format!("/approvals/{id}/reveal"), "").status,
        refusal: 403,
        recorded: false,
        control: |world, id| {
            log_in(world, "ann").form(&format!("/approvals/{id}/reveal"), "").status
        },
    },
];

#[test]
fn every_attack_fails_and_the_same_act_with_the_right_to_it_goes_through() {
    let world = World::with(&[("AGENTMAIL_AGENT_SECRET", "secret")]);
    let session = world.session("workspace");
    let mut recorded = 0;
    for (number, attack) in ATTACKS.iter().enumerate() {
        let id = world.ask(&session, &format!("k{number}"));
        let refusals = "SELECT count(*) FROM audit WHERE event = 'refuse'";
        let decided = format!(
            "SELECT count(*) FROM permission_requests WHERE id = '{id}' AND status = 'decided'"
        );
        let before = world.count(refusals);
        assert_eq!((attack.attack)(&world, &id), attack.refusal, "{}", attack.name);
        assert_eq!(world.count(&decided), 0, "{}", attack.name);
        let lines = world.count(refusals) - before;
        assert!(!attack.recorded || lines == 1, "{}: {lines} lines", attack.name);
        recorded += lines;
        let status = (attack.control)(&world, &id);
        assert!((200..400).contains(&status), "{}: the control gets {status}", attack.name);
    }
    println!(
        "{} attacks refused, {recorded} lines in the audit log, {} controls through",
        ATTACKS.len(),
        ATTACKS.len()
    );
}

/// The stored row: whatever is changed in it between the question and the decision, nothing is
/// decided. With the seal made to fit the changed row, the same run shows approvals.
#[test]
fn a_request_that_was_changed_in_the_database_cannot_be_decided() {
    let rounds = if std::env::var_os("ZCODE_MAIL_SOAK").is_some() { 2_000 } else { 40 };
    let world = World::new();
    let session = world.session("workspace");
    let other = world.session("workspace");
    let (mut blocked, mut approved) = (0, 0);
    for n in 0..rounds {
        let id = world.ask(&session, &format!("k{n}"));
        let db = world.database();
        let change = match n % 5 {
            0 => format!("context = 'cargo test {n}'"),
            1 => format!(
                "context = substr(context, 1, {}) || 'x' || substr(context, {})",
                n % 10,
                n % 10 + 2
            ),
            2 => format!("question = question || {n}"),
            3 => format!("relay_key = 'other{n}'"),
            _ => format!("session_id = '{other}'"),
        };
        let changed = format!("UPDATE permission_requests SET {change} WHERE id = '{id}'");
        assert_eq!(db.execute(&changed, []).unwrap(), 1);
        assert_eq!(by_ann(&world, &id), 409, "{changed}");
        blocked += 1;
        if n < 40 {
            // The guard off: its record is made to agree with the changed row.
            let detail: String = db
                .query_row("SELECT json_array(relay_key, session_id, question, context) FROM permission_requests WHERE id = ?1", [&id], |row| row.get(0))
                .unwrap();
            let seal =
                zcode_mail_core::digest::hex(&zcode_mail_core::digest::sha256(detail.as_bytes()));
            db.execute_batch("DROP TRIGGER IF EXISTS audit_is_append_only_1").unwrap();
            db.execute(
                "UPDATE audit SET detail = ?1 WHERE subject = ?2 AND event = 'ask'",
                [format!("sha256:{seal}"), id.clone()],
            )
            .unwrap();
            approved += usize::from(by_ann(&world, &id) == 200);
        }
    }
    println!(
        "{blocked} changed rows refused; {approved} of {} decided with the seal replaced",
        rounds.min(40)
    );
    assert_eq!(approved, rounds.min(40));
}
