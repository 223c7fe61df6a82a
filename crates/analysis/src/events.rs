//! The interference events of one window on one CPU, and the kernel's own counters beside them.

use crate::tally::Tally;
use attribution::decode::SOFTIRQS;
use attribution::labels::Labels;
use model::EventClass;
use model::events::{EventCatalogue, Role};
use model::run::{ProbeRecord, Window};
use model::sample::ProbeKind;
use serde::{Deserialize, Serialize};
use stats::bounds::count_upper;
use std::collections::{BTreeMap, BTreeSet};

/// The interference events of one window on one CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WindowEvents {
    /// Phase of the window.
    pub phase: String,
    /// Probe of the window.
    pub probe: ProbeKind,
    /// The CPU.
    pub cpu: u32,
    /// Number of its thread in the window.
    #[serde(default)]
    pub thread: u32,
    /// Time over which events were counted, ns: the probe's own span, for noise only the stretches
    /// in which the loop ran.
    pub duration_ns: u64,
    /// Start of the first slot of [`ClassCount::over_time`], CLOCK_MONOTONIC ns.
    #[serde(default)]
    pub t0_ns: i64,
    /// Length of a slot, ns; 0 where the window is shorter than one.
    #[serde(default)]
    pub slot_ns: u64,
    /// Every class, those with a zero count included.
    pub classes: Vec<ClassCount>,
    /// Raw counts of every recorded event inside the counted time, `system:name` → count.
    pub by_event: BTreeMap<String, u64>,
    /// The kernel's own counters beside the trace's, over the whole window.
    pub cross_checks: Vec<CrossCheck>,
}

/// One class in one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassCount {
    /// The class.
    pub class: EventClass,
    /// Whether this kernel has an event of this class, so that zero means zero. False for a zero
    /// count where the CPU's trace is not whole; a count above zero is a lower bound there.
    pub observable: bool,
    /// Events.
    pub count: u64,
    /// Time they took, nested events excluded, ns. A lower bound: entry and exit code lies outside
    /// the tracepoints.
    pub net_ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
    /// Events per second.
    pub per_s: f64,
    /// One-sided 95 % upper bound of the rate per second (Poisson, exact; 3/T for a zero count).
    /// Bounds nothing where the class is not observable or the CPU's trace is not whole.
    pub upper_per_s: f64,
    /// What ran, most frequent first, at most ten.
    pub labels: Vec<LabelCount>,
    /// Events in each slot of the window, at most 200; empty where none came. What came behind the
    /// last whole slot is in none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_time: Vec<u32>,
}

/// What ran, within a class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelCount {
    /// Function, interrupt name, softirq name or task.
    pub label: String,
    /// Events.
    pub count: u64,
    /// Time they took, nested events excluded, ns.
    pub net_ns: u64,
}

/// The kernel's own counter beside the trace's count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrossCheck {
    /// Row of `/proc/interrupts` or `/proc/softirqs`.
    pub row: String,
    /// Growth of the kernel's counter, read just before and just after the window.
    pub kernel: u64,
    /// Events in the trace.
    pub traced: u64,
    /// Whether the two agree: the trace never has more, and at most a few less (the edges of the
    /// window).
    pub agrees: bool,
}

/// The most labels listed for a class.
const MOST_LABELS: usize = 10;
/// The most slots of a window, for charts.
const MOST_SLOTS: usize = 200;
/// How much trace and counter may differ at the edges of a window: the counters are read just
/// outside it.
const EDGE: u64 = 8;
/// The same, in parts of the kernel's count.
const EDGE_PART: u64 = 50;

/// The context for reading the sums of all windows.
pub struct Context<'a> {
    /// The event catalogue.
    pub catalogue: &'a EventCatalogue,
    /// Events that were recorded.
    pub recorded: &'a [String],
    /// Names of the events by number.
    pub names: &'a [String],
    /// Texts of the labels.
    pub labels: &'a Labels,
    /// Classes of which something was recorded.
    pub observable: &'a BTreeSet<EventClass>,
}

/// The section of one window on one CPU. `trace_whole`: nothing of this CPU's trace is missing, so
/// that counts can be compared and zero means zero.
pub fn window_events(
    context: &Context<'_>,
    record: &ProbeRecord,
    window: &Window,
    tally: &Tally,
    trace_whole: bool,
) -> WindowEvents {
    let classes = EventClass::ALL.iter().copied().filter(|class| *class != EventClass::Unexplained);
    let by_event = context.names.iter().zip(&tally.by_event).filter(|(_, count)| **count > 0);
    WindowEvents {
        phase: record.phase.clone(),
        probe: record.probe(),
        cpu: record.cpu,
        thread: record.thread,
        duration_ns: tally.duration_ns(),
        t0_ns: record.t0_ns,
        slot_ns: tally.block_ns() * together(tally) as u64,
        classes: classes.map(|class| class_count(context, tally, class, trace_whole)).collect(),
        by_event: by_event.map(|(name, count)| (name.clone(), *count)).collect(),
        cross_checks: cross_checks(context, window, tally, trace_whole),
    }
}

