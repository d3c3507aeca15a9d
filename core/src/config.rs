//! Settings out of environment variables (seed 000, "configuration").
//!
//! The runtime passes a lookup function; an empty value counts as unset, because ZCode expands an
//! optional plugin setting without a value to an empty string.

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use core::fmt;

use crate::lang::Lang;
use crate::mode::PermissionMode;

/// Where the gateway is when `AGENTMAIL_GATEWAY_URL` does not say.
pub const DEFAULT_GATEWAY_URL: &str = "http://127.0.0.1:8180";
/// How long the hook waits for a human by default, in milliseconds (nine minutes).
pub const DEFAULT_PERMISSION_WAIT_MS: u64 = 540_000;
/// Longest wait for a human, in milliseconds: 30 s below the 600 s after which ZCode ends the hook,
/// so that asking, answering and withdrawing still fit.
pub const MAX_PERMISSION_WAIT_MS: u64 = 570_000;

/// A text that must never reach a log: `Debug` hides it and there is no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret text.
    #[must_use]
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// The text itself, for the one place that sends or compares it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// How requests to the gateway prove who they come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// An agent key, sent as `Authorization: Bearer`.
    Key(Secret),
    /// The shared agent secret, sent as `X-Agent-Secret` together with `X-Agent-Name`.
    Shared(Secret),
}

/// Everything that the hook and the MCP server read from their environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Base URL without a trailing slash (`AGENTMAIL_GATEWAY_URL`).
    pub gateway_url: String,
    /// This agent's name in AgentMail (`AGENTMAIL_AGENT_NAME`).
    pub agent_name: Option<String>,
    /// `AGENTMAIL_AGENT_KEY`. The key file comes next; reading it is the runtime's work.
    pub agent_key: Option<Secret>,
    /// `AGENTMAIL_AGENT_SECRET`, used when there is neither key nor key file.
    pub agent_secret: Option<Secret>,
    /// The mail session that drives this process (`AGENTMAIL_SESSION_ID`); `None` is interactive.
    pub session_id: Option<String>,
    /// `AGENTMAIL_PERMISSION_MODE`.
    pub mode: PermissionMode,
    /// How long to wait for a human, in milliseconds, never above [`MAX_PERMISSION_WAIT_MS`].
    pub permission_wait_ms: u64,
    /// What was wrong with a setting and which value is used in its place, one line each.
    pub warnings: alloc::vec::Vec<String>,
    /// Language of texts (`AGENTMAIL_LANG`).
    pub lang: Lang,
    /// A PEM file with additional certificate authorities (`AGENTMAIL_CA_FILE`).
    pub ca_file: Option<String>,
    /// A proxy for gateways that are not on this machine (`AGENTMAIL_PROXY`).
    pub proxy: Option<String>,
    /// The answer dialect as written (`AGENTMAIL_ZCODE_DIALECT`).
    pub dialect: Option<String>,
    /// `AGENTMAIL_ZCODE_GRANTS_FILE`.
    pub grants_file: Option<String>,
    /// `AGENTMAIL_CONFIG_DIR`.
    pub config_dir: Option<String>,
    /// `ZCODE_PLUGIN_DATA`.
    pub plugin_data: Option<String>,
    /// `HOME`.
    pub home: Option<String>,
}

impl Settings {
    /// Reads all settings through `lookup`, which returns a variable's value or `None`.
    pub fn from_env(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let read = |name: &str| lookup(name).map(|v| v.trim().to_owned()).filter(|v| !v.is_empty());
        let mut warnings = alloc::vec::Vec::new();
        let permission_wait_ms = wait_ms(read("AGENTMAIL_PERMISSION_WAIT_MS"), &mut warnings);
        let url = read("AGENTMAIL_GATEWAY_URL").unwrap_or_else(|| DEFAULT_GATEWAY_URL.to_owned());
        Self {
            gateway_url: url.trim_end_matches('/').to_owned(),
            agent_name: read("AGENTMAIL_AGENT_NAME"),
            agent_key: read("AGENTMAIL_AGENT_KEY").map(Secret::new),
            agent_secret: read("AGENTMAIL_AGENT_SECRET").map(Secret::new),
            session_id: read("AGENTMAIL_SESSION_ID"),
            mode: read("AGENTMAIL_PERMISSION_MODE")
                .map_or_else(PermissionMode::default, |text| PermissionMode::from_wire(&text)),
            permission_wait_ms,
            warnings,
            lang: read("AGENTMAIL_LANG").map_or_else(Lang::default, |tag| Lang::from_tag(&tag)),
            ca_file: read("AGENTMAIL_CA_FILE"),
            proxy: read("AGENTMAIL_PROXY"),
            dialect: read("AGENTMAIL_ZCODE_DIALECT"),
            grants_file: read("AGENTMAIL_ZCODE_GRANTS_FILE"),
            config_dir: read("AGENTMAIL_CONFIG_DIR"),
            plugin_data: read("ZCODE_PLUGIN_DATA"),
            home: read("HOME"),
        }
    }

