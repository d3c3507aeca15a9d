//! The real hook against a scripted gateway: the loop, its ends, its manners as a process.

use std::process::Stdio;
use std::time::{Duration, Instant};

use zcode_mail_tests::fakes::gateway::{Endpoint, Gateway, Play};
use zcode_mail_tests::fakes::hook::{Hook, Said, event, event_with, pre_tool_use};
use zcode_mail_tests::programs::{PATIENCE, Running};

const APPROVE: &str = "{\"decision\":\"approve\",\"hookSpecificOutput\":{\"hookEventName\":\"PermissionRequest\",\"decision\":{\"behavior\":\"allow\"}}}\n";

#[test]
fn a_persons_yes_lets_the_call_run() {
    let gateway = Gateway::start();
    let said = Hook::driven(&gateway.url).run_decided(&gateway, "同意", "");
    assert_eq!((said.stdout.as_str(), said.status), (APPROVE, 0), "{said:?}");
    assert_eq!(said.code, "approved-once");

    let order: Vec<_> = gateway.seen().iter().map(|seen| seen.endpoint).collect();
    assert_eq!(order, [Endpoint::Stream, Endpoint::Ask], "subscribe first, then ask, once");
    let stream = &gateway.seen()[0];
    assert_eq!(stream.headers["accept"], "text/event-stream");
    assert_eq!(stream.headers["authorization"], "Bearer am_test");
    assert!(!stream.headers.contains_key("last-event-id"));
    let ask = gateway.seen()[1].json();
    assert_eq!(ask["session_id"], "mail-1");
    assert_eq!(ask["relay_key"], "perm_call-1");
    assert!(ask.get("to").is_none());
    assert!(ask["context"].as_str().unwrap().contains("cargo test"), "{ask}");
}

#[test]
fn a_persons_no_and_words_reach_the_model() {
    let gateway = Gateway::start();
    let said = Hook::driven(&gateway.url).run_decided(&gateway, "拒绝", "先写测试");
    assert_eq!((said.answer, said.status), ('-', 0), "{said:?}");
    for words in ["用户拒绝", "han", "先写测试"] {
        assert!(said.reason.contains(words), "{said:?}");
    }
}

#[test]
fn a_text_that_is_no_option_is_not_a_yes() {
    for text in ["同意吗", "不同意", "approve?", "同意\u{200b}", ""] {
        let gateway = Gateway::start();
        let said = Hook::new(&gateway.url).run_decided(&gateway, text, "");
        assert_eq!(
            (said.answer, said.code.as_str()),
            ('-', "unclear-decision"),
            "{text:?} {said:?}"
        );
        assert!(!said.reason.contains("用户拒绝"), "{said:?}");
    }
}

#[test]
fn an_interactive_hook_asks_without_a_session() {
    let gateway = Gateway::start();
    let said = Hook::new(&gateway.url).run_decided(&gateway, "同意", "");
    assert_eq!(said.answer, '+', "{said:?}");
    assert!(gateway.nth(Endpoint::Ask, 1).json().get("session_id").is_none());
}

#[test]
fn rules_need_no_gateway_no_home_and_no_key() {
    for (mode, session, input, expected) in [
        ("plan", "mail-1", event("Bash", "c"), '-'),
        ("plan", "", event("Write", "c"), '-'),
        ("full", "mail-1", event("Bash", "c"), '+'),
        ("full", "", event("Edit", "c"), '+'),
        ("workspace", "", event("Read", "c"), '.'),
        ("workspace", "mail-1", event("AskUserQuestion", "c"), '.'),
        ("workspace", "mail-1", event("mcp__agentmail__send_mail", "c"), '+'),
        ("workspace", "mail-1", event("mcp__agentmail__connect_to_server", "c"), '.'),
        ("plan", "mail-1", pre_tool_use("Bash", "c"), '-'),
        ("plan", "", pre_tool_use("Bash", "c"), '.'),
    ] {
        let gateway = Gateway::start();
        let said = Hook::new(&gateway.url)
            .set("HOME", "")
            .set("AGENTMAIL_AGENT_KEY", "")
            .set("AGENTMAIL_PERMISSION_MODE", mode)
            .set("AGENTMAIL_SESSION_ID", session)
            .event(input)
            .run();
        assert_eq!((said.answer, said.status), (expected, 0), "{mode} {session} {said:?}");
        assert!(gateway.seen().is_empty(), "{mode} {session}");
    }
}

