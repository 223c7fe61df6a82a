//! Traces of real kernels, whole and with losses, counted beside trace-cmd and beside the kernel's
//! own statistics, event by event and CPU by CPU; every wake-up taken apart without a remainder; a
//! program watched.
//!
//! Sources of the other counts: `trace-cmd report` on the trace.dat that came out, and
//! `per_cpu/cpuN/stats` (kernel/trace/trace.c, `tracing_stats_read`) as read in the guest.

use crate::machine::Guest;
use crate::support::{print_row, read_json, stillcore, text};
use attribution::attribute::path::Path as WakePath;
use attribution::attribute::step::Step;
use attribution::attribute::windows::{MeasuredWindow, paths_in};
use attribution::spans::MeasuredCpu;
use ftrace::TraceFile;
use model::run::{ProbeRecord, Run, TraceCpu};
use model::sample::{ProbeKind, Sample};
use model::{samples_file, store};
use result::Row;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Cycles of the cyclictest that is watched, as in counts.sh.
const CYCLES: u64 = 1000;

type PerCpu = BTreeMap<u32, BTreeMap<String, u64>>;

/// The counts of trace-cmd for a file: events, and reported drops, by CPU.
#[derive(Debug, Default)]
struct TraceCmd {
    events: PerCpu,
    dropped: BTreeMap<u32, u64>,
}

