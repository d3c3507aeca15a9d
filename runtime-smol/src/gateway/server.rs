//! The HTTP server: hyper's HTTP/1 connections on a smol executor of its own, an axum router on
//! top.
//!
//! ```text
//! listening ─ accept ─▶ connection task: hyper ─ service ─▶ Host check ─ router ─ finish
//!     │                      ends at: client gone │ header timeout │ stream cut │ stop
//!     └ stop: streams end, connections finish what they have, after GRACE they are dropped
//! ```
//!
//! Limits: connections in all, time for a request head, one request body (`body`). A handler that
//! panics is answered 500 and the panic's text goes to the log.

use std::any::Any;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use async_channel::{Receiver, Sender};
use axum::Router;
use axum::body::Body;
use axum::extract::DefaultBodyLimit;
use axum::response::Response;
use futures_lite::{AsyncWriteExt as _, FutureExt as _};
use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use smol::{Async, Executor, Timer};
use smol_hyper::rt::{FuturesIo, SmolTimer};
use tower::ServiceExt as _;

use super::failure::Failure;
use super::guard::{self, Hosts};
use super::hub::Cut;
use super::{Config, Gateway, StartError, agent, attachment, human, log, page};

/// How long a stopping gateway waits for requests in progress.
const GRACE: Duration = Duration::from_secs(3);
/// Open connections in all. Each costs some tens of KiB; two thousand event streams and their
/// neighbours fit.
const CONNECTIONS: usize = 4096;
/// How long a client may take to send a request head, and may leave a connection idle.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// Threads of the executor. Handlers wait for the database most of the time.
const THREADS: usize = 2;
/// Pause after a failed accept (out of descriptors), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The address of the client, an extension of each request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) IpAddr);

/// The handle that closes the request's connection, an extension of each request.
#[derive(Clone, Debug)]
pub(super) struct Connection(pub(super) Cut);

/// The running accept loop and its executor.
pub(super) struct Server {
    address: SocketAddr,
    gateway: Arc<Gateway>,
    stop: Sender<()>,
    done: Receiver<()>,
    executor: Sender<()>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    gateway: Arc<Gateway>,
    router: Router,
    hosts: Hosts,
    open: AtomicUsize,
    stop: Receiver<()>,
}

