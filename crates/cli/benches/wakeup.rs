//! The wake-up probe beside cyclictest: same CPU, priority, period and length, run in turns so that a machine that drifts drifts for
//! both. `cargo bench -p stillcore --bench wakeup [-- --cpu N --repetitions N --seconds N]`; needs root and the package rt-tests.
//!
//! Prints minimum, median and CPU time per sample of every run and the ratio of the medians of the runs. It judges nothing.

mod common;

use common::{Failed, histogram, median, option, quantile, run};
use linux::measure::handle::ProbeHandle;
use linux::measure::spec::{ProbeSpec, Task, WakeupSpec};
use linux::sys::clock::{self, ClockId};
use model::Cpus;
use model::sample::Policy;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use study::{Cell, Store, Study};

const PRIORITY: u32 = 80;
const PERIOD_US: u64 = 200;
/// cyclictest counts in bins of 1 ns with -N; what lies above is in its overflow count.
const BINS_NS: usize = 900_000;

fn main() {
    let last = std::thread::available_parallelism().map_or(1, |n| n.get() as u32) - 1;
    let (cpu, repetitions, seconds) =
        (option("--cpu", last), option("--repetitions", 6), option("--seconds", 3));
    run("bench", || compare(cpu, repetitions, seconds));
}

fn compare(cpu: u32, repetitions: u32, seconds: u64) -> Result<(), Failed> {
    let study = Study {
        schema: study::STUDY_SCHEMA.to_owned(),
        name: "wakeup-peers".to_owned(),
        seed: 1,
        factors: BTreeMap::from([("tool".to_owned(), vec![json!("stillcore"), json!("cyclictest")])]),
        repetitions,
    };
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-wakeup");
    let _ = std::fs::remove_dir_all(&directory);
    let cells = study.cells().map_err(Failed::because)?;
    println!(
        "wake-up, CPU {cpu}, SCHED_FIFO {PRIORITY}, period {PERIOD_US} us, {seconds} s a run, in turns; ns"
    );
    println!("{:<12} {:>8} {:>10} {:>10} {:>14}", "tool", "n", "min", "median", "cpu/sample");
    let mut results: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let one = |cell: &Cell| {
        let result =
            if cell.factors["tool"] == "stillcore" { ours(cpu, seconds) } else { cyclictest(cpu, seconds) }?;
        let tool = cell.factors["tool"].as_str().unwrap_or_default().to_owned();
        let figure = |name: &str| result[name].as_i64().unwrap_or_default();
        println!(
            "{tool:<12} {:>8} {:>10} {:>10} {:>14}",
            figure("n"),
            figure("min"),
            figure("median"),
            figure("cpu_per_sample")
        );
        results.entry(tool).or_default().push(result.clone());
        Ok::<_, Failed>(result)
    };
    study::run(&cells, &Store::new(&directory), one).map_err(Failed::because)?;
    let of = |tool: &str, figure: &str| {
        median(results[tool].iter().filter_map(|result| result[figure].as_f64()).collect())
    };
    for figure in ["min", "median", "cpu_per_sample"] {
        let (ours, theirs) = (of("stillcore", figure), of("cyclictest", figure));
        println!("{figure}: stillcore {ours:.0}, cyclictest {theirs:.0}, ratio {:.3}", ours / theirs);
    }
    Ok(())
}

fn ours(cpu: u32, seconds: u64) -> Result<Value, Failed> {
    let directory = tempfile::tempdir().map_err(Failed::because)?;
    std::fs::create_dir(directory.path().join(model::store::SAMPLES)).map_err(Failed::because)?;
    let wakeup = WakeupSpec {
        period_ns: (PERIOD_US * 1000) as i64,
        offset_ns: 0,
        warm_up: 20,
        clock: ClockId::Monotonic,
        loops: 0,
    };
    let spec = ProbeSpec {
        thread: 0,
        cpus: Cpus::one(cpu),
        policy: Policy::fifo(PRIORITY),
        timer_slack_ns: 1,
        duration_ns: (seconds * 1_000_000_000) as i64,
        task: Task::Wakeup(wakeup),
    };
    let program = Path::new(env!("CARGO_BIN_EXE_stillcore"));
    let mut handle = ProbeHandle::spawn(program, &spec).map_err(Failed::because)?;
    while !handle.ready().map_err(Failed::because)? {
        clock::sleep_until(clock::now_ns() + 1_000_000);
    }
    let start = clock::now_ns() + 30_000_000;
    let mut drain = handle.start(start, directory.path(), 0).map_err(Failed::because)?;
    while !drain.done() {
        drain.poll().map_err(Failed::because)?;
        clock::sleep_until(clock::now_ns() + 50_000_000);
    }
    let (record, limits) = drain.finish("bench").map_err(Failed::because)?;
    if let Some(limit) = limits.first() {
        return Err(Failed::because(limit));
    }
    let (_, samples) =
        model::samples_file::read(&directory.path().join(&record.file)).map_err(Failed::because)?;
    let mut values: Vec<i64> =
        samples.iter().filter(|sample| sample.counts()).map(|sample| sample.value_ns).collect();
    values.sort_unstable();
    Ok(json!({
        "n": values.len(),
        "min": values.first(),
        "median": values.get(values.len() / 2),
        "cpu_per_sample": record.cpu_time_ns / record.samples.max(1),
    }))
}

fn cyclictest(cpu: u32, seconds: u64) -> Result<Value, Failed> {
    let loops = seconds * 1_000_000 / PERIOD_US;
    let arguments = format!(
        "-N -m -q --default-system -p{PRIORITY} -t1 -a{cpu} -i{PERIOD_US} -l{loops} -h{BINS_NS} --mainaffinity=0"
    );
    let before = children_cpu_ns();
    let output = Command::new("cyclictest").args(arguments.split(' ')).output();
    let output = output.map_err(|error| Failed(format!("cyclictest: {error} (package rt-tests)")))?;
    let cpu_ns = children_cpu_ns() - before;
    let text = String::from_utf8_lossy(&output.stdout);
    let (bins, overflow) = histogram(&text)
        .map_err(|error| Failed(format!("{error}: {}", String::from_utf8_lossy(&output.stderr).trim())))?;
    let n = bins.iter().map(|bin| bin.1).sum::<u64>() + overflow;
    // Its CPU time covers its whole process, main thread and start included.
    Ok(json!({
        "n": n,
        "min": bins.first().map(|bin| bin.0),
        "median": quantile(&bins, overflow, 0.5),
        "cpu_per_sample": cpu_ns / n,
    }))
}

/// CPU time of all children that have ended, ns: user and system of `/proc/self/stat`, fields 16 and 17, in ticks of 10 ms.
fn children_cpu_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<_> =
        stat.rsplit_once(") ").map_or(Vec::new(), |(_, rest)| rest.split_whitespace().collect());
    let ticks = |index: usize| fields.get(index).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    (ticks(13) + ticks(14)) * 10_000_000
}
