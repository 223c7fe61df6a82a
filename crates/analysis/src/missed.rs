//! Releases that passed unserved, charged with the lateness they had.
//!
//! A probe that wakes late serves one release and swallows those that passed meanwhile; a statistic
//! that leaves them out flatters the machine ("coordinated omission"). Release i due at t, served
//! at t + L with period P: the k-th release after it was due at t + k·P and had lateness L − k·P at
//! that moment. Its own sample file says how many were swallowed, in the sample that comes *after*
//! them.

use model::Sample;
use model::run::ProbeRecord;
use model::sample::{ProbeKind, flag};

/// A release that passed unserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charged {
    /// When it was due, CLOCK_MONOTONIC ns.
    pub release_ns: i64,
    /// How late it was when the probe resumed with the next one, ns.
    pub lateness_ns: i64,
    /// Which row of releases it belongs to: those that one late sample swallowed. From 0,
    /// ascending.
    pub row: u32,
}

/// The releases that passed unserved in the window of a wake-up probe. Empty for a probe without
/// releases.
pub(crate) fn of_probe(record: &ProbeRecord, samples: &[Sample]) -> Vec<Charged> {
    // The jobs of a task set wait for one another: a swallowed release is charged where the set is
    // known.
    match record.detail.releases().filter(|_| record.probe() != ProbeKind::Taskset) {
        Some(releases) => {
            let from_ns = samples.first().map_or(i64::MIN, |first| releases.behind_warm_up_ns(first.t_ns));
            let mut all = charged(samples, releases.period_ns, releases.served.missed);
            all.retain(|release| release.release_ns >= from_ns);
            all
        }
        None => Vec::new(),
    }
}

/// Every release that passed unserved, in the order of the samples.
///
/// `recorded` is the probe's own total: what it counts beyond the samples passed behind the last
/// one.
pub(crate) fn charged(samples: &[Sample], period_ns: u64, recorded: u64) -> Vec<Charged> {
    let period = period_ns.min(i64::MAX as u64) as i64;
    let mut charged = Vec::new();
    let mut before: Option<&Sample> = None;
    for sample in samples {
        if sample.missed > 0 && sample.counts() && !before.is_some_and(untimely) {
            let missed = u64::from(sample.missed);
            let cause = match before.filter(|cause| cause.seq.wrapping_add(1) == sample.seq) {
                Some(cause) => Cause::of(cause),
                None => Cause::lost(sample, period),
            };
            charge(&mut charged, cause, missed, period);
        }
        before = Some(sample);
    }
    let swallowed: u64 = samples.iter().map(|sample| u64::from(sample.missed)).sum();
    if let Some(last) = before
        && recorded > swallowed
        && !untimely(last)
    {
        charge(&mut charged, Cause::of(last), recorded - swallowed, period);
    }
    charged
}

/// Whether a sample's value is no lateness that releases behind it could share: a step of the clock
/// put them into the past, or the probe was on another CPU.
fn untimely(sample: &Sample) -> bool {
    sample.flags & (flag::CLOCK_STEP | flag::CPU_TAKEN) != 0
}

/// First and last release of each row, ns.
pub(crate) fn rows(charged: &[Charged]) -> Vec<[i64; 2]> {
    let rows = charged.chunk_by(|a, b| a.row == b.row);
    rows.filter_map(|row| Some([row.first()?.release_ns, row.last()?.release_ns])).collect()
}

/// The late sample that swallowed a row of releases.
struct Cause {
    /// When it was due, ns.
    release_ns: i64,
    /// Its latency, ns; `None` where the sample was itself lost.
    value_ns: Option<i64>,
}

impl Cause {
    fn of(sample: &Sample) -> Self {
        Self { release_ns: sample.t_ns, value_ns: Some(sample.value_ns) }
    }

    /// Known only by the sample that comes after the row.
    fn lost(next: &Sample, period: i64) -> Self {
        let back = period.saturating_mul(i64::from(next.missed) + 1);
        Self { release_ns: next.t_ns.saturating_sub(back), value_ns: None }
    }
}

/// The most releases of a probe charged one by one: some hundred bytes of memory go into each by
/// the time a report is written.
const MOST: usize = 3_000_000;

/// What is said of a probe of which more releases passed unserved.
pub(crate) fn uncharged(record: &ProbeRecord) -> Option<String> {
    let missed = record.detail.releases()?.served.missed;
    (missed > MOST as u64 && record.probe() != ProbeKind::Taskset).then(|| {
        format!(
            "CPU {}, {} window of phase {}: of {missed} missed releases only the first {MOST} are charged, so charged values are too small",
            record.cpu,
            record.probe().name(),
            record.phase
        )
    })
}

