//! One question per call: what a person approved at `PreToolUse` is not asked again when ZCode goes
//! on to raise `PermissionRequest` for the very same call.
//!
//! A note in `answered/` of the state directory, named after the mail session and the call's digest
//! (tool, session, turn, call id, directory, input). It counts once, for ten minutes, and only under the same conditions
//! as remembered approvals. A refusal needs no note: ZCode does not ask about a call that was denied.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use zcode_mail_core::config::Settings;
use zcode_mail_core::hook::Call;
use zcode_mail_core::hook::event::Kind;
use zcode_mail_core::hook::outcome::{Because, Verdict};
use zcode_mail_core::relay_key::sha256_hex;

use crate::clock::wall_clock;
use crate::files::{Privacy, make_private_dir, read_private, replace_private};

/// How long a note counts. ZCode raises the second event within milliseconds.
const LIFE: Duration = Duration::from_secs(600);
/// Bytes of a note at most: one digest and a line feed.
const LIMIT: usize = 65;

/// Whether this call was approved at `PreToolUse`; uses the note up.
pub(crate) fn take(call: &Call, settings: &Settings) -> bool {
    if call.event.kind != Kind::PermissionRequest {
        return false;
    }
    let Some(path) = path(call, settings) else { return false };
    let note = match read_private(&path, LIMIT, Privacy::OnlyWeWrite) {
        Ok(Some(note)) => note,
        Ok(None) => return false,
        Err(what) => {
            crate::log(&format!("the earlier answer does NOT count: {what}"));
            return false;
        }
    };
    let fresh = is_fresh(&path);
    // Removed before it counts: a note that cannot be removed would count twice.
    fs::remove_file(&path).is_ok() && fresh && note.trim_ascii() == call.digest().as_bytes()
}

/// Notes an approval of this call. Without the note the person is asked again, so a failure is told
/// and no more.
pub(crate) fn note(call: &Call, settings: &Settings, verdict: &Verdict) {
    let approved = matches!(verdict.because, Because::ApprovedOnce(_));
    if !approved || call.event.kind != Kind::PreToolUse {
        return;
    }
    let Some(path) = path(call, settings) else { return };
    let Some(dir) = path.parent() else { return };
    let written = make_private_dir(dir)
        .and_then(|()| replace_private(&path, format!("{}\n", call.digest()).as_bytes()));
    if let Err(error) = written {
        crate::log(&format!("{}: {error}", path.display()));
    }
    forget_old(dir);
}

/// Where the note of this call is; only calls of mail-driven sessions that have an id have one.
fn path(call: &Call, settings: &Settings) -> Option<PathBuf> {
    let session = settings.session_id.as_ref()?;
    call.event.call_id.as_ref()?;
    let name = sha256_hex(format!("{session}:{}", call.digest()).as_bytes());
    Some(PathBuf::from(settings.state_folder().ok()?).join("answered").join(name))
}

fn is_fresh(path: &std::path::Path) -> bool {
    let modified = fs::symlink_metadata(path).and_then(|meta| meta.modified());
    modified.is_ok_and(|at| age(at).is_some_and(|age| age < LIFE))
}

/// The age of a stamp; `None` for one from the future.
fn age(at: SystemTime) -> Option<Duration> {
    wall_clock().duration_since(at).ok()
}

/// Removes notes that count no more. Most of them are never taken, because ZCode seldom asks twice.
fn forget_old(dir: &std::path::Path) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
        if !is_fresh(&path) {
            // Another hook may have been faster.
            let _ = fs::remove_file(&path);
        }
    }
}
