//! Which gateway, and as whom.

use std::net::IpAddr;

use http::Uri;
use http::header::HeaderValue;
use zcode_mail_core::config::{Credential, Secret};

/// A gateway's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Base {
    /// Whether the connection is encrypted.
    pub(super) tls: bool,
    /// Host name or address, without brackets.
    pub(super) host: String,
    /// Port.
    pub(super) port: u16,
    /// `host` or `host:port` as the `Host` header has it.
    pub(super) authority: String,
    /// What stands before every path, without a trailing slash; usually empty.
    pub(super) prefix: String,
}

impl Base {
    /// Reads a URL.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let uri: Uri = url.trim().parse().map_err(|error| format!("{error}"))?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") if cfg!(feature = "tls") => true,
            Some("https") => return Err("this program is built without https".into()),
            _ => return Err("it does not start with http:// or https://".into()),
        };
        let authority = uri.authority().ok_or("it names no host")?;
        if authority.as_str().contains('@') {
            return Err("it holds a user name; give the key as agent_key".into());
        }
        if uri.query().is_some() {
            return Err("it holds a query".into());
        }
        let host = authority.host().trim_matches(['[', ']']).to_ascii_lowercase();
        if host.is_empty() {
            return Err("it names no host".into());
        }
        let port = authority.port_u16().unwrap_or(if tls { 443 } else { 80 });
        let prefix = uri.path().trim_end_matches('/').to_owned();
        let authority = authority.as_str().to_ascii_lowercase();
        Ok(Self { tls, host, port, authority, prefix })
    }

    /// The URL, without a trailing slash.
    pub(super) fn url(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.prefix)
    }

    /// Whether both are the same service as far as a key is concerned.
    pub(super) fn same_origin(&self, other: &Self) -> bool {
        (self.tls, &self.host, self.port) == (other.tls, &other.host, other.port)
    }

    /// Whether it is on this machine. Such a gateway is never reached through a proxy.
    pub(super) fn is_loopback(&self) -> bool {
        let local = self.host == "localhost" || self.host.ends_with(".localhost");
        local || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

/// A gateway and the identity to use there.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) base: Base,
    pub(super) credential: Credential,
    pub(super) agent_name: String,
}

impl Target {
    /// The headers that prove the identity.
    pub(super) fn headers(&self) -> Vec<(&'static str, HeaderValue)> {
        let value = |text: &str| {
            let mut value = HeaderValue::from_bytes(text.as_bytes())
                .unwrap_or_else(|_| HeaderValue::from_static(""));
            value.set_sensitive(true);
            value
        };
        match &self.credential {
            Credential::Key(key) => {
                vec![("authorization", value(&format!("Bearer {}", key.expose())))]
            }
            Credential::Shared(secret) => vec![
                ("x-agent-secret", value(secret.expose())),
                ("x-agent-name", value(&self.agent_name)),
            ],
        }
    }
}

/// Whether a secret can travel in a header at all.
pub(super) fn is_sendable(secret: &Secret) -> bool {
    !secret.expose().is_empty() && HeaderValue::from_bytes(secret.expose().as_bytes()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart_and_put_together() {
        for (url, host, port, again) in [
            ("http://127.0.0.1:8180", "127.0.0.1", 8180, "http://127.0.0.1:8180"),
            ("http://Mail.Example/", "mail.example", 80, "http://mail.example"),
            ("http://[::1]:9/a/b/", "::1", 9, "http://[::1]:9/a/b"),
        ] {
            let base = Base::parse(url).unwrap();
            assert_eq!((base.host.as_str(), base.port, base.url().as_str()), (host, port, again));
        }
        for bad in [
            "",
            "mail.example",
            "ftp://x",
            "http://",
            "http://u:p@h/",
            "http://h/?q=1",
            "http://a b",
        ] {
            assert!(Base::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn loopback_and_origin_are_told_from_the_host() {
        let base = |url| Base::parse(url).unwrap();
        for url in ["http://localhost:1", "http://a.localhost", "http://127.9.9.9", "http://[::1]"]
        {
            assert!(base(url).is_loopback(), "{url}");
        }
        for url in ["http://localhost.evil.example", "http://127.0.0.1.example", "http://10.0.0.1"]
        {
            assert!(!base(url).is_loopback(), "{url}");
        }
        assert!(base("http://h/x").same_origin(&base("http://H:80")));
        assert!(!base("http://h:81").same_origin(&base("http://h")));
    }
}
