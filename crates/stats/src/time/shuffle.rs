//! Would as good a period come of chance? The watch is cut into blocks, their order drawn anew, and
//! the best agreement of the band read again: what is within a block stays together, so that bursts
//! remain bursts. Blocks are of random lengths about half a period: equal ones would keep every
//! time's place within its block, and with it a period.
//!
//! H. R. Künsch (Annals of Statistics 17, 1989) on blocks; p = (1 + #≥)/(1 + R) as in
//! [`super::change`].

use super::search::{Spectra, best_agreement};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

/// Orders that are drawn.
const DRAWS: u32 = 99;
/// Turns that are looked at: of more the first. Up to [`OCTAVES`] that makes 2¹⁴ bins of a third.
const TURNS: f64 = 1_360.0;
/// Frequencies are compared up to so many times the one found.
const OCTAVES: f64 = 4.0;

/// The probability that blocks of half a period in random order agree as well as the times do, at
/// any frequency up to four times theirs; more than `most` as soon as that is sure. `lowest`: the
/// lowest frequency that was looked at.
pub(crate) fn shuffled_p(
    times: &[f64],
    span: f64,
    lowest: f64,
    frequency: f64,
    most: f64,
    random: &mut ChaCha8Rng,
    spectra: &mut Spectra,
) -> f64 {
    let covered = span.min(TURNS / frequency);
    let times = &times[..times.partition_point(|time| *time < covered)];
    let (low, high) = (lowest.max(4.0 / covered).min(frequency * 0.95), OCTAVES * frequency);
    let observed = best_agreement(times, covered, [frequency * 0.9, frequency * 1.1], spectra);
    let share = |reached: u32| f64::from(1 + reached) / f64::from(1 + DRAWS);
    let mut reached = 0;
    for _ in 0..DRAWS {
        let moved = shuffled(times, covered, 0.5 / frequency, random);
        reached += u32::from(best_agreement(&moved, covered * 1.001, [low, high], spectra) >= observed);
        if share(reached) > most {
            break;
        }
    }
    share(reached)
}

/// The times, ascending, where they come to lie when blocks of about `length` seconds change
/// places.
fn shuffled(times: &[f64], span: f64, length: f64, random: &mut ChaCha8Rng) -> Vec<f64> {
    // From when to when, and from which time to which.
    let mut blocks: Vec<([f64; 2], [usize; 2])> = Vec::new();
    let (mut from, mut first, mut end) = (0.0, 0, 0.0);
    while end < span {
        end += length * (0.5 + f64::from(random.next_u32()) / f64::from(u32::MAX));
        let until = end.min(span);
        let past = first + times[first..].iter().take_while(|time| **time < until).count();
        blocks.push(([from, until], [first, past]));
        (from, first) = (until, past);
    }
    for at in (1..blocks.len()).rev() {
        blocks.swap(at, ((u64::from(random.next_u32()) * (at as u64 + 1)) >> 32) as usize);
    }
    let (mut moved, mut start) = (Vec::with_capacity(times.len()), 0.0);
    for ([from, until], [first, past]) in blocks {
        moved.extend(times[first..past].iter().map(|time| time - from + start));
        start += until - from;
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resample::generator;
    use fixture::noise::uniform;

    #[test]
    fn a_period_does_not_survive_and_chance_does() {
        let mut random = generator(1, 0);
        let periodic: Vec<f64> = (0..60).map(|k| 1.0 + 3.0 * f64::from(k)).collect();
        assert!(
            shuffled_p(&periodic, 180.0, 0.02, 1.0 / 3.0, 1.0, &mut random, &mut Spectra::default()) < 0.015
        );
        let mut chance: Vec<f64> = (0..60).map(|_| 180.0 * uniform(&mut random)).collect();
        chance.sort_unstable_by(f64::total_cmp);
        assert!(
            shuffled_p(&chance, 180.0, 0.02, 1.0 / 3.0, 1.0, &mut random, &mut Spectra::default()) > 0.05
        );
        // It ends as soon as it exceeds `most`.
        let more = shuffled_p(&chance, 180.0, 0.02, 1.0 / 3.0, 0.02, &mut random, &mut Spectra::default());
        assert!((more - 0.03).abs() < 1e-12, "{more}");
    }
}
