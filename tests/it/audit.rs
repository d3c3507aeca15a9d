//! The audit chain: whatever is done to a log is found, and where.

use proptest::collection::vec;
use proptest::prelude::*;
use zcode_mail_core::audit::{Broken, Event, Hash, Head, Record, Verifier, verify_export};
use zcode_mail_core::digest::CallDigest;
use zcode_mail_core::time::UnixMillis;

fn logs(least: usize) -> impl Strategy<Value = Vec<(Record, Hash)>> {
    let one = (
        any::<i64>(),
        0..Event::ALL.len(),
        ".{0,8}",
        ".{0,8}",
        ".{0,8}",
        proptest::option::of(any::<[u8; 32]>()),
        ".{0,8}",
    );
    vec(one, least..12).prop_map(|parts| {
        let mut hash = Hash::START;
        (1..)
            .zip(parts)
            .map(|(number, (at, event, who, how, subject, digest, detail))| {
                let record = Record {
                    number,
                    at: UnixMillis(at),
                    event: Event::ALL[event],
                    who,
                    how,
                    subject,
                    digest: digest.map(CallDigest),
                    detail,
                };
                hash = hash.then(&record);
                (record, hash)
            })
            .collect()
    })
}

fn head(log: &[(Record, Hash)]) -> Head {
    log.last().map_or(Head::START, |(record, hash)| Head { number: record.number, hash: *hash })
}

fn verify(log: &[(Record, Hash)], head: Head) -> Result<u64, Broken> {
    let mut verifier = Verifier::new(head);
    for (record, hash) in log {
        verifier.next(Some((record, *hash)))?;
    }
    verifier.finish()
}

fn export(log: &[(Record, Hash)]) -> String {
    let mut text = String::new();
    for (record, hash) in log {
        text += &record.export(hash);
        text.push('\n');
    }
    text + &head(log).export() + "\n"
}

proptest! {
    #[test]
    fn an_untouched_log_holds(log in logs(0)) {
        prop_assert_eq!(verify(&log, head(&log)), Ok(log.len() as u64));
        prop_assert_eq!(verify_export(&export(&log)), Ok(log.len() as u64));
    }

    #[test]
    fn a_dropped_record_is_located(log in logs(1), at in any::<prop::sample::Index>()) {
        let at = at.index(log.len());
        let mut broken = log.clone();
        broken.remove(at);
        let expected = if at + 1 == log.len() {
            Broken::Truncated { expected: log.len() as u64, found: at as u64 }
        } else {
            Broken::Number { expected: at as u64 + 1, found: at as u64 + 2 }
        };
        prop_assert_eq!(verify(&broken, head(&log)), Err(expected));
    }

    #[test]
    fn swapped_records_are_located(log in logs(2), at in any::<prop::sample::Index>()) {
        let at = at.index(log.len() - 1);
        let mut broken = log.clone();
        broken.swap(at, at + 1);
        let number = at as u64 + 1;
        prop_assert_eq!(
            verify(&broken, head(&log)),
            Err(Broken::Number { expected: number, found: number + 1 })
        );
    }

    #[test]
    fn a_changed_record_is_located_also_when_it_is_hashed_anew(
        log in logs(2), at in any::<prop::sample::Index>(), again in any::<bool>(),
    ) {
        let at = at.index(log.len() - 1);
        let mut broken = log.clone();
        broken[at].0.who.push('x');
        let mut expected = at as u64 + 1;
        if again {
            let before = at.checked_sub(1).map_or(Hash::START, |before| broken[before].1);
            broken[at].1 = before.then(&broken[at].0);
            // The record agrees with itself; the next one does not follow it.
            expected += 1;
        }
        prop_assert_eq!(verify(&broken, head(&log)), Err(Broken::Hash { number: expected }));
    }

    #[test]
    fn an_appended_record_is_located_also_when_it_follows_the_chain(log in logs(1)) {
        let mut longer = log.clone();
        let (last, hash) = log.last().unwrap();
        let more = Record { number: last.number + 1, ..last.clone() };
        longer.push((more.clone(), hash.then(&more)));
        prop_assert_eq!(verify(&longer, head(&log)), Err(Broken::Appended { first: more.number }));
    }

    #[test]
    fn a_log_written_anew_differs_from_its_head(log in logs(1)) {
        let mut forged = log.clone();
        let last = forged.len() - 1;
        forged[last].0.detail.push('x');
        let before = last.checked_sub(1).map_or(Hash::START, |before| forged[before].1);
        forged[last].1 = before.then(&forged[last].0);
        prop_assert_eq!(verify(&forged, head(&log)), Err(Broken::Head));
    }

    #[test]
    fn no_flipped_bit_of_an_export_passes(
        log in logs(1), at in any::<prop::sample::Index>(), bit in 0..8_u8,
    ) {
        let mut bytes = export(&log).into_bytes();
        let at = at.index(bytes.len() - 1);
        bytes[at] ^= 1 << bit;
        let Ok(text) = String::from_utf8(bytes) else { return Ok(()) };
        prop_assert!(verify_export(&text).is_err(), "{}", text);
    }
}
