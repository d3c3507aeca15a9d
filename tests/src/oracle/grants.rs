//! Laws of [`Grants`].
//!
//! 1. Equal to [`reference::grants`](crate::reference::grants): after every step what is covered
//!    is what a human granted at that very session and tool, used lately, and not taken back.
//! 2. The file reads back as the same set, and the same set is the same file.
//! 3. A file that is cut off anywhere gives an error and no grants; a damaged one gives an error or
//!    a set that is a file again.

use crate::reference::grants::Rows;
use crate::script::grants::{Script, Step};
use zcode_mail_core::grants::Grants;
use zcode_mail_core::time::UnixMillis;

/// 2026-09-02T11:41:16.744Z, in Unix milliseconds.
const START: i64 = 1_788_349_276_744;

/// Checks all laws.
///
/// # Panics
/// When one does not hold.
pub fn check(bytes: &[u8]) {
    let script = Script::decode(bytes);
    let mut now = START;
    let (mut set, mut other) = (Grants::new(), Grants::new());
    let (mut rows, mut other_rows) = (Rows::default(), Rows::default());
    for step in &script.steps {
        match *step {
            Step::Add(session, tool) => {
                assert!(set.add(session, tool, UnixMillis(now)));
                rows.add(session, tool, now);
            }
            Step::Touch(session, tool) => {
                let moved = set.touch(session, tool, UnixMillis(now));
                assert_eq!(moved, rows.touch(session, tool, now), "{script:?}");
            }
            Step::Revoke(session, tool) => {
                set.revoke(session, tool);
                rows.revoke(session, tool);
            }
            Step::RevokeSession(session) => {
                set.revoke_session(session);
                rows.revoke_session(session);
            }
            Step::Prune => {
                set.prune(UnixMillis(now));
                let kept = rows.clone();
                rows.0.retain(|row| kept.covers(&row.session, &row.tool, now));
            }
            // Stamps before 1970 are no stamps; the clock of a script does not get there.
            Step::Move(by) => now = (now + by).max(0),
            Step::Swap => {
                std::mem::swap(&mut set, &mut other);
                std::mem::swap(&mut rows, &mut other_rows);
            }
            Step::Merge => {
                set.merge(&other);
                rows.merge(&other_rows);
            }
            Step::Cut(share) => cut(&set, share),
            Step::Damage(share, byte) => damage(&set, share, byte),
        }
        for (session, tool) in Script::names() {
            let covered = set.covers(session, tool, UnixMillis(now));
            assert_eq!(covered, rows.covers(session, tool, now), "{session:?} {tool:?} {script:?}");
        }
    }
    compare(&script, &set, &rows);
    compare(&script, &other, &other_rows);
}

fn compare(script: &Script, set: &Grants, rows: &Rows) {
    let file = set.to_json();
    assert_eq!(Grants::parse(file.as_bytes()).as_ref(), Ok(set), "{script:?}");
    assert_eq!(set.len(), rows.0.len(), "{script:?}");
    for grant in set.iter() {
        let same = rows.0.iter().any(|row| {
            row.session == grant.session
                && row.tool == grant.tool
                && row.granted == grant.granted_at.0
                && row.used == grant.used_at.0
        });
        assert!(same, "{grant:?} {script:?}");
    }
}

fn cut(set: &Grants, share: u8) {
    let file = set.to_json();
    let complete = file.trim_end().len();
    let end = complete * usize::from(share) / 256;
    assert!(end < complete);
    let result = Grants::parse(&file.as_bytes()[..end]);
    assert!(result.is_err(), "a part of a file gives grants: {}", &file[..end]);
}

fn damage(set: &Grants, share: u8, byte: u8) {
    let mut file = set.to_json().into_bytes();
    let place = file.len() * usize::from(share) / 256;
    file[place] = byte;
    if let Ok(read) = Grants::parse(&file) {
        assert_eq!(Grants::parse(read.to_json().as_bytes()), Ok(read));
    }
}
