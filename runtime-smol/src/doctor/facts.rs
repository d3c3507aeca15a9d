//! What is installed and set, read once.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use zcode_mail_core::config::{Secret, Settings};

use crate::install::Where;
use crate::install::config_file::ConfigFile;
use crate::install::edit;
use crate::install::paths::Paths;
use crate::install::version::{self, ZcodeVersion};

/// Most bytes of a key file. Keys have below a hundred.
const KEY_LIMIT: u64 = 4096;

/// One hook registration of the installed plugin.
#[derive(Clone, Debug)]
pub(super) struct Registered {
    pub(super) event: String,
    pub(super) matcher: String,
    pub(super) hook: Value,
}

/// Everything that the checks look at.
pub(super) struct Facts {
    pub(super) paths: Paths,
    /// What `plugins.dirs` should name.
    pub(super) entry: String,
    pub(super) env: BTreeMap<String, String>,
    pub(super) settings: Settings,
    /// The configuration, or why it cannot be read.
    pub(super) config: Result<Value, String>,
    /// The configuration's text, for secrets in it.
    pub(super) config_text: String,
    /// The plugin's manifest and hook file.
    pub(super) manifest: Result<Value, String>,
    pub(super) hooks: Result<Value, String>,
    pub(super) zcode: Option<ZcodeVersion>,
    /// The key and where it came from.
    pub(super) key: Option<(Secret, String)>,
    pub(super) probe: bool,
}

impl Facts {
    pub(super) fn gather(
        place: &Where,
        env: &BTreeMap<String, String>,
        probe: bool,
    ) -> Result<Self, String> {
        let paths = Paths::find(place).map_err(|error| error.to_string())?;
        let entry = paths.entry().map_err(|error| error.to_string())?;
        let settings = Settings::from_env(|name| env.get(name).cloned());
        let (config, config_text) = match ConfigFile::open(&paths.config) {
            Ok(file) => {
                let text = String::from_utf8_lossy(file.bytes()).into_owned();
                let shown = paths.config.display();
                (edit::read(file.bytes()).map_err(|refusal| format!("{shown}: {refusal}")), text)
            }
            Err(error) => (Err(error.to_string()), String::new()),
        };
        let root = Path::new(&entry);
        let manifest = json_file(&root.join(crate::plugin::MANIFESTS[0]));
        let hooks = json_file(&root.join("hooks").join("hooks.json"));
        let key = key(&settings);
        let zcode = version::find();
        let env = env.clone();
        Ok(Self {
            paths,
            entry,
            env,
            settings,
            config,
            config_text,
            manifest,
            hooks,
            zcode,
            key,
            probe,
        })
    }

    /// The plugin directory as ZCode knows it.
    pub(super) fn root(&self) -> PathBuf {
        PathBuf::from(&self.entry)
    }

    /// The directories that the configuration names.
    pub(super) fn dirs(&self) -> Vec<&str> {
        let Ok(config) = &self.config else { return Vec::new() };
        let dirs = config["plugins"]["dirs"].as_array();
        dirs.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The hooks of our plugin.
    pub(super) fn registered(&self) -> Vec<Registered> {
        self.hooks.as_ref().map(|file| registered(&file["hooks"])).unwrap_or_default()
    }

    /// Where settings came from; secrets are named and not shown.
    pub(super) fn sources(&self) -> Vec<String> {
        let from = |name: &str| {
            let set = self.env.get(name).is_some_and(|value| !value.trim().is_empty());
            if set { "environment" } else { "default" }
        };
        let mut out = vec![
            format!("plugin: {}", self.entry),
            format!("configuration: {}", self.paths.config.display()),
            format!("gateway: {} ({})", self.settings.gateway_url, from("AGENTMAIL_GATEWAY_URL")),
        ];
        if let Some((_, whence)) = &self.key {
            out.push(format!("key: set ({whence})"));
        } else if self.settings.agent_secret.is_some() {
            out.push("shared secret: set (environment)".to_owned());
        }
        if let Some(version) = self.zcode {
            out.push(format!("ZCode: {version}"));
        }
        out
    }
}

/// The registrations in an object of events.
pub(super) fn registered(events: &Value) -> Vec<Registered> {
    let mut out = Vec::new();
    for (event, groups) in events.as_object().into_iter().flatten() {
        for group in groups.as_array().into_iter().flatten() {
            let matcher = group["matcher"].as_str().unwrap_or_default().to_owned();
            for hook in group["hooks"].as_array().into_iter().flatten() {
                let (event, matcher, hook) = (event.clone(), matcher.clone(), hook.clone());
                out.push(Registered { event, matcher, hook });
            }
        }
    }
    out
}

/// Whether a matcher takes a tool: nothing and `*` take all, a list takes its names, and of a
/// regular expression it is enough here that it mentions the tool or anything at all.
pub(super) fn takes(matcher: &str, tool: &str) -> bool {
    let list = matcher.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'|');
    match matcher {
        "" | "*" => true,
        names if list => names.split('|').any(|name| name == tool),
        pattern => pattern.contains(tool) || pattern.contains(".*"),
    }
}

pub(super) fn json_file(path: &Path) -> Result<Value, String> {
    let shown = path.display();
    let bytes = fs::read(path).map_err(|error| format!("{shown}: {error}"))?;
    serde_json::from_slice(&bytes).map_err(|error| format!("{shown}: {error}"))
}

fn key(settings: &Settings) -> Option<(Secret, String)> {
    if let Some(key) = &settings.agent_key {
        return Some((key.clone(), "AGENTMAIL_AGENT_KEY".to_owned()));
    }
    let path = settings.key_file().ok()?;
    let small = fs::metadata(&path).ok().filter(|found| found.len() <= KEY_LIMIT).is_some();
    let text = fs::read_to_string(&path).ok().filter(|_| small)?;
    let text = text.trim();
    (!text.is_empty()).then(|| (Secret::new(text.to_owned()), path))
}
