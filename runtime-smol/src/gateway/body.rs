//! Request bodies: bounded in size and time, JSON, strictly decoded (`W-2`, `W-9`).

use std::time::Duration;

use axum::Form;
use axum::body::Body;
use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use futures_lite::FutureExt as _;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap};
use http_body_util::BodyExt as _;
use zcode_mail_core::lang::Lang;
use zcode_mail_core::strict::Invalid;

use super::failure::{Failure, Said, said};

/// Largest JSON or form body in bytes: mail texts are a few KiB, files travel as attachments.
pub(super) const BODY_LIMIT: usize = 1024 * 1024;
/// Bytes of a refused body that are still read, so that its sender can read the refusal: twice the
/// largest attachment.
pub(super) const DRAIN_LIMIT: usize = 64 * 1024 * 1024;
/// How long they are waited for.
pub(super) const DRAIN_TIME: Duration = Duration::from_secs(10);
/// How long a client may take to send a body of that size.
const BODY_TIME: Duration = Duration::from_secs(30);

/// A JSON body, not decoded yet. An empty body counts as an empty object, so that a route without
/// fields can be called without one.
pub(super) struct Json(pub(super) Bytes);

impl<S: Send + Sync> FromRequest<S> for Json {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        let (head, body) = request.into_parts();
        let bytes = collect(body).await?;
        if bytes.is_empty() {
            return Ok(Self(Bytes::from_static(b"{}")));
        }
        // Another content type could come from a form on a foreign page (CSRF).
        if !is_json(&head.headers) {
            return Err(Failure::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                said!(
                    "请求体须为 JSON，请带上 Content-Type: application/json",
                    "the body must be JSON; send Content-Type: application/json"
                ),
            ));
        }
        Ok(Self(bytes))
    }
}

/// The fields of a form.
pub(super) struct FormBody<T>(pub(super) T);

impl<S: Send + Sync, T: serde::de::DeserializeOwned> FromRequest<S> for FormBody<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let (head, body) = request.into_parts();
        let bytes = collect(body).await?;
        let whole = Request::from_parts(head, Body::from(bytes));
        let Form(fields) = Form::from_request(whole, state)
            .await
            .map_err(|_| Failure::bad_request(said!("表单无法读取", "the form cannot be read")))?;
        Ok(Self(fields))
    }
}

impl From<Invalid> for Failure {
    fn from(invalid: Invalid) -> Self {
        Self::bad_request(Said { zh: invalid.text(Lang::Zh), en: invalid.text(Lang::En) })
    }
}

/// The whole body.
///
/// # Errors
///
/// 413 above [`BODY_LIMIT`], 408 when the client takes longer than it may, 400 when the
/// connection breaks.
pub(super) async fn collect(mut body: Body) -> Result<Bytes, Failure> {
    let read = async {
        let mut whole = Vec::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| broken())?.into_data() else { continue };
            if whole.len() + data.len() > BODY_LIMIT {
                return Err(too_large());
            }
            whole.extend_from_slice(&data);
        }
        Ok(Bytes::from(whole))
    };
    let read = read
        .or(async {
            smol::Timer::after(BODY_TIME).await;
            Err(Failure::new(
                StatusCode::REQUEST_TIMEOUT,
                said!("请求体传输超时", "the body took too long to arrive"),
            ))
        })
        .await;
    if read.as_ref().is_err_and(|failure| failure.status == StatusCode::PAYLOAD_TOO_LARGE) {
        drain(body).await;
    }
    read
}

/// Reads what a client still sends and throws it away, within bounds. A connection that is closed
/// while its client sends is reset, and the client never sees why.
pub(super) async fn drain(mut body: Body) {
    let rest = async {
        let mut left = DRAIN_LIMIT;
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                return;
            }
        }
    };
    rest.or(async {
        smol::Timer::after(DRAIN_TIME).await;
    })
    .await;
}

fn too_large() -> Failure {
    Failure::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        said!(
            "请求体超过上限 {BODY_LIMIT} 字节；大文件请作为附件上传",
            "the body is larger than {BODY_LIMIT} bytes; upload files as attachments"
        ),
    )
}

fn broken() -> Failure {
    Failure::bad_request(said!(
        "请求体没有传完连接就断了",
        "the connection broke before the body was complete"
    ))
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(Ok(value)) = headers.get(CONTENT_TYPE).map(|value| value.to_str()) else {
        return false;
    };
    let essence = value.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}
