//! What `trace watch` costs a program that locks: the same loop (`tests/plants/locking.c`) alone and
//! watched, in turns.
//! `cargo bench -p stillcore --bench lock_cost [-- --turns N --seconds N]`; needs root and a C
//! compiler.
//!
//! The loop's own CPU time is compared, so that neighbours of the machine count as little as can be.

mod common;

use common::plants::{compile, source};
use common::turns::turns;
use common::{Failed, option, run};
use result::{Limit, Of};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

const ALONE: &str = "alone";
const WATCHED: &str = "watched";

/// A loop: its mode, which of its times to compare, and what the ratio may be.
const LOOPS: [(&str, &str, &str, f64); 2] = [
    // Alone the least batch is that in which nobody interrupted.
    ("free", "lock and unlock, never contended", "least_ns", 1.02),
    ("contended", "a loop in which the lock is taken now and then", "mean_ns", 1.05),
];

fn main() {
    let program = option("--program", env!("CARGO_BIN_EXE_stillcore").to_owned());
    let (repetitions, seconds) = (option("--turns", 9), option("--seconds", 3));
    run("lock_cost", |rows| {
        let place = tempfile::tempdir().map_err(Failed::because)?;
        let plant = place.path().join("locking");
        compile(Command::new("cc").args(["-O2", "-pthread", "-o"]).arg(&plant).arg(source("locking.c")))?;
        rows.note(format!("{seconds} s a run"))?;
        for (mode, what, time, limit) in LOOPS {
            let one = |tool: &str| work(&program, &plant, tool, mode, seconds, place.path());
            let done = turns(&format!("bench-locks-{mode}"), &[ALONE, WATCHED], repetitions, one)?;
            let row = done.row(format!("{what}: CPU time"), ("ns", 1.0), (WATCHED, time), (ALONE, time));
            rows.push(row.budget(Of::Ratio, Limit::AtMost(limit)))?;
            let taken = |tool| done.sum(tool, "taken") as f64 / done.sum(tool, "iterations").max(1) as f64;
            for tool in [ALONE, WATCHED] {
                let row = result::Row::new(format!("{what}, {tool}: taken"), taken(tool) * 100.0, "%");
                rows.push(row.n(done.sum(tool, "iterations")))?;
            }
            if mode != "free" {
                rows.push(done.sum_row(format!("{what}: waits reported"), WATCHED, "waits"))?;
            }
        }
        Ok(())
    });
}

fn work(
    program: &str,
    plant: &Path,
    tool: &str,
    mode: &str,
    seconds: u64,
    place: &Path,
) -> Result<Value, Failed> {
    let run = place.join("run");
    let _ = std::fs::remove_dir_all(&run);
    let mut command = Command::new(if tool == ALONE { plant } else { Path::new(program) });
    if tool == WATCHED {
        command.args(["trace", "watch", "--json", "--out"]).arg(&run).arg("--").arg(plant);
    }
    let output = command.args([mode, &seconds.to_string()]).output().map_err(Failed::because)?;
    // With --json the command's own output is on standard error.
    let said = if tool == ALONE { &output.stdout } else { &output.stderr };
    let said = String::from_utf8_lossy(said);
    let numbers = said.lines().find_map(|line| {
        let numbers: Result<Vec<f64>, _> = line.split_whitespace().map(str::parse).collect();
        <[f64; 4]>::try_from(numbers.ok()?).ok()
    });
    let [mean_ns, least_ns, iterations, taken] =
        numbers.ok_or_else(|| Failed(format!("{tool}, {mode}: {said}")))?;
    let answer: Value = if tool == WATCHED {
        serde_json::from_slice(&output.stdout).map_err(|error| Failed(format!("{tool}, {mode}: {error}")))?
    } else {
        Value::Null
    };
    // Where nobody waited there is no section.
    let locks = answer["watch"]["locks"]["locks"].as_array().cloned().unwrap_or_default();
    let waits: u64 = locks.iter().filter_map(|lock| lock["n"].as_u64()).sum();
    Ok(json!({
        "mean_ns": mean_ns, "least_ns": least_ns, "waits": waits,
        "iterations": iterations as u64, "taken": taken as u64,
    }))
}
