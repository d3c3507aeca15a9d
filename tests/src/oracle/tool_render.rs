//! Laws of what the tools show.
//!
//! 1. A text keeps to its limit, is never empty, and holds no control character but line ends and
//!    tabs, and no other line separator.
//! 2. What a mail says stands only in lines that start with `> `: taking those away, no body text
//!    that forges a field is left.
//! 3. `read_inbox` marks exactly the mails that stand in its text.
//! 4. A marking that fails does not lose the listing.

use serde_json::{Value, json};
use zcode_mail_core::http::{Outcome, Reply};
use zcode_mail_core::tool::{self, Next, Output, Toolbox};

use crate::script::tool_render::Script;

/// Checks all laws.
///
/// # Panics
/// When one does not hold.
pub fn check(bytes: &[u8]) {
    let script = Script::decode(bytes);
    let toolbox = Toolbox { lang: script.lang, ..Toolbox::default() };
    let next =
        tool::start(script.tool, &script.arguments(), &toolbox, None).expect("the tool exists");
    let body = script.reply.to_string();
    let (marked, output) = run(&script, next, body.as_bytes());
    let text = &output.text;
    assert!(!text.is_empty() && text.len() <= tool::MAX_TEXT, "{} {script:?}", text.len());
    let odd = |c: char| {
        (c.is_control() && c != '\n' && c != '\t') || matches!(c, '\u{2028}' | '\u{2029}')
    };
    assert!(!text.contains(odd), "{text:?}\n{script:?}");
    let own: Vec<&str> = text.lines().filter(|line| !line.starts_with("> ")).collect();
    for line in &own {
        assert!(!line.starts_with("【9/9】"), "forged: {text}");
        assert!(!line.starts_with("reply_address: evil"), "forged: {text}");
        assert!(!line.starts_with("mail_id: forged"), "forged: {text}");
    }
    if script.tool == "read_inbox" {
        check_marks(&script, &own, marked.as_deref());
    }
}

fn check_marks(script: &Script, own: &[&str], marked: Option<&[String]>) {
    let shown = own.iter().filter(|line| line.starts_with('【')).count();
    assert_eq!(marked.map_or(0, <[String]>::len), shown, "{script:?}");
    for id in marked.unwrap_or_default() {
        let id: String = id
            .chars()
            .map(|c| if c.is_control() || c == '\u{2028}' || c == '\u{2029}' { ' ' } else { c })
            .collect();
        let line = |line: &&&str| {
            line.strip_prefix("mail_id")
                .is_some_and(|rest| rest.trim_start_matches([':', '：', ' ']) == id.trim_start())
        };
        assert!(own.iter().find(line).is_some(), "{id:?} is marked but not shown: {own:?}");
    }
}

/// Plays a call; the ids that were marked last, and what it said.
fn run(script: &Script, mut next: Next, body: &[u8]) -> (Option<Vec<String>>, Output) {
    let (mut marked, mut first) = (None, true);
    loop {
        next = match next {
            Next::Done(output) => return (marked, output),
            Next::Record(need) => need.answer(),
            Next::Http(need) if std::mem::take(&mut first) => {
                need.answer(Outcome::Reply(Reply::json(200, body)))
            }
            Next::Http(need) => {
                let sent: Value =
                    serde_json::from_slice(need.request().body.as_deref().unwrap_or(b"null"))
                        .expect("a body is JSON");
                let ids = sent.get("mail_ids").or_else(|| sent.get("ids"));
                let ids = ids.unwrap_or(&json!([])).as_array().cloned().unwrap_or_default();
                let text = |id: &Value| id.as_str().unwrap_or_default().to_owned();
                marked = Some(ids.iter().map(text).collect());
                let status = if script.marks { 200 } else { 400 };
                need.answer(Outcome::Reply(Reply::json(status, b"{}")))
            }
            other => panic!("{other:?}\n{script:?}"),
        };
    }
}
