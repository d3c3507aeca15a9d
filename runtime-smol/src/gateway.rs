//! The AgentMail gateway: one process, one SQLite file, the wire contract of seed 003 and a page
//! for the person who decides.
//!
//! ```text
//! accept loop ─▶ hyper ─▶ guard (Host) ─▶ router ─▶ caller (key, secret or cookie) ─▶ handler
//!                                                          │ write(work)      │ read(work)
//!                                              store: one writer thread, reader threads
//!                                                          │ events after commit, in id order
//!                                                         hub ─▶ every open stream of a recipient
//! ```
//!
//! Agent credentials (keys, the shared secret) never reach a human route: an agent cannot approve
//! itself. Whoever is not allowed to see something gets the same 404 as for what does not exist.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::{fmt, io};

use zcode_mail_core::config::Secret;
use zcode_mail_core::lang::Lang;

pub mod accounts;
mod agent;
pub mod attachment;
pub mod audit;
mod auth;
mod body;
mod delivery;
mod discovery;
mod event;
pub mod failure;
pub mod grant;
mod guard;
mod hub;
mod human;
mod log;
mod page;
mod permission;
mod reading;
mod secret;
mod seen;
mod server;
mod session;
pub mod stamp;
pub mod store;
mod stream;
mod throttle;

use hub::Hub;
use store::{OpenError, Store};

/// The port of seed 002.
pub const DEFAULT_PORT: u16 = 8180;
/// The database's file name in the data folder (seed 002).
pub const DATABASE_NAME: &str = "agentmail.db";

/// How a gateway runs.
#[derive(Clone, Debug)]
pub struct Config {
    /// The database file; created with its folder when missing.
    pub database: PathBuf,
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Host names, besides loopback and the listen address, under which the gateway answers.
    pub allow_hosts: Vec<String>,
    /// `AGENTMAIL_AGENT_SECRET`: the shared secret that agents without a key may use.
    pub agent_secret: Option<Secret>,
    /// The language of error texts and of the page when the browser does not ask for one.
    pub lang: Lang,
    /// Largest attachment in bytes (`AGENTMAIL_MAX_ATTACHMENT_BYTES`).
    pub max_attachment_bytes: u64,
}

impl Config {
    /// A gateway on `database` that listens on the default port of the loopback address.
    #[must_use]
    pub fn new(database: PathBuf) -> Self {
        Self {
            database,
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), DEFAULT_PORT),
            allow_hosts: Vec::new(),
            agent_secret: None,
            lang: Lang::default(),
            max_attachment_bytes: attachment::DEFAULT_LIMIT,
        }
    }
}

/// Why a gateway does not start.
#[derive(Debug)]
pub enum StartError {
    /// The database.
    Open(OpenError),
    /// The address cannot be listened on.
    Listen(SocketAddr, io::Error),
    /// No thread for the executor.
    Thread(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => error.fmt(f),
            Self::Listen(address, error) => write!(
                f,
                "cannot listen on {address}: {error}; choose another address with --listen"
            ),
            Self::Thread(error) => write!(f, "cannot start a thread: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// What every handler works with.
pub(crate) struct Gateway {
    store: Store,
    hub: Arc<Hub>,
    agent_secret: Option<Secret>,
    lang: Lang,
    logins: throttle::Throttle,
    shelf: attachment::Shelf,
}

/// A running gateway. Dropping it stops it.
pub struct Running {
    address: SocketAddr,
    store: Store,
    server: Option<server::Server>,
}

impl Running {
    /// The address it listens on, with the real port.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://address`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The open database, for the operator's commands in the same process.
    #[must_use]
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// Stops: no new connection is accepted, event streams end, requests in progress are answered
    /// (for at most three seconds), the database is closed.
    pub fn stop(mut self) {
        self.shut_down();
    }

    fn shut_down(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
            self.store.close();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// Opens the database, listens and serves on threads of its own until [`Running::stop`].
///
/// # Errors
///
/// [`StartError`].
pub fn start(config: Config) -> Result<Running, StartError> {
    let hub = Arc::new(Hub::default());
    let store = Store::open_with(&config.database, Arc::clone(&hub)).map_err(StartError::Open)?;
    let shelf = attachment::Shelf::open(&config.database, config.max_attachment_bytes)
        .map_err(|error| StartError::Open(OpenError::Io(config.database.clone(), error)))?;
    let gateway = Arc::new(Gateway {
        store: store.clone(),
        hub,
        agent_secret: config.agent_secret.clone(),
        lang: config.lang,
        logins: throttle::Throttle::default(),
        shelf,
    });
    let server = server::Server::start(&config, gateway)?;
    Ok(Running { address: server.address(), store, server: Some(server) })
}
