//! Public reports about other event-stream readers, tried on ours.

use super::{feed, items};
use zcode_mail_core::sse::{EVENT_LIMIT, LINE_LIMIT, Parser, put_comment, put_event};

/// rexxars/eventsource-parser 17, hey-api/hey-api 3054.
#[test]
fn a_crlf_cut_between_two_packets_makes_no_extra_line() {
    assert_eq!(
        items(b"id: 1\r\ndata: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n"),
        [r#"message "a\nb" id "1""#, r#"message "c" id "1""#]
    );
}

/// agentic-os-org/ANOLISA 2209.
#[test]
fn a_byte_order_mark_does_not_cost_the_first_event() {
    let chunks: [&[u8]; 6] =
        [b"", b"\xEF", b"", b"\xBB\xBF", b"", b"event: new_mail\ndata: {}\n\n"];
    assert_eq!(feed(&mut Parser::new(), chunks), [r#"new_mail "{}" id """#]);
}

/// praxis-proxy/praxis 739.
#[test]
fn chinese_cut_anywhere_and_data_without_a_space_are_read() {
    assert_eq!(
        items("data:{\"note\":\"先备份再执行\"}\n\n".as_bytes()),
        [r#"message "{\"note\":\"先备份再执行\"}" id """#]
    );
}

/// praxis-proxy/praxis 739.
#[test]
fn a_line_of_16_mib_is_one_report_and_the_next_event_is_read() {
    let mut parser = Parser::new();
    let chunk = vec![b'x'; 64 * 1024];
    let mut found = feed(&mut parser, [&b"data: "[..]]);
    for _ in 0..256 {
        found.extend(feed(&mut parser, [&chunk[..]]));
        assert!(parser.held() <= LINE_LIMIT);
    }
    found.extend(feed(&mut parser, [&b"\ndata: rest\n\ndata: next\n\n"[..]]));
    assert_eq!(found, ["too large", r#"message "next" id """#]);
}

#[test]
fn an_event_of_many_lines_is_capped_too() {
    let mut parser = Parser::new();
    let line = [b"data: ".to_vec(), vec![b'x'; 64 * 1024], b"\n".to_vec()].concat();
    let mut found = Vec::new();
    for _ in 0..256 {
        found.extend(feed(&mut parser, [&line[..]]));
        assert!(parser.held() <= EVENT_LIMIT + LINE_LIMIT);
    }
    found.extend(feed(&mut parser, [&b"\ndata: next\n\n"[..]]));
    assert_eq!(found, ["too large", r#"message "next" id """#]);
}

/// rexxars/eventsource-client 17, launchdarkly/rust-eventsource-client 37.
#[test]
fn keep_alive_comments_are_no_events_and_disturb_none() {
    let mut stream = Vec::new();
    for _ in 0..60 {
        stream.extend(b":\n\n");
        put_comment(&mut stream, "heartbeat");
    }
    stream.extend(b"event: a\n: glued\ndata: 1\n: glued\n\n");
    assert_eq!(items(&stream), [r#"a "1" id """#]);
}

/// hoeken/PsychicHttp 174; and readers that split at CR when the writer does not.
#[test]
fn three_lines_of_data_arrive_as_three_lines() {
    let mut stream = Vec::new();
    put_event(&mut stream, Some("9"), "new_mail", "a\nb\rc");
    assert_eq!(items(&stream), [r#"new_mail "a\nb\nc" id "9""#]);
}
