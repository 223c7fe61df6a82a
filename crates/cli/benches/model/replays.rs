//! Whether a replay of a model has the same model: each program is recorded, its model played and
//! recorded in turn, and the two models compared. Each program is recorded once more as well: how
//! far its own two models are apart is what no replay can be better than.

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
    let (mut replays, mut again) = (Differences::default(), Differences::default());
    for index in 0..programs {
        let mut drawn = Program::draw(SEED + 20_000 + index);
        // A reservation is not in the model, so such threads are not replayed.
        for thread in drawn.threads.iter_mut().filter(|thread| thread.kind == "deadline") {
            (thread.kind, thread.name) = ("absolute", thread.name.replace("dea", "abs"));
        }
        let out = place.join(format!("program-{index}"));
        let before = of(record(stillcore, plant, &drawn, &out)?)?;
        // The two take turns in who comes first.
        for second in [index % 2 == 0, index % 2 == 1] {
            let to = place.join(format!("second-{index}"));
            let (document, differences, what) = if second {
                (record(stillcore, plant, &drawn, &to)?, &mut again, "again")
            } else {
                let words = ["model", "replay", "--duration", DURATION, "--json"].map(str::to_owned);
                let command = [stillcore.to_owned()].into_iter().chain(words);
                let command = command.chain([out.display().to_string()]);
                (recorded(stillcore, None, command, &to)?, &mut replays, "replay")
            };
            differences.add(&format!("{index}, {what}"), compare(&before, &of(document)?));
            std::fs::remove_dir_all(&to)?;
        }
        std::fs::remove_dir_all(&out)?;
    }
    rows.push(Row::new("replays: programs", programs as f64, "").n(replays.threads))?;
    let mut share = |what: &str, good: u64, all: u64, least: f64| {
        let row = Row::new(what, good as f64 / all.max(1) as f64, "").n(all);
        rows.push(row.budget(Of::Value, Limit::AtLeast(least)))
    };
    share("replays: threads released alike", replays.alike, replays.threads, 0.95)?;
    share("replays: programs of which all periods are the same", replays.exact, replays.periods, 0.95)?;
    for (what, all) in replays.sorted() {
        let row =
            Row::new(format!("replays: {what}: largest difference, median of programs"), median(&all), "");
        let row = row.n(all.len() as u64);
        rows.push(row.budget(Of::Value, Limit::AtMost(SAME)))?;
        let within = all.iter().filter(|one| **one <= SAME).count();
        let what = format!("replays: {what}: programs within 2 %");
        rows.push(Row::new(what, within as f64 / all.len() as f64, "").n(all.len() as u64))?;
    }
    for (what, all) in again.sorted() {
        let what = format!("the same program again: {what}: largest difference, median of programs");
        rows.push(Row::new(what, median(&all), "").n(all.len() as u64))?;
    }
    Ok(())
}

/// How far models are from those that were made first.
#[derive(Default)]
struct Differences {
    threads: u64,
    alike: u64,
    periods: u64,
    exact: u64,
    /// By quantity: the largest difference of each program.
    largest: BTreeMap<String, Vec<f64>>,
}

impl Differences {
    fn add(&mut self, name: &str, compared: Compared) {
        self.threads += compared.threads as u64;
        self.alike += compared.alike as u64;
        for one in compared.quantities {
            if one.what == "period" {
                self.periods += 1;
                self.exact += u64::from(one.largest <= 0.0);
            }
            eprintln!(
                "{name}: {}: {:.4} ({}: {} {})",
                one.what, one.largest, one.thread, one.before, one.after
            );
            self.largest.entry(one.what).or_default().push(one.largest);
        }
    }

    /// By quantity, from the least difference to the largest.
    fn sorted(self) -> impl Iterator<Item = (String, Vec<f64>)> {
        self.largest.into_iter().map(|(what, mut all)| {
            all.sort_by(f64::total_cmp);
            (what, all)
        })
    }
}

fn median(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
}

fn of(document: Value) -> Result<TaskModel, Failed> {
    serde_json::from_value(document).map_err(Failed::because)
}
