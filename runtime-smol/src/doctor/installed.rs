//! The installation: snapshot, configuration, programs, and what ZCode says itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::facts::{Facts, registered, takes};
use super::{Finding, Fix, Report, Started};
use crate::durable;
use crate::install::{snapshot, version};
use crate::plugin;

/// How long `zcode plugins list` may take.
const ZCODE_PATIENCE: Duration = Duration::from_secs(20);
/// How long one of our own programs may take to say its version.
const VERSION_PATIENCE: Duration = Duration::from_secs(10);
/// The key by which ZCode names our mail server.
const SERVER_KEY: &str = "plugin:agentmail:agentmail";

pub(super) fn check(facts: &Facts, report: &mut Report) {
    if snapshot(facts, report) {
        files(facts, report);
        programs(facts, report);
    }
    configuration(facts, report);
    order(facts, report);
    listed(facts, report);
}

fn snapshot(facts: &Facts, report: &mut Report) -> bool {
    let root = &facts.paths.root;
    let leftovers = fs::read_dir(root).into_iter().flatten().flatten();
    let left = leftovers.filter(|entry| durable::is_leftover(&entry.path())).count();
    if left > 0 {
        report.add(
            Finding::warning(
                "ZM-124",
                format!("{} 里有 {left} 个没装完的文件；重新安装会清掉", root.display()),
                format!(
                    "{} holds {left} unfinished files; installing again removes them",
                    root.display()
                ),
            )
            .fix(Fix::Install),
        );
    }
    let complete =
        snapshot::current(root).is_some_and(|name| snapshot::about(&root.join(name)).is_some());
    if !complete {
        report.add(
            Finding::error(
                "ZM-101",
                format!("{} 没有指向一份完整的插件；运行 zcode-mail install", facts.entry),
                format!("{} leads to no complete plugin; run zcode-mail install", facts.entry),
            )
            .fix(Fix::Install),
        );
    }
    complete
}

fn files(facts: &Facts, report: &mut Report) {
    let bad = |what: &str| {
        Finding::error(
            "ZM-107",
            format!("插件文件不对：{what}；重新安装"),
            format!("a file of the plugin is wrong: {what}; install again"),
        )
        .fix(Fix::Install)
    };
    match &facts.manifest {
        Err(error) => report.add(bad(error)),
        Ok(manifest) if manifest["name"] != plugin::NAME => {
            report.add(bad("plugin.json has another name"));
        }
        Ok(manifest) if manifest.get("hooks").is_some() => {
            report.add(bad("plugin.json has a key \"hooks\", so hooks load twice"));
        }
        Ok(_) => {}
    }
    match &facts.hooks {
        Err(error) => report.add(bad(error)),
        Ok(hooks) if hooks.get("events").is_some() || !hooks["hooks"].is_object() => {
            report.add(bad("hooks.json needs the key \"hooks\"; \"events\" starts nothing"));
        }
        Ok(_) => {}
    }
}

fn programs(facts: &Facts, report: &mut Report) {
    for name in ["zcode-mail-hook", "zcode-mail-mcp"] {
        let path = facts.root().join("bin").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
        let shown = path.display();
        let Ok(found) = fs::metadata(&path) else {
            report.add(
                Finding::error(
                    "ZM-108",
                    format!("缺少程序 {shown}；重新安装"),
                    format!("{shown} is missing; install again"),
                )
                .fix(Fix::Install),
            );
            continue;
        };
        if !executable(&found) {
            let mode = durable::PUBLIC_PROGRAM;
            let real = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
            report.add(
                Finding::error(
                    "ZM-109",
                    format!("{shown} 没有执行权限"),
                    format!("{shown} is not executable"),
                )
                .fix(Fix::Mode(real, mode)),
            );
            continue;
        }
        let args = ["--version".to_owned()];
        let said = Started::run(&path, &args, &facts.env, "", VERSION_PATIENCE);
        let version = said.stdout.split_whitespace().nth(1).unwrap_or_default().to_owned();
        if version != env!("CARGO_PKG_VERSION") {
            let ours = env!("CARGO_PKG_VERSION");
            let version = said.problem.unwrap_or(version);
            report.add(
                Finding::error(
                    "ZM-110",
                    format!("{shown} 的版本是「{version}」，不是 {ours}；重新安装"),
                    format!("{shown} says version \"{version}\" and not {ours}; install again"),
                )
                .fix(Fix::Install),
            );
        }
    }
}

