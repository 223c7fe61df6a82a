//! `trace watch` beside the program it watches: cyclictest tells its own latencies, `trace watch` tells them from the kernel's events, of the
//! same wake-ups of the same run. On this machine and in a guest, in turns.
//! `cargo bench -p stillcore --bench watch [-- --turns N --seconds N --kernel K]`; needs root, rt-tests, QEMU and the binary for guests.
//!
//! cyclictest reads the clock in user space and truncates to whole microseconds; ours ends at the switch to the thread. Times on a
//! shared machine mean nothing, and less in a guest: what is compared is two views of the same wake-ups. It judges nothing.

mod common;

use common::{Failed, median, option, run};
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
    run("watch", || beside(&plan, turns));
}

struct Plan {
    /// The static command, here and in guests.
    program: String,
    kernel: String,
    seconds: u64,
}

/// One thread in one run, as both tell it.
struct Row {
    place: String,
    /// Distance of its releases, us.
    interval_us: u64,
    cycles: u64,
    releases: u64,
    /// cyclictest's own, us.
    its: [f64; 2],
    /// Ours from the timer's intended expiry to the switch, us.
    ours: [f64; 2],
    /// Times the thread could have gone on and was switched out, woken before it slept, and switches that the trace lacks.
    aside: [u64; 3],
}

fn beside(plan: &Plan, turns: u32) -> Result<(), Failed> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").map_err(Failed::because)?;
    let here = format!("here, {}", release.split('-').next().unwrap_or_default().trim());
    let guest = format!("guest, {}", plan.kernel);
    let mut rows = Vec::new();
    for _ in 0..turns {
        rows.extend(on_this_machine(plan, &here)?);
        rows.extend(in_guest(plan, &guest)?);
    }
    println!("{turns} runs of {} s each; Avg, mean and Max in us", plan.seconds);
    println!(
        "| where | period | cycles | releases by timer | its Avg | our mean | less | its Max | ours | less | preempted | woken while running | \
         switches unseen |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    );
    for row in &rows {
        let ([its_avg, its_max], [mean, max]) = (row.its, row.ours);
        println!(
            "| {} | {} us | {} | {} | {its_avg:.0} | {mean:.1} | {:.1} | {its_max:.0} | {max:.1} | {:.1} | {} | {} | {} |",
            row.place,
            row.interval_us,
            row.cycles,
            row.releases,
            its_avg - mean,
            its_max - max,
            row.aside[0],
            row.aside[1],
            row.aside[2],
        );
    }
    for place in [&here, &guest] {
        let of = || rows.iter().filter(|row| row.place == *place);
        let less = |at: usize| median(of().map(|row| row.its[at] - row.ours[at]).collect());
        let missing: u64 = of().map(|row| row.cycles.abs_diff(row.releases)).sum();
        let cycles: u64 = of().map(|row| row.cycles).sum();
        println!(
            "{place}: median difference of the means {:.1} us, of the maxima {:.1} us; releases and cycles differ by {missing} of {cycles}",
            less(0),
            less(1)
        );
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

/// Two threads, the second half as far apart again.
fn cyclictest(interval_us: u64, seconds: u64) -> Vec<String> {
    let words = format!("-q -t2 -a -m -p 80 -i {interval_us} -D {seconds}");
    words.split_whitespace().map(str::to_owned).collect()
}

/// cyclictest's lines, each with what was seen of the same thread.
fn joined(place: &str, said: &str, watched: &Value) -> Result<Vec<Row>, Failed> {
    let rows: Vec<_> = said.lines().filter_map(line).filter_map(|told| row(place, &told, watched)).collect();
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
