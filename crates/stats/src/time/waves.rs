//! Periods of equally spaced values in which nothing stands out: lines of their power spectrum.
//!
//! P. D. Welch, "The use of fast Fourier transform for the estimation of power spectra", IEEE
//! Trans. Audio and Electroacoustics 15 (1967): power averaged over halves that overlap, under
//! Hann's window. A line is a place that rises above the middle of its neighbourhood further than
//! averaged noise does, all places counted as tried: noise of any smooth colour has no line. The
//! line must also keep its phase: blocks of the series turned to random phases must not add up as
//! well. Looked at are the values, cut where they stand out, and whether they are among the largest
//! tenth. Nothing is claimed beyond half the rate of the samples (Nyquist).

use super::transform::Transform;
use crate::runs::median;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use statrs::distribution::{ContinuousCDF, Gamma};
use std::f64::consts::TAU;

/// Values of a transformed part at the most, and at the least.
const LONGEST: usize = 1 << 13;
const SHORTEST: usize = 64;
/// Parts without overlap that a spectrum averages at least.
const PARTS: usize = 8;
/// Places to each side that a line is compared with.
const AROUND: usize = 24;
/// A larger probability is no line.
const SIGNIFICANT: f64 = 1e-4;
/// Random phases that blocks are turned to.
const DRAWS: u32 = 199;
/// Blocks that must keep their phase.
const BLOCKS: usize = 32;
/// Waves at the most.
const MOST: usize = 3;

/// A period of equally spaced values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wave {
    /// Samples per period.
    pub steps: f64,
    /// Half of its 95 % interval, samples.
    pub half_width: f64,
    /// Probability of the line, all places counted.
    pub p_value: f64,
    /// Share of random phases that add up as well.
    pub turned_p: f64,
}

/// The waves of values that were taken one step after another, strongest first.
pub fn waves(values: &[f64], random: &mut ChaCha8Rng) -> Vec<Wave> {
    let mut found: Vec<Wave> = Vec::new();
    for series in [cut(values), largest_tenth(values)].into_iter().flatten() {
        for wave in lines(&series, random) {
            let known = |other: &Wave| {
                let ratio = other.steps.max(wave.steps) / other.steps.min(wave.steps);
                (ratio - ratio.round()).abs() < 0.02
            };
            if found.len() < MOST && !found.iter().any(known) {
                found.push(wave);
            }
        }
    }
    found
}

/// Values less their middle, none further from it than five deviations. None where more than half
/// are equal.
fn cut(values: &[f64]) -> Option<Vec<f64>> {
    let middle = median(&mut values.to_vec())?;
    let mut off: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    let reach = 5.0 * 1.4826 * median(&mut off)?;
    (reach > 0.0).then(|| centred(values.iter().map(|value| (value - middle).clamp(-reach, reach)).collect()))
}

/// 1 where a value is among the largest tenth, less the mean. None where that is no tenth.
fn largest_tenth(values: &[f64]) -> Option<Vec<f64>> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let from = *sorted.get(sorted.len() * 9 / 10)?;
    let share = values.iter().filter(|value| **value >= from).count() as f64 / values.len() as f64;
    (share < 0.3).then(|| centred(values.iter().map(|value| f64::from(u8::from(*value >= from))).collect()))
}

fn centred(mut values: Vec<f64>) -> Vec<f64> {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    values.iter_mut().for_each(|value| *value -= mean);
    values
}

/// Power at k/length of the rate, averaged, and over how many independent parts.
fn welch(values: &[f64], length: usize) -> (Vec<f64>, f64) {
    let mut transform = Transform::<f64>::new(length);
    let window: Vec<f64> =
        (0..length).map(|at| 0.5 - 0.5 * (TAU * at as f64 / length as f64).cos()).collect();
    let mut powers = vec![0.0; length / 2 + 1];
    let mut part = vec![0.0; length];
    let mut parts = 0.0;
    for start in (0..=values.len() - length).step_by(length / 2) {
        let weighted = values[start..].iter().zip(&window).map(|(value, weight)| value * weight);
        part.iter_mut().zip(weighted).for_each(|(place, value)| *place = value);
        powers.iter_mut().zip(transform.of(&part)).for_each(|(sum, value)| *sum += value.norm_sqr());
        parts += 1.0;
    }
    powers.iter_mut().for_each(|power| *power /= parts);
    // Neighbours that overlap by half carry 9/11 of the information of as many apart (Welch 1967,
    // §4).
    (powers, (parts * 9.0 / 11.0f64).max(1.0))
}

