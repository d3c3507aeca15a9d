//! What a check can say, and the list of everything that can be said.

use std::path::PathBuf;

use serde_json::{Value, json};
use zcode_mail_core::lang::Lang;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something does not work, or a dangerous call could go through.
    Error,
    /// It works, but not as it may look.
    Warning,
}

/// A change that makes a finding go away and cannot harm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fix {
    /// Install again: it completes whatever is missing.
    Install,
    /// Give a file or directory this mode.
    Mode(PathBuf, u32),
    /// Remove a note whose writer is gone.
    Remove(PathBuf),
    /// Drop remembered approvals that have ended.
    PruneGrants(PathBuf),
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its stable code.
    pub code: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What is wrong and what to do, in Chinese.
    pub zh: String,
    /// The same in English.
    pub en: String,
    /// What `--fix` would do.
    pub fix: Option<Fix>,
}

impl Finding {
    /// A finding that keeps something from working.
    #[must_use]
    pub fn error(code: &'static str, zh: impl Into<String>, en: impl Into<String>) -> Self {
        Self { code, level: Level::Error, zh: zh.into(), en: en.into(), fix: None }
    }

    /// A finding that may surprise.
    #[must_use]
    pub fn warning(code: &'static str, zh: impl Into<String>, en: impl Into<String>) -> Self {
        Self { level: Level::Warning, ..Self::error(code, zh, en) }
    }

    /// Adds what `--fix` would do.
    #[must_use]
    pub fn fix(mut self, fix: Fix) -> Self {
        self.fix = Some(fix);
        self
    }

    /// The sentence in a language.
    #[must_use]
    pub fn text(&self, lang: Lang) -> &str {
        lang.pick(&self.zh, &self.en)
    }

    /// As `--json` shows it.
    #[must_use]
    pub fn json(&self) -> Value {
        let level = match self.level {
            Level::Error => "error",
            Level::Warning => "warning",
        };
        json!({
            "code": self.code,
            "level": level,
            "zh": self.zh,
            "en": self.en,
            "fixable": self.fix.is_some(),
        })
    }
}

/// Every code with what it is about. `docs/troubleshooting.md` has a section for each.
pub const CODES: [(&str, &str); 46] = [
    ("ZM-101", "no complete plugin is installed"),
    ("ZM-102", "ZCode's configuration cannot be read"),
    ("ZM-103", "ZCode's configuration does not name the plugin"),
    ("ZM-104", "ZCode's plugins are turned off"),
    ("ZM-105", "the plugin is turned off"),
    ("ZM-106", "another plugin of the same name is loaded first"),
    ("ZM-107", "the manifest or the hook file is damaged"),
    ("ZM-108", "a program of the plugin is missing"),
    ("ZM-109", "a program of the plugin cannot be started"),
    ("ZM-110", "a program of the plugin has another version"),
    ("ZM-111", "the hook's time limit is missing or in the wrong unit"),
    ("ZM-112", "the hook's time limit is shorter than the wait for a human"),
    ("ZM-113", "the wait for a human looks like seconds"),
    ("ZM-114", "the answer dialect does not fit ZCode's version"),
    ("ZM-115", "the answer dialect of the environment is unknown or has no effect"),
    ("ZM-116", "another plugin's hook can overrule ours"),
    ("ZM-117", "the user's own hooks answer the same question"),
    ("ZM-118", "the hook command does not run"),
    ("ZM-119", "the hook command answers wrongly"),
    ("ZM-120", "ZCode does not list the plugin"),
    ("ZM-121", "ZCode lists the plugin as disabled"),
    ("ZM-122", "ZCode sees no hook or no mail server in the plugin"),
    ("ZM-123", "a dangerous tool starts no hook"),
    ("ZM-124", "an interrupted installation left something"),
    ("ZM-201", "HOME is not set"),
    ("ZM-202", "the gateway's address cannot be used"),
    ("ZM-203", "the gateway's address says localhost"),
    ("ZM-204", "a proxy is set where the hook cannot see it"),
    ("ZM-205", "a private certificate authority is set where the hook cannot see it"),
    ("ZM-206", "the key travels unencrypted"),
    ("ZM-207", "there is no key"),
    ("ZM-208", "the key is not an agent key"),
    ("ZM-209", "the gateway refuses the key"),
    ("ZM-210", "the agent's name does not belong to the key"),
    ("ZM-211", "the key file can be read by others"),
    ("ZM-212", "a secret is on a command line or in a configuration"),
    ("ZM-213", "a setting has a name or value that nothing reads"),
    ("ZM-301", "the gateway cannot be reached"),
    ("ZM-302", "something else answers in the gateway's place"),
    ("ZM-303", "the clocks differ"),
    ("ZM-304", "the event stream does not open"),
    ("ZM-305", "the event stream does not deliver"),
    ("ZM-306", "two gateways run"),
    ("ZM-401", "the state folder can be used by others"),
    ("ZM-402", "remembered approvals are damaged, or others can change them"),
    ("ZM-403", "remembered approvals have ended, or a waiting note has no hook"),
];
