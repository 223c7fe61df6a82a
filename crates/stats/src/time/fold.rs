//! Times folded at a frequency: how well they agree, how surprising that is, and their period with
//! its interval.
//!
//! Agreement is the mean resultant length R of the phases (N. I. Fisher, "Statistical Analysis of
//! Circular Data", 1993, §2.3), tested twice: by Rayleigh's statistic in D. Wilkie's approximation
//! (Applied Statistics 32 (1983)), which bears strays among the times, and by the width w of the
//! smallest arc that holds all phases, of which few times make more: P = n·wⁿ⁻¹ (W. L. Stevens,
//! "Solution to a geometrical problem in probability", 1939), here with one power less, because the
//! frequency was chosen as well. The period is that of a straight line through time over number of
//! the turn; its interval is Student's, and never less than what the resolution of the times leaves
//! open.

use super::phases::{Around, STEPS, resultant};
use crate::runs::median;
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::f64::consts::TAU;

/// Mean resultant length of the phases: 1 where all are the same, about 1/√n by chance.
pub fn agreement(times: &[f64], frequency: f64) -> f64 {
    let [x, y] = resultant(times, frequency);
    x.hypot(y)
}

/// Probability that `n` independent phases agree by `r` or more.
pub(crate) fn rayleigh_p(n: usize, r: f64) -> f64 {
    let n = n as f64;
    let z = (n * r).powi(2);
    ((1.0 + 4.0 * n + 4.0 * (n * n - z).max(0.0)).sqrt() - (1.0 + 2.0 * n)).exp().min(1.0)
}

/// Bound of the probability that `n` independent phases lie in an arc of share `w`, at a frequency
/// that suits them best.
pub(crate) fn arc_p(n: usize, w: f64) -> f64 {
    if n < 4 || w >= 0.5 { 1.0 } else { (n as f64 * w.powi(n as i32 - 2)).min(1.0) }
}

/// The share of the turn that holds all phases.
pub(crate) fn arc(times: &[f64], frequency: f64) -> f64 {
    let mut phases: Vec<f64> = times.iter().map(|time| (time * frequency).rem_euclid(1.0)).collect();
    phases.sort_unstable_by(f64::total_cmp);
    let (Some(first), Some(last)) = (phases.first(), phases.last()) else { return 0.0 };
    let widest = phases.windows(2).map(|pair| pair[1] - pair[0]).fold(1.0 - (last - first), f64::max);
    1.0 - widest
}

/// The frequency near a tried one at which times agree best, and how well; `width` to both sides.
///
/// Each round tries nine frequencies. Close to the best one the agreement is a parabola, whose top
/// lies within a tenth of a step of where the three highest put it, so that the next round is as
/// wide as a quarter of a step.
pub(crate) fn refined(times: &[f64], frequency: f64, width: f64) -> (f64, f64) {
    const NARROWER: f64 = 1.0 / 16.0;
    let mut best = (frequency, agreement(times, frequency));
    let mut middle = frequency;
    for width in [1.0, NARROWER, NARROWER * NARROWER].map(|narrower| width * narrower) {
        let around = Around::new(times, width / STEPS as f64).agreements(middle);
        let tried = |at: usize| middle + width * (at as f64 / STEPS as f64 - 1.0);
        let possible = (0..around.len()).filter(|at| tried(*at) > 0.0);
        let Some(top) = possible.max_by(|a, b| around[*a].total_cmp(&around[*b])) else { break };
        if around[top] > best.1 {
            best = (tried(top), around[top]);
        }
        middle = tried(top) + summit(&around, top) * width / STEPS as f64;
    }
    let last = agreement(times, middle);
    if last > best.1 { (middle, last) } else { best }
}

/// Where the parabola through the highest of some values and its neighbours has its top, in steps
/// from it: at most half of one. Nought at the ends.
fn summit(values: &[f64], highest: usize) -> f64 {
    let around = highest.checked_sub(1).and_then(|at| values.get(at..at + 3));
    let Some(&[below, here, above]) = around else { return 0.0 };
    let bend = 2.0 * here - below - above;
    if bend > 0.0 { ((above - below) / (2.0 * bend)).clamp(-0.5, 0.5) } else { 0.0 }
}

/// A straight line through times over numbers of turns.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Seconds a turn.
    pub period: f64,
    /// Half of the 95 % interval of the period, s.
    pub half_width: f64,
    /// When turn 0 was, s.
    pub start: f64,
    /// Standard deviation of the times about the line, s.
    pub jitter: f64,
    /// Places of the times that the line goes through, each with its turn.
    pub members: Vec<(usize, i64)>,
}

/// Share of a turn that times of the line may lie off it at the most.
const FARTHEST: f64 = 0.2;
/// Times further off than so many deviations are strays.
const DEVIATIONS: f64 = 5.0;

