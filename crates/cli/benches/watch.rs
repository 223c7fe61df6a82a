//! `trace watch` beside the program it watches: cyclictest reports its own latencies, `trace watch`
//! those from the kernel's events, for the same wake-ups of the same run. On this machine and in a
//! guest, in turns. `cargo bench -p stillcore --bench watch [-- --turns N --seconds N --kernel K]`;
//! needs root, rt-tests, QEMU and the binary for guests.
//!
//! cyclictest reads the clock in user space and truncates to whole microseconds; ours ends at the
//! switch to the thread. Times on a shared machine mean nothing, and less in a guest: what is
//! compared is two views of the same wake-ups. It judges nothing.

mod common;

use common::{Failed, median, option, run};
use result::{Row as Counted, Sink};
use serde_json::Value;
use std::fs;
use std::process::Command;

fn main() {
    let turns: u32 = option("--turns", 3);
    let plan = Plan {
        program: option("--program", env!("CARGO_BIN_EXE_stillcore").to_owned()),
        kernel: option("--kernel", "6.1".to_owned()),
        seconds: option("--seconds", 5),
    };
    run("watch", |rows| beside(&plan, turns, rows));
}

struct Plan {
    /// The static command, here and in guests.
    program: String,
    kernel: String,
    seconds: u64,
}

/// One thread in one run, as both report it.
struct Row {
    place: String,
    /// Interval of its releases, us.
    interval_us: u64,
    cycles: u64,
    releases: u64,
    /// cyclictest's own, us.
    its: [f64; 2],
    /// Ours from the timer's intended expiry to the switch, us.
    ours: [f64; 2],
    /// Times the thread was preempted, woken before it slept, and switches that the trace lacks.
    aside: [u64; 3],
}

fn beside(plan: &Plan, turns: u32, sink: &mut Sink) -> Result<(), Failed> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").map_err(Failed::because)?;
    let here = "here".to_owned();
    let guest = format!("guest, {}", plan.kernel);
    let mut rows = Vec::new();
    for _ in 0..turns {
        rows.extend(on_this_machine(plan, &here)?);
        rows.extend(in_guest(plan, &guest)?);
    }
    sink.note(format!("this machine runs {}", release.trim()))?;
    sink.note(format!(
        "{turns} runs of {} s of each, in turns; times are medians of the runs, counts sums",
        plan.seconds
    ))?;
    let mut threads: Vec<(&str, u64)> =
        rows.iter().map(|row| (row.place.as_str(), row.interval_us)).collect();
    threads.sort_unstable();
    threads.dedup();
    for (place, interval_us) in threads {
        let of = || rows.iter().filter(|row| row.place == place && row.interval_us == interval_us);
        let on = format!("{place}, every {interval_us} us");
        let count = |what: &str, one: fn(&Row) -> u64| {
            Counted::new(format!("{on}: {what}"), of().map(one).sum::<u64>() as f64, "")
        };
        sink.push(count("cycles", |row| row.cycles))?;
        sink.push(count("releases by timer", |row| row.releases))?;
        sink.push(count("preempted after the switch", |row| row.aside[0]))?;
        sink.push(count("woken while running", |row| row.aside[1]))?;
        sink.push(count("switches not in the trace", |row| row.aside[2]))?;
        for (at, what) in ["mean", "maximum"].into_iter().enumerate() {
            let [ours, its] =
                [of().map(|row| row.ours[at]).collect(), of().map(|row| row.its[at]).collect()].map(median);
            let row = Counted::new(format!("{on}: {what}"), ours, "us").n(u64::from(turns));
            sink.push(row.beside("cyclictest", its))?;
        }
    }
    for place in [&here, &guest] {
        let of = || rows.iter().filter(|row| row.place == *place);
        for (at, what) in ["mean", "maximum"].into_iter().enumerate() {
            let less = median(of().map(|row| row.its[at] - row.ours[at]).collect());
            let what = format!("{place}: cyclictest less ours, {what}");
            sink.push(Counted::new(what, less, "us").n(of().count() as u64))?;
        }
        let missing: u64 = of().map(|row| row.cycles.abs_diff(row.releases)).sum();
        let cycles: u64 = of().map(|row| row.cycles).sum();
        let what = format!("{place}: cycles that are no release by the timer");
        sink.push(Counted::new(what, missing as f64, "").n(cycles))?;
    }
    Ok(())
}

