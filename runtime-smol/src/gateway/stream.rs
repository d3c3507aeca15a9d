//! One open event stream (`W-4`, wire: "server-sent events").
//!
//! ```text
//! subscribe ─▶ ": connected" ─▶ replay from the database ─▶ live events with greater ids
//!                                                             15 s without one: ": keep-alive"
//! ends when: the gateway stops │ the reader is too slow │ the credential no longer stands
//! ```
//!
//! Subscribing before replaying leaves no gap: an event that is committed meanwhile is in the
//! queue, and in the replay too if it was committed before that read; its id tells.
//!
//! `Last-Event-ID`: absent or malformed replays nothing; a number replays what is kept after it,
//! at most [`REPLAY_LIMIT`] events; a number above the newest replays nothing.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_lite::FutureExt as _;
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use rusqlite::Connection;
use zcode_mail_core::sse;

use super::auth::Proof;
use super::failure::{Failure, said};
use super::hub::{Announcement, Cut, Refused, Subscription};
use super::store::REPLAY_LIMIT;
use super::{Gateway, stamp};

/// Silence after which a comment shows that the stream lives (wire 2.1).
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Opens the stream of `recipient` as a response. The stream ends when `proof`, by which it was
/// opened, no longer stands.
///
/// # Errors
///
/// 429 when the recipient has too many streams, 503 when the gateway stops.
pub(super) async fn open(
    gateway: &Arc<Gateway>,
    recipient: String,
    proof: Proof,
    headers: &HeaderMap,
    cut: Cut,
) -> Result<Response, Failure> {
    let subscription = gateway.hub.subscribe(&recipient, cut).map_err(|refused| match refused {
        Refused::TooMany => Failure::new(
            StatusCode::TOO_MANY_REQUESTS,
            said!("{recipient} 打开的事件流太多", "{recipient} has too many open event streams"),
        )
        .retry_after(30),
        Refused::Closed => Failure::new(
            StatusCode::SERVICE_UNAVAILABLE,
            said!("网关正在停止", "the gateway stops"),
        )
        .retry_after(5),
    })?;
    let missed = match last_event_id(headers) {
        None => Vec::new(),
        Some(last) => gateway.store.read(move |db| replay(db, &recipient, last)).await?,
    };
    let state =
        Open { gateway: Arc::clone(gateway), subscription, proof, sent: 0, first: Some(missed) };
    let stream = futures_lite::stream::unfold(state, |mut state| async move {
        let chunk = state.next().await?;
        Some((Ok::<_, std::convert::Infallible>(chunk), state))
    });
    let mut response = Response::new(Body::from_stream(stream));
    let fixed: [(HeaderName, &'static str); 3] = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
        // nginx and its descendants then pass each event on at once.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    for (name, value) in fixed {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

struct Open {
    gateway: Arc<Gateway>,
    subscription: Subscription,
    proof: Proof,
    sent: i64,
    first: Option<Vec<Announcement>>,
}

impl Open {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(missed) = self.first.take() {
            let mut chunk = Vec::new();
            sse::put_comment(&mut chunk, "connected");
            for event in &missed {
                self.put(&mut chunk, event);
            }
            return Some(Bytes::from(chunk));
        }
        loop {
            let next = async { Some(self.subscription.next().await) }
                .or(async {
                    smol::Timer::after(KEEP_ALIVE).await;
                    None
                })
                .await;
            if !self.stands().await {
                return None;
            }
            let mut chunk = Vec::new();
            match next {
                None => sse::put_comment(&mut chunk, "keep-alive"),
                Some(None) => return None,
                Some(Some(event)) if event.id <= self.sent => continue,
                Some(Some(event)) => self.put(&mut chunk, &event),
            }
            return Some(Bytes::from(chunk));
        }
    }

    fn put(&mut self, chunk: &mut Vec<u8>, event: &Announcement) {
        self.sent = event.id;
        sse::put_event(chunk, Some(&event.id.to_string()), event.name, &event.data);
    }

    async fn stands(&self) -> bool {
        if self.proof == Proof::Secret {
            return true;
        }
        let proof = self.proof.clone();
        let standing = self.gateway.store.read(move |db| proof.stands(db, stamp::now())).await;
        standing.unwrap_or(false)
    }
}

fn last_event_id(headers: &HeaderMap) -> Option<i64> {
    let text = headers.get("last-event-id")?.to_str().ok()?;
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn replay(db: &Connection, recipient: &str, last: i64) -> Result<Vec<Announcement>, Failure> {
    let mut statement = db.prepare(
        "SELECT id, name, data FROM (
           SELECT id, name, data FROM events WHERE recipient = ?1 AND id > ?2
           ORDER BY id DESC LIMIT ?3) ORDER BY id",
    )?;
    let mut rows = statement.query((recipient, last, REPLAY_LIMIT))?;
    let mut missed = Vec::new();
    while let Some(row) = rows.next()? {
        let name: String = row.get(1)?;
        // A name that this version does not know stays in the database.
        let Some(name) = super::event::known(&name) else { continue };
        missed.push(Announcement {
            id: row.get(0)?,
            recipient: recipient.to_owned(),
            name,
            data: row.get::<_, String>(2)?.into(),
        });
    }
    Ok(missed)
}
