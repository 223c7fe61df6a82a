//! Every reader of bytes that others have written, in short: each seed, some damage, and what was
//! found before. The campaign itself is `cargo xtask bench fuzz`; traces and samples have the like
//! in the crates `ftrace` and `analysis`.

use crate::common::execute::Outcome;
use crate::common::mutate::Rng;
use crate::readers;
use std::path::Path;
use std::time::{Duration, Instant};

/// A slow machine stops here, once each outcome has been met.
const LONG: Duration = Duration::from_secs(6);

#[test]
fn every_seed_is_read() {
    for reader in readers::all() {
        assert!(!reader.seeds.is_empty(), "{}", reader.name);
        for (at, seed) in reader.seeds.iter().enumerate() {
            let outcome = (reader.read)(seed);
            assert_ne!(outcome, Outcome::Refused, "{}: seed {at}", reader.name);
        }
    }
}

#[test]
fn damage_is_refused_or_read_within_bounds() {
    for reader in readers::all() {
        let started = Instant::now();
        let mut outcomes = [0u64; 3];
        for execution in 0..reader.short {
            let both = outcomes[Outcome::Refused as usize] > 0 && outcomes[Outcome::Whole as usize] > 0;
            if both && started.elapsed() > LONG {
                break;
            }
            let bytes = (reader.damage)(&reader.seeds, &mut Rng::new(7, execution));
            outcomes[(reader.read)(&bytes) as usize] += 1;
        }
        println!("{}: {outcomes:?} refused, partial, whole in {:?}", reader.name, started.elapsed());
        assert!(
            outcomes[Outcome::Refused as usize] > 0,
            "{}: nothing was refused: {outcomes:?}",
            reader.name
        );
        assert!(outcomes[Outcome::Whole as usize] > 0, "{}: nothing was read: {outcomes:?}", reader.name);
    }
}

/// The way to code that takes hours to find, in seconds.
#[test]
fn what_campaigns_have_kept_is_read_within_bounds() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/fuzz/corpus");
    for reader in readers::all() {
        let started = Instant::now();
        let inputs = readers::stored::inputs(&corpus, reader.name);
        let mut read = 0;
        for input in inputs.iter().take_while(|_| started.elapsed() < LONG) {
            (reader.read)(input);
            read += 1;
        }
        println!("{}: {read} of {} kept inputs read", reader.name, inputs.len());
    }
}

#[test]
fn what_was_found_before_stays_found() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/found");
    let all = readers::all();
    for entry in std::fs::read_dir(place).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let Some(stem) = name.strip_suffix(".bin") else { continue };
        let reader = all.iter().find(|reader| stem.starts_with(&format!("{}-", reader.name)));
        let reader = reader.unwrap_or_else(|| panic!("{name} is named by no reader"));
        (reader.read)(&std::fs::read(&path).unwrap());
    }
}
