//! Random scripts through an oracle.

use proptest::collection::vec;
use proptest::prelude::{any, prop_oneof};
use proptest::test_runner::{Config, TestError, TestRunner};
use zcode_mail_tests::{corpus, oracle};

/// Puts 512 random scripts through the oracle of `target`. The smallest one that breaks a law is
/// saved as a regression, so that the replay test and the fuzzer try it from then on.
pub(crate) fn scripted(target: &str) {
    let target = oracle::find(target).expect("a line in oracle::TARGETS");
    let config = Config {
        cases: 512,
        // What is saved is the input, and it is worth making small.
        max_shrink_iters: 50_000,
        failure_persistence: None,
        ..Config::default()
    };
    // Short ones too: oracles cut those at every position.
    let scripts = prop_oneof![vec(any::<u8>(), 0..24), vec(any::<u8>(), 0..512)];
    let run = TestRunner::new(config).run(&scripts, |bytes| {
        (target.check)(&bytes);
        Ok(())
    });
    match run {
        Ok(()) => {}
        Err(TestError::Abort(why)) => panic!("{why}"),
        Err(TestError::Fail(why, bytes)) => {
            let saved = corpus::save_regression(target.name, &bytes).expect("a place to save it");
            panic!("{why}\nsaved as {}", saved.display());
        }
    }
}
