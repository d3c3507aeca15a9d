//! `zcode-mail-mcp`: the mail tools for any MCP client, on standard input and output.
//!
//! ```text
//!  stdin ─▶ streams ─▶ prelude, serve ─────▶ streams ─▶ stdout
//!                       │  ▲  (Session of the core)
//!                   Run │  │ Report
//!                       ▼  │
//!                      perform ─▶ client ─▶ gateway
//!                       │             ▲
//!                       └─▶ files     └── presence (register, heartbeat)
//! ```
//!
//! One thread runs everything but what can block: files and name look-ups go to the blocking pool,
//! and a terminal or file on the standard streams gets a thread of its own.
//!
//! What it promises:
//! * nothing happens at start but reading: no network, no lock, no file, no registration, because
//!   hosts start throw-away twins; the first tool call, or two seconds after
//!   `notifications/initialized`, begins with all that;
//! * the reader never waits for a tool; when the client does not read, the server stops reading;
//! * end of input, a closed output, SIGINT, SIGTERM, SIGHUP or a dead parent end it quickly with
//!   nothing half-written;
//! * standard output carries protocol messages only, and a full standard error never blocks it.

use std::io::Write as _;
use std::process::ExitCode;

use zcode_mail_core::config::Settings;

mod account;
mod client;
mod files;
mod log;
mod parent;
mod perform;
#[cfg(unix)]
mod prelude;
mod presence;
mod serve;
mod streams;
mod talk;
mod target;
mod transfer;
mod turn_log;

use client::Client;
use log::Log;
use perform::Context;
use streams::Streams;
use talk::Talk;
use zcode_mail_core::tool::Toolbox;

/// Runs the server until its input ends, and gives back the exit status.
#[must_use]
pub fn main() -> ExitCode {
    if std::env::args().skip(1).any(|arg| arg == "--version" || arg == "-V") {
        // The one line that is no protocol message; nobody speaks the protocol with it.
        let line = format!("zcode-mail-mcp {}\n", crate::VERSION);
        let written = std::io::stdout().write_all(line.as_bytes());
        return if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let read = |name: &str| std::env::var(name).ok();
    let log = Log::new(read("AGENTMAIL_LOG").as_deref());
    let settings = Settings::from_env(read);
    for warning in &settings.warnings {
        log.info(warning);
    }
    let toolbox = Toolbox {
        lang: settings.lang,
        session_id: settings.session_id.clone(),
        ..Toolbox::default()
    };
    let mut talk = Talk::new(toolbox);
    let streams = match begin(&mut talk) {
        Ok(Some(streams)) => streams,
        Ok(None) => return ExitCode::SUCCESS,
        Err(error) => {
            log.error(&format!("the standard streams cannot be used: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let turn_log = read("AGENTMAIL_TURN_LOG").filter(|path| !path.trim().is_empty());
    let code = async_io::block_on(async move {
        let executor = std::rc::Rc::new(smol::LocalExecutor::new());
        let client = Client::new(executor.clone(), &settings);
        let context = Context::new(executor.clone(), settings, client, log, turn_log);
        executor.run(serve::serve(streams, talk, context)).await
    });
    // A blocked read of a terminal must not keep the process; nothing is left to drop.
    std::process::exit(code)
}

/// Takes the standard streams and answers what needs no runtime; `None` when that was all.
#[cfg(unix)]
fn begin(talk: &mut Talk) -> std::io::Result<Option<Streams>> {
    let raw = streams::Raw::take()?;
    if raw.never_waits()
        && let prelude::Prelude::Over = prelude::play(&raw, talk)
    {
        return Ok(None);
    }
    raw.into_streams().map(Some)
}

#[cfg(not(unix))]
fn begin(_talk: &mut Talk) -> std::io::Result<Option<Streams>> {
    Streams::take().map(Some)
}
