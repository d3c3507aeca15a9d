//! Getting in: by password, by one-time link; and out.
//!
//! A link is used up by the person's own act. A `GET` that somebody typed or pasted (no
//! `Sec-Fetch-Site`, or `none`) logs in at once; one that another page or program caused, or that a
//! browser makes ahead of a click, shows a button. `HEAD` never uses a link up.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Extension, Path, Query, State};
use axum::response::{IntoResponse as _, Redirect, Response};
use http::header::{HeaderMap, HeaderValue, SET_COOKIE};
use http::{Method, StatusCode};
use serde::Deserialize;

use super::super::accounts::{self, COOKIE_LIFETIME};
use super::super::auth::{COOKIE_NAME, Proof};
use super::super::body::FormBody;
use super::super::failure::{Failure, said};
use super::super::server::Peer;
use super::super::{Gateway, guard, log, secret, stamp};
use super::text::Text;
use super::{Frame, PageCaller, language, local_path, render};

#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage<'p> {
    frame: &'p Frame,
    next: &'p str,
    name: &'p str,
    problem: Option<Text>,
}

#[derive(Template)]
#[template(path = "code.html")]
struct CodePage<'p> {
    frame: &'p Frame,
    code: &'p str,
    alive: bool,
}

#[derive(Deserialize)]
pub(super) struct Next {
    next: Option<String>,
}

/// `GET /login`.
pub(super) async fn form(
    State(gateway): State<Arc<Gateway>>,
    headers: HeaderMap,
    Query(next): Query<Next>,
) -> Response {
    let frame = Frame::new(language::of(&headers, gateway.lang), None, "/login");
    let next = local_path(next.next.as_deref());
    render(StatusCode::OK, &LoginPage { frame: &frame, next, name: "", problem: None })
}

#[derive(Deserialize)]
pub(super) struct Credentials {
    name: String,
    password: String,
    next: Option<String>,
}

/// `POST /login`.
pub(super) async fn by_password(
    State(gateway): State<Arc<Gateway>>,
    Extension(Peer(peer)): Extension<Peer>,
    headers: HeaderMap,
    FormBody(shown): FormBody<Credentials>,
) -> Result<Response, Failure> {
    guard::check_origin(&Method::POST, &headers, true)?;
    let name = shown.name.trim().to_owned();
    gateway.logins.attempt(&name, peer, stamp::now()).map_err(|seconds| {
        Failure::new(
            StatusCode::TOO_MANY_REQUESTS,
            said!(
                "尝试次数过多，{seconds} 秒后再试",
                "too many attempts; try again in {seconds} s"
            ),
        )
        .suggest(said!(
            "或在网关所在机器上运行 zcode-mail user login-link",
            "or run zcode-mail user login-link on the gateway's machine"
        ))
        .retry_after(seconds)
    })?;
    let wanted = name.clone();
    let stored = gateway.store.read(move |db| accounts::stored_password(db, &wanted)).await?;
    let password = shown.password;
    let right = password.len() <= secret::MAX_TOKEN_LEN
        && blocking::unblock(move || secret::verify_password(&password, stored.as_deref())).await;
    if !right {
        log::line(format_args!("login of \"{name}\" from {peer} refused"));
        let frame = Frame::new(language::of(&headers, gateway.lang), None, "/login");
        let next = local_path(shown.next.as_deref());
        let problem = Some(Text::WrongLogin);
        let page = LoginPage { frame: &frame, next, name: &name, problem };
        return Ok(render(StatusCode::UNAUTHORIZED, &page));
    }
    gateway.logins.succeeded(&name, peer);
    log::line(format_args!("login of \"{name}\" from {peer} by password"));
    let cookie =
        gateway.store.write(move |tx| accounts::start_cookie(tx, &name, "password")).await?;
    Ok(let_in(&cookie, local_path(shown.next.as_deref())))
}

