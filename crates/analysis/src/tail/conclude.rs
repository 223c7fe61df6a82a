//! From one window's samples to an estimate of its tail, or to the reasons why there is none.

use super::{Check, CurvePoint, FARTHEST, LEAST_SAMPLES, Level, MaximaFit, ParetoFit, QuantilePair, Tail};
use crate::{missed, words};
use model::Sample;
use model::run::{ProbeRecord, TRACED};
use model::sample::ProbeKind;
use stats::random::uniform;
use stats::resample::generator;
use stats::tail::checks::{evenness, kpss, ljung_box, runs};
use stats::tail::goodness::goodness;
use stats::tail::law::{Extreme, Law, Pareto};
use stats::tail::threshold::{Chosen, DRAWS, choose, peaks};

/// Level of each check: five of them refuse one good series in twenty at the most.
const ALPHA: f64 = 0.01;
/// Blocks whose maxima are taken, at the most.
const MOST_BLOCKS: usize = 200;
/// Fewer releases a block have maxima that are no extremes.
const LEAST_BLOCK: usize = 100;
/// Lags that Ljung–Box looks at.
const LAGS: usize = 10;
/// Points of a chart.
const POINTS: usize = 200;

/// The tail of one window of a probe with releases, missed ones charged; none for other probes,
/// whose short values are not stored, and for jobs of a task set, of which each is another task.
pub fn of_window(record: &ProbeRecord, samples: &[Sample], asked: &[f64]) -> Option<Tail> {
    if record.phase == TRACED || !matches!(record.probe(), ProbeKind::Wakeup | ProbeKind::Periodic) {
        return None;
    }
    let counted = samples.iter().filter(|sample| sample.counts());
    let mut releases: Vec<(i64, i64)> = counted.map(|sample| (sample.t_ns, sample.value_ns)).collect();
    let charged = missed::of_probe(record, samples);
    releases.extend(charged.iter().map(|release| (release.release_ns, release.lateness_ns)));
    releases.sort_by_key(|(t_ns, _)| *t_ns);
    Some(estimate(record, &releases, asked))
}

/// The tail of releases `(t_ns, lateness_ns)` in the order of time. `asked`: further levels, once
/// in so many releases.
pub fn estimate(record: &ProbeRecord, releases: &[(i64, i64)], asked: &[f64]) -> Tail {
    let values: Vec<i64> = releases.iter().map(|(_, value)| *value).collect();
    let mut sorted = values.clone();
    sorted.sort_unstable();
    let n = values.len();
    let mut tail = Tail {
        phase: record.phase.clone(),
        probe: record.probe(),
        cpu: record.cpu,
        thread: record.thread,
        n: n as u64,
        observed_max_ns: sorted.last().copied(),
        unseen_rate: if n == 0 { 1.0 } else { (3.0 / n as f64).min(1.0) },
        estimated: false,
        reasons: Vec::new(),
        checks: Vec::new(),
        pareto: None,
        maxima: None,
        levels: Vec::new(),
        qq_ns: Vec::new(),
        curve: Vec::new(),
        observed: Vec::new(),
    };
    if record.cut_off {
        tail.refuse("the window was cut off, and what it lost is not known".to_owned());
    }
    if record.ring_lost > 0 {
        tail.refuse(format!("{} samples were lost, the largest perhaps among them", record.ring_lost));
    }
    if n < LEAST_SAMPLES {
        tail.refuse(format!("{n} samples are too few: a tail needs {LEAST_SAMPLES}"));
        return tail;
    }
    let unit = unit(&sorted);
    let blur = |place: u64| {
        if unit > 1 { (uniform(&mut generator(6, place)) - 0.5) * unit as f64 } else { 0.0 }
    };
    let Some(chosen) = choose(&values, &sorted, &blur) else {
        tail.refuse("its largest samples form too few clusters, or do not vary".to_owned());
        return tail;
    };
    tail.stationarity(&values, &chosen);
    tail.independence(&chosen);
    tail.tail_law(&chosen);
    tail.mixture(&chosen);
    tail.hold_out(&values, chosen.peaks.threshold_ns, &blur);
    let maxima = tail.maxima(&values, &blur);
    tail.draw(&chosen);
    tail.add_levels(&chosen, &maxima, asked);
    tail.estimated = tail.reasons.is_empty();
    if !tail.estimated {
        tail.levels.clear();
    }
    let ends = |point: &CurvePoint| [point.level_ns, point.low_ns, point.high_ns];
    tail.curve.retain(|point| point.releases.is_finite() && ends(point).iter().all(|ns| ns.is_finite()));
    tail
}

