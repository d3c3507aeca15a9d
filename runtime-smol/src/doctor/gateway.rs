//! The gateway: whether it answers, knows the key, and delivers.

use std::io::Read as _;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use ureq::http::Uri;
use ureq::{Agent, Body, Proxy};
use zcode_mail_core::config::{Credential, DEFAULT_GATEWAY_URL};
use zcode_mail_core::sse::{Item, Parser};

use super::facts::Facts;
use super::settings::{command_lines, host, is_loopback};
use super::{Finding, Report};

/// For a whole exchange.
const EXCHANGE: Duration = Duration::from_secs(15);
/// For the probe to come back. A proxy that holds events back does so for longer.
const PROBE: Duration = Duration::from_secs(10);
/// Clocks that differ by more seconds end requests and sessions at surprising times.
const SKEW_S: i64 = 60;
/// Most bytes of a reply that are looked at.
const REPLY_LIMIT: u64 = 1024 * 1024;
/// The agent's name when `AGENTMAIL_AGENT_NAME` is not set.
const DEFAULT_NAME: &str = "zcode";

/// A reply as far as the checks care.
struct Reply {
    status: u16,
    kind: String,
    date: Option<String>,
    body: Body,
}

struct Client<'f> {
    agent: Agent,
    facts: &'f Facts,
}

pub(super) fn check(facts: &Facts, report: &mut Report) {
    let Some(host) = host(&facts.settings.gateway_url) else { return };
    let url = &facts.settings.gateway_url;
    let agent = match agent(facts, &host) {
        Ok(agent) => agent,
        Err(what) => {
            return report.add(Finding::error(
                "ZM-301",
                format!("连不上网关 {url}：{what}"),
                format!("the gateway {url} cannot be reached: {what}"),
            ));
        }
    };
    let client = Client { agent, facts };
    if !client.alive(report) {
        return;
    }
    client.alone(&host, report);
    if facts.key.is_none() && facts.settings.agent_secret.is_none() {
        return;
    }
    let Some(stream) = client.stream(report) else { return };
    if client.name(report) && facts.probe {
        client.probe(stream, report);
    }
}

