//! Latency statistics that leave nothing out: every sample, from its intended release, and every
//! message that was sent.
//!
//! A publisher whose timer fires late publishes late, and its subscribers see that: the latency
//! runs from the release (G. Tene's "coordinated omission"). The hop, from just before the send to
//! the receipt, stands beside it.

use measure::live::Live;
use model::Sample;
use serde::{Deserialize, Serialize};

/// One message received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Its number on its edge, from 0.
    pub number: u64,
    /// When it, or the first message of its chain, was to be sent, CLOCK_MONOTONIC ns.
    pub release_ns: i64,
    /// When it was sent.
    pub sent_ns: i64,
    /// When its receiver had it.
    pub received_ns: i64,
}

/// Latency statistics, ns.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Spread {
    /// How many.
    pub n: u64,
    /// Smallest.
    pub min_ns: i64,
    /// Middle, to three digits: half do not exceed it.
    pub p50_ns: i64,
    /// 99 in 100 do not exceed it; to three digits.
    pub p99_ns: i64,
    /// Mean.
    pub mean_ns: f64,
    /// The observed maximum.
    pub max_ns: i64,
}

impl Spread {
    fn of(live: &Live) -> Self {
        let (Some(min_ns), Some(max_ns)) = (live.min_ns, live.max_ns) else { return Self::default() };
        // Three digits of a quantile never leave the range of what was measured.
        let quantile = |share| live.quantile_ns(share).map_or(min_ns, |ns| (ns as i64).clamp(min_ns, max_ns));
        Self {
            n: live.count,
            min_ns,
            p50_ns: quantile(0.5),
            p99_ns: quantile(0.99),
            mean_ns: live.sum_ns as f64 / live.count as f64,
            max_ns,
        }
    }
}

/// The two latencies of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Latencies {
    /// From the intended release to the receipt.
    pub from_release: Spread,
    /// From the send to the receipt.
    pub hop: Spread,
}

/// The latencies of an edge while messages arrive.
#[derive(Debug, Default)]
pub struct Arrivals {
    from_release: Live,
    hop: Live,
}

impl Arrivals {
    /// Counts one.
    pub fn add(&mut self, arrival: Arrival) {
        let sample = |value_ns| Sample { t_ns: arrival.release_ns, value_ns, ..Sample::default() };
        self.from_release.add(&sample(arrival.received_ns - arrival.release_ns));
        self.hop.add(&sample(arrival.received_ns - arrival.sent_ns));
    }

    /// The statistics so far.
    pub fn latencies(&self) -> Latencies {
        Latencies { from_release: Spread::of(&self.from_release), hop: Spread::of(&self.hop) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latencies(arrivals: &[Arrival]) -> Latencies {
        let mut all = Arrivals::default();
        arrivals.iter().for_each(|one| all.add(*one));
        all.latencies()
    }

    /// A timer that fires 30 ms late is a latency here, and none by iRobot's formulas.
    #[test]
    fn a_late_timer_is_a_latency() {
        use super::super::tracker::{Bounds, Tracker};
        const PERIOD_NS: i64 = 10_000_000;
        let arrivals: Vec<_> = (0..100)
            .map(|number| {
                let release_ns = number as i64 * PERIOD_NS;
                let sent_ns = release_ns + if number == 50 { 30_000_000 } else { 0 };
                Arrival { number, release_ns, sent_ns, received_ns: sent_ns + 20_000 }
            })
            .collect();
        let honest = latencies(&arrivals);
        assert_eq!((honest.hop.max_ns, honest.from_release.max_ns), (20_000, 30_020_000));
        assert_eq!((honest.from_release.n, honest.from_release.p50_ns / 100), (100, 200));
        let limits = Bounds { tracking: true, ..Bounds::default() }.of(PERIOD_NS as u64);
        let mut tracker = Tracker::default();
        for one in &arrivals {
            tracker.scan(limits, one.number, one.sent_ns, one.received_ns);
        }
        assert_eq!((tracker.late, tracker.too_late, tracker.max_us), (0, 0, 20));
    }

    /// A message that is too late is the maximum here; the tracker excludes it.
    #[test]
    fn the_worst_message_is_the_maximum() {
        use super::super::tracker::{Bounds, Tracker};
        let arrival =
            |number, latency_ns| Arrival { number, release_ns: 0, sent_ns: 0, received_ns: latency_ns };
        let arrivals = [arrival(0, 15_000), arrival(1, 80_000_000)];
        assert_eq!(latencies(&arrivals).from_release.max_ns, 80_000_000);
        let limits = Bounds { tracking: true, ..Bounds::default() }.of(10_000_000);
        let mut tracker = Tracker::default();
        for one in &arrivals {
            tracker.scan(limits, one.number, one.sent_ns, one.received_ns);
        }
        assert_eq!((tracker.too_late, tracker.max_us), (1, 15));
    }

    #[test]
    fn nothing_has_no_figures() {
        assert_eq!(latencies(&[]), Latencies::default());
    }
}
