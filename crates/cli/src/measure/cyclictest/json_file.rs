//! The file that `--json=FILE` of rt-tests writes (`rt_write_json()` of rt-utils.c, `write_stats()`
//! of cyclictest.c), version 1, its two keys that end in a colon included. What stillcore counts
//! besides is under a key of its own.

use super::figures::Figures;
use super::plan::Plan;
use machine::Root;
use model::Machine;
use serde_json::{Map, Value, json};
use std::path::Path;

/// What the file says of the run as a whole.
pub(super) struct About<'a> {
    /// The machine it ran on.
    pub(super) machine: &'a Machine,
    /// When it began.
    pub(super) started: jiff::Timestamp,
    /// Whether values are in ns.
    pub(super) nsecs: bool,
    /// The run directory, where the user wanted one.
    pub(super) run: Option<&'a Path>,
}

/// The document.
pub(super) fn document(about: &About<'_>, plan: &Plan, all: &[Figures]) -> Value {
    let kernel = &about.machine.kernel;
    let date = |time: jiff::Timestamp| time.strftime("%a, %d %b %Y %T +0000").to_string();
    let threads: Map<String, Value> = all
        .iter()
        .enumerate()
        .map(|(number, one)| (number.to_string(), thread(about, plan, number, one)))
        .collect();
    let lists = |count: fn(&Figures) -> u64| all.iter().map(count).collect::<Vec<_>>();
    json!({
        "file_version": 1,
        "cmdline:": std::env::args().collect::<Vec<_>>().join(" "),
        "rt_test_version:": concat!("stillcore ", env!("CARGO_PKG_VERSION")),
        "start_time": date(about.started),
        "end_time": date(jiff::Timestamp::now()),
        "return_code": 0,
        "sysinfo": {
            "sysname": "Linux",
            "nodename": Root::live().maybe("proc/sys/kernel/hostname"),
            "release": kernel.release,
            "version": kernel.version,
            "machine": kernel.arch,
            "realtime": u8::from(kernel.realtime),
        },
        "num_threads": all.len(),
        "resolution_in_ns": u8::from(about.nsecs),
        "thread": threads,
        "stillcore": { "run": about.run, "missed": lists(|one| one.missed), "lost": lists(|one| one.lost), "early": lists(|one| one.early) },
    })
}

fn thread(about: &About<'_>, plan: &Plan, number: usize, one: &Figures) -> Value {
    let cpu = plan.threads.get(number).and_then(|thread| thread.cpus.iter().next());
    let topology = about.machine.topology.cpus.iter().find(|known| Some(known.cpu) == cpu);
    let mut value = json!({
        "cycles": one.values.len(),
        "min": one.min(),
        "max": one.max(),
        "avg": (one.mean() * 100.0).round() / 100.0,
        "cpu": cpu,
        "node": topology.and_then(|known| known.node).unwrap_or(0),
    });
    if let Some(bins) = plan.bins {
        let (counts, _) = one.bins(bins);
        let filled = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        value["histogram"] = filled.map(|(bin, count)| (bin.to_string(), Value::from(*count))).collect();
    }
    value
}
