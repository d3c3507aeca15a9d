//! The gateway's log: one line per event on stderr. Keys, passwords, codes and mail texts never
//! reach it.

use std::fmt;
use std::io::Write as _;

use super::stamp;

/// Writes one line with a time stamp. Control characters of `message` are escaped, so that nothing
/// a client sends can forge a line; a stderr that cannot be written to is ignored.
pub(super) fn line(message: fmt::Arguments<'_>) {
    let mut text = format!("{} ", stamp::rfc3339(stamp::now()));
    for c in message.to_string().chars() {
        if c.is_control() {
            text.extend(c.escape_default());
        } else {
            text.push(c);
        }
    }
    text.push('\n');
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
