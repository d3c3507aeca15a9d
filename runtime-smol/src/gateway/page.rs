//! The page on which a person decides: server-rendered HTML that works without JavaScript; a small
//! script adds live updates.
//!
//! | route | what |
//! |---|---|
//! | `/login`, `/login/{code}`, `/logout` | getting in and out |
//! | `/approvals`, `/approvals/list` | what waits, newest first; the list alone for the script |
//! | `/approvals/history` | what ended |
//! | `/approvals/{id}` | one request in full, by pages; `POST` decides it |
//! | `/approvals/{id}/grant` | `POST`: an approval with an end |
//! | `/approvals/{id}/reveal` | `POST`: the text without masks |
//! | `/language` | the language switch |
//! | `/assets/…` | style, script, icon |
//!
//! Every text of a mail, agent or person is escaped by the templates (askama escapes by default,
//! and no template opts out). After a form is taken the answer is a redirect, so that reloading
//! sends nothing twice.

use std::borrow::Borrow;
use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use http::request::Parts;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use zcode_mail_core::lang::Lang;

use super::auth::{self, UserCaller};
use super::failure::Failure;
use super::{Gateway, log};

mod approvals;
mod assets;
mod language;
mod login;
mod text;

use text::Text;

/// The routes of the page.
pub(super) fn routes() -> Router<Arc<Gateway>> {
    Router::new()
        .route("/", get(|| async { Redirect::to("/approvals") }))
        .route("/login", get(login::form).post(login::by_password))
        .route("/login/{code}", get(login::code).post(login::by_code))
        .route("/logout", post(login::log_out))
        .route("/language", post(language::choose))
        .route("/approvals", get(approvals::waiting))
        .route("/approvals/list", get(approvals::list))
        .route("/approvals/history", get(approvals::history))
        .route("/approvals/{id}", get(approvals::one).post(approvals::decide))
        .route("/approvals/{id}/reveal", post(approvals::reveal))
        .route("/approvals/{id}/grant", post(approvals::give_grant))
        .route("/assets/{name}", get(assets::serve))
}

/// A refusal outside the JSON interface, as a page.
pub(super) fn failure(failure: &Failure, headers: &HeaderMap, default: Lang) -> Response {
    let frame = Frame::new(language::of(headers, default), None, "/");
    let page = FailurePage {
        message: failure.message.text(frame.lang),
        suggestion: failure.suggestion.as_ref().map(|said| said.text(frame.lang)),
        status: failure.status.as_u16(),
        frame: &frame,
    };
    let mut response = render(failure.status, &page);
    if let Some(seconds) = failure.retry_after_s {
        response.headers_mut().insert(http::header::RETRY_AFTER, seconds.into());
    }
    response
}

#[derive(Template)]
#[template(path = "failure.html")]
struct FailurePage<'p> {
    frame: &'p Frame,
    status: u16,
    message: &'p str,
    suggestion: Option<&'p str>,
}

/// What every page needs: the language, who is logged in, and where it is.
struct Frame {
    lang: Lang,
    user: Option<String>,
    /// The page's own path, to which the language switch returns.
    here: String,
}

impl Frame {
    fn new(lang: Lang, user: Option<String>, here: &str) -> Self {
        Self { lang, user, here: here.to_owned() }
    }

    /// A text of the catalogue in the page's language.
    fn say(&self, text: impl Borrow<Text>) -> &'static str {
        text.borrow().say(self.lang)
    }

    /// The language that the switch chooses.
    const fn other_language(&self) -> &'static str {
        self.lang.pick("en", "zh")
    }

    fn asset(&self, name: &str) -> String {
        assets::url(name)
    }
}

/// A person who looks at a page. Without a login a `GET` goes to the login form and comes back.
struct PageCaller {
    name: String,
    proof: auth::Proof,
    lang: Lang,
}

impl PageCaller {
    fn frame(&self, here: &str) -> Frame {
        Frame::new(self.lang, Some(self.name.clone()), here)
    }
}

impl FromRequestParts<Arc<Gateway>> for PageCaller {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Response> {
        match auth::user(gateway, &parts.method, &parts.headers).await {
            Ok(UserCaller { name, by }) => {
                let lang = language::of(&parts.headers, gateway.lang);
                Ok(Self { name, proof: by, lang })
            }
            Err(failure)
                if failure.status == StatusCode::UNAUTHORIZED && parts.method.is_safe() =>
            {
                let next = utf8_percent_encode(parts.uri.path(), NON_ALPHANUMERIC);
                Err(Redirect::to(&format!("/login?next={next}")).into_response())
            }
            Err(failure) => Err(failure.into_response()),
        }
    }
}

/// A page as a response.
fn render(status: StatusCode, page: &impl Template) -> Response {
    match page.render() {
        Ok(html) => {
            let headers = [(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"))];
            (status, headers, html).into_response()
        }
        Err(error) => {
            log::line(format_args!("template: {error}"));
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// `path` if it is a path of this gateway, else the front page. A text that a browser would take
/// for another host (`//host`, `/\host`) is none.
fn local_path(path: Option<&str>) -> &str {
    let fits = |path: &&str| {
        path.starts_with('/')
            && !path[1..].starts_with(['/', '\\'])
            && path.bytes().all(|byte| byte.is_ascii_graphic())
    };
    path.filter(fits).unwrap_or("/approvals")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_this_gateway_are_returned_to() {
        for good in ["/", "/approvals/x", "/approvals?a=b"] {
            assert_eq!(local_path(Some(good)), good);
        }
        for bad in ["", "//evil", "/\\evil", "https://evil", "/\t/evil", "/a b", "evil", "/\u{e9}"]
        {
            assert_eq!(local_path(Some(bad)), "/approvals", "{bad:?}");
        }
        assert_eq!(local_path(None), "/approvals");
    }
}
