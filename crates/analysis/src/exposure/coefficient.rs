//! Events per operation: the disturbed count less what the idle background would have given in the
//! same time, over operations.
//!
//! κ = (N/T − B/S) · T / ops, with N events in the time T of the operations and B events in the
//! time S of both idle controls, on one measured CPU. Interval: that of the difference of two
//! Poisson rates ([`rates::difference_interval`], Garwood's limits), bunched as the background is.
//! Where nothing was counted: the rule of three, 3/ops ([`stats::bounds`]). Where the background
//! would have given more than was counted, it did not hold, and nothing is subtracted from the
//! limit.

use super::facts::Count;
use serde::{Deserialize, Serialize};
use stats::bounds::count_upper;
use stats::rates::{Rate, difference_interval, p_value};

/// Events of one class, or of all, per successful operation on one measured CPU.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Coefficient {
    /// Events counted while operations ran, on all measured CPUs.
    pub events: u64,
    /// Those that the idle background would have given in that time.
    pub background: f64,
    /// Events per operation and measured CPU, background subtracted; below 0 where less was counted
    /// than the background gives.
    pub per_operation: f64,
    /// Lower 95 % limit, not below 0.
    pub low: f64,
    /// Upper 95 % limit: of two where events were counted; the only one, 3/n, where none was. Never
    /// below 3/n. Where fewer were counted than the background gives, beyond chance, it is that of
    /// all that were counted.
    pub high: f64,
    /// Probability of a difference at least as large by chance.
    pub p: f64,
    /// Whether it was seen: more than the background, beyond chance, adjusted for all classes of
    /// the cell.
    pub seen: bool,
}

/// One coefficient of pooled cells; it counts as seen once its neighbours are known, see
/// [`super::conclude()`].
pub fn coefficient(
    operations: u64,
    cpus: u64,
    (disturbed, disturbed_s): (&Count, f64),
    (idle, idle_s): (&Count, f64),
) -> Coefficient {
    // Operations are not drawn by chance, so only the background can bunch what it adds.
    let dispersion = idle.dispersion.max(1.0);
    let rate =
        |count: &Count, seconds: f64| Rate { count: count.count, seconds: seconds * cpus as f64, dispersion };
    let (with, without) = (rate(disturbed, disturbed_s), rate(idle, idle_s));
    let trials = (operations * cpus) as f64;
    let per_operation = |per_s: f64| per_s * disturbed_s / operations as f64;
    let limits = difference_interval(&with, &without).map(|limits| limits.map(per_operation));
    let least = count_upper(0) / trials;
    let [low, high] = match limits {
        _ if disturbed.count == 0 => [0.0, least],
        // Fewer than the background gives, beyond chance: it was another one meanwhile, and any of
        // the events may be of the operations.
        Some([_, high]) if high < least => [0.0, count_upper(disturbed.count) / trials],
        Some([low, high]) => [low.max(0.0), high],
        None => [0.0, f64::INFINITY],
    };
    Coefficient {
        events: disturbed.count,
        background: without.per_s() * with.seconds,
        per_operation: per_operation(with.per_s() - without.per_s()),
        low,
        high,
        p: p_value(&with, &without),
        seen: false,
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "exact by construction")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn count(count: u64) -> Count {
        Count { count, ..Count::default() }
    }

    #[test]
    fn without_background_it_is_events_over_operations() {
        // Garwood's limits for 12 events are 6.2006 and 20.9616; the background of 0 events in 4 s
        // may be as much as 3.689.
        let found = coefficient(4, 1, (&count(12), 2.0), (&count(0), 4.0));
        assert_eq!((found.per_operation, found.background), (3.0, 0.0));
        assert!((found.high - 20.961_6 / 4.0).abs() < 1e-3, "{found:?}");
        let below = (12.0f64 - 6.200_6).hypot(3.688_9 * 2.0 / 4.0);
        assert!((found.low - (12.0 - below) / 4.0).abs() < 1e-3, "{found:?}");
    }

    #[test]
    fn nothing_counted_is_a_bound() {
        let found = coefficient(100, 2, (&count(0), 2.0), (&count(8), 4.0));
        assert_eq!((found.low, found.high), (0.0, 3.0 / 200.0));
        assert!(found.per_operation < 0.0, "less than the background gives");
    }

    /// A minute in which others interrupted the CPU while it was idle: 41 collapses of huge pages
    /// sent an IPI each, and the idle time before and after them had more of them than that.
    #[test]
    fn a_background_that_did_not_hold_bounds_nothing() {
        let found = coefficient(41, 1, (&count(41), 2.0), (&count(400), 4.0));
        assert!(found.per_operation < 0.0 && !found.seen);
        assert_eq!((found.low, found.high), (0.0, count_upper(41) / 41.0), "{found:?}");
        assert!(found.high > 1.0, "one an operation is not excluded: {found:?}");
    }

    #[test]
    fn the_background_of_the_same_time_is_subtracted() {
        let found = coefficient(10, 1, (&count(530), 2.0), (&count(1000), 4.0));
        assert_eq!((found.background, found.per_operation), (500.0, 3.0));
        assert_eq!(found.low, 0.0, "30 more than 500 may be chance");
        let bunched = Count { count: 1000, dispersion: 9.0, ..Count::default() };
        let wider = coefficient(10, 1, (&count(530), 2.0), (&bunched, 4.0));
        assert!(wider.high > found.high && wider.p > found.p);
    }

    proptest! {
        #[test]
        fn the_coefficient_lies_in_its_interval(
            events in 1u64..1000, idle in 0u64..1000, ops in 1u64..10_000, cpus in 1u64..4, t in 0.5f64..5.0, s in 0.5f64..10.0,
        ) {
            let found = coefficient(ops, cpus, (&count(events), t), (&count(idle), s));
            prop_assert!(found.low <= found.per_operation.max(0.0) + 1e-9, "{:?}", found);
            prop_assert!(found.per_operation <= found.high + 1e-9, "{:?}", found);
        }

        #[test]
        fn each_of_two_cpus_that_see_the_same_has_the_coefficient_of_one(events in 1u64..1000, ops in 1u64..1000) {
            let one = coefficient(ops, 1, (&count(events), 1.0), (&count(0), 2.0));
            let two = coefficient(ops, 2, (&count(2 * events), 1.0), (&count(0), 2.0));
            prop_assert!((one.per_operation - two.per_operation).abs() < 1e-9);
            prop_assert!(two.high - two.low < one.high - one.low);
        }
    }
}
