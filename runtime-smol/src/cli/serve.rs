//! `zcode-mail gateway`.

use std::env;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use async_signal::{Signal, Signals};
use clap::Args as ClapArgs;
use futures_lite::StreamExt as _;
use zcode_mail_core::config::Secret;

use super::{Data, Failed, say, settings};
use crate::gateway::store::Store;
use crate::gateway::{self, Config, DEFAULT_PORT, accounts};
use crate::service;

/// The name of the first administrator when `ADMIN_USER` does not say.
const DEFAULT_ADMIN: &str = "admin";

/// Options of `zcode-mail gateway`.
#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    /// What to do with the service, in place of running here.
    #[command(subcommand)]
    pub(super) service: Option<service::Command>,
    #[command(flatten)]
    data: Data,
    /// The address to listen on; port 0 takes a free one.
    #[arg(long, value_name = "IP:PORT", default_value_t = default_listen())]
    listen: SocketAddr,
    /// A further host name under which the gateway answers; may be repeated.
    #[arg(long = "allow-host", value_name = "NAME")]
    allow_hosts: Vec<String>,
}

/// Runs the gateway until SIGTERM or SIGINT.
pub(super) fn run(args: Args) -> Result<(), Failed> {
    let lang = settings::lang();
    let secret = env::var("AGENTMAIL_AGENT_SECRET").ok().filter(|secret| !secret.is_empty());
    let config = Config {
        database: args.data.database()?,
        listen: args.listen,
        allow_hosts: args.allow_hosts,
        agent_secret: secret.map(Secret::new),
        lang,
        max_attachment_bytes: max_attachment_bytes()?,
    };
    // Before anything listens, so that no signal finds the default action.
    let mut signals = Signals::new([Signal::Term, Signal::Int])?;
    let running = gateway::start(config)?;
    let first_login = first_admin(running.store())?;
    say(format_args!("listening on {}", running.url()))?;
    if !args.listen.ip().is_loopback() {
        warn(format_args!(
            "warning: {} can be reached from other machines, and this gateway speaks plain HTTP; \
             put a TLS proxy in front of it",
            running.address()
        ));
    }
    if let Some(code) = first_login {
        warn(format_args!(
            "the first administrator is \"{DEFAULT_ADMIN}\"; this link logs in once, within 15 \
             minutes: {}/login/{code}",
            running.url()
        ));
    }
    smol::block_on(signals.next());
    running.stop();
    Ok(())
}

/// The first start makes an administrator: from `ADMIN_USER` and `ADMIN_PASSWORD`, else one named
/// `admin` who gets a login code, which is returned.
fn first_admin(store: &Store) -> Result<Option<String>, Failed> {
    let count = smol::block_on(store.read(accounts::user_count));
    if count.map_err(|failure| settings::refused(&failure))? > 0 {
        return Ok(None);
    }
    let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let name = set("ADMIN_USER").unwrap_or_else(|| DEFAULT_ADMIN.to_owned());
    let hash = set("ADMIN_PASSWORD")
        .map(|password| accounts::password_hash(&password))
        .transpose()
        .map_err(|failure| settings::refused(&failure))?;
    let made = smol::block_on(store.write(move |tx| {
        accounts::add_user(tx, &name, hash.as_deref(), true)?;
        hash.is_none().then(|| accounts::issue_code(tx, &name)).transpose()
    }));
    made.map_err(|failure| settings::refused(&failure))
}

fn max_attachment_bytes() -> Result<u64, Failed> {
    const NAME: &str = "AGENTMAIL_MAX_ATTACHMENT_BYTES";
    match env::var(NAME).ok().filter(|text| !text.trim().is_empty()) {
        None => Ok(gateway::attachment::DEFAULT_LIMIT),
        Some(text) => text
            .trim()
            .parse()
            .map_err(|_| Failed(format!("{NAME} must be a number of bytes, it is \"{text}\""))),
    }
}

const fn default_listen() -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), DEFAULT_PORT)
}

fn warn(line: std::fmt::Arguments<'_>) {
    // Without a stderr there is nobody to warn.
    let _ = writeln!(std::io::stderr(), "{line}");
}
