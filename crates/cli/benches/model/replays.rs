//! Whether a replay of a model has the same model: each program is recorded, its model played and
//! recorded in turn, and the two models compared.

use super::common::Failed;
use super::programs::Program;
use super::{SEED, record, recorded};
use analysis::task_model::compare::{Compared, compare};
use analysis::task_model::shape::TaskModel;
use result::{Limit, Of, Row, Sink};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The relative difference within which a replay does the same.
const SAME: f64 = 0.02;
/// As long as the programs take.
const DURATION: &str = "3s";

pub(super) fn run(
    stillcore: &str,
    plant: &Path,
    place: &Path,
    programs: u64,
    rows: &mut Sink,
) -> Result<(), Failed> {
    let (mut threads, mut alike, mut periods, mut exact) = (0, 0, 0, 0);
    // By quantity: the largest difference of each program.
    let mut largest: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for index in 0..programs {
        let mut drawn = Program::draw(SEED + 20_000 + index);
        // A reservation is not in the model, so such threads are not replayed.
        for thread in drawn.threads.iter_mut().filter(|thread| thread.kind == "deadline") {
            (thread.kind, thread.name) = ("absolute", thread.name.replace("dea", "abs"));
        }
        let out = place.join(format!("program-{index}"));
        let again = place.join(format!("replay-{index}"));
        let before = of(record(stillcore, plant, &drawn, &out)?)?;
        let words = ["model", "replay", "--duration", DURATION, "--json"].map(str::to_owned);
        let command = [stillcore.to_owned()].into_iter().chain(words).chain([out.display().to_string()]);
        let after = of(recorded(stillcore, None, command, &again)?)?;
        let Compared { threads: n, alike: same, quantities, .. } = compare(&before, &after);
        (threads, alike) = (threads + n, alike + same);
        for one in quantities {
            if one.what == "period" {
                periods += 1;
                exact += u64::from(one.largest <= 0.0);
            }
            eprintln!(
                "{index}: {}: {:.4} ({}: {} {})",
                one.what, one.largest, one.thread, one.before, one.after
            );
            largest.entry(one.what).or_default().push(one.largest);
        }
        std::fs::remove_dir_all(&out)?;
        std::fs::remove_dir_all(&again)?;
    }
    rows.push(Row::new("replays: programs", programs as f64, "").n(threads as u64))?;
    let mut share = |what: &str, good: u64, all: u64, least: f64| {
        let row = Row::new(what, good as f64 / all.max(1) as f64, "").n(all);
        rows.push(row.budget(Of::Value, Limit::AtLeast(least)))
    };
    share("replays: threads released alike", alike as u64, threads as u64, 0.95)?;
    share("replays: programs of which all periods are the same", exact, periods, 0.95)?;
    for (what, mut all) in largest {
        all.sort_by(f64::total_cmp);
        let median = all[all.len() / 2];
        let within = all.iter().filter(|one| **one <= SAME).count();
        let row = Row::new(format!("replays: {what}: largest difference, median of programs"), median, "");
        let row = row.n(all.len() as u64);
        rows.push(row.budget(Of::Value, Limit::AtMost(SAME)))?;
        let what = format!("replays: {what}: programs within 2 %");
        rows.push(Row::new(what, within as f64 / all.len() as f64, "").n(all.len() as u64))?;
    }
    Ok(())
}

fn of(document: Value) -> Result<TaskModel, Failed> {
    serde_json::from_value(document).map_err(Failed::because)
}