#[cfg(unix)]
fn executable(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    found.is_file() && found.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn executable(found: &fs::Metadata) -> bool {
    found.is_file()
}

fn configuration(facts: &Facts, report: &mut Report) {
    let config = match &facts.config {
        Ok(config) => config,
        Err(error) => {
            return report.add(Finding::error(
                "ZM-102",
                format!("读不了 ZCode 的配置：{error}"),
                format!("ZCode's configuration cannot be read: {error}"),
            ));
        }
    };
    let shown = facts.paths.config.display();
    if !facts.dirs().contains(&facts.entry.as_str()) {
        report.add(
            Finding::error(
                "ZM-103",
                format!("{shown} 的 plugins.dirs 没有 {}", facts.entry),
                format!("plugins.dirs in {shown} does not name {}", facts.entry),
            )
            .fix(Fix::Install),
        );
    }
    let plugins = &config["plugins"];
    if plugins["enabled"] == false {
        report.add(Finding::error(
            "ZM-104",
            format!("{shown} 里 plugins.enabled 是 false，ZCode 不加载任何插件；改成 true 或 zcode-mail install --enable-plugins"),
            format!("plugins.enabled in {shown} is false, so ZCode loads no plugin; set it to true or run zcode-mail install --enable-plugins"),
        ));
    }
    if plugins["enabledPlugins"][plugin::ID] == false {
        report.add(Finding::error(
            "ZM-105",
            format!("{shown} 里 plugins.enabledPlugins 关掉了 {}；删掉那一项", plugin::ID),
            format!(
                "plugins.enabledPlugins in {shown} turns {} off; remove that entry",
                plugin::ID
            ),
        ));
    }
    let before = facts.dirs().into_iter().take_while(|dir| *dir != facts.entry);
    for dir in before.filter(|dir| plugin::name_in(Path::new(dir)).as_deref() == Some(plugin::NAME))
    {
        report.add(Finding::error(
            "ZM-106",
            format!("{dir} 里有同名插件，ZCode 只加载排在前面的那一个；从 plugins.dirs 去掉它"),
            format!("{dir} holds a plugin of the same name, and ZCode loads only the first; take it out of plugins.dirs"),
        ));
    }
}

/// Hooks of others that answer the same question.
fn order(facts: &Facts, report: &mut Report) {
    let asks = |events: &Value| {
        registered(events).into_iter().any(|hook| {
            matches!(hook.event.as_str(), "PermissionRequest" | "PreToolUse")
                && takes(&hook.matcher, "Bash")
        })
    };
    let ours = facts.root();
    for dir in facts.dirs().into_iter().map(PathBuf::from).filter(|dir| *dir != ours) {
        let file = super::facts::json_file(&dir.join("hooks").join("hooks.json"));
        if plugin::name_in(&dir).as_deref() == Some(plugin::NAME) {
            continue;
        }
        if file.is_ok_and(|file| asks(&file["hooks"])) {
            report.add(Finding::warning(
                "ZM-116",
                format!("{} 的插件也回答授权；旧版 ZCode 里后面的回答会盖过前面的拒绝", dir.display()),
                format!("the plugin in {} answers the same question; in older ZCode a later answer overrules a refusal", dir.display()),
            ));
        }
    }
    let Ok(config) = &facts.config else { return };
    let hooks = &config["hooks"];
    if hooks["enabled"] == true && asks(&hooks["events"]) {
        report.add(Finding::warning(
            "ZM-117",
            "配置里自己的钩子也回答同一个授权；确认它不会放行本该问人的调用",
            "hooks in the configuration answer the same question; make sure that they approve nothing that a human should see",
        ));
    }
}

/// What `zcode plugins list` says, if there is a `zcode` or its engine.
fn listed(facts: &Facts, report: &mut Report) {
    let mut args = vec!["plugins".to_owned(), "list".to_owned()];
    let mut program = "zcode";
    let on_path = facts
        .env
        .get("PATH")
        .is_some_and(|path| std::env::split_paths(path).any(|dir| dir.join(program).is_file()));
    if !on_path {
        let Some(script) = version::engine_script() else { return };
        args.insert(0, script.display().to_string());
        program = "node";
    }
    let said = Started::run(Path::new(program), &args, &facts.env, "", ZCODE_PATIENCE);
    if said.status != Some(0) || !said.stdout.contains("- ") {
        return;
    }
    let lines: Vec<&str> = said.stdout.lines().collect();
    let at =
        lines.iter().position(|line| line.trim_start().starts_with(&format!("- {}", plugin::ID)));
    let Some(at) = at else {
        report.add(Finding::error(
            "ZM-120",
            format!("zcode plugins list 里没有 {}", plugin::ID),
            format!("zcode plugins list does not name {}", plugin::ID),
        ));
        return report.started.push(said);
    };
    if !lines[at].contains("[enabled]") {
        report.add(Finding::error(
            "ZM-121",
            format!(
                "zcode plugins list 里 {} 没有启用；运行 zcode plugins enable {}",
                plugin::ID,
                plugin::NAME
            ),
            format!(
                "zcode plugins list shows {} as not enabled; run zcode plugins enable {}",
                plugin::ID,
                plugin::NAME
            ),
        ));
    }
    let own: Vec<&str> =
        lines[at + 1..].iter().copied().take_while(|l| !l.trim_start().starts_with("- ")).collect();
    let own = own.join("\n");
    let hooks = own.split("hooks:").nth(1).and_then(|rest| rest.trim_start().chars().next());
    if hooks.is_none_or(|count| !('1'..='9').contains(&count)) || !own.contains(SERVER_KEY) {
        report.add(Finding::error(
            "ZM-122",
            format!("zcode plugins list 里 {} 没有钩子，或没有 {SERVER_KEY}", plugin::ID),
            format!("zcode plugins list shows no hook or no {SERVER_KEY} for {}", plugin::ID),
        ));
    }
    report.started.push(said);
}
