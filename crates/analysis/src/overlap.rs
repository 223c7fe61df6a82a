//! Which samples an event touches: the interval of each sample against the spans, as the spans
//! come.
//!
//! A wake-up's interval is from its intended release to when the task ran; a noise gap's is the
//! gap. Touching is not causing: an event inside the interval of a late sample may have cost a
//! thousandth of it.

use model::EventClass;
use model::sample::{ProbeKind, Sample};
use serde::{Deserialize, Serialize};

/// Which share of the samples a class overlaps. Overlap is not cause. Where the CPU's trace is not
/// whole, classes that overlap no sample are left out, and the other shares are lower bounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Overlap {
    /// Phase of the window.
    pub phase: String,
    /// Probe of the window.
    pub probe: ProbeKind,
    /// The CPU.
    pub cpu: u32,
    /// The class.
    pub class: EventClass,
    /// Samples whose interval touches at least one event of the class.
    pub samples: u64,
    /// `samples / n`.
    pub share: f64,
    /// The same among the largest hundredth of the samples (at least ten samples), where there are
    /// that many.
    pub share_of_largest: Option<f64>,
}

/// The intervals of one window's samples on one CPU, each with the classes that touched it so far.
#[derive(Debug, Clone, Default)]
pub struct Intervals {
    t0_ns: Vec<i64>,
    /// Latest end among this interval and all before it: ends need not ascend.
    reach_ns: Vec<i64>,
    value_ns: Vec<i64>,
    /// A bit for each class, by its place in `EventClass::ALL`.
    touched: Vec<u32>,
    /// Where the search for the next span begins: spans come nearly in order.
    near: usize,
    slack_ns: i64,
}

impl Intervals {
    /// The intervals of the samples that statistics include, wider by `slack_ns` on both sides:
    /// what the clocks may differ by.
    pub fn new(samples: &[Sample], slack_ns: u64) -> Self {
        let slack = slack_ns.min(1_000_000) as i64;
        let mut counted: Vec<&Sample> = samples.iter().filter(|sample| sample.counts()).collect();
        counted.sort_by_key(|sample| sample.t_ns);
        let mut intervals = Self { slack_ns: slack, ..Self::default() };
        let mut reach = i64::MIN;
        for sample in counted {
            let end = sample.t_ns.saturating_add(sample.value_ns.max(0)).saturating_add(slack);
            reach = reach.max(end);
            intervals.t0_ns.push(sample.t_ns.saturating_sub(slack));
            intervals.reach_ns.push(reach);
            intervals.value_ns.push(sample.value_ns);
            intervals.touched.push(0);
        }
        intervals
    }

    /// A span of a class, ends included.
    pub fn mark(&mut self, class: EventClass, t0_ns: i64, t1_ns: i64) {
        while self.near > 0 && self.reach_ns[self.near - 1] >= t0_ns {
            self.near -= 1;
        }
        while self.near < self.reach_ns.len() && self.reach_ns[self.near] < t0_ns {
            self.near += 1;
        }
        for at in self.near..self.t0_ns.len() {
            if self.t0_ns[at] > t1_ns {
                break;
            }
            let end =
                self.t0_ns[at].saturating_add(self.value_ns[at].max(0)).saturating_add(2 * self.slack_ns);
            if end >= t0_ns {
                self.touched[at] |= bit(class);
            }
        }
    }

    /// Start and value of each sample, ns, by start.
    pub fn samples(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.t0_ns.iter().zip(&self.value_ns).map(|(t0, value)| (t0.saturating_add(self.slack_ns), *value))
    }

