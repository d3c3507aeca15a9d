//! The addresses of a letter: who they name, and which session they ask for.

use rusqlite::{Connection, OptionalExtension as _};
use zcode_mail_core::address::{Address, Session as Place, split_cc};

use super::super::accounts::{self, Kind};
use super::super::failure::{Failure, said};

/// Longest path in an address, in bytes: the longest that systems take (`PATH_MAX`).
const PATH_LIMIT: usize = 4096;
/// Readers of one mail.
const RECIPIENTS_LIMIT: usize = 50;

/// One reader of a mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Recipient {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// The path part, a registered workspace name already replaced by its path (`K-15`).
    pub(super) workspace: String,
    /// `to` or `cc`.
    pub(super) role: &'static str,
    pub(super) place: Place,
}

/// The readers of a letter, the one it is addressed to first. A name that occurs twice counts at
/// its first place.
///
/// # Errors
///
/// 400 for a text that is no address or too many of them, 404 for a name that nobody has.
pub(super) fn resolve(db: &Connection, to: &str, cc: &str) -> Result<Vec<Recipient>, Failure> {
    let mut recipients = vec![one(db, to, "to")?];
    for address in split_cc(cc) {
        let recipient = one(db, address, "cc")?;
        if recipients.iter().all(|known| known.name != recipient.name) {
            recipients.push(recipient);
        }
        if recipients.len() > RECIPIENTS_LIMIT {
            return Err(Failure::bad_request(said!(
                "收件人过多（上限 {RECIPIENTS_LIMIT} 个）",
                "too many recipients (at most {RECIPIENTS_LIMIT})"
            )));
        }
    }
    Ok(recipients)
}

/// Gives recipients without a path the one they have in the session, so that an agent that is
/// addressed by its bare name or by the alias alone still works where it worked before.
pub(super) fn fill_workspaces(
    db: &Connection,
    session: &str,
    recipients: &mut [Recipient],
) -> Result<(), Failure> {
    let mut statement = db.prepare_cached(
        "SELECT workspace FROM session_participants WHERE session_id = ?1 AND name = ?2",
    )?;
    for recipient in recipients.iter_mut().filter(|recipient| recipient.workspace.is_empty()) {
        let known = statement.query_row((session, &recipient.name), |row| row.get(0)).optional()?;
        recipient.workspace = known.unwrap_or_default();
    }
    Ok(())
}

fn one(db: &Connection, text: &str, role: &'static str) -> Result<Recipient, Failure> {
    let address: Address = text.parse().map_err(|error| {
        Failure::bad_request(said!(
            "地址 \"{text}\" 无法解析：{error}",
            "the address \"{text}\" cannot be read: {error}"
        ))
        .suggest(said!(
            "地址形如 name@path.session，例如 zcode@/home/me/project.new",
            "an address looks like name@path.session, for example zcode@/home/me/project.new"
        ))
    })?;
    if address.path().len() > PATH_LIMIT {
        return Err(Failure::bad_request(said!(
            "地址里的路径过长（上限 {PATH_LIMIT} 字节）",
            "the path in the address is too long (at most {PATH_LIMIT} bytes)"
        )));
    }
    let name = address.name();
    let Some(kind) = accounts::kind_of(db, name)? else {
        return Err(Failure::not_found(said!(
            "无法送达：没有名为 {name} 的用户或 Agent",
            "cannot deliver: no person or agent is called {name}"
        ))
        .suggest(said!(
            "先查可用的收件人（suggest_address），不要猜地址",
            "look up who can be written to (suggest_address) and do not guess"
        )));
    };
    Ok(Recipient {
        workspace: workspace(db, name, address.path())?,
        name: name.to_owned(),
        kind,
        role,
        place: address.session().clone(),
    })
}

fn workspace(db: &Connection, agent: &str, path: &str) -> Result<String, Failure> {
    let registered = db
        .query_row(
            "SELECT path FROM agent_workspaces WHERE agent_name = ?1 AND name = ?2",
            (agent, path),
            |row| row.get(0),
        )
        .optional()?;
    Ok(registered.unwrap_or_else(|| path.to_owned()))
}
