//! `read_inbox` (`T-1`): lists mail and marks exactly what it listed, never for `status=all`.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use super::args::{Arg, Args};
use super::{MAX_TEXT, NeedHttp, Next, Output, Toolbox, text};
use crate::api::inbox::{Inbox, Listed, Status};
use crate::api::mail::Mail;
use crate::api::mark_read::{Field, MarkRead};
use crate::lang::Lang;

/// Mails listed when the model does not say (`T-1`).
const DEFAULT_LIMIT: u64 = 5;
/// Most mails in one listing: more would not fit into a result anyway.
const MAX_LIMIT: u64 = 50;
/// Bytes of one body in a listing; the rest is behind `read_mail`.
const BODY_ROOM: usize = 8_000;
/// Bytes kept free for the closing notes.
const NOTES_ROOM: usize = 1_000;

const STATUS: Arg = Arg::new(
    "status",
    "\"unread\"（只看未读，默认）或 \"all\"（全部）",
    "\"unread\" (the default) or \"all\"",
    "\"unread\"",
);
const LIMIT: Arg = Arg::new("limit", "1 到 50 的整数", "an integer from 1 to 50", "5");
pub(super) const KNOWN: &[Arg] = &[STATUS, LIMIT];

pub(super) fn start(args: &Args<'_>, toolbox: &Toolbox) -> Result<Next, Output> {
    args.check_names()?;
    let limit = args.integer(&LIMIT, (1, MAX_LIMIT), DEFAULT_LIMIT)?;
    let status = match args.text(&STATUS)?.as_deref() {
        None => Status::Unread,
        Some(text) if text.eq_ignore_ascii_case("unread") || text == "未读" => Status::Unread,
        Some(text) if text.eq_ignore_ascii_case("all") || text == "全部" => Status::All,
        Some(text) => return Err(args.wrong(&STATUS, Some(&text.into()))),
    };
    let toolbox = toolbox.clone();
    let inbox = Inbox { status, limit };
    Ok(NeedHttp::next(inbox.request(), move |outcome| {
        let lang = toolbox.lang;
        match Inbox::parse(outcome) {
            Ok(listed) => {
                let (text, ids) = render(lang, inbox, &listed);
                mark(toolbox, status, text, ids)
            }
            Err(error) => {
                Next::Done(text::failure(lang, ("读收件箱", "reading the inbox"), &error))
            }
        }
    }))
}

/// The listing, and the ids of the mails that stand in it.
fn render(lang: Lang, inbox: Inbox, listed: &Listed) -> (String, Vec<String>) {
    let (mut entries, mut ids) = (String::new(), Vec::new());
    let limit = usize::try_from(inbox.limit).unwrap_or(usize::MAX);
    let mails: Vec<&Mail> = listed.mails.iter().take(limit).collect();
    for (nth, mail) in mails.iter().enumerate() {
        let mut entry = format!("\n【{}/{}】\n", nth + 1, mails.len());
        text::mail_head(&mut entry, lang, mail);
        text::reply_address(&mut entry, lang, mail);
        if inbox.status == Status::All
            && let Some(read) = mail.is_read
        {
            let word = if read { ("已读", "read") } else { ("未读", "unread") };
            text::field(&mut entry, lang, ("状态", "state"), lang.pick(word.0, word.1));
        }
        text::mail_body(&mut entry, lang, mail, 0, BODY_ROOM);
        if entries.len() + entry.len() > MAX_TEXT - NOTES_ROOM {
            break;
        }
        entries.push_str(&entry);
        ids.push(mail.mail_id.clone());
    }
    let mut out = heading(lang, inbox.status, ids.len(), listed.total);
    out.push_str(&entries);
    let missing = mails.len() - ids.len();
    if missing > 0 {
        out.push_str(&match (lang, inbox.status) {
            (Lang::Zh, Status::Unread) => format!(
                "\n（还有 {missing} 封放不下，没有列出也没有标记已读：再调一次 read_inbox 就能看到）\n"
            ),
            (Lang::Zh, Status::All) => format!(
                "\n（还有 {missing} 封放不下，没有列出：用 read_thread 或 read_mail 查看）\n"
            ),
            (Lang::En, Status::Unread) => format!(
                "\n({missing} more do not fit; they are neither listed nor marked: call read_inbox \
                 again to see them)\n"
            ),
            (Lang::En, Status::All) => format!(
                "\n({missing} more do not fit and are not listed: use read_thread or read_mail)\n"
            ),
        });
    }
    if listed.skipped > 0 {
        out.push_str(&match lang {
            Lang::Zh => format!("\n（网关返回的 {} 条看不懂，已略过）\n", listed.skipped),
            Lang::En => format!("\n({} entries of the gateway are unreadable)\n", listed.skipped),
        });
    }
    (out, ids)
}

fn heading(lang: Lang, status: Status, shown: usize, total: Option<u64>) -> String {
    if shown == 0 {
        return String::from(match status {
            Status::Unread => lang.pick("没有未读邮件。\n", "There is no unread mail.\n"),
            Status::All => lang.pick("收件箱是空的。\n", "The inbox is empty.\n"),
        });
    }
    let what = match status {
        Status::Unread => lang.pick("未读邮件", "unread mail"),
        Status::All => lang.pick("全部邮件（不标记已读）", "all mail (nothing is marked as read)"),
    };
    let more = total.filter(|total| u64::try_from(shown).is_ok_and(|shown| *total > shown));
    match (lang, more) {
        (Lang::Zh, Some(total)) => {
            format!("{what}：列出 {shown} 封，共 {total} 封（其余用更大的 limit 或再调一次）\n")
        }
        (Lang::Zh, None) => format!("{what}：列出 {shown} 封\n"),
        (Lang::En, Some(total)) => {
            format!("{what}: {shown} of {total} (a larger limit or another call shows the rest)\n")
        }
        (Lang::En, None) => format!("{what}: {shown}\n"),
    }
}

/// Marks what was listed, and ends the call whatever becomes of that.
fn mark(toolbox: Toolbox, status: Status, mut listing: String, ids: Vec<String>) -> Next {
    let lang = toolbox.lang;
    if status == Status::All || ids.is_empty() {
        return Next::Done(Output::new(listing, false, lang));
    }
    let by_ids = toolbox.marks_by_ids.load(Ordering::Relaxed);
    let field = if by_ids { Field::Ids } else { Field::MailIds };
    let mark = MarkRead { mail_ids: ids, field };
    NeedHttp::next(mark.request(), move |outcome| match MarkRead::parse(outcome) {
        Err(error) if error.status() == Some(400) => {
            let field = if by_ids { Field::MailIds } else { Field::Ids };
            let again = MarkRead { mail_ids: mark.mail_ids, field };
            NeedHttp::next(again.request(), move |outcome| {
                if MarkRead::parse(outcome).is_ok() {
                    toolbox.marks_by_ids.store(!by_ids, Ordering::Relaxed);
                } else {
                    not_marked(&mut listing, lang);
                }
                Next::Done(Output::new(listing, false, lang))
            })
        }
        result => {
            if result.is_err() {
                not_marked(&mut listing, lang);
            }
            Next::Done(Output::new(listing, false, lang))
        }
    })
}

fn not_marked(listing: &mut String, lang: Lang) {
    listing.push_str(lang.pick(
        "\n（标记已读失败：这些邮件下次还会作为未读列出）\n",
        "\n(marking as read failed: these mails will be listed as unread again)\n",
    ));
}
