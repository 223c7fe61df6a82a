//! Experiments: published tables and figures, one command each. `files` carries them, `cell` runs one cell where the program is, `guests` in
//! kernels of the lab (`inside` is their side), `answer` tells what came out. The declaration, the plan and the judgement are the crate
//! `study`'s.

mod answer;
mod cell;
pub(crate) mod files;
mod guests;
pub(crate) mod inside;

use super::RunArgs;
use crate::lab_matrix;
use crate::run::interrupted::Interrupted;
use crate::run::place::{Asked, Place};
use crate::run::progress::Teller;
use crate::stop_on;
use anyhow::Context;
use cell::Room;
use lab::Arch;
use linux::sys::signals::EndSignals;
use model::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;
use study::experiment::{CellResult, CellState, Experiment, KERNEL, Plan, Planned};
use study::{Cell, Found, Store};

/// Whether a text declares an experiment.
pub(super) fn is_one(text: &str) -> bool {
    text.contains(study::experiment::EXPERIMENT_SCHEMA)
}

/// Runs an experiment, or goes on with one.
pub(super) fn run(args: &RunArgs, text: &str, from: &str, signals: EndSignals) -> anyhow::Result<u8> {
    args.only_of_experiments()?;
    let experiment = files::read(text)?.map_err(anyhow::Error::new).with_context(|| from.to_owned())?;
    let kernels = kernels(args, &experiment)?;
    let repetitions = args.repetitions.unwrap_or(*experiment.repetitions.get_ref());
    let plan = Plan::of(&experiment, &kernels, repetitions, args.scale())?;
    let out =
        args.out.clone().unwrap_or_else(|| PathBuf::from(format!("study-{}", experiment.name.get_ref())));
    let cells = args.shard.of(&plan.cells);
    if args.plan {
        print!("{}", answer::plan(&experiment, &plan, cells, &out));
        return Ok(0);
    }
    let store = Store::new(&out);
    let todo = todo(&store, cells, args.retry)?;
    if args.resume && !out.exists() {
        return Err(Error::invalid(
            "--resume",
            format!("{} does not exist", out.display()),
            "a study begun before",
        )
        .into());
    }
    Teller::say(&answer::ahead(&plan, cells.len(), todo.len(), &out));
    std::fs::create_dir_all(&out).map_err(|source| Error::io("create", &out, source))?;
    let interrupted = if kernels.is_empty() {
        here(args, &experiment, &todo, &store, &out, &signals)?
    } else {
        in_guests(args, &experiment, text, &todo, &store, &out, &kernels, signals)?
    };
    if interrupted {
        anyhow::bail!("stopped; the study can be gone on with: the same command, or --out {}", out.display());
    }
    answer::tell(args, &experiment, &results(&store, cells)?, &out)
}

/// The kernels of the lab; none for this machine as it stands.
fn kernels(args: &RunArgs, experiment: &Experiment) -> anyhow::Result<Vec<String>> {
    let declared = &experiment.machine.kernels;
    match &args.lab {
        _ if args.here => Ok(Vec::new()),
        Some(named) if !named.is_empty() => Ok(named.clone()),
        Some(_) if declared.is_empty() => Err(Error::invalid(
            "--lab",
            "no kernels, and the file names none",
            "kernels, such as --lab 6.1,6.1-rt",
        )
        .into()),
        _ => Ok(declared.clone()),
    }
}

/// Those without a result; with `retry` also those that failed.
fn todo<'a>(store: &Store, cells: &'a [Planned], retry: bool) -> anyhow::Result<Vec<&'a Planned>> {
    let mut todo = Vec::new();
    for planned in cells {
        let done = match store.find(&planned.cell)? {
            Found::Done(value) => {
                let result: Option<CellResult> = serde_json::from_value(value).ok();
                result.is_some_and(|result| !retry || result.state == CellState::Ok)
            }
            Found::Absent => false,
            Found::Stale(why) => {
                Teller::say(&format!("note: cell {} is run anew: {why}", planned.cell.id));
                false
            }
        };
        if !done {
            todo.push(planned);
        }
    }
    Ok(todo)
}

