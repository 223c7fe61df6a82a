//! The wake-up probe beside cyclictest: minimum, median, CPU time a sample, memory, page faults.
//!
//! cyclictest needs a bin a nanosecond for a median in ns, which costs it memory and time; its CPU
//! time and memory are those of runs without a histogram. CPU time is of the whole measuring
//! process on both sides, start and end included. What stores our samples is another process, on
//! another CPU, and has a column of its own.

use super::common::process::{children_cpu_ns, own_cpu_ns, program, rt_tests};
use super::common::turns::turns;
use super::common::{Failed, histogram, quantile};
use super::{PRIORITY, Plan};
use measure::handle::{ProbeHandle, StoreIn};
use measure::spec::{ProbeSpec, Task, WakeupSpec};
use model::Cpus;
use model::sample::Policy;
use result::{Limit, Of, Row, Sink};
use serde_json::{Value, json};
use std::path::Path;
use sys::clock::{self, ClockId};
use sys::sched;

const PERIOD_US: u64 = 200;
/// cyclictest counts in bins of 1 ns with -N; what lies above is in its overflow count.
const BINS_NS: usize = 900_000;
const RSS_BUDGET_KIB: f64 = 6.0 * 1024.0;

pub(super) fn section(plan: &Plan, rows: &mut Sink) -> Result<(), Failed> {
    rows.note(format!(
        "wake-up: CPU {}, SCHED_FIFO {PRIORITY}, period {PERIOD_US} us, {} runs of {} s of each tool, in turns",
        plan.cpu, plan.repetitions, plan.seconds
    ))?;
    let one = |tool: &str| {
        let result = match tool {
            "stillcore" => ours(plan),
            "cyclictest" => cyclictest(plan, false),
            _ => cyclictest(plan, true),
        }?;
        eprintln!("{tool:<20} {result}");
        Ok(result)
    };
    let tools = ["stillcore", "cyclictest", "cyclictest -h"];
    let turns = turns("bench-wakeup", &tools, plan.repetitions, one)?;
    let not_above = |row: Row| row.budget(Of::Ratio, Limit::AtMost(1.0));
    let (us, kib) = (("us", 1e-3), ("KiB", 1.0));
    let (ours, theirs) = ("stillcore", "cyclictest");
    rows.push(not_above(turns.row("wake-up: minimum latency", us, (ours, "min"), (theirs, "min"))))?;
    let in_bins = (tools[2], "median");
    rows.push(not_above(turns.row("wake-up: median latency", us, (ours, "median"), in_bins)))?;
    let cpu = "cpu_per_sample";
    rows.push(not_above(turns.row("wake-up: CPU time per sample", us, (ours, cpu), (theirs, cpu))))?;
    let memory =
        turns.row("wake-up: memory of the measuring process", kib, (ours, "rss_kib"), (theirs, "rss_kib"));
    rows.push(memory.budget(Of::Value, Limit::AtMost(RSS_BUDGET_KIB)))?;
    let faults = turns.sum_row("wake-up: page faults in all windows", ours, "faults");
    rows.push(faults.budget(Of::Value, Limit::AtMost(0.0)))?;
    let lost = turns.sum_row("wake-up: samples lost", ours, "lost");
    rows.push(lost.budget(Of::Value, Limit::AtMost(0.0)))?;
    rows.push(turns.sum_row("wake-up: releases missed", ours, "missed"))?;
    for (what, figure) in [
        ("wake-up: CPU time per sample, inside the window", "in_window"),
        ("wake-up: CPU time of storing a sample, on another CPU", "drain_per_sample"),
    ] {
        let value = turns.median(ours, figure) / 1e3;
        rows.push(Row::new(what, value, "us").n(u64::from(plan.repetitions)))?;
    }
    Ok(())
}

fn ours(plan: &Plan) -> Result<Value, Failed> {
    let directory = tempfile::tempdir().map_err(Failed::because)?;
    std::fs::create_dir(directory.path().join(model::store::SAMPLES)).map_err(Failed::because)?;
    let everywhere = sched::affinity().map_err(Failed::because)?;
    sched::pin(&everywhere.minus(&Cpus::one(plan.cpu))).map_err(Failed::because)?;
    let result = probe(plan, directory.path());
    sched::pin(&everywhere).map_err(Failed::because)?;
    result
}

