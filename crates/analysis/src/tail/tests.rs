//! Laws are recovered from their own samples; series without a valid estimate are refused; the
//! limits of every fit are shown.

use super::{Tail, estimate};
use crate::testing::record;
use fixture::Ar1;
use model::sample::ProbeKind;
use stats::random::{normal, uniform};
use stats::resample::generator;
use stats::tail::law::{Extreme, Law, Pareto};
use stats::tail::threshold::forward_stop;

fn tail_of(values: &[i64], asked: &[f64]) -> Tail {
    let releases: Vec<(i64, i64)> =
        values.iter().enumerate().map(|(at, &value)| (at as i64 * 1_000_000, value)).collect();
    estimate(&record(ProbeKind::Wakeup), &releases, asked)
}

/// Latencies as of a quiet core: log-normal around 5 us. With a rare mechanism beside them that
/// adds 110 to 130 us.
fn quiet(n: usize, rare: f64, seed: u64) -> Vec<i64> {
    let mut random = generator(seed, 0);
    (0..n)
        .map(|_| {
            let body = (5_000f64.ln() + 0.15 * normal(&mut random)).exp();
            let more =
                if uniform(&mut random) < rare { 110_000.0 + 20_000.0 * uniform(&mut random) } else { 0.0 };
            (body + more) as i64
        })
        .collect()
}

#[test]
fn laws_come_back_from_what_they_made() {
    let mut random = generator(1, 0);
    for shape in [-0.3, 0.0, 0.4] {
        let law = Pareto { scale: 700.0, shape };
        let mut made: Vec<f64> = (0..4_000).map(|_| law.drawn(uniform(&mut random))).collect();
        made.sort_unstable_by(f64::total_cmp);
        let fit = Pareto::fit(&made).unwrap();
        assert!(
            (fit.shape - shape).abs() < 0.06 && (fit.scale / 700.0 - 1.0).abs() < 0.08,
            "{fit:?} of {law:?}"
        );
        let [low, high] = fit.shape_interval(&made);
        assert!(low < fit.shape && fit.shape < high && high - low < 0.16, "{low} {high}");
        let law = Extreme { location: 9_000.0, scale: 400.0, shape };
        let mut made: Vec<f64> = (0..2_000).map(|_| law.drawn(uniform(&mut random))).collect();
        made.sort_unstable_by(f64::total_cmp);
        let fit = Extreme::fit(&made).unwrap();
        assert!(
            (fit.shape - shape).abs() < 0.06 && (fit.location - 9_000.0).abs() < 40.0,
            "{fit:?} of {law:?}"
        );
        for share in [0.5, 1e-3, 1e-6] {
            assert!((law.below(law.level(share)) - (1.0 - share)).abs() < 1e-9);
        }
    }
}

#[test]
fn a_quiet_tail_is_estimated_and_its_truth_is_inside() {
    // Of the log-normal law: what is exceeded once in 4e5 releases lies 4.565 deviations out.
    let truth = (5_000f64.ln() + 0.15 * 4.565).exp();
    let tails: Vec<Tail> = (0..3).map(|seed| tail_of(&quiet(40_000, 0.0, seed), &[])).collect();
    let good: Vec<&Tail> = tails.iter().filter(|tail| tail.estimated).collect();
    assert!(good.len() >= 2, "{:?}", tails.iter().map(|tail| &tail.reasons).collect::<Vec<_>>());
    let holds = |tail: &&&Tail| {
        let [low, high] = tail.levels[1].interval_ns();
        low <= truth && truth <= high
    };
    assert!(good.iter().filter(holds).count() + 1 >= good.len(), "{:?}", good[0].levels);
}

