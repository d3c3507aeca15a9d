//! Fuzzes the renderer.
#![cfg_attr(fuzzing, no_main)]

zcode_mail_fuzz::target!(zcode_mail_tests::oracle::render::check);
