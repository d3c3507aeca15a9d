//! Fuzzes the hook's reading, rules and answers.
#![cfg_attr(fuzzing, no_main)]

zcode_mail_fuzz::target!(zcode_mail_tests::oracle::hook_event::check);
