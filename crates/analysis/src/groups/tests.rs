//! Groups of runs whose truth is known: how often the comparison alarms without a difference,
//! whether it finds planted ones, and how tests that assume independent samples fail.
//!
//! Latencies are AR(1) with an exponential tail, and each run has an offset of its own, as boots
//! have. Counts of alarms are held against the binomial distribution: a bound that a right
//! comparison misses with a probability below one in a thousand.

use super::chi2::chi2;
use super::condition::{self, Condition};
use super::draws::{DRAWS, differences, group, interval, p_differs};
use super::figures::{Figure, InRun, in_run};
use super::measured::{MeasuredRun, MeasuredWindow, Samples, Tool};
use super::{GroupComparison, Probability, Question, compare};
use model::sample::ProbeKind;
use rand_chacha::ChaCha8Rng;
use stats::decide::{Margin, Verdict};
use stats::random::{normal, uniform};
use stats::resample::{BlockedSamples, generator};

/// How latencies of a configuration come about, ns.
#[derive(Clone, Copy)]
struct Truth {
    /// Where they begin.
    base: f64,
    /// Deviation of the correlated part.
    sd: f64,
    /// Its correlation from one sample to the next.
    rho: f64,
    /// Deviation of a run's own offset.
    between: f64,
}

const USUAL: Truth = Truth { base: 20_000.0, sd: 1_000.0, rho: 0.9, between: 300.0 };
const SAMPLES: usize = 2_000;

fn run(truth: Truth, random: &mut ChaCha8Rng) -> MeasuredRun {
    let offset = truth.between * normal(random);
    let mut state = normal(random);
    let step = (1.0 - truth.rho * truth.rho).sqrt();
    let samples = (0..SAMPLES as i64).map(|k| {
        state = truth.rho * state + step * normal(random);
        let tail = -400.0 * (1.0 - uniform(random)).ln();
        (k * 1_000_000, (truth.base + offset + truth.sd * state + tail) as i64)
    });
    of_samples(samples.collect())
}

fn of_samples(samples: Vec<(i64, i64)>) -> MeasuredRun {
    let end = samples.len() as i64 * 1_000_000;
    let least_ns = samples.iter().map(|(_, value_ns)| *value_ns).min();
    let samples = BlockedSamples::new(samples.into_iter(), &[], 0, end);
    let window = MeasuredWindow {
        probe: ProbeKind::Wakeup,
        phase: "measured".into(),
        disturbed: false,
        cpus: [2].into_iter().collect(),
        threads: 1,
        period_ns: Some(1_000_000),
        threshold_ns: None,
        policy: None,
        duration_ns: Some(end as u64),
        missed: 0,
        charged: 0,
        lost: 0,
        samples: Samples::Blocked { samples, least_ns, stolen: [Vec::new(), Vec::new()] },
    };
    MeasuredRun {
        name: String::new(),
        tool: Tool::Stillcore,
        kernel: None,
        started_at: None,
        cpu_model: None,
        idle_states: None,
        windows: vec![window],
    }
}

fn runs(truth: Truth, count: usize, seed: u64) -> Vec<MeasuredRun> {
    let mut random = generator(seed, 77);
    (0..count).map(|at| MeasuredRun { name: format!("{seed}-{at}"), ..run(truth, &mut random) }).collect()
}

fn asked(figures: &[Figure]) -> Question {
    Question {
        figures: figures.to_vec(),
        margin: Margin { ns: Some(1_000.0), share: None },
        ..Question::default()
    }
}

fn compare_figures(a: &[MeasuredRun], b: &[MeasuredRun], figures: &[Figure]) -> GroupComparison {
    compare(a, b, &asked(figures)).unwrap()
}

/// The number of successes in `n` trials that one in a thousand exceeds, by the normal
/// approximation with continuity.
fn at_most(n: f64, p: f64) -> usize {
    (n * p + 3.1 * (n * p * (1.0 - p)).sqrt() + 0.5).ceil() as usize
}

