//! From samples to cyclictest's statistics (`timerthread()` and `main()` of cyclictest.c): whole
//! microseconds, truncated, or ns; every sample from the first. A latency above `--breaktrace` ends
//! all threads at once. A thread that has all its samples ends the others when the main thread next
//! polls.

use model::Sample;
use model::run::ProbeRecord;

/// Poll interval of the main thread.
const LOOK_NS: i64 = 10_000_000;

/// Unit and limits of the statistics.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// ns in the unit that is printed.
    pub(super) unit_ns: i64,
    /// Samples of a thread that end the measurement; 0: none do.
    pub(super) loops: u64,
    /// Latency above which the measurement ends, in units; 0: none does.
    pub(super) limit: i64,
}

impl Rules {
    /// The most samples that a thread has.
    fn most(self) -> usize {
        if self.loops == 0 { usize::MAX } else { usize::try_from(self.loops).unwrap_or(usize::MAX) }
    }
}

/// One thread's statistics.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figures {
    /// Thread id.
    pub(super) tid: i32,
    /// Priority that the kernel reports.
    pub(super) priority: u32,
    /// Latencies in units.
    pub(super) values: Vec<i64>,
    /// When the thread ran, CLOCK_MONOTONIC, us.
    pub(super) times_us: Vec<i64>,
    /// Missed releases.
    pub(super) missed: u64,
    /// Samples that found the ring full.
    pub(super) lost: u64,
    /// Wake-ups before their release.
    pub(super) early: u64,
}

/// What ended the measurement by `--breaktrace`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Break {
    /// Thread id.
    pub(super) tid: i32,
    /// Latency in units.
    pub(super) value: i64,
}

impl Figures {
    /// Smallest latency; what cyclictest starts with where there is none.
    pub(super) fn min(&self) -> i64 {
        self.values.iter().copied().min().unwrap_or(1_000_000)
    }

    /// Largest latency.
    pub(super) fn max(&self) -> i64 {
        self.values.iter().copied().max().unwrap_or(0)
    }

    /// Last latency.
    pub(super) fn act(&self) -> i64 {
        self.values.last().copied().unwrap_or(0)
    }

    /// Mean latency; 0 where there is none.
    pub(super) fn mean(&self) -> f64 {
        self.values.iter().sum::<i64>() as f64 / self.values.len().max(1) as f64
    }

    /// Count of each bin, and the numbers of the samples above the last; what is early is in the
    /// first.
    pub(super) fn bins(&self, bins: u32) -> (Vec<u64>, Vec<usize>) {
        let mut counts = vec![0; bins as usize];
        let mut above = Vec::new();
        for (number, value) in self.values.iter().enumerate() {
            match counts.get_mut((*value).max(0) as usize) {
                Some(count) => *count += 1,
                None => above.push(number),
            }
        }
        (counts, above)
    }
}

/// Statistics of all threads up to the end, and what ended them by `--breaktrace`.
pub(super) fn figures(
    threads: &[(&ProbeRecord, Vec<Sample>)],
    rules: Rules,
) -> (Vec<Figures>, Option<Break>) {
    let broke = threads.iter().filter_map(|(record, samples)| {
        let mut own = samples.iter().take(rules.most());
        let first = own.find(|sample| rules.limit > 0 && sample.value_ns / rules.unit_ns > rules.limit)?;
        Some((woke_ns(first), Break { tid: record.tid, value: first.value_ns / rules.unit_ns }))
    });
    let broke = broke.min_by_key(|(at_ns, _)| *at_ns);
    let last = rules.most() - 1;
    // A thread that has its samples ends, and the main thread sees that up to one poll later.
    let full = threads
        .iter()
        .filter_map(|(_, samples)| samples.get(last).map(woke_ns))
        .min()
        .map(|full_ns| full_ns + LOOK_NS);
    let broke = broke.filter(|(at_ns, _)| full.is_none_or(|full_ns| *at_ns <= full_ns));
    let end_ns = broke.map(|(at_ns, _)| at_ns).or(full);
    let figures = threads.iter().map(|(record, samples)| one(record, samples, rules, end_ns)).collect();
    (figures, broke.map(|(_, broke)| broke))
}

