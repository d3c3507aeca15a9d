//! What a person was shown before they decide: pages, masks, the original, and the proof of it.
//!
//! - A question's text is cut into pages ([`zcode_mail_core::render::pages`]). Only the last page
//!   comes with a token, and a decision about a question of several pages is refused (428) without
//!   it, whichever way it comes: nobody decides about the end of a text that they did not open
//!   (faults row 13).
//! - Mail, lists and pages show the text with its secrets masked (faults row 15). The original is
//!   given to the deciding person's browser only, on request, which is recorded, and is erased a day
//!   after the end.
//! - A row that was changed after the question was asked cannot be decided: the audit record of the
//!   question holds a seal over it.

use rusqlite::{Connection, OptionalExtension as _};
use zcode_mail_core::audit::Event;
use zcode_mail_core::digest::{hex, sha256};
use zcode_mail_core::lang::Lang;
use zcode_mail_core::mask::mask;
use zcode_mail_core::render::{Document, Row, pages};

use super::audit::{self, Entry};
use super::failure::{Failure, said};
use super::permission::{self, Request};
use super::secret;
use super::store::Tx;

/// Rows of a page: several screens of a phone, one long look on a desk.
pub(super) const ROWS: usize = 120;
/// Characters of a row before it is wrapped.
const COLUMNS: usize = 200;
/// How long after its end the original of a question is kept, milliseconds: a day to look into
/// what was decided.
const KEPT: i64 = 24 * 3600 * 1000;

/// The pages of a question's text, never none.
pub(super) fn pages_of(text: &str, lang: Lang) -> Vec<Vec<Row>> {
    pages(&Document::parse(text, lang), ROWS, COLUMNS)
}

/// Whether deciding needs the token of the last page. In either language, because the lines that
/// the page adds are of different length.
fn is_long(text: &str) -> bool {
    [Lang::Zh, Lang::En].into_iter().any(|lang| pages_of(text, lang).len() > 1)
}

/// The token that `viewer` has for the request, if the last page was shown before.
pub(super) fn token(
    db: &Connection,
    viewer: &str,
    request_id: &str,
) -> Result<Option<String>, Failure> {
    Ok(db
        .query_row(
            "SELECT token FROM permission_views WHERE request_id = ?1 AND viewer = ?2",
            (request_id, viewer),
            |row| row.get(0),
        )
        .optional()?)
}

/// Records that `viewer` was shown the last page, once; their token.
///
/// # Errors
///
/// 404 for a request that is not addressed to them.
pub(super) fn shown(
    tx: &mut Tx<'_>,
    viewer: &str,
    request_id: &str,
    how: &str,
) -> Result<String, Failure> {
    let request = permission::addressed_to(tx, viewer, request_id)?;
    if let Some(token) = token(tx, viewer, request_id)? {
        return Ok(token);
    }
    let token = secret::token("")?;
    tx.execute(
        "INSERT INTO permission_views (request_id, viewer, token) VALUES (?1, ?2, ?3)",
        (request_id, viewer, &token),
    )?;
    record(tx, Event::View, viewer, how, &request)?;
    Ok(token)
}

/// Refuses a decision about a question whose last page the decider was not shown.
///
/// # Errors
///
/// 428, with what to do.
pub(super) fn check(
    db: &Connection,
    viewer: &str,
    request: &Request,
    given: Option<&str>,
) -> Result<(), Failure> {
    if !is_long(&request.context) {
        return Ok(());
    }
    let issued = token(db, viewer, &request.id)?;
    if issued.as_deref().zip(given).is_some_and(|(issued, given)| secret::same(issued, given)) {
        return Ok(());
    }
    Err(Failure::new(
        http::StatusCode::PRECONDITION_REQUIRED,
        said!(
            "内容有多页，须看到最后一页才能决定",
            "the request has several pages; it can be decided after the last one was shown"
        ),
    )
    .suggest(said!(
        "先取最后一页（GET /api/v1/me/permissions/ID?page=N），把其中的 view_token 一起提交",
        "get the last page (GET /api/v1/me/permissions/ID?page=N) and send its view_token along"
    )))
}

/// What the audit record of a question says about its row: a digest over everything that a person
/// is shown and that decides where the answer goes.
pub(super) fn seal(
    relay_key: Option<&str>,
    session_id: Option<&str>,
    question: &str,
    text: &str,
) -> String {
    // JSON keeps the parts apart.
    let all = serde_json::json!([relay_key, session_id, question, text]).to_string();
    format!("sha256:{}", hex(&sha256(all.as_bytes())))
}

/// Refuses a decision about a row that is not as it was when the question was asked: what a person
/// reads there is not what would run.
///
/// # Errors
///
/// 409.
pub(super) fn intact(db: &Connection, request: &Request) -> Result<(), Failure> {
    let recorded: Option<String> = db
        .query_row(
            "SELECT detail FROM audit WHERE subject = ?1 AND event = 'ask'",
            [&request.id],
            |row| row.get(0),
        )
        .optional()?;
    let now = seal(
        request.relay_key.as_deref(),
        request.session_id.as_deref(),
        &request.question,
        request.original.as_ref().unwrap_or(&request.context),
    );
    // What is masked is derived from the original, and both are in the row.
    let masked = request.original.as_ref().is_none_or(|text| mask(text) == request.context);
    // Questions from before there was a log have no record.
    if masked && recorded.is_none_or(|recorded| recorded == now) {
        return Ok(());
    }
    Err(Failure::conflict(said!(
        "请求的内容在提出之后被改动过，不能决定",
        "the stored request was changed after it was asked and cannot be decided"
    ))
    .suggest(said!(
        "让 Agent 重新发起；用 zcode-mail audit verify 检查数据库",
        "let the agent ask again; check the database with zcode-mail audit verify"
    )))
}

/// The text as it was asked, for the person who decides; recorded.
///
/// # Errors
///
/// 404 for a request that is not addressed to them.
pub(super) fn reveal(
    tx: &mut Tx<'_>,
    viewer: &str,
    request_id: &str,
    how: &str,
) -> Result<String, Failure> {
    let request = permission::addressed_to(tx, viewer, request_id)?;
    record(tx, Event::Reveal, viewer, how, &request)?;
    Ok(request.original.unwrap_or(request.context))
}

/// Erases the originals of questions that ended a day ago.
pub(super) fn erase(tx: &Tx<'_>) -> Result<(), Failure> {
    tx.execute(
        "UPDATE permission_requests SET original = NULL
         WHERE original IS NOT NULL AND ended_at <= ?1",
        [tx.now() - KEPT],
    )?;
    Ok(())
}

fn record(
    tx: &Tx<'_>,
    event: Event,
    who: &str,
    how: &str,
    request: &Request,
) -> Result<(), Failure> {
    let digest = audit::digest_in(&request.context);
    audit::append(tx, &Entry { event, who, how, subject: &request.id, digest, detail: "" })
}
