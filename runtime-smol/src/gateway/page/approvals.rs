//! What waits, one request in full, deciding it, and what ended.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Redirect, Response};
use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use serde::Deserialize;
use zcode_mail_core::decision::{ALWAYS, Decision};
use zcode_mail_core::lifecycle::{State as Stage, Verdict};

use super::super::body::FormBody;
use super::super::failure::Failure;
use super::super::permission::{self, Filter, NOTE_LIMIT, Request};
use super::super::{Gateway, log, stamp};
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
) -> Result<Response, Failure> {
    show(&gateway, &caller, id, StatusCode::OK, None, "").await
}

#[derive(Deserialize)]
pub(super) struct DecideForm {
    decision: String,
    #[serde(default)]
    note: String,
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
    let decided = gateway
        .store
        .write(move |tx| permission::decide(tx, &name, &request, &form.decision, &note))
        .await;
    match decided {
        Ok(request) => {
            log::line(format_args!("request {} decided by {}", request.id, request.decider));
            Ok(Redirect::to(&format!("/approvals/{}", request.id)).into_response())
        }
        Err(failure) if failure.status == StatusCode::CONFLICT => {
            show(&gateway, &caller, id, StatusCode::CONFLICT, Some(&failure), &kept).await
        }
        Err(failure) => Err(failure),
    }
}

async fn show(
    gateway: &Gateway,
    caller: &PageCaller,
    id: String,
    status: StatusCode,
    problem: Option<&Failure>,
    note: &str,
) -> Result<Response, Failure> {
    let name = caller.name.clone();
    let request = gateway.store.read(move |db| permission::addressed_to(db, &name, &id)).await?;
    let frame = caller.frame(&format!("/approvals/{}", request.id));
    let row = Row::new(request, &frame);
    let problem = problem.map(|failure| failure.message.text(frame.lang));
    let page = RequestPage { frame: &frame, row: &row, problem, note, note_limit: NOTE_LIMIT };
    Ok(render(status, &page))
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
