//! Reads the kernel's counters while probes run, from a housekeeping CPU: their growth
//! distinguishes one thief of time from another.
//!
//! What is read here disturbs no measured CPU: `/proc` gives per-CPU counts without an IPI. (SMI
//! counters would need one; the probe reads them itself, `smi`.)

use super::counters::Counters;
use super::own::run_delay;
use model::Cpus;
use model::context::Counted;
use model::growth::{Growth, ReadBy};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use sys::{Error, clock};

/// Polling interval: ten clock ticks of a kernel with the slowest.
pub(crate) const DISTANCE_NS: i64 = 100_000_000;
/// Looks that are remembered for contexts: a minute and more.
const REMEMBERED: usize = 700;

/// One look.
#[derive(Debug, Clone, Default)]
pub struct Look {
    /// When it began, CLOCK_MONOTONIC ns.
    pub t_ns: i64,
    /// The kernel's counts for all measured CPUs.
    counters: Counters,
    /// Run delay and arrivals by thread.
    delays: BTreeMap<u32, [u64; 2]>,
}

impl Look {
    /// Reads everything.
    fn take(cpus: &Cpus, threads: &[u32]) -> Result<Self, Error> {
        let t_ns = clock::now_ns();
        let counters = Counters::read(Path::new("/"), cpus)
            .map_err(|source| Error::os("read", "/proc/interrupts", source))?;
        let delay = |&thread: &u32| {
            let text = std::fs::read_to_string(format!("/proc/{thread}/schedstat")).ok()?;
            Some((thread, run_delay(&text)?))
        };
        Ok(Self { t_ns, counters, delays: threads.iter().filter_map(delay).collect() })
    }

    /// What grew on these CPUs, and for this thread, until a later look.
    pub fn counted(&self, later: &Self, cpus: &Cpus, thread: u32) -> Counted {
        let Counters { interrupts, softirqs, steal_ns, .. } = self.counters.growth(&later.counters);
        let own = |counts: &mut BTreeMap<u32, u64>| {
            counts.retain(|cpu, _| cpus.contains(*cpu));
            !counts.is_empty()
        };
        let rows = |rows: super::counters::Rows| {
            rows.into_iter().filter_map(|(row, mut counts)| own(&mut counts).then_some((row, counts)))
        };
        let mut steal_ns = steal_ns;
        own(&mut steal_ns);
        let delay = self.delays.get(&thread).zip(later.delays.get(&thread));
        let grown = |at: usize| delay.map(|(before, after)| after[at].saturating_sub(before[at]));
        Counted {
            t0_ns: self.t_ns,
            t1_ns: later.t_ns,
            interrupts: rows(interrupts).collect(),
            softirqs: rows(softirqs).collect(),
            steal_ns,
            run_delay_ns: grown(0),
            arrivals: grown(1),
        }
    }

    /// The same as sums.
    pub fn growth(&self, later: &Self, cpus: &Cpus, thread: u32) -> Growth {
        let counted = self.counted(later, cpus, thread);
        let sum = |rows: &super::counters::Rows| Some(rows.values().flat_map(BTreeMap::values).sum());
        let idle = self.counters.growth(&later.counters).idle_ns;
        Growth {
            t0_ns: self.t_ns,
            t1_ns: later.t_ns,
            read_by: ReadBy::Drain,
            run_delay_ns: counted.run_delay_ns,
            arrivals: counted.arrivals,
            steal_ns: Some(counted.steal_ns.values().sum()),
            idle_ns: Some(cpus.iter().filter_map(|cpu| idle.get(&cpu)).sum()),
            interrupts: sum(&counted.interrupts),
            softirqs: sum(&counted.softirqs),
            ..Growth::default()
        }
    }
}

/// The looks of one window.
#[derive(Debug)]
pub struct Looks {
    cpus: Cpus,
    threads: Vec<u32>,
    kept: VecDeque<Look>,
    spent_ns: i64,
    taken: u32,
}

impl Looks {
    /// Takes the first.
    pub fn begin(cpus: Cpus, threads: Vec<u32>) -> Result<Self, Error> {
        let mut looks = Self { cpus, threads, kept: VecDeque::new(), spent_ns: 0, taken: 0 };
        looks.take()?;
        Ok(looks)
    }

    /// Takes another.
    pub fn take(&mut self) -> Result<(), Error> {
        let look = Look::take(&self.cpus, &self.threads)?;
        self.spent_ns += clock::now_ns() - look.t_ns;
        self.taken += 1;
        if self.kept.len() == REMEMBERED {
            self.kept.pop_front();
        }
        self.kept.push_back(look);
        Ok(())
    }

    /// Whether the next one is due.
    pub fn due(&self, now_ns: i64) -> bool {
        self.kept.back().is_none_or(|last| now_ns - last.t_ns >= DISTANCE_NS)
    }

    /// The last two.
    pub fn last_two(&self) -> Option<(&Look, &Look)> {
        let last = self.kept.back()?;
        Some((self.kept.get(self.kept.len().checked_sub(2)?)?, last))
    }

    /// The last before a time span and the first behind it, where they are remembered.
    pub fn around(&self, t0_ns: i64, t1_ns: i64) -> Option<(&Look, &Look)> {
        let before = self.kept.iter().rev().find(|look| look.t_ns <= t0_ns)?;
        Some((before, self.kept.iter().find(|look| look.t_ns >= t1_ns)?))
    }

    /// What one costs, ns.
    pub fn cost_ns(&self) -> f64 {
        self.spent_ns as f64 / f64::from(self.taken.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(t_ns: i64, ticks: u64, delay: [u64; 2]) -> Look {
        let row = |count| BTreeMap::from([(1, count), (2, 7 * count)]);
        let counters = Counters {
            interrupts: BTreeMap::from([("LOC".to_owned(), row(ticks)), ("RES".to_owned(), row(1))]),
            idle_ns: row(ticks * 1000),
            ..Counters::default()
        };
        Look { t_ns, counters, delays: BTreeMap::from([(77, delay)]) }
    }

    #[test]
    fn growth_is_that_of_the_probe_and_its_cpus_alone() {
        let (one, two) = (look(100, 10, [5, 1]), look(200, 14, [9, 2]));
        let growth = one.growth(&two, &Cpus::one(2), 77);
        assert_eq!((growth.t0_ns, growth.t1_ns, growth.interrupts), (100, 200, Some(28)));
        assert_eq!((growth.run_delay_ns, growth.arrivals, growth.idle_ns), (Some(4), Some(1), Some(28_000)));
        let counted = one.counted(&two, &Cpus::one(1), 78);
        assert_eq!((counted.interrupts.len(), counted.run_delay_ns), (1, None));
        assert_eq!(counted.interrupts["LOC"], BTreeMap::from([(1, 4)]));
    }

    #[test]
    fn the_looks_around_a_sample_are_the_nearest() {
        let looks = Looks {
            cpus: Cpus::one(1),
            threads: Vec::new(),
            kept: (0..5).map(|at| look(at * 100, 0, [0; 2])).collect(),
            spent_ns: 0,
            taken: 5,
        };
        let around = |t0, t1| looks.around(t0, t1).map(|(before, after)| (before.t_ns, after.t_ns));
        assert_eq!(around(150, 160), Some((100, 200)));
        assert_eq!(around(200, 300), Some((200, 300)));
        assert_eq!((around(-1, 50), around(390, 401)), (None, None));
    }
}
