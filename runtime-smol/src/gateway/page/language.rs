//! Which language a browser gets: its own choice by the switch, else what it asks for, else the
//! gateway's.

use axum::response::{IntoResponse as _, Redirect, Response};
use http::Method;
use http::header::{ACCEPT_LANGUAGE, COOKIE, HeaderMap, HeaderValue, SET_COOKIE};
use serde::Deserialize;
use zcode_mail_core::lang::Lang;

use super::super::body::FormBody;
use super::super::failure::Failure;
use super::super::guard;
use super::local_path;

const COOKIE_NAME: &str = "agentmail_lang";

/// The language for a request.
pub(super) fn of(headers: &HeaderMap, default: Lang) -> Lang {
    chosen(headers).or_else(|| asked(headers)).unwrap_or(default)
}

#[derive(Deserialize)]
pub(super) struct Choice {
    lang: String,
    next: Option<String>,
}

/// `POST /language`: keeps the choice in a cookie and returns to the page.
pub(super) async fn choose(
    headers: HeaderMap,
    FormBody(choice): FormBody<Choice>,
) -> Result<Response, Failure> {
    guard::check_origin(&Method::POST, &headers, true)?;
    let value = match Lang::from_tag(&choice.lang) {
        Lang::Zh => "agentmail_lang=zh; Path=/; Max-Age=31536000; SameSite=Strict; HttpOnly",
        Lang::En => "agentmail_lang=en; Path=/; Max-Age=31536000; SameSite=Strict; HttpOnly",
    };
    let mut response = Redirect::to(local_path(choice.next.as_deref())).into_response();
    response.headers_mut().insert(SET_COOKIE, HeaderValue::from_static(value));
    Ok(response)
}

fn chosen(headers: &HeaderMap) -> Option<Lang> {
    let value = headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(name, _)| *name == COOKIE_NAME)?
        .1;
    known(value)
}

/// The known language with the highest weight in `Accept-Language`; the first of equals.
fn asked(headers: &HeaderMap) -> Option<Lang> {
    let value = headers.get(ACCEPT_LANGUAGE)?.to_str().ok()?;
    let mut best: Option<(Lang, f32)> = None;
    for part in value.split(',') {
        let (tag, weight) = part.split_once(';').unwrap_or((part, ""));
        let weight =
            weight.trim().strip_prefix("q=").map_or(1.0, |text| text.parse().unwrap_or(0.0));
        if let Some(lang) = known(tag)
            && weight > best.map_or(0.0, |(_, weight)| weight)
        {
            best = Some((lang, weight));
        }
    }
    best.map(|(lang, _)| lang)
}

fn known(tag: &str) -> Option<Lang> {
    let primary = tag.trim().split('-').next().unwrap_or_default();
    if primary.eq_ignore_ascii_case("zh") {
        Some(Lang::Zh)
    } else if primary.eq_ignore_ascii_case("en") {
        Some(Lang::En)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_switch_wins_then_the_browser_then_the_gateway() {
        let lang = |cookie: Option<&'static str>, asked: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            if let Some(cookie) = cookie {
                headers.insert(COOKIE, HeaderValue::from_static(cookie));
            }
            if let Some(asked) = asked {
                headers.insert(ACCEPT_LANGUAGE, HeaderValue::from_static(asked));
            }
            of(&headers, Lang::Zh)
        };
        assert_eq!(lang(None, None), Lang::Zh);
        assert_eq!(lang(None, Some("fr, de")), Lang::Zh);
        assert_eq!(lang(None, Some("en-GB,en;q=0.9,zh;q=0.8")), Lang::En);
        assert_eq!(lang(None, Some("en;q=0.3, zh-TW;q=0.4")), Lang::Zh);
        assert_eq!(lang(None, Some("en;q=0")), Lang::Zh);
        assert_eq!(lang(Some("a=b; agentmail_lang=zh"), Some("en")), Lang::Zh);
        assert_eq!(lang(Some("agentmail_lang=en"), Some("zh")), Lang::En);
        assert_eq!(lang(Some("agentmail_lang=xx"), Some("en")), Lang::En);
    }
}
