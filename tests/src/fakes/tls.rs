//! TLS in front of a plain fake, with a certificate of the authority in `fixtures/tls/ca.pem`.
//!
//! One request for each connection is passed on; its answer is copied back until the plain side
//! ends. That is all that a hook needs, whose stream and question travel on connections of their own.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

const CERTIFICATE: &[u8] = include_bytes!("../../fixtures/tls/server.pem");
const KEY: &[u8] = include_bytes!("../../fixtures/tls/server.key");

/// The path of a file in `fixtures/tls`.
#[must_use]
pub fn fixture(name: &str) -> String {
    format!("{}/fixtures/tls/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Starts a front for the plain `http://` URL; gives its `https://` URL.
///
/// # Panics
/// When the machine has no free port, or the fixtures are broken.
#[must_use]
pub fn front(plain: &str) -> String {
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(KEY).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has them")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("certificate and key belong together");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    let plain = plain.trim_start_matches("http://").to_owned();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (config, plain) = (Arc::clone(&config), plain.clone());
            thread::spawn(move || pass(config, stream, &plain));
        }
    });
    format!("https://{address}")
}

/// Passes one request on; any failure ends the connection.
fn pass(config: Arc<ServerConfig>, stream: TcpStream, plain: &str) -> Option<()> {
    let mut tls = StreamOwned::new(ServerConnection::new(config).ok()?, stream);
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !complete(&request) {
        let read = tls.read(&mut buffer).ok().filter(|read| *read > 0)?;
        request.extend_from_slice(&buffer[..read]);
    }
    let mut other = TcpStream::connect(plain).ok()?;
    other.write_all(&request).ok()?;
    loop {
        let read = other.read(&mut buffer).ok().filter(|read| *read > 0)?;
        tls.write_all(&buffer[..read]).and_then(|()| tls.flush()).ok()?;
    }
}

/// Whether head and body of a request are there.
fn complete(request: &[u8]) -> bool {
    let Some(end) = request.windows(4).position(|window| window == b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8_lossy(&request[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
    request.len() >= end + 4 + length
}
