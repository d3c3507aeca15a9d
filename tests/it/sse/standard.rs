//! The corners of the HTML standard, "Server-sent events", one row each. The topics are those of
//! the web platform's conformance suite; bytes and names are ours.

use super::items;

/// What the row shows, a stream, and its items.
type Row = (&'static str, &'static [u8], &'static [&'static str]);

/// Streams whose line ends are all LF here: they have to read the same with CR and with CRLF.
const ROWS: &[Row] = &[
    ("an event has a type and data", b"event: tick\ndata: 1\n\n", &[r#"tick "1" id """#]),
    ("without a type it is a message", b"data: 1\n\n", &[r#"message "1" id """#]),
    ("an empty type is a message", b"event:\ndata: 1\n\n", &[r#"message "1" id """#]),
    ("a type without colon is a message", b"event: a\nevent\ndata: 1\n\n", &[r#"message "1" id """#]),
    ("the last type counts", b"event: a\nevent: b\ndata: 1\n\n", &[r#"b "1" id """#]),
    (
        "a type does not stick",
        b"event: a\ndata: 1\n\ndata: 2\n\n",
        &[r#"a "1" id """#, r#"message "2" id """#],
    ),
    (
        "a type without data is forgotten",
        b"event: a\n\ndata: 1\n\n",
        &[r#"message "1" id """#],
    ),
    ("several data lines are joined", b"data: a\ndata: b\ndata: c\n\n", &[r#"message "a\nb\nc" id """#]),
    ("empty data lines count", b"data:\ndata\ndata: \n\n", &[r#"message "\n\n" id """#]),
    ("one empty data line is an event", b"data\n\n", &[r#"message "" id """#]),
    ("no data is no event", b"id: 1\n\nevent: a\n\n\n", &[]),
    ("one space after the colon goes", b"data:  a\n\n", &[r#"message " a" id """#]),
    ("a tab after the colon stays", b"data:\ta\n\n", &[r#"message "\ta" id """#]),
    ("no space is needed", b"data:{}\n\n", &[r#"message "{}" id """#]),
    ("spaces at the end stay", b"data: a  \n\n", &[r#"message "a  " id """#]),
    ("later colons belong to the value", b"data:a:b: c\n\n", &[r#"message "a:b: c" id """#]),
    (
        "fields that are nearly right are unknown",
        b"Data:1\nDATA:1\n data:1\n\0data:1\ndata :1\ndata-x:1\ndat:1\ndata\0:1\ndataa\ncomment:1\n\n",
        &[],
    ),
    ("unknown fields are ignored", b"data: 1\nfoo: bar\nbaz\n\n", &[r#"message "1" id """#]),
    ("comments are ignored", b":\n: a\n:data: 0\ndata: 1\n:data: 2\n\n:\n\n", &[r#"message "1" id """#]),
    (
        "an id sticks",
        b"id: 1\ndata: a\n\ndata: b\n\nid: 2\ndata: c\n\n",
        &[r#"message "a" id "1""#, r#"message "b" id "1""#, r#"message "c" id "2""#],
    ),
    ("an id without data sticks too", b"id: 1\n\ndata: a\n\n", &[r#"message "a" id "1""#]),
    (
        "an empty id resets",
        b"id: 1\ndata: a\n\nid:\ndata: b\n\nid: 2\ndata: c\n\nid\ndata: d\n\n",
        &[
            r#"message "a" id "1""#,
            r#"message "b" id """#,
            r#"message "c" id "2""#,
            r#"message "d" id """#,
        ],
    ),
    (
        "an id with NUL is ignored",
        b"id: 1\nid: 2\0\nid: \0\ndata: a\n\n",
        &[r#"message "a" id "1""#],
    ),
    ("an id keeps its spaces", b"id:  7 \ndata: a\n\n", &[r#"message "a" id " 7 ""#]),
    ("NUL in data stays", b"data: a\0b\n\n", &[r#"message "a\0b" id """#]),
    ("retry is no event", b"retry: 1000\n\n", &[]),
    ("a bad retry spoils nothing", b"retry: +5\nretry: x\nretry\ndata: 1\n\n", &[r#"message "1" id """#]),
    ("an unfinished event is dropped", b"data: a\n\ndata: b\n", &[r#"message "a" id """#]),
    ("an unfinished line is dropped", b"data: a\n\ndata: b", &[r#"message "a" id """#]),
    ("a second blank line dispatches nothing", b"data: a\n\n\n\n", &[r#"message "a" id """#]),
    ("a mark is dropped", b"\xEF\xBB\xBFdata: a\n\n", &[r#"message "a" id """#]),
    ("a mark before a comment is dropped", b"\xEF\xBB\xBF: a\ndata: a\n\n", &[r#"message "a" id """#]),
    (
        "a second mark belongs to the field name",
        b"\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\ndata: b\n\n",
        &[r#"message "b" id """#],
    ),
    (
        "a mark in the middle belongs to the field name",
        b"data: a\n\n\xEF\xBB\xBFdata: b\n\n",
        &[r#"message "a" id """#],
    ),
    ("a mark in data stays", b"data: \xEF\xBB\xBF\n\n", &[r#"message "\u{feff}" id """#]),
    ("an unfinished mark is a field name", b"\xEF\xBBdata: a\n\ndata: b\n\n", &[r#"message "b" id """#]),
    ("characters of every length", "data: aé会😀\n\n".as_bytes(), &[r#"message "aé会😀" id """#]),
    (
        "malformed bytes are replaced",
        b"data: \x80|\xC0\xAF|\xE4\xBC|\xF4\x90\n\n",
        &["message \"\u{FFFD}|\u{FFFD}\u{FFFD}|\u{FFFD}|\u{FFFD}\u{FFFD}\" id \"\""],
    ),
    ("a character cut by its line end is replaced", b"data: \xE4\xBC\n\n", &["message \"\u{FFFD}\" id \"\""]),
    (
        "other line ends of Unicode are none here",
        "data: a\u{B}b\u{C}c\u{85}d\u{2028}e\n\n".as_bytes(),
        &[r#"message "a\u{b}b\u{c}c\u{85}d\u{2028}e" id """#],
    ),
    ("a malformed field name is unknown", b"\xFFdata: a\ndata: b\n\n", &[r#"message "b" id """#]),
];

#[test]
fn streams_mean_what_the_standard_says_with_every_line_end() {
    for (what, stream, expected) in ROWS {
        for end in ["\n", "\r\n", "\r"] {
            let stream: Vec<u8> = stream
                .iter()
                .flat_map(|byte| match byte {
                    b'\n' => end.as_bytes().to_vec(),
                    other => vec![*other],
                })
                .collect();
            assert_eq!(items(&stream), *expected, "{what}, lines ended by {end:?}");
        }
    }
}

#[test]
fn every_mixture_of_line_ends_separates_events() {
    let ends = ["\n", "\r", "\r\n"];
    for first in ends {
        for second in ends {
            for third in ends {
                let stream = format!("data: a{first}data: b{second}{third}data: c{first}{second}");
                let found = items(stream.as_bytes());
                // CR and LF that meet are one line end: where the two are meant as two, they are not.
                let joined = |left: &str, right: &str| left == "\r" && right == "\n";
                let expected: &[&str] = match (joined(second, third), joined(first, second)) {
                    (false, false) => &[r#"message "a\nb" id """#, r#"message "c" id """#],
                    (true, false) => &[r#"message "a\nb\nc" id """#],
                    (false, true) => &[r#"message "a\nb" id """#],
                    (true, true) => unreachable!("second is either CR or LF"),
                };
                assert_eq!(found, expected, "{stream:?}");
            }
        }
    }
}
