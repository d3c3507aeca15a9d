//! Loading a plugin directory as ZCode does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

/// The seven events; a plugin file that names another one is wrong.
const EVENTS: [&str; 7] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PostToolUseFailure",
    "Stop",
];

/// How long a hook may run when its entry does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// One hook.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The event it is for.
    pub event: String,
    /// Its matcher.
    pub matcher: String,
    /// How long it may run.
    pub timeout: Duration,
    /// The plugin's root and data directory, if it belongs to one.
    pub plugin: Option<(PathBuf, PathBuf)>,
    argv: Vec<String>,
}

impl Entry {
    /// A hook of type `command`.
    #[must_use]
    pub fn shell(event: &str, matcher: &str, script: &str) -> Self {
        Self {
            event: event.to_owned(),
            matcher: matcher.to_owned(),
            timeout: DEFAULT_TIMEOUT,
            plugin: None,
            argv: vec!["/bin/sh".to_owned(), "-c".to_owned(), script.to_owned()],
        }
    }

    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.argv[0]);
        command.args(&self.argv[1..]);
        command
    }

    pub(super) fn shown(&self) -> String {
        self.argv.join(" ")
    }
}

/// Reads `.zcode-plugin/plugin.json` and `hooks/hooks.json` of a plugin directory.
///
/// # Errors
/// Whatever would make ZCode drop the plugin or a hook of it without a word to the user.
pub fn load(dir: &Path) -> Result<Vec<Entry>, String> {
    let read = |name: &str| -> Result<Value, String> {
        let text =
            fs::read_to_string(dir.join(name)).map_err(|error| format!("{name}: {error}"))?;
        serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))
    };
    let manifest = read(".zcode-plugin/plugin.json")?;
    let name = manifest["name"].as_str().unwrap_or_default();
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
    if name.is_empty() || !name.chars().all(legal) {
        return Err(format!("the name {name:?} is not legal"));
    }
    if manifest.get("hooks").is_some() {
        return Err("hooks/hooks.json is loaded by itself; naming it is a diagnostic".to_owned());
    }
    let hooks = read("hooks/hooks.json")?;
    if hooks.get("events").is_some() {
        return Err("`events` in a plugin file is silently ignored".to_owned());
    }
    let data = dir.join("data");
    fs::create_dir_all(&data).map_err(|error| error.to_string())?;
    let mut entries = Vec::new();
    for (event, groups) in hooks["hooks"].as_object().ok_or("hooks.json has no `hooks`")? {
        if !EVENTS.contains(&event.as_str()) {
            return Err(format!("{event} is no event"));
        }
        for group in groups.as_array().ok_or("an event is no list")? {
            let matcher = group["matcher"].as_str().unwrap_or_default();
            for hook in group["hooks"].as_array().ok_or("a group has no hooks")? {
                entries.push(entry(event, matcher, hook, dir, &data)?);
            }
        }
    }
    Ok(entries)
}

fn entry(
    event: &str,
    matcher: &str,
    hook: &Value,
    dir: &Path,
    data: &Path,
) -> Result<Entry, String> {
    let expand = |text: &str| {
        [("PLUGIN_ROOT", dir), ("PLUGIN_DATA", data)].iter().fold(
            text.to_owned(),
            |text, (name, path)| {
                let path = path.display().to_string();
                text.replace(&format!("${{ZCODE_{name}}}"), &path)
                    .replace(&format!("${{CLAUDE_{name}}}"), &path)
            },
        )
    };
    let command = expand(hook["command"].as_str().ok_or("a hook has no command")?);
    let timeout_ms = hook["timeoutMs"].as_u64();
    let (argv, timeout) = match hook["type"].as_str() {
        Some("process") => {
            let args = hook["args"].as_array().cloned().unwrap_or_default();
            let args = args.iter().filter_map(Value::as_str).map(expand);
            // `timeout` counts for shell commands only.
            (std::iter::once(command).chain(args).collect(), timeout_ms)
        }
        Some("command") => {
            let seconds = hook["timeout"].as_u64().map(|seconds| seconds * 1_000);
            (vec!["/bin/sh".to_owned(), "-c".to_owned(), command], timeout_ms.or(seconds))
        }
        other => return Err(format!("a hook of type {other:?}")),
    };
    Ok(Entry {
        event: event.to_owned(),
        matcher: matcher.to_owned(),
        timeout: timeout.map_or(DEFAULT_TIMEOUT, Duration::from_millis),
        plugin: Some((dir.to_owned(), data.to_owned())),
        argv,
    })
}

/// Whether a matcher covers a tool: all, a list of exact names, or a regular expression.
///
/// # Panics
/// On a regular expression beyond what the tests need: a prefix `^...` with `(a|b)?`-free text and
/// an optional `.*` at the end.
#[must_use]
pub fn matches(matcher: &str, tool: &str) -> bool {
    let aliases: &[&str] = match tool {
        "ApplyPatch" => &["ApplyPatch", "Write", "Edit"],
        "Agent" | "Task" => &["Agent", "Task"],
        _ => &[],
    };
    let names = |name: &str| name == tool || aliases.contains(&name);
    if matches!(matcher, "" | "*") {
        return true;
    }
    if matcher.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '|')) {
        return matcher.split('|').any(names);
    }
    regex_lite::Regex::new(matcher).is_ok_and(|regex| regex.is_match(tool))
}
