//! The period that describes releases most briefly (minimum description length): by its own decimals,
//! and by how far releases are from it.
//!
//! What delays look like is not known before. Three laws are tried, and the one that describes them
//! most briefly counts: exponential (nothing is early, some are very late), uniform (jitter up to a
//! limit), normal (what released them varied). Each has a period that fits best; of these, and of
//! all rounder ones near by, the briefest is taken. LiME's rule ([`crate::periodic`]) takes the
//! roundest within a quarter more jitter than the least.

use crate::hull::Side;
use crate::periodic::PeriodicModel;
use crate::window::Window;

/// Corners of the hull of releases; those that accelerate all the time have more, and no period.
const MOST_CORNERS: usize = 4096;
/// Added to a rounded period, in its last decimal.
const ADJUSTMENTS: [i64; 5] = [-2, -1, 0, 1, 2];
/// Delays are not described finer than this, ns.
const FINEST_NS: f64 = 1.0;

/// Numbered releases, as far as periods need them. Memory: constant.
#[derive(Debug, Clone)]
pub(crate) struct Described {
    below: Side,
    above: Side,
    /// Sums over earliest times since the first, ns, and numbers.
    n: i128,
    times: i128,
    numbers: i128,
    times_squared: i128,
    times_by_numbers: i128,
    numbers_squared: i128,
}

impl Default for Described {
    fn default() -> Self {
        Self {
            below: Side::below(),
            above: Side::above(),
            n: 0,
            times: 0,
            numbers: 0,
            times_squared: 0,
            times_by_numbers: 0,
            numbers_squared: 0,
        }
    }
}

impl Described {
    /// Adds a release; its number is above those before. `begin_ns`: the first release.
    pub(crate) fn add(&mut self, number: i64, window: Window, begin_ns: i64) {
        if self.is_curved() {
            return;
        }
        self.below.push(number, window.earliest_ns.saturating_sub(begin_ns));
        self.above.push(number, window.latest_ns.saturating_sub(begin_ns));
        let time = i128::from(window.earliest_ns.saturating_sub(begin_ns));
        let number = i128::from(number);
        self.n += 1;
        self.times += time;
        self.numbers += number;
        self.times_squared = self.times_squared.saturating_add(time * time);
        self.times_by_numbers = self.times_by_numbers.saturating_add(time * number);
        self.numbers_squared = self.numbers_squared.saturating_add(number * number);
    }

    /// Whether releases accelerate or slow down all the time: they follow no period, and nothing
    /// more is kept of them.
    pub(crate) fn is_curved(&self) -> bool {
        self.below.corners().max(self.above.corners()) > MOST_CORNERS
    }

    /// The model of a period; its offset counts from the first release.
    pub(crate) fn model(&self, period_ns: i64) -> PeriodicModel {
        let offset_ns = self.below.extreme_ns(period_ns);
        let jitter_ns = self.above.extreme_ns(period_ns).saturating_sub(offset_ns);
        PeriodicModel { period_ns, offset_ns, jitter_ns }
    }

    /// The sum of all delays since the earliest time that the period and the other releases permit,
    /// ns.
    fn delays_ns(&self, period_ns: i64) -> i128 {
        let origin_ns = i128::from(self.below.extreme_ns(period_ns));
        self.times - i128::from(period_ns) * self.numbers - self.n * origin_ns
    }

    /// The variance of the delays, ns².
    fn variance(&self, period_ns: i64) -> f64 {
        let period = i128::from(period_ns);
        let sum = self.times - period * self.numbers;
        let squares = self
            .times_squared
            .saturating_sub(self.times_by_numbers.saturating_mul(2 * period))
            .saturating_add(self.numbers_squared.saturating_mul(period * period));
        let n = self.n as f64;
        // Exact in integers up to here: the difference of the two is small.
        let centred = self.n.checked_mul(squares).and_then(|one| one.checked_sub(sum.checked_mul(sum)?));
        centred.map_or(f64::INFINITY, |centred| centred as f64 / n / n)
    }

    /// The length of a description, nats.
    fn length(&self, period_ns: i64) -> f64 {
        let delay_ns = self.delays_ns(period_ns) as f64 / self.n as f64 + FINEST_NS;
        let jitter_ns = self.model(period_ns).jitter_ns as f64 + FINEST_NS;
        let variance = self.variance(period_ns) + FINEST_NS * FINEST_NS;
        let exponential = 1.0 + delay_ns.ln();
        let normal = 0.5 * (std::f64::consts::TAU * std::f64::consts::E * variance).ln();
        let one = exponential.min(jitter_ns.ln()).min(normal);
        self.n as f64 * one + f64::from(decimals(period_ns)) * 10_f64.ln()
    }

    /// The period of the briefest description, ns; `None` where there is none, or far too many
    /// corners. `about_ns`: within a factor of 2 of it.
    pub(crate) fn briefest_ns(&self, about_ns: f64) -> Option<i64> {
        if self.is_curved() {
            return None;
        }
        let within = [(about_ns * 0.5) as i64, (about_ns * 2.0).ceil() as i64];
        let best = [
            least(within, |period_ns| self.delays_ns(period_ns)),
            least(within, |period_ns| i128::from(self.model(period_ns).jitter_ns)),
            self.of_least_squares()?,
        ];
        let granularities = || std::iter::successors(Some(1_i64), |one| one.checked_mul(10));
        let near = |period_ns: i64| {
            granularities().take_while(move |one| *one <= period_ns).flat_map(move |granularity| {
                ADJUSTMENTS
                    .into_iter()
                    .map(move |adjustment| (period_ns / granularity + adjustment) * granularity)
            })
        };
        let candidates = best.into_iter().flat_map(near).filter(|period_ns| *period_ns > 0);
        let lengths = candidates.map(|period_ns| (self.length(period_ns), period_ns));
        lengths.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))).map(|(_, period_ns)| period_ns)
    }

    fn of_least_squares(&self) -> Option<i64> {
        let across =
            self.n.checked_mul(self.numbers_squared)?.checked_sub(self.numbers.checked_mul(self.numbers)?)?;
        let up =
            self.n.checked_mul(self.times_by_numbers)?.checked_sub(self.numbers.checked_mul(self.times)?)?;
        (across > 0).then(|| (up as f64 / across as f64).round() as i64)
    }
}

/// Where a convex function is least.
fn least([mut low, mut high]: [i64; 2], value: impl Fn(i64) -> i128) -> i64 {
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if value(middle + 1) < value(middle) { low = middle } else { high = middle }
    }
    high
}

/// The decimals of a number up to its last that is not 0.
fn decimals(mut n: i64) -> u32 {
    while n != 0 && n % 10 == 0 {
        n /= 10;
    }
    n.checked_ilog10().map_or(0, |log| log + 1)
}
