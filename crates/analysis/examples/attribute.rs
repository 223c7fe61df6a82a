//! Decodes, classifies and attributes a whole trace on one thread, every CPU measured, and counts:
//! a row of `cargo xtask bench trace`.
//! `cargo run --release -p stillcore-analysis --example attribute -- FILE`.
//!
//! Every span goes into the table of sources, as in the analysis of a run. Prints one JSON object:
//! events, spans, spans by how their source is known, seconds, events a second, and the highest
//! resident size of the process in KiB (`VmHWM` of /proc/self/status; null where there is none).

use attribution::Error;
use attribution::attribute::table::Table;
use attribution::attribute::windows::{MeasuredWindow, spans_in};
use attribution::spans::MeasuredCpu;
use ftrace::TraceFile;
use model::events::EventCatalogue;
use std::path::Path;
use std::time::Instant;

/// No task: every CPU is watched, and no probe runs.
const NO_PROBE: i32 = -1;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: attribute FILE")?;
    let started = Instant::now();
    let file = TraceFile::open(Path::new(&path))?;
    let measured: Vec<_> = file.cpus().iter().map(|cpu| MeasuredCpu { cpu: *cpu, tid: NO_PROBE }).collect();
    let names: Vec<&str> = file.buffers().iter().map(|buffer| buffer.name.as_str()).collect();
    let highest = measured.iter().map(|one| one.cpu.min(model::cpus::MAX_CPU)).max().unwrap_or(0);
    let mut tables = vec![Table::default(); highest as usize + 1];
    let catalogue = EventCatalogue::embedded()?;
    let always = MeasuredWindow { t0_ns: i64::MIN, t1_ns: i64::MAX, measured, snapshot: false };
    let passed = spans_in(&file, &catalogue, &names, &[always], |span, _| {
        tables[span.cpu as usize].add(span, span.net_ns);
        Ok::<_, Error>(())
    })?;
    let seconds = started.elapsed().as_secs_f64();
    let known = tables.iter().map(Table::known).fold([0; 3], |a, b| [a[0] + b[0], a[1] + b[1], a[2] + b[2]]);
    let answer = serde_json::json!({
        "events": passed.decoded, "unknown": passed.unknown, "holes": passed.holes, "damaged": passed.damaged,
        "spans": passed.events + passed.continued, "exact": known[0], "by_order": known[1], "no_source": known[2],
        "seconds": seconds, "events_per_s": passed.decoded as f64 / seconds, "peak_rss_kib": peak_rss_kib(),
    });
    println!("{answer}");
    Ok(())
}

fn peak_rss_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.split_whitespace().next()?.parse().ok()
}
