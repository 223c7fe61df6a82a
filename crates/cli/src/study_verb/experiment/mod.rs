//! Experiments: published tables and figures, one command each. `files` carries them, `cell` runs
//! one cell where the program is. All of them run `here`, in `guests` with kernels of the lab
//! (`inside` is their side), or on `hosts`. `directory` is where results are, `merge` brings parts
//! together, `answer` reports the results, `figures` draws them, `rows` writes them as a table for
//! others. `whose` says which machine a cell has changed. The declaration, the plan and the
//! judgement are the crate `study`'s.

pub(crate) mod answer;
mod cell;
pub(super) mod directory;
pub(crate) mod exposure;
mod figures;
pub(crate) mod files;
mod ground;
mod guests;
mod here;
pub(crate) mod hosts;
pub(crate) mod inside;
mod loads;
pub(super) mod merge;
mod on;
pub(super) mod options;
mod pace;
mod page;
mod planned;
mod rows;
mod spelt;
mod whose;

use super::RunArgs;
use crate::lab_verb;
use crate::run::progress::Reporter;
use crate::study_verb::experiment::options::AnswerOptions;
use crate::verbs::stop_on;
use anyhow::Context;
use model::Error;
use on::On;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;
use study::experiment::{
    CellResult, CellState, Experiment, Ground, KERNEL, PART_SCHEMA, Part, Plan, Planned, Under,
};
use study::{Cell, Found, Shard, Store};
use sys::signals::EndSignals;

/// Whether a text declares an experiment.
pub(super) fn is_one(text: &str) -> bool {
    text.contains(study::experiment::EXPERIMENT_SCHEMA)
}

/// Runs an experiment, or resumes one.
pub(crate) fn run(args: &RunArgs, text: &str, from: &str, signals: &EndSignals) -> anyhow::Result<u8> {
    let experiment = files::read(text)?.map_err(anyhow::Error::new).with_context(|| from.to_owned())?;
    let out = args.out.clone().unwrap_or_else(|| default_out(&experiment, args.shard));
    let on = On::of(args, &experiment, directory::present(&out)?.as_ref())?;
    let part = part(args, &experiment, text, &on);
    let plan = part.plan(&experiment)?;
    spelt::check(&experiment, &plan.cells, args.scale())?;
    let cells = args.shard.of(&plan.cells);
    if args.plan {
        print!("{}", planned::page(&experiment, &plan, cells, &out, &on));
        return Ok(0);
    }
    let store = Store::new(&out);
    let named = args.cells.as_deref().map(|path| named(path, &plan)).transpose()?;
    let ground = on.ground.as_ref();
    let mut todo = todo(&store, cells, args, ground)?;
    let of_boot = args.boots.as_ref().and_then(|boots| boots.cells.as_ref());
    for ids in named.iter().chain(of_boot) {
        todo.retain(|planned| ids.contains(&planned.cell.id));
    }
    let profiles = &args.matrix.profiles;
    todo.retain(|planned| {
        profiles.is_empty()
            || profiles
                .iter()
                .any(|one| planned.cell.factors.get(exposure::PROFILE).is_some_and(|level| level == one))
    });
    if args.resume && !out.exists() {
        return Err(Error::invalid(
            "--resume",
            format!("{} does not exist", out.display()),
            "a study begun before",
        )
        .into());
    }
    let machines = args.hosts.as_deref().map(hosts::machines).transpose()?.unwrap_or_default();
    if on.lab {
        lab_verb::programs_alone(guests::arch(&experiment)?, args.binary.clone())?;
    }
    let part = Part { cells: plan.cells.len(), ..part };
    let others = foreign(&store, &plan)?;
    if experiment.conclusion.is_some() {
        same_conditions(&out, &experiment, others, ground, &results(&store, cells)?)?;
    }
    let _held = directory::open(&out, &part)?;
    if others > 0 {
        Reporter::say(&format!(
            "note: {others} stored cells are not of this plan (another scale, file or version), and are left out"
        ));
    }
    Reporter::say(&planned::ahead(cells.len(), &todo, &out, ground));
    let mut lost = Vec::new();
    let interrupted = if let Some(inventory) = &args.hosts {
        let repetitions = args.repetitions.unwrap_or(*experiment.repetitions.get_ref());
        let fleet = hosts::Fleet { args, inventory, text, repetitions, out: &out, store: &store };
        let ended = hosts::run(&fleet, &machines, &todo, signals)?;
        lost = ended.lost;
        ended.interrupted
    } else if on.lab {
        in_guests(args, &experiment, text, &todo, &store, &out, &on.kernels, signals)?
    } else {
        here::run(args, &experiment, &todo, &store, &part, &out, signals)?
    };
    if interrupted {
        return Err(Stopped { out }.into());
    }
    let onto = args.matrix.onto.clone();
    let options = AnswerOptions {
        scale: args.scale(),
        json: args.json,
        quiet: args.quiet,
        cells: plan.cells.len(),
        onto,
    };
    let results = with_lost(results(&store, cells)?, lost, cells);
    answer::write_and_print(&options, &experiment, &results, &out)
}

