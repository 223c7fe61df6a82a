//! Losses, and the verdicts they forbid: events read + left + overwritten + dropped = events
//! written, or verdicts are withheld.
//!
//! The flags of pages show where a hole is, but not its size: their counts miss about a fifth (full
//! pages have no room for the number). The kernel's own per-CPU statistics, read after recording
//! ended, are exact; they are what decides.

use crate::events::WindowEvents;
use model::run::{Losses, ProbeRecord, Run, TraceCpu};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Losses, and whether the accounts balance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LossSection {
    /// The run's own totals.
    pub totals: Losses,
    /// The trace's accounts, CPU by CPU.
    pub trace: Vec<TraceAccount>,
    /// Whether every account balances; `None` without a trace.
    pub reconciled: Option<bool>,
    /// What that means for the verdicts, one sentence each.
    pub statements: Vec<String>,
}

/// One CPU's trace account: events read + left + overrun + dropped = events written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceAccount {
    /// The kernel's own counters.
    pub kernel: TraceCpu,
    /// Events decoded from the stored trace.
    pub decoded: u64,
    /// Whether `decoded` and what was discarded are the kernel's `read`.
    pub balanced: bool,
    /// Whether it is of a CPU that is not measured, of which only what it aims at measured ones is
    /// recorded.
    #[serde(default)]
    pub sender: bool,
    /// Whether its buffer is a ring that was read for snapshots only, so that what was overwritten
    /// or left in it is not lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ring: bool,
}

/// Results of reading the trace.
#[derive(Debug, Clone, Default)]
pub struct TraceReading {
    /// Events decoded, by CPU.
    pub decoded: BTreeMap<u32, u64>,
    /// Sentences about what could not be read or named.
    pub remarks: Vec<String>,
}

/// The accounts of a run. `reading` is `None` where there is no trace, or none that can be read.
pub fn losses(run: &Run, reading: Option<&TraceReading>, remarks: Vec<String>) -> LossSection {
    let trace = accounts(run, reading);
    // A measured CPU without an account balances nothing.
    let all_accounted =
        run.measured_cpus.iter().all(|cpu| trace.iter().any(|account| account.kernel.cpu == cpu));
    let reconciled = run
        .trace
        .as_ref()
        .map(|_| reading.is_some() && all_accounted && trace.iter().all(|account| account.balanced));
    let mut statements = remarks;
    if !run.complete {
        let why = run.incomplete_reason.as_deref().unwrap_or("no reason was recorded");
        statements.push(format!("the run is partial ({why}): it says what it holds, not what was planned"));
    }
    statements.extend(reading.into_iter().flat_map(|reading| reading.remarks.iter().cloned()));
    if run.trace.is_none() {
        statements.push("no trace was recorded: what ran on the measured CPUs is not known".into());
    }
    statements.extend(trace.iter().flat_map(account_statements));
    if reading.is_some() {
        statements.extend(unclaimed(run, &trace));
    }
    statements.extend(snapshots(run));
    if run.trace.as_ref().is_some_and(|trace| trace.snapshots.is_some()) {
        // The statements on snapshots cover this.
    } else if reconciled == Some(true) && trace.iter().all(|account| lost(account) == 0) {
        statements.push("every event that the kernel wrote to the trace was read and decoded".into());
    }
    statements.extend(run.probes.iter().filter(|probe| probe.ring_lost > 0).map(|probe| {
        format!(
            "CPU {}{}, {} window of phase {}: {} samples found the ring full and are missing, so verdicts on its samples are withheld",
            probe.cpu, thread(run, probe), probe.probe().name(), probe.phase, probe.ring_lost
        )
    }));
    statements.extend(run.probes.iter().filter(|probe| probe.missed() > 0).map(|probe| {
        // Not judged by the warm-up: it may have taken so many of the missed ones.
        let warm_up = probe.detail.releases().and_then(|releases| releases.warm_up).unwrap_or(0);
        let most = probe.missed().saturating_sub(warm_up) > probe.released().saturating_sub(warm_up) / 2;
        format!(
            "CPU {}{}, phase {}: {} of {} releases passed unserved while an earlier one was late{}; the corrected quantiles charge those \
             behind the warm-up{}",
            probe.cpu,
            thread(run, probe),
            probe.phase,
            probe.missed(),
            probe.released(),
            match warm_up.min(probe.missed()) {
                0 => String::new(),
                of_it => format!(", at most {of_it} of them in the warm-up"),
            },
            if most { "; most were missed: the period is too short for this machine or load" } else { "" }
        )
    }));
    LossSection { totals: run.losses, trace, reconciled, statements }
}

/// How much time the snapshots hold, and which samples they lack.
fn snapshots(run: &Run) -> Vec<String> {
    let Some(record) = run.trace.as_ref().and_then(|trace| trace.snapshots.as_ref()) else {
        return Vec::new();
    };
    let ms = |ns: u64| ns as f64 / 1e6;
    let kept_ns: u64 =
        record.kept.iter().map(|kept| kept.t1_ns.abs_diff(kept.t0_ns)).fold(0, u64::saturating_add);
    let mut statements = vec![format!(
        "the trace holds {:.1} of {:.1} ms recorded, around samples of at least {} us: what ran at other times is not known, and no rate of \
         events is concluded",
        ms(kept_ns),
        ms(record.recorded_ns),
        record.over_ns as f64 / 1e3
    )];
    // The last stretch is written when the measurement has stopped, and nothing is missing then.
    let only_the_last = run.stopped_at.is_some() && record.taken <= 1;
    if record.paused_ns > 0 && !only_the_last {
        statements.push(format!(
            "nothing was recorded for {:.1} ms, while the trace around samples was written ({} times): that time counts as not known",
            ms(record.paused_ns),
            record.taken
        ));
    }
    let others = [
        (record.smaller, "smaller than those that are explained"),
        (record.given_up, "explained no longer, for larger ones"),
        (record.unrecorded, "where nothing was recorded, or what was recorded had been overwritten"),
    ];
    let others = others.iter().filter(|(count, _)| *count > 0);
    statements.extend(others.map(|(count, what)| {
        format!("samples of at least that value: {count} of {} are not explained: {what}", record.over)
    }));
    statements
}

