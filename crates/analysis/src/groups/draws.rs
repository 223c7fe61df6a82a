//! How far a group's statistic could vary by chance: runs are resampled, and blocks of time within
//! each.
//!
//! A group's statistic is the mean over its runs: the run is the unit, because samples of one run
//! share its boot and its neighbours (Kalibera & Jones, "Rigorous benchmarking in reasonable time",
//! ISMM 2013). Hierarchical bootstrap: runs with replacement, then blocks of each drawn run
//! (Davison & Hinkley, "Bootstrap Methods and their Application", 1997, §3.8). Drawing on both
//! levels counts what happens within runs twice, and few runs drawn with replacement vary too
//! little; so the deviations are scaled to the variance that the runs show, s²/R, or to what chance
//! within runs makes alone where that is more. And few runs know their variance badly: each
//! deviation is multiplied by √(ν/χ²) with ν = R − 1, which makes of a normal deviation Student's
//! t, and of the difference of two groups that of Behrens and Fisher, known to hold its level for
//! any ratio of variances (Robinson, Annals of Statistics 4 (1976)).

use super::figures::InRun;
use rand_chacha::ChaCha8Rng;
use stats::random::{below, normal, uniform};
use stats::resample::generator;

/// Draws of a group's statistic.
pub const DRAWS: usize = 4_000;
/// With more runs Student's t is the normal distribution.
const MANY: usize = 100;

/// A statistic of a group of runs.
#[derive(Debug, Clone)]
pub struct GroupFigure {
    /// Mean over the runs.
    pub value: f64,
    /// The value of each run.
    pub runs: Vec<f64>,
    /// Standard deviation between runs; none for one run.
    pub between_sd: Option<f64>,
    /// Standard deviation that chance makes within one run; none where nothing is known of time.
    pub within_sd: Option<f64>,
    /// Drawn deviations of the statistic.
    pub deviations: Vec<f64>,
}

/// The group's statistic from those of its runs. Values are known to `resolution`, in the
/// statistic's unit. Empty deviations for one run without blocks.
pub fn group(runs: &[InRun], resolution: f64, stream: u64) -> GroupFigure {
    let values: Vec<f64> = runs.iter().map(|run| run.value).collect();
    let (value, spread) = mean_variance(&values);
    let centred: Vec<Vec<f64>> = runs.iter().map(|run| centred(&run.draws)).collect();
    let known = !centred.is_empty() && centred.iter().all(|draws| !draws.is_empty());
    let within =
        known.then(|| centred.iter().map(|draws| mean_variance(draws).1).sum::<f64>() / runs.len() as f64);
    let mut random = generator(1, stream);
    let mut deviations =
        if runs.len() > 1 || known { raw(&values, &centred, value, &mut random) } else { Vec::new() };
    let target =
        within.unwrap_or(0.0).max(if runs.len() > 1 { spread } else { 0.0 }) / runs.len().max(1) as f64;
    let drawn = mean_variance(&deviations).1;
    let scale = if drawn > 0.0 { (target / drawn).sqrt() } else { 0.0 };
    for deviation in &mut deviations {
        let edge = (uniform(&mut random) - 0.5) * resolution;
        *deviation = *deviation * scale * student(runs.len(), &mut random) + edge;
    }
    GroupFigure {
        value,
        between_sd: (runs.len() > 1).then(|| spread.sqrt()),
        within_sd: within.map(f64::sqrt),
        runs: values,
        deviations,
    }
}

/// Deviations of a share or rate of which no event was seen in so many trials or seconds: what the
/// mean of a Poisson variable may be after none, exponential, so that its 95 % bound is the rule of
/// three ([`stats::bounds`]). A bootstrap of zeros would be sure of zero.
pub fn none_seen(whole: f64, stream: u64) -> Vec<f64> {
    let mut random = generator(3, stream);
    (0..DRAWS).map(|_| -(1.0 - uniform(&mut random)).ln() / whole).collect()
}

/// Deviations of the mean with runs drawn anew, and within each its blocks.
fn raw(values: &[f64], centred: &[Vec<f64>], mean: f64, random: &mut ChaCha8Rng) -> Vec<f64> {
    let runs = values.len();
    let one = |random: &mut ChaCha8Rng| {
        let run = below(runs, random);
        let within = &centred[run];
        values[run] + if within.is_empty() { 0.0 } else { within[below(within.len(), random)] }
    };
    (0..DRAWS).map(|_| (0..runs).map(|_| one(random)).sum::<f64>() / runs as f64 - mean).collect()
}

/// √(ν/χ²) with ν one less than the runs; 1 for one run, of which no other is known.
fn student(runs: usize, random: &mut ChaCha8Rng) -> f64 {
    if !(2..MANY).contains(&runs) {
        return 1.0;
    }
    let freedom = runs - 1;
    // Two squares of a normal variable are an exponential one.
    let pairs: f64 = (0..freedom / 2).map(|_| -2.0 * (1.0 - uniform(random)).ln()).sum();
    let square = pairs + if freedom % 2 == 1 { normal(random).powi(2) } else { 0.0 };
    (freedom as f64 / square.max(f64::MIN_POSITIVE)).sqrt()
}

/// The bias of a bootstrapped quantile is not one of the run.
fn centred(draws: &[f64]) -> Vec<f64> {
    let mean = mean_variance(draws).0;
    draws.iter().map(|draw| draw - mean).collect()
}