#[test]
fn every_dialect_answers_both_events() {
    let no = |hook: Hook| hook.set("AGENTMAIL_PERMISSION_MODE", "plan").run().stdout;
    let yes = |hook: Hook| hook.set("AGENTMAIL_PERMISSION_MODE", "full").run().stdout;
    let hook = |dialect: &str, input: Vec<u8>| {
        Hook::driven("http://127.0.0.1:9").arg("--dialect").arg(dialect).event(input)
    };
    let mut golden = String::new();
    for dialect in ["both", "structured", "flat"] {
        for input in [event("Bash", "c"), pre_tool_use("Bash", "c")] {
            golden.push_str(&yes(hook(dialect, input.clone())));
            golden.push_str(&no(hook(dialect, input)));
        }
    }
    insta::assert_snapshot!(golden);
}

#[test]
fn unreadable_events_block_when_mail_drives() {
    let large = event_with("Write", "c", &format!("{{\"content\":\"{}\"}}", "x".repeat(9 << 20)));
    for input in [
        b"".to_vec(),
        b" \n".to_vec(),
        b"null".to_vec(),
        b"[]".to_vec(),
        b"\"x\"".to_vec(),
        event("Bash", "c")[..80].to_vec(),
        b"{\"hook_event_name\":\"PermissionRequest\",\"tool_name\":\"B\xff\"}".to_vec(),
        br#"{"hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"\ud800"}}"#
            .to_vec(),
        large,
    ] {
        let driven = Hook::driven("http://127.0.0.1:9").event(input.clone()).run();
        assert_eq!((driven.answer, driven.status), ('-', 0), "{driven:?}");
        let alone = Hook::new("http://127.0.0.1:9").event(input).run();
        assert_eq!((alone.answer, alone.status), ('.', 0), "{alone:?}");
    }
}

#[test]
fn stdin_that_never_ends_is_given_up() {
    for (hook, answer) in
        [(Hook::driven("http://127.0.0.1:9"), '-'), (Hook::new("http://127.0.0.1:9"), '.')]
    {
        let mut running = Running::spawn(hook.command(), None);
        running.write(b"{\"hook_event_name\":");
        let said = Said::of(&running.finish_open(PATIENCE));
        assert_eq!((said.answer, said.status), (answer, 0), "{said:?}");
        assert!(said.stderr.contains("did not end"), "{said:?}");
    }
}