/// A study that a signal ended.
#[derive(Debug, thiserror::Error)]
#[error("stopped; resume with: the same command, or --out {}", out.display())]
struct Stopped {
    out: PathBuf,
}

/// Whether an error says that a signal ended the study.
pub(crate) fn was_stopped(error: &anyhow::Error) -> bool {
    error.is::<Stopped>()
}

/// An experiment before it is run.
pub(crate) struct Ahead {
    pub(crate) experiment: Experiment,
    /// Those of its cells that can run on what the call names.
    pub(crate) cells: Vec<Planned>,
    /// Ids of those without a result.
    pub(crate) todo: BTreeSet<String>,
}

/// What a call would run.
pub(crate) fn ahead(args: &RunArgs, text: &str, from: &str) -> anyhow::Result<Ahead> {
    let experiment = files::read(text)?.map_err(anyhow::Error::new).with_context(|| from.to_owned())?;
    let out = args.out.clone().unwrap_or_else(|| default_out(&experiment, args.shard));
    let on = On::of(args, &experiment, directory::present(&out)?.as_ref())?;
    let mut plan = part(args, &experiment, text, &on).plan(&experiment)?;
    // What this machine cannot run takes no time, unless it is booted for that; emulated guests
    // have no performance counters.
    let ground = on.ground.as_ref().filter(|_| args.boots.is_none());
    let emulated = on.lab && experiment.machine.accel.as_deref() != Some("kvm");
    plan.cells.retain(|planned| {
        let counters = planned.needs.wants.iter().any(|wants| wants.counters);
        !(emulated && counters) && ground.is_none_or(|ground| planned.needs.unmet(ground).is_none())
    });
    let todo = todo(&Store::new(&out), &plan.cells, args, on.ground.as_ref())?;
    let todo = todo.iter().map(|planned| planned.cell.id.clone()).collect();
    Ok(Ahead { experiment, cells: plan.cells, todo })
}

/// Results in the order of the plan, and among them the cells whose machine was lost.
fn with_lost(
    mut results: Vec<(Cell, CellResult)>,
    lost: Vec<(Cell, CellResult)>,
    cells: &[Planned],
) -> Vec<(Cell, CellResult)> {
    results.extend(lost);
    let order: BTreeMap<&str, usize> =
        cells.iter().enumerate().map(|(at, planned)| (planned.cell.id.as_str(), at)).collect();
    results.sort_by_key(|(cell, _)| order.get(cell.id.as_str()).copied());
    results
}

/// Parts have directories of their own: on a file system that machines share, none meets another's.
fn default_out(experiment: &Experiment, shard: Shard) -> PathBuf {
    let name = format!("study-{}", experiment.name.get_ref());
    PathBuf::from(if shard == Shard::WHOLE {
        name
    } else {
        format!("{name}.{}", shard.to_string().replace('/', "-of-"))
    })
}

/// What the directory says of itself; its cells are not counted yet.
fn part(args: &RunArgs, experiment: &Experiment, text: &str, on: &On) -> Part {
    Part {
        schema: PART_SCHEMA.to_owned(),
        name: experiment.name.get_ref().clone(),
        experiment: text.to_owned(),
        kernels: on.kernels.clone(),
        cpus: on.ground.as_ref().map(|ground| ground.cpus.to_string()),
        on_machines: !on.lab && !on.kernels.is_empty(),
        repetitions: args.repetitions.unwrap_or(*experiment.repetitions.get_ref()),
        scale: args.scale(),
        shard: args.shard.to_string(),
        cells: 0,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// The ids in a file.
fn named(path: &Path, plan: &Plan) -> anyhow::Result<BTreeSet<String>> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::io("read", path, source))?;
    let known: BTreeSet<&str> = plan.cells.iter().map(|planned| planned.cell.id.as_str()).collect();
    let mut named = BTreeSet::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        if !known.contains(line.trim()) {
            let place = format!("{}, line {}", path.display(), at + 1);
            return Err(Error::invalid(place, format!("{line:?}"), "the id of a cell of this plan").into());
        }
        named.insert(line.trim().to_owned());
    }
    Ok(named)
}

