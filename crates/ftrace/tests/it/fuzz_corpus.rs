//! The fuzzer's corpus in short: every seed, some seconds of damage of each kind, and what was
//! found before. Every cut is in `malformed.rs`; the campaign itself is `cargo xtask bench fuzz`.

use std::time::{Duration, Instant};

use crate::common::corpus::{self, Corpus};
use crate::common::execute::{self, Outcome};
use crate::common::mutate::{Rng, mutate};

/// Enough to meet every outcome; on a slow machine the test continues beyond its time until then.
const FEWEST: u64 = 2000;

/// Runs for some seconds; each outcome must occur, else the damage is not what it should be.
fn run(corpus: &Corpus, seconds: u64, execute: impl Fn(Vec<u8>) -> Outcome) -> [u64; 3] {
    let started = Instant::now();
    let mut outcomes = [0u64; 3];
    for execution in 0.. {
        if execution >= FEWEST && started.elapsed() > Duration::from_secs(seconds) {
            break;
        }
        let bytes = mutate(&corpus.seeds, &corpus.words, &mut Rng::new(3, execution));
        outcomes[execute(bytes) as usize] += 1;
    }
    println!("{outcomes:?} refused, partial, whole");
    outcomes
}

#[test]
fn whole_seeds_are_whole() {
    for seed in corpus::containers().seeds {
        assert_eq!(execute::container(seed), Outcome::Whole);
    }
    for seed in corpus::pages().seeds {
        assert_ne!(execute::pages(&seed), Outcome::Refused);
    }
}

#[test]
fn damaged_containers_are_refused_or_partial() {
    let outcomes = run(&corpus::containers(), 5, execute::container);
    assert!(outcomes.iter().all(|count| *count > 0), "{outcomes:?}");
}

#[test]
fn damaged_pages_end() {
    let outcomes = run(&corpus::pages(), 2, |bytes| execute::pages(&bytes));
    assert!(outcomes.iter().all(|count| *count > 0), "{outcomes:?}");
}

#[test]
fn damaged_texts_are_read_or_refused() {
    let outcomes = run(&corpus::texts(), 2, |bytes| execute::text(&bytes));
    assert!(outcomes[Outcome::Refused as usize] > 0 && outcomes[Outcome::Whole as usize] > 0, "{outcomes:?}");
}

#[test]
fn what_was_found_before_stays_found() {
    for (_, bytes) in crate::common::regressions() {
        execute::container(bytes.clone());
        execute::pages(&bytes);
        execute::text(&bytes);
    }
}
