//! Framing by splitting the whole stream at its newlines.

/// A line, or the news that one was too long.
#[derive(Clone, PartialEq, Eq)]
pub enum Found {
    /// A line without its end.
    Line(Vec<u8>),
    /// A line over the limit, with as much of its beginning.
    TooLong(Vec<u8>),
}

impl std::fmt::Debug for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {}", line.escape_ascii()),
            Self::TooLong(head) => write!(f, "too long: {}...", head.escape_ascii()),
        }
    }
}

/// What a framer with `limit` finds in `stream`.
#[must_use]
pub fn frames(stream: &[u8], limit: usize) -> Vec<Found> {
    let mut lines: Vec<&[u8]> = stream.split(|&byte| byte == b'\n').collect();
    let tail = lines.pop().unwrap_or_default();
    let too_long = |line: &[u8]| Found::TooLong(line[..limit].to_vec());
    let mut found: Vec<Found> = lines
        .iter()
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .map(|line| if line.len() > limit { too_long(line) } else { Found::Line(line.to_vec()) })
        .collect();
    // The tail is no message, but that it is too long is certain before it ends.
    if tail.strip_suffix(b"\r").unwrap_or(tail).len() > limit {
        found.push(too_long(tail));
    }
    found
}
