//! Remembered approvals ("一直同意", `B-8.7`, `B-8.8`) as data.
//!
//! A grant covers one tool in one session, both compared byte by byte: the human was asked at
//! exactly that scope. It ends seven days after its last use, when its session is archived or
//! reopened with another model ([`Grants::revoke_session`]), or when 500 newer ones push it out.
//!
//! The file is versioned JSON that a person can read:
//!
//! ```json
//! {
//!   "version": 1,
//!   "grants": [
//!     {"session": "7b50…", "tool": "Bash",
//!      "granted_at": "2026-09-02T11:41:16.744Z", "used_at": "2026-09-02T12:00:00Z"}
//!   ]
//! }
//! ```
//!
//! [`Grants::parse`] is strict: a later version, an unknown member or a wrong type is an error and
//! no grants, because a reader that skips a member it does not know (an end, a count, a command
//! prefix) would make the grant wider than what the human said. So every new member needs a new
//! version. The caller keeps a file that it could not read: it moves it aside before it writes, or
//! leaves a later version alone.
//!
//! Two processes that write at once: take the lock, read the file again, apply the one change,
//! write. [`Grants::merge`] joins two files; a set held since before a revocation must not be
//! merged back.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use jiff::Timestamp;
use serde::Serialize;

use crate::strict::{Fields, Invalid};
use crate::time::UnixMillis;

/// The version that this program reads and writes.
pub const VERSION: i64 = 1;
/// Most grants kept; the least recently used go first.
pub const LIMIT: usize = 500;
/// How long an unused grant lives, in milliseconds: seven days.
pub const UNUSED_MS: i64 = 7 * DAY_MS;
/// How far a stamp may lie in the future, in milliseconds. Clocks are set back by hours, not by
/// more than a day; a stamp beyond that proves nothing, and its grant does not count.
pub const SKEW_MS: i64 = DAY_MS;
/// How old a use stamp gets before [`Grants::touch`] asks for a write: an hour, so that a busy
/// session does not rewrite the file with every call.
pub const TOUCH_MS: i64 = 60 * 60 * 1000;
/// Longest session id or tool name, in bytes. Real ones are below 100.
pub const NAME_LIMIT: usize = 1024;
/// Largest file that is read: [`LIMIT`] grants of the longest names, each byte escaped.
pub const FILE_LIMIT: usize = 8 * 1024 * 1024;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// A set of grants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    by_key: BTreeMap<Key, Stamps>,
}

/// Session and tool.
type Key = (String, String);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamps {
    granted: Timestamp,
    used: Timestamp,
}

/// One grant, for listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant<'g> {
    /// The session.
    pub session: &'g str,
    /// The tool.
    pub tool: &'g str,
    /// When the human granted it.
    pub granted_at: UnixMillis,
    /// When it last let a call through.
    pub used_at: UnixMillis,
}

/// A grants file that gives no grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadGrants {
    /// Larger than [`FILE_LIMIT`].
    TooLarge,
    /// Not the JSON that the format asks for; the error names the spot.
    Malformed(Invalid),
    /// Written by a later version of this program. Do not overwrite it.
    LaterVersion(i64),
}

impl fmt::Display for BadGrants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => write!(f, "the grants file is larger than {FILE_LIMIT} bytes"),
            Self::Malformed(invalid) => {
                let what = invalid.text(crate::lang::Lang::En);
                write!(f, "the grants file is damaged: {what}")
            }
            Self::LaterVersion(version) => {
                write!(f, "the grants file has version {version}, this program reads {VERSION}")
            }
        }
    }
}

impl core::error::Error for BadGrants {}

impl Grants {
    /// No grants.
    #[must_use]
    pub const fn new() -> Self {
        Self { by_key: BTreeMap::new() }
    }

    /// Reads a grants file. Of more than [`LIMIT`] grants the most recently used stay.
    ///
    /// # Errors
    /// [`BadGrants`]: the file gives no grants at all. An empty file is malformed, too; a file
    /// that does not exist is [`Grants::new`].
    pub fn parse(file: &[u8]) -> Result<Self, BadGrants> {
        if file.len() > FILE_LIMIT {
            return Err(BadGrants::TooLarge);
        }
        let mut fields = Fields::parse(file).map_err(BadGrants::Malformed)?;
        let version = fields.int("version").map_err(BadGrants::Malformed)?;
        if version > VERSION {
            return Err(BadGrants::LaterVersion(version));
        }
        Self::decode(fields, version).map_err(BadGrants::Malformed)
    }

    fn decode(mut fields: Fields, version: i64) -> Result<Self, Invalid> {
        if version != VERSION {
            return Err(fields.forbidden("version", ("未知", "is not a known version")));
        }
        let mut grants = Self::new();
        for mut entry in fields.opt_object_array("grants")?.unwrap_or_default() {
            let session = name(&mut entry, "session")?;
            let tool = name(&mut entry, "tool")?;
            let granted = stamp(&mut entry, "granted_at")?;
            let used = stamp(&mut entry, "used_at")?;
            entry.finish()?;
            grants.put((session, tool), Stamps { granted, used });
        }
        fields.finish()?;
        Ok(grants)
    }

