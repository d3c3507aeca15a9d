//! The turn log (wire gap G-2): one line for every mail that the model sent, for a driver that
//! wants to know at the end of a turn whether the model has answered already.
//!
//! The driver names the file in `AGENTMAIL_TURN_LOG`; without it nothing is written. A line that
//! cannot be written is dropped: the mail is sent either way, and the driver has another way to
//! find out.

use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use zcode_mail_core::time::UnixMillis;
use zcode_mail_core::tool::SentRecord;

use super::log::Log;

/// Appends `record` to the file at `path`, as one write.
pub(super) async fn append(path: &str, record: &SentRecord, log: Log) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = UnixMillis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
    let (path, line) = (path.to_owned(), record.to_line(now));
    let write = move || {
        let mut options = std::fs::OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            options.mode(0o600);
        }
        options.open(&path)?.write_all(line.as_bytes())
    };
    if let Err(error) = blocking::unblock(write).await {
        log.info(&format!("the turn log cannot be written: {error}"));
    }
}
