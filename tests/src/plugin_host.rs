//! Plugin directories as ZCode reads them.
//!
//! A loader written from what is known about ZCode 3.3 to 3.15, so that a plugin directory is
//! judged by the rules of its reader and not by those of its writer:
//!
//! - the first manifest of three places counts, and its name has a fixed form;
//! - `hooks/hooks.json` loads by itself; naming it again, or a directory, is a mistake;
//! - an unknown event is a warning, a file with `events` in it starts nothing;
//! - a matcher of `[A-Za-z0-9_|]` is a list of exact names, nothing or `*` is everything;
//! - `timeoutMs`, then `timeout` in seconds for shell hooks only, then 60 s;
//! - hooks expand a fixed set of variables and leave the others as they are; servers expand more
//!   and are switched off by an unknown one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// How long a hook may run when it says nothing, in milliseconds.
pub const DEFAULT_TIMEOUT_MS: u64 = 60_000;
/// The events that ZCode knows.
pub const EVENTS: [&str; 7] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PostToolUseFailure",
    "Stop",
];
const MANIFESTS: [&str; 3] =
    [".zcode-plugin/plugin.json", ".claude-plugin/plugin.json", ".codex-plugin/plugin.json"];

/// What ZCode would say about a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// ZCode's name for it.
    pub code: &'static str,
    /// An error keeps something from working; the rest are warnings.
    pub error: bool,
    /// What it is about.
    pub about: String,
}

/// What a session looks like to a plugin.
#[derive(Clone, Debug)]
pub struct Session {
    /// The workspace.
    pub project: PathBuf,
    /// The plugin's data directory.
    pub data: PathBuf,
    /// The session's id.
    pub id: String,
    /// ZCode's own environment.
    pub env: BTreeMap<String, String>,
}

/// A hook as it would be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// The event.
    pub event: String,
    /// The matcher as written.
    pub matcher: Option<String>,
    /// `process` or `command`.
    pub kind: String,
    /// The executable, expanded.
    pub command: String,
    /// Its arguments, expanded.
    pub args: Vec<String>,
    /// After this many milliseconds it is ended.
    pub timeout_ms: u64,
}

/// A server as it would be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The executable, expanded.
    pub command: String,
    /// Its arguments, expanded.
    pub args: Vec<String>,
    /// Variables beside the inherited ones, expanded.
    pub env: BTreeMap<String, String>,
    /// Limit for start and for each call, in milliseconds.
    pub timeout_ms: u64,
}

/// A plugin as ZCode holds it.
#[derive(Clone, Debug, Default)]
pub struct Plugin {
    /// `<name>@inline`.
    pub id: String,
    /// The version.
    pub version: String,
    /// The hooks, in order.
    pub hooks: Vec<Hook>,
    /// The servers by their key, `plugin:<plugin>:<server>`.
    pub servers: BTreeMap<String, Server>,
    /// Names of skills.
    pub skills: Vec<String>,
    /// Names of commands.
    pub commands: Vec<String>,
    /// What ZCode would say.
    pub diagnostics: Vec<Diagnostic>,
}

impl Plugin {
    /// The hooks that an event with this subject starts.
    #[must_use]
    pub fn matching(&self, event: &str, subject: &str) -> Vec<&Hook> {
        let wanted =
            |hook: &&Hook| hook.event == event && matches(hook.matcher.as_deref(), subject);
        self.hooks.iter().filter(wanted).collect()
    }
}

impl Hook {
    /// The process that ZCode starts: no shell, the session's folder, ZCode's environment with the
    /// plugin's variables.
    #[must_use]
    pub fn process(&self, root: &Path, session: &Session) -> Command {
        let mut command = Command::new(&self.command);
        command.args(&self.args).env_clear().envs(&session.env).current_dir(&session.project);
        for brand in ["ZCODE", "CLAUDE"] {
            command.env(format!("{brand}_PLUGIN_ROOT"), root);
            command.env(format!("{brand}_PLUGIN_DATA"), &session.data);
            command.env(format!("{brand}_PROJECT_DIR"), &session.project);
            command.env(format!("{brand}_SESSION_ID"), &session.id);
        }
        command
    }
}

/// Loads the directory that `plugins.dirs` names. An `Err` is a plugin that is dropped.
///
/// # Errors
///
/// Returns the diagnostic with which ZCode drops the plugin.
pub fn load(root: &Path, session: &Session) -> Result<Plugin, Diagnostic> {
    let error = |code, about: String| Diagnostic { code, error: true, about };
    let path = MANIFESTS.iter().map(|place| root.join(place)).find(|path| path.exists());
    let path =
        path.ok_or_else(|| error("plugin_manifest_not_found", root.display().to_string()))?;
    let invalid = |about: String| error("plugin_manifest_invalid", about);
    let text = fs::read_to_string(&path).map_err(|e| invalid(e.to_string()))?;
    let manifest: Value = serde_json::from_str(&text).map_err(|e| invalid(e.to_string()))?;
    if !manifest.is_object() {
        return Err(invalid("no object".to_owned()));
    }
    let name = manifest["name"].as_str().unwrap_or_default().trim().to_owned();
    if !name_is_valid(&name) {
        return Err(invalid(format!("name {name:?}")));
    }
    let mut plugin = Plugin {
        id: format!("{name}@inline"),
        version: manifest["version"].as_str().unwrap_or("0.0.0").to_owned(),
        ..Plugin::default()
    };
    for component in ["channels", "lspServers", "outputStyles", "settings"] {
        if manifest.get(component).is_some() {
            plugin.warn("plugin_unsupported_component", component);
        }
    }
    plugin.load_hooks(root, &manifest["hooks"], session);
    plugin.load_servers(root, &name, &manifest, session);
    plugin.load_content(root, &manifest);
    Ok(plugin)
}