impl Tail {
    /// Of a measurement that its first sample over a limit has ended: refused, since the largest
    /// sample decided how many there are.
    pub(crate) fn stopped(mut self) -> Self {
        self.refuse(
            "the measurement ended at its largest sample, which laws of extremes do not allow for".to_owned(),
        );
        self.estimated = false;
        self.levels.clear();
        self
    }

    fn refuse(&mut self, reason: String) {
        self.reasons.push(reason);
    }

    fn check(&mut self, name: &str, result: Option<(f64, f64)>, reason: &str) {
        let passed = result.is_none_or(|(_, p)| p > ALPHA);
        let (statistic, p) = result.unzip();
        self.checks.push(Check { name: name.to_owned(), statistic, p, passed });
        // Several checks may have one reason.
        if !passed && !self.reasons.iter().any(|known| known == reason) {
            self.refuse(reason.to_owned());
        }
    }

    /// The level of the series and the rate of its exceedances must not change.
    fn stationarity(&mut self, values: &[i64], chosen: &Chosen) {
        let windows = values.chunks_exact(values.len() / MOST_BLOCKS);
        let medians: Vec<f64> = windows
            .map(|window| {
                let mut window = window.to_vec();
                let middle = window.len() / 2;
                *window.select_nth_unstable(middle).1 as f64
            })
            .collect();
        // The table ends at 0.01, so that is where the level is.
        let result = kpss(&medians).map(|(statistic, p)| (statistic, if p <= ALPHA { p * 0.999 } else { p }));
        self.check("KPSS of medians", result, "the latencies drift or change level");
        let n = values.len() as f64;
        let places: Vec<f64> = chosen.peaks.clusters.iter().map(|(place, _)| *place as f64 / n).collect();
        let reason = "large samples come more often at some times than at others";
        self.check("evenness of clusters", evenness(&places), reason);
    }

    /// Clusters must not depend on each other.
    fn independence(&mut self, chosen: &Chosen) {
        let peaks: Vec<f64> = chosen.peaks.clusters.iter().map(|(_, value)| *value as f64).collect();
        let reason = "clusters of large samples depend on each other";
        // By ranks, since a heavy tail has no correlations.
        self.check("Ljung-Box of cluster maxima, ranks", ljung_box(&ranks(&peaks), LAGS), reason);
        self.check("runs of cluster maxima", runs(&peaks), reason);
    }

    fn tail_law(&mut self, chosen: &Chosen) {
        let goodness = chosen.goodness;
        let tests = [
            ("Anderson-Darling of excesses", goodness.anderson_darling, goodness.anderson_darling_p),
            ("Cramer-von Mises of excesses", goodness.cramer_von_mises, goodness.cramer_von_mises_p),
        ];
        for (name, statistic, p) in tests {
            let passed = p > ALPHA && chosen.fits;
            self.checks.push(Check { name: name.to_owned(), statistic: Some(statistic), p: Some(p), passed });
        }
        if !chosen.fits || goodness.anderson_darling_p <= ALPHA || goodness.cramer_von_mises_p <= ALPHA {
            self.refuse("no threshold leaves a tail that a generalised Pareto law fits".to_owned());
        }
        let peaks = &chosen.peaks;
        self.pareto = Some(ParetoFit {
            threshold_ns: peaks.threshold_ns,
            exceedances: peaks.exceedances as u64,
            clusters: peaks.clusters.len() as u64,
            theta: peaks.theta,
            law: chosen.law,
            shape_interval: chosen.law.shape_interval(&peaks.excesses),
            goodness,
            tried: chosen.tried.clone(),
        });
    }