#[test]
fn alarms_where_there_is_nothing_are_as_rare_as_stated() {
    let figures = [50_000, 99_000].map(Figure::Quantile);
    let pairs = 150;
    let mut single = [0; 2];
    let mut family = 0;
    for seed in 0..pairs {
        let comparison = compare_figures(&runs(USUAL, 5, 2 * seed), &runs(USUAL, 5, 2 * seed + 1), &figures);
        let of = &comparison.windows[0].figures;
        for (at, figure) in of.iter().enumerate() {
            single[at] += usize::from(figure.p_differs.unwrap().alone <= 0.05);
        }
        family += usize::from(of.iter().any(|figure| figure.p_differs.unwrap().adjusted <= 0.05));
    }
    let most = at_most(pairs as f64, 0.05);
    assert!(single.iter().all(|alarms| *alarms <= most), "{single:?} of {pairs}, at most {most}");
    assert!(family <= most, "{family} of {pairs}, at most {most}");
    // A comparison that never alarms would pass as well, and see nothing.
    assert!(single.iter().all(|alarms| *alarms >= 1), "{single:?}");
}

/// A question that was put beforehand does not grow harder by what is printed beside its answer,
/// and what is printed beside it gets no easier.
#[test]
fn a_figure_that_a_condition_names_stands_by_itself() {
    let figures = [50_000, 90_000, 99_000].map(Figure::Quantile);
    let slower = Truth { base: 21_500.0, ..USUAL };
    let (a, b) = (runs(USUAL, 5, 31), runs(slower, 5, 32));
    let of = |conditions: &[&str]| {
        let conditions: Vec<_> = conditions.iter().map(|one| Condition::parse(one).unwrap()).collect();
        let question = Question { asked: condition::asked(&conditions), ..asked(&figures) };
        let comparison = compare(&a, &b, &question).unwrap();
        comparison.windows[0].figures.iter().map(|one| one.p_differs.unwrap()).collect::<Vec<_>>()
    };
    let (plain, any, named) = (of(&[]), of(&["any worse", "p99 worse"]), of(&["p99 worse", "max > 1ms"]));
    assert_eq!(plain, any);
    let twice = ["p99 worse", "p99 not equivalent"].map(|one| Condition::parse(one).unwrap());
    assert_eq!(condition::asked(&twice), [Figure::Quantile(99_000)]);
    let itself = |one: Probability| Probability { adjusted: one.alone, ..one };
    assert_eq!(named[2], itself(named[2]));
    assert_eq!(named[..2], plain[..2]);
    let two = of(&["p99 worse", "p50 not equivalent"]);
    let (less, more) = if two[0].alone < two[2].alone { (two[0], two[2]) } else { (two[2], two[0]) };
    assert_eq!(less, Probability { adjusted: 2.0 * less.alone, ..less });
    assert_eq!(more, Probability { adjusted: more.alone.max(less.adjusted), ..more });
    assert_eq!(two[1], plain[1]);
}

#[test]
fn what_was_planted_is_found() {
    let slower = Truth { base: 21_500.0, ..USUAL };
    let figures = [50_000, 99_000].map(Figure::Quantile);
    let mut found = 0;
    for seed in 0..30 {
        let (a, b) = (runs(USUAL, 5, 1_000 + seed), runs(slower, 5, 2_000 + seed));
        let verdicts = |a, b| {
            compare_figures(a, b, &figures).windows[0].figures.iter().map(|f| f.verdict).collect::<Vec<_>>()
        };
        let (there, back) = (verdicts(&a, &b), verdicts(&b, &a));
        found += usize::from(there == [Verdict::Worse; 2] && back == [Verdict::Better; 2]);
        let turned = [Verdict::Better, Verdict::Equivalent];
        assert!(!there.iter().any(|verdict| turned.contains(verdict)), "{there:?}");
    }
    assert!(found >= 27, "{found} of 30");
}

#[test]
fn equivalence_is_claimed_where_it_is_true_and_hardly_where_it_is_not() {
    let figures = [Figure::Quantile(50_000)];
    let claims = |other: Truth, seeds: std::ops::Range<u64>| {
        seeds
            .filter(|seed| {
                let comparison =
                    compare_figures(&runs(USUAL, 6, 3_000 + seed), &runs(other, 6, 6_000 + seed), &figures);
                comparison.windows[0].figures[0].verdict == Verdict::Equivalent
            })
            .count()
    };
    // The margin is 1 us.
    assert!(claims(USUAL, 0..40) >= 36);
    // Exactly the margin apart is the worst case of the test.
    let edge = claims(Truth { base: 21_000.0, ..USUAL }, 100..260);
    assert!(edge <= at_most(160.0, 0.05), "{edge}");
}

