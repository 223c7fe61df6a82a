//! Traces read by `trace-cmd report` and by the program that ships, in turns: CPU time, wall time,
//! peak memory.
//! `cargo bench -p stillcore --bench trace [-- --program PATH] [--file FILE] [--run DIR] [--megabytes N] [--repetitions N] [--library PROGRAM]`;
//! recording needs root and the packages trace-cmd and rt-tests, a given FILE and DIR the first
//! only. What is recorded is kept under the target directory and used again.
//!
//! `trace explain RUN` decodes both buffers of a default `assess` run, classifies, attributes and
//! takes every wake-up apart; `trace explain FILE` does so with a trace of scheduler events alone,
//! as anybody may have recorded it: of the real-time threads as it is typed, and of a load of very
//! many wake-ups. `trace counts FILE` decodes a large trace of every CPU; `--library` names the
//! example `attribute` of the crate `analysis`, which attributes the same trace on one thread, in a
//! row of its own. The peer decodes and prints into nothing. First both count the large trace:
//! events by name and CPU, and losses by CPU, must be equal, else this ends with 1. Rates are of
//! CPU time, because neighbours take the clock's; `trace explain FILE` works on three threads, and
//! has a rate by the clock, too. Budgets of section 7 of the design.

#[path = "../common/mod.rs"]
mod common;
mod peer;
mod process;
mod recording;

use common::{Failed, median, option, run};
use ftrace::{Counts, TraceFile};
use process::Used;
use result::row::{median_interval, ratio_of_rounds};
use result::{Limit, Of, Row, Sink};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

fn main() {
    run("trace", compare);
}

fn compare(rows: &mut Sink) -> Result<(), Failed> {
    let program = common::process::program();
    let repetitions = option("--repetitions", 11);
    let run = match option("--run", PathBuf::new()) {
        path if path.as_os_str().is_empty() => recording::cached_run(&program)?,
        path => path,
    };
    let trace = run.join(model::store::TRACE);
    let events = events_of_all_buffers(&trace)?;
    rows.note(format!("trace explain: a default assess run, {events} events in all buffers"))?;
    let tools = [
        Tool::new("trace-cmd report", "trace-cmd", &["report", "-i"], &trace),
        Tool::new("trace explain RUN", &program, &["trace", "explain"], &run).within(5.0, 64.0),
    ];
    judge(events, &tools, repetitions, rows)?;
    let file = recording::scheduler()?;
    let events = events_of_all_buffers(&file)?;
    rows.note(format!("trace explain: scheduler events alone, {events} of them"))?;
    let tools = [
        Tool::new("trace-cmd report", "trace-cmd", &["report", "-i"], &file),
        Tool::new("trace explain FILE", &program, &["trace", "explain"], &file).within(20.0, 50.0),
        Tool::new(
            "trace explain FILE --comm hackbench",
            &program,
            &["trace", "explain", "--comm", "hackbench"],
            &file,
        ),
    ];
    // Turns are slow while the host runs the CPUs on cores that share no cache: what one thread
    // makes for another then costs four times as much. A median over such turns needs many.
    judge(events, &tools, 3 * repetitions, rows)?;
    let file = match option("--file", PathBuf::new()) {
        path if path.as_os_str().is_empty() => recording::cached(option("--megabytes", 350))?,
        path => path,
    };
    let events = counts_agree(&file, rows)?;
    let mut tools = vec![
        Tool::new("trace-cmd report", "trace-cmd", &["report", "-i"], &file),
        Tool::new("trace counts", &program, &["trace", "counts"], &file),
    ];
    let library = option("--library", PathBuf::new());
    if !library.as_os_str().is_empty() {
        tools.push(Tool::new("library alone", library, &[], &file));
    }
    judge(events, &tools, repetitions, rows)
}

fn events_of_all_buffers(file: &Path) -> Result<u64, Failed> {
    let trace = TraceFile::open(file).map_err(Failed::because)?;
    let names: Vec<&str> = trace.buffers().iter().map(|buffer| buffer.name.as_str()).collect();
    let mut stream = trace.stream_buffers(&names).map_err(Failed::because)?;
    Ok(Counts::of(trace.formats(), &mut stream).map_err(Failed::because)?.total)
}

/// A way of reading a trace.
struct Tool {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<OsString>,
    /// At least so many million events a second, in at most so many MB.
    within: Option<[f64; 2]>,
}

impl Tool {
    fn new(name: &'static str, program: impl Into<PathBuf>, words: &[&str], reads: &Path) -> Self {
        let arguments = words.iter().map(OsString::from).chain([reads.into()]).collect();
        Self { name, program: program.into(), arguments, within: None }
    }

    fn within(self, rate: f64, megabytes: f64) -> Self {
        Self { within: Some([rate, megabytes]), ..self }
    }
}

