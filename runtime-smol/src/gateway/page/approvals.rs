//! What waits, one request in full, deciding it, and what ended.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse as _, Redirect, Response};
use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use serde::Deserialize;
use zcode_mail_core::decision::{ALWAYS, Decision};
use zcode_mail_core::lifecycle::{State as Stage, Verdict};
use zcode_mail_core::render::{Kind, Row as TextRow, visible};

use super::super::auth::Proof;
use super::super::body::FormBody;
use super::super::failure::{Failure, said};
use super::super::grant::{self, Wish};
use super::super::permission::{self, Filter, NOTE_LIMIT, Request, Taken};
use super::super::{Gateway, audit, log, seen, stamp};
use super::text::{Text, ago, option_label};
use super::{Frame, PageCaller, render};

/// Ended requests on one page; what waits is always shown complete.
const HISTORY_LIMIT: u32 = 200;

#[derive(Template)]
#[template(path = "approvals.html")]
struct WaitingPage<'p> {
    frame: &'p Frame,
    rows: &'p [Row],
}

#[derive(Template)]
#[template(path = "list.html")]
struct ListPart<'p> {
    frame: &'p Frame,
    rows: &'p [Row],
}

#[derive(Template)]
#[template(path = "history.html")]
struct HistoryPage<'p> {
    frame: &'p Frame,
    rows: &'p [Row],
}

#[derive(Template)]
#[template(path = "request.html")]
struct RequestPage<'p> {
    frame: &'p Frame,
    row: &'p Row,
    problem: Option<&'p str>,
    note: &'p str,
    note_limit: usize,
    /// The rows of this page of the text.
    lines: &'p [TextRow],
    number: usize,
    pages: usize,
    may_reveal: bool,
    /// Whether a decision can be taken from here: on the last page.
    decides: bool,
    view_token: &'p str,
    /// The short code of the digest.
    code: Option<&'p str>,
    /// Whether an approval with an end is offered.
    may_last: bool,
    /// The beginnings of the command, by words.
    beginnings: &'p [String],
}

/// A request as the templates show it.
struct Row {
    request: Request,
    age: String,
    asked_at: String,
    options: Vec<Choice>,
    offers_always: bool,
    end: Option<End>,
}

/// One decision button.
struct Choice {
    value: String,
    label: String,
    /// The style: `once`, `always` or `refuse`.
    class: &'static str,
}

/// How a request ended.
struct End {
    at: String,
    /// What a list shows.
    short: String,
    class: &'static str,
    /// A sentence for an end without a decision.
    sentence: Option<Text>,
    by: String,
    note: String,
}

impl Row {
    fn new(request: Request, frame: &Frame) -> Self {
        let options = request
            .options
            .iter()
            .map(|option| Choice {
                value: option.clone(),
                label: option_label(option, frame.lang).to_owned(),
                class: class(option),
            })
            .collect();
        Self {
            age: ago(stamp::now() - request.created_at, frame.lang),
            asked_at: stamp::rfc3339(request.created_at),
            options,
            offers_always: request.options.iter().any(|option| option == ALWAYS),
            end: end(&request.state, frame),
            request,
        }
    }
}

fn class(option: &str) -> &'static str {
    match Decision::from_text(option) {
        Decision::Once => "once",
        Decision::Always => "always",
        Decision::Reject => "refuse",
    }
}

fn end(state: &Stage, frame: &Frame) -> Option<End> {
    let at = stamp::rfc3339(state.end()?.at.0);
    let without = |at, short: Text, sentence| End {
        at,
        short: frame.say(short).to_owned(),
        class: "void",
        sentence: Some(sentence),
        by: String::new(),
        note: String::new(),
    };
    match state {
        Stage::Pending => None,
        Stage::Decided(Verdict { decision, note, by, .. }) => Some(End {
            at,
            short: option_label(decision, frame.lang).to_owned(),
            class: class(decision),
            sentence: None,
            by: by.clone(),
            note: note.clone(),
        }),
        Stage::Withdrawn { .. } => Some(without(at, Text::WithdrawnShort, Text::Withdrawn)),
        Stage::Expired { .. } => Some(without(at, Text::ExpiredShort, Text::Expired)),
    }
}

/// `GET /approvals`.
pub(super) async fn waiting(
    State(gateway): State<Arc<Gateway>>,
    caller: PageCaller,
) -> Result<Response, Failure> {
    let frame = caller.frame("/approvals");
    let rows = rows(&gateway, caller, &frame, false).await?;
    Ok(render(StatusCode::OK, &WaitingPage { frame: &frame, rows: &rows }))
}