/// Mean and the variance with n − 1; 0 for what cannot be computed.
pub fn mean_variance(values: &[f64]) -> (f64, f64) {
    if values.is_empty() {
        return (0.0, 0.0);
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, if values.len() > 1 { squares / (n - 1.0) } else { 0.0 })
}

/// Drawn values of `b − a`.
pub fn differences(a: &GroupFigure, b: &GroupFigure) -> Vec<f64> {
    let observed = b.value - a.value;
    let mut drawn: Vec<f64> = a.deviations.iter().zip(&b.deviations).map(|(a, b)| observed + b - a).collect();
    drawn.sort_unstable_by(f64::total_cmp);
    drawn
}

/// The middle 95 % of sorted draws; none without draws.
pub fn interval(sorted: &[f64]) -> Option<[f64; 2]> {
    let tail = sorted.len() * 25 / 1000;
    Some([*sorted.get(tail)?, *sorted.get(sorted.len().checked_sub(1 + tail)?)?])
}

/// Two-sided probability of no difference: twice the smaller share of draws on the other side of
/// zero, never 0 (Davison & Hinkley, §4.2).
pub fn p_differs(sorted: &[f64]) -> f64 {
    let below = sorted.partition_point(|draw| *draw < 0.0);
    let upto = sorted.partition_point(|draw| *draw <= 0.0);
    let smaller = upto.min(sorted.len() - below);
    (2.0 * (smaller + 1) as f64 / (sorted.len() + 1) as f64).min(1.0)
}

/// Probability of a difference as large as the margin: the larger of two one-sided tests
/// (Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15 (1987)).
pub fn p_equivalent(sorted: &[f64], margin: f64) -> f64 {
    let low = sorted.partition_point(|draw| *draw <= -margin);
    let high = sorted.len() - sorted.partition_point(|draw| *draw < margin);
    (low.max(high) + 1) as f64 / (sorted.len() + 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(values: &[f64]) -> Vec<InRun> {
        values.iter().map(|&value| InRun { value, draws: Vec::new() }).collect()
    }

    #[test]
    fn five_runs_have_student_s_interval() {
        // Mean 12, s = √10: t(0.975, 4) · s/√5 = 2.776 · 1.414 = 3.926.
        let estimate = group(&known(&[8.0, 10.0, 12.0, 14.0, 16.0]), 0.0, 1);
        let mut drawn = estimate.deviations.clone();
        drawn.sort_unstable_by(f64::total_cmp);
        let [low, high] = interval(&drawn).unwrap();
        // The runs' own shape has shorter tails than the normal one, and 4,000 draws know the 2.5 %
        // point to a few percent.
        assert!((low + 3.926).abs() < 0.5 && (high - 3.926).abs() < 0.5, "{low} {high}");
        assert!((estimate.between_sd.unwrap() - 10f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn one_run_has_only_its_own_blocks() {
        assert!(group(&known(&[5.0]), 0.0, 1).deviations.is_empty());
        let drawn: Vec<f64> = (0..300).map(|k| 10.0 + f64::from(k % 7)).collect();
        let estimate = group(&[InRun { value: 13.0, draws: drawn }], 0.0, 1);
        assert!((mean_variance(&estimate.deviations).1.sqrt() - 2.0).abs() < 0.1);
        assert_eq!(estimate.between_sd, None);
    }

    #[test]
    fn runs_that_agree_by_luck_are_not_surer_than_their_blocks() {
        let drawn: Vec<f64> = (0..300).map(|k| f64::from(k % 11)).collect();
        let runs: Vec<InRun> = (0..4).map(|_| InRun { value: 5.0, draws: drawn.clone() }).collect();
        let estimate = group(&runs, 0.0, 1);
        let within = estimate.within_sd.unwrap();
        assert!((within - 10f64.sqrt()).abs() < 0.05, "{within}");
        // s = 0 between runs, but the mean of four deviates by within/2, more under Student's t.
        assert!(mean_variance(&estimate.deviations).1.sqrt() > 0.9 * within / 2.0);
    }

    #[test]
    fn equal_bins_are_equal_to_the_width_of_a_bin() {
        let a = group(&known(&[10_000.0; 5]), 1000.0, 1);
        let b = group(&known(&[10_000.0; 5]), 1000.0, 2);
        let drawn = differences(&a, &b);
        let [low, high] = interval(&drawn).unwrap();
        assert!(low > -1000.0 && low < -600.0 && high < 1000.0 && high > 600.0, "{low} {high}");
        assert!(p_equivalent(&drawn, 1000.0) < 0.01 && p_equivalent(&drawn, 500.0) > 0.05);
    }

    #[test]
    fn none_seen_is_bounded_by_three_over_n() {
        let mut drawn = none_seen(1_000.0, 1);
        drawn.sort_unstable_by(f64::total_cmp);
        assert!((drawn[DRAWS * 95 / 100] * 1_000.0 - 3.0).abs() < 0.25, "{}", drawn[DRAWS * 95 / 100]);
    }

    #[test]
    fn probabilities_are_never_nought() {
        let far: Vec<f64> = (0..4000).map(|k| 10.0 + f64::from(k)).collect();
        assert!(p_differs(&far) > 0.0 && p_differs(&far) < 0.001);
        assert!((p_differs(&[0.0; 100]) - 1.0).abs() < 1e-12);
        assert!(p_equivalent(&[], 1.0) >= 1.0 && p_differs(&[]) >= 1.0 && interval(&[]).is_none());
    }
}
