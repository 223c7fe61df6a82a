//! Samples that the trace was kept around, in the words that text and page share: the account of
//! all of them, and what ran during each.

use crate::words::step_name;
use crate::{Document, format};
use analysis::snapshots::{ExplainedSample, SnapshotSection};
use attribution::attribute::Confidence;
use attribution::attribute::path_section::PathBox;
use attribution::attribute::section::AttributedRow;
use model::EventClass;
use model::snapshots::SnapshotsRecord;

/// What the run says of its snapshots, and what they show.
pub(crate) fn snapshots(document: &Document) -> Option<(&SnapshotsRecord, &SnapshotSection)> {
    document.run.trace.as_ref()?.snapshots.as_ref().zip(document.analysis.snapshots.as_ref())
}

/// The kept samples, largest first.
pub(crate) fn largest(section: &SnapshotSection) -> Vec<&ExplainedSample> {
    let mut samples: Vec<_> = section.samples.iter().collect();
    samples.sort_by_key(|one| (std::cmp::Reverse(one.sample.value_ns), one.sample.t_ns));
    samples
}

/// What became of every sample that reached the limit, and of every moment of the window.
/// `stopped`: the measurement ended with the first of them, whose stretch was written after that.
pub(crate) fn account(record: &SnapshotsRecord, section: &SnapshotSection, stopped: bool) -> Vec<String> {
    let limit = format::ns(record.over_ns);
    let kept: u64 = record.kept.iter().map(|kept| kept.samples_over).fold(0, u64::saturating_add);
    let mut lines = vec![format!(
        "{} of at least {limit}: {kept} in {} kept, {} smaller than the kept ones, {} in snapshots given up for larger ones, {} where \
         nothing was recorded",
        format::plural(record.over, "sample"),
        format::plural(record.kept.len() as u64, "snapshot"),
        record.smaller,
        record.given_up,
        record.unrecorded
    )];
    if section.over != record.over {
        lines.push(format!(
            "the samples files hold {} of at least {limit}: the others came when recording had ended",
            format::plural(section.over, "sample")
        ));
    }
    let holds = format!(
        "the trace holds {} of {} recorded",
        format::span(section.kept_ns),
        format::span(record.recorded_ns)
    );
    lines.push(match record.taken {
        0 | 1 if stopped => holds,
        taken => format!(
            "{holds}; for {} nothing was recorded, while {} written",
            format::ns(record.paused_ns as i64),
            if taken == 1 { "one snapshot was".to_owned() } else { format!("{taken} snapshots were") }
        ),
    });
    lines
}

/// What ran, and who caused it.
pub(crate) fn row(row: &AttributedRow) -> String {
    let by = match (&row.source, row.confidence) {
        (Some(source), Some(confidence)) => {
            let pid = source.pid.filter(|pid| *pid > 0).map(|pid| format!("[{pid}]")).unwrap_or_default();
            let site = source.place().map(|site| format!(" by {site}")).unwrap_or_default();
            let how = if confidence == Confidence::Exact { "exact" } else { "by order" };
            format!(", caused by {}{pid} on CPU {}{site} ({how})", source.who, source.cpu)
        }
        _ if row.class == EventClass::TimerTick => ", the CPU's own".to_owned(),
        _ if row.class == EventClass::Switch => ", woken by: unknown".to_owned(),
        _ => ", source unknown".to_owned(),
    };
    let times = if row.count > 1 { format!(" {} times", row.count) } else { String::new() };
    format!("{} {}{times}{by}", row.class.name(), row.label)
}

/// Time that no row has, by the steps of the wake-up that it stayed with; empty where it was not
/// taken apart.
pub(crate) fn steps(one: &ExplainedSample) -> Vec<(u64, String)> {
    let Some(path) = &one.path else { return Vec::new() };
    let mut steps: Vec<(u64, String)> = Vec::new();
    let elsewhere = |part: &&PathBox| part.is_step() || part.blocking.is_some() || part.cpu != one.sample.cpu;
    for part in path.parts.iter().filter(elsewhere) {
        let place = if part.cpu == one.sample.cpu { String::new() } else { format!(" on CPU {}", part.cpu) };
        let step = step_name(part.step);
        let words = match part.what() {
            Some(what) => format!("{what}{place}; {step}"),
            None => format!("{step}{place}"),
        };
        match steps.iter_mut().find(|(_, known)| *known == words) {
            Some((ns, _)) => *ns = ns.saturating_add(part.ns),
            None => steps.push((part.ns, words)),
        }
    }
    steps
}

/// Time of the sample in no row: the probe's own, or without an event.
pub(crate) fn rest_ns(one: &ExplainedSample) -> u64 {
    (one.sample.value_ns.max(0) as u64).saturating_sub(one.known_ns)
}
