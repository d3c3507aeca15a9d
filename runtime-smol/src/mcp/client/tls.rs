//! TLS by rustls: the web's authorities, and those of `AGENTMAIL_CA_FILE`. Nothing is read or built
//! before the first `https://` connection.

use std::sync::Arc;

use futures_rustls::TlsConnector;
use futures_rustls::client::TlsStream;
use futures_rustls::pki_types::pem::PemObject as _;
use futures_rustls::pki_types::{CertificateDer, ServerName};
use futures_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};
use smol::lock::OnceCell;
use zcode_mail_core::http::Fault;

use super::dial::Io;

/// The client's side of TLS.
pub(super) struct Tls {
    ca_file: Option<String>,
    config: OnceCell<Option<Arc<ClientConfig>>>,
}

impl Tls {
    pub(super) const fn new(ca_file: Option<String>) -> Self {
        Self { ca_file, config: OnceCell::new() }
    }

    /// Speaks TLS over `stream` with the gateway named `host`.
    pub(super) async fn wrap(
        &self,
        stream: Box<dyn Io>,
        host: &str,
    ) -> Result<TlsStream<Box<dyn Io>>, Fault> {
        let ca_file = self.ca_file.clone();
        let build = || async { blocking::unblock(move || config(ca_file.as_deref())).await };
        let config = self.config.get_or_init(build).await.clone().ok_or(Fault::Tls)?;
        let name = ServerName::try_from(host.to_owned()).map_err(|_| Fault::Tls)?;
        TlsConnector::from(config).connect(name, stream).await.map_err(|_| Fault::Tls)
    }
}

/// `None` when the file of authorities cannot be used: leaving it out would only lead to a less
/// telling failure.
fn config(ca_file: Option<&str>) -> Option<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    if let Some(path) = ca_file {
        for certificate in CertificateDer::pem_file_iter(path).ok()? {
            roots.add(certificate.ok()?).ok()?;
        }
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let mut config = builder
        .with_safe_default_protocol_versions()
        .ok()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Some(Arc::new(config))
}
