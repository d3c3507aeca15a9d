//! `list_contacts` (`T-9`): every session the agent took part in, with a deliverable address.

use alloc::format;
use alloc::string::String;

use super::args::{Arg, Args};
use super::{MAX_TEXT, NeedHttp, Next, Output, text};
use crate::api::contacts::{self, Contact};
use crate::lang::Lang;

/// Bytes kept free for the closing note.
const NOTES_ROOM: usize = 1_000;

const QUERY: Arg =
    Arg::new("query", "用来匹配的几个字", "a few characters to match", "\"refac\"").or(&["q"]);
const OFFSET: Arg = Arg::new(
    "offset",
    "跳过前几个的整数，默认 0",
    "an integer: how many to skip, 0 by default",
    "0",
);
pub(super) const KNOWN: &[Arg] = &[QUERY, OFFSET];

pub(super) fn start(args: &Args<'_>) -> Result<Next, Output> {
    args.check_names()?;
    let query = args.text(&QUERY)?;
    let offset = args.integer(&OFFSET, (0, u64::from(u32::MAX)), 0)?;
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    let lang = args.lang;
    Ok(NeedHttp::next(contacts::request(), move |outcome| {
        Next::Done(match contacts::parse(outcome) {
            Ok(found) => {
                let matching: alloc::vec::Vec<&Contact> =
                    found.iter().filter(|c| matches(c, query.as_deref())).collect();
                let text = if matching.is_empty() && !found.is_empty() {
                    let all = found.len();
                    match lang {
                        Lang::Zh => {
                            format!("没有匹配的联系人（共 {all} 条，去掉 query 可全部列出）。\n")
                        }
                        Lang::En => format!("No contact matches; without query there are {all}.\n"),
                    }
                } else {
                    render(lang, &matching, offset)
                };
                Output::new(text, false, lang)
            }
            Err(error) => text::failure(lang, ("查联系人", "listing contacts"), &error),
        })
    }))
}

fn matches(contact: &Contact, query: Option<&str>) -> bool {
    let Some(query) = query else { return true };
    let query = query.to_lowercase();
    [&contact.name, &contact.address, &contact.session_alias, &contact.subject]
        .iter()
        .any(|text| text.to_lowercase().contains(&query))
}

fn render(lang: Lang, contacts: &[&Contact], offset: usize) -> String {
    let all = contacts.len();
    if all == 0 {
        return lang
            .pick(
                "没有联系人。可以用 suggest_address 查可用的收件人。\n",
                "No contacts. suggest_address shows whom a mail can go to.\n",
            )
            .into();
    }
    let mut out = match lang {
        Lang::Zh => format!("参与过的会话（{all} 条），地址可直接用作 to：\n"),
        Lang::En => format!("Sessions you took part in ({all}); use the address as `to`:\n"),
    };
    for (nth, contact) in contacts.iter().enumerate().skip(offset) {
        let entry = entry(lang, contact);
        if out.len() + entry.len() > MAX_TEXT - NOTES_ROOM {
            let left = all - nth;
            out.push_str(&match lang {
                Lang::Zh => {
                    format!("（还有 {left} 条放不下：参数 {{\"offset\": {nth}}} 继续看）\n")
                }
                Lang::En => format!("({left} more: go on with {{\"offset\": {nth}}})\n"),
            });
            break;
        }
        out.push_str(&entry);
    }
    out
}

fn entry(lang: Lang, contact: &Contact) -> String {
    let address = if !contact.address.is_empty() {
        text::verbatim(&contact.address)
    } else if contact.session_alias.is_empty() {
        text::verbatim(&contact.name)
    } else {
        format!("{}@.{}", text::verbatim(&contact.name), text::verbatim(&contact.session_alias))
    };
    let mut out = format!("- {address}");
    if !contact.name.is_empty() {
        out.push_str(&format!("  {}", text::person(lang, &contact.name, contact.human)));
    }
    if !contact.session_alias.is_empty() {
        let label = lang.pick("会话", "session");
        out.push_str(&format!("  {label} {}", text::line(&contact.session_alias)));
    }
    if !contact.session_id.is_empty() {
        out.push_str(&format!("  session_id={}", text::verbatim(&contact.session_id)));
    }
    if !contact.subject.is_empty() {
        out.push_str(&format!("  {}", text::line(&contact.subject)));
    }
    if !contact.last_mail_at.is_empty() {
        out.push_str(&format!("  {}", text::line(&contact.last_mail_at)));
    }
    out.push('\n');
    out
}
