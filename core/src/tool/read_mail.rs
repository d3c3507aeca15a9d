//! `read_mail` (`T-12`): one mail in full, its people, and the address to answer to. Marks nothing.

use alloc::string::String;

use super::args::{Arg, Args};
use super::{MAX_TEXT, NeedHttp, Next, Output, text};
use crate::api::mail::{FullMail, ReadMail};
use crate::lang::Lang;

/// Bytes kept free after the head for the closing note and what escaping adds.
const NOTES_ROOM: usize = 1_000;
/// Bytes of head after which the body still gets a page.
const MAX_HEAD: usize = 16_000;

const MAIL_ID: Arg = Arg::new(
    "mail_id",
    "邮件 id（read_inbox 列出的 mail_id）",
    "a mail id, as read_inbox lists it",
    "\"9ea5ff18-0000-4000-8000-000000000000\"",
)
.or(&["id"]);
const OFFSET: Arg = Arg::new(
    "offset",
    "从正文第几个字符读起的整数，默认 0",
    "an integer: the character of the text to start at, 0 by default",
    "0",
);
pub(super) const KNOWN: &[Arg] = &[MAIL_ID, OFFSET];

pub(super) fn start(args: &Args<'_>) -> Result<Next, Output> {
    args.check_names()?;
    let read = ReadMail { mail_id: args.required(&MAIL_ID)? };
    let offset = args.integer(&OFFSET, (0, u64::from(u32::MAX)), 0)?;
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    let lang = args.lang;
    Ok(NeedHttp::next(read.request(), move |outcome| {
        Next::Done(match ReadMail::parse(outcome) {
            Ok(Some(full)) => Output::new(render(lang, &full, offset), false, lang),
            Ok(None) => Output::new(
                lang.pick("网关的应答里没有这封邮件。", "The gateway's answer holds no mail.")
                    .into(),
                true,
                lang,
            ),
            Err(error) => text::failure(lang, ("读邮件", "reading the mail"), &error),
        })
    }))
}

fn render(lang: Lang, full: &FullMail, offset: usize) -> String {
    let mut out = String::new();
    text::mail_head(&mut out, lang, &full.mail);
    text::reply_address(&mut out, lang, &full.mail);
    if !full.participants.is_empty() {
        out.push_str(lang.pick("参与方：\n", "participants:\n"));
        for someone in &full.participants {
            super::session_participants::put(&mut out, lang, someone);
        }
    }
    if out.len() > MAX_HEAD {
        out.truncate(out.floor_char_boundary(MAX_HEAD));
        out.push_str(lang.pick("…（信头过长，已截断）\n", "… (the head is cut)\n"));
    }
    if offset > 0 {
        out.push_str(&match lang {
            Lang::Zh => alloc::format!("（从正文第 {offset} 个字符读起）\n"),
            Lang::En => alloc::format!("(from character {offset} of the text on)\n"),
        });
    }
    let room = MAX_TEXT.saturating_sub(out.len() + NOTES_ROOM);
    text::mail_body(&mut out, lang, &full.mail, offset, room);
    out
}