#[test]
fn one_run_a_side_concludes_nothing() {
    let comparison = compare_figures(
        &runs(USUAL, 1, 1),
        &runs(Truth { base: 90_000.0, ..USUAL }, 1, 2),
        &[Figure::Quantile(50_000)],
    );
    let figure = &comparison.windows[0].figures[0];
    assert_eq!((figure.verdict, figure.p_differs), (Verdict::OneRun, None));
    assert!(figure.interval.is_some_and(|[low, high]| low > 60_000.0 && high < 80_000.0), "{figure:?}");
    assert!(comparison.warnings.iter().any(|one| one.contains("nothing is concluded about")));
    let judged = |text: &str| Condition::parse(text).unwrap().judge(&comparison).holds;
    assert_eq!((judged("p50 > +5us"), judged("any worse")), (None, None), "a gate that cannot judge says so");
    assert_eq!(
        (judged("p50 > 80us"), judged("p50 > 95us")),
        (Some(true), Some(false)),
        "a value of its own it can"
    );
}

#[test]
fn runs_that_scatter_ask_for_more() {
    let wild = Truth { between: 3_000.0, ..USUAL };
    let comparison = compare_figures(&runs(wild, 4, 11), &runs(wild, 4, 12), &[Figure::Quantile(50_000)]);
    let figure = &comparison.windows[0].figures[0];
    assert_eq!(figure.verdict, Verdict::CannotTell);
    assert!(figure.more_runs.is_none_or(|more| more > 4), "{figure:?}");
}

/// Trap: the bootstrap of independent samples. Its 95 % interval of one run's median misses the
/// truth most of the time, that of blocks seldom.
#[test]
fn trap_the_bootstrap_of_independent_samples() {
    let truth = Truth { rho: 0.95, between: 0.0, ..USUAL };
    // The median of the model, from a run of many runs.
    let many: Vec<f64> = runs(truth, 300, 40)
        .iter()
        .map(|run| run.windows[0].samples.quantile(50_000).unwrap() as f64)
        .collect();
    let median = many.iter().sum::<f64>() / many.len() as f64;
    let (mut blocks_hold, mut samples_hold) = (0, 0);
    for run in runs(truth, 60, 41) {
        let estimate = in_run(Figure::Quantile(50_000), &run.windows[0], 1).unwrap();
        let alone = group(std::slice::from_ref(&estimate), 0.0, 2);
        let mut drawn: Vec<f64> = alone.deviations.iter().map(|deviation| alone.value + deviation).collect();
        drawn.sort_unstable_by(f64::total_cmp);
        let [low, high] = interval(&drawn).unwrap();
        blocks_hold += usize::from(low <= median && median <= high);
        // Independent samples: the median's rank is binomial, 1.96 · √n/2 ranks to each side.
        let Samples::Blocked { samples, .. } = &run.windows[0].samples else { unreachable!() };
        let (n, values) = (SAMPLES as f64, samples.values());
        let rank = |sign: f64| values[(n / 2.0 + sign * 0.98 * n.sqrt()) as usize] as f64;
        samples_hold += usize::from(rank(-1.0) <= median && median <= rank(1.0));
    }
    assert!(samples_hold <= 24, "independent: {samples_hold} of 60");
    assert!(blocks_hold >= 50 && blocks_hold > samples_hold + 15, "blocks: {blocks_hold} of 60");
}

/// Trap: chi-square of samples. Two groups of one and the same configuration are "different" nearly
/// always, and the reference is so against itself; with whole runs exchanged the alarms are as rare
/// as stated.
#[test]
fn trap_chi_square_of_samples_that_depend() {
    let (mut rejected, mut itself, mut exchanged) = (0, 0, 0);
    let truth = Truth { rho: 0.99, between: 200.0, ..USUAL };
    let pairs = 40;
    for seed in 0..pairs {
        let (a, b) = (runs(truth, 4, 9_000 + seed), runs(truth, 4, 9_500 + seed));
        let (a, b): (Vec<_>, Vec<_>) =
            (a.iter().map(|run| &run.windows[0]).collect(), b.iter().map(|run| &run.windows[0]).collect());
        let result = chi2(&a, &b).unwrap();
        rejected += usize::from(result.test.rejected);
        itself += usize::from(result.itself.unwrap().rejected);
        exchanged += usize::from(result.exchanged.unwrap().p <= 0.05);
    }
    assert!(rejected >= 36 && itself >= 36, "{rejected} and {itself} of {pairs}");
    assert!(exchanged <= at_most(pairs as f64, 0.05), "{exchanged} of {pairs}");
}