/// Which thread of several in the window on the CPU.
fn thread(run: &Run, probe: &ProbeRecord) -> String {
    let beside = |other: &ProbeRecord| {
        (other.cpu, other.probe(), &other.phase) == (probe.cpu, probe.probe(), &probe.phase)
            && other.thread != probe.thread
    };
    if run.probes.iter().any(beside) { format!(", thread {}", probe.thread) } else { String::new() }
}

fn accounts(run: &Run, reading: Option<&TraceReading>) -> Vec<TraceAccount> {
    let Some(trace) = &run.trace else { return Vec::new() };
    let decoded = |cpu: u32| reading.and_then(|reading| reading.decoded.get(&cpu)).copied().unwrap_or(0);
    let account = |kernel: &TraceCpu, sender: bool| {
        let decoded = decoded(kernel.cpu);
        let balanced = decoded.saturating_add(kernel.discarded) == kernel.read;
        TraceAccount { kernel: *kernel, decoded, balanced, sender, ring: trace.snapshots.is_some() }
    };
    let senders = trace.sender.iter().flat_map(|sender| &sender.cpus).map(|kernel| account(kernel, true));
    trace.cpus.iter().map(|kernel| account(kernel, false)).chain(senders).collect()
}

/// Events that the kernel wrote, or wanted to write, and that no one has read. A ring that is read
/// for snapshots only is there to be overwritten, before their stretches and between them.
fn lost(account: &TraceAccount) -> u64 {
    let kernel = &account.kernel;
    let unread = if account.ring { 0 } else { kernel.overrun.saturating_add(kernel.left) };
    [kernel.commit_overrun, kernel.dropped].into_iter().fold(unread, u64::saturating_add)
}

fn account_statements(account: &TraceAccount) -> Vec<String> {
    let TraceAccount { kernel, decoded, balanced, sender, .. } = account;
    if *sender {
        return sender_statement(account).into_iter().collect();
    }
    let mut statements = Vec::new();
    if !balanced {
        statements.push(format!(
            "CPU {}: the stored trace holds {decoded} events, the kernel says that {} were read; the accounts do not balance, \
             so verdicts on its events are withheld",
            kernel.cpu, kernel.read
        ));
    }
    if lost(account) > 0 {
        statements.push(format!(
            "CPU {}: {} trace events are lost ({} overwritten, {} dropped, {} to nested writes, {} left unread): its counts are \
             lower bounds, they are not compared with the kernel's counters, and verdicts on its events are withheld",
            kernel.cpu,
            lost(account),
            kernel.overrun,
            kernel.dropped,
            kernel.commit_overrun,
            kernel.left
        ));
    }
    statements
}

/// What is missing of a CPU that may be a source.
fn sender_statement(account: &TraceAccount) -> Option<String> {
    let TraceAccount { kernel, decoded, balanced, .. } = account;
    (!balanced || lost(account) > 0).then(|| {
        format!(
            "CPU {}, as a source: {} trace events are lost and {decoded} of {} read ones decoded, so sources there may be missing",
            kernel.cpu,
            lost(account),
            kernel.read
        )
    })
}

/// Conclusions withheld for measured CPUs whose trace is incomplete.
fn unclaimed(run: &Run, trace: &[TraceAccount]) -> Option<String> {
    let partly: Vec<String> =
        run.measured_cpus.iter().filter(|cpu| !whole(trace, *cpu)).map(|cpu| cpu.to_string()).collect();
    (!partly.is_empty()).then(|| {
        format!(
            "CPU {}: the trace is not whole, so a class of which it holds no event there counts as not observed, not as zero, and \
             no gap of the busy loop is called unexplained",
            partly.join(", ")
        )
    })
}

/// Whether nothing of a CPU's trace is missing. A CPU without an account has none to trust.
pub fn trace_whole(section: &LossSection, cpu: u32) -> bool {
    whole(&section.trace, cpu)
}

fn whole(trace: &[TraceAccount], cpu: u32) -> bool {
    let mut accounts = trace.iter().filter(|account| account.kernel.cpu == cpu).peekable();
    accounts.peek().is_some() && accounts.all(|account| account.balanced && lost(account) == 0)
}

/// Sentences about windows in which the trace and the kernel's counters disagree, for CPUs whose
/// trace is whole.
pub fn disagreements(section: &LossSection, events: &[WindowEvents]) -> Vec<String> {
    let judged = events.iter().filter(|window| trace_whole(section, window.cpu));
    judged
        .flat_map(|window| {
            window.cross_checks.iter().filter(|check| !check.agrees).map(|check| {
                format!(
                    "CPU {}, {} window of phase {}: the kernel counted {} of {}, the trace holds {}",
                    window.cpu,
                    window.probe.name(),
                    window.phase,
                    check.kernel,
                    check.row,
                    check.traced
                )
            })
        })
        .collect()
}
