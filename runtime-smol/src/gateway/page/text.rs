//! Every fixed text of the page in both languages. A text without a translation does not compile.

use zcode_mail_core::decision::{ALWAYS, ONCE, REJECT};
use zcode_mail_core::lang::Lang;

macro_rules! catalogue {
    ($($(#[$doc:meta])* $name:ident => $zh:literal, $en:literal;)*) => {
        /// A fixed text of the page.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Text {
            $($(#[$doc])* $name,)*
        }

        impl Text {
            /// The text in `lang`.
            pub(super) const fn say(self, lang: Lang) -> &'static str {
                match self {
                    $(Self::$name => lang.pick($zh, $en),)*
                }
            }
        }
    };
}

catalogue! {
    Product => "AgentMail", "AgentMail";
    Skip => "跳到正文", "Skip to the content";
    Waiting => "待批准", "Waiting";
    History => "历史", "History";
    LogIn => "登录", "Log in";
    LogOut => "退出", "Log out";
    Name => "用户名", "Name";
    Password => "密码", "Password";
    LoginHint =>
        "没有密码？请在网关所在机器上运行 zcode-mail user login-link，会打印一个一次性链接。",
        "No password? Run zcode-mail user login-link on the gateway's machine; it prints a link that works once.";
    WrongLogin => "用户名或密码不对。", "Name or password is wrong.";
    CodeQuestion => "用这个一次性链接登录？", "Log in with this one-time link?";
    CodeButton => "登录", "Log in";
    CodeDead =>
        "这个登录链接已经用过、过期或不存在。请再生成一个。",
        "This login link was used, has run out, or never existed. Make another one.";
    OtherLanguage => "English", "中文";
    NothingWaits => "现在没有等你批准的请求。", "Nothing waits for you.";
    NothingWaitsHint =>
        "有新请求时这里会自动出现。",
        "New requests appear here by themselves.";
    NoHistory => "还没有已结束的请求。", "No request has ended yet.";
    From => "来自", "From";
    Session => "会话", "Session";
    Interactive => "本地会话（不是邮件派的活）", "Local session (not started by mail)";
    Asked => "提出于", "Asked";
    Context => "要执行的内容", "What would run";
    Code => "校验码", "Code";
    Lasting => "同意，并在限定范围内继续同意…", "Approve, and go on approving within limits…";
    Reaches => "范围", "Reaches";
    EveryCall => "这个工具的每次调用（同一目录）", "every call of this tool in this directory";
    Minutes => "分钟", "Minutes";
    Uses => "次数", "Uses";
    ApproveLasting => "限期同意", "Approve until then";
    LastingHint =>
        "只对本会话有效；会话归档、到期或用完即止，随时可用 zcode-mail grants revoke 收回。",
        "For this session only. It ends with its time, its uses or the session, and at any moment by zcode-mail grants revoke.";
    Page => "页", "Page";
    PreviousPage => "上一页", "Previous page";
    NextPage => "下一页", "Next page";
    LastPage => "到最后一页", "To the last page";
    LastPageFirst => "看到最后一页后才能决定。", "You can decide after the last page was shown.";
    Reveal => "显示原文", "Show the original";
    RevealHint =>
        "密钥和密码已隐去；查看原文会被记录。",
        "Keys and passwords are hidden; looking at the original is recorded.";
    Task => "触发任务", "Task";
    TaskFrom => "任务来自", "Given by";
    Note => "附言（可选，会告诉 Agent）", "Note (optional, the agent reads it)";
    Decide => "决定", "Decide";
    NobodyAnswers =>
        "没有人回答时什么都不会执行：Agent 等到时限后按拒绝处理，或由本地界面询问。",
        "If nobody answers, nothing runs: after its time limit the agent treats it as refused, or asks on its own screen.";
    Decided => "已决定", "Decided";
    DecidedBy => "决定人", "Decided by";
    At => "时间", "At";
    Withdrawn => "已撤回：提问的一方不再等待，什么都没有执行。", "Withdrawn: the asker no longer waits; nothing was run.";
    Expired => "已过期：什么都没有执行。", "Ran out: nothing was run.";
    WithdrawnShort => "已撤回", "Withdrawn";
    ExpiredShort => "已过期", "Ran out";
    Back => "返回待批准", "Back to waiting";
    Problem => "无法完成", "That did not work";
    Approve => "同意", "Approve";
    ApproveAlways => "一直同意", "Always approve";
    ApproveAlwaysHint =>
        "“一直同意”只对这个会话里的这个工具有效。",
        "“Always approve” holds for this tool in this session only.";
    Refuse => "拒绝", "Refuse";
    JustNow => "刚刚", "just now";
}

/// What a decision button shows: the three options of the contract are translated, anything else
/// is shown as the agent wrote it.
pub(super) fn option_label(option: &str, lang: Lang) -> &str {
    match option {
        ONCE => Text::Approve.say(lang),
        ALWAYS => Text::ApproveAlways.say(lang),
        REJECT => Text::Refuse.say(lang),
        other => other,
    }
}

/// How long ago something was, in one unit.
pub(super) fn ago(millis: i64, lang: Lang) -> String {
    let minutes = millis.max(0) / 60_000;
    let (count, zh, en) = match minutes {
        0 => return Text::JustNow.say(lang).to_owned(),
        1..60 => (minutes, "分钟前", "min ago"),
        60..1440 => (minutes / 60, "小时前", "h ago"),
        _ => (minutes / 1440, "天前", "d ago"),
    };
    format!("{count} {}", lang.pick(zh, en))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_change_their_unit_at_its_limit() {
        for (seconds, zh, en) in [
            (-5, "刚刚", "just now"),
            (59, "刚刚", "just now"),
            (60, "1 分钟前", "1 min ago"),
            (3599, "59 分钟前", "59 min ago"),
            (3600, "1 小时前", "1 h ago"),
            (86_399, "23 小时前", "23 h ago"),
            (86_400, "1 天前", "1 d ago"),
        ] {
            assert_eq!(ago(seconds * 1000, Lang::Zh), zh);
            assert_eq!(ago(seconds * 1000, Lang::En), en);
        }
    }
}
