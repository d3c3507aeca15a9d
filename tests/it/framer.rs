//! The line framer against its laws.

use crate::scripted::scripted;
use proptest::collection::vec;
use proptest::prelude::*;
use zcode_mail_core::frame::{Frame, LineFramer};
use zcode_mail_core::inbox::Inbox;

#[test]
fn scripts_keep_every_law() {
    scripted("framer");
}

proptest! {
    #[test]
    fn lines_that_were_written_come_back_in_reads_of_any_size(
        lines in vec("[^\r\n]{0,20}", 0..20),
        sizes in vec(1_usize..40, 1..40),
    ) {
        let mut stream = Vec::new();
        for line in &lines {
            stream.extend(line.as_bytes());
            stream.push(b'\n');
        }
        let mut framer = LineFramer::new(80);
        let mut inbox = Inbox::new();
        let mut found = Vec::new();
        let mut rest = &stream[..];
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (read, later) = rest.split_at(rest.len().min(*size));
            rest = later;
            inbox.extend(read);
            loop {
                let (used, frame) = framer.next(inbox.pending());
                match frame {
                    Some(Frame::Line(line)) => found.push(String::from_utf8(line.to_vec()).unwrap()),
                    Some(Frame::TooLong(_)) => prop_assert!(false, "no line is longer than 80 bytes"),
                    None => {
                        inbox.consume(used);
                        break;
                    }
                }
                inbox.consume(used);
            }
        }
        prop_assert_eq!(found, lines);
    }

    #[test]
    fn the_limit_is_exact(limit in 0_usize..200, over in 0_usize..3, cr in any::<bool>()) {
        let mut stream = vec![b'x'; limit + over];
        stream.extend(if cr { &b"\r\n"[..] } else { b"\n" });
        let mut framer = LineFramer::new(limit);
        let (used, frame) = framer.next(&stream);
        if over == 0 {
            prop_assert_eq!((used, frame), (stream.len(), Some(Frame::Line(&stream[..limit]))));
        } else {
            prop_assert_eq!((used, frame), (stream.len(), Some(Frame::TooLong(&stream[..limit]))));
        }
    }
}
