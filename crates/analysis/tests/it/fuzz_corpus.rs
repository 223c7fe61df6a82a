//! The fuzzer's corpus in short: every seed, seeds cut at many places, some seconds of damage, and
//! what was found before. The campaign itself is `cargo xtask bench fuzz`.

use crate::common::execute::Outcome;
use crate::common::mutate::{Rng, mutate};
use model::events::EventCatalogue;
use std::time::{Duration, Instant};

/// Enough to see that most damage is reported; on a slow machine the test exceeds its time until
/// then.
const FEWEST: u64 = 500;
const LONG: Duration = Duration::from_secs(7);

#[test]
fn a_whole_seed_is_whole_and_a_cut_one_never_is_more() {
    let catalogue = EventCatalogue::embedded().unwrap();
    for seed in crate::damaged::seeds(&catalogue).seeds {
        assert_eq!(crate::damaged::attribute(&catalogue, seed.clone()), Outcome::Whole);
        let mut partial = 0;
        for length in (0..seed.len()).rev().step_by(61) {
            partial +=
                u32::from(crate::damaged::attribute(&catalogue, seed[..length].to_vec()) != Outcome::Whole);
        }
        assert!(partial > 0);
    }
}

#[test]
fn damage_is_an_error_or_a_partial_result() {
    let catalogue = EventCatalogue::embedded().unwrap();
    let corpus = crate::damaged::seeds(&catalogue);
    let started = Instant::now();
    let mut outcomes = [0u64; 3];
    for execution in 0.. {
        if execution >= FEWEST && started.elapsed() > LONG {
            break;
        }
        let bytes = mutate(&corpus.seeds, &corpus.words, &mut Rng::new(5, execution));
        outcomes[crate::damaged::attribute(&catalogue, bytes) as usize] += 1;
    }
    println!("{outcomes:?} refused, partial, whole");
    assert!(outcomes.iter().all(|count| *count > 0), "{outcomes:?}");
}

#[test]
fn what_was_found_before_stays_found() {
    let catalogue = EventCatalogue::embedded().unwrap();
    for (_, bytes) in crate::common::regressions() {
        crate::damaged::attribute(&catalogue, bytes);
    }
}

#[test]
fn damaged_samples_are_refused() {
    let corpus = crate::samples::seeds();
    for seed in &corpus.seeds {
        assert_eq!(crate::samples::read(seed), Outcome::Whole);
        for length in (0..seed.len()).step_by(61) {
            assert_eq!(
                crate::samples::read(&seed[..length]),
                Outcome::Refused,
                "{length} of {} bytes",
                seed.len()
            );
        }
    }
    let started = Instant::now();
    let mut outcomes = [0u64; 3];
    for execution in 0.. {
        if execution >= FEWEST && started.elapsed() > LONG / 4 {
            break;
        }
        let bytes = mutate(&corpus.seeds, &corpus.words, &mut Rng::new(6, execution));
        outcomes[crate::samples::read(&bytes) as usize] += 1;
    }
    let [refused, partial, whole] = outcomes;
    // What lies between the columns, and of a file without sums the values, may change without a
    // trace.
    assert!(refused > 0 && whole > 0 && partial == 0, "{outcomes:?}");
}
