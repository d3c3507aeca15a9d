//! `zcode-mail grants`: lasting approvals, what they allow and have allowed, and their end.

use clap::Subcommand;

use super::settings::{Data, refused};
use super::{Failed, say};
use crate::gateway::grant::{self, Grant};
use crate::gateway::stamp;

/// What to do with lasting approvals.
#[derive(Debug, Subcommand)]
pub(super) enum Grants {
    /// Show all, those in force first: id, state, giver, agent, session, tool, what is reached.
    List {
        #[command(flatten)]
        data: Data,
    },
    /// Show one: what was on the screen when it was given, and every request that it decided.
    Explain {
        /// Its id.
        id: String,
        #[command(flatten)]
        data: Data,
    },
    /// End one at once.
    Revoke {
        /// Its id.
        id: String,
        #[command(flatten)]
        data: Data,
    },
}

/// Runs `zcode-mail grants …`.
pub(super) fn run(command: Grants) -> Result<(), Failed> {
    match command {
        Grants::List { data } => {
            let store = data.open()?;
            let found = smol::block_on(store.read(grant::list)).map_err(|f| refused(&f))?;
            for grant in found {
                say(line(&grant))?;
            }
            Ok(())
        }
        Grants::Explain { id, data } => {
            let store = data.open()?;
            let found = smol::block_on(store.read(move |db| grant::explain(db, &id)));
            let (grant, shown, decided) = found.map_err(|f| refused(&f))?;
            say(line(&grant))?;
            say(format_args!(
                "given by {} at {} for this:\n{}",
                grant.giver,
                stamp::rfc3339(grant.created_at),
                zcode_mail_core::mask::mask(&shown)
            ))?;
            say(format_args!("it decided {} requests", decided.len()))?;
            for request in decided {
                say(request)?;
            }
            Ok(())
        }
        Grants::Revoke { id, data } => {
            let store = data.open()?;
            let done = smol::block_on(store.write(move |tx| grant::revoke(tx, &id)));
            store.close();
            done.map_err(|f| refused(&f))
        }
    }
}

fn line(grant: &Grant) -> String {
    let now = stamp::now();
    let state = match (grant.ended_at, grant.until) {
        (Some(at), _) => format!("ended {} ({})", stamp::rfc3339(at), grant.ended_why),
        (None, Some(until)) if until <= now => format!("ended {} (time)", stamp::rfc3339(until)),
        (None, Some(until)) => format!("until {}", stamp::rfc3339(until)),
        (None, None) => "in force".to_owned(),
    };
    let uses = grant.uses_left.map_or_else(String::new, |left| format!(", {left} uses left"));
    let reach = grant.prefix.as_ref().map_or_else(|| "*".to_owned(), |words| words.join(" "));
    format!(
        "{}\t{state}{uses}\t{}\t{}\t{}\t{}\t{} {}\tused {}",
        grant.id,
        grant.giver,
        grant.agent,
        grant.session,
        if grant.denies { "denies" } else { "allows" },
        zcode_mail_core::render::visible(&grant.tool),
        zcode_mail_core::render::visible(&reach),
        grant.used
    )
}
