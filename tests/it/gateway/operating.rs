//! The operator's side: first start, commands, environment, files.

use super::*;
use zcode_mail_tests::programs::{Running, command, run};

fn fails(args: &[&str], env: &[(&str, &str)]) -> String {
    let out = run("zcode-mail", args, env);
    assert_eq!(out.status.code(), Some(1), "{args:?}: {out:?}");
    assert_eq!(out.stdout, b"", "{args:?}");
    String::from_utf8(out.stderr).unwrap()
}

#[test]
fn the_first_start_makes_the_administrator_of_the_environment() {
    let folder = TempDir::new().unwrap();
    let env = [("ADMIN_USER", "root"), ("ADMIN_PASSWORD", "correct horse")];
    let gateway = Gateway::start_with(folder.path(), "127.0.0.1:0", &env);
    let client = Client::new(&gateway.url, None).with("Origin", &gateway.url);
    assert_eq!(client.form("/login", "name=root&password=wrong+horse").status, 401);
    assert_eq!(client.form("/login", "name=root&password=correct+horse").status, 303);
    let (_, log) = gateway.stop();
    assert!(!log.contains("horse"), "{log}");
    // A later start changes nothing.
    let env = [("ADMIN_USER", "other"), ("ADMIN_PASSWORD", "other password")];
    let gateway = Gateway::start_with(folder.path(), "127.0.0.1:0", &env);
    let client = Client::new(&gateway.url, None).with("Origin", &gateway.url);
    assert_eq!(client.form("/login", "name=other&password=other+password").status, 401);
    assert_eq!(client.form("/login", "name=root&password=correct+horse").status, 303);
}

#[test]
fn without_a_password_the_first_start_prints_a_link_that_works_once() {
    let folder = TempDir::new().unwrap();
    let mut command = command("zcode-mail", &[]);
    command.args(["gateway", "--listen", "127.0.0.1:0", "--data"]).arg(folder.path());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    let line = lines.next().unwrap().unwrap();
    let link = line
        .split(' ')
        .find(|word| word.starts_with("http://"))
        .unwrap_or_else(|| panic!("{line}"));
    let browser = Client::new("", None);
    assert_eq!(browser.get(link).status, 303);
    assert_eq!(browser.get(link).status, 410);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn commands_work_beside_a_running_gateway() {
    let world = World::new();
    let token = "token-that-an-agent-made-itself-0123456789";
    let data = world.gateway.data.to_str().unwrap();
    let registered = world.gateway.operator(&[
        "agent-key",
        "register",
        "own",
        "--owner",
        "bob",
        "--key-token",
        token,
    ]);
    let id = registered.strip_prefix("registered ").unwrap();
    let own = Client::new(&world.gateway.url, Some(token));
    assert_eq!(own.post("/api/v1/agent/heartbeat", &json!({})).status, 200);
    let again = ["agent-key", "register", "own", "--owner", "bob", "--key-token", token];
    let refused = fails(&[&again[..], &["--data", data]].concat(), &[]);
    assert!(refused.contains("registered already"), "{refused}");
    let _ = world.gateway.operator(&["agent-key", "revoke", id]);
    assert_eq!(own.post("/api/v1/agent/heartbeat", &json!({})).status, 401);
}

#[test]
fn a_key_on_stdin_never_stands_in_the_arguments() {
    let world = World::new();
    let mut command = command("zcode-mail", &[]);
    command.args(["agent-key", "register", "own", "--owner", "bob", "--stdin", "--data"]);
    command.arg(&world.gateway.data);
    let out = Running::spawn(command, Some(b"token-on-stdin-0123456789abcdef\n")).finish(PATIENCE);
    assert!(out.status.success(), "{out:?}");
    let own = Client::new(&world.gateway.url, Some("token-on-stdin-0123456789abcdef"));
    assert_eq!(own.post("/api/v1/agent/heartbeat", &json!({})).status, 200);
}

#[test]
fn refusals_say_what_to_do() {
    let world = World::new();
    let data = world.gateway.data.to_str().unwrap();
    for (args, expected) in [
        (&["user", "add", "ann"][..], "belongs to a person"),
        (&["user", "add", "zcode"], "belongs to an agent"),
        (&["user", "add", "a@b"], "letters, digits"),
        (&["user", "add", ""], "letters, digits"),
        (&["user", "login-link", "nobody"], "user add nobody"),
        (&["agent-key", "create", "ann", "--owner", "ann"], "belongs to a person"),
        (&["agent-key", "create", "x", "--owner", "nobody"], "user add nobody"),
        (&["agent-key", "register", "x", "--owner", "ann", "--key-token", "short"], "key_token"),
        (&["agent-key", "revoke", "nothing"], "agent-key list"),
    ] {
        let refused = fails(&[args, &["--data", data]].concat(), &[]);
        assert!(refused.contains(expected), "{args:?}: {refused}");
    }
    let listed = fails(&["gateway", "--data", data, "--listen", world.gateway.address()], &[]);
    assert!(listed.contains("--listen"), "{listed}");
}

#[test]
fn other_databases_are_refused_clearly() {
    let refused = fails(&["gateway"], &[("DATABASE_URL", "postgres://u:secret@h/d")]);
    assert!(refused.contains("PostgreSQL") && !refused.contains("secret"), "{refused}");
}

#[test]
fn the_database_can_be_named_by_url_or_folder() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("own.db");
    let url = format!("sqlite://{}", file.display());
    let data = folder.path().join("data");
    for env in [("DATABASE_URL", url.as_str()), ("AGENTMAIL_DATA_DIR", data.to_str().unwrap())] {
        let out = run("zcode-mail", &["user", "add", "ann"], &[env]);
        assert!(out.status.success(), "{out:?}");
    }
    assert!(file.is_file() && data.join("agentmail.db").is_file());
}

