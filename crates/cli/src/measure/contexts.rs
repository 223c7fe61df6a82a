//! Samples that reached the threshold, with what was around them: `contexts/` of the run, for the
//! screen.

use super::carry_out::Outcome;
use super::table::time;
use model::context::{Context, Contexts, Counted};
use model::run::ProbeRecord;
use model::store;
use report::format;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Contexts that are shown; all kept ones are in the run.
const SHOWN: usize = 5;
/// Rows of `/proc/interrupts` and `/proc/softirqs` that are shown of each.
const ROWS: usize = 6;

/// Samples that reached the threshold, where there was one.
pub(super) fn over(outcome: &Outcome) -> Option<u64> {
    outcome.document.run.probes.iter().map(|record| Some(record.over_threshold.as_ref()?.over)).sum()
}

/// How many reached it, and the largest with what was around them.
pub(super) fn text(outcome: &Outcome) -> String {
    let mut text = String::new();
    let accounts = || outcome.document.run.probes.iter().filter_map(|record| record.over_threshold.as_ref());
    let Some(threshold_ns) = accounts().map(|account| account.threshold_ns).next() else { return text };
    let (over, not_kept) = accounts().fold((0, 0), |sum, one| (sum.0 + one.over, sum.1 + one.not_kept));
    let _ = write!(text, "{over} samples at or over {}", format::ns(threshold_ns));
    let mut kept = kept(outcome);
    if kept.is_empty() {
        return text + "\n";
    }
    let _ = writeln!(
        text,
        ", {not_kept} of them without their context; contexts of {} in {}/",
        kept.len(),
        store::CONTEXTS
    );
    kept.sort_by_key(|(_, context)| std::cmp::Reverse(context.sample.value_ns));
    for (record, context) in kept.iter().take(SHOWN) {
        let after_s = (context.sample.t_ns - record.t0_ns) as f64 / 1e9;
        let value = time(Some(context.sample.value_ns));
        let _ = writeln!(text, "  CPU {} at {after_s:.3} s: {value}", record.cpu);
        if let Some(counted) = &context.counted {
            let _ = writeln!(text, "    {}", around(counted));
        }
    }
    text
}

/// All that were kept. A file that cannot be read has none: the samples themselves are elsewhere.
fn kept(outcome: &Outcome) -> Vec<(&ProbeRecord, Context)> {
    let files = outcome.document.run.probes.iter().filter_map(|record| {
        let file = record.over_threshold.as_ref()?.contexts_file.as_ref()?;
        let read: Contexts = store::read_json(&outcome.dir.join(file)).ok()?;
        Some(read.contexts.into_iter().map(move |context| (record, context)))
    });
    files.flatten().collect()
}

/// What the kernel counted around a sample, most frequent first.
fn around(counted: &Counted) -> String {
    let rows = |rows: &BTreeMap<String, BTreeMap<u32, u64>>| {
        let mut sums: Vec<(u64, &str)> =
            rows.iter().map(|(row, counts)| (counts.values().sum(), row.as_str())).collect();
        sums.sort_unstable_by(|one, other| other.cmp(one));
        let more = sums.len().saturating_sub(ROWS);
        let mut text = String::new();
        for (count, row) in sums.iter().take(ROWS) {
            let _ = write!(text, " {row} {count}");
        }
        if more > 0 {
            let _ = write!(text, " and {more} more");
        }
        if text.is_empty() { " none".to_owned() } else { text }
    };
    let mut text = format!(
        "in the {} around it: interrupts{}; softirqs{}",
        format::ns(counted.t1_ns - counted.t0_ns),
        rows(&counted.interrupts),
        rows(&counted.softirqs)
    );
    if let Some(waited_ns) = counted.run_delay_ns {
        let _ = write!(text, "; ready but not running for {}", format::ns(waited_ns as i64));
    }
    let steal_ns: u64 = counted.steal_ns.values().sum();
    if steal_ns > 0 {
        let _ = write!(text, "; steal {}", format::ns(steal_ns as i64));
    }
    text
}
