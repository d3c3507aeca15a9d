//! Named scenarios as transcripts: `>` bytes in, `<` item out, `!` something else that happened.

use super::feed;
use std::fmt::Write as _;
use zcode_mail_core::sse::{Parser, put_comment, put_event, put_retry};

struct Transcript {
    parser: Parser,
    text: String,
}

impl Transcript {
    fn new(parser: Parser) -> Self {
        Self { parser, text: String::new() }
    }

    fn chunk(&mut self, chunk: impl AsRef<[u8]>) {
        let chunk = chunk.as_ref();
        let _ = writeln!(self.text, "> {}", chunk.escape_ascii());
        for item in feed(&mut self.parser, [chunk]) {
            let _ = writeln!(self.text, "< {item}");
        }
    }

    fn restart(&mut self) {
        self.parser.restart();
        let (last_id, retry) = (self.parser.last_id(), self.parser.retry());
        let _ = writeln!(self.text, "! restart: Last-Event-ID {last_id:?}, retry {retry:?}");
    }
}

#[test]
fn a_decision_that_comes_after_a_reconnect() {
    let mut run = Transcript::new(Parser::new());
    run.chunk("retry: 2000\n\n: heartbeat\n\n");
    run.chunk("id: 41\nevent: new_mail\ndata: {\"mail_id\":\"m1\"}\n\nid: 42\nevent: perm");
    run.restart();
    run.chunk("\u{FEFF}: heartbeat\r\n");
    run.chunk("\r\nid: 42\r\nevent: permission_decision\r\ndata: {\"decision\":\"同");
    run.chunk("意\"}\r\n\r");
    run.chunk("\ndata: no id of its own\r\n\r\n");
    run.restart();
    insta::assert_snapshot!(run.text);
}

#[test]
fn an_event_over_the_limit_between_two_good_ones() {
    let mut run = Transcript::new(Parser::with_limits(24, 32));
    run.chunk("id: 1\ndata: a\n\n");
    run.chunk("id: 2\ndata: 0123456789");
    run.chunk("abcdefghijkl");
    run.chunk("mnop\ndata: more\nid: 2b\n");
    run.restart();
    run.chunk("id: 2\ndata: 0123456789abcdef\ndata: 0123456789abcdef\ndata: 01234567\n");
    run.chunk("\nid: 3\ndata: b\n\n");
    run.restart();
    insta::assert_snapshot!(run.text);
}

#[test]
fn what_the_writer_makes_of_texts_that_would_break_framing() {
    let mut run = Transcript::new(Parser::new());
    let mut write = |put: &dyn Fn(&mut Vec<u8>)| {
        let mut block = Vec::new();
        put(&mut block);
        run.chunk(block);
    };
    write(&|out| put_event(out, Some("7"), "new_mail", "{\"subject\":\"会议\"}"));
    write(&|out| put_event(out, Some("8\nid: 9"), "a\r\nb", "x\n\ndata: y\rz"));
    write(&|out| put_event(out, Some(""), "", ""));
    write(&|out| put_event(out, None, " padded ", " padded "));
    write(&|out| put_comment(out, "still\ndata: here"));
    write(&|out| put_retry(out, 0));
    run.restart();
    insta::assert_snapshot!(run.text);
}
