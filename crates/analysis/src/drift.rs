//! How fast clocks run against CLOCK_MONOTONIC: least squares over bracketed pairs, and what the
//! kernel's own arithmetic predicts.
//!
//! Two clocks read from the same counter still drift apart, because each turns ticks into ns by a
//! rounded fraction mult / 2^shift of its own: time keeping by one that must not overflow within
//! 600 s, the scheduler's clock by one for 3,600 s (generic) or by the most exact that fits (x86).
//! Source: `clocks_calc_mult_shift()` and `__clocksource_update_freq_scale()` in
//! `kernel/time/clocksource.c`, `sched_clock_register()` in `kernel/time/sched_clock.c`,
//! `set_cyc2ns_scale()` in `arch/x86/kernel/tsc.c`. NTP corrects the first only.

use model::clocks::Pair;
use serde::{Deserialize, Serialize};

/// ns in a second.
const SECOND_NS: f64 = 1e9;
/// Seconds in an hour.
const HOUR_S: f64 = 3600.0;
/// Between two pairs, clocks that are not set drift apart by no more than this share of the time
/// between them …
const STEP_SHARE: f64 = 0.002;
/// … and this much, ns.
const STEP_NS: f64 = 20_000.0;

/// A clock's rate against CLOCK_MONOTONIC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// Pairs that were fitted: those of tight brackets.
    pub pairs: usize,
    /// Pairs that were read.
    pub read: usize,
    /// From the first fitted pair to the last, ns.
    pub span_ns: i64,
    /// How much faster than CLOCK_MONOTONIC, ns per second (ppb).
    pub ppb: f64,
    /// Standard error of `ppb`.
    pub ppb_error: f64,
    /// µs gained in an hour.
    pub us_per_hour: f64,
    /// Largest distance of a pair from the line, ns.
    pub residual_ns: f64,
    /// Median half-width of the brackets, ns.
    pub bracket_ns: i64,
    /// How often the clock was set meanwhile; the jumps are taken out.
    pub steps: u32,
}

/// The rate of a clock that counts ns. None with fewer than three pairs.
pub fn drift(pairs: &[Pair]) -> Option<Drift> {
    let tight = tight(pairs);
    let (line, steps) = fit(&tight, 1.0)?;
    Some(Drift {
        pairs: tight.len(),
        read: pairs.len(),
        span_ns: tight.last()?.mono_ns - tight.first()?.mono_ns,
        ppb: line.slope,
        ppb_error: line.slope_error,
        us_per_hour: line.slope * HOUR_S / 1000.0,
        residual_ns: line.residual,
        bracket_ns: median_error(pairs)?,
        steps,
    })
}

/// The frequency of a counter and its standard error, Hz. None with fewer than three pairs.
pub fn frequency_hz(pairs: &[Pair]) -> Option<(f64, f64)> {
    let tight = tight(pairs);
    let (first, last) = (tight.first()?, tight.last()?);
    let rough = (last.value.wrapping_sub(first.value)) as f64 / (last.mono_ns - first.mono_ns) as f64;
    let (line, _) = fit(&tight, rough)?;
    // The slope is what is left of ticks a second once the rough rate is taken out.
    Some((rough * SECOND_NS + line.slope, line.slope_error))
}

fn median_error(pairs: &[Pair]) -> Option<i64> {
    let mut errors: Vec<i64> = pairs.iter().map(|pair| pair.error_ns).collect();
    errors.sort_unstable();
    errors.get(errors.len() / 2).copied()
}

/// Pairs whose bracket is at most twice the median: the others were interrupted in it.
fn tight(pairs: &[Pair]) -> Vec<Pair> {
    let limit = median_error(pairs).unwrap_or(0) * 2;
    pairs.iter().copied().filter(|pair| pair.error_ns <= limit).collect()
}

struct Line {
    slope: f64,
    slope_error: f64,
    residual: f64,
}

/// The line through value − rate · mono over mono in seconds, jumps taken out and counted.
fn fit(pairs: &[Pair], rate: f64) -> Option<(Line, u32)> {
    let first = *pairs.first()?;
    let (mut points, mut steps, mut jumped) = (Vec::with_capacity(pairs.len()), 0, 0.0);
    let mut last: Option<(f64, f64)> = None;
    for pair in pairs {
        let elapsed_ns = (pair.mono_ns - first.mono_ns) as f64;
        // Subtract whole numbers first: a double cannot resolve the difference of two 64-bit times.
        let ahead = if (rate - 1.0).abs() < f64::EPSILON {
            (pair.value.wrapping_sub(first.value) - (pair.mono_ns - first.mono_ns)) as f64
        } else {
            pair.value.wrapping_sub(first.value) as f64 - rate * elapsed_ns
        };
        if let Some((before_ns, before)) = last {
            let allowed = (STEP_NS + STEP_SHARE * (elapsed_ns - before_ns)) * rate.max(1.0);
            if (ahead - before).abs() > allowed {
                steps += 1;
                jumped += ahead - before;
            }
        }
        last = Some((elapsed_ns, ahead));
        points.push((elapsed_ns / SECOND_NS, ahead - jumped));
    }
    line(&points).map(|line| (line, steps))
}

