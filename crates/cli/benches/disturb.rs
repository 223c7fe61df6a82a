//! Rates of our stressors beside stress-ng's that do about the same, in turns on one CPU, both as
//! fast as they go and confined alike; those that need a second CPU, to move to or to interrupt,
//! have two. One worker each; as many as stress-ng's one worker is processes.
//! `cargo bench -p stillcore --bench disturb [-- --rounds N --seconds N --cpu N --second N]`; needs
//! stress-ng.
//!
//! Prints operations per second and the ratio of each pair of runs, as the median of the pairs. On
//! a shared machine only the ratio means something, and only where both count the same: the
//! operations are printed beside it. It judges nothing.

mod common;

use common::{Failed, median, option, run};
use result::row::ratio_of_rounds;
use result::{Row, Sink};
use serde_json::Value;
use std::process::Command;

fn main() {
    let plan = Plan {
        program: option("--program", env!("CARGO_BIN_EXE_stillcore").to_owned()),
        cpu: option("--cpu", "0".to_owned()),
        second: option("--second", "1".to_owned()),
        seconds: option("--seconds", 2),
    };
    run("disturb", |rows| compare(&plan, option("--rounds", 7), rows));
}

/// Ours beside which one worker of stress-ng is more than one process (stress-affinity.c: itself
/// and 16 others).
const PROCESSES: [(&str, &str); 1] = [("affinity_flip", "17")];

struct Plan {
    program: String,
    cpu: String,
    second: String,
    seconds: u64,
}

/// A stressor of ours and its counterpart.
struct Pair {
    ours: String,
    theirs: String,
    operation: String,
}

fn compare(plan: &Plan, rounds: u32, rows: &mut Sink) -> Result<(), Failed> {
    let Plan { cpu, second, seconds, .. } = plan;
    rows.note(format!(
        "on CPU {cpu}, stressors that need a second CPU on {cpu} and {second}; {rounds} rounds of {seconds} s each, in turns"
    ))?;
    for pair in pairs(plan)? {
        let row = row(plan, &pair, rounds)?;
        eprintln!("{row:?}");
        rows.push(row)?;
    }
    Ok(())
}

fn row(plan: &Plan, pair: &Pair, rounds: u32) -> Result<Row, Failed> {
    let alone = plan.cpu.clone();
    let cpus = match rate(plan, &alone, &pair.ours)? {
        Err(why) if why.starts_with("it has one CPU") => format!("{},{}", plan.cpu, plan.second),
        _ => alone,
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let unit = "operations per s";
    for _ in 0..rounds {
        let one = match rate(plan, &cpus, &pair.ours)? {
            Ok(one) => one,
            Err(why) => return Ok(Row::absent(&pair.ours, why)),
        };
        let other = match rate(plan, &cpus, &pair.theirs)? {
            Ok(other) => other,
            Err(why) => {
                return Ok(Row::new(&pair.ours, one, unit).n(1).beside(&pair.theirs, f64::NAN).why(why));
            }
        };
        ours.push(one);
        theirs.push(other);
    }
    let ratio = ratio_of_rounds(&ours, &theirs);
    let row = Row::new(&pair.ours, median(ours), unit).n(u64::from(rounds)).ratio(ratio);
    Ok(row.beside(&pair.theirs, median(theirs)).why(format!("our operation: {}", pair.operation)))
}

/// Those of the catalogue that name a counterpart and are safe to run as fast as they go.
fn pairs(plan: &Plan) -> Result<Vec<Pair>, Failed> {
    let list = answer(plan, &["disturb", "--list", "--json"])?;
    let all = list["stressors"].as_array().ok_or_else(|| Failed::because("no list of stressors"))?;
    let pair = |spec: &Value| {
        let option = spec["peer"].as_str()?.split_whitespace().next()?.strip_prefix("--")?.to_owned();
        let ours = spec["name"].as_str()?.to_owned();
        let operation = spec["operation"].as_str()?.to_owned();
        (spec["dangerous"] == false).then_some(Pair {
            ours,
            theirs: format!("stress-ng:{option}"),
            operation,
        })
    };
    Ok(all.iter().filter_map(pair).collect())
}

/// Successful operations per second, or why the stressor is not available here.
fn rate(plan: &Plan, cpus: &str, name: &str) -> Result<Result<f64, String>, Failed> {
    let seconds = format!("{}s", plan.seconds);
    let workers = PROCESSES.iter().find(|(ours, _)| *ours == name).map_or("1", |(_, processes)| processes);
    // Stressors that need two CPUs have both that there are, the measured one among them.
    let arguments = [
        "disturb",
        name,
        "--json",
        "--rate",
        "0",
        "--workers",
        workers,
        "--cpus",
        cpus,
        "--colocated",
        "-D",
        &seconds,
    ];
    let answer = answer(plan, &arguments)?;
    let record = &answer["stressors"][0];
    let rate = record["ops_per_s"].as_f64().filter(|_| record["state"] == "ok");
    Ok(rate.ok_or_else(|| record["reason"].as_str().unwrap_or("it gave no rate").to_owned()))
}

fn answer(plan: &Plan, arguments: &[&str]) -> Result<Value, Failed> {
    let output = Command::new(&plan.program).args(arguments).output().map_err(Failed::because)?;
    serde_json::from_slice(&output.stdout).map_err(|error| {
        Failed(format!("{}: {error}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr)))
    })
}
