//! Every text of the hook that a model or a person reads, in both languages.
//!
//! Refusals are honest: that a user refused is said only when a person did, every other end says
//! what happened and what to do next (`B-8.2c`).

use alloc::format;
use alloc::string::String;

use super::outcome::{Because, Person};
use crate::lang::Lang;

/// The reason that goes with a refusal.
///
/// Also worded for ends that approve or say nothing, for the log.
#[must_use]
pub fn reason(because: &Because, tool: Option<&str>, lang: Lang) -> String {
    let tool = tool.unwrap_or(lang.pick("这次工具调用", "this tool call"));
    match lang {
        Lang::Zh => reason_zh(because, tool),
        Lang::En => reason_en(because, tool),
    }
}

fn reason_zh(because: &Because, tool: &str) -> String {
    match because {
        Because::NotOurs => format!("{tool} 不在授权范围内，不表态。"),
        Because::FullMode => format!("本会话是 full 档，{tool} 无需询问。"),
        Because::OwnTool => format!("{tool} 是 AgentMail 自己的邮件工具，无需询问。"),
        Because::Granted => format!("本会话此前已对 {tool} 选择「一直同意」。"),
        Because::Answered => format!("这一次 {tool} 刚刚已经有人同意。"),
        Because::PlanMode => format!(
            "本会话处于 plan 档（只读规划），不能执行 {tool}，也没有为此打扰任何人。\
             请继续阅读和分析，把要做的改动写成方案回复；需要动手时，请对方把会话改为 workspace 或 full 档。"
        ),
        Because::ApprovedOnce(person) => format!("{} 同意了这一次 {tool}。", name_zh(person)),
        Because::ApprovedAlways(person) => {
            format!("{} 同意本会话一直使用 {tool}。", name_zh(person))
        }
        Because::Refused(person) => format!(
            "用户拒绝：{} 拒绝了这次 {tool}{}。不要换一种写法重试同一件事；请按对方的意思调整，或说明情况后停下。",
            name_zh(person),
            note_zh(person)
        ),
        Because::Unclear(person, text) => format!(
            "{} 的答复「{text}」不是可选项之一，按不同意处理，{tool} 没有执行{}。",
            name_zh(person),
            note_zh(person)
        ),
        Because::Unreadable(error) => format!(
            "钩子看不懂 ZCode 传来的事件（{error}），因此没有人被询问，{tool} 没有执行。这是程序问题，不是有人拒绝；请报告此情况。"
        ),
        Because::NotConfigured(detail) => format!(
            "AgentMail 没有配置好，无法询问任何人，{tool} 没有执行（{detail}）。这不是有人拒绝；请让管理员检查 AGENTMAIL_* 环境变量。"
        ),
        Because::TooLarge(bytes) => format!(
            "授权请求有 {bytes} 字节，超过网关一次能接收的大小，而请求必须完整，因此没有询问任何人，{tool} 没有执行。请把改动拆成几次较小的调用。"
        ),
        Because::GatewayRefused { status, message, suggestion } => format!(
            "授权请求被网关拒收（HTTP {status}）：{message}。{}这不是有人拒绝；重试同样的请求不会有不同结果，{tool} 没有执行。",
            suggestion.as_ref().map_or_else(String::new, |advice| format!("建议：{advice}。"))
        ),
        Because::Unreachable(cause) => format!(
            "联系不上 AgentMail 网关（{cause}），没有人能看到授权请求，{tool} 没有执行。这不是有人拒绝；可稍后再试。"
        ),
        Because::TimedOut(ms) => format!(
            "等了 {}，没有人对授权请求作出决定，请求已撤回，{tool} 没有执行。这不是有人拒绝；可以先做不需要授权的工作，或说明情况后停下。",
            span_zh(*ms)
        ),
        Because::Withdrawn => format!(
            "授权请求在有人决定之前已被撤回或过期，{tool} 没有执行。这不是有人拒绝；仍有需要时请重新发起。"
        ),
        Because::Changed(what) => format!(
            "已有人同意，但等待期间内容变了（{what}），同意不再适用，{tool} 没有执行。这不是有人拒绝；请重新发起，让人看到现在的内容。"
        ),
        Because::Signal => {
            format!("等待授权时 ZCode 结束了钩子，请求已撤回，{tool} 没有执行。这不是有人拒绝。")
        }
        Because::Internal(error) => format!(
            "授权钩子内部出错（{error}），没有得到任何人的同意，{tool} 没有执行。这是程序问题，不是有人拒绝；请报告此情况。"
        ),
    }
}

