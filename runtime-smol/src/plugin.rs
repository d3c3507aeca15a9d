//! The plugin: a directory that ZCode loads through `plugins.dirs`.
//!
//! ```text
//! DIR/.zcode-plugin/plugin.json   the manifest; no `hooks` key, since hooks/hooks.json loads by itself
//! DIR/hooks/hooks.json            which events start the hook, under the key `hooks`
//! DIR/skills/agentmail/SKILL.md   how a model uses mail well
//! DIR/commands/*.md               what a person types: /mail-inbox, /mail-send, /mail-thread
//! DIR/bin/zcode-mail-hook         the hook
//! DIR/bin/zcode-mail-mcp          the mail tools
//! ```
//!
//! The rules behind each choice are facts about ZCode 3.3 to 3.15: an `events` key in a plugin file
//! is ignored without a word; `timeout` of a process hook is ignored while `timeoutMs` counts;
//! a matcher of letters, digits, `_` and `|` is a list of exact names; a placeholder for an unset
//! environment variable makes the installation fail, so secrets come from ZCode's own environment.
//! There is no `userConfig`: an option without a value reaches a server as an empty variable and
//! would hide the inherited one, and hooks never see options at all.

use std::env;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::{Value, json};
use zcode_mail_core::hook::answer::Dialect;
use zcode_mail_core::hook::policy::{GUARDED, OWN_BY_RULE, OWN_PREFIXES};
use zcode_mail_core::relay_key::sha256_hex;

use crate::durable;

/// The plugin's name in ZCode.
pub const NAME: &str = "agentmail";
/// Its identity when it is loaded through `plugins.dirs`.
pub const ID: &str = "agentmail@inline";
/// After this many milliseconds ZCode ends the hook: a minute more than the longest default wait.
pub const HOOK_TIMEOUT_MS: u64 = 600_000;
/// How long ZCode waits for the mail server to start or to answer, in milliseconds: its default of
/// 30 s is too short for a large attachment.
pub const MCP_TIMEOUT_MS: u64 = 120_000;

/// Where a manifest may be; the first one that exists counts.
pub const MANIFESTS: [&str; 3] =
    [".zcode-plugin/plugin.json", ".claude-plugin/plugin.json", ".codex-plugin/plugin.json"];

/// Why a plugin directory could not be written.
#[derive(Debug)]
pub enum PluginError {
    /// A program that belongs into `bin/` is not beside this one.
    Missing(PathBuf),
    /// The directory holds something else.
    Occupied(PathBuf),
    /// A file could not be read or written.
    Io(PathBuf, io::Error),
}

impl PluginError {
    fn io(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |error| Self::Io(path, error)
    }
}

impl fmt::Display for PluginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => write!(
                f,
                "{} is missing; build all programs with `cargo build --release`",
                path.display()
            ),
            Self::Occupied(path) => write!(
                f,
                "{} is not empty and not a plugin directory of ours; name an empty or new one",
                path.display()
            ),
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for PluginError {}

/// `zcode-mail plugin`
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Write the plugin to a directory for plugins.dirs of ZCode's configuration
    Write {
        /// A new or empty directory, or one with an earlier plugin of ours
        dir: PathBuf,
        /// How the hook answers
        #[arg(long, value_name = "both|structured|flat", default_value = "both")]
        #[arg(value_parser = parse_dialect)]
        dialect: Dialect,
    },
}

/// Reads a dialect's name for the command line.
///
/// # Errors
///
/// Names the three dialects.
pub fn parse_dialect(name: &str) -> Result<Dialect, String> {
    Dialect::parse(name).ok_or_else(|| "one of: both, structured, flat".to_owned())
}

/// Runs `zcode-mail plugin` and prints the absolute path of what it wrote.
///
/// # Errors
///
/// Says what stands in the way.
pub fn run(command: &Command, out: &mut dyn io::Write) -> Result<(), PluginError> {
    let Command::Write { dir, dialect } = command;
    let written = write(dir, *dialect)?;
    writeln!(out, "{}", written.display()).map_err(PluginError::io("standard output"))
}

/// One file of the plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its place in the plugin, with `/` between names.
    pub place: String,
    /// What it holds.
    pub content: Content,
}

/// What a file of the plugin holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// This text.
    Text(String),
    /// The program at this path.
    Program(PathBuf),
}

/// Writes the plugin to `dir`, which is new, empty, or an earlier plugin of ours. Returns the
/// absolute path for `plugins.dirs`.
///
/// # Errors
///
/// Fails without touching a directory that holds something else.
pub fn write(dir: &Path, dialect: Dialect) -> Result<PathBuf, PluginError> {
    let items = items(dialect)?;
    if !vacant_or_ours(dir)? {
        return Err(PluginError::Occupied(dir.to_owned()));
    }
    fill(dir, &items)?;
    fs::canonicalize(dir).map_err(PluginError::io(dir))
}

