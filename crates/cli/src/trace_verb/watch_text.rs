//! A watched program in words and tables, readable at 100 columns.

use super::threads;
use crate::measure::table::table;
use crate::trace_verb::coverage_text::{NOT_RECORDED, Shows};
use analysis::Analysis;
use attribution::attribute::watch::WatchSection;
use attribution::attribute::watch::shape::{Chain, Figures, Preemption, Release, ThreadSection};
use model::Run;
use model::store;
use report::{format, off};
use std::fmt::Write;
use std::path::Path;

/// Threads that are printed one by one, releases and preemptions of each, and chains.
const THREADS: usize = 16;
const ROWS: usize = 6;
const CHAINS: usize = 12;

/// Everything that is printed.
pub(super) fn text(
    dir: &Path,
    run: &Run,
    analysis: &Analysis,
    section: &WatchSection,
    statements: &[&String],
) -> String {
    let mut text = format!(
        "{}\n{} recorded on CPUs {}; run directory {}, report {}\n",
        section.asked,
        format::span(section.t1_ns.abs_diff(section.t0_ns)),
        run.measured_cpus,
        dir.display(),
        dir.join(store::REPORT).display()
    );
    if let Some(command) = &section.command {
        let how = match (command.exit_code, command.signal) {
            (Some(code), _) => format!("with exit code {code}"),
            (None, Some(signal)) => format!("by signal {signal}"),
            (None, None) => "in a way that is not known".to_owned(),
        };
        let asked = if command.ended { ", asked to by stillcore" } else { "" };
        let _ = writeln!(text, "the command (process {}) ended {how}{asked}", command.pid);
    }
    text.push('\n');
    text.push_str(&super::lint_text::text(section));
    text.push_str(&super::lock_text::text(run, section));
    text.push_str(&off_stretches(run, analysis));
    text.push_str(&times(section));
    text.push_str(&latencies(section));
    let active =
        section.threads.iter().filter(|thread| thread.activations > 0 || !thread.preemptions.is_empty());
    active.take(THREADS).for_each(|thread| text.push_str(&story(thread)));
    text.push_str(&chains(section));
    text.push_str(&threads::text(&section.paths, 1, false, section.t0_ns));
    // Whoever records where senders were in user space wants to see it.
    let sources = section.attribution.iter().flat_map(|cpu| &cpu.rows).filter_map(|row| row.source.as_ref());
    let stacks = sources.into_iter().any(|source| !source.users.is_empty());
    text.push_str(&crate::trace_verb::source_table::all_sources(&section.attribution, stacks));
    if !section.paths.is_empty() {
        let (classes, waits) = (&analysis.coverage[..], &analysis.blocking[..]);
        text.push_str(&Shows { of: "this recording", absent: NOT_RECORDED, classes, waits }.all());
    }
    for statement in run.limits.iter().chain(statements.iter().copied()) {
        let _ = writeln!(text, "note: {statement}");
    }
    text
}

/// Stretches with interrupts or preemption off on the program's CPUs, where they were recorded.
fn off_stretches(run: &Run, analysis: &Analysis) -> String {
    let mut text = String::new();
    if let Some(nothing) = off::nothing(run, &analysis.off) {
        return nothing + "\n\n";
    }
    let (longest, more) = off::longest(&analysis.off);
    if longest.is_empty() {
        return text;
    }
    text.push_str("interrupts or preemption off on the program's CPUs, the longest first\n");
    let rows = longest.into_iter().map(|(section, row)| off::row(run, section, row));
    text.push_str(&table(&off::HEAD, rows.collect()));
    if more > 0 {
        let _ = writeln!(text, "and {more} more rows (--json lists all)");
    }
    let _ = writeln!(text, "{}", off::meaning(&analysis.off));
    for line in [off::not_called(run, &analysis.off), off::refused(run), off::cost(run, &analysis.off)]
        .into_iter()
        .flatten()
    {
        let _ = writeln!(text, "{line}");
    }
    text + "\n"
}

fn name(thread: &ThreadSection) -> String {
    format!("{}[{}]", thread.comm, thread.tid)
}

fn ns(value: u64) -> String {
    format::ns(i64::try_from(value).unwrap_or(i64::MAX))
}

fn times(section: &WatchSection) -> String {
    let head =
        ["thread", "policy", "CPUs", "observed", "on CPU", "waiting", "preempted", "asleep", "unknown"];
    let rows = section.threads.iter().take(THREADS).map(|thread| {
        let times = thread.times;
        vec![
            name(thread),
            thread.policy.as_deref().unwrap_or("-").replace("SCHED_", ""),
            thread.cpus.to_string(),
            ns(times.observed_ns),
            ns(times.on_cpu_ns),
            ns(times.waiting_ns),
            ns(times.preempted_ns),
            ns(times.asleep_ns),
            ns(times.unknown_ns),
        ]
    });
    let mut text = table(&head, rows.collect());
    if section.threads.len() > THREADS {
        let _ = writeln!(text, "and {} more threads (--json lists all)", section.threads.len() - THREADS);
    }
    text + "\n"
}