fn reason_en(because: &Because, tool: &str) -> String {
    match because {
        Because::NotOurs => format!("{tool} is not guarded; no opinion."),
        Because::FullMode => format!("This session is in full mode; {tool} needs no question."),
        Because::OwnTool => format!("{tool} is AgentMail's own mail tool; it needs no question."),
        Because::Granted => format!("{tool} was approved for this whole session earlier."),
        Because::Answered => format!("This {tool} was approved a moment ago."),
        Because::PlanMode => format!(
            "This session is in plan mode (read and plan only), so {tool} cannot run, and nobody \
             was asked. Keep reading and analysing and answer with a plan; to act, ask for the \
             session to be set to workspace or full mode."
        ),
        Because::ApprovedOnce(person) => format!("{} approved this {tool}.", name_en(person)),
        Because::ApprovedAlways(person) => {
            format!("{} approved {tool} for the rest of this session.", name_en(person))
        }
        Because::Refused(person) => format!(
            "User refused: {} refused this {tool}{}. Do not try the same thing in other words; \
             follow what they said, or explain and stop.",
            name_en(person),
            note_en(person)
        ),
        Because::Unclear(person, text) => format!(
            "The answer \"{text}\" of {} is none of the options and counts as no, so {tool} did \
             not run{}.",
            name_en(person),
            note_en(person)
        ),
        Because::Unreadable(error) => format!(
            "The hook cannot read ZCode's event ({error}), so nobody was asked and {tool} did not \
             run. This is a fault of the software, not a person's refusal; please report it."
        ),
        Because::NotConfigured(detail) => format!(
            "AgentMail is not set up, so nobody can be asked and {tool} did not run ({detail}). \
             This is not a person's refusal; an administrator must check the AGENTMAIL_* variables."
        ),
        Because::TooLarge(bytes) => format!(
            "The request for approval has {bytes} bytes, more than the gateway takes at once, and \
             it must be complete, so nobody was asked and {tool} did not run. Split the change \
             into smaller calls."
        ),
        Because::GatewayRefused { status, message, suggestion } => format!(
            "The gateway does not take the request for approval (HTTP {status}): {message}. {}This \
             is not a person's refusal; the same request will get the same answer, and {tool} did \
             not run.",
            suggestion
                .as_ref()
                .map_or_else(String::new, |advice| format!("Suggestion: {advice}. "))
        ),
        Because::Unreachable(cause) => format!(
            "The AgentMail gateway is unreachable ({cause}), so nobody can see the request and \
             {tool} did not run. This is not a person's refusal; try again later."
        ),
        Because::TimedOut(ms) => format!(
            "Nobody decided within {}, the request was withdrawn, and {tool} did not run. This is \
             not a person's refusal; do what needs no approval first, or explain and stop.",
            span_en(*ms)
        ),
        Because::Withdrawn => format!(
            "The request was withdrawn or ran out before anybody decided, and {tool} did not run. \
             This is not a person's refusal; ask again if it is still needed."
        ),
        Because::Changed(what) => format!(
            "A person approved, but what would run changed meanwhile ({what}), so the approval does \
             not cover it and {tool} did not run. This is not a person's refusal; ask again so that \
             they see it as it is now."
        ),
        Because::Signal => format!(
            "ZCode ended the hook while it waited, the request was withdrawn, and {tool} did not \
             run. This is not a person's refusal."
        ),
        Because::Internal(error) => format!(
            "The permission hook failed ({error}), nobody approved, and {tool} did not run. This \
             is a fault of the software, not a person's refusal; please report it."
        ),
    }
}

fn name_zh(person: &Person) -> &str {
    person.name.as_deref().unwrap_or("决策人")
}

