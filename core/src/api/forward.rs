//! `POST /mail/{id}/forward` (E7): passes a mail on under a full address, as a new thread entry
//! whose parent is the original (`T-5`).

use alloc::string::String;

use serde::Serialize;

use super::ApiError;
use super::send::Sent;
use crate::http::{self, Outcome, push_segment};

/// The field under which a gateway takes the note above the quoted mail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NoteField {
    /// `body`, the first guess.
    #[default]
    Body,
    /// `note`, tried after a 400 that names `body`.
    Note,
}

/// What to forward to whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forward {
    /// Which mail.
    pub mail_id: String,
    /// The address.
    pub to: String,
    /// Addresses in copy, separated by commas; empty for none.
    pub cc: String,
    /// A note above the quoted mail; empty for none.
    pub note: String,
    /// A name for the session, honoured when the forward creates one; empty for none.
    pub session_alias: String,
    /// How to send the note.
    pub note_field: NoteField,
}

impl Forward {
    /// The exchange.
    #[must_use]
    pub fn request(&self) -> http::Request {
        #[derive(Serialize)]
        struct Body<'b> {
            to: &'b str,
            #[serde(skip_serializing_if = "super::is_empty")]
            cc: &'b str,
            #[serde(skip_serializing_if = "super::is_empty")]
            body: &'b str,
            #[serde(skip_serializing_if = "super::is_empty")]
            note: &'b str,
            #[serde(skip_serializing_if = "super::is_empty")]
            session_alias: &'b str,
        }
        let (body, note) = match self.note_field {
            NoteField::Body => (self.note.as_str(), ""),
            NoteField::Note => ("", self.note.as_str()),
        };
        let (to, cc, session_alias) = (&*self.to, &*self.cc, &*self.session_alias);
        let body = Body { to, cc, body, note, session_alias };
        let mut path = String::from("/mail/");
        push_segment(&mut path, &self.mail_id);
        path.push_str("/forward");
        http::Request::post(&path, super::encode(&body))
    }

    /// Reads the reply, which is that of a send.
    ///
    /// # Errors
    /// [`ApiError`].
    pub fn parse(outcome: Outcome<'_>) -> Result<Sent, ApiError> {
        super::send::Request::parse(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_fields_are_left_out_and_the_note_has_two_names() {
        let mut forward =
            Forward { mail_id: "m 1".into(), to: "pi@/x.new".into(), ..Forward::default() };
        assert_eq!(forward.request().path, "/api/v1/mail/m%201/forward");
        assert_eq!(forward.request().body.unwrap(), br#"{"to":"pi@/x.new"}"#);
        forward.note = "see".into();
        assert_eq!(forward.request().body.unwrap(), br#"{"to":"pi@/x.new","body":"see"}"#);
        forward.note_field = NoteField::Note;
        assert_eq!(forward.request().body.unwrap(), br#"{"to":"pi@/x.new","note":"see"}"#);
    }
}
