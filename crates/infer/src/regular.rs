//! Whether releases follow a period, some of them left out or not, and which.
//!
//! Every sequence has a model with a period, if need be with an enormous jitter. A period is
//! reported only where the jitter is below half of it, where at most half of its releases were left
//! out, and where releases do not drift away from it. For jobs released by a clock, the distance of
//! two releases varies as much over sixteen periods as over one; where each job is released some
//! time after the one before, it varies sixteen times as much (the variance-ratio test of Lo and
//! MacKinlay, 1988). And the jitter of the former is about the largest deviation of one interval,
//! while that of the latter grows.
//!
//! The period is the one that describes the releases most briefly ([`crate::description`]).

use crate::description::Described;
use crate::periodic::PeriodicModel;
use crate::window::{Disorder, Window};
use std::collections::VecDeque;

/// Releases from which on a period may be named.
pub const LEAST_RELEASES: u64 = 40;
/// The intervals over which drift is looked for.
const LAG: usize = 16;
/// Releases that give the first estimate of the period.
const FIRST: usize = 32;
/// Variance over [`LAG`] periods and over one, as a fraction of what a drift would give.
const MOST_DRIFT: f64 = 0.3;
/// The jitter, in deviations of the interval that deviates most.
const MOST_DEVIATIONS: i64 = 2;
/// A window that is wider than this part of a period leaves open when the release was.
const WIDE: f64 = 0.25;

/// A period that releases follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Regularity {
    /// Counts the releases that were left out, too. Its jitter is that of the releases whose time
    /// is known to a quarter of a period.
    pub model: PeriodicModel,
    /// How many were left out.
    pub missed: u64,
}

/// Sums over pairs of releases, so that their variance can be computed for any period.
#[derive(Debug, Clone, Copy, Default)]
struct Variation {
    n: u64,
    times_squared: i128,
    times_by_numbers: i128,
    numbers_squared: i128,
}

impl Variation {
    fn add(&mut self, ns: i64, number: i64) {
        let (ns, number) = (i128::from(ns), i128::from(number));
        self.n += 1;
        self.times_squared = self.times_squared.saturating_add(ns * ns);
        self.times_by_numbers = self.times_by_numbers.saturating_add(ns * number);
        self.numbers_squared = self.numbers_squared.saturating_add(number * number);
    }

    /// The mean squared difference between the times and what this period makes of the numbers.
    fn around(&self, period_ns: i64) -> f64 {
        let period = i128::from(period_ns);
        let squares = self
            .times_squared
            .saturating_sub(self.times_by_numbers.saturating_mul(2 * period))
            .saturating_add(self.numbers_squared.saturating_mul(period * period));
        squares as f64 / self.n.max(1) as f64
    }
}

/// Looks for a period in a stream. Memory: constant.
#[derive(Debug, Clone)]
pub struct Regular {
    /// The first releases, until they give an estimate.
    first: Vec<Window>,
    /// The median of their intervals, ns.
    median_ns: Option<f64>,
    begin_ns: i64,
    n: u64,
    /// The releases that are known well.
    described: Described,
    /// Times and numbers of the last releases.
    recent: VecDeque<(i64, i64)>,
    over_one: Variation,
    over_many: Variation,
    /// The shortest and the longest time from one release to the next, none between left out, ns.
    intervals_ns: [i64; 2],
    /// The widest window of a release that is known well, ns.
    widest_ns: i64,
}

impl Default for Regular {
    fn default() -> Self {
        Self {
            first: Vec::new(),
            median_ns: None,
            begin_ns: 0,
            n: 0,
            described: Described::default(),
            recent: VecDeque::new(),
            over_one: Variation::default(),
            over_many: Variation::default(),
            intervals_ns: [i64::MAX, i64::MIN],
            widest_ns: 0,
        }
    }
}

impl Regular {
    /// Adds the next release.
    pub fn add(&mut self, window: Window) -> Result<(), Disorder> {
        if self.median_ns.is_some() {
            return self.number(window);
        }
        if self.first.last().is_some_and(|last| !last.is_before(window)) {
            return Err(Disorder);
        }
        self.first.push(window);
        if self.first.len() == FIRST {
            self.median_ns = Some(median_ns(&self.first));
            let first = std::mem::take(&mut self.first);
            return first.into_iter().try_for_each(|window| self.number(window));
        }
        Ok(())
    }

