//! HTTP to the gateway: hyper's client on smol, on the thread that serves the model.
//!
//! Why hyper and not ureq on a pool of eight threads: a call that the host cancels has to drop its
//! exchange, and a thread blocked in a read cannot be dropped. It would hold its place until the
//! timeout, and eight cancelled calls would stop the mail. Measured on one machine against the same
//! gateway, whose bare request takes 0.43 ms at p50: a whole `read_inbox` through this client takes
//! 0.51 ms in a process of 3.9 MiB at its peak with two threads; the pool alone takes 0.46 ms for
//! the exchange, in a process of 5.6 MiB with ten threads once its places are used. So both are far
//! below what a person or a model can feel, and the pool has the larger memory and no way to cancel.
//! `tests/bench inbox` measures it again.
//!
//! At most [`SLOTS`] exchanges run at once; further ones wait their turn, and a dropped one gives
//! its place back. Connections are kept for [`IDLE`]. Redirects are never followed (TP-10): a
//! redirect is an answer like any other that is not 2xx. Environment variables for proxies are not
//! read; `AGENTMAIL_PROXY` is, and never for a gateway on this machine.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_io::Timer;
use bytes::Bytes;
use futures_lite::future;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use smol::lock::{Semaphore, SemaphoreGuardArc};
use smol::{LocalExecutor, Task};
use zcode_mail_core::config::Settings;
use zcode_mail_core::http::{Fault, Method, Outcome, REPLY_BODY_LIMIT, Reply, Request};

use super::target::Target;
use dial::Dialer;

mod dial;
#[cfg(feature = "tls")]
mod tls;

/// Exchanges at once. One model rarely has more than a handful of calls open.
const SLOTS: usize = 8;
/// How long an unused connection is kept: shorter than what servers commonly allow.
const IDLE: Duration = Duration::from_secs(20);
/// One exchange in all. ZCode gives a call 30 s, so the model still hears what went wrong.
const EXCHANGE: Duration = Duration::from_secs(25);
/// One transfer of a file in all.
pub(super) const TRANSFER: Duration = Duration::from_secs(120);

/// The body of a request.
pub(super) type Body = UnsyncBoxBody<Bytes, io::Error>;

/// What came back, owned.
#[derive(Debug)]
pub(super) enum Answer {
    /// An HTTP reply.
    Reply {
        status: u16,
        content_type: Option<String>,
        retry_after: Option<String>,
        date: Option<String>,
        body: Vec<u8>,
    },
    /// None.
    Failed(Fault),
}

impl Answer {
    /// An answer that stands for a local cause, with the status whose advice fits.
    pub(super) fn local(status: u16, why: &str) -> Self {
        let body = zcode_mail_core::api::error_body(why, None, None).into_bytes();
        let content_type = Some("application/json".into());
        Self::Reply { status, content_type, retry_after: None, date: None, body }
    }

    /// What it is, without contents, for the log.
    pub(super) fn summary(&self) -> String {
        match self {
            Self::Reply { status, body, .. } => format!("{status}, {} bytes", body.len()),
            Self::Failed(fault) => fault.to_string(),
        }
    }

    /// As the core takes it.
    pub(super) fn outcome(&self) -> Outcome<'_> {
        match self {
            Self::Reply { status, content_type, retry_after, date, body } => {
                Outcome::Reply(Reply {
                    status: *status,
                    content_type: content_type.as_deref(),
                    retry_after: retry_after.as_deref(),
                    date: date.as_deref(),
                    body,
                })
            }
            Self::Failed(fault) => Outcome::Failed(*fault),
        }
    }
}

/// One connection to a gateway. Dropping it closes it.
struct Connection {
    sender: SendRequest<Body>,
    /// Moves the bytes.
    _driver: Task<()>,
    to: (bool, String),
    since: Instant,
}

/// A reply whose body has not been read, and the connection that it comes from.
pub(super) struct Open {
    pub(super) reply: hyper::Response<Incoming>,
    connection: Connection,
    slot: SemaphoreGuardArc,
}

/// The client.
pub(super) struct Client {
    dialer: Dialer,
    slots: Arc<Semaphore>,
    idle: RefCell<Vec<Connection>>,
}

impl Client {
    /// A client that has done nothing yet.
    pub(super) fn new(executor: Rc<LocalExecutor<'static>>, settings: &Settings) -> Self {
        Self {
            dialer: Dialer::new(executor, settings),
            slots: Arc::new(Semaphore::new(SLOTS)),
            idle: RefCell::default(),
        }
    }

    /// Sends a request and reads the whole reply.
    pub(super) async fn exchange(&self, target: &Target, request: &Request) -> Answer {
        let work = async {
            let body = request.body.clone().map_or_else(empty, |body| full(body.into()));
            let json = request.body.is_some().then_some("application/json");
            let prepared = prepare(target, request.method, &request.path, json, None, body);
            let open = self.open(target, prepared?).await?;
            self.read(open).await
        };
        let limit = async {
            Timer::after(EXCHANGE).await;
            Err(Fault::TimedOut)
        };
        future::or(work, limit).await.unwrap_or_else(Answer::Failed)
    }