/// The line through times that agree at about this frequency, known to `resolution` seconds. None
/// where fewer than three turns have times.
pub fn line(times: &[f64], frequency: f64, resolution: f64) -> Option<Line> {
    let [x, y] = resultant(times, frequency);
    let (mut period, mut start) = (1.0 / frequency, (-y).atan2(x) / TAU / frequency);
    let mut reach = FARTHEST * period;
    let mut line = None;
    for _ in 0..8 {
        let turn = |time: f64| ((time - start) / period).round();
        let near = |(_, time): &(usize, f64)| (time - start - turn(*time) * period).abs() <= reach;
        let members: Vec<(usize, f64)> = times.iter().copied().enumerate().filter(near).collect();
        let turns: Vec<(usize, i64)> = members.iter().map(|(at, time)| (*at, turn(*time) as i64)).collect();
        let (first, last) = (turns.first()?.1, turns.last()?.1);
        let n = members.len() as f64;
        if last - first < 2 || n < 3.0 {
            return None;
        }
        let mean_turn = turns.iter().map(|(_, turn)| *turn as f64).sum::<f64>() / n;
        let mean_time = members.iter().map(|(_, time)| time).sum::<f64>() / n;
        let pairs = || {
            turns
                .iter()
                .zip(&members)
                .map(|((_, turn), (_, time))| (*turn as f64 - mean_turn, time - mean_time))
        };
        let spread: f64 = pairs().map(|(turn, _)| turn * turn).sum();
        period = pairs().map(|(turn, time)| turn * time).sum::<f64>() / spread;
        start = mean_time - period * mean_turn;
        let mut off: Vec<f64> = pairs().map(|(turn, time)| (time - period * turn).abs()).collect();
        let squares: f64 = off.iter().map(|off| off * off).sum();
        // By the median, which strays do not move.
        let deviation = 1.4826 * median(&mut off).unwrap_or(0.0);
        let jitter = (squares / (n - 2.0).max(1.0)).sqrt();
        let t = StudentsT::new(0.0, 1.0, (n - 2.0).max(1.0)).map_or(2.0, |law| law.inverse_cdf(0.975));
        let half_width = (t * jitter / spread.sqrt()).max(resolution / (last - first) as f64);
        reach = (DEVIATIONS * deviation).max(2.0 * resolution).min(FARTHEST * period);
        line = Some(Line { period, half_width, start, jitter, members: turns });
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resample::generator;
    use fixture::noise::{normal, uniform};
    use proptest::prelude::*;

    #[test]
    fn agreement_of_random_times_is_as_rare_as_said() {
        let mut random = generator(2, 0);
        for n in [6, 40] {
            let p = |random: &mut _| {
                let times: Vec<f64> = (0..n).map(|_| uniform(random)).collect();
                (rayleigh_p(n, agreement(&times, 1.0)), arc(&times, 1.0))
            };
            let drawn: Vec<(f64, f64)> = (0..4_000).map(|_| p(&mut random)).collect();
            let below = |limit: f64| drawn.iter().filter(|one| one.0 < limit).count() as f64 / 4_000.0;
            // Binomial deviations of 0.0034 and 0.0016.
            assert!((below(0.05) - 0.05).abs() < 0.017, "{n}: {}", below(0.05));
            assert!((below(0.01) - 0.01).abs() < 0.008, "{n}: {}", below(0.01));
            // Exactly n·wⁿ⁻¹ below half a turn; the bound used has a power less.
            if n == 6 {
                let within = drawn.iter().filter(|one| one.1 < 0.4).count() as f64 / 4_000.0;
                assert!((within - 6.0 * 0.4f64.powi(5)).abs() < 0.018, "{within}");
                assert!(arc_p(6, 0.4) > within);
            }
        }
    }

    #[test]
    fn the_interval_holds_the_period_as_often_as_it_says() {
        let mut random = generator(3, 0);
        let held = (0..300).filter(|_| {
            let times: Vec<f64> =
                (0..40).map(|k| 5.0 + 3.0 * f64::from(k) + 0.01 * normal(&mut random)).collect();
            let line = line(&times, 1.0 / 3.001, 0.0).unwrap();
            assert!(line.members.len() >= 38);
            (line.period - 3.0).abs() <= line.half_width
        });
        // Binomial(300, 0.95): 285 with a deviation of 3.8.
        assert!((270..=298).contains(&held.count()));
    }

    #[test]
    fn strays_are_not_on_the_line() {
        let mut random = generator(4, 0);
        let mut times: Vec<f64> =
            (0..60).map(|k| 0.7 + 3.0 * f64::from(k) + 0.001 * normal(&mut random)).collect();
        times.extend((0..20).map(|_| 180.0 * uniform(&mut random)));
        times.sort_unstable_by(f64::total_cmp);
        let line = line(&times, 1.0 / 3.0, 0.001).unwrap();
        assert!((60..=62).contains(&line.members.len()), "{}", line.members.len());
        assert!((line.period - 3.0).abs() < line.half_width && line.half_width < 1e-3, "{line:?}");
        assert!((line.start.rem_euclid(3.0) - 0.7).abs() < 0.002);
    }

    proptest! {
        #[test]
        fn all_phases_lie_in_the_arc(times in proptest::collection::vec(0.0f64..50.0, 1..20), frequency in 0.1f64..3.0) {
            let w = arc(&times, frequency);
            prop_assert!((-1e-9..=1.0).contains(&w));
            // Phases in an arc w agree by cos(πw) at least.
            if w < 0.5 {
                prop_assert!(agreement(&times, frequency) >= (std::f64::consts::PI * w).cos() - 1e-9);
            }
        }
    }
}