/// Trap: a rare mixture. A mechanism of 120 us that comes once in 2 million releases was seen in
/// none of these runs of 200,000: every diagnostic passes, and the level of 1 in 20 million is put
/// at a tenth of what it is. No test of the data can see that; the answer bounds how often the
/// unseen may happen.
#[test]
fn trap_a_mechanism_that_was_not_seen_is_not_in_the_estimate() {
    let n = 200_000;
    let unseen =
        (0..6).map(|seed| quiet(n, 5e-7, 100 + seed)).find(|run| run.iter().all(|value| *value < 100_000));
    let tail = tail_of(&unseen.unwrap(), &[2e7]);
    assert!(tail.estimated, "{:?}", tail.reasons);
    let level = tail.levels.last().unwrap();
    assert!((level.releases - 2e7).abs() < 1.0);
    // Ten of 20 million are of the rare mechanism: the truth is 110 us or more.
    assert!(level.interval_ns()[1] < 40_000.0, "{level:?}");
    assert!((tail.unseen_rate * n as f64 - 3.0).abs() < 1e-9);
    assert!(tail.unseen_rate > 5e-7, "the reported bound holds the truth");
}

#[test]
fn one_sample_of_another_mechanism_refuses_the_estimate() {
    let mut run = quiet(100_000, 0.0, 7);
    run[70_000] = 120_000;
    let tail = tail_of(&run, &[]);
    assert!(!tail.estimated && tail.levels.is_empty());
    assert!(tail.reasons.iter().any(|why| why.contains("rarer mechanism of its own")), "{:?}", tail.reasons);
    assert!(!tail.curve.is_empty() && !tail.qq_ns.is_empty(), "charts show why");
}

#[test]
fn a_requested_level_is_reported_or_refused_and_never_left_out() {
    let quiet = quiet(40_000, 0.0, 1);
    let inside = tail_of(&quiet, &[2_000.0]);
    assert!(inside.estimated, "{:?}", inside.reasons);
    let level = inside.levels.iter().find(|level| (level.releases - 2_000.0).abs() < 0.5).unwrap();
    // Twenty of the forty thousand lie above it.
    let mut sorted = quiet.clone();
    sorted.sort_unstable();
    let observed = sorted[sorted.len() - 20] as f64;
    assert!((level.pareto_ns / observed - 1.0).abs() < 0.02, "{level:?}, observed {observed}");
    let near = tail_of(&quiet, &[20.0]);
    assert!(!near.estimated && near.levels.is_empty());
    assert!(
        near.reasons
            .iter()
            .any(|reason| reason.contains("seen some 2000 times, so read the quantile of 0.95")),
        "{:?}",
        near.reasons
    );
}

#[test]
fn what_changes_or_depends_is_refused() {
    let mut drifting = quiet(60_000, 0.0, 8);
    drifting.iter_mut().enumerate().for_each(|(at, value)| *value += at as i64 / 20);
    assert!(tail_of(&drifting, &[]).reasons.iter().any(|why| why.contains("drift")));
    // Large ones only in the second half.
    let mut later = quiet(60_000, 0.0, 9);
    later[30_000..].iter_mut().step_by(50).for_each(|value| *value += 3_000);
    assert!(
        tail_of(&later, &[]).reasons.iter().any(|why| why.contains("at some times")),
        "{:?}",
        tail_of(&later, &[]).reasons
    );
    let wandering = Ar1::new(0.9999, 4).values(60_000);
    assert!(!tail_of(&wandering, &[]).estimated);
}

#[test]
fn too_few_too_far_and_too_even_are_refused_in_words() {
    let few = tail_of(&quiet(9_999, 0.0, 1), &[]);
    assert!(few.reasons == ["9999 samples are too few: a tail needs 10000"], "{:?}", few.reasons);
    let far = tail_of(&quiet(20_000, 0.0, 1), &[1e9]);
    assert!(far.reasons.iter().any(|why| why.contains("beyond 100 times")), "{:?}", far.reasons);
    let even = tail_of(&vec![7; 20_000], &[]);
    assert!(even.reasons.iter().any(|why| why.contains("do not vary")), "{:?}", even.reasons);
    let none = tail_of(&[], &[]);
    assert!(!none.estimated && none.unseen_rate >= 1.0);
}

#[test]
fn forward_stop_rejects_what_lies_before_the_last_bad_mean() {
    assert_eq!(forward_stop(&[0.01, 0.02, 0.6, 0.7]), 2);
    assert_eq!(forward_stop(&[0.5, 0.6]), 0);
    assert_eq!(forward_stop(&[]), 0);
}