fn class_count(context: &Context<'_>, tally: &Tally, class: EventClass, trace_whole: bool) -> ClassCount {
    let sum = tally.class(class);
    let seconds = tally.duration_ns() as f64 / 1e9;
    let per_s = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
    ClassCount {
        class,
        observable: context.observable.contains(&class) && (trace_whole || sum.total.count > 0),
        count: sum.total.count,
        net_ns: sum.total.ns,
        max_ns: sum.max_ns,
        per_s: per_s(sum.total.count as f64),
        upper_per_s: per_s(count_upper(sum.total.count)),
        labels: labels(context, tally, class),
        over_time: over_time(&sum.blocks, together(tally)),
    }
}

/// Blocks that make a slot, so that no window has more than [`MOST_SLOTS`].
fn together(tally: &Tally) -> usize {
    tally.block_exposure_ns().len().div_ceil(MOST_SLOTS)
}

/// Counts of so many blocks each; nothing where nothing came.
fn over_time(blocks: &[u32], together: usize) -> Vec<u32> {
    if together == 0 || blocks.iter().all(|count| *count == 0) {
        return Vec::new();
    }
    blocks
        .chunks(together)
        .map(|slot| slot.iter().fold(0u32, |sum, count| sum.saturating_add(*count)))
        .collect()
}

fn labels(context: &Context<'_>, tally: &Tally, class: EventClass) -> Vec<LabelCount> {
    let of_class = tally.labels.iter().filter(|((of, _), _)| *of == class as u32);
    let mut labels: Vec<_> = of_class
        .map(|((_, label), sum)| LabelCount {
            label: context.labels.text(*label).to_owned(),
            count: sum.count,
            net_ns: sum.ns,
        })
        .collect();
    labels.sort_by(|a, b| (b.count, b.net_ns, &a.label).cmp(&(a.count, a.net_ns, &b.label)));
    labels.truncate(MOST_LABELS);
    labels
}

fn cross_checks(context: &Context<'_>, window: &Window, tally: &Tally, trace_whole: bool) -> Vec<CrossCheck> {
    let mut checks = Vec::new();
    let mut check = |row: &str, counters: &BTreeMap<String, BTreeMap<u32, u64>>, traced: u64| {
        let kernel = counters.get(row).and_then(|cpus| cpus.get(&tally.cpu)).copied().unwrap_or(0);
        checks.push(CrossCheck {
            row: row.to_owned(),
            kernel,
            traced,
            agrees: trace_whole && agrees(kernel, traced),
        });
    };
    // Counters that were not read at all are no zeros.
    if !window.interrupts.is_empty() {
        for (row, traced) in interrupt_rows(context, tally) {
            check(row, &window.interrupts, traced);
        }
    }
    let softirq_events =
        context.catalogue.events.iter().filter(|spec| spec.row.as_deref() == Some("softirqs"));
    if !window.softirqs.is_empty()
        && softirq_events.into_iter().any(|spec| context.recorded.contains(&spec.name))
    {
        for (row, traced) in SOFTIRQS.iter().zip(tally.softirqs) {
            check(row, &window.softirqs, traced);
        }
    }
    checks
}

/// Rows of `/proc/interrupts` of which every event was recorded, with the counts in the trace.
fn interrupt_rows<'a>(context: &Context<'a>, tally: &Tally) -> Vec<(&'a str, u64)> {
    let mut rows: Vec<(&str, Option<u64>)> = Vec::new();
    for (number, spec) in context.catalogue.events.iter().enumerate() {
        let Some(row) = spec.row.as_deref().filter(|row| *row != "softirqs") else { continue };
        let traced = match (spec.role, spec.class) {
            // Every handler of an NMI reports; the kernel counts the NMI once.
            (Role::Instant, Some(EventClass::Nmi)) => tally.nmis,
            _ => tally.whole.get(number).copied().unwrap_or(0),
        };
        let traced = context.recorded.contains(&spec.name).then_some(traced);
        match rows.iter_mut().find(|(known, _)| *known == row) {
            Some((_, sum)) => *sum = sum.zip(traced).map(|(a, b)| a + b),
            None => rows.push((row, traced)),
        }
    }
    rows.into_iter().filter_map(|(row, traced)| traced.map(|traced| (row, traced))).collect()
}

fn agrees(kernel: u64, traced: u64) -> bool {
    traced <= kernel && kernel - traced <= EDGE.max(kernel / EDGE_PART)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_hold_what_their_blocks_hold() {
        assert_eq!(over_time(&[1, 0, 2, 5, 7], 2), [1, 7, 7]);
        assert_eq!(over_time(&[0, 0], 1), [0; 0]);
        assert_eq!(over_time(&[], 0), [0; 0]);
    }

    #[test]
    fn the_trace_never_has_more_and_at_most_an_edge_less() {
        assert!(agrees(100, 100) && agrees(100, 92) && agrees(10_000, 9_800));
        assert!(!agrees(100, 101) && !agrees(100, 91) && !agrees(10_000, 9_799));
        assert!(agrees(0, 0) && !agrees(0, 1));
    }
}
