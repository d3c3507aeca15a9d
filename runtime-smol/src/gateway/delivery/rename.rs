//! Proposals to rename a session, carried by an HTML comment in a mail's text (`T-13`, wire 3.17).
//!
//! The marker is taken out of the text; the alias is only proposed, because it is how people
//! address the session. A name that a person rejected for this session is not offered again.

use zcode_mail_core::alias;

use super::super::failure::Failure;
use super::super::store::Tx;

const OPEN: &str = "<!--";
const NAME: &str = "agentmail:rename-session";
const CLOSE: &str = "-->";
/// Longest reason that is kept, in characters.
const REASON_LIMIT: usize = 200;

/// A proposal found in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Proposal {
    /// The alias as normalised.
    pub(super) alias: String,
    pub(super) reason: String,
}

/// The text without its markers, and the first proposal among them that names a usable alias.
pub(super) fn extract(body: &str) -> (String, Option<Proposal>) {
    let mut text = String::with_capacity(body.len());
    let mut proposal = None;
    let mut rest = body;
    while let Some(at) = rest.find(OPEN) {
        let (before, comment) = rest.split_at(at);
        match marker(comment) {
            Some((length, found)) => {
                text.push_str(before.trim_end_matches([' ', '\t', '\r', '\n']));
                proposal = proposal.or(found);
                rest = &comment[length..];
            }
            None => {
                text.push_str(before);
                text.push_str(OPEN);
                rest = &comment[OPEN.len()..];
            }
        }
    }
    text.push_str(rest);
    (text, proposal)
}

/// Keeps a proposal with its mail and returns the alias; `None` when it says nothing new: the
/// session has that alias, or a person rejected it.
pub(super) fn propose(
    tx: &mut Tx<'_>,
    session: &str,
    mail_id: &str,
    proposal: Proposal,
) -> Result<Option<String>, Failure> {
    let known: bool = tx.query_row(
        "SELECT EXISTS (SELECT 1 FROM sessions WHERE id = ?1 AND alias = ?2)
             OR EXISTS (SELECT 1 FROM mails WHERE session_id = ?1 AND rename_alias = ?2
                        AND rename_state = 'rejected')",
        (session, &proposal.alias),
        |row| row.get(0),
    )?;
    if known {
        return Ok(None);
    }
    tx.execute(
        "UPDATE mails SET rename_alias = ?2, rename_reason = ?3, rename_state = 'proposed'
         WHERE id = ?1",
        (mail_id, &proposal.alias, &proposal.reason),
    )?;
    Ok(Some(proposal.alias))
}

/// The marker at the start of `text`: its length, and its proposal if the alias is usable. The
/// lenient reading of wire 3.17: blanks may be missing at the ends, the reason may be absent or
/// empty; single quotes, an empty alias, another order or a line break inside are no marker.
fn marker(text: &str) -> Option<(usize, Option<Proposal>)> {
    let blank = |c: char| c.is_whitespace();
    let after = text.strip_prefix(OPEN)?.trim_start_matches(blank).strip_prefix(NAME)?;
    let attributes = after.trim_start_matches(blank);
    if attributes.len() == after.len() {
        return None;
    }
    let (alias, after) = quoted(attributes.strip_prefix("alias=")?)?;
    if alias.is_empty() {
        return None;
    }
    let trimmed = after.trim_start_matches(blank);
    let (reason, after) = match trimmed.strip_prefix("reason=") {
        Some(_) if trimmed.len() == after.len() => return None,
        Some(value) => quoted(value)?,
        None => ("", after),
    };
    let after = after.trim_start_matches(blank).strip_prefix(CLOSE)?;
    let proposal = alias::normalize(alias)
        .map(|alias| Proposal { alias, reason: reason.chars().take(REASON_LIMIT).collect() });
    Some((text.len() - after.len(), proposal))
}

fn quoted(text: &str) -> Option<(&str, &str)> {
    let (value, after) = text.strip_prefix('"')?.split_once('"')?;
    (!value.contains(['\r', '\n'])).then_some((value, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proposed(text: &str) -> Option<(String, String)> {
        extract(text).1.map(|proposal| (proposal.alias, proposal.reason))
    }

    #[test]
    fn the_table_of_the_wire_is_kept() {
        let some = |alias: &str, reason: &str| Some((alias.to_owned(), reason.to_owned()));
        for (text, expected) in [
            (
                r#"<!-- agentmail:rename-session alias="fix-leak" reason="已定位根因" -->"#,
                some("fix-leak", "已定位根因"),
            ),
            (r#"<!-- agentmail:rename-session alias="x" -->"#, some("x", "")),
            (r#"<!-- agentmail:rename-session alias="x" reason="" -->"#, some("x", "")),
            (r#"<!-- agentmail:rename-session alias='x' reason='y' -->"#, None),
            (r#"<!-- agentmail:rename-session alias="x" reason -->"#, None),
            (r#"<!-- agentmail:rename-session alias="x"reason="y" -->"#, None),
            (r#"<!--agentmail:rename-session alias="x" reason="y"-->"#, some("x", "y")),
            (r#"<!-- agentmail:rename-session alias="" reason="y" -->"#, None),
            (r#"<!-- agentmail:rename-sessionalias="x" reason="y" -->"#, None),
            (r#"<!-- agentmail:rename-session reason="y" alias="x" -->"#, None),
        ] {
            assert_eq!(proposed(text), expected, "{text}");
        }
    }

    #[test]
    fn markers_leave_the_text_and_other_comments_stay() {
        let marker = r#"<!-- agentmail:rename-session alias="new" reason="r" -->"#;
        let text = format!("正文 <!-- a --> 末尾\n\n{marker}\n{marker}");
        let (body, proposal) = extract(&text);
        assert_eq!(body, "正文 <!-- a --> 末尾");
        assert_eq!(proposal.unwrap().alias, "session-new");
        for untouched in ["", "<!--", "<!-- agentmail:rename-session", "a --> b"] {
            assert_eq!(extract(untouched), (untouched.to_owned(), None));
        }
    }

    #[test]
    fn an_alias_that_normalises_to_nothing_proposes_nothing_and_is_still_taken_out() {
        let (body, proposal) = extract(r#"x <!-- agentmail:rename-session alias="..." -->"#);
        assert_eq!((body.as_str(), proposal), ("x", None));
    }
}
