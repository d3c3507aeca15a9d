//! The hook: its limits, its dialect, and what the exact configured command says.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use zcode_mail_core::hook::answer::Dialect;
use zcode_mail_core::hook::policy::GUARDED;

use super::facts::{Facts, Registered, takes};
use super::{Finding, Fix, Report, Started};

/// How long the hook may take for an event that needs no human.
const PATIENCE: Duration = Duration::from_secs(10);
/// A wait below this many milliseconds was probably meant in seconds.
const SHORTEST_WAIT_MS: u64 = 1_000;
/// Between the end of our wait and the hook's limit there must be time to withdraw and to answer.
const MARGIN_MS: u64 = 10_000;
/// What ZCode removes from the environment of its children.
const SCRUBBED: [&str; 12] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "CURL_CA_BUNDLE",
];

pub(super) fn check(facts: &Facts, report: &mut Report) {
    let registered = facts.registered();
    waits(facts, report);
    if registered.is_empty() {
        return;
    }
    limits(facts, &registered, report);
    coverage(&registered, report);
    dialect(facts, &registered, report);
    let first = registered
        .iter()
        .find(|hook| hook.event == "PermissionRequest" && takes(&hook.matcher, "Bash"));
    if let Some(first) = first {
        answers(facts, first, report);
    }
}

fn waits(facts: &Facts, report: &mut Report) {
    let text = facts.env.get("AGENTMAIL_PERMISSION_WAIT_MS").map(|text| text.trim());
    let given = text.and_then(|text| text.parse::<u64>().ok());
    if let Some(ms) = given.filter(|ms| (1..SHORTEST_WAIT_MS).contains(ms)) {
        report.add(Finding::warning(
            "ZM-113",
            format!("AGENTMAIL_PERMISSION_WAIT_MS={ms} 是毫秒，不到一秒就不等了；想要 {ms} 秒就写 {}", ms * 1000),
            format!("AGENTMAIL_PERMISSION_WAIT_MS={ms} is in milliseconds, so the hook gives up within a second; write {} for {ms} seconds", ms * 1000),
        ));
    }
    for warning in &facts.settings.warnings {
        report.add(Finding::warning("ZM-213", warning.clone(), warning.clone()));
    }
}

fn limits(facts: &Facts, registered: &[Registered], report: &mut Report) {
    let limit = registered.iter().map(|one| one.hook["timeoutMs"].as_u64()).min().flatten();
    let wait = facts.settings.permission_wait_ms;
    match limit {
        None => report.add(
            Finding::error(
                "ZM-111",
                "hooks.json 里有钩子没有 timeoutMs，ZCode 60 秒后就结束它；重新安装",
                "a hook in hooks.json has no timeoutMs, so ZCode ends it after 60 s; install again",
            )
            .fix(Fix::Install),
        ),
        Some(ms) if ms < MARGIN_MS => report.add(
            Finding::error(
                "ZM-111",
                format!("hooks.json 的 timeoutMs 是 {ms}，像是秒；它的单位是毫秒，重新安装"),
                format!("timeoutMs in hooks.json is {ms}, which looks like seconds; it counts milliseconds, install again"),
            )
            .fix(Fix::Install),
        ),
        Some(ms) if wait + MARGIN_MS > ms => report.add(Finding::error(
            "ZM-112",
            format!("等人的时间 {wait} ms 超过钩子的上限 {ms} ms；把 AGENTMAIL_PERMISSION_WAIT_MS 设小，或重新安装"),
            format!("the wait of {wait} ms does not fit into the hook's limit of {ms} ms; lower AGENTMAIL_PERMISSION_WAIT_MS or install again"),
        )),
        Some(_) => {}
    }
}

fn coverage(registered: &[Registered], report: &mut Report) {
    for event in ["PermissionRequest", "PreToolUse"] {
        let missing: Vec<&str> = GUARDED
            .into_iter()
            .filter(|tool| {
                !registered.iter().any(|one| one.event == event && takes(&one.matcher, tool))
            })
            .collect();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            report.add(
                Finding::error(
                    "ZM-123",
                    format!("{event} 对 {missing} 不启动钩子；重新安装"),
                    format!("{event} starts no hook for {missing}; install again"),
                )
                .fix(Fix::Install),
            );
        }
    }
}

fn named_dialect(hook: &Value) -> Option<Dialect> {
    let args: Vec<&str> = hook["args"].as_array()?.iter().filter_map(Value::as_str).collect();
    let at = args.iter().position(|arg| *arg == "--dialect")?;
    Dialect::parse(args.get(at + 1)?)
}

