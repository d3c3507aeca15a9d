//! The contract's algorithms against vectors in `tests/fixtures/contract`, and their laws.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::Value;
use zcode_mail_core::address::{Address, Session, normalize_cc, split_cc};
use zcode_mail_core::alias::{
    LIMIT, SLUG_LIMIT, first_free, is_proposable, is_unusable_name, normalize, slug_from_title,
};
use zcode_mail_core::decision::Decision;
use zcode_mail_core::http::is_permanent;
use zcode_mail_core::mode::PermissionMode;
use zcode_mail_core::relay_key::{self, clamp, sha256_hex};

use crate::scripted::scripted;

fn vectors(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/contract").join(name);
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn texts(list: &Value) -> Vec<&str> {
    let list = list.as_array().expect("a list");
    assert!(!list.is_empty());
    list.iter().map(|text| text.as_str().expect("a text")).collect()
}

/// A text in pieces, each a text or a text and how often it repeats.
fn spelled(pieces: &Value) -> String {
    let piece = |piece: &Value| match piece {
        Value::String(text) => text.clone(),
        piece => {
            let times = usize::try_from(piece[1].as_u64().unwrap()).unwrap();
            piece[0].as_str().unwrap().repeat(times)
        }
    };
    pieces.as_array().unwrap().iter().map(piece).collect()
}

#[test]
fn relay_keys_are_clamped_as_in_the_vectors() {
    let vectors = vectors("relay-key.json");
    let vectors = vectors.as_array().unwrap();
    assert_eq!(vectors.len(), 16);
    for vector in vectors {
        let (key, expected) = (spelled(&vector["in"]), spelled(&vector["out"]));
        assert_eq!(key.len() as u64, vector["in_bytes"], "{}", vector["name"]);
        assert_eq!(expected.len() as u64, vector["out_bytes"], "{}", vector["name"]);
        assert_eq!(clamp(&key), expected, "{}", vector["name"]);
    }
}

#[test]
fn statuses_are_permanent_or_temporary_as_in_the_table() {
    let table = vectors("statuses.json");
    for (class, permanent) in [("permanent", true), ("temporary", false)] {
        for status in table[class].as_array().unwrap() {
            let status = u16::try_from(status.as_u64().unwrap()).unwrap();
            assert_eq!(is_permanent(status), permanent, "{status}");
        }
    }
}

#[test]
fn decision_texts_mean_what_the_table_says() {
    let table = vectors("decisions.json");
    for (class, expected) in
        [("always", Decision::Always), ("once", Decision::Once), ("reject", Decision::Reject)]
    {
        for text in texts(&table[class]) {
            assert_eq!(Decision::from_text(text), expected, "{text:?}");
        }
    }
}

#[test]
fn modes_are_read_as_in_the_table() {
    let table = vectors("modes.json");
    for mode in [PermissionMode::Plan, PermissionMode::Workspace, PermissionMode::Full] {
        for text in texts(&table[mode.as_str()]) {
            assert_eq!(PermissionMode::from_wire(text), mode, "{text:?}");
        }
    }
}

#[test]
fn addresses_are_split_as_in_the_table_and_format_back() {
    let table = vectors("addresses.json");
    for row in table["good"].as_array().unwrap() {
        let text = row["text"].as_str().unwrap();
        let address: Address = text.parse().unwrap();
        assert_eq!(address.name(), row["name"], "{text:?}");
        assert_eq!(address.path(), row["path"], "{text:?}");
        let session = match address.session() {
            Session::Default => "default".to_owned(),
            Session::New => "new".to_owned(),
            Session::Alias(alias) => format!("alias {}", alias.as_str()),
        };
        assert_eq!(session, row["session"], "{text:?}");
        assert_eq!(address.to_string().parse(), Ok(address), "{text:?}");
    }
    for text in texts(&table["bad"]) {
        assert!(text.parse::<Address>().is_err(), "{text:?}");
    }
}

#[test]
fn aliases_are_made_as_in_the_tables() {
    let tables = vectors("aliases.json");
    let made = |table: &str, make: fn(&str) -> Option<String>| {
        for row in tables[table].as_array().unwrap() {
            let text = row[0].as_str().unwrap();
            assert_eq!(make(text).as_deref(), row[1].as_str(), "{table} {text:?}");
        }
    };
    made("normalize", normalize);
    made("slug_from_title", slug_from_title);
    for (table, expected) in [("proposable", true), ("not_proposable", false)] {
        for text in texts(&tables[table]) {
            assert_eq!(is_proposable(text), expected, "{text:?}");
        }
    }
    for (table, expected) in [("unusable", true), ("usable", false)] {
        for text in texts(&tables[table]) {
            assert_eq!(is_unusable_name(text), expected, "{text:?}");
        }
    }
}

#[test]
fn any_history_of_grants_keeps_their_laws() {
    scripted("grants");
}

#[test]
fn any_event_keeps_the_laws_of_the_reader() {
    scripted("events");
}

#[test]
fn any_reply_keeps_the_laws_of_every_endpoint() {
    scripted("replies");
}

#[test]
fn any_body_keeps_the_laws_of_the_decoders() {
    scripted("bodies");
}

/// Keys around the limit, of characters of every width.
fn keys() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z:é会😀]{0,260}",
        "[a-z:]{150,170}",
        "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}:[A-Za-z]{4}:[é会😀a-z]{0,150}",
    ]
}

