//! cyclictest's output to the letter (rt-tests 2.4, `print_stat()`, `print_hist()`, `print_tids()`,
//! `trigger_print()` of cyclictest.c), because scripts read it. Comment lines (`#`) before it hold
//! what cyclictest has no word for: scripts take the last lines, or those without `#`.

use super::figures::{Break, Figures};
use super::plan::{Plan, Thread};
use std::fmt::Write;
use std::path::Path;

/// A line of live or final values.
pub(super) struct Line {
    /// Thread id.
    pub(super) tid: i32,
    /// Priority.
    pub(super) priority: u32,
    /// Samples.
    pub(super) cycles: u64,
    /// Smallest, last, mean and largest latency, in units.
    pub(super) figures: [i64; 4],
}

impl Line {
    /// The last line of a thread.
    pub(super) fn of(figures: &Figures) -> Self {
        let Figures { tid, priority, values, .. } = figures;
        let four = [figures.min(), figures.act(), figures.mean() as i64, figures.max()];
        Self { tid: *tid, priority: *priority, cycles: values.len() as u64, figures: four }
    }
}

/// One line per thread.
pub(super) fn stat(lines: &[Line], threads: &[Thread], nsecs: bool) -> String {
    let width = if nsecs { 8 } else { 5 };
    let mut text = String::new();
    for (number, (line, thread)) in lines.iter().zip(threads).enumerate() {
        let (Line { tid, priority, cycles, figures: [min, act, mean, max] }, interval) =
            (line, thread.interval_us);
        let _ = writeln!(
            text,
            "T:{number:2} ({tid:5}) P:{priority:2} I:{interval} C:{cycles:7} Min:{min:7} Act:{act:width$} Avg:{mean:width$} Max:{max:8}"
        );
    }
    text
}

/// The screen above the lines of the threads.
pub(super) fn head(plan: &Plan, loadavg: &str) -> String {
    let other = plan.threads.iter().any(|thread| !thread.policy.is_real_time());
    let policy = if other { format!("{}/other", plan.policy) } else { plan.policy.to_owned() };
    format!("policy: {policy}: loadavg: {loadavg}          \n\n")
}

/// What `--verbose` says of the CPUs.
pub(super) fn counts(plan: &Plan, present: usize, online: usize) -> String {
    let used = if plan.listed > 0 { format!("Using {} cpus.\n", plan.listed) } else { String::new() };
    format!("Max CPUs = {present}\nOnline CPUs = {online}\n{used}")
}

/// What `--verbose` says of the threads before they start.
pub(super) fn threads(plan: &Plan) -> String {
    let mut text = String::new();
    for (number, thread) in plan.threads.iter().enumerate() {
        if thread.listed {
            let _ = writeln!(text, "Thread {number} using cpu {}.", thread.cpus);
        }
        // cyclictest adds the distance first: it names the interval of the thread after this one.
        let next_us = thread.interval_us.saturating_add(plan.distance_us);
        let _ = writeln!(text, "Thread {number} Interval: {next_us}");
    }
    text
}

/// What cyclictest does not count, and where the samples are, if they are kept.
pub(super) fn comments(all: &[Figures], run: Option<&Path>) -> String {
    let row = |name: &str, count: fn(&Figures) -> u64| {
        comment(name, 5, &all.iter().map(count).collect::<Vec<_>>(), None)
    };
    let mut text = row("Missed releases", |one| one.missed);
    if all.iter().any(|one| one.lost > 0) {
        text += &row("Lost samples", |one| one.lost);
    }
    if all.iter().any(|one| one.early > 0) {
        text += &row("Early wake-ups", |one| one.early);
    }
    text + &run.map_or_else(String::new, |run| format!("# Run directory: {}\n", run.display()))
}

/// Every sample, or the largest of each `reduction` samples: thread, number, value.
pub(super) fn values(all: &[Figures], reduction: u32) -> String {
    let mut text = String::new();
    for (thread, one) in all.iter().enumerate() {
        for (group, values) in one.values.chunks_exact(reduction as usize).enumerate() {
            // Of equal ones the first; below zero, which nothing there exceeds, cyclictest's own
            // start.
            let first = (group * reduction as usize, 0);
            let (number, value) = (first.0..)
                .zip(values.iter().copied())
                .fold(first, |most, one| if one.1 > most.1 { one } else { most });
            let _ = writeln!(text, "{thread:8}:{number:8}:{value:8}");
        }
    }
    text
}

/// The samples above `--spike`, in order of time, as many as are wanted.
pub(super) fn spikes(all: &[Figures], above: u32, nodes: usize) -> String {
    let of = |(thread, one): (usize, &Figures)| {
        let both = one.values.iter().copied().zip(one.times_us.iter().copied());
        both.filter(|(value, _)| *value > i64::from(above))
            .map(|(value, time)| (time, thread, value))
            .collect::<Vec<_>>()
    };
    let mut found: Vec<_> = all.iter().enumerate().flat_map(of).collect();
    if found.is_empty() {
        return String::new();
    }
    found.sort_unstable();
    let mut text = "\n".to_owned();
    for (time_us, thread, value) in found.iter().take(nodes) {
        let _ = writeln!(text, "T:{thread:2} Spike:{value:8}: TS: {time_us:12}");
    }
    let _ = write!(text, "spikes = {}\n\n", found.len());
    text
}

