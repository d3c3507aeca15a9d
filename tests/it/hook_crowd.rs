//! Many hooks at once, and hooks and gateways that die, against the real gateway where it matters.

use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use zcode_mail_core::grants::Grants;
use zcode_mail_tests::fakes::gateway::{Endpoint, Gateway as Fake};
use zcode_mail_tests::fakes::hook::{Hook, Said, event, event_with};
use zcode_mail_tests::programs::{Gateway, PATIENCE, Running, operator};

/// The real gateway with one person, one agent and one session.
struct World {
    _folder: TempDir,
    gateway: Gateway,
    person: String,
    agent: String,
    session: String,
}

impl World {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let data = folder.path().join("data");
        let gateway = Gateway::start(&data);
        let _ = operator(&data, &["user", "add", "ann"]);
        let person = operator(&data, &["user", "key", "create", "ann"]);
        let agent = operator(&data, &["agent-key", "create", "zcode", "--owner", "ann"]);
        let mut world = Self { _folder: folder, gateway, person, agent, session: String::new() };
        let sent = world.human(
            "/api/v1/me/mail/send",
            Some(&json!({"to": "zcode@/p.new", "subject": "s", "body": "b"})),
        );
        world.session = sent["session_id"].as_str().unwrap().to_owned();
        world
    }

    fn human(&self, path: &str, body: Option<&Value>) -> Value {
        let http = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .timeout_global(Some(PATIENCE))
            .build()
            .new_agent();
        let url = format!("{}{path}", self.gateway.url);
        let bearer = format!("Bearer {}", self.person);
        let reply = match body {
            None => http.get(&url).header("authorization", &bearer).call(),
            Some(body) => http
                .post(&url)
                .header("authorization", &bearer)
                .header("content-type", "application/json")
                .send(body.to_string()),
        };
        let mut reply = reply.unwrap_or_else(|error| panic!("{path}: {error}"));
        let text = reply.body_mut().read_to_string().unwrap();
        assert!(reply.status().is_success(), "{path}: {} {text}", reply.status());
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{path}: {text}"))
    }

    /// Waits until `count` questions are pending; gives (request id, key) of each.
    fn pending(&self, count: usize) -> Vec<(String, String)> {
        let deadline = std::time::Instant::now() + PATIENCE * 3;
        loop {
            let found = self.human("/api/v1/me/permissions?status=pending", None);
            let list = found.as_array().or_else(|| found["permissions"].as_array());
            let list = list.unwrap_or_else(|| panic!("no list in {found}"));
            if list.len() >= count {
                let text = |item: &Value, key: &str| item[key].as_str().unwrap().to_owned();
                return list
                    .iter()
                    .map(|item| (text(item, "request_id"), text(item, "relay_key")))
                    .collect();
            }
            assert!(std::time::Instant::now() < deadline, "{} of {count}", list.len());
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn decide(&self, id: &str, decision: &str, note: &str) {
        let body = json!({"decision": decision, "note": note});
        let _ = self.human(&format!("/api/v1/me/permissions/{id}/decide"), Some(&body));
    }

    fn hook(&self) -> Hook {
        Hook::driven(&self.gateway.url)
            .set("AGENTMAIL_AGENT_KEY", &self.agent)
            .set("AGENTMAIL_SESSION_ID", &self.session)
    }

    /// Kills the gateway and starts another one on the same data and address.
    fn crash_and_restart(&mut self) {
        let address = self.gateway.address().to_owned();
        let data = self.gateway.data.clone();
        let fresh = Gateway::start(&data.with_extension("spare"));
        std::mem::replace(&mut self.gateway, fresh).kill();
        let restarted = Gateway::start_with(&data, &address, &[]);
        self.gateway = restarted;
    }
}

fn start(hook: &Hook, call: &str) -> Running {
    hook.clone().event(event("Bash", call)).start()
}

#[test]
fn ten_hooks_in_one_session_get_their_own_answers_in_reverse_order() {
    let world = World::new();
    let hook = world.hook();
    let running: Vec<_> = (0..10).map(|n| start(&hook, &format!("call-{n}"))).collect();
    let pending = world.pending(10);
    for n in (0..10).rev() {
        let key = format!("perm_call-{n}");
        let (id, _) = pending.iter().find(|(_, known)| *known == key).unwrap();
        world.decide(id, if n % 2 == 0 { "同意" } else { "拒绝" }, &format!("note-{n}-"));
    }
    for (n, running) in running.into_iter().enumerate() {
        let said = Said::of(&running.finish(PATIENCE));
        if n % 2 == 0 {
            assert_eq!(said.code, "approved-once", "{n} {said:?}");
        } else {
            assert_eq!(said.code, "refused", "{n} {said:?}");
            assert!(said.reason.contains(&format!("note-{n}-")), "{n} {said:?}");
        }
    }
}

#[test]
fn ten_waiting_hooks_survive_a_crash_of_the_gateway() {
    let mut world = World::new();
    let hook = world.hook();
    let running: Vec<_> = (0..10).map(|n| start(&hook, &format!("call-{n}"))).collect();
    let before = world.pending(10);
    world.crash_and_restart();
    let after = world.pending(10);
    assert_eq!(after.len(), before.len(), "no question is lost or asked twice");
    for (id, _) in &after {
        world.decide(id, "同意", "");
    }
    for running in running {
        let said = Said::of(&running.finish(PATIENCE));
        assert_eq!(said.code, "approved-once", "{said:?}");
    }
}

#[test]
fn two_identical_calls_are_two_questions_and_a_retry_is_one() {
    let fake = Fake::start();
    let hook = Hook::driven(&fake.url);
    let same = [start(&hook, "call-1"), start(&hook, "call-2"), start(&hook, "call-1")];
    for n in 1..=3 {
        let _ = fake.nth(Endpoint::Ask, n);
    }
    let questions = fake.questions();
    assert_eq!(questions.keys().collect::<Vec<_>>(), ["perm_call-1", "perm_call-2"]);
    fake.decide("perm_call-1", "同意", "");
    fake.decide("perm_call-2", "拒绝", "");
    let codes = same.map(|running| Said::of(&running.finish(PATIENCE)).code);
    assert_eq!(codes, ["approved-once", "refused", "approved-once"]);
}

#[test]
fn calls_without_any_id_are_never_one() {
    let fake = Fake::start();
    let bare = String::from_utf8(event_with("Bash", "x", r#"{"command":"ls"}"#)).unwrap();
    let bare = ["\"requestId\":\"perm_x\",", ",\"tool_use_id\":\"x\"", ",\"toolCallId\":\"x\""]
        .iter()
        .fold(bare, |text, part| text.replace(part, ""));
    let hook = Hook::driven(&fake.url).event(bare);
    let running = [hook.start(), hook.start()];
    let _ = fake.nth(Endpoint::Ask, 2);
    let keys: Vec<_> = fake.questions().into_keys().collect();
    assert_eq!(keys.len(), 2, "{keys:?}");
    fake.decide(&keys[0], "同意", "");
    fake.decide(&keys[1], "拒绝", "");
    let mut codes = running.map(|running| Said::of(&running.finish(PATIENCE)).code);
    codes.sort();
    assert_eq!(codes, ["approved-once", "refused"]);
}

#[test]
fn two_hundred_waiting_hooks_each_get_their_own_decision() {
    const CROWD: usize = 200;
    let world = World::new();
    let hook = world.hook().set("AGENTMAIL_LANG", "en");
    let running: Vec<_> = (0..CROWD).map(|n| start(&hook, &format!("call-{n}"))).collect();
    let mut pending = world.pending(CROWD);
    // Any order but theirs; the digest of a key is as good as random and the same every time.
    pending.sort_by_key(|(_, key)| zcode_mail_core::relay_key::sha256_hex(key.as_bytes()));
    for (id, key) in &pending {
        let yes = key.ends_with(['0', '3', '7']);
        world.decide(id, if yes { "同意" } else { "拒绝" }, &format!("for {key}."));
    }
    for (n, running) in running.into_iter().enumerate() {
        let said = Said::of(&running.finish(PATIENCE));
        let yes = n.to_string().ends_with(['0', '3', '7']);
        assert_eq!(said.answer, if yes { '+' } else { '-' }, "{n} {said:?}");
        assert!(yes || said.reason.contains(&format!("for perm_call-{n}.")), "{n} {said:?}");
    }
}

#[test]
fn fifty_processes_that_remember_at_once_lose_nothing() {
    const CROWD: usize = 50;
    let fake = Fake::start();
    let hook = Hook::driven(&fake.url);
    let session = |n: usize| format!("mail-{n}");
    let running: Vec<_> = (0..CROWD)
        .map(|n| {
            let hook = hook.clone().set("AGENTMAIL_SESSION_ID", &session(n));
            start(&hook, &format!("call-{n}"))
        })
        .collect();
    let _ = fake.nth(Endpoint::Ask, CROWD);
    for key in fake.questions().into_keys() {
        fake.decide(&key, "一直同意", "");
    }
    for running in running {
        let said = Said::of(&running.finish(PATIENCE));
        assert_eq!(said.code, "approved-always", "{said:?}");
        assert!(!said.stderr.contains("NOT"), "{said:?}");
    }
    let dir = hook.home().join(".agentmail");
    let grants =
        Grants::parse(&std::fs::read(dir.join("permission-grants.json")).unwrap()).unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let now = zcode_mail_core::time::UnixMillis(i64::try_from(now.as_millis()).unwrap());
    for n in 0..CROWD {
        assert!(grants.covers(&session(n), "Bash", now), "{n} is lost");
    }
    let left: Vec<_> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("tmp"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_killed_hook_leaves_a_question_that_its_retry_takes_up() {
    // Killed before the stream, after it, after the question.
    for step in [Endpoint::Stream, Endpoint::Ask] {
        let fake = Fake::start();
        let hook = Hook::driven(&fake.url);
        let first = hook.start();
        let _ = fake.nth(step, 1);
        first.signal("KILL");
        let gone = Said::of(&first.finish(PATIENCE));
        assert_eq!((gone.answer, gone.status), ('.', -1), "no half answer: {gone:?}");
        let again = hook.start();
        fake.wait_for("the retry's question", |seen| {
            let asks = seen.iter().filter(|seen| seen.endpoint == Endpoint::Ask).count();
            let streams = seen.iter().filter(|seen| seen.endpoint == Endpoint::Stream).count();
            (asks >= 1 && streams >= 2).then_some(())
        });
        let key = fake.asked();
        fake.decide(&key, "同意", "");
        assert_eq!(Said::of(&again.finish(PATIENCE)).code, "approved-once");
        assert_eq!(fake.questions().len(), 1, "one call is one question");
    }
}

#[test]
fn a_decision_after_the_hooks_death_approves_nothing_but_its_retry() {
    let fake = Fake::start();
    let hook = Hook::driven(&fake.url);
    let first = hook.start();
    let key = fake.asked();
    first.signal("KILL");
    assert_eq!(Said::of(&first.finish(PATIENCE)).stdout, "");
    fake.decide(&key, "同意", "");
    let other = hook.clone().event(event("Bash", "call-other")).wait_ms(500).run();
    assert_eq!(other.code, "timed-out", "{other:?}");
    assert_eq!(hook.run().code, "approved-once");
}

#[test]
fn a_hook_stopped_past_its_limit_does_not_use_a_late_yes() {
    let fake = Fake::start();
    let hook = Hook::driven(&fake.url).wait_ms(3_000);
    let running = hook.start();
    let key = fake.asked();
    running.signal("STOP");
    thread::sleep(Duration::from_millis(3_500));
    fake.decide(&key, "同意", "");
    running.signal("CONT");
    let said = Said::of(&running.finish(PATIENCE));
    // Stopped before or after it read the reply to its question; a yes is neither.
    let honest = ["timed-out", "temporary-failure"].contains(&said.code.as_str());
    assert!(said.answer == '-' && honest, "{said:?}");
}

#[test]
fn a_closed_stdout_turns_a_refusal_into_status_2() {
    for (mode, expected) in [("plan", Some(2)), ("full", Some(0))] {
        let hook = Hook::driven("http://127.0.0.1:9").set("AGENTMAIL_PERMISSION_MODE", mode);
        let mut command = hook.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Nobody reads: the pipe's other end is gone before the answer.
        drop(child.stdout.take());
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), &event("Bash", "c")).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), expected, "{mode} {output:?}");
    }
}
