//! `zcode-mail doctor`: one seeded mistake, one named finding; a healthy set-up has none.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use serde_json::{Value, json};
use tempfile::TempDir;
use zcode_mail_tests::programs::{Gateway, PATIENCE, Running, bin};

/// A healthy installation that a test then harms.
struct Setup {
    dir: TempDir,
    env: BTreeMap<String, String>,
    args: Vec<String>,
    /// Processes that must live as long as the check.
    kept: Vec<Running>,
}

impl Setup {
    fn healthy(url: &str, key: &str) -> Self {
        let dir = TempDir::new().unwrap();
        fs::create_dir_all(dir.path().join("home/.zcode/cli")).unwrap();
        fs::create_dir_all(dir.path().join("bin")).unwrap();
        let mut setup = Self { dir, env: BTreeMap::new(), args: Vec::new(), kept: Vec::new() };
        setup.write("home/.zcode/cli/config.json", "{\n  \"theme\": \"dark\"\n}\n");
        let home = setup.path("home").display().to_string();
        let path = format!("{}:/usr/bin:/bin", setup.path("bin").display());
        setup.set("HOME", &home);
        setup.set("PATH", &path);
        setup.set("AGENTMAIL_GATEWAY_URL", url);
        setup.set("AGENTMAIL_AGENT_NAME", "zcode");
        setup.set("AGENTMAIL_AGENT_KEY", key);
        let out = setup.run(&["install", "--zcode-version", "3.15.1"]);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        setup
    }

    fn path(&self, place: &str) -> PathBuf {
        self.dir.path().join(place)
    }

    fn set(&mut self, name: &str, value: &str) {
        self.env.insert(name.to_owned(), value.to_owned());
    }

    fn write(&self, place: &str, text: &str) {
        let path = self.path(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn mode(&self, place: &str, mode: u32) {
        fs::set_permissions(self.path(place), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn edit(&self, place: &str, change: impl FnOnce(&mut Value)) {
        let path = self.path(place);
        let mut value: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        change(&mut value);
        fs::write(path, value.to_string()).unwrap();
    }

    fn config(&self, change: impl FnOnce(&mut Value)) {
        self.edit("home/.zcode/cli/config.json", change);
    }

    fn hooks(&self, change: impl FnOnce(&mut Value)) {
        self.edit(&format!("{PLUGIN}/hooks/hooks.json"), change);
    }

    /// A `zcode` that prints a list of plugins.
    fn zcode(&self, list: &str) {
        let script = format!("#!/bin/sh\n[ \"$1\" = plugins ] || exit 1\ncat <<'END'\n{list}END\n");
        self.write("bin/zcode", &script);
        self.mode("bin/zcode", 0o755);
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(bin("zcode-mail"));
        command.env_clear().envs(&self.env).args(args);
        command.arg("--prefix").arg(self.path("prefix"));
        command.arg("--config").arg(self.path("home/.zcode/cli/config.json"));
        Running::spawn(command, Some(b"")).finish(PATIENCE)
    }

    fn report(&self, more: &[&str]) -> Value {
        let mut args = vec!["doctor", "--json"];
        args.extend(self.args.iter().map(String::as_str));
        args.extend(more);
        let out = self.run(&args);
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let report: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{out:?}"));
        let clean = report["findings"].as_array().unwrap().is_empty();
        assert_eq!(out.status.code(), Some(i32::from(!clean)));
        report
    }

    fn codes(&self, more: &[&str]) -> BTreeSet<String> {
        codes(&self.report(more))
    }
}

const PLUGIN: &str = "prefix/plugins/zcode-mail-bridge/current";

fn codes(report: &Value) -> BTreeSet<String> {
    let findings = report["findings"].as_array().unwrap();
    for finding in findings {
        let (zh, en) = (finding["zh"].as_str().unwrap(), finding["en"].as_str().unwrap());
        assert!(en.len() > 20 && !zh.is_empty(), "{finding}");
    }
    findings.iter().map(|finding| finding["code"].as_str().unwrap().to_owned()).collect()
}

struct World {
    gateway: Gateway,
    key: String,
    user_key: String,
    _data: TempDir,
}

fn world() -> World {
    let data = TempDir::new().unwrap();
    let gateway = Gateway::start(data.path());
    let _ = gateway.operator(&["user", "add", "ann"]);
    let user_key = gateway.operator(&["user", "key", "create", "ann"]);
    let key = gateway.operator(&["agent-key", "create", "zcode", "--owner", "ann"]);
    World { gateway, key, user_key, _data: data }
}

/// Answers every connection with the same bytes.
fn answering(reply: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(reply.as_bytes());
        }
    });
    url
}

/// A gateway for the checks whose paths answer as given; anything else is 200 `{}`.
fn scripted(path: &'static str, reply: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: hello\n\n";
    const OK: &str =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            thread::spawn(move || {
                // One answer a connection, so the client opens a new one for the next request.
                let mut bytes = [0; 8192];
                let Ok(length) = stream.read(&mut bytes) else { return };
                let head = String::from_utf8_lossy(&bytes[..length]).into_owned();
                let asked = head.split(' ').nth(1).unwrap_or_default();
                let text = if asked == path {
                    reply
                } else if asked.ends_with("/stream") {
                    STREAM
                } else {
                    OK
                };
                let _ = stream.write_all(text.as_bytes());
                if asked.ends_with("/stream") && text == STREAM {
                    let _ = stream.read(&mut bytes);
                }
            });
        }
    });
    url
}

