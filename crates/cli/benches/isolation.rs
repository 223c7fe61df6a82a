//! Which way of isolating leaves fewer unwanted events: nothing, the replication's manual steps,
//! all of Table III by hand, two tuned profiles, and stillcore; each in a fresh guest of the same
//! kernel and boot line, under the same disturbances.
//! `cargo bench -p stillcore --bench isolation [-- --kernels K,L --repetitions N --seconds N --methods A,B --work DIR]`;
//! needs QEMU and the binary for guests. tuned is the one of the kernel's Debian release. Cells
//! that stand in DIR are not run again: another program needs another DIR.
//!
//! Unwanted events (every class but the probe's own) on the isolated core per 10 s of the disturbed
//! phase. Guest counts are exact; guest times mean nothing and are not printed. No budget but that
//! every cell gives a count.
//!
//! An emulator that runs four CPUs in turn delivers more ticks to a measured CPU whose neighbours
//! are idle. The tick and the softirqs that ride on it, which only a boot line ends, have a column
//! of their own.
//!
//! Ways whose ranges over the guests overlap are reported as not distinguishable.

mod common;

use common::{Failed, median, option, run};
use result::apart::{self, Group};
use result::{Limit, Of, Row, Sink};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use study::{Cell, Store, Study};

const METHODS: [&str; 6] =
    ["nothing", "replication", "table3", "tuned-cpu-partitioning", "tuned-realtime", "stillcore"];

/// The script of a guest.
const SCRIPT: &str = include_str!("isolation.sh");

/// Command lines: as the lab boots, and without isolation at boot.
const BOOTS: [(&str, &str); 2] =
    [("isolated", ""), ("plain", "isolcpus= nohz_full= rcu_nocbs= irqaffinity=")];

fn main() {
    let program = option("--program", env!("CARGO_BIN_EXE_stillcore").to_owned());
    let plan = Plan {
        kernels: list(&option("--kernels", "6.1,6.12".to_owned())),
        work: option("--work", env!("CARGO_TARGET_TMPDIR").to_owned()),
        seconds: option("--seconds", 20),
        methods: list(&option("--methods", METHODS.join(","))),
        program,
    };
    run("study", |rows| compare(&plan, option("--repetitions", 6), rows));
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::to_owned).collect()
}

struct Plan {
    /// Names of the lab's kernels.
    kernels: Vec<String>,
    /// Where the cells are stored.
    work: String,
    seconds: u64,
    /// Ways to isolate, of those that the script knows.
    methods: Vec<String>,
    /// The static command that guests run.
    program: String,
}

fn compare(plan: &Plan, repetitions: u32, rows: &mut Sink) -> Result<(), Failed> {
    if let Some(other) = plan.methods.iter().find(|one| !METHODS.contains(&one.as_str())) {
        return Err(Failed(format!("--methods {other}; expected some of {}", METHODS.join(", "))));
    }
    let study = Study {
        // Cells of another script are not those of this one.
        name: format!("isolation-{}s-{}", plan.seconds, study::digest(&[SCRIPT], 4)),
        seed: 1,
        factors: BTreeMap::from([
            ("kernel".to_owned(), plan.kernels.iter().map(|kernel| json!(kernel)).collect()),
            ("method".to_owned(), plan.methods.iter().map(|method| json!(method)).collect()),
            ("boot".to_owned(), BOOTS.iter().map(|(boot, _)| json!(boot)).collect()),
        ]),
        repetitions,
    };
    let directory = Path::new(&plan.work).join(&study.name);
    let cells = study.cells().map_err(Failed::because)?;
    let cell = |cell: &Cell| {
        let result = one(plan, cell).unwrap_or_else(|error| json!({ "failed": error.to_string() }));
        let [kernel, boot, method] = ["kernel", "boot", "method"].map(|factor| text(cell, factor));
        eprintln!("{kernel:<7} {boot:<10} {method:<24} {}", row(&result));
        Ok::<_, Failed>(result)
    };
    let progress = study::run(&cells, &Store::new(&directory), cell).map_err(Failed::because)?;
    rows.note(format!(
        "unwanted events on isolated core 2 per 10 s of the disturbed phase; kernels {}, {} s a phase, {} cells, {} of them from an \
         earlier call; values are medians, intervals from the least to the most repetition",
        plan.kernels.join(" and "),
        plan.seconds,
        cells.len(),
        progress.resumed
    ))?;
    table(plan, &progress.results, rows)
}

