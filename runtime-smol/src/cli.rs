//! The command line of `zcode-mail`.
//!
//! Results go to stdout, one line each, so that scripts can read them; everything else goes to
//! stderr. Status 0: done. Status 1: refused or failed, the reason on stderr. Status 2: a command
//! line that cannot be read.

use std::fmt;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, Parser, Subcommand};

mod accounts;
mod audit;
mod grants;
mod serve;
mod settings;

use settings::Data;

use crate::{demo, doctor, install, plugin, service, support};

/// The operator's program of zcode-mail-bridge.
#[derive(Debug, Parser)]
#[command(name = "zcode-mail", version = crate::VERSION, about, disable_help_subcommand = true)]
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
    /// Show, explain and end the gateway's lasting approvals.
    #[command(subcommand)]
    Grants(grants::Grants),
    /// Check or write out the gateway's audit log.
    #[command(subcommand)]
    Audit(audit::Audit),
    /// Put the plugin into ZCode, upgrade it, or go back to the one before.
    Install(install::InstallArgs),
    /// Take the plugin out of ZCode and leave its configuration as it was.
    Uninstall(install::UninstallArgs),
    /// Check that everything will work, and say why not.
    Doctor(doctor::DoctorArgs),
    /// Write one file that helps somebody else to help, without secrets.
    Support(support::SupportArgs),
    /// Write the plugin to a directory.
    #[command(subcommand)]
    Plugin(plugin::Command),
    /// Play the approval loop on this machine: a gateway, a human, an agent, real hooks.
    Demo(Demo),
}

#[derive(Debug, Args)]
struct Demo {
    /// Decide through the human API; fail when an answer is not the expected one.
    #[arg(long)]
    auto: bool,
    /// Show the wire in place of the approval loop: register, heartbeat, stream, send, receive,
    /// reply, attach.
    #[arg(long, conflicts_with = "auto")]
    wire: bool,
}

/// Why a command fails.
#[derive(Debug)]
struct Failed(String);

impl<E: fmt::Display> From<E> for Failed {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// The definition of the command line, for completions and man pages.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// Reads the process's arguments and runs the command.
#[must_use]
pub fn main() -> ExitCode {
    let mut out = std::io::stdout();
    let result = match Cli::parse().command {
        Command::Gateway(serve::Args { service: Some(command), .. }) => {
            match service::run(&command, &mut out) {
                Ok(()) => Ok(()),
                Err(error) => {
                    let _ = writeln!(std::io::stderr(), "zcode-mail: {error}");
                    return ExitCode::from(error.status());
                }
            }
        }
        Command::Gateway(args) => serve::run(args),
        Command::User(command) => accounts::user(command),
        Command::AgentKey(command) => accounts::agent_key(command),
        Command::Grants(command) => grants::run(command),
        Command::Audit(command) => audit::run(command),
        Command::Install(args) => install::install(&args, &mut out).map_err(Failed::from),
        Command::Uninstall(args) => install::uninstall(&args, &mut out).map_err(Failed::from),
        Command::Doctor(args) => match doctor::run(&args, &mut out) {
            Ok(true) => Ok(()),
            Ok(false) => return ExitCode::FAILURE,
            Err(reason) => Err(Failed(reason)),
        },
        Command::Support(args) => support::run(&args, &mut out).map_err(Failed),
        Command::Plugin(command) => plugin::run(&command, &mut out).map_err(Failed::from),
        Command::Demo(args) => play(&args),
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

fn play(args: &Demo) -> Result<(), Failed> {
    let out = &mut std::io::stdout().lock();
    let as_expected = if args.wire {
        demo::wire::run(out)?
    } else {
        demo::run(demo::Options { auto: args.auto }, out)?
    };
    if as_expected { Ok(()) } else { Err(Failed("not every answer was the expected one".into())) }
}

/// Writes one line of result.
fn say(line: impl fmt::Display) -> Result<(), Failed> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(Failed::from)
}
