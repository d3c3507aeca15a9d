//! `GET /agent/mail/{id}/thread` (E16): everything in a mail's thread, across sessions (`T-11`).

use alloc::string::String;
use alloc::vec::Vec;

use super::ApiError;
use super::listing::{collect, list, read_listing};
use super::mail::Mail;
use crate::http::{self, Outcome, push_segment};

/// The exchange.
#[must_use]
pub fn request(mail_id: &str) -> http::Request {
    let mut path = String::from("/agent/mail/");
    push_segment(&mut path, mail_id);
    path.push_str("/thread");
    http::Request::get(&path)
}

/// Reads the reply: the mails, oldest first whatever order they came in.
///
/// # Errors
/// [`ApiError`]: 404 when the mail is unknown or not visible to the caller.
pub fn parse(outcome: Outcome<'_>) -> Result<Vec<Mail>, ApiError> {
    let body = read_listing(outcome)?;
    let (mut mails, _) = collect(list(&body, &["mails", "thread", "nodes"]), Mail::read);
    // RFC 3339 in UTC sorts as text; equal stamps keep the gateway's order.
    mails.sort_by(|a, b| a.created_at.cmp(&b.created_at));
    Ok(mails)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Reply;

    #[test]
    fn a_thread_is_told_oldest_first() {
        let body =
            br#"{"thread":[{"id":"b","created_at":"2026-02"},{"id":"a","created_at":"2026-01"}]}"#;
        let mails = parse(Outcome::Reply(Reply::json(200, body))).unwrap();
        assert_eq!(mails[0].mail_id, "a");
    }
}