pub(super) fn latencies(section: &WatchSection) -> String {
    let head = ["run latency", "n", "min", "mean", "median", "p99", "observed max", "preempted", "migrated"];
    let rows = section.threads.iter().take(THREADS).filter_map(|thread| {
        let figures = thread.run_latency?;
        let preempted: u64 = thread.preemptions.iter().map(|one| one.n).sum();
        let migrated = thread.migrations_waking + thread.migrations_runnable;
        Some(
            [vec![name(thread)], cells(&figures), vec![preempted.to_string(), migrated.to_string()]].concat(),
        )
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return format!("{}: none was seen to be woken and to run\n\n", section.asked);
    }
    table(&head, rows)
        + "run latency: from the wake-up to the switch to the thread; quantiles within 1 %; max: observed\n\n"
}

fn cells(figures: &Figures) -> Vec<String> {
    let mut cells = vec![figures.n.to_string(), format::ns(figures.min_ns), format::ns_f(figures.mean_ns)];
    cells.extend([figures.median_ns, figures.p99_ns, figures.max_ns].map(format::ns));
    cells
}

/// One thread's releases and preemptions.
pub(super) fn story(thread: &ThreadSection) -> String {
    let mut text = format!("{}\n", name(thread));
    thread.releases.iter().take(ROWS).for_each(|release| text.push_str(&release_lines(release)));
    rest(&mut text, thread.releases.len(), "kinds of release");
    thread.preemptions.iter().take(ROWS).for_each(|one| text.push_str(&preemption_line(one)));
    rest(&mut text, thread.preemptions.len(), "preemptors");
    if thread.early_wakes > 0 {
        let _ = writeln!(text, "  {:>7} x woken while it still ran, and did not sleep", thread.early_wakes);
    }
    text.push('\n');
    text
}

fn rest(text: &mut String, count: usize, what: &str) {
    if count > ROWS {
        let _ = writeln!(text, "  {:>9} {} more {what}", "and", count - ROWS);
    }
}

fn release_lines(release: &Release) -> String {
    let kind = release.kind.words();
    let call = release.call.as_ref().map(|call| format!(" in {call}")).unwrap_or_default();
    let signal = release.signal.map(|signal| format!(" (signal {signal})")).unwrap_or_default();
    let tid = release.by_tid.map(|tid| format!("[{tid}]")).unwrap_or_default();
    let cpus = format!("CPU {}", release.from);
    let mut text = format!(
        "  {:>7} x {kind}{signal}{call}, by {}{tid} on {cpus}{}\n",
        release.n,
        release.by,
        range("; waited", release.run_latency.as_ref())
    );
    if let (Some(lateness), Some(total)) = (&release.lateness, &release.total) {
        let _ = writeln!(
            text,
            "            late by mean {}, max {}; intended expiry to running mean {}, max {}",
            format::ns_f(lateness.mean_ns),
            format::ns(lateness.max_ns),
            format::ns_f(total.mean_ns),
            format::ns(total.max_ns)
        );
    }
    text
}

/// Mean and observed maximum.
fn range(what: &str, figures: Option<&Figures>) -> String {
    figures.map_or_else(String::new, |figures| {
        format!("{what} mean {}, max {}", format::ns_f(figures.mean_ns), format::ns(figures.max_ns))
    })
}

fn preemption_line(one: &Preemption) -> String {
    let tid = one.by_tid.map(|tid| format!("[{tid}]")).unwrap_or_default();
    let woken = one.woken_by.as_ref().map(|by| format!(", woken by {by}")).unwrap_or_default();
    format!("  {:>7} x preempted by {}{tid}{woken}{}\n", one.n, one.by, range("; for", one.lost.as_ref()))
}

fn chains(section: &WatchSection) -> String {
    if section.chains.is_empty() {
        return String::new();
    }
    let mut text =
        "wake-ups from thread to thread, from the first one's release to the last one's run\n".to_owned();
    section.chains.iter().take(CHAINS).for_each(|chain| text.push_str(&chain_line(chain)));
    if section.chains.len() > CHAINS {
        let _ = writeln!(text, "  {:>9} {} more", "and", section.chains.len() - CHAINS);
    }
    if section.chains_dropped > 0 {
        let _ = writeln!(text, "  {} wake-ups found no room among the chains", section.chains_dropped);
    }
    text.push('\n');
    text
}

fn chain_line(chain: &Chain) -> String {
    let way: Vec<_> =
        chain.comms.iter().zip(&chain.tids).map(|(comm, tid)| format!("{comm}[{tid}]")).collect();
    format!("  {:>7} x {}{}\n", chain.n, way.join(" -> "), range(":", chain.latency.as_ref()))
}
