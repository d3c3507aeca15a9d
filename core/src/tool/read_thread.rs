//! `read_thread` (`T-11`): everything in a mail's thread, oldest first, across sessions.

use alloc::format;
use alloc::string::String;

use super::args::{Arg, Args};
use super::{MAX_TEXT, NeedHttp, Next, Output, text};
use crate::api::mail::Mail;
use crate::api::thread;
use crate::lang::Lang;

/// Bytes of one body; the rest is behind `read_mail`.
const BODY_ROOM: usize = 4_000;
/// Bytes kept free for heading and note.
const NOTES_ROOM: usize = 1_000;

const MAIL_ID: Arg = Arg::new(
    "mail_id",
    "线索中任意一封邮件的 id",
    "the id of any mail of the thread",
    "\"9ea5ff18-0000-4000-8000-000000000000\"",
)
.or(&["id"]);
const OFFSET: Arg = Arg::new(
    "offset",
    "跳过最早几封的整数，默认 0",
    "an integer: how many of the oldest mails to skip, 0 by default",
    "0",
);
pub(super) const KNOWN: &[Arg] = &[MAIL_ID, OFFSET];

pub(super) fn start(args: &Args<'_>) -> Result<Next, Output> {
    args.check_names()?;
    let mail_id = args.required(&MAIL_ID)?;
    let offset = args.integer(&OFFSET, (0, u64::from(u32::MAX)), 0)?;
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    let lang = args.lang;
    Ok(NeedHttp::next(thread::request(&mail_id), move |outcome| {
        Next::Done(match thread::parse(outcome) {
            Ok(mails) => Output::new(render(lang, &mail_id, &mails, offset), false, lang),
            Err(error) => text::failure(lang, ("读线索", "reading the thread"), &error),
        })
    }))
}

fn render(lang: Lang, mail_id: &str, mails: &[Mail], offset: usize) -> String {
    let all = mails.len();
    let mut out = match lang {
        Lang::Zh => format!("线索共 {all} 封，从最早的排起：\n"),
        Lang::En => format!("Mails in the thread: {all}, oldest first:\n"),
    };
    for (nth, mail) in mails.iter().enumerate().skip(offset) {
        let mut entry = format!("\n【{}/{all}】\n", nth + 1);
        text::mail_head(&mut entry, lang, mail);
        text::reply_address(&mut entry, lang, mail);
        text::mail_body(&mut entry, lang, mail, 0, BODY_ROOM);
        // The first always goes in: the cap on the whole result holds it, and paging moves on.
        if nth > offset && out.len() + entry.len() > MAX_TEXT - NOTES_ROOM {
            let id = text::verbatim(mail_id);
            let left = all - nth;
            out.push_str(&match lang {
                Lang::Zh => format!(
                    "\n（还有 {left} 封放不下：用 read_thread，参数 \
                     {{\"mail_id\": \"{id}\", \"offset\": {nth}}} 继续看）\n"
                ),
                Lang::En => format!(
                    "\n({left} more do not fit: go on with read_thread \
                     {{\"mail_id\": \"{id}\", \"offset\": {nth}}})\n"
                ),
            });
            break;
        }
        out.push_str(&entry);
    }
    out
}
