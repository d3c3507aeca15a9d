//! The files of the page: embedded, with their digest in the URL, so that browsers may keep them
//! for ever.

use axum::extract::Path;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use zcode_mail_core::relay_key::sha256_hex;

struct Asset {
    name: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
}

const ASSETS: [Asset; 3] = [
    Asset {
        name: "page.css",
        content_type: "text/css; charset=utf-8",
        bytes: include_bytes!("../../../assets/page.css"),
    },
    Asset {
        name: "page.js",
        content_type: "text/javascript; charset=utf-8",
        bytes: include_bytes!("../../../assets/page.js"),
    },
    Asset {
        name: "icon.svg",
        content_type: "image/svg+xml",
        bytes: include_bytes!("../../../assets/icon.svg"),
    },
];

/// The URL of an asset, which changes with its content.
pub(super) fn url(name: &str) -> String {
    let digest = ASSETS
        .iter()
        .find(|asset| asset.name == name)
        .map(|asset| sha256_hex(asset.bytes))
        .unwrap_or_default();
    format!("/assets/{name}?v={}", digest.get(..12).unwrap_or_default())
}

/// `GET /assets/{name}`.
pub(super) async fn serve(Path(name): Path<String>) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(asset.content_type)),
        (CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
    ];
    (headers, asset.bytes).into_response()
}
