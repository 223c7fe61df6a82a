//! Rates of our stressors beside stress-ng's that do about the same, in turns on one CPU, both as fast as they go and confined alike.
//! `cargo bench -p stillcore --bench disturb [-- --rounds N --seconds N --cpu N]`; needs stress-ng.
//!
//! Prints operations a second and the ratio of each pair of runs, as the median of the pairs. On a shared machine only the ratio means
//! something, and only where both count the same: the operations are printed beside it. It judges nothing.

mod common;

use common::{Failed, median, option, run};
use serde_json::Value;
use std::process::Command;

fn main() {
    let plan = Plan {
        program: option("--program", env!("CARGO_BIN_EXE_stillcore").to_owned()),
        cpu: option("--cpu", "0".to_owned()),
        seconds: option("--seconds", 2),
    };
    run("disturb", || compare(&plan, option("--rounds", 5)));
}

struct Plan {
    program: String,
    cpu: String,
    seconds: u64,
}

/// A stressor of ours and its counterpart.
struct Pair {
    ours: String,
    theirs: String,
    operation: String,
}

fn compare(plan: &Plan, rounds: u32) -> Result<(), Failed> {
    println!("operations a second on CPU {}, {rounds} rounds of {} s each, in turns", plan.cpu, plan.seconds);
    println!(
        "{:<16} {:>12} {:<22} {:>12} {:>16}  one of our operations",
        "ours", "/s", "theirs", "/s", "ours / theirs"
    );
    for pair in pairs(plan)? {
        let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let both = rate(plan, &pair.ours)?.zip(rate(plan, &pair.theirs)?);
            let Some((one, other)) = both else { break };
            ours.push(one);
            theirs.push(other);
            ratios.push(one / other);
        }
        if ratios.is_empty() {
            println!("{:<16} not to be had here beside {}", pair.ours, pair.theirs);
            continue;
        }
        let (one, other, ratio) = (median(ours), median(theirs), median(ratios));
        println!(
            "{:<16} {one:>12.1} {:<22} {other:>12.1} {ratio:>16.2}  {}",
            pair.ours, pair.theirs, pair.operation
        );
    }
    Ok(())
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

/// Successful operations a second; nothing where the stressor cannot be had here.
fn rate(plan: &Plan, name: &str) -> Result<Option<f64>, Failed> {
    let seconds = format!("{}s", plan.seconds);
    let arguments =
        ["disturb", name, "--json", "--rate", "0", "--workers", "1", "--cpus", &plan.cpu, "-D", &seconds];
    let answer = answer(plan, &arguments)?;
    let record = &answer["stressors"][0];
    Ok((record["state"] == "ok").then(|| record["ops_per_s"].as_f64()).flatten())
}

fn answer(plan: &Plan, arguments: &[&str]) -> Result<Value, Failed> {
    let output = Command::new(&plan.program).args(arguments).output().map_err(Failed::because)?;
    serde_json::from_slice(&output.stdout).map_err(|error| {
        Failed(format!("{}: {error}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr)))
    })
}