/// Whether a matcher takes a subject.
///
/// # Panics
///
/// Panics on a regular expression: nothing of ours may need one.
#[must_use]
pub fn matches(matcher: Option<&str>, subject: &str) -> bool {
    match matcher {
        None | Some("" | "*") => true,
        Some(list) if is_list(list) => list.split('|').any(|name| name == subject),
        Some(pattern) => panic!("{pattern:?} is a regular expression and not a list of names"),
    }
}

/// Whether a matcher is a list of exact names.
#[must_use]
pub fn is_list(matcher: &str) -> bool {
    matcher.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'|')
}

impl Plugin {
    fn warn(&mut self, code: &'static str, about: impl Into<String>) {
        self.diagnostics.push(Diagnostic { code, error: false, about: about.into() });
    }

    fn error(&mut self, code: &'static str, about: impl Into<String>) {
        self.diagnostics.push(Diagnostic { code, error: true, about: about.into() });
    }

    fn load_hooks(&mut self, root: &Path, declared: &Value, session: &Session) {
        let standard = root.join("hooks").join("hooks.json");
        if standard.is_file() {
            self.load_hook_file(root, &standard, session);
        }
        let declared = match declared {
            Value::Null => Vec::new(),
            Value::Array(all) => all.clone(),
            one => vec![one.clone()],
        };
        for source in declared {
            match source {
                Value::String(place) => {
                    let path = root.join(&place);
                    if path.is_dir() || !path.exists() {
                        self.error("plugin_hook_invalid", format!("hooks file not found: {place}"));
                    } else if fs::canonicalize(&path).ok() == fs::canonicalize(&standard).ok() {
                        self.warn("plugin_hook_invalid", format!("named twice: {place}"));
                    } else {
                        self.load_hook_file(root, &path, session);
                    }
                }
                Value::Object(_) => self.load_events(root, &source, session),
                _ => self.error("plugin_hook_invalid", "neither a path nor an object"),
            }
        }
    }

    fn load_hook_file(&mut self, root: &Path, path: &Path, session: &Session) {
        let read = fs::read_to_string(path).ok().and_then(|text| serde_json::from_str(&text).ok());
        let Some(file) = read else {
            return self.error("plugin_hook_invalid", path.display().to_string());
        };
        let file: Value = file;
        // A key `events`, right in the user's own configuration, starts nothing here.
        self.load_events(root, &file["hooks"], session);
    }

    fn load_events(&mut self, root: &Path, events: &Value, session: &Session) {
        for (event, groups) in events.as_object().into_iter().flatten() {
            if !EVENTS.contains(&event.as_str()) {
                self.warn("plugin_hook_unsupported_event", event);
                continue;
            }
            let Some(groups) = groups.as_array() else {
                self.error("plugin_hook_invalid", event);
                continue;
            };
            for group in groups {
                let matcher = group["matcher"].as_str().map(str::to_owned);
                for hook in group["hooks"].as_array().into_iter().flatten() {
                    self.load_hook(root, event, matcher.clone(), hook, session);
                }
            }
        }
    }

    fn load_hook(
        &mut self,
        root: &Path,
        event: &str,
        matcher: Option<String>,
        hook: &Value,
        session: &Session,
    ) {
        if hook["enabled"] == false {
            return;
        }
        let kind = hook["type"].as_str().unwrap_or_default().to_owned();
        if kind != "process" && kind != "command" {
            return self.error("plugin_hook_invalid", format!("type {kind:?}"));
        }
        let expanded = |text: &Value| expand_hook(text.as_str().unwrap_or_default(), root, session);
        let args = hook["args"].as_array().into_iter().flatten().map(&expanded).collect();
        let (command, args): (Result<String, String>, Result<Vec<String>, String>) =
            (expanded(&hook["command"]), args);
        let (Ok(command), Ok(args)) = (command, args) else {
            return self.error("plugin_variable_missing", event);
        };
        let seconds = hook["timeout"].as_u64().filter(|_| kind == "command");
        let timeout_ms = hook["timeoutMs"].as_u64().filter(|ms| *ms > 0);
        let timeout_ms = timeout_ms.or(seconds.map(|s| s * 1000)).unwrap_or(DEFAULT_TIMEOUT_MS);
        self.hooks.push(Hook { event: event.to_owned(), matcher, kind, command, args, timeout_ms });
    }

