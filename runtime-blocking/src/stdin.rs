//! Reading the event: bounded in size and in time, ended by a signal.

use std::io::{self, Read as _};

use crate::signals::Flag;
use zcode_mail_core::hook::event::{EVENT_LIMIT, EVENT_WAIT_MS, Unreadable};

/// Why there is no event.
#[derive(Debug)]
pub(crate) enum NoEvent {
    /// It cannot be read.
    Unreadable(Unreadable),
    /// A signal came first.
    Signal,
}

/// Reads stdin to its end.
///
/// # Errors
/// [`NoEvent`] when it is too long, does not end in time, cannot be read, or a signal comes first.
#[cfg(unix)]
pub(crate) fn read(signals: &Flag) -> Result<Vec<u8>, NoEvent> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::os::fd::AsFd as _;

    let clock = crate::clock::Clock::start();
    let mut stdin = io::stdin().lock();
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        if signals.raised() {
            return Err(NoEvent::Signal);
        }
        let left = EVENT_WAIT_MS.saturating_sub(clock.now().0);
        if left == 0 {
            return Err(unreadable(Unreadable::NeverEnded));
        }
        let timeout = Timespec {
            tv_sec: i64::try_from(left / 1_000).unwrap_or(0),
            // Below a thousand million, so it fits every width.
            tv_nsec: (left % 1_000 * 1_000_000) as _,
        };
        let fd = stdin.as_fd();
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(unreadable(Unreadable::Io(error.to_string()))),
        }
        match stdin.read(&mut buffer) {
            Ok(0) => return Ok(bytes),
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(Unreadable::Io(error.to_string()))),
        }
        if bytes.len() > EVENT_LIMIT {
            return Err(unreadable(Unreadable::TooLarge));
        }
    }
}

/// Reads stdin to its end, in a thread that is left behind when time runs out.
///
/// # Errors
/// [`NoEvent`] when it is too long, does not end in time, or cannot be read.
#[cfg(not(unix))]
pub(crate) fn read(_signals: &Flag) -> Result<Vec<u8>, NoEvent> {
    use std::sync::mpsc;
    use std::time::Duration;

    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let limit = u64::try_from(EVENT_LIMIT).unwrap_or(u64::MAX).saturating_add(1);
        let result = io::stdin().lock().take(limit).read_to_end(&mut bytes);
        // The receiver is gone when time ran out.
        let _ = send.send(result.map(|_| bytes));
    });
    match receive.recv_timeout(Duration::from_millis(EVENT_WAIT_MS)) {
        Ok(Ok(bytes)) if bytes.len() > EVENT_LIMIT => Err(unreadable(Unreadable::TooLarge)),
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) => Err(unreadable(Unreadable::Io(error.to_string()))),
        Err(_) => Err(unreadable(Unreadable::NeverEnded)),
    }
}

const fn unreadable(error: Unreadable) -> NoEvent {
    NoEvent::Unreadable(error)
}
