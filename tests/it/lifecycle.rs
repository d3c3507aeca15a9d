//! The life of a permission request under every interleaving of what can happen to it.

use proptest::prelude::*;
use zcode_mail_core::lifecycle::{Act, Effect, End, State, Verdict, step};
use zcode_mail_core::time::UnixMillis;

/// The kinds of act, and who acts: two deciders that disagree, the asker, the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Actor {
    Asker,
    Ann,
    Bob,
    Withdrawer,
    Clock,
}

const ACTORS: [Actor; 5] = [Actor::Asker, Actor::Ann, Actor::Bob, Actor::Withdrawer, Actor::Clock];

fn act(actor: Actor, at: usize) -> Act {
    let at = UnixMillis(i64::try_from(at).unwrap());
    let decide = |by: &str, decision: &str| {
        Act::Decide(Verdict { decision: decision.into(), note: String::new(), by: by.into(), at })
    };
    match actor {
        Actor::Asker => Act::Ask,
        Actor::Ann => decide("ann", "同意"),
        Actor::Bob => decide("bob", "拒绝"),
        Actor::Withdrawer => Act::Withdraw { at },
        Actor::Clock => Act::Expire { at },
    }
}

/// Runs acts in this order and checks every law on the way. Returns the last state.
fn run(actors: &[Actor]) -> State {
    let mut state = State::Pending;
    let mut published = Vec::new();
    // The first act that is no repeat of the question ends the request.
    let winner = actors.iter().position(|actor| *actor != Actor::Asker);
    for (at, actor) in actors.iter().enumerate() {
        let (after, effect) = step(&state, act(*actor, at));
        assert_eq!((after.clone(), effect.clone()), step(&state, act(*actor, at)), "no memory");
        if state != State::Pending {
            assert_eq!(after, state, "a final state changed: {actors:?}");
        }
        let decides = matches!(actor, Actor::Ann | Actor::Bob);
        match &effect {
            Effect::Publish(verdict) => {
                assert_eq!(Some(at), winner, "{actors:?}");
                assert_eq!(after, State::Decided(verdict.clone()));
                published.push(verdict.clone());
            }
            Effect::Refuse(end) => {
                assert!(decides && state != State::Pending, "{actors:?}");
                assert_eq!(Some(usize::try_from(end.at.0).unwrap()), winner, "{actors:?}");
                assert_eq!(end.how == End::Decided, end.by.is_some());
            }
            Effect::None => assert!(!decides, "a decider hears nothing: {actors:?}"),
        }
        state = after;
    }
    let decided = match &state {
        State::Decided(verdict) => vec![verdict.clone()],
        _ => Vec::new(),
    };
    assert_eq!(published, decided, "published is what was decided, once: {actors:?}");
    assert_eq!(winner.is_none(), state == State::Pending);
    state
}

#[test]
fn every_interleaving_of_seven_acts_keeps_the_laws() {
    const ACTS: u32 = 7;
    let mut sequences = 0_u32;
    let mut states = std::collections::HashSet::new();
    for length in 0..=ACTS {
        for number in 0..5_usize.pow(length) {
            let actors: Vec<_> = (0..length)
                .scan(number, |rest, _| {
                    let actor = ACTORS[*rest % 5];
                    *rest /= 5;
                    Some(actor)
                })
                .collect();
            states.insert(run(&actors));
            sequences += 1;
        }
    }
    // Pending, and for each of seven instants four ends.
    assert_eq!(states.len(), 1 + 7 * 4);
    println!("lifecycle: {sequences} interleavings, {} states", states.len());
}

proptest! {
    #[test]
    fn long_histories_keep_the_laws(choices in prop::collection::vec(0_usize..5, 0..200)) {
        run(&choices.into_iter().map(|choice| ACTORS[choice]).collect::<Vec<_>>());
    }

    #[test]
    fn the_state_survives_the_wire(choices in prop::collection::vec(0_usize..5, 0..6)) {
        use zcode_mail_core::api::permission::{Ask, Asked, AskedState};
        use zcode_mail_core::http::{Outcome, Reply};
        let state = run(&choices.into_iter().map(|choice| ACTORS[choice]).collect::<Vec<_>>());
        let asked = Asked { request_id: None, mail_id: None, relay_key: None, state: state.asked() };
        prop_assert_eq!(asked.state == AskedState::Pending, state == State::Pending);
        for repeat in [false, true] {
            let body = asked.to_json(repeat);
            let read = Ask::parse(Outcome::Reply(Reply::json(200, body.as_bytes())));
            prop_assert_eq!(read, Ok(asked.clone()));
        }
    }
}
