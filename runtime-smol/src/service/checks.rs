//! Whether a gateway is well after a change.

use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::Value;
use ureq::Agent;

use super::Place;
use super::systemd::{journal, systemctl};

/// How long a gateway may take to answer, and its streams to come back: clients wait at most 30 s
/// between two attempts.
const PATIENCE: Duration = Duration::from_secs(60);
/// For one look at `/health`.
const LOOK: Duration = Duration::from_secs(5);
/// Pause between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// A service that crashes right after its start is "active" for a moment.
const SETTLED: Duration = Duration::from_millis(1_000);

/// How many event streams are open; `None` when the gateway does not answer.
pub(super) fn streams(place: &Place) -> Option<u64> {
    health(place).ok()?["streams"].as_u64()
}

/// Waits until the gateway is well: active, answering, without a panic in its log, and with streams
/// again if there were any.
pub(super) fn well(place: &Place, since: Timestamp, streams_before: u64) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    let mut last = String::new();
    while Instant::now() < deadline {
        match look(place, streams_before) {
            Ok(()) => {
                thread::sleep(SETTLED);
                look(place, streams_before)?;
                return no_panic(place, since);
            }
            Err(Trouble::Now(what)) => return Err(what),
            Err(Trouble::Yet(what)) => last = what,
        }
        thread::sleep(LOOK_AGAIN);
    }
    Err(format!("{last} for {} s", PATIENCE.as_secs()))
}

enum Trouble {
    /// It will not get better.
    Now(String),
    /// It may.
    Yet(String),
}

impl From<Trouble> for String {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Now(what) | Trouble::Yet(what) => what,
        }
    }
}

fn look(place: &Place, streams_before: u64) -> Result<(), Trouble> {
    // `is-active` fails for a unit that is not, and prints what it is.
    if let Err(state) = systemctl(&["is-active", &place.name]) {
        return Err(Trouble::Now(format!("the service is not active ({state})")));
    }
    let health = health(place).map_err(Trouble::Yet)?;
    let streams = health["streams"].as_u64().unwrap_or_default();
    if streams_before > 0 && streams == 0 {
        let what = format!("none of {streams_before} event streams came back");
        return Err(Trouble::Yet(what));
    }
    Ok(())
}

fn no_panic(place: &Place, since: Timestamp) -> Result<(), String> {
    let log = journal(&place.name, since).map_err(|error| error.to_string())?;
    match log.lines().find(|line| line.contains("panicked at")) {
        Some(line) => Err(format!("its log has a panic: {line}")),
        None => Ok(()),
    }
}

fn health(place: &Place) -> Result<Value, String> {
    let agent: Agent = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .timeout_global(Some(LOOK))
        .build()
        .into();
    let mut address = place.listen;
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() {
            std::net::Ipv4Addr::LOCALHOST.into()
        } else {
            std::net::Ipv6Addr::LOCALHOST.into()
        });
    }
    let url = format!("http://{address}/health");
    let mut reply = agent.get(&url).call().map_err(|error| format!("{url}: {error}"))?;
    let status = reply.status();
    if !status.is_success() {
        return Err(format!("{url} says {status}"));
    }
    let text = reply.body_mut().read_to_string().map_err(|error| format!("{url}: {error}"))?;
    serde_json::from_str(&text).map_err(|_| format!("{url} gives no JSON"))
}