    /// Counts the periods since the last release.
    fn number(&mut self, window: Window) -> Result<(), Disorder> {
        let width_ns = window.latest_ns.saturating_sub(window.earliest_ns);
        let Some((last_ns, last)) = self.recent.back().copied() else {
            self.begin_ns = window.earliest_ns;
            self.take(window, window.earliest_ns, 0);
            return Ok(());
        };
        let estimate_ns = self.estimate_ns(last);
        let is_known = width_ns as f64 <= WIDE * estimate_ns;
        // Where it may have been on time, it is taken to have been so.
        let expected_ns = (last_ns as f64 + estimate_ns) as i64;
        let at_ns = if is_known {
            window.earliest_ns
        } else {
            expected_ns.clamp(window.earliest_ns, window.latest_ns)
        };
        if at_ns < last_ns {
            return Err(Disorder);
        }
        let interval_ns = at_ns.saturating_sub(last_ns);
        // Nothing that has a period is idle for a million of them.
        let periods = (interval_ns as f64 / estimate_ns).round().clamp(1.0, 1e6) as i64;
        self.over_one.add(interval_ns, periods);
        if periods == 1 {
            let [shortest, longest] = self.intervals_ns;
            self.intervals_ns = [shortest.min(interval_ns), longest.max(interval_ns)];
        }
        if is_known {
            self.take(window, at_ns, last + periods);
        } else {
            self.remember(at_ns, last + periods);
        }
        Ok(())
    }

    /// A release that is known well.
    fn take(&mut self, window: Window, at_ns: i64, number: i64) {
        self.described.add(number, window, self.begin_ns);
        self.widest_ns = self.widest_ns.max(window.latest_ns.saturating_sub(window.earliest_ns));
        self.remember(at_ns, number);
    }

    fn remember(&mut self, at_ns: i64, number: i64) {
        self.n += 1;
        if self.recent.len() == LAG
            && let Some((ns, earlier)) = self.recent.pop_front()
        {
            self.over_many.add(at_ns.saturating_sub(ns), number - earlier);
        }
        self.recent.push_back((at_ns, number));
    }

    /// The period as far as it is known at the release of this number, ns.
    fn estimate_ns(&self, number: i64) -> f64 {
        let passed_ns = self.recent.back().map_or(0, |(last_ns, _)| last_ns.saturating_sub(self.begin_ns));
        let mean_ns = passed_ns as f64 / number as f64;
        if number < FIRST as i64 { self.median_ns.unwrap_or(mean_ns).max(1.0) } else { mean_ns.max(1.0) }
    }

    /// The model of a period that is known from elsewhere, if releases follow it; `None` where they
    /// do not, and before [`LEAST_RELEASES`].
    pub fn with_period(&self, period_ns: i64) -> Option<Regularity> {
        let numbers = self.recent.back()?.1.unsigned_abs() + 1;
        let model = self.described.model(period_ns);
        let is_sparse = numbers > 2 * self.n;
        let is_near = model.jitter_ns < period_ns / 2 && !is_sparse;
        let follows = self.n >= LEAST_RELEASES && period_ns > 0 && is_near && !self.described.is_curved();
        follows.then(|| Regularity { model: self.since_begin(model), missed: numbers - self.n })
    }

    fn since_begin(&self, model: PeriodicModel) -> PeriodicModel {
        PeriodicModel { offset_ns: model.offset_ns.saturating_add(self.begin_ns), ..model }
    }

    /// The period that the releases so far follow; `None` where there is none, and before
    /// [`LEAST_RELEASES`].
    pub fn period(&self) -> Option<Regularity> {
        if self.n < LEAST_RELEASES {
            return None;
        }
        let (_, last) = *self.recent.back()?;
        let model = self.described.model(self.described.briefest_ns(self.estimate_ns(last))?);
        let numbers = last.unsigned_abs() + 1;
        // A period that is no whole number of ns is missed by up to one in each.
        let exact = model.jitter_ns.unsigned_abs() <= numbers;
        let [one, many] = [self.over_one, self.over_many].map(|sums| sums.around(model.period_ns));
        let deviation_ns = self.intervals_ns.map(|ns| ns.saturating_sub(model.period_ns).saturating_abs());
        let most_ns = MOST_DEVIATIONS
            .saturating_mul(deviation_ns[0].max(deviation_ns[1]))
            .saturating_add(self.widest_ns);
        let drifts = !exact && (many > MOST_DRIFT * LAG as f64 * one || model.jitter_ns > most_ns);
        // Of bursts, every release is on a grid as fine as the time between two of one.
        let is_sparse = numbers > 2 * self.n;
        let is_periodic = model.jitter_ns < model.period_ns / 2 && !drifts && !is_sparse;
        is_periodic.then(|| Regularity { model: self.since_begin(model), missed: numbers - self.n })
    }
}