/// Trap: samples as the unit. With nothing but an offset of its own a run, samples of one run
/// independent, chi-square still rejects.
#[test]
fn trap_samples_as_the_unit() {
    let truth = Truth { base: 20_000.0, sd: 900.0, rho: 0.0, between: 250.0 };
    let alarms = (0..12)
        .filter(|seed| {
            let (a, b) = (runs(truth, 1, 700 + seed), runs(truth, 1, 800 + seed));
            chi2(&[&a[0].windows[0]], &[&b[0].windows[0]]).unwrap().test.rejected
        })
        .count();
    assert!(alarms >= 8, "{alarms} of 12");
}

#[test]
fn nothing_seen_is_not_nothing() {
    let comparison = compare_figures(&runs(USUAL, 5, 21), &runs(USUAL, 5, 22), &[Figure::Exceed(90_000)]);
    let figure = &comparison.windows[0].figures[0];
    assert_eq!((figure.base, figure.other), (Some(0.0), Some(0.0)));
    // Of 10,000 releases a side.
    let [low, high] = figure.interval.unwrap();
    assert!(low < -2e-4 && high > 2e-4, "{low} {high}");
    let margin =
        Question { margin: Margin { ns: None, share: Some(0.05) }, ..asked(&[Figure::Exceed(90_000)]) };
    let with_margin = compare(&runs(USUAL, 5, 21), &runs(USUAL, 5, 22), &margin).unwrap();
    assert_eq!(with_margin.windows[0].figures[0].verdict, Verdict::CannotTell, "a margin of 5 % of nothing");
}

#[test]
fn groups_made_one_after_the_other_give_a_warning() {
    let timed = |seed: u64, hours: [u32; 2]| -> Vec<MeasuredRun> {
        let times = hours.map(|hour| Some(format!("2026-01-01T{hour:02}:00:00Z")));
        let named = |(at, (run, started_at)): (usize, (MeasuredRun, Option<String>))| MeasuredRun {
            started_at,
            name: format!("run{seed}-{at}"),
            ..run
        };
        runs(USUAL, 2, seed).into_iter().zip(times).enumerate().map(named).collect()
    };
    let warned = |a: [u32; 2], b: [u32; 2]| {
        let comparison = compare_figures(&timed(1, a), &timed(2, b), &[Figure::Quantile(50_000)]);
        comparison.warnings.iter().any(|one| one.contains("in turns"))
    };
    assert!(warned([1, 2], [3, 4]) && warned([3, 4], [1, 2]));
    assert!(!warned([1, 3], [2, 4]));
}

#[test]
fn group_figures_hold_their_level_for_unlike_groups() {
    // Three runs of one spread against eight of another: Behrens and Fisher's problem.
    let mut random = generator(5, 5);
    let mut figures = |count: usize, sd: f64| -> Vec<InRun> {
        (0..count).map(|_| InRun { value: sd * normal(&mut random), draws: Vec::new() }).collect()
    };
    let trials = 600;
    let alarms = (0..trials)
        .filter(|_| {
            let (a, b) = (group(&figures(3, 5.0), 0.0, 1), group(&figures(8, 1.0), 0.0, 2));
            p_differs(&differences(&a, &b)) <= 0.05
        })
        .count();
    assert!(alarms <= at_most(f64::from(trials), 0.05), "{alarms} of {trials}");
    assert_eq!(group(&figures(4, 1.0), 0.0, 9).deviations.len(), DRAWS);
}

/// Releases that passed unserved are charged a lateness that may be smaller than any latency.
#[test]
fn the_smallest_value_is_one_that_was_measured() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/runs/small");
    let run = super::measured::read(&dir, "small".to_owned()).unwrap();
    let stored = model::run::stored::read_run(&dir).unwrap();
    let mut charged = 0;
    for window in run.windows.iter().filter(|window| window.probe == ProbeKind::Wakeup) {
        let ours = stored.probes.iter().filter(|probe| {
            (probe.probe(), probe.phase.as_str()) == (ProbeKind::Wakeup, window.phase.as_str())
        });
        let values = ours.flat_map(|probe| model::samples_file::read(&dir.join(&probe.file)).unwrap().1);
        let least = values.filter(model::Sample::counts).map(|sample| sample.value_ns).min();
        assert_eq!(window.samples.min(), least, "{}", window.phase);
        let Samples::Blocked { samples, .. } = &window.samples else { unreachable!() };
        charged += usize::from(samples.values().first().copied() < least);
    }
    assert!(charged > 0, "no window has a charged release below its smallest latency");
}
