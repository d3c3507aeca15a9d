//! The audit log as data: records, their canonical form, and the chain that ties them together.
//!
//! What it is: each record holds the hash of the one before it, and a [`Head`] beside the log says
//! how many there are and how the last one hashes. Storing both in the transaction of what they
//! record is the gateway's work; checking a copy needs nothing but this module.
//!
//! What it promises: [`Verifier`] finds the first record that is not as it was written. Flipping a
//! byte, dropping, swapping or inserting a record breaks the chain at that place; cutting off the
//! end or appending differs from the head. What it does not promise: whoever can rewrite the whole
//! log and its head leaves no trace in them; keep exports elsewhere.
//!
//! ```text
//!   hash(n) = SHA-256(DOMAIN hash(n-1) length line(n))      hash(0) = 32 zero bytes
//!   line    = the record as one line of JSON: fields in fixed order, all present
//!   export  = one line a record, each followed by its hash in the same object; the head last
//! ```
//!
//! Faults section 3, row 3.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use sha2::{Digest as _, Sha256};

use crate::digest::{CallDigest, hex};
use crate::exact::Value;
use crate::time::UnixMillis;

const DOMAIN: &[u8] = b"zcode-mail-bridge audit v1\n";

/// What happened. The code is stable: it is stored, exported and searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// An agent asked.
    Ask,
    /// The person who decides was told.
    Notify,
    /// Somebody looked at a request.
    View,
    /// Somebody looked at the unmasked text.
    Reveal,
    /// A person decided.
    Decide,
    /// The decision reached the agent.
    Deliver,
    /// A request ended without a decision.
    Expire,
    /// The agent took its question back.
    Withdraw,
    /// A lasting approval was given.
    Grant,
    /// A lasting approval ended.
    Revoke,
    /// Somebody logged in.
    Login,
    /// A key was made, registered or revoked.
    Key,
    /// Something was refused: a forged, replayed, late or unauthorised act.
    Refuse,
}

impl Event {
    /// All events.
    pub const ALL: [Self; 13] = [
        Self::Ask,
        Self::Notify,
        Self::View,
        Self::Reveal,
        Self::Decide,
        Self::Deliver,
        Self::Expire,
        Self::Withdraw,
        Self::Grant,
        Self::Revoke,
        Self::Login,
        Self::Key,
        Self::Refuse,
    ];

    /// The stable code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Notify => "notify",
            Self::View => "view",
            Self::Reveal => "reveal",
            Self::Decide => "decide",
            Self::Deliver => "deliver",
            Self::Expire => "expire",
            Self::Withdraw => "withdraw",
            Self::Grant => "grant",
            Self::Revoke => "revoke",
            Self::Login => "login",
            Self::Key => "key",
            Self::Refuse => "refuse",
        }
    }

    /// The event of a code.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.code() == code)
    }
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// One for the first, then without a gap.
    pub number: u64,
    /// When, by the gateway's wall clock.
    pub at: UnixMillis,
    /// What.
    pub event: Event,
    /// Who did it: a person or an agent by name, or empty for the gateway itself.
    pub who: String,
    /// By which way: `page`, `api`, `cli`, `stream` and the like.
    pub how: String,
    /// What it is about: the id of a request, grant or key.
    pub subject: String,
    /// The digest of the call, where there is one.
    pub digest: Option<CallDigest>,
    /// Further words, such as the decision. Never a secret.
    pub detail: String,
}

impl Record {
    /// The record as one line of JSON, without a line end; what is hashed.
    #[must_use]
    pub fn line(&self) -> String {
        let mut out = self.open_line();
        out.push('}');
        out
    }

    fn open_line(&self) -> String {
        let text = |text: &str| Value::Text(text.into()).to_json();
        alloc::format!(
            r#"{{"number":{},"at":{},"event":"{}","who":{},"how":{},"subject":{},"digest":{},"detail":{}"#,
            self.number,
            self.at.0,
            self.event.code(),
            text(&self.who),
            text(&self.how),
            text(&self.subject),
            text(&self.digest.map(|digest| digest.hex()).unwrap_or_default()),
            text(&self.detail),
        )
    }