proptest! {
    #[test]
    fn a_clamped_key_keeps_every_invariant(key in keys(), other in "\\PC{1,40}") {
        let clamped = clamp(&key);
        prop_assert!(clamped.len() <= relay_key::LIMIT);
        prop_assert_eq!(clamp(&clamped), clamped.clone());
        if key.len() <= relay_key::LIMIT {
            prop_assert_eq!(&clamped, &key);
        } else {
            let end = format!(":sha256:{}", sha256_hex(key.as_bytes()));
            let prefix = clamped.strip_suffix(&end);
            prop_assert!(prefix.is_some_and(|prefix| key.starts_with(prefix)));
            // The session id, a UUID of 36 bytes, survives; so does all but a split character.
            prop_assert!(prefix.is_some_and(|prefix| prefix.len() > relay_key::PREFIX_LIMIT - 4));
            // Keys that agree in their first 160 bytes stay apart.
            let longer = format!("{key}{other}");
            prop_assert_ne!(clamp(&longer), clamped);
        }
    }

    #[test]
    fn formatting_an_address_is_the_inverse_of_parsing(
        name in "[^@\\s]([^@]{0,6}[^@\\s])?",
        path in "[a/.@ 会-]{0,12}",
        alias in "[a-zA-Z会-]{0,8}",
    ) {
        let session = match alias.as_str() {
            "" => Session::Default,
            "new" => Session::New,
            alias => Session::alias(alias).unwrap(),
        };
        let address = Address::new(&name, &path, session).unwrap();
        prop_assert_eq!(address.to_string().parse::<Address>(), Ok(address));
    }

    #[test]
    fn any_text_that_parses_as_an_address_formats_to_an_equal_one(text in "[a@./ 会\n]{0,16}|\\PC{0,16}") {
        if let Ok(address) = text.parse::<Address>() {
            prop_assert_eq!(address.to_string().parse::<Address>(), Ok(address));
        }
    }

    #[test]
    fn joining_a_cc_keeps_its_addresses(cc in "[a@,;，； \\n\u{3000}会.]{0,24}") {
        let normal = normalize_cc(&cc);
        let addresses: Vec<_> = split_cc(&cc).collect();
        let again: Vec<_> = split_cc(&normal).collect();
        prop_assert_eq!(again, addresses);
        prop_assert_eq!(normalize_cc(&normal), normal);
    }

    #[test]
    fn every_alias_can_be_addressed_and_normalises_to_itself(text in "\\PC{0,90}|[nNeEwW.\\s-]{0,8}") {
        for (alias, limit) in [(normalize(&text), LIMIT), (slug_from_title(&text), SLUG_LIMIT)] {
            let Some(alias) = alias else { continue };
            prop_assert!(alias.chars().count() <= limit, "{}", alias);
            prop_assert_eq!(normalize(&alias), Some(alias.clone()));
            let session = Session::alias(&alias).unwrap();
            let address = Address::new("pi", "/p.q", session).unwrap();
            prop_assert_eq!(address.to_string(), format!("pi@/p.q.{alias}"));
            prop_assert_eq!(address.to_string().parse::<Address>(), Ok(address.clone()));
            prop_assert_eq!(split_cc(&address.to_string()).count(), 1, "cut up in a cc");
        }
    }

    #[test]
    fn collisions_never_end_in_a_name_that_is_taken(alias in "[a-z会]{1,70}", count in 1_usize..30) {
        let Some(alias) = normalize(&alias) else { return Ok(()) };
        let mut taken = BTreeSet::new();
        for _ in 0..count {
            let free = first_free(&alias, |name| taken.contains(name));
            prop_assert!(free.chars().count() <= LIMIT);
            prop_assert_eq!(normalize(&free), Some(free.clone()));
            prop_assert!(taken.insert(free));
        }
    }
}