/// Cells without a result, or whose needs this machine meets and an earlier one did not; with
/// `--retry` also those that failed.
fn todo<'a>(
    store: &Store,
    cells: &'a [Planned],
    args: &RunArgs,
    ground: Option<&Ground>,
) -> anyhow::Result<Vec<&'a Planned>> {
    // A cell whose needs an earlier boot did not meet runs as soon as the machine meets them.
    let now = |planned: &Planned| ground.is_some_and(|ground| planned.needs.unmet(ground).is_none());
    let mut todo = Vec::new();
    for planned in cells {
        let done = match store.find(&planned.cell)? {
            Found::Done(value) => {
                let result: Option<CellResult> = serde_json::from_value(value).ok();
                result.is_some_and(|result| match result.state {
                    CellState::Ok => true,
                    CellState::Needs if now(planned) => false,
                    CellState::Failed => !(args.retry || args.matrix.retry_failed),
                    _ => !args.retry,
                })
            }
            Found::Absent => false,
            Found::Stale(why) => {
                Reporter::say(&format!("note: cell {} is run anew: {why}", planned.cell.id));
                false
            }
        };
        if !done {
            todo.push(planned);
        }
    }
    Ok(todo)
}

/// Refuses to add to results of other conditions where one thing is concluded from all of them.
fn same_conditions(
    out: &Path,
    experiment: &Experiment,
    others: usize,
    ground: Option<&Ground>,
    results: &[(Cell, CellResult)],
) -> anyhow::Result<()> {
    let expected = "the same study under the same conditions, or another --out";
    if others > 0 {
        let there = directory::present(out)?;
        let there = there.and_then(|there| there.declared(&files::published().ok()?).ok());
        let found = there.and_then(|there| experiment.differing(&there));
        let found = found.unwrap_or_else(|| format!("{others} cells are of another plan"));
        return Err(Error::invalid(out.display(), found, expected).into());
    }
    let here = ground.map(Under::of);
    let mut under = results.iter().filter_map(|(_, result)| result.under.as_ref());
    let differing = under.find_map(|there| here.as_ref()?.differing(there));
    match differing {
        Some(found) => Err(Error::invalid(out.display(), found, expected).into()),
        None => Ok(()),
    }
}

/// Stored cells that the plan does not have.
fn foreign(store: &Store, plan: &Plan) -> anyhow::Result<usize> {
    let known: BTreeSet<&str> = plan.cells.iter().map(|planned| planned.cell.id.as_str()).collect();
    let stored = store.all()?;
    let of = |entry: &&study::Entry| match &entry.checkpoint {
        Ok(checkpoint) => !known.contains(checkpoint.cell.id.as_str()),
        Err(_) => false,
    };
    Ok(stored.iter().filter(of).count())
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

#[expect(clippy::too_many_arguments, reason = "what a call resolved, handed on once")]
fn in_guests(
    args: &RunArgs,
    experiment: &Experiment,
    text: &str,
    todo: &[&Planned],
    store: &Store,
    out: &Path,
    kernels: &[String],
    signals: &EndSignals,
) -> anyhow::Result<bool> {
    if todo.is_empty() {
        return Ok(false);
    }
    let arch = guests::arch(experiment)?;
    let stop = stop_on(signals)?;
    let kernels = lab_verb::fetch(kernels, arch, &stop)?;
    if experiment.conclusion.is_some() {
        exposure::kernels::keep(out, arch, &kernels, &stop)?;
    }
    let lab = guests::Lab {
        experiment,
        text,
        scale: args.scale(),
        keep: args.keep,
        out,
        store,
        binary: args.binary.clone(),
        kernels,
        stop: &stop,
        pace: std::sync::Mutex::new(pace::Pace::of(todo)),
        timeout: args.matrix.timeout,
    };
    guests::run(&lab, todo, args.jobs.unwrap_or_else(lab_verb::spare))?;
    Ok(stop.is_asked())
}

/// A cell and its result, in one line.
fn in_short(cell: &Cell, result: &CellResult) -> String {
    let kernel = cell.factors.get(KERNEL);
    if let Some(line) = exposure::in_short(cell, result) {
        return line;
    }
    let others = cell.factors.iter().filter(|(name, _)| *name != KERNEL).map(|(_, level)| level);
    let levels: Vec<&str> = kernel.into_iter().chain(others).filter_map(|level| level.as_str()).collect();
    // A level of many that measures a few of the values has no room for what it does not.
    let given = result.values.iter().filter_map(|(name, value)| Some((name, (*value)?)));
    let figures: Vec<String> = given.map(|(name, value)| format!("{name} {value:.3}")).collect();
    let outcome = match result.state {
        CellState::Ok if figures.is_empty() => "no value".to_owned(),
        CellState::Ok => figures.join(", "),
        CellState::Needs => result.reason.clone().unwrap_or_default(),
        CellState::NotApplicable => {
            format!("not applicable: {}", result.reason.as_deref().unwrap_or_default())
        }
        CellState::Failed => format!("failed: {}", result.reason.as_deref().unwrap_or_default()),
    };
    let took = Duration::from_secs_f64(result.wall_s.clamp(0.0, 1e6)).as_secs();
    format!("{} #{}: {outcome} ({took} s)", levels.join(" "), cell.repetition + 1)
}