#[test]
fn a_healthy_set_up_has_no_finding_and_shows_what_the_hook_printed() {
    let world = world();
    let setup = Setup::healthy(&world.gateway.url, &world.key);
    setup.zcode(
        "Plugins:\n- other@inline [disabled]\n- agentmail@inline [enabled]\n  inline/inline: /x\n  \
         skills: 1, commands: 3, hooks: 1, mcp: plugin:agentmail:agentmail\n",
    );
    let report = setup.report(&[]);
    assert_eq!(report["findings"], json!([]), "{report:#}");
    assert!(report["checks"].as_u64().unwrap() >= 25);
    let started = report["started"].as_array().unwrap();
    let refusal = started.iter().find(|one| one["stdout"].as_str().unwrap().contains("deny"));
    let refusal = refusal.expect("the hook's refusal is shown");
    assert!(refusal["command"].as_str().unwrap().contains("--dialect both"), "{refusal}");
    let settings = report["settings"].to_string();
    assert!(settings.contains("probe: came back"), "{settings}");
    assert!(!report.to_string().contains(&world.key), "no key in a report");

    let out = setup.run(&["doctor", "--no-probe"]);
    assert!(out.status.success());
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains("nothing is wrong") && text.contains("[status 0]"), "{text}");
}

type Seed = fn(&mut Setup, &World);