    /// The record with its hash as one line of an export.
    #[must_use]
    pub fn export(&self, hash: &Hash) -> String {
        alloc::format!("{},\"hash\":\"{}\"}}", self.open_line(), hex(&hash.0))
    }

    /// The record and the hash of a line made by [`Record::export`]; anything else is refused, also
    /// the same values written differently.
    #[must_use]
    pub fn from_export(line: &str) -> Option<(Self, Hash)> {
        let value = Value::parse(line).ok()?;
        let text = |key: &str| value.get(key)?.as_text().map(String::from);
        let number = |key: &str| match value.get(key)? {
            Value::Number(digits) => digits.parse::<i64>().ok(),
            _ => None,
        };
        let digest = text("digest")?;
        let record = Self {
            number: u64::try_from(number("number")?).ok()?,
            at: UnixMillis(number("at")?),
            event: Event::from_code(&text("event")?)?,
            who: text("who")?,
            how: text("how")?,
            subject: text("subject")?,
            digest: match digest.as_str() {
                "" => None,
                digits => Some(CallDigest::from_hex(digits)?),
            },
            detail: text("detail")?,
        };
        let CallDigest(hash) = CallDigest::from_hex(&text("hash")?)?;
        (record.export(&Hash(hash)) == line).then_some((record, Hash(hash)))
    }
}

/// The hash of a record and, through it, of all before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// What the first record is chained to.
    pub const START: Self = Self([0; 32]);

    /// The hash of `record` after a record with this hash.
    #[must_use]
    pub fn then(&self, record: &Record) -> Self {
        let line = record.line();
        let mut hash = Sha256::new();
        hash.update(DOMAIN);
        hash.update(self.0);
        hash.update((line.len() as u64).to_be_bytes());
        hash.update(line.as_bytes());
        Self(hash.finalize().into())
    }
}

/// How many records there are and how the last one hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The number of the last record; zero for an empty log.
    pub number: u64,
    /// Its hash.
    pub hash: Hash,
}

impl Head {
    /// The head of an empty log.
    pub const START: Self = Self { number: 0, hash: Hash::START };

    /// The last line of an export.
    #[must_use]
    pub fn export(&self) -> String {
        alloc::format!(r#"{{"head":{},"hash":"{}"}}"#, self.number, hex(&self.hash.0))
    }

    /// The head of a line made by [`Head::export`].
    #[must_use]
    pub fn from_export(line: &str) -> Option<Self> {
        let value = Value::parse(line).ok()?;
        let Value::Number(number) = value.get("head")? else { return None };
        let CallDigest(hash) = CallDigest::from_hex(value.get("hash")?.as_text()?)?;
        let head = Self { number: number.parse().ok()?, hash: Hash(hash) };
        (head.export() == line).then_some(head)
    }
}

/// What is wrong with a log, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The record at this place has another number: one was dropped, swapped or inserted.
    Number {
        /// The number that belongs here.
        expected: u64,
        /// The number that stands here.
        found: u64,
    },
    /// The record's content does not have the hash that was stored with it: it, or the one before
    /// it, was changed.
    Hash {
        /// The record's number.
        number: u64,
    },
    /// This place, counted from one, holds no readable record.
    Unreadable {
        /// The number that belongs here.
        expected: u64,
    },
    /// Records are missing at the end.
    Truncated {
        /// How many the head says.
        expected: u64,
        /// How many there are.
        found: u64,
    },
    /// There are more records than the head says.
    Appended {
        /// The first one too many.
        first: u64,
    },
    /// The last record is not the one that the head names, although the chain holds.
    Head,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number { expected, found } => {
                write!(f, "record {expected} is missing or out of place: {found} stands there")
            }
            Self::Hash { number } => write!(f, "record {number} is not as it was written"),
            Self::Unreadable { expected } => write!(f, "record {expected} cannot be read"),
            Self::Truncated { expected, found } => {
                write!(f, "{} of {expected} records are missing at the end", expected - found)
            }
            Self::Appended { first } => write!(f, "record {first} was appended from outside"),
            Self::Head => f.write_str("the head names another last record"),
        }
    }
}

impl core::error::Error for Broken {}

