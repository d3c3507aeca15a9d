//! `forward_mail` (`T-5`): passes a mail on; a new thread entry under a full address.

use alloc::string::String;

use super::args::{Arg, Args};
use super::receipt::{self, Asked, Rename};
use super::send_mail::{CC, SESSION_ALIAS, TO, copies, receiver};
use super::{NeedHttp, Next, Output, rename, text};
use crate::api::forward::{Forward, NoteField};

const MAIL_ID: Arg = Arg::new(
    "mail_id",
    "待转发邮件的 mail_id",
    "the mail_id of the mail to pass on",
    "\"9ea5ff18-0000-4000-8000-000000000000\"",
)
.or(&["id"]);
const BODY: Arg = Arg::new(
    "body",
    "写在原文之上的附言文字",
    "a note to stand above the forwarded mail",
    "\"请看下面这封。\"",
)
.or(&["note", "comment"]);
pub(super) const KNOWN: &[Arg] = &[MAIL_ID, TO, CC, BODY, SESSION_ALIAS];

pub(super) fn start(args: &Args<'_>, host_session: Option<String>) -> Result<Next, Output> {
    args.check_names()?;
    let forward = Forward {
        mail_id: args.required(&MAIL_ID)?,
        to: receiver(args)?,
        cc: copies(args)?,
        note: args.verbatim(&BODY)?.map(|note| rename::strip(&note)).unwrap_or_default(),
        session_alias: args.text(&SESSION_ALIAS)?.unwrap_or_default(),
        note_field: NoteField::Body,
    };
    let lang = args.lang;
    let asked = Asked {
        verb: ("邮件已转发给", "Mail forwarded to"),
        to: forward.to.clone(),
        reply_to: String::new(),
        host_session,
        rename: Rename::None,
    };
    let doing = ("转发", "forwarding");
    Ok(NeedHttp::next(forward.request(), move |outcome| match Forward::parse(outcome) {
        Ok(sent) => receipt::sent(lang, &asked, &sent),
        // A strict gateway that takes the note under another name says so and has done nothing.
        Err(error)
            if error.status() == Some(400)
                && !forward.note.is_empty()
                && error.message().contains("body") =>
        {
            let again = Forward { note_field: NoteField::Note, ..forward };
            NeedHttp::next(again.request(), move |outcome| match Forward::parse(outcome) {
                Ok(sent) => receipt::sent(lang, &asked, &sent),
                Err(error) => Next::Done(text::send_failure(lang, doing, &error)),
            })
        }
        Err(error) => Next::Done(text::send_failure(lang, doing, &error)),
    }))
}