fn on_this_machine(plan: &Plan, place: &str) -> Result<Vec<Row>, Failed> {
    let directory = tempfile::tempdir().map_err(Failed::because)?;
    let mut command = Command::new(&plan.program);
    command.args(["trace", "watch", "--json", "--out"]).arg(directory.path().join("run"));
    command.arg("--state").arg(directory.path().join("state")).arg("--");
    command.arg("cyclictest").args(cyclictest(1_000, plan.seconds));
    let output = command.output().map_err(Failed::because)?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(Failed(said.lines().last().unwrap_or("no reason given").to_owned()));
    }
    joined(place, &said, &serde_json::from_slice(&output.stdout).map_err(Failed::because)?)
}

/// An emulated CPU needs a longer period.
fn in_guest(plan: &Plan, place: &str) -> Result<Vec<Row>, Failed> {
    let directory = tempfile::tempdir().map_err(Failed::because)?;
    let out = directory.path().join("lab");
    let mut command = Command::new(&plan.program);
    command.args(["lab", "run", "--kernel", &plan.kernel, "--packages", "rt-tests"]);
    command.args(["--timeout", &format!("{}s", 240 + 8 * plan.seconds)]).arg("--out").arg(&out);
    command.args(["--", "trace", "watch", "--json", "--out", "run", "--", "/usr/bin/cyclictest"]);
    let output = command.args(cyclictest(10_000, plan.seconds)).output().map_err(Failed::because)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failed(said.lines().last().unwrap_or("no reason given").to_owned()));
    }
    let text = |name: &str| fs::read_to_string(out.join(name)).map_err(Failed::because);
    joined(place, &text("stderr")?, &serde_json::from_str(&text("stdout")?).map_err(Failed::because)?)
}

/// Two threads; the interval of the second is longer by half.
fn cyclictest(interval_us: u64, seconds: u64) -> Vec<String> {
    let words = format!("-q -t2 -a -m -p 80 -i {interval_us} -D {seconds}");
    words.split_whitespace().map(str::to_owned).collect()
}

/// cyclictest's lines, each with what was seen of the same thread.
fn joined(place: &str, said: &str, watched: &Value) -> Result<Vec<Row>, Failed> {
    let rows: Vec<_> =
        said.lines().filter_map(line).filter_map(|thread| row(place, &thread, watched)).collect();
    if rows.len() == 2 { Ok(rows) } else { Err(Failed(format!("{place}: not two threads in both: {said}"))) }
}

/// `T: 0 ( 1234) P:80 I:1000 C:   3000 Min:      5 Act:    7 Avg:   28 Max:     386`: thread, then I, C, Avg, Max.
fn line(line: &str) -> Option<[u64; 5]> {
    let (_, rest) = line.strip_prefix("T:")?.split_once('(')?;
    let (tid, rest) = rest.split_once(')')?;
    let after = |key: &str| rest.split_once(key)?.1.split_whitespace().next()?.parse().ok();
    Some([tid.trim().parse().ok()?, after("I:")?, after("C:")?, after("Avg:")?, after("Max:")?])
}

fn row(place: &str, [tid, interval_us, cycles, avg, max]: &[u64; 5], watched: &Value) -> Option<Row> {
    let thread =
        watched["watch"]["threads"].as_array()?.iter().find(|one| one["tid"].as_u64() == Some(*tid))?;
    let releases = thread["releases"].as_array()?.iter();
    let timer = releases.filter(|one| one["kind"] == "timer").max_by_key(|one| one["n"].as_u64())?;
    let us = |figure: &str| Some(timer["total"][figure].as_f64()? / 1_000.0);
    let preempted = thread["preemptions"].as_array()?.iter().filter_map(|one| one["n"].as_u64()).sum();
    Some(Row {
        place: place.to_owned(),
        interval_us: *interval_us,
        cycles: *cycles,
        releases: timer["n"].as_u64()?,
        its: [*avg as f64, *max as f64],
        ours: [us("mean_ns")?, us("max_ns")?],
        aside: [preempted, thread["early_wakes"].as_u64()?, thread["unseen_switches"].as_u64()?],
    })
}
