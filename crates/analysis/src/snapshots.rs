//! The samples that a run has kept the trace around: what ran during each, who requested it, and
//! where a wake-up's latency went.
//!
//! Snapshots are taken because a sample was late. They show why, not how often: no rate is derived
//! from them, and time that was not recorded or not kept counts as unknown, never as quiet.

use crate::measured::Measured;
use attribution::attribute::path_section::{PathSection, SamplePath};
use attribution::attribute::section::AttributedRow;
use attribution::attribute::table::Table;
use attribution::labels::Labels;
use attribution::spans::Span;
use model::EventClass;
use model::run::{ProbeRecord, TraceRecord};
use model::sample::ProbeKind;
use model::snapshots::{SnapshotSample, SnapshotsRecord};
use serde::{Deserialize, Serialize};

/// Rows given for a sample.
const ROWS: usize = 20;
/// Spans that are remembered of a sample; of one that lasts for minutes there may be more.
const MOST_SPANS: usize = 50_000;

/// The explained samples of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SnapshotSection {
    /// Length of the stretches that the trace holds, ns.
    pub kept_ns: u64,
    /// Samples that statistics include and that reached the limit, by the samples files.
    pub over: u64,
    /// The kept samples, by time.
    pub samples: Vec<ExplainedSample>,
}

/// One sample with what ran during it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExplainedSample {
    /// Which snapshot holds it: its place in `trace.snapshots.kept` of `run.json`.
    pub snapshot: u64,
    /// The probe.
    pub probe: ProbeKind,
    /// The sample.
    pub sample: SnapshotSample,
    /// What ran in the sample's time, most of it first, at most 20; what the probe itself causes is
    /// left out. Every nanosecond is that of the innermost that ran then.
    pub rows: Vec<AttributedRow>,
    /// Time of the sample in these rows and those beyond 20, ns; the rest is the probe's own, or
    /// has no event.
    pub known_ns: u64,
    /// Number of spans beyond those remembered; their time is unknown.
    #[serde(default, skip_serializing_if = "attribution::count_ns::is_zero")]
    pub more_spans: u64,
    /// Where its latency went, for a wake-up whose way is in the trace.
    pub path: Option<SamplePath>,
}

/// Spans around the samples, as they come.
#[derive(Debug, Default)]
pub(crate) struct Around {
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    pub snapshot: u64,
    pub sample: SnapshotSample,
    /// Place of its probe.
    measured: usize,
    spans: Vec<Span>,
    pub more_spans: u64,
}

impl Around {
    /// For the samples of these snapshots, where their probes have a place.
    pub(crate) fn new(trace: &TraceRecord, measured: &[Measured<'_>]) -> Self {
        let kept = trace.snapshots.iter().flat_map(|snapshots| &snapshots.kept);
        let samples =
            (0..).zip(kept).flat_map(|(at, kept)| kept.samples.iter().map(move |sample| (at, *sample)));
        let waiting = samples.filter_map(|(snapshot, sample)| {
            let ours = |one: &Measured<'_>| {
                one.record.cpu == sample.cpu
                    && one.record.thread == sample.thread
                    && inside(one.record, &sample)
            };
            let measured = measured.iter().position(ours)?;
            Some(Waiting { snapshot, sample, measured, spans: Vec::new(), more_spans: 0 })
        });
        Self { waiting: waiting.collect() }
    }

    /// A span as the probe at this place sees it.
    pub(crate) fn span(&mut self, measured: usize, span: &Span) {
        for one in self.waiting.iter_mut().filter(|one| one.measured == measured) {
            let [t0_ns, t1_ns] = time(&one.sample);
            if span.t0_ns > t1_ns || span.t1_ns < t0_ns {
                continue;
            }
            if one.spans.len() < MOST_SPANS {
                one.spans.push(*span);
            } else {
                one.more_spans += 1;
            }
        }
    }