    /// The largest must be one that the law of the others could have made.
    fn mixture(&mut self, chosen: &Chosen) {
        let Some((largest, others)) = chosen.peaks.excesses.split_last() else { return };
        let Some(law) = Pareto::fit(others) else { return };
        let p = -(others.len() as f64 * (-law.above(*largest)).ln_1p()).exp_m1();
        self.check(
            "largest sample by the law of the others",
            Some((*largest + chosen.peaks.threshold_ns as f64, p)),
            "the largest sample does not belong to the tail that the others form: a rarer mechanism of its own",
        );
    }

    /// Checks whether the first half predicts the largest sample of the second.
    fn hold_out(&mut self, values: &[i64], threshold_ns: i64, blur: &dyn Fn(u64) -> f64) {
        let (first, second) = values.split_at(values.len() / 2);
        let peaks = peaks(first, threshold_ns, blur);
        let (Some(law), Some(&largest)) = (Pareto::fit(&peaks.excesses), second.iter().max()) else { return };
        let above = law.above((largest - threshold_ns).max(0) as f64);
        let expected = peaks.clusters.len() as f64 * above;
        self.check(
            "largest of the second half by the first",
            Some((largest as f64, -(-expected).exp_m1())),
            "the first half does not foretell the largest sample of the second",
        );
    }

    /// Maxima of blocks, ascending.
    fn maxima(&mut self, values: &[i64], blur: &dyn Fn(u64) -> f64) -> Vec<f64> {
        let block = values.len().div_ceil(MOST_BLOCKS).max(LEAST_BLOCK);
        let maxima = values.chunks_exact(block).enumerate();
        let in_time: Vec<f64> =
            maxima.map(|(at, chunk)| *chunk.iter().max().unwrap_or(&0) as f64 + blur(at as u64)).collect();
        let mut sorted = in_time.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let Some(law) = Extreme::fit(&sorted) else {
            self.refuse("maxima of blocks do not vary".to_owned());
            return sorted;
        };
        self.check("runs of block maxima", runs(&in_time), "maxima of blocks depend on each other");
        let goodness = goodness(&sorted, &law, DRAWS, &mut generator(7, 0));
        let result = (goodness.anderson_darling, goodness.anderson_darling_p);
        self.check(
            "Anderson-Darling of block maxima",
            Some(result),
            "no law of extreme values fits maxima of blocks",
        );
        let shape_interval = law.shape_interval(&sorted);
        let blocks = sorted.len() as u64;
        self.maxima = Some(MaximaFit { block: block as u64, blocks, law, shape_interval, goodness });
        sorted
    }

