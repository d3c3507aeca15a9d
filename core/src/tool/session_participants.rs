//! `session_participants` (`T-10`): who takes part in a session, to answer those in copy too.

use alloc::format;
use alloc::string::String;

use super::args::{Arg, Args};
use super::{NeedHttp, Next, Output, Toolbox, text};
use crate::api::participants::{self, Participant};
use crate::lang::Lang;

const SESSION_ID: Arg = Arg::new(
    "session_id",
    "邮件会话的 session_id（邮件里列出的那个）",
    "the session_id of a mail session, as a mail lists it",
    "\"7b5081e0-0000-4000-8000-000000000000\"",
)
.or(&["id"]);
pub(super) const KNOWN: &[Arg] = &[SESSION_ID];

pub(super) fn start(args: &Args<'_>, toolbox: &Toolbox) -> Result<Next, Output> {
    args.check_names()?;
    let given = args.text(&SESSION_ID)?;
    let Some(session_id) = given.or_else(|| toolbox.session_id.clone()) else {
        return Err(args.wrong(&SESSION_ID, None));
    };
    let lang = args.lang;
    Ok(NeedHttp::next(participants::request(&session_id), move |outcome| {
        Next::Done(match participants::parse(outcome) {
            Ok(people) => Output::new(render(lang, &session_id, &people), false, lang),
            Err(error) => text::failure(lang, ("查参与方", "listing participants"), &error),
        })
    }))
}

fn render(lang: Lang, session_id: &str, people: &[Participant]) -> String {
    let session_id = text::verbatim(session_id);
    if people.is_empty() {
        return match lang {
            Lang::Zh => format!("会话 {session_id} 没有列出参与方。\n"),
            Lang::En => format!("No participants are listed for session {session_id}.\n"),
        };
    }
    let mut out = match lang {
        Lang::Zh => format!("会话 {session_id} 的参与方（{} 个）：\n", people.len()),
        Lang::En => format!("Participants of session {session_id} ({}):\n", people.len()),
    };
    for someone in people {
        put(&mut out, lang, someone);
    }
    out
}

/// One participant as a line.
pub(super) fn put(out: &mut String, lang: Lang, someone: &Participant) {
    out.push_str("- ");
    if someone.name.is_empty() {
        out.push_str(&text::verbatim(&someone.address));
    } else {
        out.push_str(&text::person(lang, &someone.name, someone.human));
        if !someone.address.is_empty() {
            let label = lang.pick("地址", "address");
            out.push_str(&format!("  {label}: {}", text::verbatim(&someone.address)));
        }
    }
    if !someone.role.is_empty() {
        out.push_str(&format!("  {}", text::line(&someone.role)));
    }
    out.push('\n');
}
