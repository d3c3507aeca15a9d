//! Fuzzes the arguments of the tools.
#![cfg_attr(fuzzing, no_main)]

zcode_mail_fuzz::target!(zcode_mail_tests::oracle::tool_args::check);