fn name_en(person: &Person) -> &str {
    person.name.as_deref().unwrap_or("the person asked")
}

fn note_zh(person: &Person) -> String {
    person.note.as_ref().map_or_else(String::new, |note| format!("，留言：{note}"))
}

fn note_en(person: &Person) -> String {
    person.note.as_ref().map_or_else(String::new, |note| format!(", saying: {note}"))
}

/// A span of milliseconds in words, whole minutes where it has them.
pub(super) fn span_zh(ms: u64) -> String {
    match (ms / 60_000, ms % 60_000) {
        (minutes, 0) if minutes > 0 => format!("{minutes} 分钟"),
        _ if ms >= 1_000 => format!("{} 秒", ms / 1_000),
        _ => format!("{ms} 毫秒"),
    }
}

/// As [`span_zh`], in English.
pub(super) fn span_en(ms: u64) -> String {
    match (ms / 60_000, ms % 60_000) {
        (minutes, 0) if minutes > 0 => format!("{minutes} min"),
        _ if ms >= 1_000 => format!("{} s", ms / 1_000),
        _ => format!("{ms} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::event::Unreadable;
    use crate::hook::outcome::{Answer, Verdict};

    fn ends() -> alloc::vec::Vec<Because> {
        let person = || Person { name: Some("韩梅".into()), note: Some("先写测试".into()) };
        alloc::vec![
            Because::NotOurs,
            Because::FullMode,
            Because::OwnTool,
            Because::Granted,
            Because::Answered,
            Because::PlanMode,
            Because::ApprovedOnce(person()),
            Because::ApprovedAlways(person()),
            Because::Refused(person()),
            Because::Unclear(person(), "好吧".into()),
            Because::Unreadable(Unreadable::Empty),
            Because::NotConfigured("HOME is not set".into()),
            Because::TooLarge(2_000_000),
            Because::GatewayRefused {
                status: 409,
                message: "无人可问".into(),
                suggestion: Some("请人类参与".into()),
            },
            Because::Unreachable("refused".into()),
            Because::TimedOut(540_000),
            Because::Withdrawn,
            Because::Changed("./x.sh".into()),
            Because::Signal,
            Because::Internal("boom".into()),
        ]
    }

    #[test]
    fn only_a_persons_refusal_says_that_a_user_refused() {
        for because in ends() {
            let refused = matches!(because, Because::Refused(_));
            for (lang, words) in [(Lang::Zh, "用户拒绝"), (Lang::En, "User refused")] {
                let text = reason(&because, Some("Bash"), lang);
                assert_eq!(text.contains(words), refused, "{text}");
            }
        }
    }

    #[test]
    fn the_causes_reach_the_model() {
        for (because, facts) in [
            (&ends()[8], ["韩梅", "先写测试"]),
            (&ends()[9], ["韩梅", "好吧"]),
            (&ends()[13], ["无人可问", "请人类参与"]),
            (&ends()[15], ["9", "Bash"]),
        ] {
            for lang in [Lang::Zh, Lang::En] {
                let text = reason(because, Some("Bash"), lang);
                for fact in facts {
                    assert!(text.contains(fact), "{text} lacks {fact}");
                }
            }
        }
    }

    #[test]
    fn the_fail_closed_table_holds_in_both_columns() {
        for because in ends() {
            // (mail-driven, interactive): + approve, - block, . nothing
            let expected = match because.code() {
                "full-mode" | "own-tool" | "granted" | "answered" | "approved-once"
                | "approved-always" => "++",
                "plan-mode" | "refused" | "unclear-decision" | "request-too-large"
                | "permanent-failure" | "withdrawn" | "request-changed" => "--",
                "not-ours" => "..",
                _ => "-.",
            };
            let cell = |driven| match Verdict::new(because.clone(), driven, Some("Bash"), Lang::Zh)
                .answer
            {
                Answer::Approve => '+',
                Answer::Block(_) => '-',
                Answer::NoOpinion => '.',
            };
            let got: String = [cell(true), cell(false)].iter().collect();
            assert_eq!(got, expected, "{}", because.code());
        }
    }
}
