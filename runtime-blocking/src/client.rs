//! HTTP over ureq: requests of the core to the gateway, failures back as [`Fault`]s.
//!
//! Never follows a redirect, so that the key goes to no other host. Proxy variables of the
//! environment do not count; `AGENTMAIL_PROXY` does, but never for a gateway on this machine
//! (faults row 26).

use std::io::{self, Read as _};
use std::time::Duration;

use ureq::http::{HeaderMap, Response, header};
use ureq::{Agent, Body, Proxy};
use zcode_mail_core::config::{Credential, Settings};
use zcode_mail_core::hook::machine::IDLE_MS;
use zcode_mail_core::http::{Fault, Method, Outcome, REPLY_BODY_LIMIT, Reply, Request};

/// To find and reach the gateway.
const CONNECT: Duration = Duration::from_secs(5);
/// For a whole exchange, and for the head of a stream.
const EXCHANGE: Duration = Duration::from_secs(30);
/// Between two reads of a stream. The machine gives a silent stream up before that; this frees the
/// thread that still waits for it.
const STREAM_READ: Duration = Duration::from_millis(IDLE_MS + 5_000);

/// The gateway, as seen by this process.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    agent: Agent,
    base: String,
    headers: Vec<(&'static str, String)>,
}

/// An [`Outcome`] that owns its parts.
#[derive(Clone, Debug)]
pub(crate) enum Arrived {
    /// A reply.
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

impl Arrived {
    /// The same, borrowed.
    pub(crate) fn outcome(&self) -> Outcome<'_> {
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

impl Client {
    /// Prepares; connects to nothing.
    ///
    /// # Errors
    /// A sentence when a setting cannot be used.
    pub(crate) fn new(settings: &Settings, credential: &Credential) -> Result<Self, String> {
        let url = &settings.gateway_url;
        let host = host(url).ok_or_else(|| {
            format!("AGENTMAIL_GATEWAY_URL={url} is no http:// or https:// address")
        })?;
        let proxy = match &settings.proxy {
            Some(_) if is_loopback(&host) => None,
            Some(proxy) => {
                Some(Proxy::new(proxy).map_err(|error| format!("AGENTMAIL_PROXY: {error}"))?)
            }
            None => None,
        };
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(proxy)
            .user_agent(concat!("zcode-mail-hook/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_send_request(Some(EXCHANGE))
            .timeout_send_body(Some(EXCHANGE))
            .timeout_recv_response(Some(EXCHANGE));
        let config = tls(config, settings, url)?;
        let mut headers = Vec::new();
        match credential {
            Credential::Key(key) => {
                headers.push(("authorization", format!("Bearer {}", key.expose())));
            }
            Credential::Shared(secret) => {
                headers.push(("x-agent-secret", secret.expose().to_owned()));
                if let Some(name) = &settings.agent_name {
                    headers.push(("x-agent-name", name.clone()));
                }
            }
        }
        Ok(Self { agent: config.build().into(), base: url.clone(), headers })
    }

    /// One exchange, with the whole reply.
    pub(crate) fn exchange(&self, request: &Request) -> Arrived {
        self.send(request, "application/json", Some(EXCHANGE), None)
            .map_or_else(|error| Arrived::Failed(fault(&error)), whole)
    }

    /// Opens a stream: a 2xx comes with its reader, anything else as a whole reply.
    pub(crate) fn open(&self, request: &Request) -> (Arrived, Option<impl io::Read + use<>>) {
        match self.send(request, "text/event-stream", None, Some(STREAM_READ)) {
            Err(error) => (Arrived::Failed(fault(&error)), None),
            Ok(response) if response.status().is_success() => {
                let (parts, body) = response.into_parts();
                (head(parts.status.as_u16(), &parts.headers, Vec::new()), Some(body.into_reader()))
            }
            Ok(response) => (whole(response), None),
        }
    }

    fn send(
        &self,
        request: &Request,
        accept: &str,
        global: Option<Duration>,
        per_read: Option<Duration>,
    ) -> Result<Response<Body>, ureq::Error> {
        let url = format!("{}{}", self.base, request.path);
        let mut builder = ureq::http::Request::builder()
            .method(request.method.as_str())
            .uri(url)
            .header(header::ACCEPT, accept);
        for (name, value) in &self.headers {
            builder = builder.header(*name, value);
        }
        if let Some(id) = &request.last_event_id {
            builder = builder.header("last-event-id", id);
        }
        match (request.method, &request.body) {
            (Method::Post, body) => {
                let body = body.as_deref().unwrap_or_default();
                let request =
                    builder.header(header::CONTENT_TYPE, "application/json").body(body)?;
                let request = self
                    .agent
                    .configure_request(request)
                    .timeout_global(global)
                    .timeout_per_read(per_read)
                    .build();
                self.agent.run(request)
            }
            (Method::Get, _) => {
                let request = self
                    .agent
                    .configure_request(builder.body(())?)
                    .timeout_global(global)
                    .timeout_per_read(per_read)
                    .build();
                self.agent.run(request)
            }
        }
    }
}

/// Reads a reply to its end.
fn whole(response: Response<Body>) -> Arrived {
    let (parts, body) = response.into_parts();
    let most = u64::try_from(REPLY_BODY_LIMIT).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    match body.into_reader().take(most).read_to_end(&mut bytes) {
        Err(error) => Arrived::Failed(io_fault(&error)),
        Ok(_) if bytes.len() > REPLY_BODY_LIMIT => Arrived::Failed(Fault::TooLarge),
        Ok(_) => head(parts.status.as_u16(), &parts.headers, bytes),
    }
}

fn head(status: u16, headers: &HeaderMap, body: Vec<u8>) -> Arrived {
    let text = |name| headers.get(name)?.to_str().ok().map(str::to_owned);
    Arrived::Reply {
        status,
        content_type: text(header::CONTENT_TYPE),
        retry_after: text(header::RETRY_AFTER),
        date: text(header::DATE),
        body,
    }
}

/// The host of an `http://` or `https://` URL, without port and brackets.
fn host(url: &str) -> Option<String> {
    let uri: ureq::http::Uri = url.parse().ok()?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return None;
    }
    Some(uri.host()?.trim_matches(['[', ']']).to_ascii_lowercase())
}

/// Whether a host is this machine: such traffic never goes through a proxy.
fn is_loopback(host: &str) -> bool {
    let name = host.trim_end_matches('.');
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

type Builder = ureq::config::ConfigBuilder<ureq::typestate::AgentScope>;

/// Adds the certificate authorities of `AGENTMAIL_CA_FILE` to the usual ones.
#[cfg(feature = "tls")]
fn tls(config: Builder, settings: &Settings, url: &str) -> Result<Builder, String> {
    use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

    let Some(path) = settings.ca_file.as_ref().filter(|_| url.starts_with("https:")) else {
        return Ok(config);
    };
    let pem = std::fs::read(path).map_err(|error| format!("AGENTMAIL_CA_FILE={path}: {error}"))?;
    let mut roots = Vec::new();
    for item in parse_pem(&pem) {
        match item {
            Ok(PemItem::Certificate(certificate)) => roots.push(certificate),
            Ok(_) => {}
            Err(error) => return Err(format!("AGENTMAIL_CA_FILE={path}: {error}")),
        }
    }
    if roots.is_empty() {
        return Err(format!("AGENTMAIL_CA_FILE={path} holds no certificate"));
    }
    let public = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
    roots.extend(public.map(|der| Certificate::from_der(der.as_ref())));
    let tls = TlsConfig::builder().root_certs(RootCerts::from(roots)).build();
    Ok(config.tls_config(tls))
}

/// Without TLS only `http://` works.
#[cfg(not(feature = "tls"))]
fn tls(config: Builder, _settings: &Settings, url: &str) -> Result<Builder, String> {
    if url.starts_with("https:") {
        return Err(format!("AGENTMAIL_GATEWAY_URL={url}: this program is built without TLS"));
    }
    Ok(config)
}

/// What a failed exchange means.
fn fault(error: &ureq::Error) -> Fault {
    use ureq::Error;
    match error {
        Error::HostNotFound => Fault::Unresolvable,
        Error::Timeout(_) => Fault::TimedOut,
        Error::ConnectionFailed => Fault::Unreachable,
        Error::Io(error) => io_fault(error),
        Error::Protocol(_) => Fault::NotHttp,
        Error::Tls(_) => Fault::Tls,
        #[cfg(feature = "tls")]
        Error::Rustls(_) | Error::Pem(_) => Fault::Tls,
        _ => Fault::NotHttp,
    }
}

/// What a failed read or connection means.
pub(crate) fn io_fault(error: &io::Error) -> Fault {
    if let Some(inner) = error.get_ref().and_then(|inner| inner.downcast_ref::<ureq::Error>()) {
        return fault(inner);
    }
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Fault::TimedOut,
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe => Fault::Truncated,
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::AddrNotAvailable => Fault::Unreachable,
        // rustls reports a broken handshake as invalid data.
        io::ErrorKind::InvalidData => Fault::Tls,
        // The resolver's own errors have no kind of their own.
        _ if error.to_string().contains("lookup") => Fault::Unresolvable,
        _ => Fault::Unreachable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_loopback() {
        for url in [
            "http://127.0.0.1:8180",
            "http://localhost:1",
            "http://LOCALHOST./x",
            "https://[::1]:8180",
            "http://127.9.9.9",
            "http://[::ffff:127.0.0.1]",
            "http://a.localhost",
        ] {
            assert!(is_loopback(&host(url).unwrap()), "{url}");
        }
        for url in
            ["http://10.0.0.1", "https://mail.example", "http://localhost.example", "http://[::2]"]
        {
            assert!(!is_loopback(&host(url).unwrap()), "{url}");
        }
        for url in ["", "127.0.0.1:8180", "ftp://x", "http://", "file:///etc/passwd", "unix:/x"] {
            assert_eq!(host(url), None, "{url}");
        }
    }
}