fn one(record: &ProbeRecord, samples: &[Sample], rules: Rules, end_ns: Option<i64>) -> Figures {
    let until = samples.partition_point(|sample| end_ns.is_none_or(|end_ns| woke_ns(sample) <= end_ns));
    let kept = &samples[..until.min(rules.most())];
    let swallowed: u64 = kept.iter().map(|sample| u64::from(sample.missed)).sum();
    Figures {
        tid: record.tid,
        priority: record.policy_effective.priority,
        values: kept.iter().map(|sample| sample.value_ns / rules.unit_ns).collect(),
        times_us: kept.iter().map(|sample| woke_ns(sample) / 1000).collect(),
        // Releases that passed behind the last sample are in no sample.
        missed: if kept.len() == samples.len() { record.missed() } else { swallowed },
        lost: record.ring_lost,
        early: kept.iter().filter(|sample| sample.value_ns < 0).count() as u64,
    }
}

fn woke_ns(sample: &Sample) -> i64 {
    sample.t_ns + sample.value_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::probe::{ProbeDetail, Releases, Served};
    use model::sample::{Policy, ProbeKind};

    const RULES: Rules = Rules { unit_ns: 1000, loops: 0, limit: 0 };

    fn record(tid: i32, samples: &[Sample]) -> ProbeRecord {
        let swallowed: u64 = samples.iter().map(|sample| u64::from(sample.missed)).sum();
        // Two more passed behind the last sample.
        let served = Served { missed: swallowed + 2, ..Served::default() };
        ProbeRecord {
            detail: ProbeDetail::Wakeup(Releases { served, ..Releases::default() }),
            pid: tid,
            tid,
            samples: samples.len() as u64,
            ..ProbeRecord::of(ProbeKind::Wakeup, 0, Policy::fifo(80))
        }
    }

    /// Releases every ms; the first is flagged and counts all the same.
    fn samples(values_ns: &[i64]) -> Vec<Sample> {
        let one = |(seq, value_ns): (u64, &i64)| Sample {
            t_ns: seq as i64 * 1_000_000,
            value_ns: *value_ns,
            seq,
            missed: 1,
            flags: if seq == 0 { model::sample::flag::FIRST } else { 0 },
        };
        (0..).zip(values_ns).map(one).collect()
    }

    fn of(lists: &[Vec<Sample>], rules: Rules) -> (Vec<Figures>, Option<Break>) {
        let records: Vec<_> = (1..).zip(lists).map(|(tid, list)| record(tid, list)).collect();
        let threads: Vec<_> = records.iter().zip(lists.iter().cloned()).collect();
        figures(&threads, rules)
    }

    #[test]
    fn microseconds_are_cut_off_and_every_sample_counts() {
        let (all, broke) = of(&[samples(&[5_999, 7_000, 6_001])], RULES);
        assert_eq!((&all[0].values, broke), (&vec![5, 7, 6], None));
        assert_eq!((all[0].min(), all[0].act(), all[0].max(), all[0].mean()), (5, 6, 7, 6.0));
        assert_eq!(all[0].missed, 5);
        assert_eq!((Figures { values: Vec::new(), ..all[0].clone() }).min(), 1_000_000);
    }

    #[test]
    fn a_latency_above_the_limit_ends_all_threads() {
        let lists = [samples(&[1_000, 1_000, 1_000, 1_000]), samples(&[2_000, 30_000, 40_000, 1_000])];
        let (all, broke) = of(&lists, Rules { limit: 29, ..RULES });
        assert_eq!(broke, Some(Break { tid: 2, value: 30 }));
        assert_eq!((all[0].values.len(), all[1].values.len(), all[1].missed), (2, 2, 2));
        assert_eq!(of(&lists, Rules { limit: 40, ..RULES }).1, None);
    }

    #[test]
    fn a_thread_that_has_its_samples_ends_the_others_a_look_later() {
        let lists = [samples(&[1_000; 50]), samples(&[1_000; 50]).split_off(5)];
        let (all, _) = of(&lists, Rules { loops: 20, ..RULES });
        assert_eq!((all[0].values.len(), all[1].values.len()), (20, 20));
        let late = vec![samples(&[1_000; 50]), samples(&[1_000; 50]).split_off(15)];
        let (all, _) = of(&late, Rules { loops: 20, ..RULES });
        assert_eq!((all[0].values.len(), all[1].values.len()), (20, 15));
    }

    #[test]
    fn a_wake_up_less_than_a_microsecond_early_is_early() {
        let (all, _) = of(&[samples(&[-1, 400, -2_000])], RULES);
        assert_eq!((&all[0].values, all[0].early), (&vec![0, 0, -2], 2));
    }
}
