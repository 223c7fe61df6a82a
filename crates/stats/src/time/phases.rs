//! Directions of phases: where on the circle times lie that are folded at a frequency, many at
//! once.
//!
//! A mean of directions is a sum over all times for each frequency, and a search tries thousands of
//! them, so the loops here have no branches and several sums side by side, which the compiler turns
//! into instructions for several numbers at once.

use std::f64::consts::TAU;

/// Numbers that are worked on side by side.
const LANES: usize = 4;
/// Frequencies to either side of the middle one.
pub(super) const STEPS: usize = 4;

/// Cosine and sine of so many turns, below 2⁵⁰ of them, to 1e-10. Those of the standard library
/// take most of their time to bring an angle near to nought, which is a subtraction where it is
/// given in turns.
#[inline(always)]
fn direction(turns: f64) -> [f64; 2] {
    // Added to a number it leaves no room behind the point: 1.5 · 2⁵².
    const WHOLE: f64 = 6_755_399_441_055_744.0;
    // The series of both, of the angle's square.
    const SIN: [f64; 6] =
        [1.0, -1.0 / 6.0, 1.0 / 120.0, -1.0 / 5_040.0, 1.0 / 362_880.0, -1.0 / 39_916_800.0];
    const COS: [f64; 7] =
        [1.0, -0.5, 1.0 / 24.0, -1.0 / 720.0, 1.0 / 40_320.0, -1.0 / 3_628_800.0, 1.0 / 479_001_600.0];
    let within = turns - ((turns + WHOLE) - WHOLE);
    // A quarter of the angle, at most an eighth of a turn, and doubled twice.
    let angle = within * (TAU / 4.0);
    let square = angle * angle;
    let sum = |terms: &[f64]| terms.iter().rev().fold(0.0, |sum, term| sum * square + term);
    let doubled = |[cos, sin]: [f64; 2]| [1.0 - 2.0 * sin * sin, 2.0 * sin * cos];
    doubled(doubled([sum(&COS), angle * sum(&SIN)]))
}

/// Directions of times at a frequency: cosines and sines.
fn directions(times: &[f64], frequency: f64, [x, y]: &mut [Vec<f64>; 2]) {
    x.resize(times.len(), 0.0);
    y.resize(times.len(), 0.0);
    for ((time, x), y) in times.iter().zip(x.iter_mut()).zip(y.iter_mut()) {
        [*x, *y] = direction(time * frequency);
    }
}

/// Directions of the sums of angles of which these are the directions.
fn sums([cos, sin]: &[Vec<f64>; 2], [x, y]: &[Vec<f64>; 2]) -> [Vec<f64>; 2] {
    let both = || cos.iter().zip(sin).zip(x.iter().zip(y));
    [
        both().map(|((cos, sin), (x, y))| cos * x - sin * y).collect(),
        both().map(|((cos, sin), (x, y))| cos * y + sin * x).collect(),
    ]
}

/// Adds products lane by lane.
#[inline(always)]
fn add(sums: &mut [f64; LANES], a: &[f64; LANES], b: &[f64; LANES]) {
    for lane in 0..LANES {
        sums[lane] += a[lane] * b[lane];
    }
}

/// Sums of the products of all pairs of one of `[a, b]` and one of `[x, y]`: ax, ay, bx, by.
fn products([a, b]: [&[f64]; 2], [x, y]: [&[f64]; 2]) -> [f64; 4] {
    let [a, b, x, y] = [a, b, x, y].map(|values| values.as_chunks::<LANES>());
    let (mut ax, mut ay, mut bx, mut by) = ([0.0; LANES], [0.0; LANES], [0.0; LANES], [0.0; LANES]);
    for (((a, b), x), y) in a.0.iter().zip(b.0).zip(x.0).zip(y.0) {
        add(&mut ax, a, x);
        add(&mut ay, a, y);
        add(&mut bx, b, x);
        add(&mut by, b, y);
    }
    let mut sums = [ax, ay, bx, by].map(|lanes| lanes.iter().sum::<f64>());
    for (((a, b), x), y) in a.1.iter().zip(b.1).zip(x.1).zip(y.1) {
        let products = [a * x, a * y, b * x, b * y];
        sums.iter_mut().zip(products).for_each(|(sum, product)| *sum += product);
    }
    sums
}

/// The sum of some values.
fn sum(values: &[f64]) -> f64 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    chunks.iter().for_each(|chunk| add(&mut sums, chunk, &[1.0; LANES]));
    sums.iter().chain(rest).sum()
}

