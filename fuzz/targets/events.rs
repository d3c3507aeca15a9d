//! Fuzzes the reader of the agent's events.
#![cfg_attr(fuzzing, no_main)]

zcode_mail_fuzz::target!(zcode_mail_tests::oracle::events::check);