#[test]
fn input_in_any_language_and_locale_is_shown_whole() {
    let gateway = Gateway::start();
    let text = "会".repeat(40_000) + "😀 end";
    let input = event_with("Write", "c", &format!(r#"{{"file_path":"/p/😀","content":"{text}"}}"#));
    let hook = Hook::new(&gateway.url).set("LC_ALL", "C").event(input);
    let said = hook.run_decided(&gateway, "同意", "");
    assert_eq!(said.answer, '+', "{said:?}");
    let context = gateway.nth(Endpoint::Ask, 1).json()["context"].as_str().unwrap().to_owned();
    assert!(context.contains(&text) && context.contains("/p/😀"));
}

#[test]
fn a_request_that_cannot_be_complete_is_not_sent() {
    let gateway = Gateway::start();
    let input = event_with("Write", "c", &format!("{{\"content\":\"{}\"}}", "x".repeat(1 << 20)));
    let said = Hook::new(&gateway.url).event(input).run();
    assert_eq!((said.answer, said.code.as_str()), ('-', "request-too-large"), "{said:?}");
    assert!(gateway.seen().is_empty());
}

#[test]
fn nobody_answers_within_the_limit() {
    for (driven, answer) in [(true, '-'), (false, '.')] {
        let gateway = Gateway::start();
        let hook = if driven { Hook::driven(&gateway.url) } else { Hook::new(&gateway.url) };
        let said = hook.wait_ms(400).run();
        assert_eq!((said.answer, said.code.as_str()), (answer, "timed-out"), "{said:?}");
        let question = gateway.questions().into_values().next().unwrap();
        assert!(question.withdrawn, "no ghost request stays");
    }
}

#[test]
fn a_wait_that_is_too_long_is_clamped_with_a_line() {
    let gateway = Gateway::start();
    let hook = Hook::new(&gateway.url).wait_ms(600_000);
    let said = hook.run_decided(&gateway, "同意", "");
    assert!(said.stderr.contains("570000"), "{said:?}");
    assert_eq!(said.answer, '+');
}

#[test]
fn a_signal_takes_the_question_back() {
    for name in ["TERM", "INT"] {
        for (driven, answer) in [(true, '-'), (false, '.')] {
            let gateway = Gateway::start();
            let hook = if driven { Hook::driven(&gateway.url) } else { Hook::new(&gateway.url) };
            let running = hook.start();
            gateway.asked();
            let start = Instant::now();
            running.signal(name);
            let said = Said::of(&running.finish(PATIENCE));
            assert_eq!((said.answer, said.status), (answer, 0), "{name} {said:?}");
            assert_eq!(said.code, "signal");
            assert!(gateway.questions().values().all(|question| question.withdrawn), "{name}");
            // ZCode kills 750 ms after SIGTERM; generous for a loaded machine.
            assert!(start.elapsed() < Duration::from_secs(5));
        }
    }
}

#[test]
fn a_signal_ends_the_hook_although_the_withdrawal_hangs() {
    let gateway = Gateway::start();
    gateway.always(Endpoint::Withdraw, Play::Hold(vec![]));
    let running = Hook::driven(&gateway.url).start();
    gateway.asked();
    running.signal("TERM");
    let said = Said::of(&running.finish(PATIENCE));
    assert_eq!((said.answer, said.status), ('-', 0), "{said:?}");
}

#[test]
fn a_signal_before_the_event_blocks_when_mail_drives() {
    for (hook, answer) in
        [(Hook::driven("http://127.0.0.1:9"), '-'), (Hook::new("http://127.0.0.1:9"), '.')]
    {
        let mut running = Running::spawn(hook.command(), None);
        running.write(b"{");
        // The handlers are there before stdin is read; wait until the hook sleeps on it.
        await_sleep(running.id());
        running.signal("TERM");
        let said = Said::of(&running.finish_open(PATIENCE));
        assert_eq!((said.answer, said.status), (answer, 0), "{said:?}");
    }
}

/// Waits until a process sleeps in poll.
fn await_sleep(pid: u32) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let wchan = std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
        // 7 is poll and 271 is ppoll on x86-64; elsewhere, or without the file, a pause has to do.
        if wchan.starts_with("7 ") || wchan.starts_with("271 ") {
            return;
        }
        if wchan.is_empty() {
            std::thread::sleep(Duration::from_millis(300));
            return;
        }
        assert!(Instant::now() < deadline, "{wchan}");
        std::thread::yield_now();
    }
}

#[test]
fn a_caught_panic_never_approves() {
    for step in [
        "read",
        "rules",
        "grants",
        "credential",
        "loop",
        "stream",
        "exchange",
        "reply",
        "chunk",
        "answer",
    ] {
        for (driven, answer, status) in [(true, '-', 2), (false, '.', 0)] {
            let gateway = Gateway::start();
            let hook = if driven { Hook::driven(&gateway.url) } else { Hook::new(&gateway.url) };
            let hook = hook.set("AGENTMAIL_TEST_PANIC_AT", step);
            let running = hook.start();
            if matches!(step, "chunk" | "answer") {
                let key = gateway.asked();
                gateway.decide(&key, "同意", "");
            }
            let said = Said::of(&running.finish(PATIENCE));
            assert_eq!((said.answer, said.status), (answer, status), "{step} {said:?}");
            assert_eq!(said.stderr.contains("panic"), driven, "{step} {said:?}");
        }
    }
}

#[test]
fn a_refusal_that_cannot_be_written_is_a_status() {
    let hook = Hook::driven("http://127.0.0.1:9").set("AGENTMAIL_PERMISSION_MODE", "plan");
    let mut command = hook.command();
    // Every write to this file fails for want of space.
    let full = std::fs::File::options().write(true).open("/dev/full");
    let Ok(full) = full else { return };
    let mut child =
        command.stdin(Stdio::piped()).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), &event("Bash", "c")).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("plan"));
}