impl Client<'_> {
    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.facts.settings.gateway_url)
    }

    fn headers(&self) -> Vec<(&'static str, String)> {
        let settings = &self.facts.settings;
        let credential = match (&self.facts.key, &settings.agent_secret) {
            (Some((key, _)), _) => Credential::Key(key.clone()),
            (None, Some(secret)) => Credential::Shared(secret.clone()),
            (None, None) => return Vec::new(),
        };
        match credential {
            Credential::Key(key) => vec![("authorization", format!("Bearer {}", key.expose()))],
            Credential::Shared(secret) => {
                vec![
                    ("x-agent-secret", secret.expose().to_owned()),
                    ("x-agent-name", self.agent_name().to_owned()),
                ]
            }
        }
    }

    fn agent_name(&self) -> &str {
        self.facts.settings.agent_name.as_deref().unwrap_or(DEFAULT_NAME)
    }

    fn get(
        &self,
        path: &str,
        accept: &str,
        keyed: bool,
        limit: Option<Duration>,
    ) -> Result<Reply, String> {
        let mut request = self.agent.get(self.url(path)).header("accept", accept);
        for (name, value) in self.headers().into_iter().filter(|_| keyed) {
            request = request.header(name, value);
        }
        let sent = request.config().timeout_global(limit).build().call();
        sent.map(reply).map_err(|error| error.to_string())
    }

    fn post(&self, path: &str, body: &Value) -> Result<Reply, String> {
        let mut request =
            self.agent.post(self.url(path)).header("content-type", "application/json");
        for (name, value) in self.headers() {
            request = request.header(name, value);
        }
        let request = request.config().timeout_global(Some(EXCHANGE)).build();
        request.send(body.to_string()).map(reply).map_err(|error| error.to_string())
    }

    /// Whether a gateway answers, and whether its clock is ours.
    fn alive(&self, report: &mut Report) -> bool {
        let url = &self.facts.settings.gateway_url;
        let reply = match self.get("/health", "application/json", false, Some(EXCHANGE)) {
            Ok(reply) => reply,
            Err(what) => {
                report.add(Finding::error(
                    "ZM-301",
                    format!("连不上网关 {url}：{what}；网关在跑吗，地址和端口对吗"),
                    format!("the gateway {url} cannot be reached: {what}; does it run, are address and port right?"),
                ));
                return false;
            }
        };
        let (status, date) = (reply.status, reply.date.clone());
        let html = reply.kind.contains("html");
        let text = reply.text();
        if html || !(200..300).contains(&status) || text.trim_start().starts_with('<') {
            report.add(Finding::error(
                "ZM-302",
                format!("{url} 上答话的不是网关（/health 给出 {status}）；中间有代理或登录页吗"),
                format!("what answers at {url} is not the gateway (/health says {status}); is a proxy or a login page in between?"),
            ));
            return false;
        }
        let there = date.and_then(|text| jiff::fmt::rfc2822::parse(&text).ok());
        if let Some(there) = there.map(|zoned| zoned.timestamp()) {
            let apart = there.as_second() - Timestamp::now().as_second();
            if apart.abs() > SKEW_S {
                report.add(Finding::warning(
                    "ZM-303",
                    format!("网关的时钟和这里差 {apart} 秒；两边都打开 NTP"),
                    format!("the gateway's clock differs from this one by {apart} s; turn NTP on at both ends"),
                ));
            }
        }
        true
    }

    /// Whether another gateway could be mistaken for this one.
    fn alone(&self, own_host: &str, report: &mut Report) {
        let url = &self.facts.settings.gateway_url;
        let found = |what: &str| {
            Finding::warning(
                "ZM-306",
                format!("这里有两个网关：{what}；钩子问的是 {url}，人看的要是同一个"),
                format!(
                    "two gateways run here: {what}; the hook asks {url}, and the human must look at the same one"
                ),
            )
        };
        let data = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let program = words.first().is_some_and(|word| word.ends_with("zcode-mail"));
            let at = words.iter().position(|word| *word == "--data")?;
            let serves = program && words.get(1) == Some(&"gateway");
            words.get(at + 1).filter(|_| serves).map(|dir| (*dir).to_owned())
        };
        let mut running: Vec<(String, u32)> =
            command_lines().iter().filter_map(|(pid, line)| Some((data(line)?, *pid))).collect();
        running.sort();
        if let Some(pair) = running.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let what = format!("{} and {} on {}", pair[0].1, pair[1].1, pair[0].0);
            return report.add(found(&what));
        }
        let port = |url: &str| url.parse::<Uri>().ok().and_then(|uri| uri.port_u16());
        if is_loopback(own_host) && port(url) != port(DEFAULT_GATEWAY_URL) {
            let request = self.agent.get(format!("{DEFAULT_GATEWAY_URL}/health"));
            let sent = request.config().timeout_global(Some(EXCHANGE)).build().call();
            if sent.is_ok_and(|reply| reply.status().is_success()) {
                report.add(found(DEFAULT_GATEWAY_URL));
            }
        }
    }

    /// Opens the event stream with the key.
    fn stream(&self, report: &mut Report) -> Option<Body> {
        let path = "/api/v1/events/stream";
        let reply = match self.get(path, "text/event-stream", true, None) {
            Ok(reply) => reply,
            Err(what) => {
                report.add(stream_closed(&what));
                return None;
            }
        };
        match reply.status {
            200 if reply.kind.starts_with("text/event-stream") => return Some(reply.body),
            401 => report.add(Finding::error(
                "ZM-209",
                "网关不认这把密钥；用 zcode-mail agent-key create 重新签发，或把它登记上去",
                "the gateway does not know this key; make one with zcode-mail agent-key create, or register it",
            )),
            403 => {
                let said = reply.message();
                report.add(Finding::error(
                    "ZM-208",
                    format!("网关认得这把密钥，但它不是 Agent 密钥：{said}"),
                    format!("the gateway knows this key, but not as an agent key (it says: {said})"),
                ));
            }
            status => report.add(stream_closed(&format!("{status} {}", reply.kind))),
        }
        None
    }

    /// Whether the agent's name is the key's.
    fn name(&self, report: &mut Report) -> bool {
        let name = self.agent_name();
        let body = json!({ "name": name, "platform": "zcode", "workspaces": [] });
        let Ok(reply) = self.post("/api/v1/agent/register", &body) else { return false };
        if matches!(reply.status, 403 | 409) {
            let said = reply.message();
            report.add(Finding::error(
                "ZM-210",
                format!("密钥不属于 Agent「{name}」：{said}；改 AGENTMAIL_AGENT_NAME"),
                format!("the key does not belong to the agent \"{name}\"; change AGENTMAIL_AGENT_NAME (the gateway says: {said})"),
            ));
            return false;
        }
        (200..300).contains(&reply.status)
    }

    /// Sends a mail to oneself and waits for its event.
    fn probe(&self, stream: Body, report: &mut Report) {
        let unique = format!("{}-{}", std::process::id(), Timestamp::now().as_millisecond());
        let subject = format!("[zcode-mail doctor] {unique}");
        let (send, receive) = mpsc::channel();
        let wanted = subject.clone();
        // The thread ends with the stream, at the latest with this process.
        thread::spawn(move || {
            let _ = send.send(await_event(stream, &wanted));
        });
        let to = format!("{}@/zcode-mail-doctor.new", self.agent_name());
        let body = json!({ "to": to, "subject": subject, "body": "doctor 的探针，可以忽略。A probe, ignore it." });
        let sent = Instant::now();
        let problem = match self.post("/api/v1/mail/send", &body) {
            Err(what) => Some(what),
            // A limit on mail between agents: the gateway works and says no more about its stream.
            Ok(reply) if matches!(reply.status, 409 | 429) => {
                return report.settings.push(format!("probe: left out ({})", reply.message()));
            }
            Ok(reply) if !(200..300).contains(&reply.status) => {
                let status = reply.status;
                Some(format!("{status}: {}", reply.message()))
            }
            Ok(_) => match receive.recv_timeout(PROBE) {
                Ok(true) => None,
                Ok(false) => Some("the stream ended".to_owned()),
                Err(_) => Some(format!("nothing came within {} s", PROBE.as_secs())),
            },
        };
        match problem {
            None => report.settings.push(format!("probe: came back in {} ms", sent.elapsed().as_millis())),
            Some(what) => report.add(Finding::error(
                "ZM-305",
                format!("寄给自己的探针没有从事件流回来：{what}；中间的代理在攒数据吗"),
                format!("the mail to oneself did not come back on the event stream: {what}; does a proxy hold data back?"),
            )),
        }
    }
}

