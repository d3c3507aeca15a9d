//! `zcode-mail gateway install | upgrade | prune`: the gateway as a service of systemd.
//!
//! ```text
//! <prefix>/gateway/
//!   0.1.0-20261130T120000Z/zcode-mail    a generation: complete, never changed
//!   current -> 0.1.0-...                 the one that the unit starts; moves by a rename
//! /etc/agentmail/gateway.env             ADMIN_USER, a random ADMIN_PASSWORD; mode 0600
//! /etc/systemd/system/NAME.service
//! <data>/backups/before-<generation>.db  an online backup whose integrity was checked
//!
//! upgrade: stage -> try --version -> back up -> check the backup -> move the link -> restart
//!          -> active? /health? no panic? streams back?  -- any "no" --> link back, restart
//! ```
//!
//! What it promises:
//! - The database is copied by SQLite's backup interface, never file by file, and the copy is
//!   checked before anything else changes.
//! - At every moment `current` leads to one complete generation; a `kill -9` leaves the old one or
//!   the new one.
//! - An upgrade that is not well afterwards is taken back without asking, with the database of
//!   before if the new program had changed its schema.
//! - Pruning that cannot remove something says so, prints no summary, and ends with status 2.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};

mod backup;
mod checks;
mod error;
mod generation;
mod prune;
mod systemd;
mod upgrade;

pub use error::ServiceError;

/// How many generations stay after an upgrade.
pub const KEPT: usize = 3;

/// Where the service is.
#[derive(Clone, Debug, Args)]
pub struct Place {
    /// Directory for the programs.
    #[arg(long, value_name = "DIR", default_value = "/opt/agentmail")]
    pub prefix: PathBuf,
    /// The data folder.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/agentmail")]
    pub data: PathBuf,
    /// The file with the service's environment.
    #[arg(long, value_name = "FILE", default_value = "/etc/agentmail/gateway.env")]
    pub env_file: PathBuf,
    /// Directory for the unit.
    #[arg(long, value_name = "DIR", default_value = "/etc/systemd/system")]
    pub unit_dir: PathBuf,
    /// Name of the service.
    #[arg(long, value_name = "NAME", default_value = "agentmail-gateway")]
    pub name: String,
    /// Where the gateway listens.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:8180")]
    pub listen: std::net::SocketAddr,
}

impl Place {
    /// The directory of generations.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.prefix.join("gateway")
    }
}

/// What to do with the service.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Install the gateway as a service and start it.
    Install(Change),
    /// Replace the running gateway by this program; take it back if it is not well.
    Upgrade(Change),
    /// Remove old generations.
    Prune(Prune),
}

/// Options of a change.
#[derive(Clone, Debug, Args)]
pub struct Change {
    /// Where the service is.
    #[command(flatten)]
    pub place: Place,
    /// The program to install [default: this one].
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Show what would be done, and do nothing.
    #[arg(long)]
    pub dry_run: bool,
}

/// Options of `prune`.
#[derive(Clone, Debug, Args)]
pub struct Prune {
    /// Where the service is.
    #[command(flatten)]
    pub place: Place,
    /// How many generations stay, the current one included.
    #[arg(long, value_name = "N", default_value_t = KEPT)]
    pub keep: usize,
    /// Show what would be removed, and remove nothing.
    #[arg(long)]
    pub dry_run: bool,
}

/// Runs one of the commands and says on `out` what was done.
///
/// # Errors
///
/// [`ServiceError`] knows the exit status that belongs to it.
pub fn run(command: &Command, out: &mut dyn Write) -> Result<(), ServiceError> {
    match command {
        Command::Install(change) => upgrade::install(change, out),
        Command::Upgrade(change) => upgrade::upgrade(change, out),
        Command::Prune(prune) => prune::run(prune, out),
    }
}

fn say(out: &mut dyn Write, line: std::fmt::Arguments<'_>) -> Result<(), ServiceError> {
    writeln!(out, "{line}").map_err(ServiceError::io("standard output"))
}
