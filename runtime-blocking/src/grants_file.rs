//! The file of remembered approvals.
//!
//! Anything odd about the file gives no approvals and one loud line: a question too many is asked,
//! never one too few. Writers take a lock beside the file, read it again, apply their one change,
//! and replace it whole.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use zcode_mail_core::config::Settings;
use zcode_mail_core::grants::{BadGrants, FILE_LIMIT, Grants};
use zcode_mail_core::time::Millis;

use crate::clock::{Clock, unix_now};
use crate::files::{Privacy, make_private_dir, open_private, read_private, replace_private};

/// How long a writer waits for its turn, in milliseconds. Fifty writers on a slow disk need less;
/// a stopped one must not hold up an answer for ever.
const LOCK_WAIT_MS: u64 = 10_000;
/// Pause between two looks at the lock.
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// The file.
#[derive(Debug)]
pub(crate) struct GrantsFile {
    path: PathBuf,
}

/// What can be done about a file that gives no approvals.
enum Unusable {
    /// Damaged: it is moved aside before anything is written.
    Damaged(String),
    /// It stays as it is, and nothing is written.
    HandsOff(String),
}

impl GrantsFile {
    /// Where the settings put it.
    ///
    /// # Errors
    /// A sentence when they do not say.
    pub(crate) fn locate(settings: &Settings) -> Result<Self, String> {
        let path = settings.grants_file().map_err(|unsettled| unsettled.to_string())?;
        Ok(Self { path: PathBuf::from(path) })
    }

    /// Whether a remembered approval covers a call of `tool` in `session`.
    pub(crate) fn covers(&self, session: &str, tool: &str) -> bool {
        let mut grants = match self.read() {
            Ok(grants) => grants,
            Err(Unusable::Damaged(what) | Unusable::HandsOff(what)) => {
                crate::log(&format!("NO remembered approvals: {what}"));
                return false;
            }
        };
        let now = unix_now();
        if !grants.covers(session, tool, now) {
            return false;
        }
        if grants.touch(session, tool, now) {
            // The stamp only says when it was used last; losing it costs nothing today.
            let _ = self.change(|grants| grants.touch(session, tool, now));
        }
        true
    }

    /// Remembers an approval. A failure is told on stderr and changes nothing else.
    pub(crate) fn remember(&self, session: &str, tool: &str) {
        if let Err(what) = self.change(|grants| grants.add(session, tool, unix_now())) {
            crate::log(&format!("the approval is NOT remembered: {what}"));
        }
    }

    fn change(&self, apply: impl FnOnce(&mut Grants) -> bool) -> Result<(), String> {
        let shown = self.path.display();
        let fail = |error: io::Error| format!("{shown}: {error}");
        if let Some(dir) = self.path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
            make_private_dir(dir).map_err(fail)?;
        }
        let lock = open_private(&self.path.with_added_extension("lock"), false).map_err(fail)?;
        take(&lock).map_err(|what| format!("{shown}: {what}"))?;
        let mut grants = match self.read() {
            Ok(grants) => grants,
            Err(Unusable::HandsOff(what)) => return Err(what),
            Err(Unusable::Damaged(what)) => {
                let aside = self.path.with_added_extension(format!("damaged-{}", unix_now().0));
                fs::rename(&self.path, &aside).map_err(fail)?;
                crate::log(&format!("{what}; moved to {}", aside.display()));
                Grants::new()
            }
        };
        if apply(&mut grants) {
            replace_private(&self.path, grants.to_json().as_bytes()).map_err(fail)?;
        }
        Ok(())
    }

    fn read(&self) -> Result<Grants, Unusable> {
        let bytes = read_private(&self.path, FILE_LIMIT, Privacy::OnlyWeWrite)
            .map_err(Unusable::HandsOff)?;
        let Some(bytes) = bytes else { return Ok(Grants::new()) };
        Grants::parse(&bytes).map_err(|error| {
            let what = format!("{}: {error}", self.path.display());
            match error {
                BadGrants::LaterVersion(_) => Unusable::HandsOff(what),
                BadGrants::TooLarge | BadGrants::Malformed(_) => Unusable::Damaged(what),
            }
        })
    }
}

/// Takes the lock; it is released when the file is closed, also by a crash.
fn take(lock: &File) -> Result<(), String> {
    let clock = Clock::start();
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if clock.now() < Millis(LOCK_WAIT_MS) => {
                thread::sleep(LOCK_PAUSE);
            }
            Err(TryLockError::WouldBlock) => return Err("another process holds its lock".into()),
            Err(TryLockError::Error(error)) => return Err(error.to_string()),
        }
    }
}