fn lines(values: &[f64], random: &mut ChaCha8Rng) -> Vec<Wave> {
    let length = (values.len() / PARTS).checked_ilog2().map_or(0, |bits| 1 << bits).min(LONGEST);
    if length < SHORTEST {
        return Vec::new();
    }
    let (powers, parts) = welch(values, length);
    let Ok(law) = Gamma::new(parts, parts) else { return Vec::new() };
    // The first places hold slow change, the last is half the rate itself.
    let places = 12..powers.len() - 1;
    let tried = places.len() as f64;
    // The higher of both sides, so that the flank of a steep spectrum is no line.
    let rise = |at: usize| {
        let middle = |side: std::ops::Range<usize>| median(&mut powers[side].to_vec()).unwrap_or(0.0);
        let (below, above) = (
            at.saturating_sub(AROUND).max(2)..at - 2,
            (at + 3).min(powers.len())..(at + AROUND).min(powers.len()),
        );
        powers[at] / middle(below).max(middle(above)).max(f64::MIN_POSITIVE)
    };
    let line = |at: usize| {
        let p_value = (law.sf(rise(at)) * tried).min(1.0);
        let peak = powers[at] >= powers[at - 1] && powers[at] >= powers[at + 1];
        (peak && p_value < SIGNIFICANT).then_some((at, p_value))
    };
    let mut lines: Vec<(usize, f64)> = places.filter_map(line).collect();
    let mut found = Vec::new();
    while let Some(&(strongest, p_value)) = lines.iter().max_by(|a, b| powers[a.0].total_cmp(&powers[b.0])) {
        if found.len() == MOST {
            break;
        }
        // The lowest line of which the strongest is a multiple is the period, the others are its
        // harmonics.
        let multiple = |low: usize, high: usize| {
            let times = (high as f64 / low as f64).round();
            (high as f64 - times * low as f64).abs() <= 0.5 * times + 1.0 && times >= 1.0
        };
        let lowest =
            lines.iter().map(|one| one.0).filter(|low| multiple(*low, strongest)).min().unwrap_or(strongest);
        lines.retain(|one| !multiple(lowest, one.0));
        lines.retain(|one| one.0 != strongest);
        if let Some(wave) = fine(values, lowest as f64 / length as f64, 1.5 / length as f64, p_value, random)
        {
            found.push(wave);
        }
    }
    found
}