/// Ordinary least squares.
fn line(points: &[(f64, f64)]) -> Option<Line> {
    if points.len() < 3 {
        return None;
    }
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    if spread == 0.0 {
        return None;
    }
    let slope = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / spread;
    let residuals = || points.iter().map(|(x, y)| y - mean_y - slope * (x - mean_x));
    let variance = residuals().map(|one| one * one).sum::<f64>() / (n - 2.0);
    let residual = residuals().fold(0.0, |most: f64, one| most.max(one.abs()));
    Some(Line { slope, slope_error: (variance / spread).sqrt(), residual })
}

/// A counter's frequency as the kernel knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Frequency {
    /// x86: the time-stamp counter, in whole kHz.
    Khz(u64),
    /// arm64 and others: `CNTFRQ_EL0`, in Hz.
    Hz(u64),
}

/// mult and shift of a conversion: ns = ticks · mult / 2^shift.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fraction {
    /// The multiplier.
    pub mult: u64,
    /// The shift.
    pub shift: u32,
}

impl Fraction {
    /// ns a tick.
    pub fn ns_per_tick(self) -> f64 {
        self.mult as f64 / 2f64.powi(self.shift as i32)
    }
}

/// The kernel's `clocks_calc_mult_shift()`: the most exact fraction that turns `from` ticks into
/// `to` units without overflowing 64 bits within `max_s` seconds.
pub fn mult_shift(from: u64, to: u64, max_s: u64) -> Fraction {
    let range_bits = 64 - ((max_s * from) >> 32).leading_zeros();
    let limit_bits = 32u32.saturating_sub(range_bits);
    let mult = |shift: u32| ((u128::from(to) << shift) + u128::from(from / 2)) / u128::from(from.max(1));
    let shift = (1..=32).rev().find(|shift| mult(*shift) >> limit_bits == 0).unwrap_or(0);
    Fraction { mult: mult(shift) as u64, shift }
}

/// The fraction of time keeping (CLOCK_MONOTONIC while NTP corrects nothing, CLOCK_MONOTONIC_RAW
/// always).
pub fn timekeeping(frequency: Frequency) -> Fraction {
    const LONGEST_S: u64 = 600;
    let fraction = match frequency {
        Frequency::Khz(khz) => mult_shift(khz, 1_000_000, LONGEST_S * 1000),
        Frequency::Hz(hz) => mult_shift(hz, 1_000_000_000, LONGEST_S),
    };
    // NTP may raise the multiplier by 11 %, which must still fit 32 bits.
    let mut halved = fraction;
    while halved.mult + halved.mult * 11 / 100 > u64::from(u32::MAX) {
        halved = Fraction { mult: halved.mult >> 1, shift: halved.shift - 1 };
    }
    halved
}

/// The fraction of the scheduler's clock.
pub fn scheduler(frequency: Frequency) -> Fraction {
    const LONGEST_S: u64 = 3600;
    match frequency {
        Frequency::Khz(khz) => {
            let exact = mult_shift(khz, 1_000_000, 0);
            // perf's page has no room for a shift of 32.
            if exact.shift == 32 { Fraction { mult: exact.mult >> 1, shift: 31 } } else { exact }
        }
        Frequency::Hz(hz) => mult_shift(hz, 1_000_000_000, LONGEST_S),
    }
}

