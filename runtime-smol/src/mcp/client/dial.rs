//! Connections: name, TCP, proxy, TLS, HTTP/1.1.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use async_io::Timer;
use futures_lite::{AsyncRead, AsyncWrite, future};
use hyper::client::conn::http1::{SendRequest, handshake};
use smol::net::TcpStream;
use smol::{LocalExecutor, Task};
use smol_hyper::rt::FuturesIo;
use zcode_mail_core::config::Settings;
use zcode_mail_core::http::Fault;

use super::Body;
use crate::mcp::target::{Base, Target};

/// Until a connection stands, TLS included.
const CONNECT: Duration = Duration::from_secs(5);

/// A byte stream to a gateway.
pub(super) trait Io: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

type Stream = Box<dyn Io>;

/// Makes connections.
pub(super) struct Dialer {
    executor: Rc<LocalExecutor<'static>>,
    proxy: Option<Result<Base, String>>,
    #[cfg(feature = "tls")]
    tls: super::tls::Tls,
}

impl Dialer {
    pub(super) fn new(executor: Rc<LocalExecutor<'static>>, settings: &Settings) -> Self {
        Self {
            executor,
            proxy: settings.proxy.as_deref().map(Base::parse),
            #[cfg(feature = "tls")]
            tls: super::tls::Tls::new(settings.ca_file.clone()),
        }
    }

    /// The proxy for a gateway, if it is to be reached through one.
    fn proxy_for(&self, base: &Base) -> Result<Option<&Base>, Fault> {
        match &self.proxy {
            _ if base.is_loopback() => Ok(None),
            None => Ok(None),
            Some(Ok(proxy)) => Ok(Some(proxy)),
            // A proxy that was asked for is never silently left out.
            Some(Err(_)) => Err(Fault::Unreachable),
        }
    }

    /// Gives a request the form that the way to the gateway wants: a plain proxy wants the whole
    /// URL (RFC 9112 section 3.2.2).
    pub(super) fn adapt(
        &self,
        target: &Target,
        request: &mut hyper::Request<Body>,
    ) -> Result<(), Fault> {
        if target.base.tls || self.proxy_for(&target.base)?.is_none() {
            return Ok(());
        }
        let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
        let whole = format!("http://{}{path}", target.base.authority);
        *request.uri_mut() = whole.parse().map_err(|_| Fault::NotHttp)?;
        Ok(())
    }

    /// A connection that is ready for requests.
    pub(super) async fn connect(
        &self,
        base: &Base,
    ) -> Result<(SendRequest<Body>, Task<()>), Fault> {
        let limit = async {
            Timer::after(CONNECT).await;
            Err(Fault::TimedOut)
        };
        let stream = future::or(self.stream(base), limit).await?;
        let (sender, connection) =
            handshake(FuturesIo::new(stream)).await.map_err(|error| super::fault(&error))?;
        let driver = self.executor.spawn(async move {
            // What goes wrong here is told by the exchange that it breaks.
            let _ = connection.await;
        });
        Ok((sender, driver))
    }

    async fn stream(&self, base: &Base) -> Result<Stream, Fault> {
        let proxy = self.proxy_for(base)?;
        let stream: Stream = Box::new(tcp(proxy.unwrap_or(base)).await?);
        if !base.tls {
            return Ok(stream);
        }
        let stream = if proxy.is_some() { self.tunnel(stream, base).await? } else { stream };
        #[cfg(feature = "tls")]
        return Ok(Box::new(self.tls.wrap(stream, &base.host).await?));
        // `Base::parse` refuses https in such a build.
        #[cfg(not(feature = "tls"))]
        return Ok(stream);
    }

    /// Has the proxy connect us through (RFC 9110 section 9.3.6).
    async fn tunnel(&self, stream: Stream, base: &Base) -> Result<Stream, Fault> {
        let error = |error| super::fault(&error);
        let (mut sender, connection) = handshake(FuturesIo::new(stream)).await.map_err(error)?;
        let driver = self.executor.spawn(async move {
            let _ = connection.with_upgrades().await;
        });
        let bracketed =
            if base.host.contains(':') { format!("[{}]", base.host) } else { base.host.clone() };
        let authority = format!("{bracketed}:{}", base.port);
        let request = hyper::Request::connect(authority.as_str())
            .header("host", &authority)
            .body(super::empty())
            .map_err(|_| Fault::NotHttp)?;
        let reply = sender.send_request(request).await.map_err(error)?;
        if !reply.status().is_success() {
            return Err(Fault::Unreachable);
        }
        let upgraded = hyper::upgrade::on(reply).await.map_err(error)?;
        driver.await;
        let parts = upgraded.downcast::<FuturesIo<Stream>>().map_err(|_| Fault::NotHttp)?;
        if parts.read_buf.is_empty() { Ok(parts.io.into_inner()) } else { Err(Fault::NotHttp) }
    }
}

async fn tcp(base: &Base) -> Result<TcpStream, Fault> {
    let found = smol::net::resolve((base.host.as_str(), base.port)).await;
    let addresses = found.map_err(|_| Fault::Unresolvable)?;
    let mut last = Fault::Unresolvable;
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                // Requests are small and wait for their answer.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => last = Fault::TimedOut,
            Err(_) => last = Fault::Unreachable,
        }
    }
    Err(last)
}
