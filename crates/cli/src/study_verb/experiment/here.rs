//! The cells of an experiment on this machine as it stands, one after the other.

use super::super::RunArgs;
use super::cell::{self, Room};
use super::exposure;
use super::ground;
use super::pace::Pace;
use crate::run::interrupted::Interrupted;
use crate::run::place::{Asked, Place};
use crate::run::progress::Reporter;
use std::path::Path;
use study::Store;
use study::experiment::{Experiment, Part, Planned};
use sys::signals::EndSignals;

/// Runs them; whether a signal ended it.
pub(super) fn run(
    args: &RunArgs,
    experiment: &Experiment,
    todo: &[&Planned],
    store: &Store,
    part: &Part,
    out: &Path,
    signals: &EndSignals,
) -> anyhow::Result<bool> {
    let runs = out.join("runs");
    if cell::give_back(&runs)? {
        Reporter::say("note: a killed study left changes; called isolate undo");
    }
    if todo.is_empty() {
        return Ok(false);
    }
    let cpus = part.cpus.as_deref().map(str::parse).transpose()?;
    let place = Place::resolve(&Asked {
        cpus: cpus.as_ref(),
        state: args.state.as_deref(),
        all_cpus: true,
        ..Asked::default()
    })?;
    if experiment.conclusion.is_some() {
        exposure::keep_machine(out, &place.machine)?;
    }
    let room = Room {
        cpus: place.measured.to_string(),
        housekeeping: place.housekeeping.to_string(),
        dir: runs,
        keep: args.keep,
        name: format!("{}, {}", cell::HERE, place.machine.kernel.release),
        ground: ground::of(place.machine, place.measured, place.housekeeping),
        emulated: false,
        scale: args.scale(),
    };
    let mut can = Vec::new();
    for planned in todo {
        match room.unmet(experiment, &planned.cell) {
            Some(result) => store.save(&planned.cell, serde_json::to_value(&result)?)?,
            None => can.push(*planned),
        }
    }
    let mut pace = Pace::of(&can);
    for planned in can {
        let result = match room.run(experiment, &planned.cell, signals) {
            Ok(result) => result,
            Err(error) if error.is::<Interrupted>() => return Ok(true),
            Err(error) => cell::failed(&error, &room.name, false),
        };
        store.save(&planned.cell, serde_json::to_value(&result)?)?;
        Reporter::say(&format!("{}: {}", super::in_short(&planned.cell, &result), pace.ended(planned)));
    }
    // Stays while it holds anything.
    let _ = std::fs::remove_dir(&room.dir);
    Ok(false)
}
