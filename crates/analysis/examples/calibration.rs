//! How often intervals hold the truth, how often alarms are false, and how often estimates are
//! refused, on dependent data whose truth is known:
//! `cargo run --release --example calibration -- [--trials N] [--rows FILE]`.
//!
//! Latencies are autoregressive of first order, so that their quantiles are known exactly. The
//! budget of a row is a bound: the binomial law of the stated rate exceeds it by chance once in a
//! thousand times. Rows named trap are methods that we do not use.

#![allow(clippy::unwrap_used, reason = "a calibration that cannot go on stops")]

use analysis::groups::chi2::chi2;
use analysis::groups::figures::Figure;
use analysis::groups::measured::{MeasuredRun, MeasuredWindow, Samples, Tool};
use analysis::groups::{Question, compare};
use analysis::summary;
use analysis::tail::{Tail, estimate};
use model::run::ProbeRecord;
use model::sample::{Policy, ProbeKind};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use result::{Limit, Of, Row, Sink};
use statrs::distribution::{ContinuousCDF, Normal};
use stats::effective;
use stats::resample::{BlockedSamples, generator};
use stats::series::Series;

const PERIOD_NS: i64 = 1_000_000;
const N: usize = 20_000;

struct Ar1 {
    rho: f64,
    state: f64,
    random: ChaCha8Rng,
}

fn uniform(random: &mut ChaCha8Rng) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

fn normal(random: &mut ChaCha8Rng) -> f64 {
    (-2.0 * (1.0 - uniform(random)).ln()).sqrt() * (std::f64::consts::TAU * uniform(random)).cos()
}

impl Ar1 {
    fn new(rho: f64, seed: u64) -> Self {
        let mut random = generator(seed, 17);
        Self { rho, state: normal(&mut random), random }
    }

    /// Around 20 us, deviation 1 us.
    fn values(&mut self, n: usize) -> Vec<i64> {
        let step = (1.0 - self.rho * self.rho).sqrt();
        let mut next = || {
            self.state = self.rho * self.state + step * normal(&mut self.random);
            (20_000.0 + 1_000.0 * self.state).round() as i64
        };
        (0..n).map(|_| next()).collect()
    }
}

/// Records the measured value beside the stated one.
struct Score {
    rows: Sink,
}

impl Score {
    /// A share that must not fall below `least`, chance aside.
    fn at_least(&mut self, what: &str, hits: usize, of: usize, least: f64) {
        let bound = least - 3.1 * (least * (1.0 - least) / of as f64).sqrt();
        let row = count(what, hits, of).why(format!("stated: at least {least} of them"));
        self.push(row.budget(Of::Value, Limit::AtLeast((bound * of as f64).ceil())));
    }

    /// A share that must not rise above `most`, chance aside.
    fn at_most(&mut self, what: &str, hits: usize, of: usize, most: f64) {
        let bound = most + 3.1 * (most * (1.0 - most) / of as f64).sqrt();
        let row = count(what, hits, of).why(format!("stated: at most {most} of them"));
        self.push(row.budget(Of::Value, Limit::AtMost((bound * of as f64).floor())));
    }

    /// The result of a method that we do not use.
    fn trap(&mut self, what: &str, hits: usize, of: usize) {
        self.push(count(&format!("trap, {what}"), hits, of));
    }

    fn push(&mut self, row: Row) {
        eprintln!("{}: {:?} of {:?}", row.what, row.value, row.n);
        self.rows.push(row).unwrap();
    }
}

fn count(what: &str, hits: usize, of: usize) -> Row {
    Row::new(what, hits as f64, "").n(of as u64)
}

fn main() {
    let mut words = std::env::args().skip_while(|word| word != "--trials");
    let trials: usize = words.nth(1).and_then(|text| text.parse().ok()).unwrap_or(300);
    let mut score = Score { rows: Sink::of_arguments() };
    let note = format!(
        "{N} samples a series, {trials} series a row; intervals of 95 %; blocks of 250 ms or Politis-White"
    );
    score.rows.note(note).unwrap();
    times(&mut score, trials);
    quantiles(&mut score, trials);
    limits(&mut score, trials);
    comparisons(&mut score, trials);
    tails(&mut score, trials / 5);
    mixture(&mut score);
    print!("{}", score.rows.table());
}

fn times(score: &mut Score, trials: usize) {
    for rho in [0.0, 0.5, 0.9, 0.99] {
        let truth = (1.0 + rho) / (1.0 - rho);
        let near = |seed: &usize| {
            let tau = effective::of_values(&Ar1::new(rho, *seed as u64).values(N)).samples;
            (tau / truth - 1.0).abs() < 1.0 / 3.0
        };
        let hits = (0..trials).filter(near).count();
        // A variance estimated from b blocks of twenty times τ each is uncertain by the root of
        // 2/b: b is a thousand, 53 and 5 here.
        let expected = match rho {
            0.95.. => 0.7,
            0.8.. => 0.9,
            _ => 0.95,
        };
        score.at_least(&format!("autocorrelation time within a third: rho {rho}"), hits, trials, expected);
    }
}