#[test]
fn proxies_of_the_environment_do_not_capture_this_machine() {
    let gateway = Gateway::start();
    let mut hook = Hook::new(&gateway.url);
    for name in [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "AGENTMAIL_PROXY",
    ] {
        hook = hook.set(name, "http://127.0.0.1:9");
    }
    assert_eq!(hook.run_decided(&gateway, "同意", "").answer, '+');
}

#[test]
fn the_named_proxy_is_used_for_other_machines() {
    // The proxy sees the request line or the tunnel for a host that does not exist.
    let proxy = Gateway::start();
    let said = Hook::new("http://mail.invalid:8180")
        .set("AGENTMAIL_PROXY", &proxy.url)
        .wait_ms(1_500)
        .run();
    assert_eq!(said.answer, '.', "{said:?}");
    let seen = proxy.seen();
    assert!(seen.iter().any(|seen| seen.target.contains("mail.invalid")), "{seen:?} {said:?}");
}

#[test]
fn the_shared_secret_travels_with_the_name() {
    let gateway = Gateway::start();
    let hook = Hook::new(&gateway.url)
        .set("AGENTMAIL_AGENT_KEY", "")
        .set("AGENTMAIL_AGENT_SECRET", "s3cret")
        .set("AGENTMAIL_AGENT_NAME", "zcode");
    assert_eq!(hook.run_decided(&gateway, "同意", "").answer, '+');
    for seen in gateway.seen() {
        assert_eq!(seen.headers["x-agent-secret"], "s3cret");
        assert_eq!(seen.headers["x-agent-name"], "zcode");
        assert!(!seen.headers.contains_key("authorization"));
    }
}

#[test]
fn without_settings_nobody_is_asked_and_the_reason_says_which() {
    for (name, hook, word) in [
        ("no key", Hook::driven("http://127.0.0.1:9").set("AGENTMAIL_AGENT_KEY", ""), "agent.key"),
        (
            "no home",
            Hook::driven("http://127.0.0.1:9").set("AGENTMAIL_AGENT_KEY", "").set("HOME", ""),
            "HOME",
        ),
        ("no url", Hook::driven("127.0.0.1:9"), "AGENTMAIL_GATEWAY_URL"),
        (
            "odd key",
            Hook::driven("http://127.0.0.1:9").set("AGENTMAIL_AGENT_KEY", "a b"),
            "AGENTMAIL_AGENT_KEY",
        ),
        (
            "no CA file",
            Hook::driven("https://127.0.0.1:9").set("AGENTMAIL_CA_FILE", "/nonexistent.pem"),
            "AGENTMAIL_CA_FILE",
        ),
    ] {
        let said = hook.run();
        assert_eq!((said.answer, said.code.as_str()), ('-', "not-configured"), "{name} {said:?}");
        assert!(said.reason.contains(word), "{name} {said:?}");
        let interactive = hook.set("AGENTMAIL_SESSION_ID", "").run();
        assert_eq!(interactive.answer, '.', "{name}");
    }
}

#[test]
fn the_key_is_never_printed() {
    let gateway = Gateway::start();
    gateway.always(Endpoint::Ask, Play::json(500, "{\"error\":\"x\"}"));
    for key in ["am_very_secret", "am very secret"] {
        let said = Hook::driven(&gateway.url).set("AGENTMAIL_AGENT_KEY", key).run();
        assert!(!said.stdout.contains(key) && !said.stderr.contains(key), "{said:?}");
    }
}

#[test]
fn help_and_version_are_no_answers() {
    for arg in ["--help", "--version"] {
        let said = Hook::driven("http://127.0.0.1:9").arg(arg).run();
        assert_eq!(said.status, 0);
        assert!(said.stdout.contains("zcode-mail-hook"));
    }
    let said = Hook::driven("http://127.0.0.1:9")
        .arg("--no-such")
        .set("AGENTMAIL_PERMISSION_MODE", "plan")
        .run();
    assert_eq!((said.answer, said.status), ('-', 0), "an unknown argument does not open the gate");
}

#[test]
fn english_is_chosen_by_a_setting() {
    let gateway = Gateway::start();
    let hook = Hook::driven(&gateway.url).set("AGENTMAIL_LANG", "en");
    let said = hook.run_decided(&gateway, "拒绝", "tests first");
    assert!(
        said.reason.contains("User refused") && said.reason.contains("tests first"),
        "{said:?}"
    );
}
