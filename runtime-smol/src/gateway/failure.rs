//! What a request is refused with: a status, a text in both languages, and what to do next.

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use zcode_mail_core::lang::Lang;

/// A text in both languages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Chinese.
    pub zh: String,
    /// English.
    pub en: String,
}

impl Said {
    /// The text in `lang`.
    #[must_use]
    pub fn text(&self, lang: Lang) -> &str {
        lang.pick(&self.zh, &self.en)
    }
}

/// A [`Said`] of two format strings.
macro_rules! said {
    ($zh:literal, $en:literal) => {
        $crate::gateway::failure::Said { zh: format!($zh), en: format!($en) }
    };
}
pub(crate) use said;

/// A refused request (`W-9`). As a response it carries itself in the response's extensions; the
/// server renders it as JSON below `/api/` and as a page elsewhere.
///
/// One pointer, because almost every function of the gateway may return it.
#[derive(Clone, Debug)]
pub struct Failure(Box<Refusal>);

/// What a [`Failure`] says.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The HTTP status; it alone tells a client whether to try again (`B-8.2b`).
    pub status: StatusCode,
    /// What is wrong.
    pub message: Said,
    /// What to do next.
    pub suggestion: Option<Said>,
    /// For 429 and 503: seconds after which another try makes sense.
    pub retry_after_s: Option<u64>,
    /// What the log gets to know and the client does not.
    pub cause: Option<String>,
}

impl Failure {
    /// A refusal with a status and a text.
    #[must_use]
    pub fn new(status: StatusCode, message: Said) -> Self {
        let (suggestion, retry_after_s, cause) = (None, None, None);
        Self(Box::new(Refusal { status, message, suggestion, retry_after_s, cause }))
    }

    /// 400 with a text.
    #[must_use]
    pub fn bad_request(message: Said) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// 404 with a text.
    #[must_use]
    pub fn not_found(message: Said) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// 409 with a text.
    #[must_use]
    pub fn conflict(message: Said) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    /// 500; `cause` goes to the log only.
    #[must_use]
    pub fn internal(cause: impl Into<String>) -> Self {
        let mut failure = Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            said!("网关内部出错，原因在网关日志里", "the gateway failed; its log says why"),
        );
        failure.0.cause = Some(cause.into());
        failure
    }

    /// Adds what to do next.
    #[must_use]
    pub fn suggest(mut self, suggestion: Said) -> Self {
        self.0.suggestion = Some(suggestion);
        self
    }

    /// Adds the seconds after which another try makes sense.
    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.0.retry_after_s = Some(seconds);
        self
    }

    /// The JSON answer: `{"error", "suggestion"?, "retry_after"?}`.
    #[must_use]
    pub fn to_json(&self, lang: Lang) -> String {
        let mut body = serde_json::Map::new();
        body.insert("error".to_owned(), self.message.text(lang).into());
        if let Some(suggestion) = &self.suggestion {
            body.insert("suggestion".to_owned(), suggestion.text(lang).into());
        }
        if let Some(seconds) = self.retry_after_s {
            body.insert("retry_after".to_owned(), seconds.into());
        }
        serde_json::Value::Object(body).to_string()
    }

    /// The JSON answer as a complete response.
    #[must_use]
    pub fn json_response(&self, lang: Lang) -> Response {
        let mut response = Response::new(self.to_json(lang).into());
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seconds) = self.retry_after_s {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

impl std::ops::Deref for Failure {
    type Target = Refusal;

    fn deref(&self) -> &Refusal {
        &self.0
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::internal(format!("database: {error}"))
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = Response::default();
        *response.status_mut() = self.status;
        response.extensions_mut().insert(self);
        response
    }
}
