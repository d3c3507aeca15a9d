//! Fuzzes the event-stream writer, read back by the parser.
#![cfg_attr(fuzzing, no_main)]

zcode_mail_fuzz::target!(zcode_mail_tests::oracle::sse_writer::check);