/// Checks a log record by record, in constant memory.
#[derive(Clone, Debug)]
pub struct Verifier {
    head: Head,
    last: Head,
}

impl Verifier {
    /// A verifier of the log with this head.
    #[must_use]
    pub const fn new(head: Head) -> Self {
        Self { head, last: Head::START }
    }

    /// Takes the next record and the hash stored with it; `None` for one that cannot be read.
    ///
    /// # Errors
    /// The first thing that is wrong; nothing after it says anything.
    pub fn next(&mut self, stored: Option<(&Record, Hash)>) -> Result<(), Broken> {
        let expected = self.last.number + 1;
        let Some((record, hash)) = stored else { return Err(Broken::Unreadable { expected }) };
        if record.number != expected {
            return Err(Broken::Number { expected, found: record.number });
        }
        if self.last.hash.then(record) != hash {
            return Err(Broken::Hash { number: expected });
        }
        if expected > self.head.number {
            return Err(Broken::Appended { first: expected });
        }
        self.last = Head { number: expected, hash };
        Ok(())
    }

    /// Ends the log; how many records it has.
    ///
    /// # Errors
    /// [`Broken::Truncated`] or [`Broken::Head`].
    pub fn finish(self) -> Result<u64, Broken> {
        if self.last.number < self.head.number {
            let (expected, found) = (self.head.number, self.last.number);
            return Err(Broken::Truncated { expected, found });
        }
        if self.last == self.head { Ok(self.last.number) } else { Err(Broken::Head) }
    }
}

/// Checks an export, as text.
///
/// # Errors
/// As [`Verifier`]; an export without its last line is truncated.
pub fn verify_export(text: &str) -> Result<u64, Broken> {
    let lines: Vec<&str> = text.lines().collect();
    let (head, records) = match lines.split_last() {
        Some((last, records)) => (Head::from_export(last), records),
        None => (None, &[][..]),
    };
    let Some(head) = head else {
        let found = lines.len() as u64;
        return Err(Broken::Truncated { expected: found + 1, found });
    };
    let mut verifier = Verifier::new(head);
    for line in records {
        let read = Record::from_export(line);
        verifier.next(read.as_ref().map(|(record, hash)| (record, *hash)))?;
    }
    verifier.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;

    fn record(number: u64) -> Record {
        Record {
            number,
            at: UnixMillis(1_700_000_000_000),
            event: Event::Decide,
            who: "alice".into(),
            how: "page".into(),
            subject: "r1".into(),
            digest: Some(CallDigest([7; 32])),
            detail: "同意 \"x\"\n".into(),
        }
    }

    #[test]
    fn codes_are_stable() {
        let codes: Vec<&str> = Event::ALL.iter().map(|event| event.code()).collect();
        assert_eq!(
            codes.join(" "),
            "ask notify view reveal decide deliver expire withdraw grant revoke login key refuse"
        );
        assert!(Event::ALL.iter().all(|event| Event::from_code(event.code()) == Some(*event)));
        assert_eq!(Event::from_code("Ask"), None);
    }

    #[test]
    fn the_line_and_the_chain_are_stable() {
        let first = record(1);
        assert_eq!(
            first.line(),
            concat!(
                r#"{"number":1,"at":1700000000000,"event":"decide","who":"alice","how":"page","#,
                r#""subject":"r1","digest":"0707070707070707070707070707070707070707070707070707070707070707","#,
                r#""detail":"同意 \"x\"\n"}"#
            )
        );
        let hash = Hash::START.then(&first);
        assert_eq!(
            hex(&hash.0),
            "525b59eeb661d254b4d88ffe623c709968942ee334826e5a4c5f808a457a0f1b"
        );
        assert_eq!(Record::from_export(&first.export(&hash)), Some((first, hash)));
    }

    #[test]
    fn an_export_without_its_head_is_truncated() {
        assert_eq!(verify_export(&Head::START.export()), Ok(0));
        assert!(verify_export("").is_err());
        let first = record(1);
        let error = verify_export(&first.export(&Hash::START.then(&first))).unwrap_err();
        assert!(error.to_string().contains("missing"), "{error}");
    }
}