/// How much faster the scheduler's clock runs than CLOCK_MONOTONIC while NTP corrects nothing, ppb:
/// what SCHED_DEADLINE tasks are released too early by. `scheduler`: ns a tick of the scheduler's
/// clock.
pub fn predicted_ppb(scheduler_ns_per_tick: f64, frequency: Frequency) -> f64 {
    (scheduler_ns_per_tick / timekeeping(frequency).ns_per_tick() - 1.0) * SECOND_NS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Microseconds gained in the 33 minutes of the ERTS 2022 paper.
    fn us_in_33_min(frequency: Frequency) -> f64 {
        predicted_ppb(scheduler(frequency).ns_per_tick(), frequency) * 1980.0 / 1000.0
    }

    #[test]
    fn boards_gain_and_lose_what_their_counters_frequency_says() {
        let cases = [
            (Frequency::Hz(99_999_001), 47.0),
            (Frequency::Hz(99_990_005), -35.0),
            (Frequency::Hz(100_000_000), 0.0),
            (Frequency::Hz(25_000_000), 0.0),
            (Frequency::Hz(62_500_000), 0.0),
            (Frequency::Hz(19_200_000), 6.8),
            (Frequency::Hz(54_000_000), -6.4),
            (Frequency::Hz(24_000_000), -8.5),
            (Frequency::Hz(38_400_000), -13.6),
            (Frequency::Hz(33_333_333), -3.9),
            (Frequency::Khz(2_900_000), -35.0),
            (Frequency::Khz(2_999_998), 22.0),
            (Frequency::Khz(3_000_000), 116.2),
            (Frequency::Khz(2_596_124), 105.3),
        ];
        for (frequency, expected) in cases {
            let found = us_in_33_min(frequency);
            assert!((found - expected).abs() < 1.0, "{frequency:?}: {found} µs, expected {expected}");
        }
    }

    #[test]
    fn the_fraction_of_time_keeping_is_the_kernels() {
        // Of a guest at 2,596,124 kHz: the multiplier that its CLOCK_MONOTONIC_RAW runs by.
        assert_eq!(timekeeping(Frequency::Khz(2_596_124)), Fraction { mult: 6_462_409, shift: 24 });
    }

    #[test]
    fn a_clock_that_is_set_keeps_its_rate() {
        let pair = |at: i64| {
            let set = if at >= 50 { 3_000_000_000 } else { 0 };
            Pair { mono_ns: at * 20_000_000, value: at * 20_000_000 + at * 2 + set, error_ns: 50 }
        };
        let found = drift(&(0..100).map(pair).collect::<Vec<_>>()).unwrap();
        assert_eq!(found.steps, 1);
        assert!((found.ppb - 100.0).abs() < 3.0, "{found:?}");
    }

    #[test]
    fn too_few_pairs_are_no_rate() {
        let pair = |mono_ns| Pair { mono_ns, value: mono_ns, error_ns: 1 };
        assert_eq!(drift(&[pair(1), pair(2)]), None);
        assert_eq!(drift(&[]), None);
        assert_eq!(drift(&[pair(1), pair(1), pair(1)]), None);
        assert_eq!(frequency_hz(&[]), None);
    }

    proptest! {
        /// A known rate, reading errors within the brackets, some brackets interrupted: the rate
        /// comes back within what its error says.
        #[test]
        fn a_rate_comes_back(ppb in -500_000i64..500_000, noise in proptest::collection::vec((-50i64..50, 0u32..20), 200)) {
            let pairs: Vec<Pair> = noise.iter().enumerate().map(|(k, (off, broken))| {
                let mono_ns = 7_000_000_000 + k as i64 * 20_000_000;
                let wide = i64::from(*broken == 0);
                let value = mono_ns + 99 + (k as i64 * 20_000_000) / 1_000_000 * ppb / 1000 + off + wide * 9_000;
                Pair { mono_ns, value, error_ns: 60 + wide * 20_000 }
            }).collect();
            let found = drift(&pairs).unwrap();
            prop_assert!((found.ppb - ppb as f64).abs() < 6.0 * found.ppb_error + 1.0, "{:?}", found);
            prop_assert!(found.residual_ns < 200.0);
            prop_assert_eq!(found.steps, 0);
        }

        #[test]
        fn a_counters_frequency_comes_back(hz in 1_000_000u64..5_000_000_000) {
            let pairs: Vec<Pair> = (0..50u64).map(|k| {
                let mono_ns = k * 10_000_000;
                let ticks = (u128::from(mono_ns) * u128::from(hz) / 1_000_000_000) as i64;
                Pair { mono_ns: mono_ns as i64, value: ticks, error_ns: 1 }
            }).collect();
            let (found, _) = frequency_hz(&pairs).unwrap();
            prop_assert!((found / hz as f64 - 1.0).abs() < 1e-6, "{found}");
        }

        #[test]
        fn fractions_do_not_overflow_and_are_near(khz in 1_000u64..6_000_000) {
            let fraction = timekeeping(Frequency::Khz(khz));
            prop_assert!(u128::from(fraction.mult) * u128::from(khz) * 600_000 < 1 << 64);
            prop_assert!((fraction.ns_per_tick() * khz as f64 / 1e6 - 1.0).abs() < 2e-6);
        }
    }
}
