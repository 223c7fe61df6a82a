//! The computations that a periodic job does: a step with 64 bytes in and 32 bytes out, always the
//! same for the same step.
//!
//! As in the ERTS 2022 paper (§II-A), a job consists of a fixed number of steps that differ from
//! one another, and repeats exactly when it begins anew: so outputs can be compared with those
//! expected, computed beforehand by the same code.

mod array;
mod attitude;
mod busy;
pub mod feed;
pub mod files;

use array::Array;
use attitude::Attitude;
use busy::Busy;
pub use busy::Verified;
use serde::{Deserialize, Serialize};
use std::hint::black_box;

/// What a step reads: 64 bytes.
pub type Input = [u64; 8];
/// What a step gives: 32 bytes.
pub type Output = [u64; 4];
/// Bytes of an input on disk and in a pipe.
pub const INPUT_BYTES: usize = size_of::<Input>();
/// Bytes of an output on disk and in a pipe.
pub const OUTPUT_BYTES: usize = size_of::<Output>();

/// Steps until everything begins anew: those of the paper's AOCS.
pub const STEPS: u64 = 16_000;

/// Which computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// An attitude-control step.
    Attitude,
    /// The sum of an array of so many bytes.
    Array {
        /// Its size.
        bytes: u64,
    },
    /// A counted loop that takes so much CPU time.
    Busy {
        /// CPU time, ns.
        ns: u64,
    },
    /// Nothing: what the measuring itself costs (the paper's Fig. 3).
    Empty,
}

impl Work {
    /// The name that a run records.
    pub fn name(self) -> String {
        match self {
            Self::Attitude => "attitude".to_owned(),
            Self::Array { bytes } => format!("array:{bytes}"),
            Self::Busy { ns } => format!("busy:{ns}ns"),
            Self::Empty => "empty".to_owned(),
        }
    }

    /// The outputs of all steps for the given inputs.
    pub fn expected(self, inputs: &[Input]) -> Vec<Output> {
        match self {
            Self::Attitude => {
                let mut job = Job::new(self);
                inputs.iter().map(|input| job.step(input)).collect()
            }
            Self::Array { bytes } => {
                let sum = array::expected_sum(bytes);
                inputs.iter().map(|input| array::output(sum, input)).collect()
            }
            Self::Busy { .. } | Self::Empty => inputs.iter().map(passed_on).collect(),
        }
    }
}

/// A computation with its state.
pub struct Job {
    kind: Kind,
    step: u64,
}

enum Kind {
    Attitude(Box<Attitude>),
    Array(Array),
    Busy(Busy),
    Empty,
}

impl Job {
    /// Sets it up: memory allocated and touched, busy work calibrated.
    pub fn new(work: Work) -> Self {
        let kind = match work {
            Work::Attitude => Kind::Attitude(Box::default()),
            Work::Array { bytes } => Kind::Array(Array::new(bytes)),
            Work::Busy { ns } => Kind::Busy(Busy::calibrate(ns)),
            Work::Empty => Kind::Empty,
        };
        Self { kind, step: 0 }
    }

    /// Does the next step.
    #[inline]
    pub fn step(&mut self, input: &Input) -> Output {
        match &mut self.kind {
            Kind::Attitude(attitude) => {
                if self.step.is_multiple_of(STEPS) {
                    **attitude = Attitude::default();
                }
                self.step += 1;
                attitude.step(input)
            }
            Kind::Array(array) => array::output(array.sum(), input),
            Kind::Busy(busy) => {
                busy.burn();
                passed_on(input)
            }
            Kind::Empty => passed_on(input),
        }
    }

    /// The busy work requested, and the CPU time it was found to take.
    pub fn verify(&mut self) -> Option<Verified> {
        match &mut self.kind {
            Kind::Busy(busy) => Some(busy.verify()),
            _ => None,
        }
    }
}

/// The first half of the input.
#[inline]
fn passed_on(input: &Input) -> Output {
    let input = black_box(input);
    [input[0], input[1], input[2], input[3]]
}

/// The input of a step: a star tracker's quaternion, a gyroscope's rates and the sun's elevation,
/// as a slow tumble with noise.
pub fn input(step: u64) -> Input {
    // SplitMix64 (Steele, Lea & Flood, OOPSLA 2014): a value for every number, without state.
    let noise = |channel: u64| {
        let mut z = (step * 8 + channel).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    // A triangle wave instead of a sine: the same bits on every machine.
    let lap = step % 2_000;
    let angle = (lap as f64 / 1_000.0 - 1.0).abs() * 0.4 - 0.2;
    let vector = [angle + 1e-3 * noise(0), 0.5 * angle + 1e-3 * noise(1), 1e-3 * noise(2)];
    let rest = vector.iter().fold(1.0, |rest, part| rest - part * part);
    let rate = if lap < 1_000 { -4e-4 } else { 4e-4 };
    let values = [
        rest.sqrt(),
        vector[0],
        vector[1],
        vector[2],
        rate + 1e-5 * noise(3),
        0.5 * rate + 1e-5 * noise(4),
        1e-5 * noise(5),
        noise(6),
    ];
    values.map(f64::to_bits)
}

/// Words as the bytes that go through files and pipes.
pub fn bytes_of<const WORDS: usize>(words: &[u64; WORDS], into: &mut [u8]) {
    for (word, bytes) in words.iter().zip(into.chunks_exact_mut(8)) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
}

/// The words of such bytes.
pub fn words_of<const WORDS: usize>(bytes: &[u8]) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn inputs(count: u64) -> Vec<Input> {
        (0..count).map(input).collect()
    }

    #[test]
    fn every_work_gives_what_is_expected_of_it() {
        let inputs = inputs(50);
        for work in [
            Work::Attitude,
            Work::Array { bytes: 1000 },
            Work::Array { bytes: 1 },
            Work::Busy { ns: 100 },
            Work::Empty,
        ] {
            let expected = work.expected(&inputs);
            let mut job = Job::new(work);
            let outputs: Vec<_> = inputs.iter().map(|input| job.step(input)).collect();
            assert_eq!(outputs, expected, "{work:?}");
        }
    }

    #[test]
    fn a_lap_repeats_exactly_and_its_steps_differ() {
        let inputs = inputs(STEPS);
        let mut job = Job::new(Work::Attitude);
        let mut lap = || -> Vec<Output> { inputs.iter().map(|input| job.step(input)).collect() };
        let (first, second) = (lap(), lap());
        assert_eq!(first, second);
        let distinct: std::collections::BTreeSet<_> = first.iter().collect();
        assert!(distinct.len() > STEPS as usize / 2);
    }

    proptest! {
        #[test]
        fn words_survive_a_pipe(words: [u64; 4]) {
            let mut bytes = [0u8; OUTPUT_BYTES];
            bytes_of(&words, &mut bytes);
            prop_assert_eq!(words_of::<4>(&bytes), words);
        }

        #[test]
        fn inputs_are_unit_quaternions(step in 0u64..100_000) {
            let values = input(step).map(f64::from_bits);
            let length: f64 = values[..4].iter().map(|part| part * part).sum();
            prop_assert!((length - 1.0).abs() < 1e-12);
        }
    }
}
