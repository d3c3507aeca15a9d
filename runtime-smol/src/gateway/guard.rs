//! Checks that come before any route: the Host header against DNS rebinding, the origin of
//! state-changing browser requests against cross-site forgery, and the headers of every answer.

use std::net::{IpAddr, SocketAddr};

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, StatusCode, Uri};

use super::failure::{Failure, said};

/// The content security policy of every answer: nothing from anywhere but this gateway, no inline
/// script or style, no framing, forms only to itself.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; manifest-src 'self'; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";

/// The host names under which this gateway answers.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    names: Vec<String>,
    any_address: bool,
}

impl Hosts {
    /// The loopback names, the listen address and `allowed`. On a wildcard address every IP
    /// literal is right too: rebinding needs a name, and one literal cannot stand for another.
    #[must_use]
    pub(super) fn new(listen: SocketAddr, allowed: &[String]) -> Self {
        let mut names = vec!["localhost".to_owned()];
        names.extend(allowed.iter().map(|name| name.trim_end_matches('.').to_ascii_lowercase()));
        names.push(listen.ip().to_string());
        Self { names, any_address: listen.ip().is_unspecified() }
    }

    fn allow(&self, host: &str) -> bool {
        let bare = host_part(host);
        if let Ok(address) = bare.parse::<IpAddr>()
            && (self.any_address || address.is_loopback())
        {
            return true;
        }
        self.names.iter().any(|name| name.eq_ignore_ascii_case(bare))
    }

    /// Refuses a request for another host: 400 without a host, 403 for a wrong one.
    ///
    /// # Errors
    ///
    /// The refusal.
    pub(super) fn check<B>(&self, request: &Request<B>) -> Result<(), Failure> {
        let Some(host) = requested_host(request) else {
            return Err(Failure::bad_request(said!(
                "请求须恰好带一个 Host 头",
                "the request must carry exactly one Host header"
            )));
        };
        if self.allow(&host) {
            return Ok(());
        }
        Err(Failure::new(
            StatusCode::FORBIDDEN,
            said!("网关不以这个主机名提供服务", "the gateway does not serve this host name"),
        )
        .suggest(said!(
            "用 http://127.0.0.1 访问，或以 --allow-host 加上这个名字再启动网关",
            "use http://127.0.0.1, or start the gateway with --allow-host for this name"
        )))
    }
}

/// The host and port the request is for: of an absolute request target, else of the only Host
/// header.
#[must_use]
pub(super) fn requested_host<B>(request: &Request<B>) -> Option<String> {
    if let Some(authority) = request.uri().authority() {
        return Some(authority.as_str().to_owned());
    }
    single(request.headers(), &header::HOST)
}

/// Whether a browser page of another origin may have caused this request. `Sec-Fetch-Site` and
/// `Origin` come from the browser and cannot be set by a page.
///
/// # Errors
///
/// 403 when either names another origin. When both are missing and `required` is set (a cookie
/// speaks for the caller) the request is refused too.
pub(super) fn check_origin(
    method: &Method,
    headers: &HeaderMap,
    required: bool,
) -> Result<(), Failure> {
    if method.is_safe() {
        return Ok(());
    }
    let refuse = || {
        Failure::new(
            StatusCode::FORBIDDEN,
            said!("拒绝来自其它网站的请求", "requests from other sites are refused"),
        )
        .suggest(said!("请从网关自己的页面操作", "act from the gateway's own page"))
    };
    let site = headers.get("sec-fetch-site");
    if site.is_some_and(|site| site != "same-origin" && site != "none") {
        return Err(refuse());
    }
    let origin = headers.get(header::ORIGIN);
    if let Some(origin) = origin {
        let host = single(headers, &header::HOST);
        let same = origin.to_str().ok().zip(host).is_some_and(|(origin, host)| {
            origin
                .strip_prefix("http://")
                .or_else(|| origin.strip_prefix("https://"))
                .is_some_and(|name| name.eq_ignore_ascii_case(&host))
        });
        if !same {
            return Err(refuse());
        }
    }
    if required && site.is_none() && origin.is_none() {
        return Err(refuse());
    }
    Ok(())
}

/// Adds the security headers that every answer carries, and `no-store` where nothing else is said.
///
/// The referrer policy is `same-origin`: other sites learn as little as under `no-referrer`, but
/// under that policy browsers send `Origin: null` with forms, and the origin check needs the truth.
pub(super) fn secure(headers: &mut HeaderMap) {
    let fixed: [(HeaderName, &'static str); 6] = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// Whether `uri` belongs to the JSON interface, so that errors are JSON and not pages.
#[must_use]
pub(super) fn is_api(uri: &Uri) -> bool {
    uri.path().starts_with("/api/") || uri.path() == "/health"
}

fn single(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?.to_owned();
    values.next().is_none().then_some(value)
}

fn host_part(host: &str) -> &str {
    let bare = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    bare.trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(listen: &str, allowed: &[&str]) -> Hosts {
        let allowed: Vec<_> = allowed.iter().map(|name| (*name).to_owned()).collect();
        Hosts::new(listen.parse().unwrap(), &allowed)
    }

    #[test]
    fn a_loopback_gateway_answers_loopback_names_only() {
        let hosts = hosts("127.0.0.1:8180", &[]);
        for good in [
            "127.0.0.1:8180",
            "127.0.0.1",
            "localhost:8180",
            "LOCALHOST",
            "[::1]:8180",
            "127.9.9.9",
        ] {
            assert!(hosts.allow(good), "{good}");
        }
        for bad in [
            "evil.example",
            "evil.example:8180",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "192.168.1.2:8180",
            "localhost@evil.example",
            "[::2]:8180",
            "",
            ":8180",
            "[",
        ] {
            assert!(!hosts.allow(bad), "{bad}");
        }
    }

    #[test]
    fn a_wildcard_gateway_answers_addresses_and_allowed_names() {
        let hosts = hosts("0.0.0.0:8180", &["Mail.Example."]);
        for good in ["192.168.1.2:8180", "[fe80::1]:8180", "mail.example:8180", "mail.example."] {
            assert!(hosts.allow(good), "{good}");
        }
        for bad in ["evil.example", "xmail.example", "mail.example.evil"] {
            assert!(!hosts.allow(bad), "{bad}");
        }
    }

    #[test]
    fn a_state_change_from_another_origin_is_refused() {
        let check = |pairs: &[(&'static str, &'static str)], required| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static("127.0.0.1:8180"));
            for (name, value) in pairs {
                headers.append(*name, HeaderValue::from_static(value));
            }
            check_origin(&Method::POST, &headers, required).is_ok()
        };
        for required in [true, false] {
            assert!(check(&[("origin", "http://127.0.0.1:8180")], required));
            assert!(check(&[("origin", "https://127.0.0.1:8180")], required));
            assert!(check(&[("sec-fetch-site", "same-origin")], required));
            assert!(check(&[("sec-fetch-site", "none")], required));
            for bad in [
                ("origin", "http://127.0.0.1"),
                ("origin", "http://127.0.0.1:81800"),
                ("origin", "http://evil.example"),
                ("origin", "null"),
                ("origin", ""),
                ("sec-fetch-site", "same-site"),
                ("sec-fetch-site", "cross-site"),
            ] {
                assert!(!check(&[bad], required), "{bad:?}");
            }
            assert!(!check(
                &[("origin", "http://127.0.0.1:8180"), ("sec-fetch-site", "cross-site")],
                required
            ));
        }
        assert!(check(&[], false));
        assert!(!check(&[], true));
    }
}
