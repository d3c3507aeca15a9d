//! How often somebody may guess a password.
//!
//! Failures are counted per name and per client address in a window; above a limit every attempt
//! is refused without looking at the password, until the window ends. A login link still works,
//! so that nobody can lock a person out for good. The table is bounded: when it is full the oldest
//! windows go, which gives a guesser nothing but the effort of filling it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// Failures per name or address in one window.
const FAILURES: u32 = 10;
/// The window, milliseconds.
const WINDOW: i64 = 15 * 60 * 1000;
/// Names and addresses that are counted at once.
const TABLE_LIMIT: usize = 2_000;

/// The failures of the present windows.
#[derive(Default)]
pub(super) struct Throttle(Mutex<HashMap<Guesser, Window>>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Guesser {
    Name(String),
    Address(IpAddr),
}

struct Window {
    started: i64,
    failures: u32,
}

impl Throttle {
    /// Counts an attempt at `now` before it is made.
    ///
    /// # Errors
    ///
    /// The seconds to wait, when name or address have used their attempts up.
    pub(super) fn attempt(&self, name: &str, address: IpAddr, now: i64) -> Result<(), u64> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let guessers = guessers(name, address);
        for guesser in &guessers {
            if let Some(window) = table.get(guesser)
                && now - window.started < WINDOW
                && window.failures >= FAILURES
            {
                let left = (window.started + WINDOW - now).max(1000).unsigned_abs();
                return Err(left.div_ceil(1000));
            }
        }
        while table.len() + guessers.len() > TABLE_LIMIT {
            let oldest = table.iter().min_by_key(|(_, window)| window.started);
            let Some(who) = oldest.map(|(who, _)| who.clone()) else { break };
            table.remove(&who);
        }
        for guesser in guessers {
            let window = table.entry(guesser).or_insert(Window { started: now, failures: 0 });
            if now - window.started >= WINDOW {
                *window = Window { started: now, failures: 0 };
            }
            window.failures += 1;
        }
        Ok(())
    }

    /// Forgets the attempts of somebody who was right.
    pub(super) fn succeeded(&self, name: &str, address: IpAddr) {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for guesser in guessers(name, address) {
            table.remove(&guesser);
        }
    }
}

fn guessers(name: &str, address: IpAddr) -> [Guesser; 2] {
    [Guesser::Name(name.to_owned()), Guesser::Address(address)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    #[test]
    fn ten_attempts_are_looked_at_and_the_eleventh_waits_for_the_window() {
        let throttle = Throttle::default();
        for _ in 0..FAILURES {
            assert_eq!(throttle.attempt("ann", HERE, 0), Ok(()));
        }
        assert_eq!(throttle.attempt("ann", HERE, 1000), Err(899));
        assert_eq!(throttle.attempt("ann", THERE, 1000), Err(899), "the name counts");
        assert_eq!(throttle.attempt("bob", HERE, 1000), Err(899), "the address counts");
        assert_eq!(throttle.attempt("bob", THERE, 1000), Ok(()));
        assert_eq!(throttle.attempt("ann", HERE, WINDOW), Ok(()));
    }

    #[test]
    fn a_right_password_starts_over() {
        let throttle = Throttle::default();
        for _ in 0..FAILURES - 1 {
            assert_eq!(throttle.attempt("ann", HERE, 0), Ok(()));
        }
        throttle.succeeded("ann", HERE);
        for _ in 0..FAILURES {
            assert_eq!(throttle.attempt("ann", HERE, 0), Ok(()));
        }
        assert!(throttle.attempt("ann", HERE, 0).is_err());
    }

    #[test]
    fn the_table_stays_bounded() {
        let throttle = Throttle::default();
        for number in 0..TABLE_LIMIT + 10 {
            assert_eq!(throttle.attempt(&format!("n{number}"), address(number), 0), Ok(()));
        }
        assert!(throttle.0.lock().unwrap().len() <= TABLE_LIMIT);
    }

    fn address(number: usize) -> IpAddr {
        IpAddr::V4(std::net::Ipv4Addr::from(number as u32))
    }
}