    /// Whether mail drives this process, so that nobody sits in front of it (seed 000).
    #[must_use]
    pub const fn mail_driven(&self) -> bool {
        self.session_id.is_some()
    }
}

/// The key file's name inside its folder (`B-1.1`).
pub const KEY_FILE: &str = "agent.key";
/// The grants file's name inside the state folder (seed 000).
pub const GRANTS_FILE: &str = "permission-grants.json";
/// The folder below the home directory that holds both when no setting names another.
pub const HOME_FOLDER: &str = ".agentmail";

/// A path that the settings do not settle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsettled {
    /// `HOME` is unset, as under systemd, and no other setting names the place.
    HomeUnset {
        /// Which file needs it.
        file: &'static str,
        /// The variable that can name the place.
        set: &'static str,
    },
    /// The variable holds a relative path. A hook runs in the project's directory, so the project
    /// could bring its own key or grants.
    Relative {
        /// The variable.
        variable: &'static str,
        /// Its value.
        path: String,
    },
}

impl fmt::Display for Unsettled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HomeUnset { file, set } => {
                write!(f, "HOME is not set, so there is no place for {file}: set HOME or {set}")
            }
            Self::Relative { variable, path } => {
                write!(f, "{variable}={path} is a relative path: give an absolute one")
            }
        }
    }
}

impl core::error::Error for Unsettled {}

impl Settings {
    /// The key file: `agent.key` in `AGENTMAIL_CONFIG_DIR`, else in `~/.agentmail`. Needed only
    /// when [`Settings::agent_key`] is `None`.
    ///
    /// # Errors
    /// [`Unsettled`].
    pub fn key_file(&self) -> Result<String, Unsettled> {
        let folder = match &self.config_dir {
            Some(folder) => absolute("AGENTMAIL_CONFIG_DIR", folder)?,
            None => self.home_folder(KEY_FILE, "AGENTMAIL_AGENT_KEY")?,
        };
        Ok(in_folder(&folder, KEY_FILE))
    }

    /// The grants file: `AGENTMAIL_ZCODE_GRANTS_FILE`, else `permission-grants.json` in
    /// [`Settings::state_folder`].
    ///
    /// # Errors
    /// [`Unsettled`].
    pub fn grants_file(&self) -> Result<String, Unsettled> {
        match &self.grants_file {
            Some(file) => absolute("AGENTMAIL_ZCODE_GRANTS_FILE", file),
            None => Ok(in_folder(&self.state_folder()?, GRANTS_FILE)),
        }
    }

    /// The folder for grants, pending files and turn logs: that of the grants file where
    /// `AGENTMAIL_ZCODE_GRANTS_FILE` names one, else `AGENTMAIL_CONFIG_DIR`, else
    /// `ZCODE_PLUGIN_DATA`, else `~/.agentmail`.
    ///
    /// # Errors
    /// [`Unsettled`].
    pub fn state_folder(&self) -> Result<String, Unsettled> {
        if let Some(file) = &self.grants_file {
            let file = absolute("AGENTMAIL_ZCODE_GRANTS_FILE", file)?;
            // With its separator, so that a root stays one.
            let end = file.rfind(is_separator).unwrap_or_default();
            return Ok(file[..=end].to_owned());
        }
        match (&self.config_dir, &self.plugin_data) {
            (Some(folder), _) => absolute("AGENTMAIL_CONFIG_DIR", folder),
            (None, Some(folder)) => absolute("ZCODE_PLUGIN_DATA", folder),
            (None, None) => self.home_folder(GRANTS_FILE, "AGENTMAIL_CONFIG_DIR"),
        }
    }

    fn home_folder(&self, file: &'static str, set: &'static str) -> Result<String, Unsettled> {
        let home = self.home.as_ref().ok_or(Unsettled::HomeUnset { file, set })?;
        Ok(in_folder(&absolute("HOME", home)?, HOME_FOLDER))
    }
}

fn absolute(variable: &'static str, path: &str) -> Result<String, Unsettled> {
    let mut start = path.chars();
    let mut drive = || {
        let letter = start.next().is_some_and(|c| c.is_ascii_alphabetic());
        letter && start.next() == Some(':') && start.next().is_some_and(is_separator)
    };
    if path.starts_with('/') || path.starts_with("\\\\") || drive() {
        return Ok(path.to_owned());
    }
    Err(Unsettled::Relative { variable, path: path.to_owned() })
}

const fn is_separator(c: char) -> bool {
    matches!(c, '/' | '\\')
}

fn in_folder(folder: &str, name: &str) -> String {
    alloc::format!("{}/{name}", folder.trim_end_matches('/'))
}