fn charge(charged: &mut Vec<Charged>, cause: Cause, missed: u64, period: i64) {
    let row = charged.last().map_or(0, |last| last.row.saturating_add(1));
    let missed = missed.min(MOST.saturating_sub(charged.len()) as u64) as i64;
    for k in 1..=missed {
        // Release k had passed when the one behind the last missed had not: at least (missed - k)
        // periods late. Where the sample that swallowed them was itself lost, one period more is
        // the bound from the other side.
        let least = (missed - k).saturating_mul(period);
        let since = k.saturating_mul(period);
        let lateness = match cause.value_ns {
            Some(value) => value.saturating_sub(since),
            None => least.saturating_add(period),
        };
        let release_ns = cause.release_ns.saturating_add(since);
        charged.push(Charged { release_ns, lateness_ns: lateness.max(least), row });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample(seq: u64, value_ns: i64, missed: u32) -> Sample {
        Sample { t_ns: seq as i64 * 1000, value_ns, seq, missed, flags: 0 }
    }

    fn lateness_ns(samples: &[Sample], period_ns: u64, recorded: u64) -> Vec<i64> {
        charged(samples, period_ns, recorded).iter().map(|release| release.lateness_ns).collect()
    }

    #[test]
    fn each_is_charged_when_it_was_due_and_to_the_sample_that_swallowed_it() {
        let (late, next) = (sample(0, 2_500, 0), Sample { t_ns: 3_000, ..sample(1, 1_200, 2) });
        let releases = charged(&[late, next], 1000, 3);
        let releases: Vec<_> = releases.iter().map(|c| (c.release_ns, c.lateness_ns, c.row)).collect();
        assert_eq!(releases, [(1_000, 1_500, 0), (2_000, 500, 0), (4_000, 200, 1)]);
        assert_eq!(rows(&charged(&[late, next], 1000, 3)), [[1_000, 2_000], [4_000, 4_000]]);
    }

    #[test]
    fn a_lost_cause_leaves_the_releases_where_the_next_sample_says() {
        let samples = [sample(0, 10, 0), Sample { t_ns: 9_000, ..sample(5, 20, 2) }];
        let due: Vec<_> = charged(&samples, 1000, 2).iter().map(|c| c.release_ns).collect();
        assert_eq!(due, [7_000, 8_000]);
    }

    #[test]
    fn a_late_sample_charges_what_it_swallowed() {
        let samples = [sample(0, 10, 0), sample(1, 3500, 0), sample(2, 20, 3)];
        assert_eq!(lateness_ns(&samples, 1000, 3), [2500, 1500, 500]);
    }

    #[test]
    fn what_a_step_of_the_clock_swallowed_was_never_late() {
        let stepped = Sample { flags: flag::CLOCK_STEP, ..sample(1, 3_600_000, 0) };
        assert_eq!(
            lateness_ns(&[sample(0, 10, 0), stepped, sample(2, 2_100, 3_600)], 1000, 3_602),
            [1100, 100]
        );
        assert_eq!(lateness_ns(&[sample(0, 10, 0), stepped], 1000, 3_600), [0i64; 0]);
    }

    #[test]
    fn more_than_fit_into_memory_are_not_charged() {
        let stopped = sample(0, i64::MAX / 2, 0);
        assert_eq!(charged(&[stopped], 1000, 500_000_000).len(), MOST);
    }

    #[test]
    fn behind_the_last_sample_too() {
        assert_eq!(lateness_ns(&[sample(0, 2100, 0)], 1000, 2), [1100, 100]);
    }

    #[test]
    fn a_cause_that_was_lost_is_bounded_from_above() {
        let samples = [sample(0, 10, 0), sample(5, 20, 2)];
        assert_eq!(lateness_ns(&samples, 1000, 2), [2000, 1000]);
    }

    /// A wake-up of the warm-up that came many periods late ended it: what it swallowed behind its
    /// end is charged, the rest of the warm-up is not.
    #[test]
    fn a_late_wake_up_ends_the_warm_up_and_what_it_swallowed_behind_it_counts() {
        let late = Sample { flags: flag::WARM_UP, ..sample(0, 6_500, 0) };
        let next = Sample { t_ns: 7_000, ..sample(1, 20, 6) };
        let mut record = crate::testing::record(ProbeKind::Wakeup);
        let releases = record.detail.releases_mut().unwrap();
        (releases.period_ns, releases.served.missed, releases.warm_up) = (1_000, 6, Some(3));
        let due = |record: &ProbeRecord| -> Vec<i64> {
            of_probe(record, &[late, next]).iter().map(|one| one.release_ns).collect()
        };
        assert_eq!(due(&record), [3_000, 4_000, 5_000, 6_000]);
        // Older versions counted samples, and their runs are read as they were.
        record.detail.releases_mut().unwrap().warm_up = None;
        assert_eq!(due(&record).len(), 6);
    }

    #[test]
    fn warm_up_charges_nothing() {
        let warm = Sample { flags: model::sample::flag::WARM_UP, ..sample(1, 5, 1) };
        assert!(lateness_ns(&[sample(0, 1500, 0), warm], 1000, 1).is_empty());
    }

    proptest! {
        // A probe as the wake-up loop is written, served with arbitrary latencies.
        #[test]
        fn every_release_is_charged_its_true_lateness(late in proptest::collection::vec(0i64..5000, 1..50)) {
            let (mut release, mut missed, mut samples, mut truth) = (0i64, 0u32, Vec::new(), Vec::new());
            for (seq, &value_ns) in late.iter().enumerate() {
                samples.push(Sample { t_ns: release, value_ns, seq: seq as u64, missed, flags: 0 });
                let (now, due) = (release + value_ns, release);
                missed = (value_ns / 1000) as u32;
                truth.extend((1..=i64::from(missed)).map(|k| (due + k * 1000, now - (due + k * 1000))));
                release += (1 + i64::from(missed)) * 1000;
            }
            let charged = charged(&samples, 1000, truth.len() as u64);
            let charged: Vec<_> = charged.iter().map(|c| (c.release_ns, c.lateness_ns)).collect();
            prop_assert_eq!(charged, truth);
        }
    }
}