/// `GET /approvals/list`: what [`waiting`] shows between its frame, for the script.
pub(super) async fn list(
    State(gateway): State<Arc<Gateway>>,
    caller: PageCaller,
) -> Result<Response, Failure> {
    let frame = caller.frame("/approvals");
    let rows = rows(&gateway, caller, &frame, false).await?;
    let mut response = render(StatusCode::OK, &ListPart { frame: &frame, rows: &rows });
    let count = HeaderValue::from(rows.len());
    response.headers_mut().insert(HeaderName::from_static("x-waiting"), count);
    Ok(response)
}

/// `GET /approvals/history`.
pub(super) async fn history(
    State(gateway): State<Arc<Gateway>>,
    caller: PageCaller,
) -> Result<Response, Failure> {
    let frame = caller.frame("/approvals/history");
    let rows = rows(&gateway, caller, &frame, true).await?;
    Ok(render(StatusCode::OK, &HistoryPage { frame: &frame, rows: &rows }))
}

/// `GET /approvals/{id}`.
pub(super) async fn one(
    State(gateway): State<Arc<Gateway>>,
    caller: PageCaller,
    Path(id): Path<String>,
    query: Result<Query<PageQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, Failure> {
    let Query(query) = query.unwrap_or_default();
    let show = Show { page: query.page, ..Show::of(id) };
    show.page(&gateway, &caller).await
}

#[derive(Deserialize)]
pub(super) struct GrantForm {
    #[serde(default)]
    minutes: String,
    #[serde(default)]
    uses: String,
    /// How many words of the command; zero for every call of the tool.
    #[serde(default)]
    words: usize,
    #[serde(default)]
    view_token: String,
}

/// `POST /approvals/{id}/grant`: an approval that lasts until its end.
pub(super) async fn give_grant(
    State(gateway): State<Arc<Gateway>>,
    caller: PageCaller,
    Path(id): Path<String>,
    FormBody(form): FormBody<GrantForm>,
) -> Result<Response, Failure> {
    let view_token = Some(form.view_token).filter(|token| !token.is_empty());
    let (name, request) = (caller.name.clone(), id.clone());
    let given = gateway
        .store
        .write(move |tx| {
            let shown = permission::addressed_to(tx, &name, &request)?;
            let words = grant::words(&shown);
            let prefix = words.filter(|_| form.words > 0).map(|mut words| {
                words.truncate(form.words);
                words
            });
            let number = |text: &str| text.parse().ok();
            let (minutes, uses) = (number(&form.minutes), number(&form.uses));
            let wish = Wish { minutes, uses, prefix, denies: false };
            grant::give(tx, &name, &request, &wish, view_token, "page")
        })
        .await;
    match given {
        Ok(request) => Ok(Redirect::to(&format!("/approvals/{}", request.id)).into_response()),
        Err(failure) => {
            audit::refused(&gateway, &caller.name, "page", &id, &failure).await;
            Err(failure)
        }
    }
}

/// `POST /approvals/{id}/reveal`: the text without masks, once, to the browser that asks.
pub(super) async fn reveal(
    State(gateway): State<Arc<Gateway>>,
    caller: PageCaller,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    if !matches!(caller.proof, Proof::Cookie(_)) {
        return Err(Failure::new(
            StatusCode::FORBIDDEN,
            said!("只有登录的浏览器能看原文", "only a logged-in browser is shown the original"),
        ));
    }
    let (name, request) = (caller.name.clone(), id.clone());
    let original = gateway.store.write(move |tx| seen::reveal(tx, &name, &request, "page")).await?;
    Show { original: Some(original), ..Show::of(id) }.page(&gateway, &caller).await
}

#[derive(Default, Deserialize)]
pub(super) struct PageQuery {
    page: Option<usize>,
}

#[derive(Deserialize)]
pub(super) struct DecideForm {
    decision: String,
    #[serde(default)]
    note: String,
    #[serde(default)]
    view_token: String,
}

/// `POST /approvals/{id}`.
pub(super) async fn decide(
    State(gateway): State<Arc<Gateway>>,
    caller: PageCaller,
    Path(id): Path<String>,
    FormBody(form): FormBody<DecideForm>,
) -> Result<Response, Failure> {
    // Browsers send CR LF from a text area.
    let note = form.note.replace("\r\n", "\n").trim().to_owned();
    let (name, request, kept) = (caller.name.clone(), id.clone(), note.clone());
    let view_token = Some(form.view_token).filter(|token| !token.is_empty());
    let taken = Taken { decision: form.decision, note, view_token, how: "page" };
    let decided =
        gateway.store.write(move |tx| permission::decide(tx, &name, &request, &taken)).await;
    if let Err(failure) = &decided {
        audit::refused(&gateway, &caller.name, "page", &id, failure).await;
    }
    match decided {
        Ok(request) => {
            log::line(format_args!("request {} decided by {}", request.id, request.decider));
            Ok(Redirect::to(&format!("/approvals/{}", request.id)).into_response())
        }
        Err(failure) if failure.status == StatusCode::CONFLICT => {
            let status = StatusCode::CONFLICT;
            Show { status, problem: Some(failure), note: kept, ..Show::of(id) }
                .page(&gateway, &caller)
                .await
        }
        Err(failure) => Err(failure),
    }
}

/// One request, as it is to be shown.
struct Show {
    id: String,
    status: StatusCode,
    problem: Option<Failure>,
    note: String,
    /// Which page of the text, counted from one; the first without.
    page: Option<usize>,
    /// The text without masks, all of it on one page.
    original: Option<String>,
}

impl Show {
    const fn of(id: String) -> Self {
        let note = String::new();
        Self { id, status: StatusCode::OK, problem: None, note, page: None, original: None }
    }

    async fn page(self, gateway: &Gateway, caller: &PageCaller) -> Result<Response, Failure> {
        let (name, id) = (caller.name.clone(), self.id.clone());
        let request =
            gateway.store.read(move |db| permission::addressed_to(db, &name, &id)).await?;
        let frame = caller.frame(&format!("/approvals/{}", request.id));
        let (pages, revealed) = match &self.original {
            Some(text) => (vec![seen::pages_of(text, frame.lang).concat()], true),
            None => (seen::pages_of(&request.context, frame.lang), false),
        };
        let number = self.page.unwrap_or(1).clamp(1, pages.len());
        let is_last = number == pages.len() && !revealed;
        let view_token = if is_last {
            let (name, id) = (caller.name.clone(), self.id.clone());
            gateway.store.write(move |tx| seen::shown(tx, &name, &id, "page")).await?
        } else {
            String::new()
        };
        let code = audit::digest_in(&request.context).map(|digest| digest.code());
        let words = grant::words(&request);
        let beginnings: Vec<String> = words
            .iter()
            .flat_map(|words| (1..=words.len()).map(|n| visible(&words[..n].join(" "))))
            .collect();
        let may_last = request.session_id.is_some() && code.is_some() && request.original.is_none();
        let row = Row::new(request, &frame);
        let problem = self.problem.as_ref().map(|failure| failure.message.text(frame.lang));
        let page = RequestPage {
            frame: &frame,
            row: &row,
            problem,
            note: &self.note,
            note_limit: NOTE_LIMIT,
            lines: &pages[number - 1],
            number,
            pages: pages.len(),
            may_reveal: row.request.original.is_some() && !revealed,
            decides: is_last,
            view_token: &view_token,
            code: code.as_deref(),
            may_last,
            beginnings: &beginnings,
        };
        Ok(render(self.status, &page))
    }
}

/// The style of a row of the text.
const fn tone(row: &TextRow) -> &'static str {
    match row.kind {
        Kind::Fact => "fact",
        Kind::Warning => "warning",
        Kind::Hint => "risk",
        Kind::Note => "remark",
        Kind::Heading => "heading",
        Kind::Text => "text",
        Kind::Added => "added",
        Kind::Removed => "removed",
        Kind::Same => "same",
        Kind::Bound => "bound",
    }
}

async fn rows(
    gateway: &Gateway,
    caller: PageCaller,
    frame: &Frame,
    ended: bool,
) -> Result<Vec<Row>, Failure> {
    let status = (!ended).then(|| "pending".to_owned());
    let limit = if ended { HISTORY_LIMIT } else { u32::MAX };
    let filter = Filter { status, ended, limit, ..Filter::default() };
    let list = gateway.store.read(move |db| permission::list(db, &caller.name, &filter)).await?;
    Ok(list.into_iter().map(|request| Row::new(request, frame)).collect())
}