fn wait_ms(text: Option<String>, warnings: &mut alloc::vec::Vec<String>) -> u64 {
    let Some(text) = text else { return DEFAULT_PERMISSION_WAIT_MS };
    match text.parse::<u64>() {
        Ok(0) | Err(_) => {
            warnings.push(alloc::format!(
                "AGENTMAIL_PERMISSION_WAIT_MS is not a positive number of milliseconds; \
                 waiting {DEFAULT_PERMISSION_WAIT_MS} ms"
            ));
            DEFAULT_PERMISSION_WAIT_MS
        }
        Ok(ms) if ms > MAX_PERMISSION_WAIT_MS => {
            warnings.push(alloc::format!(
                "AGENTMAIL_PERMISSION_WAIT_MS={ms} is too close to the hook's 600000 ms limit; \
                 waiting {MAX_PERMISSION_WAIT_MS} ms"
            ));
            MAX_PERMISSION_WAIT_MS
        }
        Ok(ms) => ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, &str)]) -> Settings {
        Settings::from_env(|name| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn an_empty_value_is_unset() {
        let settings = with(&[("AGENTMAIL_SESSION_ID", "  "), ("AGENTMAIL_GATEWAY_URL", "")]);
        assert!(!settings.mail_driven());
        assert_eq!(settings.gateway_url, DEFAULT_GATEWAY_URL);
    }

    #[test]
    fn the_wait_stays_below_the_hook_limit() {
        for (text, expected, warned) in [
            ("1", 1, false),
            ("570000", 570_000, false),
            ("570001", 570_000, true),
            ("99999999999999999999", 540_000, true),
            ("0", 540_000, true),
            ("-5", 540_000, true),
            ("9min", 540_000, true),
        ] {
            let settings = with(&[("AGENTMAIL_PERMISSION_WAIT_MS", text)]);
            assert_eq!(settings.permission_wait_ms, expected, "{text}");
            assert_eq!(settings.warnings.len(), usize::from(warned), "{text}");
        }
    }

    #[test]
    fn the_first_setting_that_names_a_place_wins() {
        let all = [
            ("AGENTMAIL_ZCODE_GRANTS_FILE", "/g/file.json"),
            ("AGENTMAIL_CONFIG_DIR", "/conf/"),
            ("ZCODE_PLUGIN_DATA", "/data"),
            ("HOME", "/home/ann"),
        ];
        let grants = |from: usize| with(&all[from..]).grants_file().unwrap();
        assert_eq!(grants(0), "/g/file.json");
        assert_eq!(grants(1), "/conf/permission-grants.json");
        assert_eq!(grants(2), "/data/permission-grants.json");
        assert_eq!(grants(3), "/home/ann/.agentmail/permission-grants.json");
        let state = |from: usize| with(&all[from..]).state_folder().unwrap();
        assert_eq!(state(0), "/g/");
        assert_eq!(state(1), "/conf/");
        assert_eq!(state(3), "/home/ann/.agentmail");
        let at_root = with(&[("AGENTMAIL_ZCODE_GRANTS_FILE", "/file.json")]);
        assert_eq!(at_root.state_folder().unwrap(), "/");
        let key = |from: usize| with(&all[from..]).key_file().unwrap();
        assert_eq!(key(1), "/conf/agent.key");
        assert_eq!(key(2), "/home/ann/.agentmail/agent.key");
        assert_eq!(with(&[("HOME", "/")]).key_file().unwrap(), "/.agentmail/agent.key");
    }

    #[test]
    fn home_is_missed_only_where_it_is_needed() {
        let bare = with(&[]);
        let error = bare.key_file().unwrap_err();
        let text = alloc::format!("{error}");
        assert!(text.contains("HOME") && text.contains("AGENTMAIL_AGENT_KEY"), "{text}");
        assert!(bare.grants_file().is_err());
        assert!(with(&[("AGENTMAIL_CONFIG_DIR", "/c")]).key_file().is_ok());
        assert!(with(&[("ZCODE_PLUGIN_DATA", "/d")]).grants_file().is_ok());
        assert!(with(&[("ZCODE_PLUGIN_DATA", "/d")]).key_file().is_err());
    }

    #[test]
    fn a_relative_place_is_refused() {
        for path in ["conf", "./conf", "../conf", "~/conf", "C:conf", "c"] {
            let error = with(&[("AGENTMAIL_CONFIG_DIR", path)]).key_file().unwrap_err();
            assert!(matches!(error, Unsettled::Relative { .. }), "{path}");
        }
        for path in ["/c", "C:\\c", "c:/c", "\\\\server\\c"] {
            assert!(with(&[("AGENTMAIL_CONFIG_DIR", path)]).key_file().is_ok(), "{path}");
        }
    }

    #[test]
    fn debug_output_never_contains_a_secret() {
        let settings =
            with(&[("AGENTMAIL_AGENT_KEY", "am_one"), ("AGENTMAIL_AGENT_SECRET", "am_two")]);
        let shown = alloc::format!("{settings:?}");
        assert!(!shown.contains("am_one") && !shown.contains("am_two"), "{shown}");
        assert_eq!(settings.agent_key.unwrap().expose(), "am_one");
    }
}