fn dialect(facts: &Facts, registered: &[Registered], report: &mut Report) {
    let named = registered.iter().find_map(|one| named_dialect(&one.hook));
    if let Some(version) = facts.zcode
        && let Some(named) = named
        && named != version.dialect()
        && named != Dialect::Structured
    {
        let (now, right) = (named.as_str(), version.dialect().as_str());
        report.add(
            Finding::error(
                "ZM-114",
                format!("钩子用 {now} 方言回答，而 ZCode {version} 要 {right}；重新安装"),
                format!("the hook answers in the dialect {now}, but ZCode {version} reads {right}; install again"),
            )
            .fix(Fix::Install),
        );
    }
    let Some(text) = &facts.settings.dialect else { return };
    let used = named.map_or("both", Dialect::as_str);
    if Dialect::parse(text).is_none() || (named.is_some() && text != used) {
        report.add(Finding::warning(
            "ZM-115",
            format!("AGENTMAIL_ZCODE_DIALECT={text} 不起作用，钩子用的是 {used}；去掉它"),
            format!("AGENTMAIL_ZCODE_DIALECT={text} has no effect, the hook uses {used}; unset it"),
        ));
    }
}

/// Starts the exact command twice: with an event that is none of its business, and with one that it
/// must refuse without asking anybody.
fn answers(facts: &Facts, hook: &Registered, report: &mut Report) {
    let root = facts.root().display().to_string();
    let expand = |text: &Value| {
        let text = text.as_str().unwrap_or_default();
        ["ZCODE", "CLAUDE"].iter().fold(text.to_owned(), |text, brand| {
            text.replace(&format!("${{{brand}_PLUGIN_ROOT}}"), &root)
        })
    };
    let program = PathBuf::from(expand(&hook.hook["command"]));
    let args: Vec<String> =
        hook.hook["args"].as_array().into_iter().flatten().map(expand).collect();
    let mut env: BTreeMap<String, String> = facts.env.clone();
    env.retain(|name, _| !SCRUBBED.contains(&name.as_str()));
    env.insert("ZCODE_PLUGIN_ROOT".to_owned(), root.clone());
    let run = |tool: &str, env: &BTreeMap<String, String>| {
        let event = json!({
            "hook_event_name": "PermissionRequest", "session_id": "doctor", "tool_name": tool,
            "tool_use_id": "doctor", "tool_input": { "command": "true" }, "cwd": ".",
        });
        Started::run(&program, &args, env, &event.to_string(), PATIENCE)
    };
    let harmless = run("Read", &env);
    if let Some(problem) = harmless
        .problem
        .clone()
        .or_else(|| (harmless.status != Some(0)).then(|| format!("status {:?}", harmless.status)))
    {
        report.add(
            Finding::error(
                "ZM-118",
                format!("钩子命令跑不起来：{problem}"),
                format!("the hook command does not run: {problem}"),
            )
            .fix(Fix::Install),
        );
        return report.started.push(harmless);
    }
    env.insert("AGENTMAIL_SESSION_ID".to_owned(), "doctor".to_owned());
    env.insert("AGENTMAIL_PERMISSION_MODE".to_owned(), "plan".to_owned());
    let refusal = run("Bash", &env);
    let dialect = named_dialect(&hook.hook).unwrap_or_default();
    if !matches!(harmless.stdout.trim(), "" | "{}") || !refuses(&refusal.stdout, dialect) {
        report.add(
            Finding::error(
                "ZM-119",
                "钩子的回答不对：与它无关的工具应当不表态，plan 档应当拒绝；见上面的输出",
                "the hook answers wrongly: it should say nothing about a tool that is not its own, and refuse in plan mode; see its output above",
            )
            .fix(Fix::Install),
        );
    }
    report.started.extend([harmless, refusal]);
}

/// Whether an answer is a refusal in the dialect.
fn refuses(stdout: &str, dialect: Dialect) -> bool {
    let Ok(answer) = serde_json::from_str::<Value>(stdout) else { return false };
    let flat = answer["decision"] == "block";
    let structured = answer["hookSpecificOutput"]["decision"]["behavior"] == "deny";
    match dialect {
        Dialect::Both => flat && structured,
        Dialect::Structured => structured && answer.get("decision").is_none(),
        Dialect::Flat => flat && answer.get("hookSpecificOutput").is_none(),
    }
}