#[test]
fn a_password_is_read_from_stdin_and_too_short_ones_are_refused() {
    let world = World::new();
    let add = |name: &str, password: &str| {
        let mut command = command("zcode-mail", &[]);
        command.args(["user", "add", name, "--password-stdin", "--data"]).arg(&world.gateway.data);
        Running::spawn(command, Some(password.as_bytes())).finish(PATIENCE)
    };
    assert_eq!(add("eve", "1234567\n").status.code(), Some(1));
    assert!(add("eve", "12345678\n").status.success());
    let client = Client::new(&world.gateway.url, None).with("Origin", &world.gateway.url);
    assert_eq!(client.form("/login", "name=eve&password=12345678").status, 303);
}

#[test]
fn a_wider_address_is_warned_about() {
    let folder = TempDir::new().unwrap();
    let gateway = Gateway::start_with(folder.path(), "0.0.0.0:0", &[]);
    let (status, log) = gateway.stop();
    assert!(status.success());
    assert!(log.contains("warning: 0.0.0.0:") && log.contains("plain HTTP"), "{log}");
}

#[test]
fn a_killed_gateway_loses_nothing_that_it_confirmed() {
    let world = World::new();
    let session = world.session("workspace");
    let id = world.ask(&session, "k1");
    world.ann.ok(&format!("/api/v1/me/permissions/{id}/decide"), &json!({"decision": "同意"}));
    let (data, address) = (world.gateway.data.clone(), world.gateway.address().to_owned());
    world.gateway.kill();
    let _gateway = Gateway::start_with(&data, &address, &[]);
    let again = world.zcode.ok("/api/v1/permission/request", &question(&session, "k1"));
    assert_eq!(again["decision"], "同意");
}

#[test]
fn the_wire_demo_tells_every_step_and_each_answer_is_right() {
    let folder = TempDir::new().unwrap();
    let env = [("TMPDIR", folder.path().to_str().unwrap())];
    let out = run("zcode-mail", &["demo", "--wire"], &env);
    let told = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{told} {}", String::from_utf8_lossy(&out.stderr));
    assert!(told.contains("12. A misspelt session") && !told.contains("UNEXPECTED"), "{told}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
}