fn text<'a>(cell: &'a Cell, factor: &str) -> &'a str {
    cell.factors[factor].as_str().unwrap_or_default()
}

fn one(plan: &Plan, cell: &Cell) -> Result<Value, Failed> {
    let mut last = Failed::because("no attempt");
    // Emulated CPUs of a crowded host hang now and then; such a guest is booted again.
    for _ in 0..3 {
        match boot(plan, cell) {
            Ok(result) => return Ok(result),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn boot(plan: &Plan, cell: &Cell) -> Result<Value, Failed> {
    let place = tempfile::tempdir().map_err(Failed::because)?;
    let out = place.path().join("lab");
    let method = text(cell, "method");
    let append = BOOTS.iter().find(|(boot, _)| *boot == text(cell, "boot")).map_or("", |(_, append)| append);
    let packages = if method.starts_with("tuned") { "busybox-static,tuned" } else { "busybox-static" };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/isolation.sh");
    let mut command = Command::new(&plan.program);
    command.args([
        "lab",
        "run",
        "--kernel",
        text(cell, "kernel"),
        "--append",
        append,
        "--packages",
        packages,
    ]);
    command.args(["--memory", "3000", "--timeout", &format!("{}s", 180 + 6 * plan.seconds)]);
    command.arg("--add").arg(format!("{}:/root/cell.sh", script.display())).arg("--out").arg(&out);
    command.args(["--", "/bin/busybox", "sh", "/root/cell.sh", method, &format!("{}s", plan.seconds)]);
    let output = command.output().map_err(Failed::because)?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(Failed(stderr.lines().last().unwrap_or("no reason given").to_owned()));
    }
    read(&out.join("root"))
}

/// Counts of the disturbed phase, per 10 s, by class; refused where events were lost.
fn read(root: &Path) -> Result<Value, Failed> {
    let json = |name: &str| -> Result<Value, Failed> {
        let text = std::fs::read_to_string(root.join(name)).map_err(Failed::because)?;
        serde_json::from_str(&text).map_err(Failed::because)
    };
    let (run, analysis, audit) = (json("run/run.json")?, json("run/analysis.json")?, json("audit.json")?);
    if run["losses"]["trace_events"] != 0 {
        return Err(Failed::because("trace events were lost"));
    }
    // Written by the ways that use it alone.
    let tuned = std::fs::read_to_string(root.join("tuned.version")).ok();
    let windows = analysis["events"].as_array().ok_or_else(|| Failed::because("no events"))?;
    let disturbed: Vec<_> = windows.iter().filter(|window| window["phase"] == "disturbed").collect();
    let seconds: f64 =
        disturbed.iter().filter_map(|window| window["duration_ns"].as_f64()).sum::<f64>() / 1e9;
    let (mut classes, mut causes): (BTreeMap<String, f64>, BTreeMap<String, f64>) = Default::default();
    for class in disturbed.iter().flat_map(|window| window["classes"].as_array().into_iter().flatten()) {
        let name = class["class"].as_str().unwrap_or_default();
        if name != "self" && name != "exception" {
            *classes.entry(name.to_owned()).or_default() += class["count"].as_f64().unwrap_or(0.0);
            for label in class["labels"].as_array().into_iter().flatten() {
                let cause = format!("{name} {}", label["label"].as_str().unwrap_or_default());
                *causes.entry(cause).or_default() += label["count"].as_f64().unwrap_or(0.0);
            }
        }
    }
    if seconds <= 0.0 {
        return Err(Failed::because("no disturbed window"));
    }
    classes.values_mut().for_each(|count| *count *= 10.0 / seconds);
    let all: f64 = classes.values().sum();
    classes.retain(|_, count| *count > 0.0);
    Ok(json!({ "per_10s": all, "classes": classes, "causes": causes, "audit_failures": audit["failed"],
        "tuned": tuned.as_deref().map(str::trim) }))
}

fn row(result: &Value) -> String {
    if let Some(why) = result["failed"].as_str() {
        return format!("failed: {why}");
    }
    let classes = result["classes"].as_object().into_iter().flatten();
    let classes: Vec<_> =
        classes.map(|(class, count)| format!("{class} {:.1}", count.as_f64().unwrap_or(0.0))).collect();
    format!("{:>9.1}  ({})", result["per_10s"].as_f64().unwrap_or(0.0), classes.join(", "))
}

/// The classes of events that a tick causes.
const OF_THE_TICK: [&str; 2] = ["timer.tick", "softirq"];

/// A row a method, boot line and way of counting.
fn table(plan: &Plan, results: &[(Cell, Value)], rows: &mut Sink) -> Result<(), Failed> {
    let mut failed = 0;
    for kernel in &plan.kernels {
        for (boot, _) in BOOTS {
            let under = |cell: &Cell| text(cell, "kernel") == kernel && text(cell, "boot") == boot;
            let of: Vec<_> = results.iter().filter(|(cell, _)| under(cell)).collect();
            failed += of.iter().filter(|(_, result)| result["failed"].is_string()).count();
            compared(plan, &format!("{kernel} {boot}"), &of, rows)?;
        }
        let versions: BTreeSet<&str> = (results.iter())
            .filter(|(cell, _)| text(cell, "kernel") == kernel)
            .filter_map(|(_, result)| result["tuned"].as_str())
            .collect();
        for version in versions {
            rows.note(format!("{kernel}: {version}"))?;
        }
    }
    let row = Row::new("cells that failed", failed as f64, "").n(results.len() as u64);
    rows.push(row.budget(Of::Value, Limit::AtMost(0.0)))?;
    Ok(())
}

/// The rows of one kernel and boot line, and which ways differ there.
fn compared(plan: &Plan, place: &str, results: &[&(Cell, Value)], rows: &mut Sink) -> Result<(), Failed> {
    let mut columns: [Vec<Row>; 2] = Default::default();
    for method in METHODS.iter().filter(|method| plan.methods.iter().any(|one| one == *method)) {
        let of: Vec<_> = results
            .iter()
            .filter(|(cell, _)| text(cell, "method") == *method)
            .map(|(_, result)| result)
            .collect();
        let all = of.iter().filter_map(|result| result["per_10s"].as_f64()).collect();
        let rest = of.iter().filter_map(|result| besides_the_tick(result)).collect();
        let found = [
            over_repetitions(format!("{method}: {place}"), all),
            over_repetitions(format!("{method}: {place}, without ticks and softirqs"), rest),
        ];
        for (counted, row) in columns.iter_mut().zip(found) {
            counted.push(row.clone());
            rows.push(row)?;
        }
        let left = of.iter().find_map(|result| result["audit_failures"].as_f64()).unwrap_or(f64::NAN);
        rows.push(Row::new(format!("{method}: {place}, audit findings left"), left, ""))?;
    }
    for (counted, column) in ["all events", "without ticks and softirqs"].iter().zip(&columns) {
        let group = |row: &'_ Row| row.what.split(':').next().unwrap_or_default().to_owned();
        let names: Vec<String> = column.iter().map(group).collect();
        let groups: Vec<Group<'_>> =
            names.iter().zip(column).map(|(name, row)| Group { name, row }).collect();
        rows.note(format!("{place}, {counted}: {}", apart::sentence(&groups)))?;
    }
    Ok(())
}

fn besides_the_tick(result: &Value) -> Option<f64> {
    let of_the_tick = |class: &str| result["classes"][class].as_f64().unwrap_or(0.0);
    Some(result["per_10s"].as_f64()? - OF_THE_TICK.iter().map(|class| of_the_tick(class)).sum::<f64>())
}

/// The median, and the least and the most.
fn over_repetitions(what: String, mut values: Vec<f64>) -> Row {
    values.sort_by(f64::total_cmp);
    let row = Row::new(what, median(values.clone()).abs(), "events").n(values.len() as u64);
    match values[..] {
        [least, .., most] => row.between(least.abs(), most.abs()),
        _ => row,
    }
}