    fn add_levels(&mut self, chosen: &Chosen, maxima: &[f64], asked: &[f64]) {
        let (n, threshold) = (self.n as f64, chosen.peaks.threshold_ns as f64);
        let rate = chosen.peaks.clusters.len() as f64 / n;
        for &releases in asked.iter().filter(|&&releases| releases > FARTHEST * n * (1.0 + 1e-9)) {
            self.refuse(format!(
                "once in {releases:.3e} releases lies beyond {FARTHEST} times the {n:.0} samples: nothing was seen that bears on it"
            ));
        }
        let Some(fit) = self.maxima.clone() else { return };
        // Below, one way has no tail to speak of and the other no block: what was observed says
        // more.
        let nearest = (1.0 / rate).max(fit.block as f64);
        for &releases in asked.iter().filter(|&&releases| releases < nearest) {
            self.refuse(format!(
                "once in {releases:.3e} releases is no tail: it was seen some {:.0} times, so read the quantile of {}",
                n / releases,
                1.0 - 1.0 / releases
            ));
        }
        let level = |releases: f64| {
            let above = (1.0 / (releases * rate)).min(1.0 - 1e-9);
            let [low, high] = chosen.law.level_interval(&chosen.peaks.excesses, above);
            // Once in m releases is a share of about B/m of the blocks of B.
            let share = -(-(fit.block as f64) / releases).exp_m1();
            Level {
                releases,
                pareto_ns: threshold + chosen.law.level(above),
                pareto_interval_ns: [threshold + low, threshold + high],
                maxima_ns: fit.law.level(share),
                maxima_interval_ns: fit.law.level_interval(maxima, share),
            }
        };
        let usual = [1.0, 10.0, FARTHEST].map(|times| times * n);
        let inside =
            asked.iter().copied().filter(|&releases| releases >= nearest && releases <= FARTHEST * n);
        let mut all: Vec<f64> = usual.into_iter().chain(inside).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        self.levels = all.into_iter().map(level).collect();
        let apart = |level: &Level| {
            let (one, other) = (level.pareto_interval_ns, level.maxima_interval_ns);
            one[1] < other[0] || other[1] < one[0]
        };
        if self.levels.iter().any(apart) {
            self.refuse(
                "excesses over a threshold and maxima of blocks give intervals that exclude each other"
                    .to_owned(),
            );
        }
        if self.levels.iter().any(|level| !level.interval_ns().iter().all(|end| end.is_finite())) {
            self.refuse("an interval has no end: the tail bears nothing so far out".to_owned());
        }
    }

    /// What charts show.
    fn draw(&mut self, chosen: &Chosen) {
        let excesses = &chosen.peaks.excesses;
        let (k, n) = (excesses.len(), self.n as f64);
        let threshold = chosen.peaks.threshold_ns as f64;
        let kept = |at: &usize| k - at <= POINTS / 2 || at.is_multiple_of(k.div_ceil(POINTS / 2));
        let places: Vec<usize> = (0..k).filter(kept).collect();
        let share = |at: usize| (k as f64 - at as f64 - 0.5) / k as f64;
        let quantiles = places
            .iter()
            .map(|&at| QuantilePair { observed: excesses[at], fitted: chosen.law.level(share(at)) });
        self.qq_ns = quantiles.collect();
        let rate = k as f64 / n;
        let observed = places.iter().map(|&at| [1.0 / (share(at) * rate), threshold + excesses[at]]);
        self.observed = observed.collect();
        let ends = [(1.0 / rate).ln(), (n * FARTHEST).ln()];
        let releases = (0..=24).map(|step| (ends[0] + (ends[1] - ends[0]) * f64::from(step) / 24.0).exp());
        self.curve = releases
            .map(|releases| {
                let above = (1.0 / (releases * rate)).min(1.0 - 1e-9);
                let [low, high] = chosen.law.level_interval(excesses, above);
                let level_ns = threshold + chosen.law.level(above);
                CurvePoint { releases, level_ns, low_ns: threshold + low, high_ns: threshold + high }
            })
            .collect();
    }
}

/// The unit that values are known in: above 1 ns only where all of the largest tenth are multiples
/// of it.
fn unit(sorted: &[i64]) -> i64 {
    let upper = &sorted[sorted.len() - sorted.len() / 10..];
    let common = upper.iter().fold(0i64, |a, &b| gcd(a, b.saturating_abs()));
    if (10..=1_000_000).contains(&common) { common } else { 1 }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    order.into_iter().enumerate().for_each(|(rank, at)| ranks[at] = rank as f64);
    ranks
}

/// An estimate in words: `once in 1.0e7 releases 135 us (120 us to 170 us)`.
impl Level {
    /// The farther of both ways, with the widest interval that they give: what a reader should
    /// take.
    pub fn describe(&self) -> String {
        let [low, high] = self.interval_ns();
        let level = self.pareto_ns.max(self.maxima_ns);
        format!("{} ({} to {})", words::time(level), words::time(low), words::time(high))
    }

    /// The least and the most that either way gives with 95 %.
    pub fn interval_ns(&self) -> [f64; 2] {
        let ([a, b], [c, d]) = (self.pareto_interval_ns, self.maxima_interval_ns);
        [a.min(c), b.max(d)]
    }
}
