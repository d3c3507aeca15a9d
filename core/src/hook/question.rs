//! What a person is shown: one question and its context.
//!
//! Complete or not at all: the context holds the whole input of the call, and a request that would
//! exceed the gateway's limit is never sent (faults row 13). Nothing hides: every character that
//! does not show as itself stands as `⟦U+XXXX⟧`, a tab as `⇥`, and the marks themselves are
//! escaped, so two different inputs never look alike (row 12). Every line that comes from the call
//! is indented, so that a value cannot pass for a heading. The SHA-256 of the raw input binds the
//! text to the bytes.

use alloc::format;
use alloc::string::{String, ToString as _};
use core::fmt::Write as _;

use super::event::{ToolEvent, ToolInput};
use super::text::{span_en, span_zh};
use crate::json::Node;
use crate::lang::Lang;
use crate::relay_key::sha256_hex;

/// Most bytes of a JSON body that the gateway takes; larger requests are not sent.
pub const BODY_LIMIT: usize = 1024 * 1024;

/// Longest tool name that the question quotes whole, in bytes; the context always has all of it.
const NAME_LIMIT: usize = 100;

/// Who asks, for how long.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'a> {
    /// The agent's name in AgentMail.
    pub agent: Option<&'a str>,
    /// The mail session that drives the agent.
    pub mail_session: Option<&'a str>,
    /// How long the hook waits after asking, in milliseconds.
    pub wait_ms: u64,
    /// The language of both texts.
    pub lang: Lang,
}

/// The one-line question.
#[must_use]
pub fn question(event: &ToolEvent, asker: Asker<'_>) -> String {
    let mut tool = visible(&event.tool);
    if tool.len() > NAME_LIMIT {
        tool.truncate(tool.floor_char_boundary(NAME_LIMIT));
        tool.push('…');
    }
    match (asker.lang, asker.agent) {
        (Lang::Zh, Some(agent)) => format!("是否允许 {} 执行 {tool}？", visible(agent)),
        (Lang::Zh, None) => format!("是否允许 ZCode 执行 {tool}？"),
        (Lang::En, Some(agent)) => format!("May {} run {tool}?", visible(agent)),
        (Lang::En, None) => format!("May ZCode run {tool}?"),
    }
}

/// The full context of a question.
#[must_use]
pub fn context(event: &ToolEvent, input: &ToolInput, asker: Asker<'_>) -> String {
    let lang = asker.lang;
    let mut out = String::with_capacity(input.raw.len() + 512);
    let mut line = |zh: &str, en: &str, value: Option<&str>| {
        if let Some(value) = value {
            heading(&mut out, lang.pick(zh, en), &visible(value));
        }
    };
    line("工具", "tool", Some(&event.tool));
    line("目录", "directory", event.cwd.as_deref());
    line("Agent", "agent", asker.agent);
    line("子 Agent", "sub-agent", event.agent.as_deref());
    line("邮件会话", "mail session", asker.mail_session);
    line("ZCode 会话", "ZCode session", event.session.as_deref());
    line("调用 id", "call id", event.call_id.as_deref());
    line("风险", "risk", event.risk.as_deref());
    line("ZCode 给出的原因", "ZCode's reason", event.why.as_deref());
    let wait = match lang {
        Lang::Zh => format!("{}内答复有效，之后请求自动撤回", span_zh(asker.wait_ms)),
        Lang::En => {
            format!("answers count for {}, then the request is withdrawn", span_en(asker.wait_ms))
        }
    };
    line("时限", "time limit", Some(&wait));
    line("输入 SHA-256", "input SHA-256", Some(&sha256_hex(input.raw.as_bytes())));
    fields(&mut out, input, lang);
    out
}

fn fields(out: &mut String, input: &ToolInput, lang: Lang) {
    let Node::Object(members) = &input.value else {
        heading(out, lang.pick("输入", "input"), "");
        block(out, &input.raw);
        return;
    };
    if members.is_empty() {
        heading(out, lang.pick("输入", "input"), lang.pick("（空）", "(empty)"));
    }
    for (name, value) in members {
        let name = field_name(name, lang);
        match value {
            Node::String(text) => {
                heading(out, &name, "");
                block(out, text);
            }
            other => heading(out, &name, &visible(&compact(other))),
        }
    }
}

/// A field's name as it stands in the input, with a word in front of the known ones.
fn field_name(name: &str, lang: Lang) -> String {
    let known = match name {
        "command" => ("命令", "command"),
        "file_path" => ("文件", "file"),
        "content" => ("写入内容", "content"),
        "old_string" => ("原文", "old text"),
        "new_string" => ("改为", "new text"),
        "patch_text" => ("补丁", "patch"),
        "description" => ("说明（由模型填写）", "description (by the model)"),
        // Quoted, so that a name of the model's making cannot pass for a heading of ours.
        _ => return visible(&serde_json::Value::String(name.into()).to_string()),
    };
    format!("{} {name}", lang.pick(known.0, known.1))
}

fn heading(out: &mut String, name: &str, value: &str) {
    out.push_str(name);
    out.push(':');
    if !value.is_empty() {
        out.push(' ');
        out.push_str(value);
    }
    out.push('\n');
}

/// A text of several lines, each indented by four spaces; the only place where a line feed of the
/// input breaks a line.
fn block(out: &mut String, text: &str) {
    for line in text.split('\n') {
        out.push_str("    ");
        push_visible(out, line);
        out.push('\n');
    }
}

/// `text` on one line with everything invisible made visible.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push_visible(&mut out, text);
    out
}

fn push_visible(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '\t' => out.push('⇥'),
            c if hides(c) => {
                // Writing to a String cannot fail.
                let _ = write!(out, "⟦U+{:04X}⟧", u32::from(c));
            }
            c => out.push(c),
        }
    }
}

/// Whether `c` does not show as itself: controls, line separators, bidirectional and zero-width
/// characters, tags, fillers, variation selectors, unusual spaces, private use, and our own marks.
const fn hides(c: char) -> bool {
    matches!(c,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{61c}'
        | '\u{115f}' | '\u{1160}' | '\u{1680}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}'
        | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{e000}'..='\u{f8ff}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' | '\u{f0000}'..='\u{10ffff}'
        | '⟦' | '⟧' | '⇥')
}

/// A value as JSON on one line.
fn compact(value: &Node) -> String {
    let mut out = String::new();
    push_json(&mut out, value);
    out
}

fn push_json(out: &mut String, value: &Node) {
    let quoted = |text: &str| serde_json::Value::String(text.into());
    // Writing to a String cannot fail.
    let _ = match value {
        Node::Null => write!(out, "null"),
        Node::Bool(flag) => write!(out, "{flag}"),
        Node::Number(number) => write!(out, "{number}"),
        Node::String(text) => write!(out, "{}", quoted(text)),
        Node::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                push_json(out, item);
            }
            write!(out, "]")
        }
        Node::Object(members) => {
            out.push('{');
            for (i, (name, item)) in members.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                let _ = write!(out, "{}: ", quoted(name));
                push_json(out, item);
            }
            write!(out, "}}")
        }
    };
}
