//! `send_mail` (`T-2`, `T-13`): a mail of the model's own. It never carries `relay` (`W-5.3`), and
//! a plain send is never repeated by itself: it is not idempotent.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::args::{Arg, Args};
use super::receipt::{self, Asked, Rename};
use super::{NeedHttp, Next, Output, rename, text};
use crate::address::Address;
use crate::api::send;
use crate::lang::Lang;

pub(super) const TO: Arg = Arg::new(
    "to",
    "收件人地址：名字，或 名字@路径.会话（回信时原样填 reply_address）",
    "an address: a name, or name@path.session (for an answer the reply_address, verbatim)",
    "\"admin\"",
);
pub(super) const CC: Arg = Arg::new(
    "cc",
    "抄送地址，用逗号分隔；地址里不能有空格",
    "addresses in copy, separated by commas; an address must not hold blanks",
    "\"ops@root, sre@root\"",
);
const SUBJECT: Arg = Arg::new("subject", "主题文字", "a subject", "\"Re: 重构导入路径\"");
const BODY: Arg = Arg::new("body", "正文（Markdown 文字）", "the text, Markdown", "\"已完成。\"")
    .or(&["text", "content"]);
const REPLY_TO: Arg = Arg::new(
    "reply_to",
    "所回复邮件的 mail_id",
    "the mail_id of the mail that this answers",
    "\"9ea5ff18-0000-4000-8000-000000000000\"",
)
.or(&["in_reply_to"]);
pub(super) const SESSION_ALIAS: Arg = Arg::new(
    "session_alias",
    "新会话的别名，不含 . @ /",
    "a name for the new session, without . @ /",
    "\"refactor\"",
);
const ATTACHMENT_IDS: Arg = Arg::new(
    "attachment_ids",
    "upload_attachment 返回的 attachment_id，多个用逗号分隔",
    "attachment ids from upload_attachment, separated by commas",
    "\"att-1, att-2\"",
)
.or(&["attachments", "attachment_id"]);
const PROPOSE_ALIAS: Arg = Arg::new(
    "propose_alias",
    "提议的会话别名文字",
    "the alias to propose for the session",
    "\"fix-session-cookie-leak\"",
);
const PROPOSE_REASON: Arg = Arg::new(
    "propose_reason",
    "提议改名的理由文字",
    "why the new alias is better",
    "\"已定位根因\"",
);
pub(super) const KNOWN: &[Arg] = &[
    TO,
    SUBJECT,
    BODY,
    CC,
    REPLY_TO,
    SESSION_ALIAS,
    ATTACHMENT_IDS,
    PROPOSE_ALIAS,
    PROPOSE_REASON,
];

pub(super) fn start(args: &Args<'_>, host_session: Option<String>) -> Result<Next, Output> {
    args.check_names()?;
    let lang = args.lang;
    let to = receiver(args)?;
    let subject = args.required(&SUBJECT)?;
    let mut body = args.required_verbatim(&BODY)?;
    let proposed = args.text(&PROPOSE_ALIAS)?;
    let reason = args.text(&PROPOSE_REASON)?.unwrap_or_default();
    let rename = match proposed {
        None => {
            body = rename::strip(&body);
            Rename::None
        }
        Some(alias) if rename::may_propose(&alias) => {
            body = rename::append(&body, &rename::marker(&alias, &reason, lang));
            Rename::Proposed
        }
        Some(alias) => {
            body = rename::strip(&body);
            Rename::Unusable(alias)
        }
    };
    let reply_to = args.text(&REPLY_TO)?;
    let request = send::Request {
        to: to.clone(),
        cc: copies(args)?,
        subject,
        body,
        reply_to: reply_to.clone(),
        session_alias: args.text(&SESSION_ALIAS)?,
        attachment_ids: args.list(&ATTACHMENT_IDS)?,
        relay: None,
    };
    let asked = Asked {
        verb: ("邮件已发给", "Mail sent to"),
        to,
        reply_to: reply_to.unwrap_or_default(),
        host_session,
        rename,
    };
    Ok(NeedHttp::next(request.request(), move |outcome| match send::Request::parse(outcome) {
        Ok(sent) => receipt::sent(lang, &asked, &sent),
        Err(error) => Next::Done(text::send_failure(lang, ("发信", "sending"), &error)),
    }))
}

/// The address in `to`, as given; one without a name is refused before it costs an exchange.
pub(super) fn receiver(args: &Args<'_>) -> Result<String, Output> {
    let to = args.required(&TO)?;
    match to.parse::<Address>() {
        Ok(_) => Ok(to),
        Err(_) => Err(args.wrong(&TO, Some(&to.into()))),
    }
}

/// The addresses in copy as the wire wants them: one text, separated by commas. White space also
/// separates there, so an address that holds a blank cannot be written and is refused (gap G-9).
pub(super) fn copies(args: &Args<'_>) -> Result<String, Output> {
    let addresses: Vec<String> = args.list(&CC)?;
    if let Some(address) = addresses.iter().find(|text| text.contains(char::is_whitespace)) {
        let address = text::line(address);
        return Err(args.error(match args.lang {
            Lang::Zh => format!(
                "抄送地址 {address:?} 里有空格，而抄送用空格分隔，写不进去：\
                 请改用别名形式的地址，或单独发一封。例如 {{\"cc\": {}}}",
                CC.example
            ),
            Lang::En => format!(
                "The address {address:?} in \"cc\" holds a blank, which separates addresses there: \
                 use an address without one, or send a mail of its own. Example: {{\"cc\": {}}}",
                CC.example
            ),
        }));
    }
    Ok(addresses.join(", "))
}