fn trace_cmd(file: &Path, more: &[&str]) -> String {
    let output = Command::new("trace-cmd").arg("report").args(more).arg("-i").arg(file).output();
    let output = output.unwrap_or_else(|error| panic!("trace-cmd: {error} (package trace-cmd)"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Reads "comm-pid [cpu] seconds: event: fields" and "CPU:2 [17 EVENTS DROPPED]"; both may follow
/// the name of a buffer.
fn theirs(file: &Path) -> TraceCmd {
    let mut found = TraceCmd::default();
    for line in trace_cmd(file, &["-t"]).lines() {
        if let Some((cpu, rest)) = line.split_once("CPU:").and_then(|(_, rest)| rest.split_once(" [")) {
            let events = rest.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
            *found.dropped.entry(cpu.parse().unwrap()).or_default() += events;
            continue;
        }
        // Names of tasks may contain anything, so the CPU is the first bracket with digits only.
        let bracket = line.match_indices('[').find_map(|(at, _)| {
            let (cpu, rest) = line[at + 1..].split_once(']')?;
            Some((cpu.parse::<u32>().ok()?, rest))
        });
        let Some((cpu, rest)) = bracket else { continue };
        if let Some((_, rest)) = rest.split_once(": ") {
            let name = rest.trim_start().split(':').next().unwrap_or_default();
            *found.events.entry(cpu).or_default().entry(name.to_owned()).or_default() += 1;
        }
    }
    found
}

fn ours(file: &Path, buffer: &str) -> Value {
    let output = stillcore(&["trace", "counts", "--json", "--buffer", buffer]).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The accounts of a run's buffers, by the buffer's name in the file.
fn buffers(run: &Run) -> Vec<(&str, &[TraceCpu])> {
    let trace = run.trace.as_ref().unwrap();
    let beside = trace.sender.iter().chain(&trace.watched);
    std::iter::once(("", trace.cpus.as_slice()))
        .chain(beside.map(|buffer| (buffer.buffer.as_str(), buffer.cpus.as_slice())))
        .collect()
}

/// Events of a run as trace-cmd, the kernel and stillcore count them; returns those that were lost,
/// by the kernel.
fn counted_alike(kernel: &str, dir: &Path) -> u64 {
    let (run, file) = (model::run::stored::read_run(dir).unwrap(), dir.join(store::TRACE));
    let all = ours(&file, "all");
    let per_cpu: PerCpu = serde_json::from_value(all["per_cpu"].clone()).unwrap();
    let theirs = theirs(&file);
    assert_eq!(theirs.events, per_cpu, "{kernel} {}: trace-cmd's on the left", dir.display());
    let stored = TraceFile::open(&file).unwrap();
    let (mut events, mut lost, mut flagged) = (0, 0, BTreeMap::<u32, u64>::new());
    for (name, accounts) in buffers(&run) {
        let counts = ours(&file, name);
        let stats = stored.stats(name);
        for kept in accounts {
            let cpu = kept.cpu.to_string();
            let decoded: u64 = counts["per_cpu"][&cpu]
                .as_object()
                .into_iter()
                .flatten()
                .filter_map(|(_, n)| n.as_u64())
                .sum();
            assert_eq!((decoded, kept.left), (kept.read, 0), "{kernel} buffer {name:?}: {kept:?}");
            let stats = stats[&kept.cpu];
            let by_kernel = (stats.read_events, stats.overrun, stats.dropped_events, stats.commit_overrun);
            assert_eq!(by_kernel, (kept.read, kept.overrun, kept.dropped, kept.commit_overrun), "{kept:?}");
            let (gone, pages) = holes(&counts, &cpu);
            // A full page has no room for the number of events missing before it.
            let whole = kept.overrun + kept.dropped;
            assert!(gone == whole || pages > 0 && gone < whole, "{kernel} {name:?}: {gone} of {kept:?}");
            (events, lost) = (events + kept.read, lost + whole);
            if gone > 0 {
                *flagged.entry(kept.cpu).or_default() += gone;
            }
        }
    }
    let mut dropped = theirs.dropped;
    dropped.retain(|_, events| *events > 0);
    assert_eq!(dropped, flagged, "{kernel}: dropped by CPU, trace-cmd's on the left");
    let statistics = trace_cmd(&file, &["--stat"]);
    let read: u64 =
        statistics.lines().filter_map(|line| line.strip_prefix("read events: ")?.parse::<u64>().ok()).sum();
    assert_eq!(read, events, "{kernel}: {statistics}");
    assert!(events > 1000, "{kernel}: {events} events are no trace");
    let of = format!("{kernel}, {}", dir.file_name().unwrap().to_string_lossy());
    let why = "as many by name and CPU as trace-cmd, and by CPU as the kernel".to_owned();
    let counted = Row::new(format!("{of}: events"), events as f64, "");
    print_row(&Row { why: Some(why), ..counted });
    print_row(&Row::new(format!("{of}: events lost"), lost as f64, ""));
    println!(
        "{kernel:>7} {:<8} {events} events, as many by name and CPU as trace-cmd and by CPU as the kernel; {lost} lost, {} of \
         them told on the pages",
        dir.file_name().unwrap().to_string_lossy(),
        flagged.values().sum::<u64>()
    );
    lost
}

/// Events that the pages say are missing, and pages that do not say how many.
fn holes(counts: &Value, cpu: &str) -> (u64, u64) {
    let number = |name: &str| counts["lost"][cpu][name].as_u64().unwrap_or(0);
    (number("events"), number("unknown_pages"))
}

/// Release and latency of each sample, ns.
type Latencies = Vec<(i64, i64)>;

/// The wake-up probes of a run with their windows, and the samples that statistics count.
fn wakeups<'r>(run: &'r Run, dir: &Path) -> Vec<(&'r ProbeRecord, MeasuredWindow, Latencies)> {
    let probes = run.probes.iter().filter(|probe| probe.probe() == ProbeKind::Wakeup);
    probes
        .map(|probe| {
            let inside =
                |window: &&model::run::Window| window.t0_ns <= probe.t0_ns && probe.t1_ns <= window.t1_ns;
            let window = run.windows.iter().find(inside).unwrap();
            let (_, samples) = samples_file::read(&dir.join(&probe.file)).unwrap();
            let counted = samples.iter().filter(|sample| Sample::counts(sample) && sample.value_ns >= 0);
            let mut samples: Vec<_> = counted.map(|sample| (sample.t_ns, sample.value_ns)).collect();
            samples.sort_unstable();
            let measured = vec![MeasuredCpu { cpu: probe.cpu, tid: probe.tid }];
            (
                probe,
                MeasuredWindow { t0_ns: window.t0_ns, t1_ns: window.t1_ns, measured, snapshot: false },
                samples,
            )
        })
        .collect()
}

/// Shares of the latencies of a run: by step, the time that nothing visible took; and the time that
/// was taken.
#[derive(Debug, Default)]
struct Shares {
    samples: usize,
    total_ns: u64,
    itself: BTreeMap<Step, u64>,
    taken_ns: u64,
}

impl Shares {
    fn add(&mut self, path: &WakePath) {
        self.samples += 1;
        self.total_ns += path.value_ns.unsigned_abs();
        for part in &path.parts {
            match part.taken {
                None => *self.itself.entry(part.step).or_default() += part.ns,
                Some(_) => self.taken_ns += part.ns,
            }
        }
    }

    fn describe(&self) -> String {
        let percent = |ns: u64| ns as f64 * 100.0 / self.total_ns.max(1) as f64;
        let mut text = format!("{:.1} % taken by what was seen to run", percent(self.taken_ns));
        for (step, ns) in &self.itself {
            write!(text, ", {:.1} % {step:?}", percent(*ns)).unwrap();
        }
        // Between two marks a step is what its name says. No event explains a timer that is late
        // while nothing is seen to run.
        let late = [Step::TimerLate, Step::NeverSlept].iter().filter_map(|step| self.itself.get(step));
        write!(text, "; unexplained {:.1} %", percent(late.sum())).unwrap();
        text
    }
}

/// Every wake-up of the run: each nanosecond of its latency is in one box, in the order of time,
/// without gaps.
fn every_wake_up_adds_up(kernel: &str, dir: &Path) {
    let run = model::run::stored::read_run(dir).unwrap();
    let file = TraceFile::open(&dir.join(store::TRACE)).unwrap();
    let buffers: Vec<_> = buffers(&run).into_iter().map(|(name, _)| name).collect();
    let mut shares = Shares::default();
    for (probe, window, samples) in wakeups(&run, dir) {
        let mut seen = Vec::new();
        paths_in(&file, &buffers, &window, &[(window.measured[0], samples.clone())], |_, path| {
            add_up(kernel, &path);
            shares.add(&path);
            seen.push((path.t_ns, path.value_ns));
        })
        .unwrap();
        seen.sort_unstable();
        assert_eq!(seen, samples, "{kernel} {}: a sample was not taken apart", probe.phase);
    }
    assert!(shares.samples > 100, "{kernel}: {} samples are no run", shares.samples);
    println!(
        "{kernel:>7} {} wake-ups, the boxes of each add up to its latency: {}",
        shares.samples,
        shares.describe()
    );
}

fn add_up(kernel: &str, path: &WakePath) {
    let boxes: u64 = path.parts.iter().map(|part| part.ns).sum();
    assert_eq!(boxes, path.value_ns.unsigned_abs(), "{kernel}: {path:?}");
    let mut by_part = vec![0u64; path.parts.len()];
    let mut now_ns = path.t_ns;
    for piece in &path.pieces {
        assert!(piece.t0_ns == now_ns && piece.t1_ns >= piece.t0_ns, "{kernel}: {path:?}");
        by_part[piece.part] += piece.t1_ns.abs_diff(piece.t0_ns);
        now_ns = piece.t1_ns;
    }
    assert!(path.pieces.is_empty() || now_ns == path.t_ns + path.value_ns, "{kernel}: {path:?}");
    assert!(by_part.iter().zip(&path.parts).all(|(ns, part)| *ns == part.ns), "{kernel}: {path:?}");
}

/// From cyclictest's own output: its measuring thread and its cycles.
fn cyclictest(output: &str) -> (i64, u64) {
    let line = output.lines().find(|line| line.starts_with("T: 0 (")).unwrap_or_else(|| panic!("{output}"));
    let number = |after: &str, until: &str| {
        let (_, rest) = line.split_once(after).unwrap();
        rest.split(until).next().unwrap().trim().parse::<u64>().unwrap()
    };
    (number("(", ")").cast_signed(), number("C:", "Min"))
}

/// Each cycle of cyclictest was released by its timer, which found it asleep, or still on its way
/// there.
fn cyclictest_was_watched(kernel: &str, root: &Path) {
    let answer = read_json(&root.join("watched.json"));
    let log = fs::read_to_string(root.join("watched.log")).unwrap();
    let (tid, cycles) = cyclictest(&log);
    assert_eq!((cycles, answer["complete"].as_bool()), (CYCLES, Some(true)), "{log}");
    let statements = answer["statements"].as_array().unwrap();
    assert!(
        statements.iter().all(|one| !one.to_string().contains("switches are missing")),
        "{kernel}: {statements:?}"
    );
    let threads = answer["watch"]["threads"].as_array().unwrap();
    let thread = threads.iter().find(|thread| thread["tid"] == tid).unwrap();
    let releases = thread["releases"].as_array().unwrap();
    let timer = releases.iter().filter(|release| release["kind"] == "timer");
    let released: u64 = timer.map(|release| release["n"].as_u64().unwrap()).sum();
    let early = thread["early_wakes"].as_u64().unwrap();
    let what = format!("{kernel}, cyclictest: releases by its timer");
    print_row(&Row::new(what, released as f64, "").n(cycles));
    println!(
        "{kernel:>7} cyclictest watched: {cycles} cycles, {released} releases by its timer, {early} before it slept"
    );
    assert!(released <= cycles && released + early >= cycles, "{kernel}: {thread}");
}

pub(crate) fn ended(root: &Path, name: &str, codes: &[&str]) {
    let read = |end: &str| fs::read_to_string(root.join(format!("{name}.{end}"))).unwrap();
    assert!(codes.contains(&read("code").trim()), "{name}: {}: {}", read("code"), read("log"));
    assert_eq!(read("left"), "", "{name} left something");
}

/// The traces of a script with `traces`.
pub(crate) fn traces(guest: &Guest) {
    let (root, kernel) = (&guest.root, guest.kernel());
    println!("{kernel:>7} is {}", fs::read_to_string(root.join("release")).unwrap().trim());
    // Findings about the guest are not tested here.
    ended(root, "run", &["0", "2"]);
    ended(root, "watched", &["0"]);
    ended(root, "lossy", &["0"]);
    assert_eq!(counted_alike(kernel, &root.join("run")), 0);
    every_wake_up_adds_up(kernel, &root.join("run"));
    assert_eq!(counted_alike(kernel, &root.join("watched")), 0);
    cyclictest_was_watched(kernel, root);
    let lost = counted_alike(kernel, &root.join("lossy"));
    assert!(lost > 0, "{kernel}: nothing was lost in the smallest buffers");
    let statements = read_json(&root.join("lossy.json"))["statements"].to_string();
    assert!(statements.contains("trace events are lost"), "{kernel}: {statements}");
}
