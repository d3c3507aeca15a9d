//! `connect_to_server` (`T-6`): settles which gateway this process talks to, and registers there.
//!
//! A key that is stored on this machine never goes to another host because a model says so: a mail
//! could make it say that. A new host needs a key that was made for it.

use alloc::boxed::Box;
use alloc::format;

use super::args::{Arg, Args};
use super::{ConnectOutcome, NeedConnect, Next, Output, text};
use crate::config::Secret;
use crate::lang::Lang;

const URL: Arg = Arg::new(
    "url",
    "网关地址，以 http:// 或 https:// 开头",
    "the gateway's address, starting with http:// or https://",
    "\"https://mail.example.org\"",
)
.or(&["server_url", "gateway_url", "server"]);
const AGENT_NAME: Arg =
    Arg::new("agent_name", "本 Agent 的名字", "this agent's name", "\"zcode\"").or(&["name"]);
const AGENT_KEY: Arg = Arg::new(
    "agent_key",
    "用户给出的、该网关签发的 Agent 密钥",
    "an agent key of that gateway, given by the user",
    "\"am_...\"",
)
.or(&["key"]);
pub(super) const KNOWN: &[Arg] = &[URL, AGENT_NAME, AGENT_KEY];

pub(super) fn start(args: &Args<'_>) -> Result<Next, Output> {
    args.check_names()?;
    let url = args.text(&URL)?;
    let shape = |url: &str| url.starts_with("http://") || url.starts_with("https://");
    if let Some(url) = url.as_deref().filter(|url| !shape(url)) {
        return Err(args.wrong(&URL, Some(&url.into())));
    }
    let agent_name = args.text(&AGENT_NAME)?;
    let agent_key = args.text(&AGENT_KEY)?.map(Secret::new);
    let lang = args.lang;
    let then = Box::new(move |outcome| Next::Done(finish(lang, outcome)));
    Ok(Next::Connect(NeedConnect { url, agent_name, agent_key, then }))
}

fn finish(lang: Lang, outcome: ConnectOutcome) -> Output {
    let (is_error, out) = match outcome {
        ConnectOutcome::Connected { url, agent_name, stored, only_this_process } => {
            let (url, name) = (text::verbatim(&url), text::line(&agent_name));
            let mut out = match lang {
                Lang::Zh => format!("已接入 {url}，身份 {name}。\n"),
                Lang::En => format!("Connected to {url} as {name}.\n"),
            };
            if let Some(path) = stored {
                text::field(&mut out, lang, ("密钥已存入", "key stored in"), &text::line(&path));
            }
            if only_this_process {
                out.push_str(lang.pick(
                    "只对当前进程有效：要长期使用，请让用户设置 AGENTMAIL_GATEWAY_URL 和 \
                     AGENTMAIL_AGENT_KEY。\n",
                    "This holds for this process only: to keep it, the user sets \
                     AGENTMAIL_GATEWAY_URL and AGENTMAIL_AGENT_KEY.\n",
                ));
            }
            (false, out)
        }
        ConnectOutcome::Refused { url, error, new_key } => {
            let mut failed = text::failure(lang, ("接入", "connecting"), &error).text;
            failed.push('\n');
            text::field(&mut failed, lang, ("网关", "gateway"), &text::verbatim(&url));
            if let Some(path) = new_key {
                let path = text::line(&path);
                failed.push_str(&match lang {
                    Lang::Zh => format!(
                        "本机刚生成了一把密钥，存在 {path}（全文打印在本程序的 stderr）：\
                         请让管理员在 AgentMail 后台登记它，然后再调一次。\n"
                    ),
                    Lang::En => format!(
                        "A key was just made and stored in {path} (printed in full on this \
                         program's stderr): an administrator has to register it in AgentMail; then \
                         call again.\n"
                    ),
                });
            }
            (true, failed)
        }
        ConnectOutcome::BadUrl(why) => {
            let why = text::line(&why);
            let example = URL.example;
            (
                true,
                match lang {
                    Lang::Zh => format!("参数 \"url\" 不能用：{why}。例如 {{\"url\": {example}}}"),
                    Lang::En => {
                        format!("\"url\" cannot be used: {why}. Example: {{\"url\": {example}}}")
                    }
                },
            )
        }
        ConnectOutcome::KeyStays { url } => {
            let url = text::verbatim(&url);
            (
                true,
                match lang {
                    Lang::Zh => format!(
                        "没有接入 {url}：本机存的密钥属于另一个网关，不会发给新的主机。\
                         请让用户给出该网关签发的密钥（参数 agent_key），\
                         或由用户设置 AGENTMAIL_GATEWAY_URL 后重启。"
                    ),
                    Lang::En => format!(
                        "Not connected to {url}: the key on this machine belongs to another gateway \
                         and is not sent to a new host. Ask the user for a key of that gateway \
                         (argument agent_key), or have the user set AGENTMAIL_GATEWAY_URL and \
                         restart."
                    ),
                },
            )
        }
        ConnectOutcome::NoKey(why) => {
            let why = text::line(&why);
            (
                true,
                match lang {
                    Lang::Zh => format!(
                        "没有可用的密钥：{why}。请让用户设置 AGENTMAIL_AGENT_KEY，或在参数 \
                         agent_key 里给出。"
                    ),
                    Lang::En => format!(
                        "No key can be had: {why}. The user can set AGENTMAIL_AGENT_KEY, or give one \
                         as agent_key."
                    ),
                },
            )
        }
    };
    Output::new(out, is_error, lang)
}