impl Server {
    /// Listens and accepts on threads of its own.
    ///
    /// # Errors
    ///
    /// [`StartError::Listen`], [`StartError::Thread`].
    pub(super) fn start(config: &Config, gateway: Arc<Gateway>) -> Result<Self, StartError> {
        let fail = |error| StartError::Listen(config.listen, error);
        let listener = Async::<TcpListener>::bind(config.listen).map_err(fail)?;
        let address = listener.get_ref().local_addr().map_err(fail)?;
        let (stop, stopping) = async_channel::bounded(1);
        let (finished, done) = async_channel::bounded(1);
        let (executor_handle, executor_end) = async_channel::bounded::<()>(1);
        let shared = Arc::new(Shared {
            router: router(&gateway),
            gateway: Arc::clone(&gateway),
            hosts: Hosts::new(address, &config.allow_hosts),
            open: AtomicUsize::new(0),
            stop: stopping,
        });
        let executor = Arc::new(Executor::new());
        let sweep = attachment::sweep_for_ever(gateway.store.clone(), gateway.shelf.clone());
        executor.spawn(sweep).detach();
        executor.spawn(accept(listener, shared, Arc::clone(&executor), finished)).detach();
        let mut threads = Vec::new();
        for number in 0..THREADS {
            let executor = Arc::clone(&executor);
            let end = executor_end.clone();
            let thread = std::thread::Builder::new()
                .name(format!("gateway-{number}"))
                .spawn(move || {
                    // Ends with an error when the handle is dropped, which is the signal.
                    let _ = smol::block_on(executor.run(end.recv()));
                })
                .map_err(StartError::Thread)?;
            threads.push(thread);
        }
        Ok(Self { address, gateway, stop, done, executor: executor_handle, threads })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends streams, waits for requests in progress at most [`GRACE`], drops the rest.
    pub(super) fn stop(self) {
        self.stop.close();
        self.gateway.hub.close();
        smol::block_on(
            async {
                // The sender is dropped with the last connection.
                let _ = self.done.recv().await;
            }
            .or(async {
                Timer::after(GRACE).await;
            }),
        );
        self.executor.close();
        for thread in self.threads {
            // A panicking executor thread has already written its message to stderr.
            let _ = thread.join();
        }
    }
}

fn router(gateway: &Arc<Gateway>) -> Router {
    agent::routes()
        .merge(human::routes())
        .merge(page::routes())
        // Every reader of a body has a limit of its own.
        .layer(DefaultBodyLimit::disable())
        .with_state(Arc::clone(gateway))
}

async fn accept(
    listener: Async<TcpListener>,
    shared: Arc<Shared>,
    executor: Arc<Executor<'static>>,
    finished: Sender<()>,
) {
    loop {
        let accepted = async { Some(listener.accept().await) }
            .or(async {
                // Closed when the gateway stops.
                let _ = shared.stop.recv().await;
                None
            })
            .await;
        match accepted {
            None => return,
            Some(Ok((stream, peer))) => {
                let task = serve(stream, peer.ip(), Arc::clone(&shared), finished.clone());
                executor.spawn(task).detach();
            }
            Some(Err(error)) => {
                log::line(format_args!("accept: {error}"));
                Timer::after(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve(
    mut stream: Async<TcpStream>,
    peer: IpAddr,
    shared: Arc<Shared>,
    _finished: Sender<()>,
) {
    let open = Open::new(&shared);
    if open.0 > CONNECTIONS {
        let refusal: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\
            Retry-After: 5\r\nContent-Length: 0\r\n\r\n";
        let _ = stream.write_all(refusal).await;
        return;
    }
    // Events are small and late is worse than one packet more; a failure only means delay.
    let _ = stream.get_ref().set_nodelay(true);
    let (cut, was_cut) = async_channel::bounded::<()>(1);
    let service =
        service_fn(|request: Request<Incoming>| answer(&shared, request, peer, cut.clone()));
    let connection = http1::Builder::new()
        .timer(SmolTimer::new())
        .header_read_timeout(HEAD_TIME)
        .half_close(true)
        .serve_connection(FuturesIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = async { Some(connection.as_mut().await) }
        .or(async {
            let _ = was_cut.recv().await;
            None
        })
        .or(async {
            let _ = shared.stop.recv().await;
            None
        })
        .await;
    if ended.is_none() && !was_cut.is_closed() {
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

/// One open connection in the count.
struct Open<'s>(usize, &'s AtomicUsize);

impl<'s> Open<'s> {
    fn new(shared: &'s Shared) -> Self {
        Self(shared.open.fetch_add(1, Ordering::Relaxed) + 1, &shared.open)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn answer(
    shared: &Shared,
    mut request: Request<Incoming>,
    peer: IpAddr,
    cut: Cut,
) -> Result<Response, Infallible> {
    let method = request.method().clone();
    let uri = request.uri().clone();
    let headers = request.headers().clone();
    let result = match shared.hosts.check(&request) {
        Ok(()) => {
            request.extensions_mut().insert(Peer(peer));
            request.extensions_mut().insert(Connection(cut));
            let routed = shared.router.clone().oneshot(request.map(Body::new));
            AssertUnwindSafe(routed).catch_unwind().await
        }
        Err(failure) => Ok(Ok(axum::response::IntoResponse::into_response(failure))),
    };
    let mut response = match result {
        Ok(Ok(response)) => response,
        Ok(Err(never)) => match never {},
        Err(panic) => {
            let failure = Failure::internal(format!("panic: {}", panic_text(&*panic)));
            axum::response::IntoResponse::into_response(failure)
        }
    };
    if let Some(failure) = response.extensions().get::<Failure>().cloned() {
        log_failure(&failure, &method, uri.path());
        response = if guard::is_api(&uri) {
            failure.json_response(shared.gateway.lang)
        } else {
            page::failure(&failure, &headers, shared.gateway.lang)
        };
    } else if matches!(response.status(), StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED) {
        let failure = unknown_route(response.status());
        response = if guard::is_api(&uri) {
            failure.json_response(shared.gateway.lang)
        } else {
            page::failure(&failure, &headers, shared.gateway.lang)
        };
    }
    guard::secure(response.headers_mut());
    Ok(response)
}

fn unknown_route(status: StatusCode) -> Failure {
    let message = if status == StatusCode::NOT_FOUND {
        super::failure::said!("这里什么都没有", "there is nothing here")
    } else {
        super::failure::said!("这个接口不接受该方法", "this endpoint does not take that method")
    };
    Failure::new(status, message)
}

fn log_failure(failure: &Failure, method: &http::Method, path: &str) {
    let status = failure.status.as_u16();
    // A login code is part of its path.
    let path = if path.starts_with("/login/") { "/login/…" } else { path };
    match &failure.cause {
        Some(cause) => log::line(format_args!("{method} {path} {status}: {cause}")),
        None => log::line(format_args!("{method} {path} {status}: {}", failure.message.en)),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
