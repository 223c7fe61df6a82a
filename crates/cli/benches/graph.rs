//! Message latency by transport and size, beside rt-tests' `pmqtest` and `ptsematest` and Cyclone
//! DDS's `ddsperf`, in turns.
//! `cargo bench -p stillcore --bench graph [-- --cpus A,B --repetitions N --seconds N]`; needs root
//! and the packages rt-tests and cyclonedds-tools.
//!
//! All one way, from the call that sends to the return of the call that takes, SCHED_FIFO on both
//! CPUs, a message a millisecond. ddsperf halves a round trip and counts in processes of several
//! threads; pmqtest and ptsematest count in whole microseconds and report minimum and mean only,
//! between threads that they leave on one CPU or that are put on two here. Times of a crowded
//! machine mean nothing; ratios of runs made in turns do. It judges nothing.

mod common;

use common::process::{program, rt_tests};
use common::turns::{Turns, turns};
use common::{Failed, median, option, run};
use graph::transport::Kind;
use model::Cpus;
use result::{Row, Sink};
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use sys::sched;

const PRIORITY: u32 = 80;
/// Payloads; a datagram is no longer than 65,467 bytes with our header.
const SIZES: [(&str, usize); 3] = [("100 B", 100), ("1 KiB", 1024), ("64 KiB", 65_000)];
/// The payload of `pmqtest`.
const PMQTEST_BYTES: usize = 8;
/// Others are set against this one.
const YARDSTICK: Kind = Kind::ShmFutex;

struct Plan {
    cpus: [u32; 2],
    seconds: u64,
    repetitions: u32,
}

fn main() {
    let last = std::thread::available_parallelism().map_or(1, |n| n.get() as u32).max(2) - 1;
    let text = option("--cpus", format!("{},{last}", last - 1));
    let cpus: Vec<u32> = text.split(',').filter_map(|cpu| cpu.parse().ok()).collect();
    let plan = Plan {
        cpus: [cpus.first().copied().unwrap_or(0), cpus.last().copied().unwrap_or(1)],
        seconds: option("--seconds", 1),
        repetitions: option("--repetitions", 7),
    };
    run("graph", |rows| sections(&plan, rows));
}

fn sections(plan: &Plan, rows: &mut Sink) -> Result<(), Failed> {
    let [from, to] = plan.cpus;
    rows.note(format!(
        "one way, CPU {from} to CPU {to}, SCHED_FIFO {PRIORITY}, a message per millisecond, {} runs of {} s of each, in turns",
        plan.repetitions, plan.seconds
    ))?;
    for (name, bytes) in SIZES {
        eprintln!("== {name}: {bytes} bytes");
        by_transport(plan, name, bytes, rows)?;
    }
    eprintln!("== threads that wake each other, beside rt-tests");
    beside_rt_tests(plan, rows)
}

fn by_transport(plan: &Plan, size: &str, bytes: usize, rows: &mut Sink) -> Result<(), Failed> {
    let mut tools: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    tools.push("ddsperf");
    let one = |tool: &str| match tool {
        "ddsperf" => ddsperf(plan, bytes),
        kind => ours(plan, kind, bytes, plan.cpus, Pair::Processes),
    };
    let turns = turns(&format!("bench-graph-{bytes}"), &tools, plan.repetitions, one)?;
    for tool in &tools {
        let value = |name| turns.median(tool, name);
        if value("median").is_nan() {
            rows.push(Row::absent(format!("{size}, {tool}: median"), why(&turns, tool)))?;
            continue;
        }
        for (what, name) in [("minimum", "min"), ("median", "median")] {
            let row = Row::new(format!("{size}, {tool}: {what}"), value(name) / 1e3, "us");
            rows.push(row.n(turns.sum(tool, "n")))?;
        }
        rows.push(turns.sum_row(format!("{size}, {tool}: messages lost"), tool, "lost"))?;
    }
    let measured = |tool: &&&str| **tool != YARDSTICK.name() && !turns.median(tool, "median").is_nan();
    for tool in tools.iter().filter(measured) {
        for (what, name) in [("median", "median"), ("minimum", "min")] {
            let label = format!("{size}, {YARDSTICK} beside {tool}: {what}");
            rows.push(turns.row(label, ("us", 1e-3), (YARDSTICK.name(), name), (tool, name)))?;
        }
    }
    Ok(())
}

