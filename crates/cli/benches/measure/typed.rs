//! `measure wakeup` as a user types it beside `cyclictest -m -p 90`: both keep CPUs out of idle
//! states that take time to leave.

use super::Plan;
use super::common::process::{rt_tests, stillcore};
use super::common::turns::turns;
use super::common::{Failed, histogram, quantile};
use result::{Limit, Of, Sink};
use serde_json::{Value, json};

/// The default of both.
const PERIOD_US: u64 = 1000;
/// Wide enough for a crowded machine; what lies above is in cyclictest's overflow count.
const BINS_NS: usize = 900_000;

pub(super) fn section(plan: &Plan, rows: &mut Sink) -> Result<(), Failed> {
    rows.note(format!(
        "as typed: `stillcore measure wakeup --priority 90` beside `cyclictest -m -p 90`, CPU {}, {} runs of {} s of each, in turns",
        plan.cpu, plan.repetitions, plan.seconds
    ))?;
    let one = |tool: &str| {
        let result = if tool == "stillcore" { ours(plan) } else { cyclictest(plan) }?;
        eprintln!("{tool:<20} {result}");
        Ok(result)
    };
    let turns = turns("bench-typed", &["stillcore", "cyclictest -m"], plan.repetitions, one)?;
    for figure in ["minimum", "median"] {
        let (ours, theirs) = (("stillcore", figure), ("cyclictest -m", figure));
        let row = turns.row(format!("wake-up as typed: {figure}"), ("us", 1e-3), ours, theirs);
        rows.push(row.budget(Of::Ratio, Limit::AtMost(1.1)))?;
    }
    Ok(())
}

fn ours(plan: &Plan) -> Result<Value, Failed> {
    let place = tempfile::tempdir().map_err(Failed::because)?;
    let order = format!("measure wakeup --priority 90 --cpus {} --duration {}s", plan.cpu, plan.seconds);
    let answer = stillcore(place.path(), &order)?;
    let file = answer["threads"][0]["record"]["file"].as_str().unwrap_or_default();
    let (_, samples) =
        model::samples_file::read(&place.path().join("run").join(file)).map_err(Failed::because)?;
    let mut values: Vec<i64> =
        samples.iter().filter(|sample| sample.counts()).map(|sample| sample.value_ns).collect();
    values.sort_unstable();
    // Nearest rank, as of the histogram.
    let median = values.get(values.len().div_ceil(2).saturating_sub(1));
    Ok(json!({ "n": values.len(), "minimum": values.first(), "median": median }))
}

fn cyclictest(plan: &Plan) -> Result<Value, Failed> {
    let loops = plan.seconds * 1_000_000 / PERIOD_US;
    let arguments = format!("-m -p 90 -N -q -t1 -a{} -i{PERIOD_US} -l{loops} -h{BINS_NS}", plan.cpu);
    let (bins, overflow) = histogram(&rt_tests("cyclictest", &arguments)?.text)?;
    let n = bins.iter().map(|bin| bin.1).sum::<u64>() + overflow;
    let median = quantile(&bins, overflow, 0.5);
    Ok(json!({ "n": n, "minimum": bins.first().map(|bin| bin.0), "median": median }))
}
