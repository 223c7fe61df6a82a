//! Declarations of experiments, and the checkpoints of their cells, which come back
//! from foreign machines.

use super::bundle;
use super::{Outcome, Reader, fixture, fixtures, in_scratch, text, whole};
use std::sync::LazyLock;
use study::experiment::{CellResult, Experiment, Plan, Published, conclude};
use study::{MAX_CELLS, Store};

static NUMBERS: LazyLock<Published> = LazyLock::new(|| {
    Published::from_toml(&String::from_utf8(fixture("experiments/published.toml")).unwrap()).unwrap()
});

/// An experiment of few cells, the results of which are put together.
static SMALL: LazyLock<Experiment> = LazyLock::new(|| {
    let text = String::from_utf8(fixture("experiments/replication-table1.toml")).unwrap();
    Experiment::from_toml(&text, &NUMBERS).unwrap()
});

pub(crate) fn reader() -> Reader {
    let mut seeds = fixtures("experiments", "toml");
    seeds.retain(|seed| seed.len() < 8_000);
    seeds.push(fixture("fixtures/studies/wakeup.toml"));
    Reader { name: "experiment", seeds, damage: text, read, short: 500 }
}

fn read(bytes: &[u8]) -> Outcome {
    let text = String::from_utf8_lossy(bytes);
    let published = Published::from_toml(&text);
    if let Ok(published) = &published {
        let _ = published.number("replication.max_latency.vanilla[0]");
    }
    let experiment = Experiment::from_toml(&text, &NUMBERS);
    if let Ok(experiment) = &experiment
        && let Ok(plan) = Plan::of(experiment, &[], 1, 0.01)
    {
        assert!(plan.cells.len() as u64 <= MAX_CELLS, "{} cells", plan.cells.len());
        let _ = plan.boots().len();
        for planned in plan.cells.iter().take(50) {
            let _ = planned.expected();
        }
    }
    whole(experiment.is_ok() || published.is_ok())
}

/// The files of a small study, one of them a cell; read as a machine of an inventory sends them.
pub(crate) fn checkpoints() -> Reader {
    let cells = fixtures("fixtures/studies/monday/cells", "json");
    let seeds = cells.iter().take(6).map(|cell| {
        let name = format!("cells/{}.json", "0a".repeat(16));
        bundle::of([(name.as_str(), &cell[..])])
    });
    Reader { name: "checkpoint", seeds: seeds.collect(), damage: text, read: read_checkpoints, short: 300 }
}

fn read_checkpoints(bytes: &[u8]) -> Outcome {
    in_scratch(|scratch| {
        bundle::clear(scratch.path());
        bundle::lay(bytes, scratch.path());
        let Ok(entries) = Store::new(scratch.path()).all() else { return Outcome::Refused };
        let mut read = 0;
        for entry in entries {
            let Ok(checkpoint) = entry.checkpoint else { continue };
            read += 1;
            let _ = checkpoint.cell.id_matches();
            let results: Result<CellResult, _> = serde_json::from_value(checkpoint.result);
            if let Ok(result) = results {
                let _ = conclude(&SMALL, &NUMBERS, &[(checkpoint.cell, result)]);
            }
        }
        whole(read > 0)
    })
}
