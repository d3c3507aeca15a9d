//! The command line of `zcode-mail`.
//!
//! Results go to stdout, one line each, so that scripts can read them; everything else goes to
//! stderr. Status 0: done. Status 1: refused or failed, the reason on stderr. Status 2: a command
//! line that cannot be read.

use std::fmt;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod accounts;
mod serve;
mod settings;

use settings::Data;

/// The operator's program of zcode-mail-bridge.
#[derive(Debug, Parser)]
#[command(name = "zcode-mail", version, about, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the mail gateway with the page on which people decide.
    Gateway(serve::Args),
    /// Make people, their login links and their keys.
    #[command(subcommand)]
    User(accounts::User),
    /// Make, register, list and revoke the keys of agents.
    #[command(subcommand)]
    AgentKey(accounts::AgentKey),
}

/// Why a command fails.
#[derive(Debug)]
struct Failed(String);

impl<E: fmt::Display> From<E> for Failed {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// Reads the process's arguments and runs the command.
#[must_use]
pub fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Gateway(args) => serve::run(args),
        Command::User(command) => accounts::user(command),
        Command::AgentKey(command) => accounts::agent_key(command),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed(reason)) => {
            // A closed stderr leaves only the status.
            let _ = writeln!(std::io::stderr(), "zcode-mail: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// Writes one line of result.
fn say(line: impl fmt::Display) -> Result<(), Failed> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(Failed::from)
}
