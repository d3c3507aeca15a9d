//! `zcode-mail demo`: the whole approval loop on one machine, told in plain sentences.
//!
//! Everything on the path is real: a gateway process with its own SQLite file, a human and agents
//! created by the operator commands, and one `zcode-mail-hook` process per scenario that gets an
//! event as ZCode sends it. The scenarios are those of seed 000's end-to-end check. A human decides
//! in the page; with `--auto` the demo decides through the same API that the page uses, picking its
//! request by snapshot difference, session and agent, because six old requests of other agents wait
//! in the same list.

mod people;
mod scenario;
pub mod wire;

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;

use people::Stage;
use scenario::{Decider, SCENARIOS, Scenario};

/// How to run the demo.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Decide through the human API instead of waiting for clicks.
    pub auto: bool,
}

/// Why the demo could not be run to its end.
#[derive(Debug)]
pub enum DemoError {
    /// A program of the bridge is not beside this one.
    Missing(PathBuf),
    /// A file, process or pipe failed.
    Io(&'static str, io::Error),
    /// An operator command or a request to the gateway was refused.
    Refused(String),
}

impl fmt::Display for DemoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => write!(
                f,
                "{} is missing; build all programs with `cargo build --release`",
                path.display()
            ),
            Self::Io(what, error) => write!(f, "{what}: {error}"),
            Self::Refused(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for DemoError {}

/// Runs every scenario and writes the story to `out`. `Ok(true)` means that every answer was the
/// expected one.
///
/// # Errors
///
/// Fails when the stage cannot be set up; an unexpected answer of a hook is no error but `Ok(false)`.
pub fn run(options: Options, out: &mut dyn Write) -> Result<bool, DemoError> {
    let stage = Stage::set_up()?;
    let say = |out: &mut dyn Write, text: &str| {
        writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|e| DemoError::Io("writing", e))
    };
    say(
        out,
        &format!("A gateway runs on {} with its data in {}.", stage.url, stage.data.display()),
    )?;
    say(
        out,
        "It has a human (you), the agent \"zcode\", and six old requests of other agents that \
         nobody ever answered.",
    )?;
    if options.auto {
        say(out, "Deciding by itself through the human API (--auto).")?;
    } else {
        let link = stage.login_link()?;
        say(out, &format!("\nOpen this link, it logs you in once:\n\n    {link}\n"))?;
    }
    let mut failed = Vec::new();
    for (number, scenario) in SCENARIOS.iter().enumerate() {
        say(out, &format!("\n{}. {}", number + 1, scenario.title))?;
        if !options.auto
            && let Some(hint) = scenario.hint
        {
            say(out, &format!("   {hint}"))?;
        }
        let decider = if options.auto { Decider::Api } else { Decider::Human };
        let ran = scenario.run(&stage, decider)?;
        for line in ran.story() {
            say(out, &format!("   {line}"))?;
        }
        if let Some(problem) = ran.problem(scenario, decider) {
            say(out, &format!("   UNEXPECTED: {problem}"))?;
            failed.push(scenario.title);
        }
    }
    if failed.is_empty() {
        say(out, &format!("\nAll {} answers were the expected ones.", SCENARIOS.len()))?;
    } else {
        say(out, &format!("\n{} of {} answers were unexpected.", failed.len(), SCENARIOS.len()))?;
    }
    Ok(failed.is_empty())
}

/// The scenarios' titles in order, for `--help` and tests.
#[must_use]
pub fn titles() -> Vec<&'static str> {
    SCENARIOS.iter().map(|Scenario { title, .. }| *title).collect()
}
