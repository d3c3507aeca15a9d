//! A mail as the listing endpoints show it, and `GET /agent/mail/{id}` (E17).

use alloc::string::String;
use alloc::vec::Vec;

use super::ApiError;
use super::listing::{collect, label, list, names};
use super::participants::Participant;
use crate::http::{self, Outcome, push_segment};
use crate::json::Node;

/// A mail. Absent texts are empty: no rendering tells the two apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mail {
    /// The mail's id; never empty.
    pub mail_id: String,
    /// The mail session it belongs to.
    pub session_id: String,
    /// The session's name in addresses.
    pub session_alias: String,
    /// Who wrote it.
    pub from_name: String,
    /// The writer's address.
    pub from_address: String,
    /// Whether the writer is a human; `None` when the gateway does not say (TP-4).
    pub from_human: Option<bool>,
    /// Who it is addressed to.
    pub to: String,
    /// Names or addresses in copy.
    pub cc: Vec<String>,
    /// `to` or `cc`: the caller's role.
    pub role: String,
    /// The subject.
    pub subject: String,
    /// The text, Markdown.
    pub body: String,
    /// `normal`, `permission_request`, ...
    pub mail_type: String,
    /// When it was sent, as the gateway wrote it.
    pub created_at: String,
    /// Whether the caller has read it, when the gateway says so.
    pub is_read: Option<bool>,
    /// The mail that it answers; empty at the root of a thread.
    pub in_reply_to: String,
    /// What hangs on it.
    pub attachments: Vec<Attachment>,
    /// Where an answer into the same session goes; used verbatim (`W-4`).
    pub reply_address: String,
    /// How the writer should address the reader.
    pub self_address: String,
}

/// An attachment of a mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// What `download_attachment` takes (`T-1.1`); never empty.
    pub attachment_id: String,
    /// The name its sender gave it.
    pub filename: String,
    /// Bytes, when known.
    pub size: Option<u64>,
    /// Media type, when known.
    pub content_type: String,
}

impl Mail {
    /// Reads a mail out of a listing; `None` when it has no id.
    pub(super) fn read(node: &Node) -> Option<Self> {
        let text = |keys: &[&str]| label(node, keys).unwrap_or_default();
        let is_read = node.flag("is_read").or_else(|| node.flag("read"));
        let is_read = is_read.or_else(|| Some(node.text(&["status"])? == "read"));
        let (attachments, _) = collect(list_at(node, "attachments"), Attachment::read);
        Some(Self {
            mail_id: label(node, &["mail_id", "id"])?,
            session_id: super::session_id(node).unwrap_or_default(),
            session_alias: text(&["session_alias"]),
            from_name: text(&["from_name", "from"]),
            from_address: text(&["from_address"]),
            from_human: node.flag("from_human"),
            to: text(&["to_address", "to_name", "to"]),
            cc: names(node.get("cc")),
            role: text(&["role"]),
            subject: text(&["subject"]),
            body: text(&["body", "content", "text"]),
            mail_type: text(&["mail_type"]),
            created_at: text(&["created_at", "sent_at", "date"]),
            is_read,
            in_reply_to: text(&["in_reply_to", "parent_mail_id", "reply_to"]),
            attachments,
            reply_address: text(&["reply_address"]),
            self_address: text(&["self_address"]),
        })
    }
}

fn list_at<'n>(node: &'n Node, key: &str) -> &'n [Node] {
    node.get(key).and_then(Node::as_array).unwrap_or_default()
}

impl Attachment {
    fn read(node: &Node) -> Option<Self> {
        Some(Self {
            attachment_id: label(node, &["attachment_id", "id"])?,
            filename: node.owned(&["filename", "name"]).unwrap_or_default(),
            size: node.count("size"),
            content_type: node.owned(&["content_type", "mime_type"]).unwrap_or_default(),
        })
    }
}

/// `GET /agent/mail/{id}` (`T-12`). Reading it so does not mark it as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadMail {
    /// Which mail.
    pub mail_id: String,
}

/// One mail with the people around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullMail {
    /// The mail.
    pub mail: Mail,
    /// Everybody in the session, when the gateway says so.
    pub participants: Vec<Participant>,
}

impl ReadMail {
    /// The exchange.
    #[must_use]
    pub fn request(&self) -> http::Request {
        let mut path = String::from("/agent/mail/");
        push_segment(&mut path, &self.mail_id);
        http::Request::get(&path)
    }

    /// Reads the reply, bare or under `mail`. `None` when it holds no mail.
    ///
    /// # Errors
    /// [`ApiError`]: 404 when the mail is unknown or not visible to the caller.
    pub fn parse(outcome: Outcome<'_>) -> Result<Option<FullMail>, ApiError> {
        let body = super::read(outcome)?;
        let inner = ["mail", "data"].iter().find_map(|key| body.get(key)).unwrap_or(&body);
        let people = list(inner, &["participants"]);
        let people = if people.is_empty() { list(&body, &["participants"]) } else { people };
        let (participants, _) = collect(people, Participant::read);
        Ok(Mail::read(inner).map(|mail| FullMail { mail, participants }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Reply;

    fn parse(body: &str) -> Option<FullMail> {
        ReadMail::parse(Outcome::Reply(Reply::json(200, body.as_bytes()))).unwrap()
    }

    #[test]
    fn an_id_stays_one_path_segment() {
        let request = ReadMail { mail_id: "a/../b?c".into() }.request();
        assert_eq!(request.path, "/api/v1/agent/mail/a%2F%2E%2E%2Fb%3Fc");
    }

    #[test]
    fn a_mail_is_read_bare_or_wrapped_with_every_spelling() {
        let bare = parse(
            r#"{"mail_id":"m","session_id":"s","from_name":"admin","from_human":1,"cc":"a@b, c;d",
                "attachments":[{"id":"f1","filename":"x","size":"12"},{"filename":"lost"}],
                "is_read":0,"reply_address":"admin@.x","participants":["admin",{"name":"pi"}]}"#,
        )
        .unwrap();
        assert_eq!(bare.mail.cc, ["a@b", "c", "d"]);
        assert_eq!(bare.mail.from_human, Some(true));
        assert_eq!(bare.mail.is_read, Some(false));
        assert_eq!(bare.mail.attachments.len(), 1);
        assert_eq!(bare.mail.attachments[0].size, Some(12));
        assert_eq!(bare.participants.len(), 2);
        let wrapped = parse(
            r#"{"mail":{"id":7,"session":{"id":"s"},"cc":[{"address":"a@b"},"c",{}],
                "status":"read","parent_mail_id":"p"},"participants":[{"address":"x@y"}]}"#,
        )
        .unwrap();
        assert_eq!(wrapped.mail.mail_id, "7");
        assert_eq!(wrapped.mail.session_id, "s");
        assert_eq!(wrapped.mail.cc, ["a@b", "c"]);
        assert_eq!(wrapped.mail.in_reply_to, "p");
        assert_eq!(wrapped.mail.is_read, Some(true));
        assert_eq!(wrapped.participants[0].address, "x@y");
        assert_eq!(parse("{}"), None);
    }
}