/// One window of the probe, stored by this thread.
fn probe(plan: &Plan, directory: &Path) -> Result<Value, Failed> {
    let wakeup = WakeupSpec {
        period_ns: (PERIOD_US * 1000) as i64,
        offset_ns: 0,
        warm_up: 20,
        clock: ClockId::Monotonic,
        loops: 0,
    };
    let spec = ProbeSpec {
        thread: 0,
        cpus: Cpus::one(plan.cpu),
        policy: Policy::fifo(PRIORITY),
        timer_slack_ns: 1,
        duration_ns: (plan.seconds * 1_000_000_000) as i64,
        task: Task::Wakeup(wakeup),
    };
    let before_ns = children_cpu_ns();
    let mut handle = ProbeHandle::spawn(&program(), &spec).map_err(Failed::because)?;
    while !handle.ready().map_err(Failed::because)? {
        clock::sleep_until(clock::now_ns() + 1_000_000);
    }
    // Of all threads: one drains the ring, another writes.
    let storing_ns = own_cpu_ns();
    let place = StoreIn { run: directory, phase: "bench", k: 0 };
    let stored = handle.store_in(place, None).map_err(Failed::because)?;
    let mut drain = stored.start(clock::now_ns() + 30_000_000, None);
    while !drain.done() {
        drain.poll().map_err(Failed::because)?;
        clock::sleep_until(clock::now_ns() + 20_000_000);
    }
    let (record, limits) = drain.finish("bench").map_err(Failed::because)?;
    let storing_ns = own_cpu_ns() - storing_ns;
    if let Some(limit) = limits.first() {
        return Err(Failed::because(limit));
    }
    let (_, samples) = model::samples_file::read(&directory.join(&record.file)).map_err(Failed::because)?;
    let mut values: Vec<i64> =
        samples.iter().filter(|sample| sample.counts()).map(|sample| sample.value_ns).collect();
    values.sort_unstable();
    let n = record.samples.max(1);
    Ok(json!({
        "n": record.samples,
        "min": values.first(),
        // Nearest rank, as of the histogram.
        "median": values.get(values.len().div_ceil(2).saturating_sub(1)),
        "cpu_per_sample": (children_cpu_ns() - before_ns) / n,
        "in_window": record.cpu_time_ns / n,
        "drain_per_sample": storing_ns / n,
        "rss_kib": record.rss_kib,
        "faults": record.faults.minor + record.faults.major,
        "missed": record.missed(),
        "lost": record.ring_lost,
    }))
}

fn cyclictest(plan: &Plan, in_bins: bool) -> Result<Value, Failed> {
    let loops = plan.seconds * 1_000_000 / PERIOD_US;
    let bins = if in_bins { format!("-h{BINS_NS}") } else { String::new() };
    let arguments = format!(
        "-N -m -q --default-system -p{PRIORITY} -t1 -a{} -i{PERIOD_US} -l{loops} {bins} --mainaffinity=0",
        plan.cpu
    );
    let ran = rt_tests("cyclictest", &arguments)?;
    if in_bins {
        let (bins, overflow) = histogram(&ran.text)?;
        let n = bins.iter().map(|bin| bin.1).sum::<u64>() + overflow;
        return Ok(
            json!({ "n": n, "min": bins.first().map(|bin| bin.0), "median": quantile(&bins, overflow, 0.5) }),
        );
    }
    let after = |name: &str| ran.text.split_once(name)?.1.split_whitespace().next()?.parse::<u64>().ok();
    let (Some(n), Some(min)) = (after(" C:"), after(" Min:")) else {
        return Err(Failed(format!("cyclictest printed no line of a thread: {}", ran.text.trim())));
    };
    Ok(json!({ "n": n, "min": min, "cpu_per_sample": ran.cpu_ns / n.max(1), "rss_kib": ran.rss_kib }))
}