impl Reply {
    fn text(self) -> String {
        let mut bytes = Vec::new();
        // A reply that breaks off is shown as far as it came.
        let _ = self.body.into_reader().take(REPLY_LIMIT).read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// What the gateway says about a refusal.
    fn message(self) -> String {
        let text = self.text();
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        let said = value["error"].as_str().or_else(|| value["message"].as_str());
        said.unwrap_or_default().chars().take(200).collect()
    }
}

fn reply(response: http::Response<Body>) -> Reply {
    let text = |name: &str| response.headers().get(name)?.to_str().ok().map(str::to_owned);
    let (kind, date) = (text("content-type").unwrap_or_default(), text("date"));
    Reply { status: response.status().as_u16(), kind, date, body: response.into_body() }
}

fn stream_closed(what: &str) -> Finding {
    Finding::error(
        "ZM-304",
        format!("事件流打不开（{what}），人的决定到不了钩子"),
        format!("the event stream does not open ({what}), so decisions cannot reach the hook"),
    )
}

fn await_event(stream: Body, wanted: &str) -> bool {
    let mut reader = stream.into_reader();
    let mut parser = Parser::new();
    let mut chunk = [0; 4096];
    loop {
        let Ok(length) = reader.read(&mut chunk) else { return false };
        if length == 0 {
            return false;
        }
        let mut rest = &chunk[..length];
        loop {
            let (used, item) = parser.feed(rest);
            if let Some(Item::Event(event)) = &item
                && event.data.contains(wanted)
            {
                return true;
            }
            let more = item.is_some();
            rest = &rest[used..];
            if rest.is_empty() && !more {
                break;
            }
        }
    }
}

fn agent(facts: &Facts, host: &str) -> Result<Agent, String> {
    let proxy = match &facts.settings.proxy {
        Some(_) if is_loopback(host) => None,
        Some(proxy) => Some(Proxy::new(proxy).map_err(|e| format!("AGENTMAIL_PROXY: {e}"))?),
        None => None,
    };
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(proxy)
        .user_agent(concat!("zcode-mail-doctor/", env!("CARGO_PKG_VERSION")))
        .timeout_connect(Some(EXCHANGE))
        .timeout_recv_response(Some(EXCHANGE));
    Ok(authorities(config, facts)?.build().into())
}

type Builder = ureq::config::ConfigBuilder<ureq::typestate::AgentScope>;

/// Takes the certificate authorities of `AGENTMAIL_CA_FILE`; without it those of ureq.
#[cfg(feature = "tls")]
fn authorities(config: Builder, facts: &Facts) -> Result<Builder, String> {
    use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
    let Some(path) = &facts.settings.ca_file else { return Ok(config) };
    let pem = std::fs::read(path).map_err(|error| format!("AGENTMAIL_CA_FILE={path}: {error}"))?;
    let roots: Vec<_> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    let tls = TlsConfig::builder().root_certs(RootCerts::from(roots)).build();
    Ok(config.tls_config(tls))
}

#[cfg(not(feature = "tls"))]
fn authorities(config: Builder, _facts: &Facts) -> Result<Builder, String> {
    Ok(config)
}