/// Real and imaginary part of the mean of e^(−2πi·f·t).
pub fn resultant(times: &[f64], frequency: f64) -> [f64; 2] {
    let (chunks, rest) = times.as_chunks::<LANES>();
    let mut sums = [[0.0; LANES]; 2];
    for chunk in chunks {
        for lane in 0..LANES {
            let [x, y] = direction(chunk[lane] * frequency);
            sums[0][lane] += x;
            sums[1][lane] -= y;
        }
    }
    for time in rest {
        let [x, y] = direction(time * frequency);
        sums[0][0] += x;
        sums[1][0] -= y;
    }
    sums.map(|lanes| lanes.iter().sum::<f64>() / times.len().max(1) as f64)
}

/// Times that are folded at frequencies of a set distance from each other.
///
/// By the laws for sums of angles the directions at k steps to either side of a frequency follow
/// from those at it and those of k steps alone, which are the same wherever the middle is.
pub(super) struct Around<'a> {
    times: &'a [f64],
    /// Directions of 1, 2, … steps.
    turned: [[Vec<f64>; 2]; STEPS],
    /// Room for those at the middle.
    middle: [Vec<f64>; 2],
}

impl<'a> Around<'a> {
    /// `step`: between the frequencies, Hz.
    pub(super) fn new(times: &'a [f64], step: f64) -> Self {
        let mut turned: [[Vec<f64>; 2]; STEPS] = Default::default();
        directions(times, step, &mut turned[0]);
        for steps in 1..STEPS {
            turned[steps] = sums(&turned[steps - 1], &turned[0]);
        }
        Self { times, turned, middle: Default::default() }
    }

    /// Mean resultant lengths at the frequencies from [`STEPS`] steps below a middle one to as many
    /// above.
    pub(super) fn agreements(&mut self, middle: f64) -> [f64; 2 * STEPS + 1] {
        directions(self.times, middle, &mut self.middle);
        let [x, y] = &self.middle;
        let n = self.times.len().max(1) as f64;
        let mut found = [0.0; 2 * STEPS + 1];
        found[STEPS] = sum(x).hypot(sum(y)) / n;
        for (away, [cos, sin]) in (1..).zip(&self.turned) {
            let [cx, cy, sx, sy] = products([cos, sin], [x, y]);
            found[STEPS + away] = (cx - sy).hypot(cy + sx) / n;
            found[STEPS - away] = (cx + sy).hypot(cy - sx) / n;
        }
        found
    }
}

/// The best of nine frequencies from `width` below to `width` above each of several. Where `width`
/// is what a spectrum leaves open, the agreement found is a hundredth below the best at most.
pub(super) struct Nearer<'a> {
    around: Around<'a>,
    width: f64,
}

impl<'a> Nearer<'a> {
    /// `width`: to both sides, Hz.
    pub(super) fn new(times: &'a [f64], width: f64) -> Self {
        Self { around: Around::new(times, width / STEPS as f64), width }
    }

    /// The best frequency and its agreement.
    pub(super) fn best(&mut self, frequency: f64) -> (f64, f64) {
        let agreements = self.around.agreements(frequency);
        // The middle where nothing else is better.
        let mut best = (frequency, agreements[STEPS]);
        for (step, agreement) in agreements.into_iter().enumerate() {
            let near = frequency + self.width * (step as f64 / STEPS as f64 - 1.0);
            if near > 0.0 && agreement > best.1 {
                best = (near, agreement);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resample::generator;
    use fixture::noise::uniform;
    use proptest::prelude::*;

    #[test]
    fn agreements_side_by_side_are_those_one_by_one() {
        let mut random = generator(5, 0);
        for n in [0, 1, 7, 300] {
            let times: Vec<f64> = (0..n).map(|_| 500.0 * uniform(&mut random)).collect();
            for (at, found) in Around::new(&times, 0.003).agreements(2.0).into_iter().enumerate() {
                let [x, y] = resultant(&times, 2.0 + 0.003 * (at as f64 - STEPS as f64));
                assert!((found - x.hypot(y)).abs() < 1e-9, "{n} {at}: {found} {x} {y}");
            }
        }
    }

    #[test]
    fn the_resultant_of_any_number_of_times_is_their_mean() {
        for n in 0..10 {
            let times: Vec<f64> = (0..n).map(|k| f64::from(k) * 0.13).collect();
            let part = |of: fn(f64) -> f64| times.iter().map(|time| of(-TAU * time * 3.0)).sum::<f64>();
            let [x, y] = resultant(&times, 3.0).map(|mean| mean * f64::from(n));
            assert!((x - part(f64::cos)).abs() < 1e-9 && (y - part(f64::sin)).abs() < 1e-9, "{n}");
        }
    }

    proptest! {
        #[test]
        fn directions_are_those_of_the_standard_library(turns in -1e6f64..1e6, eighths in -40i32..40) {
            for turns in [turns, f64::from(eighths) / 8.0] {
                let (sin, cos) = (TAU * turns.fract()).sin_cos();
                let [x, y] = direction(turns);
                prop_assert!((x - cos).abs() < 1e-10 && (y - sin).abs() < 1e-10, "{turns}: {x} {y}");
            }
        }
    }
}
