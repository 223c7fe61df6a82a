//! `sched analyze FILE` of the program that ships, end to end: lines of JSON in, lines of JSON out, sets per second of CPU time.
//! `cargo bench -p stillcore --bench analyze [-- --program PATH --sets N --systems N --rounds N]`.
//!
//! Beside it stand rates of SchedCAT (commit 86211bc) that were recorded once, on another day: the fastest of several recordings, of
//! its own objects, without reading any file. So the ratios are no comparison in turns, and have no interval. CPU time comes in ticks
//! of 10 ms; the sets are many enough for that. Budget of section 7 of the design.

mod common;

use common::process::{children_cpu_ns, program};
use common::{Failed, median, option, run};
use result::row::median_interval;
use result::{Limit, Of, Ratio, Row, Sink};
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

/// Sets of 40 tasks on one core, U = 0.8.
const SETS: &str = "--n 40 --utilization 0.8 --seed 1";
/// 20 cores of 10 tasks, one resource, one request of 204 us a job.
const SYSTEMS: &str = "--n 10 --cores 20 --per-core --utilization 0.75 --resources 1 --access 1 --requests 1 --section 204us:204us --seed 1";

struct Case {
    name: &'static str,
    arguments: &'static str,
    locks: bool,
    /// SchedCAT's, per second.
    recorded: f64,
    budget: Option<f64>,
}

const CASES: [Case; 4] = [
    Case {
        name: "fp-rta",
        arguments: "--test fp-rta",
        locks: false,
        recorded: 1_800.0,
        budget: Some(100_000.0),
    },
    Case {
        name: "edf-qpa",
        arguments: "--test edf-qpa",
        locks: false,
        recorded: 17_730.0,
        budget: Some(100_000.0),
    },
    Case {
        name: "fifo-np, one pass",
        arguments: "--locks fifo-np --blocking-only",
        locks: true,
        recorded: 1.16,
        budget: None,
    },
    Case {
        name: "phase-fair, one pass",
        arguments: "--locks phase-fair --blocking-only",
        locks: true,
        recorded: 2_797.0,
        budget: None,
    },
];

fn main() {
    run("analyze", measure);
}

fn measure(rows: &mut Sink) -> Result<(), Failed> {
    let (sets, systems): (u64, u64) = (option("--sets", 20_000), option("--systems", 1_000));
    let rounds: u32 = option("--rounds", 7);
    let place = tempfile::tempdir().map_err(Failed::because)?;
    let [file_of_sets, file_of_systems] =
        [("sets", SETS, sets), ("systems", SYSTEMS, systems)].map(|(name, spec, count)| {
            let path = place.path().join(name);
            stillcore(&format!("sched generate {spec} --count {count}"), None, Some(&path)).map(|_| path)
        });
    let (file_of_sets, file_of_systems) = (file_of_sets?, file_of_systems?);
    rows.note(format!(
        "{sets} sets of 40 tasks, U = 0.8, and {systems} systems of 20 cores with 10 tasks each and one resource; {rounds} rounds"
    ))?;
    rows.note("SchedCAT 86211bc: the fastest of its recorded rates, of another day, native or from its Python model, no file read")?;
    for case in CASES {
        let (file, count) = if case.locks { (&file_of_systems, systems) } else { (&file_of_sets, sets) };
        let command = format!("sched analyze {{}} {} --json", case.arguments);
        let mut rates = Vec::new();
        for _ in 0..rounds {
            let cpu_ns = stillcore(&command, Some(file), None)?;
            rates.push(count as f64 / (cpu_ns.max(1) as f64 / 1e9));
        }
        rates.sort_by(f64::total_cmp);
        let rate = median(rates.clone());
        let mut row = Row::new(format!("sched analyze, {}", case.name), rate, "sets per s of CPU time")
            .n(u64::from(rounds));
        if let Some([low, high]) = median_interval(&rates) {
            row = row.between(low, high);
        }
        let ratio = Ratio { median: rate / case.recorded, low: None, high: None };
        row = row.beside("SchedCAT, recorded", case.recorded).ratio(Some(ratio));
        rows.push(match case.budget {
            Some(least) => row.budget(Of::Value, Limit::AtLeast(least)),
            None => row,
        })?;
    }
    Ok(())
}

/// Runs the program; the CPU time of its process, ns. `{}` in the arguments stands for the file to read.
fn stillcore(arguments: &str, reads: Option<&Path>, writes: Option<&Path>) -> Result<u64, Failed> {
    let mut command = Command::new(program());
    for word in arguments.split_whitespace() {
        match (word, reads) {
            ("{}", Some(path)) => command.arg(path),
            _ => command.arg(word),
        };
    }
    command.stdout(match writes {
        Some(path) => Stdio::from(File::create(path).map_err(Failed::because)?),
        None => Stdio::null(),
    });
    let before_ns = children_cpu_ns();
    let status = command.stdin(Stdio::null()).status().map_err(Failed::because)?;
    // 2: some set is not schedulable, which is an answer.
    match status.code() {
        Some(0 | 2) => Ok(children_cpu_ns() - before_ns),
        _ => Err(Failed(format!("{arguments}: {status}"))),
    }
}