/// All files of the plugin, in the order in which they are written: whatever a file names is there
/// before it.
///
/// # Errors
///
/// Fails when a program is not beside this one.
pub fn items(dialect: Dialect) -> Result<Vec<Item>, PluginError> {
    let this = env::current_exe().map_err(PluginError::io("this program"))?;
    let mut items = Vec::new();
    for name in PROGRAMS {
        let file = format!("{name}{}", env::consts::EXE_SUFFIX);
        let program = this.with_file_name(&file);
        if !program.is_file() {
            return Err(PluginError::Missing(program));
        }
        items.push(Item { place: format!("bin/{file}"), content: Content::Program(program) });
    }
    let mut text = |place: &str, text: String| {
        items.push(Item { place: place.to_owned(), content: Content::Text(text) });
    };
    text("skills/agentmail/SKILL.md", include_str!("plugin/skill.md").to_owned());
    text("commands/mail-inbox.md", include_str!("plugin/mail-inbox.md").to_owned());
    text("commands/mail-send.md", include_str!("plugin/mail-send.md").to_owned());
    text("commands/mail-thread.md", include_str!("plugin/mail-thread.md").to_owned());
    text("hooks/hooks.json", format!("{:#}\n", hooks(dialect)));
    text(MANIFESTS[0], format!("{:#}\n", manifest()));
    Ok(items)
}

/// The programs in `bin/`.
const PROGRAMS: [&str; 2] = ["zcode-mail-hook", "zcode-mail-mcp"];

/// SHA-256 over the places and bytes of all files.
///
/// # Errors
///
/// Fails when a program cannot be read.
pub fn digest(items: &[Item]) -> Result<String, PluginError> {
    let mut all = String::new();
    for item in items {
        let one = match &item.content {
            Content::Text(text) => sha256_hex(text.as_bytes()),
            Content::Program(path) => sha256_hex(&fs::read(path).map_err(PluginError::io(path))?),
        };
        all.push_str(&format!("{one}  {}\n", item.place));
    }
    Ok(sha256_hex(all.as_bytes()))
}

/// Whether a directory holds every file with exactly these bytes.
#[must_use]
pub fn holds(dir: &Path, items: &[Item]) -> bool {
    items.iter().all(|item| {
        let found = fs::read(dir.join(&item.place));
        match &item.content {
            Content::Text(text) => found.is_ok_and(|bytes| bytes == text.as_bytes()),
            Content::Program(path) => {
                found.is_ok_and(|bytes| fs::read(path).is_ok_and(|program| program == bytes))
            }
        }
    })
}

/// Writes files into a directory. A running hook keeps its file: the new one takes its place by
/// rename.
///
/// # Errors
///
/// Stops at the first file that cannot be written.
pub fn fill(dir: &Path, items: &[Item]) -> Result<(), PluginError> {
    for item in items {
        let path = item.place.split('/').fold(dir.to_owned(), |path, name| path.join(name));
        let parent = path.parent().unwrap_or(dir);
        durable::create_directories(parent).map_err(PluginError::io(parent))?;
        match &item.content {
            Content::Text(text) => {
                durable::write(&path, text.as_bytes(), durable::PUBLIC_FILE)
                    .map_err(PluginError::io(&path))?;
            }
            Content::Program(program) => {
                durable::copy_program(program, &path).map_err(PluginError::io(program))?;
            }
        }
    }
    Ok(())
}

/// The manifest.
#[must_use]
pub fn manifest() -> Value {
    json!({
        "name": NAME,
        "version": env!("CARGO_PKG_VERSION"),
        "description": "Mail for the model, and a human's decision in front of every dangerous tool call.",
        "description_i18n": { "zh-CN": "让模型收发邮件，并在每次危险的工具调用之前请人决定。" },
        "license": env!("CARGO_PKG_LICENSE"),
        "mcpServers": {
            "agentmail": {
                "command": program("zcode-mail-mcp"),
                "args": [],
                "timeoutMs": MCP_TIMEOUT_MS,
            },
        },
    })
}

/// The hook registrations for one answer dialect.
#[must_use]
pub fn hooks(dialect: Dialect) -> Value {
    let entry = json!({
        "type": "process",
        "command": program("zcode-mail-hook"),
        "args": ["--dialect", dialect.as_str()],
        "timeoutMs": HOOK_TIMEOUT_MS,
        "statusMessage": "AgentMail: waiting for a human's decision",
    });
    let group = |matcher: String| json!({ "matcher": matcher, "hooks": [entry.clone()] });
    let guarded = GUARDED.join("|");
    let own = OWN_PREFIXES
        .iter()
        .flat_map(|prefix| OWN_BY_RULE.iter().map(move |tool| format!("{prefix}{tool}")))
        .collect::<Vec<_>>()
        .join("|");
    json!({
        "description": "Asks a human by mail before a dangerous tool call.",
        "hooks": {
            "PermissionRequest": [group(guarded.clone()), group(own)],
            "PreToolUse": [group(guarded)],
        },
    })
}

/// A program of the plugin as ZCode finds it.
fn program(name: &str) -> String {
    format!("${{ZCODE_PLUGIN_ROOT}}/bin/{name}{}", env::consts::EXE_SUFFIX)
}

/// The name in a plugin directory's manifest, found as ZCode finds it.
#[must_use]
pub fn name_in(dir: &Path) -> Option<String> {
    let path = MANIFESTS.iter().map(|place| dir.join(place)).find(|path| path.exists())?;
    let manifest: Value = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    manifest["name"].as_str().map(|name| name.trim().to_owned())
}

fn vacant_or_ours(dir: &Path) -> Result<bool, PluginError> {
    let mut entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(PluginError::Io(dir.to_owned(), error)),
    };
    Ok(entries.next().is_none() || name_in(dir).as_deref() == Some(NAME))
}

#[cfg(test)]
mod tests;
