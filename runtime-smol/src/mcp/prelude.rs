//! The conversation before any call needs the world: answered on the bare descriptors.
//!
//! A host asks who this is and for the list of tools, and a throw-away twin is asked nothing else.
//! So as long as every message is answered at once, no runtime is started: no thread, no reactor, no
//! signal handler. The first call that needs the gateway, or a client that has settled in, ends the
//! prelude, and [`super::serve`] goes on with the same buffers.
//!
//! Signals keep their default here, which ends the process at once.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use zcode_mail_core::rpc::Event;

use super::parent::{PARENT_CHECK, Parent};
use super::streams::{CHUNK, Raw};
use super::talk::Talk;

/// How the prelude ends.
pub(super) enum Prelude {
    /// The runtime is needed.
    Go,
    /// The conversation is over.
    Over,
}

/// Answers what can be answered at once.
pub(super) fn play(raw: &Raw, talk: &mut Talk) -> Prelude {
    let parent = Parent::now();
    let mut chunk = vec![0; CHUNK];
    let mut ended = false;
    loop {
        talk.take_lines();
        if talk.events.iter().any(|event| !matches!(event, Event::Initialized)) {
            return Prelude::Go;
        }
        if ended && talk.is_over() {
            return Prelude::Over;
        }
        let settled = !talk.events.is_empty() && Instant::now() >= talk.settles_at();
        if settled {
            return Prelude::Go;
        }
        let (unsent, inbox) = talk.ends();
        // What waits to be written goes first, and nothing is read meanwhile.
        let attempt = if unsent.is_empty() {
            let got = raw.input.read(&mut chunk);
            inbox.extend(chunk.get(..*got.as_ref().unwrap_or(&0)).unwrap_or_default());
            if let Ok(0) = got {
                ended = true;
                talk.session.close();
            }
            got.map(|_| ())
        } else {
            raw.output.write(unsent).map(|count| talk.wrote(count))
        };
        match attempt {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if parent.is_gone() {
                    return Prelude::Over;
                }
                wait(raw, talk);
            }
            // Nobody reads the answers, or nothing more will be asked.
            Err(_) => return Prelude::Over,
        }
    }
}

/// Waits until the stream that is due can be used, or until it is time to look around.
fn wait(raw: &Raw, talk: &mut Talk) {
    let until = if talk.events.is_empty() {
        PARENT_CHECK
    } else {
        talk.settles_at().saturating_duration_since(Instant::now()).min(PARENT_CHECK)
    };
    // At least a millisecond, so that a moment that is nearly there is not polled for.
    let until = until.max(Duration::from_millis(1));
    let timeout = Timespec {
        tv_sec: i64::try_from(until.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: until.subsec_nanos().into(),
    };
    let mut fds = [if talk.ends().0.is_empty() {
        PollFd::new(&raw.input, PollFlags::IN)
    } else {
        PollFd::new(&raw.output, PollFlags::OUT)
    }];
    // Interrupted or not, the next attempt tells.
    let _ = poll(&mut fds, Some(&timeout));
}