/// A mistake and the code that names it.
fn seeds() -> Vec<(&'static str, Seed)> {
    vec![
        ("ZM-101", |s, _| fs::remove_file(s.path(PLUGIN)).unwrap()),
        ("ZM-102", |s, _| s.write("home/.zcode/cli/config.json", "{ \"a\": }")),
        ("ZM-103", |s, _| s.write("home/.zcode/cli/config.json", "{}")),
        ("ZM-104", |s, _| s.config(|c| c["plugins"]["enabled"] = json!(false))),
        ("ZM-105", |s, _| {
            s.config(|c| c["plugins"]["enabledPlugins"] = json!({ "agentmail@inline": false }));
        }),
        ("ZM-106", |s, _| {
            s.write("old/.claude-plugin/plugin.json", r#"{"name":"agentmail"}"#);
            let old = s.path("old");
            s.config(|c| {
                let dirs = c["plugins"]["dirs"].as_array_mut().unwrap();
                dirs.insert(0, json!(old));
            });
        }),
        ("ZM-107", |s, _| {
            s.edit(&format!("{PLUGIN}/.zcode-plugin/plugin.json"), |m| m["hooks"] = json!("hooks"));
        }),
        ("ZM-107", |s, _| s.write(&format!("{PLUGIN}/.zcode-plugin/plugin.json"), "{")),
        ("ZM-107", |s, _| s.hooks(|h| h["events"] = json!({}))),
        ("ZM-108", |s, _| fs::remove_file(s.path(PLUGIN).join("bin/zcode-mail-mcp")).unwrap()),
        ("ZM-109", |s, _| s.mode(&format!("{PLUGIN}/bin/zcode-mail-mcp"), 0o644)),
        ("ZM-110", |s, _| {
            s.write(
                &format!("{PLUGIN}/bin/zcode-mail-mcp"),
                "#!/bin/sh\necho zcode-mail-mcp 0.0.9\n",
            );
        }),
        ("ZM-111", |s, _| s.hooks(|h| each_hook(h, |hook| hook["timeoutMs"] = json!(600)))),
        ("ZM-111", |s, _| {
            s.hooks(|h| {
                each_hook(h, |hook| {
                    hook.as_object_mut().unwrap().remove("timeoutMs");
                    hook["timeout"] = json!(600);
                });
            });
        }),
        ("ZM-112", |s, _| s.hooks(|h| each_hook(h, |hook| hook["timeoutMs"] = json!(120_000)))),
        ("ZM-113", |s, _| s.set("AGENTMAIL_PERMISSION_WAIT_MS", "540")),
        ("ZM-114", |s, _| {
            s.write("engine/package.json", r#"{"version":"3.8.1"}"#);
            let engine = s.path("engine").display().to_string();
            s.set("ZCODE_ENGINE_DIR", &engine);
        }),
        ("ZM-115", |s, _| s.set("AGENTMAIL_ZCODE_DIALECT", "structred")),
        ("ZM-116", |s, _| {
            s.write("late/.zcode-plugin/plugin.json", r#"{"name":"late"}"#);
            s.write(
                "late/hooks/hooks.json",
                r#"{"hooks":{"PermissionRequest":[{"matcher":"*","hooks":[{"type":"process","command":"x"}]}]}}"#,
            );
            let late = s.path("late");
            s.config(|c| c["plugins"]["dirs"].as_array_mut().unwrap().push(json!(late)));
        }),
        ("ZM-117", |s, _| {
            s.config(|c| {
                let hooks = json!([{ "hooks": [{ "type": "process", "command": "x" }] }]);
                c["hooks"] = json!({ "enabled": true, "events": { "PreToolUse": hooks } });
            });
        }),
        ("ZM-118", |s, _| {
            s.hooks(|h| {
                each_hook(h, |hook| hook["command"] = json!("${ZCODE_PLUGIN_ROOT}/bin/no"))
            });
        }),
        ("ZM-119", |s, _| {
            s.write(
                &format!("{PLUGIN}/bin/zcode-mail-hook"),
                "#!/bin/sh\n[ \"$1\" = --version ] && echo zcode-mail-hook 0.1.0 && exit\necho hello\n",
            );
        }),
        ("ZM-119", |s, _| s.hooks(|h| each_hook(h, |hook| hook["command"] = json!("/bin/true")))),
        ("ZM-120", |s, _| s.zcode("- other@inline [enabled]\n")),
        ("ZM-120", |s, _| {
            s.write("engine/zcode.cjs", "// the engine, for Node.js");
            s.zcode("- other@inline [enabled]\n");
            let script = fs::read_to_string(s.path("bin/zcode")).unwrap();
            fs::remove_file(s.path("bin/zcode")).unwrap();
            s.write("bin/node", &script.replace("\"$1\" = plugins", "\"$2\" = plugins"));
            s.mode("bin/node", 0o755);
            let engine = s.path("engine").display().to_string();
            s.set("ZCODE_ENGINE_DIR", &engine);
        }),
        ("ZM-121", |s, _| {
            s.zcode("- agentmail@inline [disabled]\n  hooks: 1, mcp: plugin:agentmail:agentmail\n");
        }),
        ("ZM-122", |s, _| {
            s.zcode("- agentmail@inline [enabled]\n  hooks: 0, mcp: plugin:agentmail:agentmail\n");
        }),
        ("ZM-123", |s, _| {
            s.hooks(|h| h["hooks"]["PreToolUse"][0]["matcher"] = json!("Bash|Write"));
        }),
        ("ZM-124", |s, _| {
            s.write("prefix/plugins/zcode-mail-bridge/.zcode-mail-unfinished-1-0-0.1.0/x", "");
        }),
        ("ZM-201", |s, _| {
            s.env.remove("HOME");
        }),
        ("ZM-202", |s, _| s.set("AGENTMAIL_GATEWAY_URL", "127.0.0.1:8180")),
        ("ZM-203", |s, w| {
            let port = w.gateway.address().rsplit(':').next().unwrap().to_owned();
            s.set("AGENTMAIL_GATEWAY_URL", &format!("http://localhost:{port}"));
        }),
        ("ZM-204", |s, _| {
            s.set("AGENTMAIL_GATEWAY_URL", "https://gateway.invalid");
            s.set("HTTPS_PROXY", "http://127.0.0.1:9");
        }),
        ("ZM-205", |s, _| {
            s.set("AGENTMAIL_GATEWAY_URL", "https://gateway.invalid");
            s.set("SSL_CERT_FILE", "/etc/ssl/mine.pem");
        }),
        ("ZM-205", |s, _| s.set("AGENTMAIL_CA_FILE", "/nonexistent.pem")),
        ("ZM-206", |s, _| s.set("AGENTMAIL_GATEWAY_URL", "http://gateway.invalid")),
        ("ZM-207", |s, _| {
            s.env.remove("AGENTMAIL_AGENT_KEY");
        }),
        ("ZM-208", |s, w| s.set("AGENTMAIL_AGENT_KEY", &w.user_key)),
        ("ZM-209", |s, _| s.set("AGENTMAIL_AGENT_KEY", "amk_0000000000000000000000000000000")),
        ("ZM-210", |s, _| s.set("AGENTMAIL_AGENT_NAME", "pi")),
        ("ZM-211", |s, w| {
            s.env.remove("AGENTMAIL_AGENT_KEY");
            s.write("home/.agentmail/agent.key", &w.key);
            s.mode("home/.agentmail", 0o700);
            s.mode("home/.agentmail/agent.key", 0o644);
        }),
        ("ZM-212", |s, w| {
            let mut command = Command::new("sleep");
            command.arg("60").arg0_key(&w.key);
            s.kept.push(Running::spawn(command, None));
        }),
        ("ZM-212", |s, w| s.config(|c| c["mcp"] = json!({ "env": { "KEY": w.key } }))),
        ("ZM-213", |s, _| s.set("AGENTMAIL_GATEWAY", "http://127.0.0.1:1")),
        ("ZM-213", |s, _| s.set("AGENTMAIL_PERMISSION_MODE", "yolo")),
        ("ZM-301", |s, _| {
            // A port that was free a moment ago and that nobody listens on.
            let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            s.set("AGENTMAIL_GATEWAY_URL", &format!("http://{free}"));
        }),
        ("ZM-302", |s, _| {
            let html =
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>";
            s.set("AGENTMAIL_GATEWAY_URL", &answering(html));
        }),
        ("ZM-303", |s, _| {
            let late = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ndate: Tue, 15 Nov 1994 \
                        08:12:31 GMT\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
            s.set("AGENTMAIL_GATEWAY_URL", &scripted("/health", late));
            s.args.push("--no-probe".to_owned());
        }),
        ("ZM-304", |s, _| {
            let json =
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
            s.set("AGENTMAIL_GATEWAY_URL", &scripted("/api/v1/events/stream", json));
        }),
        ("ZM-305", |s, _| {
            let ok =
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
            s.set("AGENTMAIL_GATEWAY_URL", &scripted("/health", ok));
        }),
        ("ZM-306", |s, w| {
            let mut command = Command::new(bin("zcode-mail"));
            command.args(["gateway", "--listen", "127.0.0.1:0", "--data"]).arg(&w.gateway.data);
            command.stdout(Stdio::piped());
            s.kept.push(Running::spawn(command, None));
        }),
        ("ZM-401", |s, _| {
            fs::create_dir_all(s.path("home/.agentmail")).unwrap();
            s.mode("home/.agentmail", 0o777);
        }),
        ("ZM-402", |s, _| grants(s, "{\"version\": 1, \"grants\": [}", 0o600)),
        ("ZM-402", |s, _| grants(s, "{\"version\": 1, \"grants\": []}", 0o666)),
        ("ZM-403", |s, _| grants(s, &old_grant(), 0o600)),
        ("ZM-403", |s, _| {
            s.write("home/.agentmail/pending/abc.json", "{\"pid\":4194303,\"since\":0}");
            s.mode("home/.agentmail", 0o700);
        }),
    ]
}

fn old_grant() -> String {
    json!({ "version": 1, "grants": [{
        "session": "s", "tool": "Bash",
        "granted_at": "2020-01-01T00:00:00Z", "used_at": "2020-01-01T00:00:00Z",
    }]})
    .to_string()
}

fn grants(setup: &Setup, text: &str, mode: u32) {
    setup.write("home/.agentmail/permission-grants.json", text);
    setup.mode("home/.agentmail", 0o700);
    setup.mode("home/.agentmail/permission-grants.json", mode);
}

fn each_hook(file: &mut Value, change: impl Fn(&mut Value)) {
    for groups in file["hooks"].as_object_mut().unwrap().values_mut() {
        for group in groups.as_array_mut().unwrap() {
            for hook in group["hooks"].as_array_mut().unwrap() {
                change(hook);
            }
        }
    }
}

/// Puts a secret where every user of the machine can read it.
trait ArgKey {
    fn arg0_key(&mut self, key: &str) -> &mut Self;
}

impl ArgKey for Command {
    fn arg0_key(&mut self, key: &str) -> &mut Self {
        std::os::unix::process::CommandExt::arg0(self, format!("sleep --key={key}"))
    }
}

/// Findings that a seed brings along besides its own, because one thing stands behind another.
fn consequences(code: &str) -> &'static [&'static str] {
    match code {
        "ZM-102" => &[],
        "ZM-111" => &["ZM-112"],
        "ZM-204" | "ZM-205" | "ZM-206" => &["ZM-301"],
        "ZM-107" => &["ZM-123"],
        _ => &[],
    }
}

#[test]
fn every_seeded_mistake_has_its_own_code() {
    let world = world();
    let mut named = BTreeSet::new();
    for (number, (code, seed)) in seeds().into_iter().enumerate() {
        let mut setup = Setup::healthy(&world.gateway.url, &world.key);
        seed(&mut setup, &world);
        let report = setup.report(&[]);
        let found = codes(&report);
        assert!(found.contains(code), "seed {number}, {code}: {report:#}");
        let others: Vec<&String> = found
            .iter()
            .filter(|other| *other != code && !consequences(code).contains(&other.as_str()))
            .collect();
        assert!(others.is_empty(), "seed {number}, {code} also gives {others:?}: {report:#}");
        named.insert(code);
    }
    assert!(named.len() >= 25, "{}", named.len());
}

#[test]
fn what_can_be_repaired_is_repaired_by_one_command() {
    let world = world();
    for (code, seed) in seeds() {
        if !matches!(
            code,
            "ZM-101"
                | "ZM-103"
                | "ZM-107"
                | "ZM-108"
                | "ZM-109"
                | "ZM-110"
                | "ZM-111"
                | "ZM-118"
                | "ZM-123"
                | "ZM-124"
                | "ZM-211"
                | "ZM-401"
        ) {
            continue;
        }
        let mut setup = Setup::healthy(&world.gateway.url, &world.key);
        setup.args.push("--no-probe".to_owned());
        seed(&mut setup, &world);
        let report = setup.report(&["--fix"]);
        assert_eq!(report["findings"], json!([]), "{code}: {report:#}");
        assert!(!report["fixed"].as_array().unwrap().is_empty(), "{code}");
        assert!(setup.codes(&[]).is_empty(), "{code}");
    }
    let mut setup = Setup::healthy(&world.gateway.url, &world.key);
    setup.args.push("--no-probe".to_owned());
    grants(&setup, &old_grant(), 0o600);
    assert!(setup.codes(&["--fix"]).is_empty());
    let path = setup.path("home/.agentmail/permission-grants.json");
    assert!(!fs::read_to_string(&path).unwrap().contains("Bash"));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn the_report_speaks_chinese_when_asked() {
    let world = world();
    let mut setup = Setup::healthy(&world.gateway.url, &world.key);
    setup.env.remove("AGENTMAIL_AGENT_KEY");
    setup.set("AGENTMAIL_LANG", "zh");
    let out = setup.run(&["doctor", "--no-probe"]);
    assert_eq!(out.status.code(), Some(1));
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains("ZM-207 错误: 没有密钥") && text.contains("发现 1 个问题"), "{text}");
}

#[test]
fn settings_of_a_service_are_read_from_its_file() {
    let world = world();
    let setup = Setup::healthy(&world.gateway.url, &world.key);
    let file = setup.path("zcode.env");
    let (url, key) = (&world.gateway.url, &world.key);
    let text = format!("# settings\nAGENTMAIL_GATEWAY_URL=\"{url}\"\nAGENTMAIL_AGENT_KEY={key}\n");
    fs::write(&file, text).unwrap();
    let codes = setup.codes(&["--env-file", file.to_str().unwrap()]);
    assert_eq!(codes.iter().map(String::as_str).collect::<Vec<_>>(), ["ZM-201"]);
}

#[test]
fn the_troubleshooting_page_explains_every_code_and_no_other() {
    let page =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime-smol/docs/troubleshooting.md");
    let page = fs::read_to_string(page).unwrap();
    let explained: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("### ")?.split(' ').next()).collect();
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime-smol/src/doctor/finding.rs");
    let source = fs::read_to_string(source).unwrap();
    let listed: BTreeSet<&str> = source
        .lines()
        .filter_map(|line| line.trim().strip_prefix("(\"")?.split('"').next())
        .collect();
    assert!(listed.len() > 25);
    assert_eq!(explained, listed);
    let seeded: BTreeSet<&str> = seeds().iter().map(|(code, _)| *code).collect();
    assert_eq!(seeded, listed, "every code has a seed");
}

#[test]
fn a_support_bundle_holds_no_key_mail_question_or_command() {
    let world = world();
    let mut setup = Setup::healthy(&world.gateway.url, &world.key);
    let ask = json!({
        "question": "MARK-question", "context": "MARK-command rm -rf", "relay_key": "r1",
    });
    let url = format!("{}/api/v1/permission/request", world.gateway.url);
    let bearer = format!("Bearer {}", world.key);
    let sent = ureq::post(&url)
        .header("authorization", &bearer)
        .header("content-type", "application/json")
        .send(ask.to_string());
    assert!(sent.is_ok(), "{sent:?}");
    setup.set("AGENTMAIL_AGENT_SECRET", "MARK-shared-secret");
    setup.set("HTTPS_PROXY", "http://MARK-user:MARK-pass@proxy");
    setup.config(|c| {
        c["model"] = json!({ "main": "MARK-model", "apiKey": "MARK-api-key" });
        c["hooks"] = json!({ "events": { "Stop": [{ "hooks": [{ "command": "MARK-hook" }] }] } });
    });
    grants(&setup, &old_grant().replace("\"s\"", "\"MARK-session\""), 0o600);
    let bundle = setup.path("bundle.json");
    let data = world.gateway.data.clone();
    let args = ["support", "--output", bundle.to_str().unwrap(), "--data", data.to_str().unwrap()];
    let out = setup.run(&args);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = fs::read_to_string(&bundle).unwrap();
    assert!(!text.contains("MARK") && !text.contains(&world.key), "{text}");
    assert_eq!(fs::metadata(&bundle).unwrap().permissions().mode() & 0o777, 0o600);
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["gateway"]["rows"]["users"], 2);
    assert_eq!(value["findings"][0]["code"], "ZM-403");
    assert!(value["environment"]["AGENTMAIL_AGENT_KEY"]["characters"].as_u64().unwrap() > 8);
    assert!(value["configuration"]["plugins"]["dirs"][0].as_str().unwrap().ends_with("current"));

    // A secret that got in another way stops the bundle.
    setup.set("AGENTMAIL_LANG", "en-MARK-as-a-password");
    setup.set("MY_PASSWORD", "en-MARK-as-a-password");
    fs::remove_file(&bundle).unwrap();
    let out = setup.run(&args);
    assert!(String::from_utf8_lossy(&out.stderr).contains("MY_PASSWORD"), "{out:?}");
    assert!(!bundle.exists());
}
