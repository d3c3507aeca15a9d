//! `POST /mail/read` (E5): marks mails as read for the caller.
//!
//! The contract does not name the field. `mail_ids` is tried first; a strict gateway that knows it
//! under `ids` answers 400, and marking is idempotent, so one more try is safe.

use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;

use super::ApiError;
use crate::http::{self, Outcome};

/// The field under which a gateway takes the ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Field {
    /// `mail_ids`, the first guess.
    #[default]
    MailIds,
    /// `ids`.
    Ids,
}

/// Which mails to mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkRead {
    /// The ids.
    pub mail_ids: Vec<String>,
    /// How to send them.
    pub field: Field,
}

impl MarkRead {
    /// The exchange.
    #[must_use]
    pub fn request(&self) -> http::Request {
        #[derive(Serialize)]
        struct Body<'b> {
            #[serde(skip_serializing_if = "Option::is_none")]
            mail_ids: Option<&'b [String]>,
            #[serde(skip_serializing_if = "Option::is_none")]
            ids: Option<&'b [String]>,
        }
        let ids = Some(self.mail_ids.as_slice());
        let body = match self.field {
            Field::MailIds => Body { mail_ids: ids, ids: None },
            Field::Ids => Body { mail_ids: None, ids },
        };
        http::Request::post("/mail/read", super::encode(&body))
    }

    /// Reads the reply; any 2xx is success.
    ///
    /// # Errors
    /// [`ApiError`]; on a 400 the other [`Field`] is worth one try.
    pub fn parse(outcome: Outcome<'_>) -> Result<(), ApiError> {
        super::listing::read_listing(outcome).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn only_one_of_the_two_fields_is_sent() {
        let mut mark = MarkRead { mail_ids: vec!["a".into(), "b".into()], field: Field::MailIds };
        assert_eq!(mark.request().body.unwrap(), br#"{"mail_ids":["a","b"]}"#);
        mark.field = Field::Ids;
        assert_eq!(mark.request().body.unwrap(), br#"{"ids":["a","b"]}"#);
        assert_eq!(mark.request().path, "/api/v1/mail/read");
    }
}
