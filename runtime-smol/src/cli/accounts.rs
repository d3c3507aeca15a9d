//! `zcode-mail user …` and `zcode-mail agent-key …`: they work on the database file directly, also
//! while a gateway runs on it.

use std::io::Read as _;

use clap::{Args, Subcommand};

use super::settings::refused;
use super::{Data, Failed, say};
use crate::gateway::accounts::{self, Kind, Lifetime};
use crate::gateway::failure::Failure;
use crate::gateway::stamp;
use crate::gateway::store::Tx;

/// Longest password or key on stdin, in bytes.
const STDIN_LIMIT: u64 = 4096;
/// Where a gateway listens when `--url` does not say.
const DEFAULT_URL: &str = zcode_mail_core::config::DEFAULT_GATEWAY_URL;

/// `zcode-mail user …`
#[derive(Debug, Subcommand)]
pub(super) enum User {
    /// Make a person.
    Add {
        /// The person's name, the first part of their address.
        name: String,
        /// Give administrator rights.
        #[arg(long)]
        admin: bool,
        /// Read a password from stdin; without it the person logs in by link.
        #[arg(long)]
        password_stdin: bool,
        #[command(flatten)]
        data: Data,
    },
    /// Print a link that logs a person in once, within 15 minutes.
    LoginLink {
        /// The person's name.
        name: String,
        /// The base URL under which the person reaches the gateway.
        #[arg(long, value_name = "BASE", default_value = DEFAULT_URL)]
        url: String,
        #[command(flatten)]
        data: Data,
    },
    /// Keys with which programs reach a person's mailbox.
    #[command(subcommand)]
    Key(UserKey),
}

/// `zcode-mail user key …`
#[derive(Debug, Subcommand)]
pub(super) enum UserKey {
    /// Make a key and print it.
    Create {
        /// The person's name.
        name: String,
        #[command(flatten)]
        life: Life,
        #[command(flatten)]
        data: Data,
    },
}

/// `zcode-mail agent-key …`
#[derive(Debug, Subcommand)]
pub(super) enum AgentKey {
    /// Make a key for an agent and print it.
    Create {
        /// The agent's name.
        name: String,
        /// The person who answers for the agent.
        #[arg(long, value_name = "USER")]
        owner: String,
        #[command(flatten)]
        life: Life,
        #[command(flatten)]
        data: Data,
    },
    /// Register a key that the agent made itself (printed at its first start).
    Register {
        /// The agent's name.
        name: String,
        /// The person who answers for the agent.
        #[arg(long, value_name = "USER")]
        owner: String,
        /// The key. Other users of this machine can see arguments; --stdin hides it.
        #[arg(long, value_name = "TOKEN", required_unless_present = "stdin")]
        key_token: Option<String>,
        /// Read the key from stdin.
        #[arg(long, conflicts_with = "key_token")]
        stdin: bool,
        #[command(flatten)]
        data: Data,
    },
    /// List the keys: id, agent, owner, lifetime, made at, state.
    List {
        #[command(flatten)]
        data: Data,
    },
    /// Revoke a key by its id.
    Revoke {
        /// The id from `agent-key list`.
        id: String,
        #[command(flatten)]
        data: Data,
    },
}

/// How long a new key is good.
#[derive(Debug, Args)]
pub(super) struct Life {
    /// The key is good for one request.
    #[arg(long, conflicts_with = "hours")]
    one_time: bool,
    /// The key is good for so many hours.
    #[arg(long, value_name = "N")]
    hours: Option<u32>,
}

impl Life {
    fn lifetime(&self) -> Lifetime {
        match self.hours {
            Some(hours) => Lifetime::Until(stamp::now() + i64::from(hours) * 3_600_000),
            None if self.one_time => Lifetime::OneTime,
            None => Lifetime::Permanent,
        }
    }
}

/// Runs `zcode-mail user …`.
pub(super) fn user(command: User) -> Result<(), Failed> {
    match command {
        User::Add { name, admin, password_stdin, data } => {
            let hash = match password_stdin {
                true => Some(accounts::password_hash(&stdin_line()?).map_err(|f| refused(&f))?),
                false => None,
            };
            write(&data, move |tx| accounts::add_user(tx, &name, hash.as_deref(), admin))
        }
        User::LoginLink { name, url, data } => {
            let code = write(&data, move |tx| accounts::issue_code(tx, &name))?;
            say(format_args!("{}/login/{code}", url.trim_end_matches('/')))
        }
        User::Key(UserKey::Create { name, life, data }) => {
            let lifetime = life.lifetime();
            let (_, key) = write(&data, move |tx| accounts::create_user_key(tx, &name, lifetime))?;
            say(key)
        }
    }
}

/// Runs `zcode-mail agent-key …`.
pub(super) fn agent_key(command: AgentKey) -> Result<(), Failed> {
    match command {
        AgentKey::Create { name, owner, life, data } => {
            let lifetime = life.lifetime();
            let (_, key) = write(&data, move |tx| {
                accounts::create_agent_key(tx, &name, &owner, None, lifetime)
            })?;
            say(key)
        }
        AgentKey::Register { name, owner, key_token, stdin, data } => {
            let token = if stdin { stdin_line()? } else { key_token.unwrap_or_default() };
            let (id, _) = write(&data, move |tx| {
                accounts::create_agent_key(tx, &name, &owner, Some(&token), Lifetime::Permanent)
            })?;
            say(format_args!("registered {id}"))
        }
        AgentKey::List { data } => {
            let store = data.open()?;
            let keys = smol::block_on(store.read(|db| accounts::list_keys(db, Kind::Agent)))
                .map_err(|failure| refused(&failure))?;
            for key in keys {
                let state = key.revoked_at.map_or_else(
                    || "good".to_owned(),
                    |at| format!("revoked {}", stamp::rfc3339(at)),
                );
                say(format_args!(
                    "{}\t{}\t{}\t{}\t{}\t{state}",
                    key.id,
                    key.subject,
                    key.owner,
                    key.lifetime,
                    stamp::rfc3339(key.created_at)
                ))?;
            }
            Ok(())
        }
        AgentKey::Revoke { id, data } => write(&data, move |tx| accounts::revoke_key(tx, &id)),
    }
}

fn write<T: Send + 'static>(
    data: &Data,
    work: impl FnOnce(&mut Tx<'_>) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failed> {
    let store = data.open()?;
    let result = smol::block_on(store.write(work)).map_err(|failure| refused(&failure));
    store.close();
    result
}

/// The first line of stdin, without its end.
fn stdin_line() -> Result<String, Failed> {
    let mut text = String::new();
    std::io::stdin().lock().take(STDIN_LIMIT).read_to_string(&mut text)?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}
