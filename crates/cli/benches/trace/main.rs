//! A large trace read by `trace-cmd report` and by us, in turns: who needs how long, and how much memory.
//! `cargo bench -p stillcore --bench trace [-- --file FILE] [--megabytes N] [--repetitions N] [--ours PROGRAM]`; recording needs root and
//! the packages trace-cmd and rt-tests, a given FILE the first only. Kept under the target directory and used again.
//!
//! Ours is the example `attribute` of the crate `analysis`: decode, classify, attribute, and a table of sources, one thread, every
//! CPU measured. The peer decodes and prints into nothing. First both count: events by name and CPU, and what each says is lost, must
//! be equal, else this ends with 1. Times are of the CPU as well as of the clock, because neighbours take the clock's. Budgets: 15 times
//! the peer, 10 million events a second, 50 MB at the peak.

#[path = "../common/mod.rs"]
mod common;
mod peer;
mod process;
mod recording;

use common::{Failed, median, option, run};
use ftrace::{Counts, TraceFile};
use process::Used;
use std::path::{Path, PathBuf};

fn main() {
    run("trace", compare);
}

fn compare() -> Result<(), Failed> {
    let file = match option("--file", PathBuf::new()) {
        path if path.as_os_str().is_empty() => recording::cached(option("--megabytes", 350))?,
        path => path,
    };
    let ours = option("--ours", beside("attribute"));
    let events = counts_agree(&file)?;
    let mut runs: [Vec<Used>; 2] = Default::default();
    println!("{:<12} {:>10} {:>10} {:>12} {:>10}", "program", "clock s", "CPU s", "M events/s", "peak MB");
    for _ in 0..option("--repetitions", 3) {
        let of_ours = process::watch(&ours, [&file])?;
        let of_peer = process::watch("trace-cmd", [Path::new("report"), Path::new("-i"), &file])?;
        for (at, (name, used)) in [("stillcore", of_ours), ("trace-cmd", of_peer)].into_iter().enumerate() {
            let rate = events as f64 / used.cpu_s / 1e6;
            println!(
                "{name:<12} {:>10.3} {:>10.3} {rate:>12.2} {:>10.1}",
                used.clock_s, used.cpu_s, used.peak_mb
            );
            runs[at].push(used);
        }
    }
    judge(events, &runs);
    Ok(())
}

/// Programs of this build stand beside the command.
fn beside(example: &str) -> PathBuf {
    let command = Path::new(env!("CARGO_BIN_EXE_stillcore"));
    command.with_file_name("examples").join(example)
}

fn counts_agree(file: &Path) -> Result<u64, Failed> {
    let trace = TraceFile::open(file).map_err(Failed::because)?;
    let mut stream = trace.stream().map_err(Failed::because)?;
    let ours = Counts::of(trace.formats(), &mut stream).map_err(Failed::because)?;
    let theirs = peer::counts(file)?;
    let lost: u64 = ours.lost.values().map(|lost| lost.events).sum();
    let unknown: u64 = ours.lost.values().map(|lost| lost.unknown_pages).sum();
    println!(
        "{}: {} events of {} names on {} CPUs, {:.0} MB; {lost} lost by the pages' own words and an unknown number on {unknown} pages",
        file.file_name().unwrap_or_default().display(),
        ours.total,
        ours.events.len(),
        ours.per_cpu.len(),
        std::fs::metadata(file).map_err(Failed::because)?.len() as f64 / 1e6,
    );
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
    println!("counts by name and CPU, and losses by CPU, equal those of trace-cmd");
    kernels_word(&trace, &ours);
    Ok(ours.total)
}

/// The kernel's own statistics, where the file has them.
fn kernels_word(trace: &TraceFile, ours: &Counts) {
    let stats = trace.stats("");
    let of = |cpu: &u32| ours.per_cpu.get(cpu).map_or(0, |names| names.values().sum::<u64>());
    let differ: Vec<String> = stats
        .iter()
        .filter(|(cpu, stats)| stats.read_events != of(cpu))
        .map(|(cpu, stats)| format!("CPU {cpu}: {} decoded, {} read", of(cpu), stats.read_events))
        .collect();
    let overrun: u64 = stats.values().map(ftrace::CpuStats::lost).sum();
    match (stats.is_empty(), differ.is_empty()) {
        (true, _) => println!("the file has no statistics of the kernel"),
        (false, true) => {
            println!("decoded events equal the kernel's count of events read; it lost {overrun} more");
        }
        (false, false) => println!("decoded events differ from the kernel's count: {}", differ.join(", ")),
    }
}

/// One figure of what a run used.
type Figure = fn(&Used) -> f64;

fn judge(events: u64, [ours, theirs]: &[Vec<Used>; 2]) {
    let of = |runs: &[Used], figure: Figure| median(runs.iter().map(figure).collect());
    let (cpu, clock): (Figure, Figure) = (|used| used.cpu_s, |used| used.clock_s);
    let word = |good: bool| if good { "met" } else { "missed" };
    let rate = events as f64 / of(ours, cpu) / 1e6;
    let (by_cpu, by_clock) = (of(theirs, cpu) / of(ours, cpu), of(theirs, clock) / of(ours, clock));
    let peak = |runs: &[Used]| runs.iter().map(|used| used.peak_mb).fold(0.0, f64::max);
    println!(
        "median: {by_cpu:.1} times trace-cmd report by CPU time, {by_clock:.1} by the clock (budget 15: {})",
        word(by_cpu >= 15.0)
    );
    println!("median: {rate:.1} million events/s of CPU time (budget 10: {})", word(rate > 10.0));
    println!(
        "peak: stillcore {:.1} MB, trace-cmd {:.1} MB (budget 50: {})",
        peak(ours),
        peak(theirs),
        word(peak(ours) < 50.0)
    );
}