fn series(values: &[i64]) -> Series {
    let samples: Vec<(i64, i64)> =
        values.iter().enumerate().map(|(at, &value)| (at as i64 * PERIOD_NS, value)).collect();
    Series::new(&samples, &[], [0, values.len() as i64 * PERIOD_NS])
}

fn quantiles(score: &mut Score, trials: usize) {
    for rho in [0.0, 0.5, 0.9, 0.99] {
        let mut held = [[0usize; 3]; 3];
        let mut given = [0usize; 3];
        for seed in 0..trials {
            let values = Ar1::new(rho, 10_000 + seed as u64).values(N);
            let ours = series(&values).quantiles();
            let ranks = summary::quantiles_of(&values);
            let mut sorted = values;
            sorted.sort_unstable();
            for (at, p) in [0.5, 0.9, 0.99].into_iter().enumerate() {
                let truth = 20_000.0 + 1_000.0 * Normal::standard().inverse_cdf(p);
                let holds = |interval: [i64; 2]| {
                    interval[0] as f64 <= truth + 1.0 && truth - 1.0 <= interval[1] as f64
                };
                let (Some(block), Some(rank)) = (ours[at].interval_ns, ranks[at].interval_ns) else {
                    continue;
                };
                given[at] += 1;
                held[0][at] += usize::from(holds(block));
                held[1][at] += usize::from(holds(rank));
                let width = 1.96 * (N as f64 * p * (1.0 - p)).sqrt();
                let place = |sign: f64| sorted[((N as f64 * p + sign * width) as usize).min(N - 1)];
                held[2][at] += usize::from(holds([place(-1.0), place(1.0)]));
            }
        }
        for (at, name) in
            ["p50", "p90", "p99"].into_iter().enumerate().filter(|(at, _)| given[*at] > trials / 2)
        {
            score.at_least(
                &format!("interval of {name} by blocks holds: rho {rho}"),
                held[0][at],
                given[at],
                0.9,
            );
            score.at_least(
                &format!("interval of {name} by ranks of the effective number holds: rho {rho}"),
                held[1][at],
                given[at],
                0.9,
            );
            score.trap(
                &format!("interval of {name} as if independent holds: rho {rho}"),
                held[2][at],
                given[at],
            );
        }
    }
}

fn limits(score: &mut Score, trials: usize) {
    for rho in [0.0, 0.9, 0.99] {
        for share in [0.05, 0.005] {
            let limit = (20_000.0 + 1_000.0 * Normal::standard().inverse_cdf(1.0 - share)).round() as i64;
            let truth = 1.0 - Normal::standard().cdf((limit as f64 - 0.5 - 20_000.0) / 1_000.0);
            let hits = (0..trials).filter(|seed| {
                let exceedances =
                    series(&Ar1::new(rho, 20_000 + *seed as u64).values(N)).exceedances(&[limit], 1);
                exceedances[0].interval[0] <= truth && truth <= exceedances[0].interval[1]
            });
            score.at_least(
                &format!("interval of the exceedance {share} holds: rho {rho}"),
                hits.count(),
                trials,
                0.9,
            );
        }
    }
}

/// A run of 2,000 samples with an offset of its own.
fn run(seed: u64, at: usize, base: f64) -> MeasuredRun {
    let mut random = generator(seed, 1000 + at as u64);
    let offset = base + 300.0 * normal(&mut random);
    let values = Ar1::new(0.9, seed * 100 + at as u64).values(2_000);
    let samples = values.iter().enumerate().map(|(k, value)| (k as i64 * PERIOD_NS, value + offset as i64));
    let least_ns = samples.clone().map(|(_, value_ns)| value_ns).min();
    let end = 2_000 * PERIOD_NS;
    let window = MeasuredWindow {
        probe: ProbeKind::Wakeup,
        phase: "measured".into(),
        disturbed: false,
        cpus: [2].into_iter().collect(),
        threads: 1,
        period_ns: Some(PERIOD_NS as u64),
        threshold_ns: None,
        policy: None,
        duration_ns: Some(end as u64),
        missed: 0,
        charged: 0,
        lost: 0,
        samples: Samples::Blocked {
            samples: BlockedSamples::new(samples, &[], 0, end),
            least_ns,
            stolen: [Vec::new(), Vec::new()],
        },
    };
    MeasuredRun {
        name: format!("{seed}-{at}"),
        tool: Tool::Stillcore,
        kernel: None,
        started_at: None,
        cpu_model: None,
        idle_states: None,
        windows: vec![window],
    }
}