    /// Sends a request and waits for the head of the reply.
    ///
    /// # Errors
    /// The [`Fault`].
    pub(super) async fn open(
        &self,
        target: &Target,
        mut request: hyper::Request<Body>,
    ) -> Result<Open, Fault> {
        let slot = self.slots.acquire_arc().await;
        self.dialer.adapt(target, &mut request)?;
        loop {
            let kept = self.kept(target);
            let reused = kept.is_some();
            let mut connection = match kept {
                Some(connection) => connection,
                None => self.dial(target).await?,
            };
            if connection.sender.ready().await.is_err() {
                if reused {
                    continue;
                }
                return Err(Fault::Truncated);
            }
            match connection.sender.try_send_request(request).await {
                Ok(reply) => return Ok(Open { reply, connection, slot }),
                Err(mut failed) => match failed.take_message() {
                    // The kept connection was closed before a byte of the request went out.
                    Some(unsent) if reused => request = unsent,
                    _ => return Err(fault(&failed.into_error())),
                },
            }
        }
    }

    /// Reads the rest of a reply and keeps its connection.
    ///
    /// # Errors
    /// The [`Fault`].
    pub(super) async fn read(&self, open: Open) -> Result<Answer, Fault> {
        let (head, mut incoming) = open.reply.into_parts();
        let mut body = Vec::new();
        while let Some(frame) = incoming.frame().await {
            let frame = frame.map_err(|error| fault(&error))?;
            if let Ok(data) = frame.into_data() {
                if body.len() + data.len() > REPLY_BODY_LIMIT {
                    return Err(Fault::TooLarge);
                }
                body.extend_from_slice(&data);
            }
        }
        self.keep(open.connection);
        let header = |name| Some(head.headers.get(name)?.to_str().ok()?.to_owned());
        Ok(Answer::Reply {
            status: head.status.as_u16(),
            content_type: header("content-type"),
            retry_after: header("retry-after"),
            date: header("date"),
            body,
        })
    }

    async fn dial(&self, target: &Target) -> Result<Connection, Fault> {
        let (sender, driver) = self.dialer.connect(&target.base).await?;
        let to = (target.base.tls, target.base.authority.clone());
        Ok(Connection { sender, _driver: driver, to, since: Instant::now() })
    }

    /// A usable kept connection to the target's host.
    fn kept(&self, target: &Target) -> Option<Connection> {
        let mut idle = self.idle.borrow_mut();
        idle.retain(|kept| !kept.sender.is_closed() && kept.since.elapsed() < IDLE);
        let fits =
            |kept: &Connection| kept.to.0 == target.base.tls && kept.to.1 == target.base.authority;
        let place = idle.iter().rposition(fits)?;
        Some(idle.swap_remove(place))
    }

    fn keep(&self, mut connection: Connection) {
        if !connection.sender.is_closed() {
            connection.since = Instant::now();
            let mut idle = self.idle.borrow_mut();
            idle.truncate(SLOTS - 1);
            idle.push(connection);
        }
    }
}

impl Open {
    /// Takes the reply apart for streaming. The connection lives as long as the second part.
    pub(super) fn into_stream(self) -> (hyper::Response<Incoming>, impl Sized) {
        (self.reply, (self.connection, self.slot))
    }
}

/// A request with everything but the body's bytes settled.
///
/// # Errors
/// [`Fault::NotHttp`] when path or host cannot stand in a request, which the core's builders rule
/// out.
pub(super) fn prepare(
    target: &Target,
    method: Method,
    path: &str,
    content_type: Option<&str>,
    length: Option<u64>,
    body: Body,
) -> Result<hyper::Request<Body>, Fault> {
    let mut builder = hyper::Request::builder()
        .method(method.as_str())
        .uri(format!("{}{path}", target.base.prefix))
        .header("host", &target.base.authority)
        .header("accept", "application/json")
        .header("user-agent", concat!("zcode-mail-mcp/", env!("CARGO_PKG_VERSION")));
    for (name, value) in target.headers() {
        builder = builder.header(name, value);
    }
    if let Some(kind) = content_type {
        builder = builder.header("content-type", kind);
    }
    if let Some(length) = length {
        builder = builder.header("content-length", length);
    }
    builder.body(body).map_err(|_| Fault::NotHttp)
}

/// No body.
pub(super) fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

fn full(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

/// What kind of failure an error of hyper's is.
pub(super) fn fault(error: &hyper::Error) -> Fault {
    if error.is_parse() {
        Fault::NotHttp
    } else if error.is_timeout() {
        Fault::TimedOut
    } else {
        Fault::Truncated
    }
}