fn median_ns(windows: &[Window]) -> f64 {
    let mut intervals: Vec<i64> =
        windows.windows(2).map(|pair| pair[1].earliest_ns.saturating_sub(pair[0].earliest_ns)).collect();
    let half = intervals.len() / 2;
    *intervals.select_nth_unstable(half).1 as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{Rng, SeedableRng};

    struct Random(ChaCha8Rng);

    impl Random {
        fn new(seed: u8) -> Self {
            Self(ChaCha8Rng::seed_from_u64(u64::from(seed)))
        }

        fn below(&mut self, limit: i64) -> i64 {
            (self.0.next_u64() % limit as u64) as i64
        }
    }

    fn period(releases: impl IntoIterator<Item = i64>) -> Option<Regularity> {
        let mut regular = Regular::default();
        releases.into_iter().for_each(|at| regular.add(Window::at(at)).unwrap());
        regular.period()
    }

    #[test]
    fn jitter_and_missing_releases_do_not_hide_a_period() {
        for seed in 0..40 {
            let mut random = Random::new(seed);
            let (mut missed, mut kept) = (0, Vec::new());
            for index in 0..400 {
                if index > 0 && index < 399 && random.below(10) == 0 {
                    missed += 1;
                } else {
                    kept.push(5_000 + index * 1_000_000 + random.below(300_000));
                }
            }
            let found = period(kept).unwrap();
            assert_eq!(found.model.period_ns, 1_000_000, "seed {seed}");
            assert!((250_000..400_000).contains(&found.model.jitter_ns), "seed {seed}: {found:?}");
            assert_eq!(found.missed, missed, "seed {seed}");
        }
    }

    #[test]
    fn a_release_some_time_after_the_last_has_no_period_however_little_varies() {
        for spread_ns in [200, 20_000, 400_000] {
            for seed in 0..200 {
                let mut random = Random::new(seed);
                let mut at = 0;
                let releases: Vec<i64> = (0..300)
                    .map(|_| {
                        at += 1_000_000 + random.below(spread_ns);
                        at
                    })
                    .collect();
                assert_eq!(period(releases), None, "spread {spread_ns}, seed {seed}");
            }
        }
    }

    #[test]
    fn one_long_interval_is_a_drift_and_one_late_release_is_none() {
        let late = (0..100).map(|index| index * 1_000_000 + if index == 50 { 300_000 } else { 0 });
        assert_eq!(period(late).unwrap().model.period_ns, 1_000_000);
        let later = (0..100).map(|index| index * 1_000_000 + if index >= 50 { 300_000 } else { 0 });
        assert_eq!(period(later), None);
    }

    #[test]
    fn few_jobs_are_enough_for_a_period_that_is_not_round() {
        let mut right = 0;
        for seed in 0..100 {
            let mut random = Random::new(seed);
            let releases = (0..120).map(|index| index * 16_667_000 + random.below(800_000));
            right += u32::from(period(releases).is_some_and(|found| found.model.period_ns == 16_667_000));
        }
        assert!(right >= 90, "{right}");
    }

    #[test]
    fn late_releases_do_not_bend_a_period() {
        for seed in 0..100 {
            let mut random = Random::new(seed);
            // Exponential delays of 40 us, as of a thread that others release.
            let releases: Vec<i64> = (0..120)
                .map(|index| {
                    let uniform = (random.below(1 << 30) + 1) as f64 / (1u64 << 30) as f64;
                    index * 20_000_000 + (-40_000.0 * uniform.ln()) as i64
                })
                .collect();
            assert_eq!(period(releases).unwrap().model.period_ns, 20_000_000, "seed {seed}");
        }
    }

    #[test]
    fn windows_of_timers_that_were_served_late_have_a_period() {
        let mut random = Random::new(3);
        let mut regular = Regular::default();
        for index in 0..300 {
            let earliest_ns = index * 10_000_000;
            regular
                .add(Window { earliest_ns, latest_ns: earliest_ns + 40_000 + random.below(70_000) })
                .unwrap();
        }
        let found = regular.period().unwrap();
        assert_eq!((found.model.period_ns, found.missed), (10_000_000, 0));
    }

    #[test]
    fn releases_that_accelerate_have_no_period_and_take_no_more_memory() {
        let mut regular = Regular::default();
        for index in 0..20_000_i64 {
            regular.add(Window::at(index * 1_000_000 - index * index * 20)).unwrap();
        }
        assert!(regular.described.is_curved());
        assert_eq!((regular.period(), regular.with_period(1_000_000)), (None, None));
    }

    #[test]
    fn few_releases_have_no_period_yet() {
        let releases = |n: i64| (0..n).map(|index| index * 1_000);
        assert_eq!(period(releases(39)), None);
        assert_eq!(period(releases(40)).unwrap().model.period_ns, 1_000);
    }

    #[test]
    fn a_period_that_is_no_whole_number_is_one() {
        let found = period((0..3_000_i64).map(|index| index * 1_000_000_000 / 300)).unwrap();
        assert_eq!((found.model.period_ns, found.missed), (3_333_333, 0));
    }
}