fn comparisons(score: &mut Score, trials: usize) {
    let question =
        Question { figures: vec![Figure::Quantile(50_000), Figure::Quantile(99_000)], ..Question::default() };
    let group = |seed: u64, base: f64| -> Vec<MeasuredRun> { (0..5).map(|at| run(seed, at, base)).collect() };
    let (mut alarms, mut held, mut found, mut rejected, mut exchanged) = (0, 0, 0, 0, 0);
    for trial in 0..trials as u64 {
        let (a, b, slower) =
            (group(3 * trial, 0.0), group(3 * trial + 1, 0.0), group(3 * trial + 2, 1_500.0));
        let comparison = compare(&a, &b, &question).unwrap();
        let figures = &comparison.windows[0].figures;
        alarms += usize::from(figures.iter().any(|figure| figure.p_differs.unwrap().adjusted <= 0.05));
        held += usize::from(figures[0].interval.is_some_and(|[low, high]| low <= 0.0 && 0.0 <= high));
        let comparison = compare(&a, &slower, &question).unwrap();
        found += usize::from(comparison.windows[0].figures[0].p_differs.unwrap().adjusted <= 0.05);
        let (x, y): (Vec<_>, Vec<_>) =
            (a.iter().map(|run| &run.windows[0]).collect(), b.iter().map(|run| &run.windows[0]).collect());
        let result = chi2(&x, &y).unwrap();
        rejected += usize::from(result.test.rejected);
        exchanged += usize::from(result.exchanged.unwrap().p <= 0.05);
    }
    score.at_most("five runs a side: false alarms of a family of two statistics", alarms, trials, 0.05);
    score.at_least("five runs a side: interval of the difference holds nought", held, trials, 0.95);
    score.at_least("five runs a side: 1.5 us planted are found in p50", found, trials, 0.9);
    score.trap(
        "five runs a side: chi-square of samples rejects one configuration against itself",
        rejected,
        trials,
    );
    score.at_most(
        "five runs a side: chi-square with runs' labels exchanged rejects one configuration against itself",
        exchanged,
        trials,
        0.05,
    );
}

fn tail_of(values: &[i64]) -> Tail {
    let record = ProbeRecord::of(ProbeKind::Wakeup, 2, Policy::fifo(80));
    let releases: Vec<(i64, i64)> =
        values.iter().enumerate().map(|(at, &value)| (at as i64 * PERIOD_NS, value)).collect();
    estimate(&record, &releases, &[])
}

/// Its name, a draw of it, and its level of once in 500,000.
type Known = (&'static str, fn(&mut ChaCha8Rng) -> f64, f64);

fn tails(score: &mut Score, trials: usize) {
    let laws: [Known; 3] = [
        (
            "exponential",
            |random| 5_000.0 - 800.0 * (1.0 - uniform(random)).ln(),
            5_000.0 + 800.0 * 5e5f64.ln(),
        ),
        (
            "Pareto, shape 0.2",
            |random| 5_000.0 + 2_500.0 * ((1.0 - uniform(random)).powf(-0.2) - 1.0),
            5_000.0 + 2_500.0 * (5e5f64.powf(0.2) - 1.0),
        ),
        (
            "log-normal",
            |random| (5_000f64.ln() + 0.15 * normal(random)).exp(),
            (5_000f64.ln() + 0.15 * 4.611_382).exp(),
        ),
    ];
    for (name, draw, truth) in laws {
        let tails = (0..trials).map(|seed| {
            let mut random = generator(seed as u64, 99);
            tail_of(&(0..50_000).map(|_| draw(&mut random).round() as i64).collect::<Vec<_>>())
        });
        let tails: Vec<Tail> = tails.collect();
        let given: Vec<&Tail> = tails.iter().filter(|tail| tail.estimated).collect();
        let holds = |tail: &&&Tail| {
            let [low, high] = tail.levels[1].interval_ns();
            low <= truth && truth <= high
        };
        score.at_most(&format!("tail, {name}: refused"), trials - given.len(), trials, 0.1);
        score.at_least(
            &format!("tail, {name}: interval of once in 500,000 holds {:.1} us", truth / 1e3),
            given.iter().filter(holds).count(),
            given.len(),
            0.9,
        );
    }
}

/// A body of 5 us and a mechanism of 110 to 130 us that comes once in two million releases.
fn mixture(score: &mut Score) {
    let mut levels = Vec::new();
    let (mut seen, mut refused_seen) = (0, 0);
    for seed in 0..20 {
        let mut random = generator(seed, 5);
        let values: Vec<i64> = (0..1_000_000)
            .map(|_| {
                let body = (5_000f64.ln() + 0.15 * normal(&mut random)).exp();
                let rare = uniform(&mut random) < 5e-7;
                (body + if rare { 110_000.0 + 20_000.0 * uniform(&mut random) } else { 0.0 }) as i64
            })
            .collect();
        let tail = tail_of(&values);
        let has = values.iter().any(|value| *value > 100_000);
        seen += usize::from(has);
        refused_seen += usize::from(has && !tail.estimated);
        levels.extend(tail.levels.last().filter(|_| !has).map(|level| level.interval_ns()[1]));
    }
    levels.sort_unstable_by(f64::total_cmp);
    let middle = levels.get(levels.len() / 2).copied().unwrap_or(f64::NAN);
    score.push(count("rare mixture: runs of a million samples that saw it", seen, 20));
    score.push(count("rare mixture: estimates refused of those that saw it", refused_seen, seen));
    let what =
        "trap, rare mixture: level of once in 1e8 where it was not seen, upper end, middle of the estimates";
    let row = Row::new(what, middle / 1e3, "us").n(levels.len() as u64);
    score.push(row.why("the truth is above 110 us"));
}