    /// The section.
    pub(crate) fn into_section(
        self,
        snapshots: &SnapshotsRecord,
        over: u64,
        measured: &[Measured<'_>],
        paths: &[PathSection],
        labels: &Labels,
        comm: &dyn Fn(i32) -> Option<String>,
    ) -> SnapshotSection {
        let explained = |one: Waiting| {
            let record = measured[one.measured].record;
            let (table, known_ns) = ran(one.spans, time(&one.sample));
            let mut rows = table.attributed_rows(labels, comm);
            rows.truncate(ROWS);
            ExplainedSample {
                snapshot: one.snapshot,
                probe: record.probe(),
                sample: one.sample,
                rows,
                known_ns,
                more_spans: one.more_spans,
                path: path(paths, record, &one.sample),
            }
        };
        let kept_ns =
            snapshots.kept.iter().map(|kept| kept.t1_ns.abs_diff(kept.t0_ns)).fold(0, u64::saturating_add);
        SnapshotSection { kept_ns, over, samples: self.waiting.into_iter().map(explained).collect() }
    }
}

/// From when to when a sample lasts.
fn time(sample: &SnapshotSample) -> [i64; 2] {
    [sample.t_ns, sample.t_ns.saturating_add(sample.value_ns.max(0))]
}

/// What ran, and how much of the time was in it, the probe's own left out.
fn ran(mut spans: Vec<Span>, time: [i64; 2]) -> (Table, u64) {
    spans.sort_by_key(|span| (span.t0_ns, std::cmp::Reverse(span.t1_ns)));
    let (mut table, mut known_ns) = (Table::default(), 0);
    let own = innermost(spans.iter().map(|span| [span.t0_ns, span.t1_ns]), time);
    for (span, own_ns) in spans.iter().zip(own).filter(|(span, _)| span.class != EventClass::SelfCaused) {
        // A span that began before the sample and continued into it counts.
        table.add(&Span { counts: span.counts || span.t0_ns < time[0], ..*span }, own_ns);
        known_ns += own_ns;
    }
    (table, known_ns)
}

/// Of spans by their beginnings, the longer of two first: how much of the time from `t0_ns` to
/// `t1_ns` each is the innermost, ns.
fn innermost(spans: impl Iterator<Item = [i64; 2]>, [t0_ns, t1_ns]: [i64; 2]) -> Vec<u64> {
    let mut own = Vec::new();
    let mut stack: Vec<(i64, usize)> = Vec::new();
    let mut at_ns = t0_ns;
    for (place, span) in spans.enumerate() {
        own.push(0);
        let from_ns = span[0].clamp(t0_ns, t1_ns);
        leave(&mut stack, &mut own, &mut at_ns, from_ns);
        at_ns = at_ns.max(from_ns);
        stack.push((span[1].clamp(t0_ns, t1_ns), place));
    }
    leave(&mut stack, &mut own, &mut at_ns, t1_ns);
    own
}

/// Advances to `to_ns`: time goes to the innermost open span; ended spans are closed.
fn leave(stack: &mut Vec<(i64, usize)>, own: &mut [u64], at_ns: &mut i64, to_ns: i64) {
    while let Some(&(end_ns, place)) = stack.last() {
        let until_ns = end_ns.min(to_ns);
        own[place] += (until_ns - *at_ns).max(0) as u64;
        *at_ns = until_ns.max(*at_ns);
        if end_ns > to_ns {
            return;
        }
        stack.pop();
    }
}

/// Whether a sample is of this probe's time.
fn inside(record: &ProbeRecord, sample: &SnapshotSample) -> bool {
    (record.t0_ns..=record.t1_ns).contains(&sample.t_ns)
}

/// The way of a sample, where it is among those that were taken apart.
fn path(paths: &[PathSection], record: &ProbeRecord, sample: &SnapshotSample) -> Option<SamplePath> {
    let ours = paths.iter().filter(|path| (path.cpu, path.thread) == (record.cpu, record.thread));
    let same = |one: &&SamplePath| one.t_ns == sample.t_ns && one.value_ns == sample.value_ns;
    ours.flat_map(|path| &path.worst).find(same).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_interrupt_takes_its_time_out_of_the_task_that_it_interrupts() {
        // A task from before the sample until behind it, an interrupt in it, a softirq in that, and
        // another one behind.
        let spans = [[-50, 200], [10, 40], [20, 30], [60, 70]];
        assert_eq!(innermost(spans.into_iter(), [0, 100]), [60, 20, 10, 10]);
    }

    proptest! {
        #[test]
        fn every_nanosecond_is_in_the_innermost_span_alone(
            list in proptest::collection::vec((-20i64..120, 0i64..60), 0..20),
        ) {
            let mut spans: Vec<[i64; 2]> = list.iter().map(|&(t, n)| [t, t + n]).collect();
            spans.sort_by_key(|span| (span[0], std::cmp::Reverse(span[1])));
            let own = innermost(spans.iter().copied(), [0, 100]);
            let covered = (0..100).filter(|t| spans.iter().any(|span| span[0] <= *t && *t < span[1])).count() as u64;
            prop_assert!(own.iter().sum::<u64>() <= covered);
            // Kernel spans nest; where they do, nothing that is covered is left out.
            let nested = |a: &[i64; 2], b: &[i64; 2]| b[0] >= a[1] || b[1] <= a[1];
            let all = spans.iter().enumerate().all(|(at, a)| spans[at + 1..].iter().all(|b| nested(a, b)));
            if all {
                prop_assert_eq!(own.iter().sum::<u64>(), covered);
            }
        }
    }
}
