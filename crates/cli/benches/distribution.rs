//! Whether the wake-up probe and cyclictest see the same distribution: runs of both in turns in one
//! lab guest, quantiles of each run, and for each quantile the median ratio over the pairs of runs
//! with its run-level bootstrap interval (`stats::runs`).
//! `cargo bench -p stillcore --bench distribution [-- --kernel K --pairs N --seconds N]`; needs
//! QEMU and the binary for guests.
//!
//! An interval that contains 1 means that these runs cannot distinguish the two. Guest times mean
//! nothing; ratios of interleaved runs do.

mod common;

use common::{Failed, histogram, median, option, quantile, run};
use result::{Ratio, Row, Sink};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Quantiles that a run of some thousand samples bears.
const QUANTILES: [f64; 2] = [0.5, 0.9];

fn main() {
    run("distribution", compare);
}

fn compare(rows: &mut Sink) -> Result<(), Failed> {
    let (kernel, program) = (
        option("--kernel", "6.1".to_owned()),
        option("--program", env!("CARGO_BIN_EXE_stillcore").to_owned()),
    );
    let (pairs, seconds): (usize, u64) = (option("--pairs", 12), option("--seconds", 4));
    let place = tempfile::tempdir().map_err(Failed::because)?;
    let out = place.path().join("lab");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/distribution.sh");
    let mut command = Command::new(&program);
    command.args(["lab", "run", "--kernel", &kernel, "--packages", "busybox-static,rt-tests"]);
    command.args(["--timeout", "1800s"]);
    command.arg("--add").arg(format!("{}:/root/runs.sh", script.display())).arg("--out").arg(&out);
    command.args(["--", "/bin/busybox", "sh", "/root/runs.sh", &pairs.to_string(), &seconds.to_string()]);
    let output = command.output().map_err(Failed::because)?;
    if !output.status.success() {
        return Err(Failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    let root = out.join("root");
    let ours = (0..pairs).map(|k| ours(&root, k)).collect::<Result<Vec<_>, _>>()?;
    let theirs = (0..pairs).map(|k| theirs(&root, k)).collect::<Result<Vec<_>, _>>()?;
    rows.note(format!(
        "kernel {kernel} in a guest, CPU 2, SCHED_FIFO 80, period 1 ms, {pairs} pairs of runs of {seconds} s, in turns"
    ))?;
    for (index, name) in ["minimum", "p50", "p90"].iter().enumerate() {
        let column = |runs: &[[f64; 3]]| runs.iter().map(|run| run[index]).collect::<Vec<_>>();
        let (ours, theirs) = (column(&ours), column(&theirs));
        let found = stats::runs::compare(&ours, &theirs, 1).ok_or_else(|| Failed::because("no pairs"))?;
        let [low, high] = found.interval.map_or([None; 2], |ends| ends.map(Some));
        let row = Row::new(format!("wake-up: {name}"), median(ours) / 1e3, "us").n(pairs as u64);
        let row = row.beside("cyclictest", median(theirs) / 1e3);
        rows.push(row.ratio(Some(Ratio { median: found.ratio, low, high })))?;
    }
    Ok(())
}

/// Minimum and quantiles of one of our runs.
fn ours(root: &Path, k: usize) -> Result<[f64; 3], Failed> {
    let text = std::fs::read_to_string(root.join(format!("ours/{k}.json"))).map_err(Failed::because)?;
    let answer: Value = serde_json::from_str(&text).map_err(Failed::because)?;
    let figures = &answer["threads"][0]["figures"];
    let quantile = |p: f64| {
        let listed = figures["quantiles"].as_array().into_iter().flatten();
        let found =
            listed.filter(|one| one["p"].as_f64() == Some(p)).find_map(|one| one["value_ns"].as_f64());
        found.ok_or_else(|| Failed(format!("run {k} has no quantile {p}")))
    };
    let least = figures["min_ns"].as_f64().ok_or_else(|| Failed::because("no minimum"))?;
    Ok([least, quantile(QUANTILES[0])?, quantile(QUANTILES[1])?])
}

/// The same of one of theirs, from its histogram: of 1 µs, because one of 1 ns ends at 1 ms, which
/// a busy host reaches. A bin's middle stands for what is in it.
fn theirs(root: &Path, k: usize) -> Result<[f64; 3], Failed> {
    let text = std::fs::read_to_string(root.join(format!("theirs/{k}.txt"))).map_err(Failed::because)?;
    let (bins, overflow) = histogram(&text)?;
    let middle_ns = |us: u64| (us as f64 + 0.5) * 1e3;
    let at = |p: f64| {
        let found = quantile(&bins, overflow, p).map(middle_ns);
        found.ok_or_else(|| Failed(format!("quantile {p} is above the histogram")))
    };
    Ok([middle_ns(bins[0].0), at(QUANTILES[0])?, at(QUANTILES[1])?])
}
