//! Event streams as the HTML standard tells it, over whole texts: decode everything, normalise the
//! line ends, split, interpret line by line.

use zcode_mail_core::sse::{RETRY_MAX_MS, RETRY_MIN_MS};

/// An event, or the news that one was too large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// An event.
    Event {
        /// Its type.
        name: String,
        /// Its data.
        data: String,
        /// The last id when it was dispatched.
        last_id: String,
    },
    /// An event over a limit.
    TooLarge,
}

/// What outlives a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The last id.
    pub last_id: String,
    /// The reconnection time in milliseconds.
    pub retry: Option<u64>,
}

/// What one connection's `stream` says, with limits of a line and of an event's data.
#[must_use]
pub fn events(stream: &[u8], line_limit: usize, event_limit: usize, kept: &mut Kept) -> Vec<Found> {
    let stream = stream.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(stream);
    let raw = lines(stream);
    let decoded = lines(String::from_utf8_lossy(stream).as_bytes());
    assert_eq!(raw.len(), decoded.len(), "decoding neither makes nor loses a line end");

    let mut found = Vec::new();
    let (mut data, mut name, mut id) = (Vec::new(), String::new(), kept.last_id.clone());
    let mut too_large = false;
    let last = raw.len() - 1;
    for (number, (raw, line)) in raw.iter().zip(&decoded).enumerate() {
        let line = std::str::from_utf8(line).expect("decoded text");
        if line.starts_with(':') {
            continue;
        }
        if raw.len() > line_limit {
            if !too_large {
                found.push(Found::TooLarge);
            }
            too_large = true;
            continue;
        }
        if number == last {
            break; // A line that has not ended says nothing more.
        }
        if line.is_empty() {
            kept.last_id.clone_from(&id);
            if !too_large && !data.is_empty() {
                let name = if name.is_empty() { "message" } else { &name }.to_owned();
                let last_id = id.clone();
                found.push(Found::Event { name, data: data.join("\n"), last_id });
            }
            data.clear();
            name.clear();
            too_large = false;
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut name),
            "data" if !too_large => {
                data.push(value.to_owned());
                if data.join("\n").len() > event_limit {
                    found.push(Found::TooLarge);
                    too_large = true;
                }
            }
            "id" if !value.contains('\0') => value.clone_into(&mut id),
            "retry" if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) => {
                let wish = value.parse().unwrap_or(u64::MAX);
                kept.retry = Some(wish.clamp(RETRY_MIN_MS, RETRY_MAX_MS));
            }
            _ => {}
        }
    }
    found
}

/// The lines of `bytes`; the last one is what follows the last line end.
fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut lines = vec![Vec::new()];
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"\r\n") {
            lines.push(Vec::new());
            at += 2;
            continue;
        }
        match bytes[at] {
            b'\r' | b'\n' => lines.push(Vec::new()),
            byte => lines.last_mut().expect("there is always one").push(byte),
        }
        at += 1;
    }
    lines
}