    /// The file's content; the same set always gives the same bytes.
    #[must_use]
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct File<'g> {
            version: i64,
            grants: Vec<Entry<'g>>,
        }
        #[derive(Serialize)]
        struct Entry<'g> {
            session: &'g str,
            tool: &'g str,
            granted_at: String,
            used_at: String,
        }
        fn entry<'g>(((session, tool), stamps): (&'g Key, &Stamps)) -> Entry<'g> {
            Entry {
                session,
                tool,
                granted_at: alloc::format!("{}", stamps.granted),
                used_at: alloc::format!("{}", stamps.used),
            }
        }
        let grants = self.by_key.iter().map(entry).collect();
        // Strings and numbers always have a JSON form; an empty file would be reported as damaged.
        let mut text =
            serde_json::to_string_pretty(&File { version: VERSION, grants }).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Whether a call of `tool` in `session` needs no question at `now`.
    #[must_use]
    pub fn covers(&self, session: &str, tool: &str, now: UnixMillis) -> bool {
        self.find(session, tool).is_some_and(|stamps| stamps.counts(now))
    }

    /// Notes that a covered call went through. Returns whether the set has to be written: only
    /// after [`TOUCH_MS`], and never for a grant that does not cover.
    pub fn touch(&mut self, session: &str, tool: &str, now: UnixMillis) -> bool {
        if !self.covers(session, tool, now) {
            return false;
        }
        let Some(stamps) = self.by_key.get_mut(&key(session, tool)) else { return false };
        let stale = stamps.unused_for(now).abs() >= TOUCH_MS;
        if stale {
            stamps.used = timestamp(now);
        }
        stale
    }

    /// Remembers an approval, drops what has ended, and pushes out the least recently used above
    /// [`LIMIT`]. Returns whether it was remembered: an empty name, or one above [`NAME_LIMIT`]
    /// bytes, is not.
    pub fn add(&mut self, session: &str, tool: &str, now: UnixMillis) -> bool {
        if !is_name(session) || !is_name(tool) {
            return false;
        }
        self.prune(now);
        let stamp = timestamp(now);
        self.put(key(session, tool), Stamps { granted: stamp, used: stamp });
        true
    }

    /// Drops every grant that covers nothing at `now`. Returns how many went.
    pub fn prune(&mut self, now: UnixMillis) -> usize {
        self.keep(|_, stamps| stamps.counts(now))
    }

    /// Takes one grant back. Returns whether it was there.
    pub fn revoke(&mut self, session: &str, tool: &str) -> bool {
        self.by_key.remove(&key(session, tool)).is_some()
    }

    /// Takes all grants of a session back: it was archived, or reopened with another model.
    /// Returns how many went.
    pub fn revoke_session(&mut self, session: &str) -> usize {
        self.keep(|(of, _), _| of != session)
    }

    /// Adds the grants of `other`. Of two for one key the later stamps count.
    pub fn merge(&mut self, other: &Self) {
        for (key, stamps) in &other.by_key {
            self.put(key.clone(), *stamps);
        }
    }

    /// All grants, ordered by session and tool.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Grant<'_>> {
        self.by_key.iter().map(|((session, tool), stamps)| Grant {
            session,
            tool,
            granted_at: UnixMillis(stamps.granted.as_millisecond()),
            used_at: UnixMillis(stamps.used.as_millisecond()),
        })
    }

    /// How many grants there are, at most [`LIMIT`].
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    fn find(&self, session: &str, tool: &str) -> Option<&Stamps> {
        self.by_key.get(&key(session, tool))
    }

    fn keep(&mut self, wanted: impl Fn(&Key, &Stamps) -> bool) -> usize {
        let before = self.by_key.len();
        self.by_key.retain(|key, stamps| wanted(key, stamps));
        before - self.by_key.len()
    }

    fn put(&mut self, key: Key, new: Stamps) {
        let stamps = self.by_key.entry(key.clone()).or_insert(new);
        stamps.granted = stamps.granted.max(new.granted);
        stamps.used = stamps.used.max(new.used);
        if self.by_key.len() > LIMIT {
            // Of equally old grants the one just put stays.
            let age = |(other, stamps): &(&Key, &Stamps)| (stamps.used, **other == key);
            let oldest = self.by_key.iter().min_by_key(age);
            if let Some(key) = oldest.map(|(key, _)| key.clone()) {
                self.by_key.remove(&key);
            }
        }
    }
}

impl Stamps {
    /// Milliseconds since the last use; negative when the stamp lies in the future.
    fn unused_for(&self, now: UnixMillis) -> i64 {
        now.0.saturating_sub(self.used.as_millisecond())
    }

    fn counts(&self, now: UnixMillis) -> bool {
        (-SKEW_MS..=UNUSED_MS).contains(&self.unused_for(now))
    }
}

fn key(session: &str, tool: &str) -> Key {
    (session.into(), tool.into())
}

fn is_name(text: &str) -> bool {
    (1..=NAME_LIMIT).contains(&text.len())
}

/// The nearest stamp that a date can express; a clock outside the years of four digits is wrong.
fn timestamp(now: UnixMillis) -> Timestamp {
    const LAST_MS: i64 = 253_402_207_200_000;
    Timestamp::from_millisecond(now.0.clamp(0, LAST_MS)).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn name(entry: &mut Fields, field: &str) -> Result<String, Invalid> {
    let text = entry.string(field)?;
    if is_name(&text) {
        return Ok(text);
    }
    Err(entry.forbidden(field, ("为空或过长", "is empty or too long")))
}

fn stamp(entry: &mut Fields, field: &str) -> Result<Timestamp, Invalid> {
    let text = entry.string(field)?;
    let rule = ("不是 RFC 3339 时间", "is not an RFC 3339 time");
    text.parse().map_err(|_| entry.forbidden(field, rule))
}

#[cfg(test)]
mod tests;