    /// The values of the intervals that nothing touched.
    pub fn untouched(&self) -> impl Iterator<Item = i64> + '_ {
        self.value_ns.iter().zip(&self.touched).filter(|(_, touched)| **touched == 0).map(|(value, _)| *value)
    }

    /// The share of samples that each class touches, classes that touch none included.
    pub fn overlaps(&self, phase: &str, probe: ProbeKind, cpu: u32) -> Vec<Overlap> {
        let n = self.touched.len();
        let largest = self.largest();
        let share = |count: u64, of: usize| if of == 0 { 0.0 } else { count as f64 / of as f64 };
        let classes = EventClass::ALL.iter().copied().filter(|class| *class != EventClass::Unexplained);
        classes
            .map(|class| {
                let touches = |at: &&usize| self.touched[**at] & bit(class) != 0;
                let samples =
                    self.touched.iter().filter(|touched| **touched & bit(class) != 0).count() as u64;
                let top =
                    largest.as_ref().map(|top| share(top.iter().filter(touches).count() as u64, top.len()));
                let phase = phase.to_owned();
                Overlap { phase, probe, cpu, class, samples, share: share(samples, n), share_of_largest: top }
            })
            .collect()
    }

    /// The largest hundredth, ten at least; `None` with fewer than twenty samples, where it would
    /// be most of them.
    fn largest(&self) -> Option<Vec<usize>> {
        let n = self.value_ns.len();
        if n < 20 {
            return None;
        }
        let take = (n / 100).max(10);
        let mut order: Vec<usize> = (0..n).collect();
        order.select_nth_unstable_by_key(take, |&at| std::cmp::Reverse((self.value_ns[at], at)));
        order.truncate(take);
        Some(order)
    }
}

fn bit(class: EventClass) -> u32 {
    1 << class as u32
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "exact by construction")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample(t_ns: i64, value_ns: i64) -> Sample {
        Sample { t_ns, value_ns, ..Sample::default() }
    }

    #[test]
    fn every_class_has_a_bit() {
        assert!(EventClass::ALL.len() <= 32);
        assert!(EventClass::ALL.iter().enumerate().all(|(at, class)| *class as usize == at));
    }

    #[test]
    fn ends_touch_and_slack_widens() {
        let mut intervals = Intervals::new(&[sample(100, 10)], 0);
        intervals.mark(EventClass::Irq, 111, 120);
        assert_eq!(intervals.untouched().count(), 1);
        intervals.mark(EventClass::Irq, 110, 120);
        assert_eq!(intervals.untouched().count(), 0);
        let mut wide = Intervals::new(&[sample(100, 10)], 1);
        wide.mark(EventClass::Irq, 111, 120);
        assert_eq!(wide.untouched().count(), 0);
    }

    #[test]
    fn the_largest_are_counted_apart() {
        let samples: Vec<_> =
            (0..1000).map(|i| sample(i * 1000, if i % 100 == 0 { 500 } else { 5 })).collect();
        let mut intervals = Intervals::new(&samples, 0);
        (0..10).for_each(|i| intervals.mark(EventClass::Softirq, i * 100_000 + 400, i * 100_000 + 450));
        let overlaps = intervals.overlaps("p", ProbeKind::Noise, 1);
        let softirq = overlaps.iter().find(|o| o.class == EventClass::Softirq).unwrap();
        assert_eq!((softirq.samples, softirq.share, softirq.share_of_largest), (10, 0.01, Some(1.0)));
    }

    proptest! {
        #[test]
        fn marking_agrees_with_looking_at_every_pair(
            samples in proptest::collection::vec((0i64..1000, -5i64..200), 0..40),
            spans in proptest::collection::vec((0i64..1100, 0i64..300), 0..40),
        ) {
            let samples: Vec<_> = samples.into_iter().map(|(t, v)| sample(t, v)).collect();
            let mut intervals = Intervals::new(&samples, 0);
            spans.iter().for_each(|&(t0, n)| intervals.mark(EventClass::Work, t0, t0 + n));
            let touches = |s: &Sample| spans.iter().any(|&(t0, n)| s.t_ns <= t0 + n && s.t_ns + s.value_ns.max(0) >= t0);
            let truth = samples.iter().filter(|s| touches(s)).count() as u64;
            let overlaps = intervals.overlaps("p", ProbeKind::Noise, 0);
            prop_assert_eq!(overlaps.iter().find(|o| o.class == EventClass::Work).unwrap().samples, truth);
        }
    }
}