/// `GET /login/{code}`.
pub(super) async fn code(
    State(gateway): State<Arc<Gateway>>,
    method: Method,
    headers: HeaderMap,
    Path(code): Path<String>,
) -> Result<Response, Failure> {
    if method == Method::GET && is_own_act(&headers) {
        return redeem(&gateway, &headers, code).await;
    }
    let shown = code.clone();
    let owner =
        gateway.store.read(move |db| accounts::code_owner(db, &shown, stamp::now())).await?;
    Ok(code_page(&gateway, &headers, &code, owner.is_some()))
}

/// `POST /login/{code}`.
pub(super) async fn by_code(
    State(gateway): State<Arc<Gateway>>,
    headers: HeaderMap,
    Path(code): Path<String>,
) -> Result<Response, Failure> {
    guard::check_origin(&Method::POST, &headers, true)?;
    redeem(&gateway, &headers, code).await
}

/// `POST /logout`.
pub(super) async fn log_out(
    State(gateway): State<Arc<Gateway>>,
    caller: PageCaller,
) -> Result<Response, Failure> {
    if let Proof::Cookie(value) = caller.proof {
        gateway.store.write(move |tx| accounts::end_cookie(tx, &value)).await?;
    }
    let mut response = Redirect::to("/login").into_response();
    set_cookie(
        &mut response,
        &format!("{COOKIE_NAME}=; Path=/; Max-Age=0; SameSite=Strict; HttpOnly"),
    );
    Ok(response)
}

async fn redeem(gateway: &Gateway, headers: &HeaderMap, code: String) -> Result<Response, Failure> {
    let shown = code.clone();
    let redeemed = gateway
        .store
        .write(move |tx| {
            let Some(name) = accounts::redeem_code(tx, &shown)? else { return Ok(None) };
            Ok(Some((accounts::start_cookie(tx, &name, "link")?, name)))
        })
        .await?;
    let Some((cookie, name)) = redeemed else {
        return Ok(code_page(gateway, headers, &code, false));
    };
    log::line(format_args!("login of \"{name}\" by link"));
    Ok(let_in(&cookie, "/approvals"))
}

fn code_page(gateway: &Gateway, headers: &HeaderMap, code: &str, alive: bool) -> Response {
    let frame = Frame::new(language::of(headers, gateway.lang), None, "/login");
    let status = if alive { StatusCode::OK } else { StatusCode::GONE };
    render(status, &CodePage { frame: &frame, code, alive })
}

fn let_in(cookie: &str, next: &str) -> Response {
    let mut response = Redirect::to(next).into_response();
    let seconds = COOKIE_LIFETIME / 1000;
    set_cookie(
        &mut response,
        &format!("{COOKIE_NAME}={cookie}; Path=/; Max-Age={seconds}; SameSite=Strict; HttpOnly"),
    );
    response
}

fn set_cookie(response: &mut Response, value: &str) {
    // Only hexadecimal digits and fixed text are ever set.
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(SET_COOKIE, value);
    }
}

/// Whether a person opened this link: nothing else caused it, and it is no rehearsal.
fn is_own_act(headers: &HeaderMap) -> bool {
    let rehearsal = ["sec-purpose", "purpose", "x-moz"].iter().any(|name| {
        headers.get(*name).is_some_and(|value| {
            value.to_str().map_or(true, |text| text.to_ascii_lowercase().contains("pre"))
        })
    });
    !rehearsal && headers.get("sec-fetch-site").is_none_or(|site| site == "none")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_opened_by_typing_it_and_not_by_pages_or_rehearsals() {
        let own = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, HeaderValue::from_static(value));
            }
            is_own_act(&headers)
        };
        assert!(own(&[]));
        assert!(own(&[("sec-fetch-site", "none")]));
        for site in ["cross-site", "same-site", "same-origin"] {
            assert!(!own(&[("sec-fetch-site", site)]), "{site}");
        }
        for (name, value) in [
            ("sec-purpose", "prefetch"),
            ("sec-purpose", "prefetch;prerender"),
            ("purpose", "prefetch"),
            ("purpose", "preview"),
            ("x-moz", "prefetch"),
        ] {
            assert!(!own(&[("sec-fetch-site", "none"), (name, value)]), "{name}: {value}");
        }
    }
}
