//! `zcode-mail doctor`: whether everything will work, and if not, why.
//!
//! It looks at what is really installed and really set, starts the exact hook command that ZCode
//! would start, and asks the gateway over the same streams. Run it with the environment of ZCode
//! (for a service: with its `EnvironmentFile`, see `--env-file`).
//!
//! ```text
//! facts (files, environment) -> checks -> findings -> --fix -> checks again
//!                                  |
//!                                  +-> the hook, `zcode plugins list`, the gateway
//! ```
//!
//! A finding has a stable code, a sentence in two languages, and where it is safe a fix. Status 0:
//! no finding. Status 1: at least one.

use std::collections::BTreeMap;
use std::env;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use zcode_mail_core::lang::Lang;

use crate::install::Where;

mod facts;
pub mod finding;
mod fixes;
mod gateway;
mod hook;
mod installed;
mod settings;
mod started;
mod state;

use facts::Facts;
pub use finding::{CODES, Finding, Fix, Level};
pub use started::Started;

/// `zcode-mail doctor`
#[derive(Clone, Debug, Default, Args)]
pub struct DoctorArgs {
    /// Where everything is.
    #[command(flatten)]
    pub place: Where,
    /// Repair what can be repaired without harm.
    #[arg(long)]
    pub fix: bool,
    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,
    /// Do not send a mail to oneself to see whether the event stream delivers.
    #[arg(long)]
    pub no_probe: bool,
    /// Read settings from this EnvironmentFile in place of the environment.
    #[arg(long, value_name = "FILE")]
    pub env_file: Option<PathBuf>,
}

/// What the checks found and saw.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// What was started, and what it printed.
    pub started: Vec<Started>,
    /// Where settings came from, one line each; secrets are named and not shown.
    pub settings: Vec<String>,
}

/// Runs all checks and prints the report. `Ok(true)` means that nothing is wrong.
///
/// # Errors
///
/// Fails when the places cannot be told or the report cannot be written.
pub fn run(args: &DoctorArgs, out: &mut dyn Write) -> Result<bool, String> {
    let env = environment(args)?;
    let lang = env.get("AGENTMAIL_LANG").map_or(Lang::En, |tag| Lang::from_tag(tag));
    let mut report = examine(args, &env)?;
    let mut done = Vec::new();
    if args.fix && report.findings.iter().any(|finding| finding.fix.is_some()) {
        done = fixes::apply(&report.findings, &args.place);
        report = examine(args, &env)?;
    }
    let written = if args.json {
        writeln!(out, "{:#}", report.json(&done))
    } else {
        report.print(lang, &done, out)
    };
    written.map_err(|error| format!("standard output: {error}"))?;
    Ok(report.findings.is_empty())
}

/// Runs all checks.
///
/// # Errors
///
/// Fails when the places cannot be told.
pub fn examine(args: &DoctorArgs, env: &BTreeMap<String, String>) -> Result<Report, String> {
    let facts = Facts::gather(&args.place, env, !args.no_probe)?;
    let mut report = Report { settings: facts.sources(), ..Report::default() };
    installed::check(&facts, &mut report);
    hook::check(&facts, &mut report);
    settings::check(&facts, &mut report);
    state::check(&facts, &mut report);
    gateway::check(&facts, &mut report);
    Ok(report)
}

impl Report {
    fn add(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    fn json(&self, done: &[String]) -> serde_json::Value {
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "checks": CODES.len(),
            "findings": self.findings.iter().map(Finding::json).collect::<Vec<_>>(),
            "fixed": done,
            "settings": self.settings,
            "started": self.started.iter().map(Started::json).collect::<Vec<_>>(),
        })
    }

    fn print(&self, lang: Lang, done: &[String], out: &mut dyn Write) -> io::Result<()> {
        for line in &self.settings {
            writeln!(out, "  {line}")?;
        }
        for started in &self.started {
            started.print(out)?;
        }
        for line in done {
            writeln!(out, "{} {line}", lang.pick("已修复：", "fixed:"))?;
        }
        for finding in &self.findings {
            let level = match finding.level {
                Level::Error => lang.pick("错误", "error"),
                Level::Warning => lang.pick("注意", "warning"),
            };
            let fix = if finding.fix.is_some() {
                lang.pick("（--fix 可修复）", " (--fix repairs it)")
            } else {
                ""
            };
            writeln!(out, "{} {level}: {}{fix}", finding.code, finding.text(lang))?;
        }
        let (checks, found) = (CODES.len(), self.findings.len());
        match (lang, found) {
            (Lang::Zh, 0) => writeln!(out, "检查了 {checks} 项，一切正常"),
            (Lang::Zh, _) => writeln!(out, "检查了 {checks} 项，发现 {found} 个问题"),
            (Lang::En, 0) => writeln!(out, "{checks} checks, nothing is wrong"),
            (Lang::En, 1) => writeln!(out, "{checks} checks, 1 finding"),
            (Lang::En, _) => writeln!(out, "{checks} checks, {found} findings"),
        }
    }
}

/// The environment, or what an `EnvironmentFile` of systemd says, with `HOME` from neither when the
/// file does not set it: a service has none unless its unit says so.
fn environment(args: &DoctorArgs) -> Result<BTreeMap<String, String>, String> {
    let own =
        || env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
    let Some(path) = &args.env_file else { return Ok(own().collect()) };
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut all: BTreeMap<String, String> = own().filter(|(name, _)| name == "PATH").collect();
    for line in text.lines().map(str::trim) {
        let Some((name, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) else {
            continue;
        };
        let value = value.trim();
        let bare = ['"', '\''].iter().find_map(|quote| {
            value.strip_prefix(*quote).and_then(|rest| rest.strip_suffix(*quote))
        });
        all.insert(name.trim().to_owned(), bare.unwrap_or(value).to_owned());
    }
    Ok(all)
}