/// The histogram and what belongs to it; with `sum`, a column for all threads if there are several.
pub(super) fn histogram(all: &[Figures], bins: u32, sum: bool) -> String {
    let sum = sum && all.len() > 1;
    let counted: Vec<_> = all.iter().map(|one| one.bins(bins)).collect();
    let mut text = "# Histogram\n".to_owned();
    for bin in 0..bins as usize {
        let mut row: Vec<u64> = counted.iter().map(|(counts, _)| counts[bin]).collect();
        row.extend(sum.then(|| row.iter().sum::<u64>()));
        let row: Vec<_> = row.iter().map(|count| format!("{count:06}")).collect();
        let _ = writeln!(text, "{bin:06} {}", row.join("\t"));
    }
    let totals: Vec<u64> = counted.iter().map(|(counts, _)| counts.iter().sum()).collect();
    let above: Vec<u64> = counted.iter().map(|(_, above)| above.len() as u64).collect();
    text += &comment("Total", 9, &totals, sum.then(|| totals.iter().sum()));
    text += &comment("Min Latencies", 5, &each(all, Figures::min), None);
    text += &comment("Avg Latencies", 5, &each(all, |one| one.mean() as i64), None);
    text += &comment(
        "Max Latencies",
        5,
        &each(all, Figures::max),
        sum.then(|| each(all, Figures::max).into_iter().max().unwrap_or(0)),
    );
    text += &comment("Histogram Overflows", 5, &above, sum.then(|| above.iter().sum()));
    text += "# Histogram Overflow at cycle number:\n";
    for (thread, (_, above)) in counted.iter().enumerate() {
        let numbers: Vec<_> = above.iter().take(bins as usize).map(|number| format!("{number:05}")).collect();
        let _ = write!(text, "# Thread {thread}: {}", numbers.join(" "));
        if let Some(others) = above.len().checked_sub(bins as usize) {
            let _ = write!(text, " # {others:05} others");
        }
        text += "\n";
    }
    text + "\n"
}

fn each(all: &[Figures], figure: fn(&Figures) -> i64) -> Vec<i64> {
    all.iter().map(figure).collect()
}

fn comment<T: std::fmt::Display>(name: &str, width: usize, values: &[T], sum: Option<T>) -> String {
    let values = values.iter().chain(&sum).map(|value| format!("{value:0width$}"));
    format!("# {name}: {}\n", values.collect::<Vec<_>>().join(" "))
}

/// What `--breaktrace` ends with.
pub(super) fn broke(all: &[Figures], broke: Option<Break>) -> String {
    let tids: Vec<_> = all.iter().map(|one| one.tid).collect();
    let mut text = comment("Thread Ids", 5, &tids, None);
    if let Some(Break { tid, value }) = broke {
        let _ = writeln!(text, "# Break thread: {tid}\n# Break value: {value}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(values: &[i64]) -> Figures {
        let times_us = (0..values.len() as i64).map(|number| 1000 * number).collect();
        Figures {
            tid: 23056,
            priority: 80,
            values: values.to_vec(),
            times_us,
            missed: 40,
            lost: 0,
            early: values.iter().filter(|value| **value < 0).count() as u64,
        }
    }

    fn every(interval_us: u32) -> Thread {
        let policy = model::sample::Policy::fifo(80);
        Thread { cpus: model::Cpus::one(1), listed: false, interval_us, offset_us: 0, policy }
    }

    #[test]
    fn a_line_is_cyclictests() {
        // Both captured from cyclictest of rt-tests 2.4.
        let us = "T: 0 (23056) P:80 I:1000 C:      3 Min:     17 Act:   29 Avg:   26 Max:      34\n";
        assert_eq!(stat(&[Line::of(&thread(&[17, 34, 29]))], &[every(1000)], false), us);
        let ns = "T: 0 (23056) P:80 I:1000 C:      2 Min:  28345 Act:   34706 Avg:   31525 Max:   34706\n";
        assert_eq!(stat(&[Line::of(&thread(&[28345, 34706]))], &[every(1000)], true), ns);
    }

    #[test]
    fn a_histogram_counts_what_is_above_it_and_names_the_first() {
        let text = histogram(&[thread(&[0, 1, 1, 9, 8, 7, 3]), thread(&[2, -1])], 3, true);
        let expected = "# Histogram\n\
            000000 000001\t000001\t000002\n\
            000001 000002\t000000\t000002\n\
            000002 000000\t000001\t000001\n\
            # Total: 000000003 000000002 000000005\n\
            # Min Latencies: 00000 -0001\n\
            # Avg Latencies: 00004 00000\n\
            # Max Latencies: 00009 00002 00009\n\
            # Histogram Overflows: 00004 00000 00004\n\
            # Histogram Overflow at cycle number:\n\
            # Thread 0: 00003 00004 00005 # 00001 others\n\
            # Thread 1: \n\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn what_cyclictest_does_not_count_is_a_comment() {
        let counts = "# Missed releases: 00040 00040\n# Early wake-ups: 00000 00001\n";
        let all = [thread(&[1]), thread(&[-3])];
        assert_eq!(comments(&all, Some(Path::new("run"))), format!("{counts}# Run directory: run\n"));
        assert_eq!(comments(&all, None), counts);
    }

    #[test]
    fn values_are_listed_or_reduced_to_the_largest_of_some() {
        let all = [thread(&[5, 9, 9, 1, 7])];
        assert_eq!(values(&all, 1).lines().count(), 5);
        assert_eq!(values(&all, 2), "       0:       1:       9\n       0:       2:       9\n");
    }

    #[test]
    fn spikes_are_listed_in_order_of_time() {
        let text = spikes(&[thread(&[5, 90]), thread(&[80, 1])], 50, 1);
        assert_eq!(text, "\nT: 1 Spike:      80: TS:            0\nspikes = 2\n\n");
        assert_eq!(spikes(&[thread(&[5])], 50, 9), "");
    }
}