fn why(turns: &Turns, tool: &str) -> String {
    turns.first(tool, "refused").and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Sender and receiver.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pair {
    Processes,
    /// Two threads, the subscriber's priority above the publisher's or equal.
    Threads {
        above: bool,
    },
}

/// rt-tests leaves both threads on the CPU it is given; on two they are put here.
fn beside_rt_tests(plan: &Plan, rows: &mut Sink) -> Result<(), Failed> {
    let [from, to] = plan.cpus;
    let tools = [
        "mq",
        "mq, one CPU",
        "mq, one CPU, above",
        "queue",
        "queue, one CPU",
        "queue, one CPU, above",
        "pmqtest",
        "pmqtest, one CPU",
        "ptsematest",
        "ptsematest, one CPU",
    ];
    let one = |tool: &str| {
        let (name, cpus) = match tool.split_once(',') {
            Some((name, _)) => (name, [to, to]),
            None => (tool, [from, to]),
        };
        let above = tool.ends_with("above");
        match name {
            "pmqtest" | "ptsematest" => theirs(plan, name, cpus),
            kind => ours(plan, kind, PMQTEST_BYTES, cpus, Pair::Threads { above }),
        }
    };
    let turns = turns("bench-graph-rt-tests", &tools, plan.repetitions, one)?;
    for tool in tools {
        for (what, name) in [("minimum", "min"), ("mean", "mean")] {
            let row = Row::new(format!("threads, {tool}: {what}"), turns.median(tool, name) / 1e3, "us");
            rows.push(row.n(turns.sum(tool, "n")))?;
        }
    }
    for (one, other) in [("mq", "pmqtest"), ("queue", "ptsematest")] {
        for (on, theirs_on) in [("", ""), (", one CPU", ", one CPU"), (", one CPU, above", ", one CPU")] {
            let (one, other) = (format!("{one}{on}"), format!("{other}{theirs_on}"));
            let label = format!("threads, {one} beside {other}: mean");
            rows.push(turns.row(label, ("us", 1e-3), (&one, "mean"), (&other, "mean")))?;
        }
    }
    Ok(())
}

/// One run of the command.
fn ours(plan: &Plan, kind: &str, bytes: usize, cpus: [u32; 2], pair: Pair) -> Result<Value, Failed> {
    let mut command = Command::new(program());
    let [from, to] = cpus;
    let arguments = format!(
        "graph latency --json --raise-limits --transport {kind} --size {bytes} --cpus {from},{to} --duration {}s --priority {PRIORITY}",
        plan.seconds
    );
    command.args(arguments.split_whitespace()).args((pair != Pair::Processes).then_some("--threads"));
    if pair == (Pair::Threads { above: true }) {
        command.args(["--subscriber-priority", &(PRIORITY + 1).to_string()]);
    }
    let output = command.output().map_err(Failed::because)?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let error: Value = serde_json::from_str(&said).unwrap_or_default();
    if let Some(what) = error["error"]["what"].as_str().filter(|what| what.contains("carries at most")) {
        return Ok(json!({ "refused": what }));
    }
    if !output.status.success() {
        return Err(Failed(said));
    }
    let answer: Value = serde_json::from_slice(&output.stdout).map_err(Failed::because)?;
    let link = &answer["links"][0];
    let count = |name: &str| link["balance"][name].as_u64().unwrap_or(0);
    let figures = &link["from_send"];
    Ok(json!({
        "n": figures["n"],
        "min": figures["min_ns"],
        "median": figures["p50_ns"],
        "mean": figures["mean_ns"],
        "lost": count("sent") - count("received"),
    }))
}

/// One run of a tool that reports its pair of threads in JSON. Without a CPU it does not place
/// them: they are put onto theirs as soon as they exist.
fn theirs(plan: &Plan, tool: &str, cpus: [u32; 2]) -> Result<Value, Failed> {
    let directory = tempfile::tempdir().map_err(Failed::because)?;
    let file = directory.path().join("answer.json");
    let place = if cpus[0] == cpus[1] { format!("-a{}", cpus[0]) } else { String::new() };
    let arguments =
        format!("-p{PRIORITY} -i1000 -l{} -q {place} --json={}", plan.seconds * 1000, file.display());
    std::thread::scope(|scope| {
        if cpus[0] != cpus[1] {
            scope.spawn(|| put_apart(tool, cpus));
        }
        rt_tests(tool, &arguments)
    })?;
    let answer: Value =
        serde_json::from_slice(&std::fs::read(&file).map_err(Failed::because)?).map_err(Failed::because)?;
    let receiver = &answer["thread"]["0"]["receiver"];
    let ns = |name: &str| receiver[name].as_f64().map(|us| us * 1e3);
    Ok(json!({ "n": plan.seconds * 1000, "min": ns("min"), "mean": ns("avg") }))
}

/// Puts the two threads of a tool that was just started, a child of this process, onto two CPUs.
fn put_apart(tool: &str, cpus: [u32; 2]) {
    for _ in 0..200 {
        for pid in own_children(tool) {
            let threads = threads(pid);
            if let [_, one, other] = threads[..] {
                let _ = sched::pin_task(one, &Cpus::one(cpus[0]));
                let _ = sched::pin_task(other, &Cpus::one(cpus[1]));
                return;
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Processes of this name whose parent is this one.
fn own_children(tool: &str) -> Vec<i32> {
    let parent = std::process::id().to_string();
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let ours = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let Some((head, rest)) = stat.rsplit_once(") ") else { return false };
        head.ends_with(&format!("({tool}")) && rest.split_whitespace().nth(1) == Some(&parent)
    };
    pids.filter(ours).collect()
}

fn threads(pid: i32) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut tids: Vec<i32> = tasks.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    tids.sort_unstable();
    tids
}

/// Ping and pong of ddsperf, each on its CPU. The first second is discovery.
fn ddsperf(plan: &Plan, bytes: usize) -> Result<Value, Failed> {
    let start = |cpu: u32, seconds: u64, mode: &str| -> Result<Child, Failed> {
        let mut command = Command::new("chrt");
        command.args(["-f", &PRIORITY.to_string(), "taskset", "-c", &cpu.to_string(), "ddsperf"]);
        command.args(["-D", &seconds.to_string()]).args(mode.split_whitespace());
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map_err(Failed::because)
    };
    let mut pong = start(plan.cpus[1], plan.seconds + 3, "pong listener")?;
    let ping = start(plan.cpus[0], plan.seconds + 2, &format!("ping 1kHz size {bytes} listener"))?;
    let output = ping.wait_with_output().map_err(Failed::because);
    let _ = pong.kill();
    let _ = pong.wait();
    let output = output?;
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(" 50% ")).skip(1).collect();
    let after = |line: &str, name: &str| -> Option<f64> {
        let word = line.split_once(name)?.1.split_whitespace().next()?;
        word.trim_end_matches("us").parse().ok()
    };
    let all = |name: &str| lines.iter().filter_map(|line| after(line, name)).collect::<Vec<f64>>();
    if lines.is_empty() {
        let said = String::from_utf8_lossy(&output.stderr);
        let why =
            if said.trim().is_empty() { "no answer of pong (package cyclonedds-tools)" } else { said.trim() };
        return Ok(json!({ "refused": format!("ddsperf: {why}") }));
    }
    let min = all(" min ").into_iter().fold(f64::INFINITY, f64::min);
    Ok(json!({
        "n": all(" cnt ").iter().sum::<f64>() as u64,
        "min": min * 1e3,
        "median": median(all(" 50% ")) * 1e3,
        "mean": median(all(" mean ")) * 1e3,
        "lost": 0,
    }))
}
