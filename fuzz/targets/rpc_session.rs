//! Fuzzes the MCP session.
#![cfg_attr(fuzzing, no_main)]

zcode_mail_fuzz::target!(zcode_mail_tests::oracle::rpc_session::check);
