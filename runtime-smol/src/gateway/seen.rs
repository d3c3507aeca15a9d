//! What a person was shown before they decide: pages, masks, the original, and the proof of it.
//!
//! - A question's text is cut into pages ([`zcode_mail_core::render::pages`]). Only the last page
//!   comes with a token, and a decision about a question of several pages is refused (428) without
//!   it, whichever way it comes: nobody decides about the end of a text that they did not open
//!   (faults row 13).
//! - Mail, lists and pages show the text with its secrets masked (faults row 15). The original is
//!   given to the deciding person's browser only, on request, which is recorded, and is erased a day
//!   after the end.

use rusqlite::{Connection, OptionalExtension as _};
use zcode_mail_core::audit::Event;
use zcode_mail_core::lang::Lang;
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