/// Every cell that has a result.
fn results(store: &Store, cells: &[Planned]) -> anyhow::Result<Vec<(Cell, CellResult)>> {
    let mut results = Vec::new();
    for planned in cells {
        if let Found::Done(value) = store.find(&planned.cell)? {
            let path = store.path(&planned.cell.id);
            let result = serde_json::from_value(value)
                .map_err(|error| Error::invalid(path.display(), error, "a result of an experiment"))?;
            results.push((planned.cell.clone(), result));
        }
    }
    Ok(results)
}

/// Runs cells on this machine; whether a signal ended it.
fn here(
    args: &RunArgs,
    experiment: &Experiment,
    todo: &[&Planned],
    store: &Store,
    out: &Path,
    signals: &EndSignals,
) -> anyhow::Result<bool> {
    let runs = out.join("runs");
    let given_back = cell::give_back(&runs)?;
    if !given_back.is_empty() {
        Teller::say(&format!("note: a killed study left changes; called {}", given_back.join(", ")));
    }
    if todo.is_empty() {
        return Ok(false);
    }
    let place = Place::resolve(&Asked {
        cpus: args.cpus.as_ref(),
        state: args.state.as_deref(),
        all_cpus: true,
        ..Asked::default()
    })?;
    let room = Room {
        cpus: place.measured.to_string(),
        housekeeping: place.housekeeping.to_string(),
        isolated: !place.machine.topology.isolated.is_empty(),
        dir: runs,
        keep: args.keep,
        name: format!("this machine, {}", place.machine.kernel.release),
        emulated: false,
        scale: args.scale(),
    };
    for (at, planned) in todo.iter().enumerate() {
        let result = match room.run(experiment, &planned.cell, planned.isolated, signals) {
            Ok(result) => result,
            Err(error) if error.is::<Interrupted>() => return Ok(true),
            Err(error) => cell::failed(&error, &room.name, false),
        };
        store.save(&planned.cell, serde_json::to_value(&result)?)?;
        Teller::say(&format!("{} of {}: {}", at + 1, todo.len(), in_short(&planned.cell, &result)));
    }
    Ok(false)
}

#[expect(clippy::too_many_arguments, reason = "what a call resolved, handed on once")]
fn in_guests(
    args: &RunArgs,
    experiment: &Experiment,
    text: &str,
    todo: &[&Planned],
    store: &Store,
    out: &Path,
    kernels: &[String],
    signals: EndSignals,
) -> anyhow::Result<bool> {
    if todo.is_empty() {
        return Ok(false);
    }
    let arch = Arch::host().context("no guests for this machine's architecture")?;
    let stop = stop_on(signals);
    let lab = guests::Lab {
        experiment,
        text,
        scale: args.scale(),
        keep: args.keep,
        out,
        store,
        binary: args.binary.clone(),
        kernels: lab_matrix::fetch(kernels, arch, &stop)?,
        stop: &stop,
    };
    guests::run(&lab, todo, args.jobs.unwrap_or_else(lab_matrix::spare))?;
    Ok(stop.is_asked())
}

/// A cell and what it came to, in a line.
fn in_short(cell: &Cell, result: &CellResult) -> String {
    let kernel = cell.factors.get(KERNEL);
    let others = cell.factors.iter().filter(|(name, _)| *name != KERNEL).map(|(_, level)| level);
    let levels: Vec<&str> = kernel.into_iter().chain(others).filter_map(|level| level.as_str()).collect();
    let figures: Vec<String> = result
        .values
        .iter()
        .map(|(name, value)| {
            format!("{name} {}", value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}")))
        })
        .collect();
    let told = match result.state {
        CellState::Ok => figures.join(", "),
        CellState::NotApplicable => {
            format!("not applicable: {}", result.reason.as_deref().unwrap_or_default())
        }
        CellState::Failed => format!("failed: {}", result.reason.as_deref().unwrap_or_default()),
    };
    let took = Duration::from_secs_f64(result.wall_s.clamp(0.0, 1e6)).as_secs();
    format!("{} #{}: {told} ({took} s)", levels.join(" "), cell.repetition + 1)
}
