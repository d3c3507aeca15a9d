//! `GET /mail/inbox` (E4): the caller's mail, newest first.

use alloc::string::String;
use alloc::vec::Vec;

use super::ApiError;
use super::listing::{collect, list, push_query, read_listing};
use super::mail::Mail;
use crate::http::{self, Outcome};

/// Which mails to list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// Those the caller has not read (the default of the tool, `T-1`).
    #[default]
    Unread,
    /// All of them.
    All,
}

impl Status {
    /// The query value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unread => "unread",
            Self::All => "all",
        }
    }
}

/// A listing of the inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inbox {
    /// Which mails.
    pub status: Status,
    /// How many at most.
    pub limit: u64,
}

/// What the gateway listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// The mails, in the gateway's order.
    pub mails: Vec<Mail>,
    /// How many there are in all, if the gateway says so.
    pub total: Option<u64>,
    /// Entries that are no mail and were left out (TP-1).
    pub skipped: usize,
}

impl Inbox {
    /// The exchange.
    #[must_use]
    pub fn request(&self) -> http::Request {
        let mut path = String::from("/mail/inbox");
        push_query(&mut path, "status", self.status.as_str());
        push_query(&mut path, "limit", &alloc::format!("{}", self.limit));
        http::Request::get(&path)
    }

    /// Reads the reply; a reply without a list is an empty inbox.
    ///
    /// # Errors
    /// [`ApiError`].
    pub fn parse(outcome: Outcome<'_>) -> Result<Listed, ApiError> {
        let body = read_listing(outcome)?;
        let (mails, skipped) = collect(list(&body, &["mails"]), Mail::read);
        Ok(Listed { mails, total: body.count("total"), skipped })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Reply;

    #[test]
    fn the_query_names_status_and_limit() {
        let request = Inbox { status: Status::Unread, limit: 5 }.request();
        assert_eq!(request.path, "/api/v1/mail/inbox?status=unread&limit=5");
    }

    #[test]
    fn any_listing_shape_is_read_and_odd_entries_are_counted() {
        for body in [
            r#"[{"id":"a"},7]"#,
            r#"{"mails":[{"mail_id":"a"},{}],"total":9}"#,
            r#"{"data":{"items":[{"mail_id":"a"},null]}}"#,
        ] {
            let listed = Inbox::parse(Outcome::Reply(Reply::json(200, body.as_bytes()))).unwrap();
            assert_eq!((listed.mails.len(), listed.skipped), (1, 1), "{body}");
        }
        let page = Outcome::Reply(Reply::json(200, b"<html></html>"));
        assert!(!Inbox::parse(page).unwrap_err().is_permanent());
    }
}
