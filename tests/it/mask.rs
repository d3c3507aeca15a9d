//! Masks against their laws; what is found is listed in `core/src/mask/corpus.txt`.

use crate::scripted::scripted;
use proptest::prelude::*;
use zcode_mail_core::mask::{find, mask};

#[test]
fn scripts_keep_every_law() {
    scripted("mask");
}

proptest! {
    #[test]
    fn a_named_secret_is_never_left_whole(
        name in "[A-Z]{1,6}_(TOKEN|SECRET|PASSWORD|API_KEY)",
        secret in "[A-Za-z0-9_+/=.-]{6,60}",
        before in "[a-z ;|&]{0,20}",
        after in "( [a-z;|&$() ]{0,20})?",
    ) {
        let text = format!("{before} {name}={secret}{after}");
        let masked = mask(&text);
        prop_assert!(!masked.contains(&secret), "{}", masked);
        let start = text.find(&secret).unwrap();
        let (head, tail) = (&text[..start], &text[start + secret.len()..]);
        prop_assert!(masked.starts_with(head) && masked.ends_with(tail), "{}", masked);
    }

    #[test]
    fn masking_twice_is_masking_once(text in "([a-z=:; \"']|TOKEN|password|https://|--secret ){0,40}") {
        let masked = mask(&text);
        prop_assert_eq!(find(&masked).len(), 0, "{}", masked);
    }
}
