//! The sum of an array: the ERTS 2022 paper's second computation (§VI-B), whose accesses are the
//! same in every job, so that every further cache refill is somebody else's doing.

use super::{Input, Output};
use std::hint::black_box;

/// The array.
pub(super) struct Array {
    words: Vec<u64>,
}

/// Words of an array of so many bytes, at least one.
fn words(bytes: u64) -> u64 {
    bytes.div_ceil(8).max(1)
}

/// The word at a place of the array.
fn word(place: u64) -> u64 {
    place.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17)
}

impl Array {
    /// Allocates and fills it.
    pub(super) fn new(bytes: u64) -> Self {
        Self { words: (0..words(bytes)).map(word).collect() }
    }

    /// Reads every word once.
    #[inline(never)]
    pub(super) fn sum(&self) -> u64 {
        black_box(&self.words).iter().fold(0, |sum: u64, word| sum.wrapping_add(*word))
    }
}

/// The sum by the formula, without an array.
pub(super) fn expected_sum(bytes: u64) -> u64 {
    (0..words(bytes)).fold(0, |sum: u64, place| sum.wrapping_add(word(place)))
}

/// The sum, and what of the input shows that it arrived.
pub(super) fn output(sum: u64, input: &Input) -> Output {
    [sum, sum.wrapping_add(input[0]), input[1], input[7]]
}
