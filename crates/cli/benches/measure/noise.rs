//! The noise loop beside oslat's: iterations per second at the same policy. Both run without a
//! pause, so that both are throttled alike; ours finds every gap, and stores those over the
//! threshold with their time.

use super::common::Failed;
use super::common::process::{rt_tests, stillcore};
use super::common::turns::turns;
use super::{PRIORITY, Plan};
use result::{Limit, Of, Sink};
use serde_json::{Value, json};

/// Seconds of a run: a busy loop of a real-time priority must not keep its CPU for long.
const SECONDS: u64 = 2;

pub(super) fn section(plan: &Plan, rows: &mut Sink) -> Result<(), Failed> {
    rows.note(format!(
        "noise: CPU {}, SCHED_FIFO {PRIORITY}, runs of {SECONDS} s without pause, in turns",
        plan.cpu
    ))?;
    let one = |tool: &str| {
        let result = if tool == "stillcore" { ours(plan) } else { oslat(plan) }?;
        eprintln!("{tool:<12} {result}");
        Ok(result)
    };
    let turns = turns("bench-noise", &["stillcore", "oslat"], plan.repetitions.div_ceil(2), one)?;
    let rate =
        turns.row("noise: loop iterations", ("M per s", 1e-6), ("stillcore", "per_s"), ("oslat", "per_s"));
    rows.push(rate.budget(Of::Ratio, Limit::AtLeast(2.0)))?;
    rows.push(turns.sum_row("noise: gaps stored", "stillcore", "gaps"))?;
    let lost = turns.sum_row("noise: gaps lost", "stillcore", "lost");
    rows.push(lost.budget(Of::Value, Limit::AtMost(0.0)))?;
    Ok(())
}

fn ours(plan: &Plan) -> Result<Value, Failed> {
    let place = tempfile::tempdir().map_err(Failed::because)?;
    let arguments = format!(
        "measure spin --cpus {} --priority {PRIORITY} --duration {SECONDS}s --stretch {SECONDS}s --pause 0s",
        plan.cpu
    );
    let answer = stillcore(place.path(), &arguments)?;
    let record = &answer["threads"][0]["record"];
    let file = place.path().join("run").join(record["file"].as_str().unwrap_or_default());
    let (_, gaps) = model::samples_file::read(&file).map_err(Failed::because)?;
    let seconds = record["spin_ns"].as_f64().unwrap_or(f64::NAN) / 1e9;
    Ok(json!({
        "per_s": record["iterations"].as_f64().unwrap_or(f64::NAN) / seconds,
        "gaps": gaps.len(),
        "lost": record["ring_lost"],
    }))
}

fn oslat(plan: &Plan) -> Result<Value, Failed> {
    let text = rt_tests("oslat", &format!("-c {} -C 0 -D {SECONDS} -f {PRIORITY} -q", plan.cpu))?.text;
    let number = |line: &str| line.split_once(':')?.1.split_whitespace().next()?.parse::<f64>().ok();
    let rows = text.lines().filter(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit()));
    let iterations: f64 = rows.filter_map(number).sum();
    let seconds = text.lines().find(|line| line.trim_start().starts_with("Duration:")).and_then(number);
    let seconds = seconds.ok_or_else(|| Failed(format!("oslat printed no duration: {}", text.trim())))?;
    Ok(json!({ "per_s": iterations / seconds }))
}
