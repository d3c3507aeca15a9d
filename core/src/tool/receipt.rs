//! What a model reads after a mail went out, and the note of it for the driver.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

use super::{NeedRecord, Next, Output, SentRecord, text};
use crate::api::send::Sent;
use crate::lang::Lang;

/// What was asked for beside the mail itself.
pub(super) struct Asked {
    pub(super) verb: (&'static str, &'static str),
    pub(super) to: String,
    pub(super) reply_to: String,
    pub(super) host_session: Option<String>,
    pub(super) rename: Rename,
}

/// What became of a proposed alias before sending.
pub(super) enum Rename {
    /// None was proposed.
    None,
    /// A marker went along.
    Proposed,
    /// The alias cannot be proposed, so no marker went along (`T-13.3`).
    Unusable(String),
}

/// Ends a successful send: notes it, then answers.
pub(super) fn sent(lang: Lang, asked: &Asked, sent: &Sent) -> Next {
    let output = Output::new(render(lang, asked, sent), false, lang);
    let record = SentRecord {
        session_id: sent.session_id.clone().unwrap_or_default(),
        mail_id: sent.mail_id.clone().unwrap_or_default(),
        reply_to: asked.reply_to.clone(),
        host_session_id: asked.host_session.clone().unwrap_or_default(),
    };
    Next::Record(NeedRecord { record, then: Box::new(move || Next::Done(output)) })
}

fn render(lang: Lang, asked: &Asked, sent: &Sent) -> String {
    let (zh, en) = asked.verb;
    let to = text::verbatim(&asked.to);
    let mut out = match lang {
        Lang::Zh => format!("{zh} {to}。\n"),
        Lang::En => format!("{en} {to}.\n"),
    };
    let shown = |value: &Option<String>| text::verbatim(value.as_deref().unwrap_or_default());
    text::field(&mut out, lang, ("mail_id", "mail_id"), &shown(&sent.mail_id));
    text::field(&mut out, lang, ("会话别名", "session alias"), &shown(&sent.session_alias));
    text::field(&mut out, lang, ("session_id", "session_id"), &shown(&sent.session_id));
    match (sent.budget_remaining, sent.budget_max) {
        // Zero of zero is a session without a limit.
        (_, Some(0)) | (None, _) => {}
        (Some(left), max) => {
            let max = max.map(|max| format!("/{max}")).unwrap_or_default();
            text::field(
                &mut out,
                lang,
                ("剩余发信配额", "rounds left in this session"),
                &format!("{left}{max}"),
            );
        }
    }
    match (&asked.rename, &sent.rename_proposed) {
        (Rename::Unusable(alias), _) => {
            let alias = text::line(alias);
            out.push_str(&match lang {
                Lang::Zh => format!(
                    "别名 {alias:?} 不能提议（空、超过 64 个字符，或含换行、引号、尖括号）：\
                     邮件已发出，没有带改名提议。\n"
                ),
                Lang::En => format!(
                    "The alias {alias:?} cannot be proposed (empty, over 64 characters, or with a \
                     line end, quote or angle bracket): the mail went out without the proposal.\n"
                ),
            });
        }
        (_, Some(alias)) => {
            let alias = text::line(alias);
            out.push_str(&match lang {
                Lang::Zh => {
                    format!("改名提议已登记：{alias}。等人确认；确认之前请继续使用原来的别名。\n")
                }
                Lang::En => format!(
                    "Rename proposed: {alias}. A human has to confirm it; until then go on using \
                     the present alias.\n"
                ),
            });
        }
        (Rename::Proposed, None) => out.push_str(lang.pick(
            "网关没有接受改名提议；别名不变。\n",
            "The gateway took no rename proposal; the alias stays as it is.\n",
        )),
        (Rename::None, None) => {}
    }
    out
}
