//! Three-part addresses `name@path.session` (seed 003 section 〇, `W-4`, `W-5`).
//!
//! The last `.` splits, unless what follows it cannot be an alias because it holds `/` or `@`. The
//! session has three values: absent is the default session, `new` always opens one, anything else
//! is an alias that must exist (404, and never a fallback to `new`). A trailing `.` says "default"
//! for a path with a dot in its last component: `pi@/srv/proj.v2.`.
//!
//! [`Address`] formats back to a text that parses to the same value. Addresses that a gateway
//! hands out (`reply_address`) are used as they stand and never rebuilt.

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

/// A parsed address. Invariants: the name is not empty, has no `@` and no white space around it;
/// an alias is one that [`Session::alias`] accepts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    name: String,
    path: String,
    session: Session,
}

/// Which of the mail sessions at a path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Session {
    /// The one most recently active, or the first.
    #[default]
    Default,
    /// A new one, always.
    New,
    /// An existing one.
    Alias(Alias),
}

/// A session name as it stands in an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Alias(String);

/// A text that is no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadAddress {
    /// Nothing but white space.
    Empty,
    /// Nothing before the `@`.
    NoName,
    /// A part that an address cannot carry, given to [`Address::new`].
    BadName,
}

impl fmt::Display for BadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the address is empty: write a name or name@path.session",
            Self::NoName => "the address has no name before the @",
            Self::BadName => "a name cannot be empty, hold an @, or begin or end with a space",
        })
    }
}

impl core::error::Error for BadAddress {}

impl Session {
    /// The session with this alias: not empty, without `.`, `@` and `/`, without white space at
    /// its end, and not the word `new`.
    #[must_use]
    pub fn alias(text: &str) -> Option<Self> {
        let fits = !text.is_empty()
            && !text.contains(['.', '@', '/'])
            && text.trim_end() == text
            && text != "new";
        fits.then(|| Self::Alias(Alias(text.to_owned())))
    }
}

impl Alias {
    /// The alias's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Address {
    /// An address from its parts. The path may be empty, and hold anything else.
    ///
    /// # Errors
    /// [`BadAddress::BadName`].
    pub fn new(name: &str, path: &str, session: Session) -> Result<Self, BadAddress> {
        if name.is_empty() || name.contains('@') || name.trim() != name {
            return Err(BadAddress::BadName);
        }
        Ok(Self { name: name.to_owned(), path: path.to_owned(), session })
    }

    /// Who: an agent or a human.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where: a directory, a workspace's name, or nothing.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Which session.
    #[must_use]
    pub const fn session(&self) -> &Session {
        &self.session
    }
}

impl FromStr for Address {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let text = text.trim();
        if text.is_empty() {
            return Err(BadAddress::Empty);
        }
        // Names and aliases hold no `@`; a path may.
        let (name, rest) = text.split_once('@').unwrap_or((text, ""));
        let name = name.trim_end();
        if name.is_empty() {
            return Err(BadAddress::NoName);
        }
        let (path, session) = split_session(rest);
        Ok(Self { name: name.to_owned(), path: path.to_owned(), session })
    }
}

fn split_session(rest: &str) -> (&str, Session) {
    match rest.rsplit_once('.') {
        Some((path, "")) => (path, Session::Default),
        Some((path, "new")) => (path, Session::New),
        Some((path, tail)) => match Session::alias(tail) {
            Some(session) => (path, session),
            None => (rest, Session::Default),
        },
        None => (rest, Session::Default),
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, path, session } = self;
        match session {
            Session::New => write!(f, "{name}@{path}.new"),
            Session::Alias(alias) => write!(f, "{name}@{path}.{}", alias.0),
            Session::Default if path.is_empty() => f.write_str(name),
            // A dot that would be read as a separator, or a space that would be trimmed.
            Session::Default
                if path.trim_end() != path || split_session(path) != (path, Session::Default) =>
            {
                write!(f, "{name}@{path}.")
            }
            Session::Default => write!(f, "{name}@{path}"),
        }
    }
}

/// The addresses of a `cc` text: separated by any run of `,`, `;`, white space, and the full-width
/// `，` and `；` that Chinese input methods write. An address with a space in its path therefore
/// cannot stand in `cc`.
pub fn split_cc(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '，' | '；'))
        .filter(|address| !address.is_empty())
}

/// A `cc` text in the form of the contract's example: addresses separated by `, `.
#[must_use]
pub fn normalize_cc(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for address in split_cc(text) {
        if !joined.is_empty() {
            joined.push_str(", ");
        }
        joined.push_str(address);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;
    use alloc::vec::Vec;

    #[test]
    fn a_default_session_keeps_the_dots_of_its_path() {
        for (path, text) in [
            ("", "pi"),
            ("root", "pi@root"),
            ("/srv/proj.v2", "pi@/srv/proj.v2."),
            ("/home/a.b/proj", "pi@/home/a.b/proj"),
            ("/p.", "pi@/p.."),
            ("/p ", "pi@/p ."),
            (".", "pi@.."),
        ] {
            let address = Address::new("pi", path, Session::Default).unwrap();
            assert_eq!(address.to_string(), text);
            assert_eq!(text.parse(), Ok(address));
        }
    }

    #[test]
    fn an_alias_that_would_be_read_differently_is_refused() {
        for text in ["", "new", "a.b", "a@b", "a/b", "a "] {
            assert_eq!(Session::alias(text), None, "{text:?}");
        }
        assert!(Session::alias("NEW").is_some());
        assert_eq!(Address::new("a@b", "", Session::New), Err(BadAddress::BadName));
        assert_eq!(Address::new("", "", Session::New), Err(BadAddress::BadName));
    }

    #[test]
    fn cc_splits_on_every_separator_people_type() {
        let cc = " ops@root,sre@root;;a@b.new，乙@c；d\u{3000}e\n";
        assert_eq!(
            split_cc(cc).collect::<Vec<_>>(),
            ["ops@root", "sre@root", "a@b.new", "乙@c", "d", "e"]
        );
        assert_eq!(normalize_cc("ops@root; sre@root"), "ops@root, sre@root");
        assert_eq!(normalize_cc(" ,; "), "");
    }
}
