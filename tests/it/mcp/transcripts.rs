//! A whole conversation in each era: `>` is what the client writes, `<` what it reads, `!` what the
//! gateway is asked, `?` what it answers, `.` what happens otherwise.

use std::fmt::Write as _;

use zcode_mail_core::http::{Outcome, Reply};
use zcode_mail_core::lang::Lang;
use zcode_mail_core::rpc::{CallId, Event, Session};
use zcode_mail_core::tool::{Next, Output, Toolbox};

/// A session, a gateway that answers from a list, and what was seen.
struct Play {
    session: Session,
    running: Vec<(CallId, Next)>,
    seen: String,
}

impl Play {
    fn new() -> Self {
        let session = Session::new(Toolbox { lang: Lang::En, ..Toolbox::default() });
        Self { session, running: Vec::new(), seen: String::new() }
    }

    fn say(&mut self, line: &str) {
        let _ = writeln!(self.seen, "> {line}");
        let mut out = Vec::new();
        self.session.receive(line.as_bytes(), &mut out);
        self.read(&out);
        while let Some(event) = self.session.poll_event() {
            match event {
                Event::Run(call, next) => {
                    let _ = writeln!(self.seen, ". call {} runs", call.0);
                    self.running.push((call, next));
                }
                Event::Abort(call) => {
                    let _ = writeln!(self.seen, ". call {} is dropped", call.0);
                    self.running.retain(|(running, _)| *running != call);
                }
                Event::Initialized => self.seen.push_str(". initialized\n"),
            }
        }
    }

    fn read(&mut self, out: &[u8]) {
        for line in std::str::from_utf8(out).unwrap().lines() {
            // The two constant texts have golden files of their own.
            let mut message: serde_json::Value = serde_json::from_str(line).unwrap();
            if let Some(result) = message.get_mut("result") {
                if result.get("instructions").is_some() {
                    result["instructions"] = "(the guide)".into();
                }
                if let Some(tools) = result.get("tools").and_then(|tools| tools.as_array()) {
                    result["tools"] = format!("({} tools)", tools.len()).into();
                }
            }
            let _ = writeln!(self.seen, "< {message}");
        }
    }

    /// Lets the oldest running call ask the gateway until it is done.
    fn gateway(&mut self, replies: &[(u16, &str)]) {
        let (call, mut next) = self.running.remove(0);
        let mut replies = replies.iter();
        let output: Output = loop {
            next = match next {
                Next::Done(output) => break output,
                Next::Http(need) => {
                    let request = need.request();
                    let body = request.body.as_deref().unwrap_or_default();
                    let body = std::str::from_utf8(body).unwrap();
                    let method = request.method.as_str();
                    let _ = writeln!(self.seen, "! {method} {} {body}", request.path);
                    let (status, body) = replies.next().expect("an answer for each request");
                    let _ = writeln!(self.seen, "? {status} {body}");
                    need.answer(Outcome::Reply(Reply::json(*status, body.as_bytes())))
                }
                Next::Record(need) => {
                    let line = need.record.to_line(Default::default());
                    let _ = write!(self.seen, ". note {line}");
                    need.answer()
                }
                other => panic!("{other:?}"),
            };
        };
        let mut out = Vec::new();
        self.session.finish(call, &output, &mut out);
        self.read(&out);
    }
}

const INBOX: &str = r#"{"mails":[{"mail_id":"m1","session_id":"s1","from_name":"admin","from_human":true,"subject":"Hi","body":"Please look.","reply_address":"admin@.fix"}],"total":1}"#;

#[test]
fn a_conversation_with_a_handshake() {
    let mut play = Play::new();
    play.say(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"zcode","version":"3"}}}"#,
    );
    play.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    play.say(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#);
    play.say(
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read_inbox","arguments":{},"_meta":{"session_id":"z1","progressToken":2}}}"#,
    );
    play.say(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
    play.gateway(&[(200, INBOX), (400, r#"{"error":"未知字段 \"mail_ids\""}"#), (200, "{}")]);
    play.say(
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"send_mail","arguments":{"to":"admin@.fix","subject":"Re: Hi","body":"Done.","reply_to":"m1"},"_meta":{"session_id":"z1"}}}"#,
    );
    play.gateway(&[(
        200,
        r#"{"mail_id":"m2","session_id":"s1","session_alias":"fix","budget_remaining":18,"budget_max":20}"#,
    )]);
    play.say(r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"read_mail"}}"#);
    play.say(r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"send_file"}}"#);
    play.say(r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"list_contacts"}}"#);
    play.say(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":6,"reason":"user"}}"#,
    );
    play.say(r#"{"jsonrpc":"2.0","id":7,"method":"resources/list"}"#);
    play.say("not json");
    insta::assert_snapshot!(play.seen);
}

#[test]
fn a_conversation_without_state() {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;
    let mut play = Play::new();
    play.say(&format!(
        r#"{{"jsonrpc":"2.0","id":"d","method":"server/discover","params":{{{meta}}}}}"#
    ));
    play.say(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{meta}}}}}"#));
    play.say(&format!(
        r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{{meta},"name":"read_inbox","arguments":{{"limit":"1"}}}}}}"#
    ));
    play.gateway(&[(200, INBOX), (204, "")]);
    play.say(&format!(
        r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{{meta},"name":"read_mail","arguments":{{"mail_id":"gone"}}}}}}"#
    ));
    play.gateway(&[(404, r#"{"error":"no such mail"}"#)]);
    play.say(&format!(r#"{{"jsonrpc":"2.0","id":4,"method":"ping","params":{{{meta}}}}}"#));
    play.say(&format!(
        r#"{{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{{{}}}}}"#,
        meta.replace("2026-07-28", "1900-01-01")
    ));
    play.say(r#"{"jsonrpc":"2.0","id":6,"method":"tools/list"}"#);
    play.say(
        r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2026-07-28"}}"#,
    );
    play.say(r#"{"jsonrpc":"2.0","id":8,"method":"tools/list"}"#);
    insta::assert_snapshot!(play.seen);
}
