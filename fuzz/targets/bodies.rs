//! Fuzzes the gateway's decoders of request bodies.
#![cfg_attr(fuzzing, no_main)]

zcode_mail_fuzz::target!(zcode_mail_tests::oracle::bodies::check);