fn counts_agree(file: &Path, rows: &mut Sink) -> Result<u64, Failed> {
    let trace = TraceFile::open(file).map_err(Failed::because)?;
    let mut stream = trace.stream().map_err(Failed::because)?;
    let ours = Counts::of(trace.formats(), &mut stream).map_err(Failed::because)?;
    let theirs = peer::counts(file)?;
    let lost: u64 = ours.lost.values().map(|lost| lost.events).sum();
    let unknown: u64 = ours.lost.values().map(|lost| lost.unknown_pages).sum();
    rows.note(format!(
        "{} events of {} names on {} CPUs, {:.0} MB; {lost} events lost, and an unknown number on {unknown} pages",
        ours.total,
        ours.events.len(),
        ours.per_cpu.len(),
        std::fs::metadata(file).map_err(Failed::because)?.len() as f64 / 1e6,
    ))?;
    let damaged = stream.damaged();
    let accounts = ours.lost.iter().all(|(cpu, lost)| {
        theirs.lost.get(cpu).copied().unwrap_or_default() == (lost.events, lost.unknown_pages)
    });
    if damaged > 0 || theirs.per_cpu != ours.per_cpu || !accounts {
        return Err(Failed(format!(
            "the counts differ, {damaged} places are damaged\nours:   {:?} {:?}\ntheirs: {:?} {:?}",
            ours.per_cpu, ours.lost, theirs.per_cpu, theirs.lost
        )));
    }
    rows.note("events by name and CPU, and losses by CPU, equal those of trace-cmd")?;
    rows.note(kernels_word(&trace, &ours))?;
    Ok(ours.total)
}

/// The kernel's own statistics, where the file has them.
fn kernels_word(trace: &TraceFile, ours: &Counts) -> String {
    let stats = trace.stats("");
    let of = |cpu: &u32| ours.per_cpu.get(cpu).map_or(0, |names| names.values().sum::<u64>());
    let differ: Vec<String> = stats
        .iter()
        .filter(|(cpu, stats)| stats.read_events != of(cpu))
        .map(|(cpu, stats)| format!("CPU {cpu}: {} decoded, {} read", of(cpu), stats.read_events))
        .collect();
    let overrun: u64 = stats.values().map(ftrace::CpuStats::lost).sum();
    match (stats.is_empty(), differ.is_empty()) {
        (true, _) => "the file has no statistics of the kernel".to_owned(),
        (false, true) => {
            format!("decoded events equal the kernel's count of events read; it lost {overrun} more")
        }
        (false, false) => format!("decoded events differ from the kernel's count: {}", differ.join(", ")),
    }
}

/// The median of some runs, and its range.
fn rate_row(name: &str, what: &str, unit: &str, mut rates: Vec<f64>) -> Row {
    rates.sort_by(f64::total_cmp);
    let row = Row::new(format!("{name}: {what}"), median(rates.clone()), unit).n(rates.len() as u64);
    match median_interval(&rates) {
        Some([low, high]) => row.between(low, high),
        None => row,
    }
}

/// Runs the tools in turns; rows of each of ours beside the first, which is the peer.
fn judge(events: u64, tools: &[Tool], repetitions: u32, rows: &mut Sink) -> Result<(), Failed> {
    let mut runs: Vec<Vec<Used>> = vec![Vec::new(); tools.len()];
    for _ in 0..repetitions {
        for (tool, runs) in tools.iter().zip(&mut runs) {
            let used = process::watch(&tool.program, &tool.arguments)?;
            eprintln!("{:<16} {used:?}", tool.name);
            runs.push(used);
        }
    }
    let rates = |runs: &[Used]| runs.iter().map(|used| events as f64 / used.cpu_s / 1e6).collect::<Vec<_>>();
    let peak = |runs: &[Used]| runs.iter().map(|used| used.peak_mb).fold(0.0, f64::max);
    let (peer, theirs) = (tools[0].name, rates(&runs[0]));
    for (tool, runs_of) in tools.iter().zip(&runs).skip(1) {
        let (name, ours) = (tool.name, rates(runs_of));
        let n = runs_of.len() as u64;
        let beside = |what: &str| {
            let row = Row::new(format!("{name}: {what}"), median(ours.clone()), "M events per s of CPU time");
            row.n(n).beside(peer, median(theirs.clone())).ratio(ratio_of_rounds(&ours, &theirs))
        };
        let memory =
            Row::new(format!("{name}: peak memory"), peak(runs_of), "MB").n(n).beside(peer, peak(&runs[0]));
        if let Some([rate, most]) = tool.within {
            rows.push(beside("rate beside the peer").budget(Of::Ratio, Limit::AtLeast(15.0)))?;
            let least = Limit::AtLeast(rate);
            let by_clock: Vec<f64> = runs_of.iter().map(|used| events as f64 / used.clock_s / 1e6).collect();
            // Other guests of the host only ever make a turn slower ([`compare`]): the fastest turn
            // says what the program can do, the median what it did on that day.
            let fastest = by_clock.iter().copied().fold(0.0, f64::max);
            rows.push(
                rate_row(name, "rate", "M events per s of CPU time", ours.clone()).budget(Of::Value, least),
            )?;
            rows.push(
                rate_row(name, "rate by the clock", "M events per s", by_clock).budget(Of::Value, least),
            )?;
            let what = format!("{name}: rate by the clock, fastest turn");
            rows.push(Row::new(what, fastest, "M events per s").n(n).budget(Of::Value, least))?;
            rows.push(memory.budget(Of::Value, Limit::AtMost(most)))?;
        } else {
            rows.push(beside("rate beside the peer"))?;
            rows.push(memory)?;
        }
        for (what, figure) in
            [("CPU time", (|used| used.cpu_s) as fn(&Used) -> f64), ("wall time", |used| used.clock_s)]
        {
            let of = |runs: &[Used]| median(runs.iter().map(figure).collect());
            let row = Row::new(format!("{name}: {what}"), of(runs_of), "s").n(n);
            rows.push(row.beside(peer, of(&runs[0])))?;
        }
    }
    Ok(())
}
