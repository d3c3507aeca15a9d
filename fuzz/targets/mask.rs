//! Fuzzes the masks, and the showing of any text.
#![cfg_attr(fuzzing, no_main)]

zcode_mail_fuzz::target!(zcode_mail_tests::oracle::mask::check);
