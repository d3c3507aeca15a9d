//! `zcode-mail audit`: the log of the gateway, checked and written out without it.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use rusqlite::Connection;

use super::settings::Data;
use super::{Failed, say};
use crate::gateway::audit;

/// What to do with the audit log.
#[derive(Debug, Subcommand)]
pub(super) enum Audit {
    /// Check that no record was changed, dropped, swapped, cut off or added. Works on a copy of the
    /// database, or on an export with --export.
    Verify {
        /// A file written by `audit export` to check in place of a database.
        #[arg(long, value_name = "FILE")]
        export: Option<PathBuf>,
        #[command(flatten)]
        source: Source,
    },
    /// Write the log to stdout, one JSON object a line, the head last.
    Export {
        #[command(flatten)]
        source: Source,
    },
}

/// Which database.
#[derive(Debug, Args)]
pub(super) struct Source {
    /// A database file, such as a copy; without it the one of the data folder.
    #[arg(long, value_name = "FILE")]
    database: Option<PathBuf>,
    #[command(flatten)]
    data: Data,
}

impl Source {
    fn open(&self) -> Result<Connection, Failed> {
        let path = match &self.database {
            Some(path) => path.clone(),
            None => self.data.database()?,
        };
        audit::open(&path).map_err(|error| Failed(format!("{}: {error}", path.display())))
    }
}

/// Runs `zcode-mail audit …`.
pub(super) fn run(command: Audit) -> Result<(), Failed> {
    match command {
        Audit::Verify { export: Some(file), .. } => {
            let text = std::fs::read_to_string(&file)
                .map_err(|error| Failed(format!("{}: {error}", file.display())))?;
            judged(zcode_mail_core::audit::verify_export(&text))
        }
        Audit::Verify { export: None, source } => judged(audit::verify(&source.open()?)?),
        Audit::Export { source } => audit::export(&source.open()?, |line| say(line)),
    }
}

fn judged(found: Result<u64, zcode_mail_core::audit::Broken>) -> Result<(), Failed> {
    match found {
        Ok(records) => say(format_args!("{records} records, the chain holds")),
        Err(broken) => Err(Failed(format!("the audit log is broken: {broken}"))),
    }
}
