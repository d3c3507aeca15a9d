//! Where the data is: `--data`, `DATABASE_URL`, `AGENTMAIL_DATA_DIR` (seed 002).

use std::env;
use std::path::{Path, PathBuf};

use clap::Args;
use zcode_mail_core::lang::Lang;

use super::Failed;
use crate::gateway::DATABASE_NAME;
use crate::gateway::failure::Failure;
use crate::gateway::store::Store;

/// The data folder when nothing says otherwise (seed 002).
const DEFAULT_DATA: &str = "./data";

/// The option that every command has.
#[derive(Debug, Args)]
pub(super) struct Data {
    /// The data folder. Without it: DATABASE_URL (sqlite:///path/to/file.db), then
    /// AGENTMAIL_DATA_DIR, then ./data.
    #[arg(long, value_name = "DIR")]
    pub(super) data: Option<PathBuf>,
}

impl Data {
    /// The database file.
    ///
    /// # Errors
    ///
    /// When `DATABASE_URL` names something other than an SQLite file.
    pub(super) fn database(&self) -> Result<PathBuf, Failed> {
        let read = |name: &str| env::var(name).ok();
        database(self.data.as_deref(), read)
    }

    /// Opens the database for one command, also while a gateway runs on it.
    ///
    /// # Errors
    ///
    /// What the store reports.
    pub(super) fn open(&self) -> Result<Store, Failed> {
        Ok(Store::open(&self.database()?)?)
    }
}

/// The language of texts (`AGENTMAIL_LANG`).
pub(super) fn lang() -> Lang {
    env::var("AGENTMAIL_LANG").map_or_else(|_| Lang::default(), |tag| Lang::from_tag(&tag))
}

/// A refusal of the gateway's functions as the text of a command that fails. Command lines speak
/// English unless `AGENTMAIL_LANG` says otherwise.
pub(super) fn refused(failure: &Failure) -> Failed {
    let lang = env::var("AGENTMAIL_LANG").map_or(Lang::En, |tag| Lang::from_tag(&tag));
    let mut text = failure.message.text(lang).to_owned();
    if let Some(suggestion) = &failure.suggestion {
        text.push_str("; ");
        text.push_str(suggestion.text(lang));
    }
    if let Some(cause) = &failure.cause {
        text.push_str(": ");
        text.push_str(cause);
    }
    Failed(text)
}

fn database(data: Option<&Path>, read: impl Fn(&str) -> Option<String>) -> Result<PathBuf, Failed> {
    let set = |name: &str| read(name).filter(|value| !value.trim().is_empty());
    if let Some(folder) = data {
        return Ok(folder.join(DATABASE_NAME));
    }
    if let Some(url) = set("DATABASE_URL") {
        return from_url(url.trim());
    }
    let folder = set("AGENTMAIL_DATA_DIR").unwrap_or_else(|| DEFAULT_DATA.to_owned());
    Ok(Path::new(&folder).join(DATABASE_NAME))
}

fn from_url(url: &str) -> Result<PathBuf, Failed> {
    match url.strip_prefix("sqlite://") {
        Some(path) if !path.is_empty() && !path.starts_with('?') => Ok(PathBuf::from(path)),
        Some(_) => Err(Failed(
            "DATABASE_URL names no file; write sqlite:///var/lib/agentmail/mail.db".to_owned(),
        )),
        None if url.starts_with("postgres") => Err(Failed(
            "DATABASE_URL asks for PostgreSQL, which this gateway does not have; \
             unset it or write sqlite:///path/to/file.db"
                .to_owned(),
        )),
        // The text itself may hold a password and is not repeated.
        None => Err(Failed(
            "DATABASE_URL has a form this gateway does not know; \
             write sqlite:///path/to/file.db"
                .to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(data: Option<&str>, pairs: &[(&str, &str)]) -> Result<PathBuf, String> {
        let read = |name: &str| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        database(data.map(Path::new), read).map_err(|failed| failed.0)
    }

    #[test]
    fn the_option_wins_over_the_url_and_the_url_over_the_folder() {
        let both = [("DATABASE_URL", "sqlite:///u/mail.db"), ("AGENTMAIL_DATA_DIR", "/folder")];
        assert_eq!(found(Some("/option"), &both), Ok("/option/agentmail.db".into()));
        assert_eq!(found(None, &both), Ok("/u/mail.db".into()));
        assert_eq!(found(None, &both[1..]), Ok("/folder/agentmail.db".into()));
        assert_eq!(found(None, &[("DATABASE_URL", " ")]), Ok("./data/agentmail.db".into()));
        assert_eq!(found(None, &[("DATABASE_URL", "sqlite://mail.db")]), Ok("mail.db".into()));
    }

    #[test]
    fn other_databases_are_refused_without_repeating_their_password() {
        for url in [
            "postgres://u:secret@h/d",
            "postgresql://u:secret@h/d",
            "mysql://u:secret@h",
            "sqlite://",
        ] {
            let refused = found(None, &[("DATABASE_URL", url)]).unwrap_err();
            assert!(refused.contains("sqlite:///"), "{refused}");
            assert!(!refused.contains("secret"), "{refused}");
        }
    }
}