    fn load_servers(&mut self, root: &Path, name: &str, manifest: &Value, session: &Session) {
        let file = fs::read_to_string(root.join(".mcp.json")).ok();
        let file: Value = file.and_then(|t| serde_json::from_str(&t).ok()).unwrap_or_default();
        let mut all = BTreeMap::new();
        for source in [&file, &manifest["mcpServers"]] {
            let source = source.get("mcpServers").unwrap_or(source);
            for (key, server) in source.as_object().into_iter().flatten() {
                all.insert(key.clone(), server.clone());
            }
        }
        for (key, server) in all {
            match self.server(root, &server, manifest, session) {
                Ok(server) => {
                    self.servers.insert(format!("plugin:{name}:{key}"), server);
                }
                Err(missing) => self.error("plugin_variable_missing", missing),
            }
        }
    }

    fn server(
        &self,
        root: &Path,
        server: &Value,
        manifest: &Value,
        session: &Session,
    ) -> Result<Server, String> {
        let expand = |text: &str, any_env: bool| {
            expand_server(text, root, &self.id, manifest, session, any_env)
        };
        let args = server["args"].as_array().into_iter().flatten();
        let args = args.map(|arg| expand(arg.as_str().unwrap_or_default(), false));
        let env = server["env"].as_object().into_iter().flatten().map(|(name, value)| {
            Ok((name.clone(), expand(value.as_str().unwrap_or_default(), true)?))
        });
        Ok(Server {
            command: expand(server["command"].as_str().unwrap_or_default(), false)?,
            args: args.collect::<Result<_, _>>()?,
            env: env.collect::<Result<_, String>>()?,
            timeout_ms: server["timeoutMs"].as_u64().unwrap_or(30_000),
        })
    }

    fn load_content(&mut self, root: &Path, manifest: &Value) {
        for key in ["skills", "commands"] {
            let mut places = vec![key.to_owned()];
            match &manifest[key] {
                Value::String(place) => places.push(place.clone()),
                Value::Array(all) => {
                    places.extend(all.iter().filter_map(Value::as_str).map(str::to_owned));
                }
                _ => {}
            }
            for place in places {
                if place.starts_with('/') || place.split('/').any(|part| part == "..") {
                    self.error("plugin_component_path_invalid", place);
                    continue;
                }
                let mut names: Vec<PathBuf> = fs::read_dir(root.join(&place))
                    .into_iter()
                    .flatten()
                    .filter_map(|entry| Some(entry.ok()?.path()))
                    .collect();
                names.sort();
                for path in names {
                    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                    if key == "skills" && path.join("SKILL.md").is_file() {
                        self.skills.push(stem);
                    } else if key == "commands" && path.extension().is_some_and(|e| e == "md") {
                        self.commands.push(stem);
                    }
                }
            }
        }
    }
}

fn name_is_valid(name: &str) -> bool {
    let mut bytes = name.bytes();
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    bytes.next().is_some_and(plain)
        && name.len() <= 128
        && bytes.all(|b| plain(b) || matches!(b, b'.' | b'_' | b'-'))
}

/// Replaces `${NAME}`; `value` returns `Ok(None)` for a name that stays as it is.
fn expand(
    text: &str,
    value: impl Fn(&str) -> Result<Option<String>, String>,
) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else { break };
        let name = &rest[start + 2..start + length];
        out.push_str(&rest[..start]);
        match value(name)? {
            Some(value) => out.push_str(&value),
            None => out.push_str(&rest[start..=start + length]),
        }
        rest = &rest[start + length + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

fn common(name: &str, root: &Path, session: &Session) -> Option<String> {
    let bare = name.strip_prefix("ZCODE_").or_else(|| name.strip_prefix("CLAUDE_"))?;
    match bare {
        "PLUGIN_ROOT" => Some(root.display().to_string()),
        "PLUGIN_DATA" => Some(session.data.display().to_string()),
        "PROJECT_DIR" => Some(session.project.display().to_string()),
        _ => None,
    }
}

fn expand_hook(text: &str, root: &Path, session: &Session) -> Result<String, String> {
    expand(text, |name| match name {
        "ZCODE_SESSION_ID" | "CLAUDE_SESSION_ID" | "CLAUDE_CODE_SESSION_ID" => {
            Ok(Some(session.id.clone()))
        }
        "ZCODE_SKILL_DIR" | "CLAUDE_SKILL_DIR" => Err(name.to_owned()),
        other => Ok(common(other, root, session)),
    })
}

fn expand_server(
    text: &str,
    root: &Path,
    id: &str,
    manifest: &Value,
    session: &Session,
    any_env: bool,
) -> Result<String, String> {
    expand(text, |name| {
        if let Some(value) = common(name, root, session) {
            return Ok(Some(value));
        }
        if let Some(key) = name.strip_prefix("user_config.") {
            let default = manifest["userConfig"][key]["default"].as_str();
            return default.map(|d| Some(d.to_owned())).ok_or_else(|| format!("{id} {name}"));
        }
        let allowed = name.starts_with("ZCODE_") || any_env;
        let value = session.env.get(name).filter(|_| allowed);
        value.map(|value| Some(value.clone())).ok_or_else(|| name.to_owned())
    })
}
