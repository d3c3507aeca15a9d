//! `suggest_address` (`T-8`): candidates for a name, then its path, then the session there, so that
//! nobody guesses an address and talks to an empty session.

use alloc::format;
use alloc::string::String;

use super::args::{Arg, Args};
use super::{NeedHttp, Next, Output, text};
use crate::api::ApiError;
use crate::api::suggest::{Stage, Suggest, Suggested, Suggestion};
use crate::lang::Lang;

/// Candidates shown at most.
const MAX_SHOWN: usize = 100;

const NAME: Arg =
    Arg::new("name", "Agent 名或用户名", "the name of an agent or person", "\"pi\"").or(&["agent"]);
const PATH: Arg =
    Arg::new("path", "工作目录", "a working directory", "\"/home/me/project\"").or(&["workspace"]);
const QUERY: Arg =
    Arg::new("query", "用来匹配的几个字", "a few characters to match", "\"refac\"").or(&["q"]);
pub(super) const KNOWN: &[Arg] = &[NAME, PATH, QUERY];

pub(super) fn start(args: &Args<'_>) -> Result<Next, Output> {
    args.check_names()?;
    let lang = args.lang;
    let (name, path) = (args.text(&NAME)?, args.text(&PATH)?);
    if name.is_none() && path.is_some() {
        return Err(args.error(match lang {
            Lang::Zh => "suggest_address 给了 \"path\" 就还需要 \"name\"：要谁在这个目录里。\
                         例如 {\"name\": \"pi\", \"path\": \"/home/me/project\"}"
                .into(),
            Lang::En => {
                "suggest_address needs \"name\" together with \"path\": whose directory it \
                         is. Example: {\"name\": \"pi\", \"path\": \"/home/me/project\"}"
                    .into()
            }
        }));
    }
    let suggest = Suggest { name, path, query: args.text(&QUERY)?, explicit: false };
    Ok(NeedHttp::next(suggest.request(), move |outcome| match Suggest::parse(outcome) {
        Err(error) if error.status() == Some(400) => {
            let again = Suggest { explicit: true, ..suggest };
            NeedHttp::next(again.request(), move |outcome| {
                finish(lang, &again, Suggest::parse(outcome))
            })
        }
        result => finish(lang, &suggest, result),
    }))
}

fn finish(lang: Lang, asked: &Suggest, result: Result<Suggested, ApiError>) -> Next {
    Next::Done(match result {
        Ok(found) => Output::new(render(lang, asked, &found), false, lang),
        Err(error) => text::failure(lang, ("查地址", "looking up addresses"), &error),
    })
}

fn render(lang: Lang, asked: &Suggest, found: &Suggested) -> String {
    let (what_zh, what_en) = match asked.stage() {
        Stage::Name => ("收件人", "names"),
        Stage::Path => ("工作目录", "directories"),
        Stage::Session => ("会话", "sessions"),
    };
    let mut out = String::new();
    if found.suggestions.is_empty() {
        out.push_str(&match lang {
            Lang::Zh => format!("没有匹配的{what_zh}。\n"),
            Lang::En => format!("No {what_en} match.\n"),
        });
    } else {
        out.push_str(&match lang {
            Lang::Zh => format!("可用的{what_zh}（{} 个）：\n", found.suggestions.len()),
            Lang::En => format!("{what_en} ({}):\n", found.suggestions.len()),
        });
    }
    for candidate in found.suggestions.iter().take(MAX_SHOWN) {
        put(&mut out, lang, asked, candidate);
    }
    if found.suggestions.len() > MAX_SHOWN {
        let left = found.suggestions.len() - MAX_SHOWN;
        out.push_str(&match lang {
            Lang::Zh => format!("（还有 {left} 个没有列出：用 query 缩小范围）\n"),
            Lang::En => format!("({left} more are not shown: narrow it down with query)\n"),
        });
    }
    if !found.did_you_mean.is_empty() {
        let names: alloc::vec::Vec<_> = found.did_you_mean.iter().map(|n| text::line(n)).collect();
        text::field(&mut out, lang, ("你是不是想找", "did you mean"), &names.join(", "));
    }
    out.push_str(match asked.stage() {
        Stage::Name => lang.pick(
            "下一步：带上 name 再调一次，看它的工作目录；人可以直接用名字作地址。\n",
            "Next: call again with name to see its directories; a person is addressed by name.\n",
        ),
        Stage::Path => lang.pick(
            "下一步：带上 name 和 path 再调一次，看那里已有的会话。\n",
            "Next: call again with name and path to see the sessions there.\n",
        ),
        Stage::Session => lang.pick(
            "地址里写会话别名就续谈那条会话；不写是默认会话；.new 是强制新建。\n",
            "An alias in the address goes on with that session; none is the default session; .new \
             always opens another.\n",
        ),
    });
    out
}

fn put(out: &mut String, lang: Lang, asked: &Suggest, candidate: &Suggestion) {
    out.push_str("- ");
    out.push_str(&text::verbatim(&candidate.value));
    let address = if candidate.address.is_empty() {
        derived(asked, candidate)
    } else {
        candidate.address.clone()
    };
    if !address.is_empty() && address != candidate.value {
        let label = lang.pick("地址", "address");
        out.push_str(&format!("  {label}: {}", text::verbatim(&address)));
    }
    match candidate.kind.as_str() {
        "human" => out.push_str(lang.pick("  人类", "  human")),
        "agent" => out.push_str("  Agent"),
        _ => {}
    }
    match candidate.online {
        Some(true) => out.push_str(lang.pick("  在线", "  online")),
        Some(false) => out.push_str(lang.pick("  离线", "  offline")),
        None => {}
    }
    if candidate.platform {
        out.push_str(lang.pick("  （界面上的会话）", "  (a session of its own interface)"));
    }
    if !candidate.title.is_empty() {
        out.push_str(&format!("  {}", text::line(&candidate.title)));
    }
    if !candidate.used_at.is_empty() {
        out.push_str(&format!("  {}", text::line(&candidate.used_at)));
    }
    out.push('\n');
}

/// The address of a candidate that came without one.
fn derived(asked: &Suggest, candidate: &Suggestion) -> String {
    match (&asked.name, &asked.path) {
        (None, _) => candidate.value.clone(),
        (Some(name), None) => format!("{name}@{}", candidate.value),
        (Some(name), Some(path)) => format!("{name}@{path}.{}", candidate.value),
    }
}
