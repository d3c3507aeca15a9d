//! Fuzzes the hook's decision machine.
#![cfg_attr(fuzzing, no_main)]

zcode_mail_fuzz::target!(zcode_mail_tests::oracle::hook_machine::check);
