//! Fuzzes the readers of the gateway's replies.
#![cfg_attr(fuzzing, no_main)]

zcode_mail_fuzz::target!(zcode_mail_tests::oracle::replies::check);