/// The frequency, in turns a sample, near a line at which the whole series adds up best; where its
/// blocks keep their phase.
fn fine(values: &[f64], frequency: f64, width: f64, p_value: f64, random: &mut ChaCha8Rng) -> Option<Wave> {
    let size = (values.len() / BLOCKS).clamp(1, (0.5 / width) as usize).max(1);
    let block = |(number, part): (usize, &[f64])| {
        let start = (number * size) as f64;
        let turn = |(at, value): (usize, &f64)| {
            let (sin, cos) = (TAU * (frequency * (start + at as f64)).fract()).sin_cos();
            [value * cos, -value * sin]
        };
        part.iter().enumerate().map(turn).fold([0.0, 0.0], |[x, y], [a, b]| [x + a, y + b])
    };
    let blocks: Vec<[f64; 2]> = values.chunks_exact(size).enumerate().map(block).collect();
    let turn = |number: usize, off: f64| (TAU * off * (number as f64 + 0.5) * size as f64).sin_cos();
    let add = |[x, y]: [f64; 2], ([a, b], (sin, cos)): (&[f64; 2], (f64, f64))| {
        [x + a * cos + b * sin, y + b * cos - a * sin]
    };
    let sum = |blocks: &[[f64; 2]], off: f64| {
        let turns = (0..blocks.len()).map(|number| turn(number, off));
        let [x, y] = blocks.iter().zip(turns).fold([0.0, 0.0], add);
        x.hypot(y)
    };
    let n = values.len() as f64;
    let tries = (width * n * 4.0).ceil() as i64;
    let offs: Vec<f64> = (-tries..=tries).map(|at| at as f64 / (4.0 * n)).collect();
    // The same for every draw below, and most of the work.
    let turns: Vec<Vec<(f64, f64)>> =
        offs.iter().map(|off| (0..blocks.len()).map(|number| turn(number, *off)).collect()).collect();
    let best = |blocks: &[[f64; 2]]| {
        let sums = offs.iter().zip(&turns).map(|(off, turns)| {
            let [x, y] = blocks.iter().zip(turns.iter().copied()).fold([0.0, 0.0], add);
            (*off, x.hypot(y))
        });
        sums.fold((0.0, 0.0), |a, b| if b.1 > a.1 { b } else { a })
    };
    let (mut off, observed) = best(&blocks);
    let mut reach = 0.25 / n;
    for _ in 0..8 {
        let near = [off - reach, off, off + reach];
        off = near.into_iter().max_by(|a, b| sum(&blocks, *a).total_cmp(&sum(&blocks, *b))).unwrap_or(off);
        reach /= 2.0;
    }
    let reached = (0..DRAWS).filter(|_| {
        let turned: Vec<[f64; 2]> = blocks
            .iter()
            .map(|[a, b]| {
                let (sin, cos) = (TAU * f64::from(random.next_u32()) / f64::from(u32::MAX)).sin_cos();
                [a * cos - b * sin, a * sin + b * cos]
            })
            .collect();
        best(&turned).1 >= observed
    });
    let turned_p = f64::from(1 + reached.count() as u32) / f64::from(1 + DRAWS);
    if turned_p > 0.02 {
        return None;
    }
    let found = frequency + off;
    // D. C. Rife and R. R. Boorstyn (IEEE Trans. Information Theory 20, 1974): the least variance
    // of a frequency.
    let amplitude = 2.0 * sum(&blocks, off) / n;
    let power = values.iter().map(|value| value * value).sum::<f64>() / n;
    let noise = (power - amplitude * amplitude / 2.0).max(power * 1e-6);
    let deviation = (6.0 * noise).sqrt() / (std::f64::consts::PI * amplitude * n.powf(1.5));
    let half_width = (1.96 * deviation).max(0.02 / n) / (found * found);
    Some(Wave { steps: 1.0 / found, half_width, p_value, turned_p })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resample::generator;
    use fixture::noise::{autoregressive, normal};

    #[test]
    fn a_wave_far_below_the_noise_is_found() {
        let mut random = generator(1, 0);
        // Every fourth sample, almost: 250 Hz in samples of 1 ms; a fifth of a deviation high.
        let values: Vec<f64> = (0..20_000)
            .map(|k| normal(&mut random) + if (f64::from(k) / 4.003).fract() < 0.25 { 0.4 } else { 0.0 })
            .collect();
        let found = waves(&values, &mut random);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            (found[0].steps - 4.003).abs() <= 2.0 * found[0].half_width && found[0].half_width < 0.001,
            "{found:?}"
        );
    }

    #[test]
    fn a_pulse_has_its_period_and_not_its_harmonics() {
        let mut random = generator(2, 0);
        let values: Vec<f64> =
            (0..16_000).map(|k| 5.0 + normal(&mut random) + if k % 40 == 7 { 4.0 } else { 0.0 }).collect();
        let found = waves(&values, &mut random);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!((found[0].steps - 40.0).abs() < 0.05, "{found:?}");
    }

    #[test]
    fn noise_of_any_colour_has_no_wave() {
        let mut random = generator(3, 0);
        let alarms: usize = (0..60)
            .map(|k| {
                waves(
                    &autoregressive(&mut random, [0.0, 0.5, 0.9][k % 3], 4_000),
                    &mut generator(k as u64, 2),
                )
                .len()
            })
            .sum();
        assert!(alarms <= 1, "{alarms} of 60");
    }

    #[test]
    fn constant_and_short_series_have_none() {
        let mut random = generator(4, 0);
        assert_eq!(waves(&[1.0; 1_500], &mut random), []);
        assert_eq!(waves(&[1.0, 2.0, 3.0], &mut random), []);
        assert_eq!(waves(&[], &mut random), []);
    }
}
