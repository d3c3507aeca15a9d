//! Which key the hook shows to the gateway.
//!
//! `AGENTMAIL_AGENT_KEY`, else the file `agent.key` in `AGENTMAIL_CONFIG_DIR` where that is set and
//! in `~/.agentmail` where it is not, else `AGENTMAIL_AGENT_SECRET`. The hook never makes or writes a key. A key file
//! that exists and cannot be trusted is an error, not a reason to look further.

use std::path::Path;

use zcode_mail_core::config::{Credential, Secret, Settings};

use crate::files::{Privacy, read_private};

/// Most bytes of a key file. Keys have below a hundred.
const KEY_LIMIT: usize = 4096;

/// Finds the credential.
///
/// # Errors
/// A sentence that says what was looked for and what to do.
pub(crate) fn find(settings: &Settings) -> Result<Credential, String> {
    if let Some(key) = &settings.agent_key {
        return sendable(key.clone(), "AGENTMAIL_AGENT_KEY").map(Credential::Key);
    }
    let place = settings.key_file();
    if let Ok(name) = &place
        && let Some(bytes) = read_private(Path::new(name), KEY_LIMIT, Privacy::OnlyWeRead)?
    {
        let text = String::from_utf8(bytes).map_err(|_| format!("{name} is not text"))?;
        let key = Secret::new(text.trim().to_owned());
        if key.expose().is_empty() {
            return Err(format!("{name} is empty"));
        }
        return sendable(key, name).map(Credential::Key);
    }
    if let Some(secret) = &settings.agent_secret {
        return sendable(secret.clone(), "AGENTMAIL_AGENT_SECRET").map(Credential::Shared);
    }
    let why = match place {
        Ok(name) => format!("there is no {name}"),
        Err(unsettled) => unsettled.to_string(),
    };
    Err(format!("neither AGENTMAIL_AGENT_KEY nor AGENTMAIL_AGENT_SECRET is set, and {why}"))
}

/// A key travels in a header, so it has to consist of visible ASCII characters.
fn sendable(key: Secret, name: &str) -> Result<Secret, String> {
    if key.expose().bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(key);
    }
    Err(format!("{name} holds a character that no key has (white space or not ASCII)"))
}
