//! The study `exposure`: a cell is one stressor alone, its result what was counted; the controls come first.
//!
//! `cell` measures one, `kept` is what the study's directory says of itself, `ground` the state of
//! the machine when it began. `analysis::exposure` computes the coefficients.

mod cell;
mod ground;
mod kept;

use super::RunArgs;
use crate::failure;
use crate::run::interrupted::Interrupted;
use crate::run::place::{Asked, Place};
use crate::run::progress::Reporter;
use analysis::exposure::{self, CellFacts, Expectation};
use anyhow::Context;
use cell::Asking;
use disturb::suite::{self, Expect};
use disturb::{Order, catalogue};
use model::{Error, store};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use study::{Cell, Store, Study};
use sys::sched;
use sys::signals::EndSignals;

/// The runner, and the built-in study.
pub(super) const NAME: &str = "exposure";
const STRESSOR: &str = "stressor";
/// What may be asked of a stressor besides its name.
const ASKED: [&str; 3] = ["rate", "bytes", "workers"];
/// Run directories of cells, while they are needed.
const RUNS: &str = "runs";

/// Every stressor that does no harm.
pub(super) fn declared() -> Study {
    let safe = catalogue::catalogue().iter().filter(|spec| !spec.dangerous);
    Study {
        schema: study::STUDY_SCHEMA.to_owned(),
        name: NAME.to_owned(),
        runner: NAME.to_owned(),
        seed: 1,
        factors: BTreeMap::from([(STRESSOR.to_owned(), safe.map(|spec| json!(spec.name)).collect())]),
        repetitions: 1,
    }
}

/// Runs it, or what is left of it. Exit code 2 where the controls void it.
pub(super) fn run(args: &RunArgs, mut study: Study, signals: &EndSignals) -> anyhow::Result<u8> {
    let expected = expected()?;
    choose(args, &mut study, &expected)?;
    let cells = order(&study, args, &expected)?;
    let place = Place::resolve(&Asked {
        cpus: args.cpus.as_ref(),
        state: args.state.as_deref(),
        ..Asked::default()
    })?;
    // Everything that is not a probe or a stressor's own thread stays off the measured CPUs, guardians included.
    sched::pin(&place.housekeeping)?;
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("study-{}", study.name)));
    let kept = kept::open(&out, &study, args, &place)?;
    let asking = Asking { place: &place, args, signals };
    let mut count = 0;
    let progress = study::run(&cells, &Store::new(&out), |cell| {
        count += 1;
        let facts = measure(&asking, cell, &out)?;
        Reporter::say(&format!("{:>3} of at most {}: {}", count, cells.len(), in_short(&facts)));
        serde_json::to_value(facts).map_err(|error| Ended(error.into()))
    });
    let progress = match progress {
        Ok(progress) => progress,
        Err(study::RunError::Cell { source: Ended(error), .. }) => {
            return Err(error.context(format!("resume the study with: --out {}", out.display())));
        }
        Err(error) => return Err(error.into()),
    };
    for (cell, why) in &progress.stale {
        Reporter::say(&format!("note: cell {} was run anew: {why}", cell.id));
    }
    let facts = progress.results.into_iter().map(|(cell, result)| {
        serde_json::from_value(result).with_context(|| format!("{} is not a cell of exposure", cell.id))
    });
    let facts = facts.collect::<anyhow::Result<Vec<CellFacts>>>()?;
    let found = exposure::conclude(&facts, &expected);
    answer(args, &out, kept, &found)
}

/// Why the loop over the cells ended early.
#[derive(Debug, thiserror::Error)]
#[error("{}", failure::sentence(.0))]
struct Ended(anyhow::Error);

/// The controls of every study: those of the suites.
fn expected() -> anyhow::Result<Vec<Expectation>> {
    let mut expected = Vec::new();
    for suite in suite::suites()? {
        if suite.expect != Expect::Any {
            let seen = suite.expect == Expect::Seen;
            let one = |member: suite::Member| Expectation { stressor: member.name, seen };
            expected.extend(suite.stressors.into_iter().map(one));
        }
    }
    Ok(expected)
}

/// Adds the stressors that the user asked for, and the controls, to the study; refuses what it
/// cannot run.
fn choose(args: &RunArgs, study: &mut Study, expected: &[Expectation]) -> anyhow::Result<()> {
    let known = |factor: &String| factor == STRESSOR || ASKED.contains(&factor.as_str());
    if let Some(factor) = study.factors.keys().find(|factor| !known(factor)) {
        let expected = format!("{STRESSOR}, {}", ASKED.join(", "));
        return Err(Error::invalid("factors", format!("factor {factor:?}"), expected).into());
    }
    let mut names: Vec<String> = if let Some(id) = &args.suite {
        suite::find(id)?.stressors.into_iter().map(|member| member.name).collect()
    } else if args.stressors.is_empty() {
        let values = study.factors.get(STRESSOR).into_iter().flatten();
        values.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).collect()
    } else {
        args.stressors.clone()
    };
    for name in &names {
        let spec = catalogue::find(name)?;
        if spec.dangerous {
            let found = format!("{name} may harm the machine beyond its own end");
            return Err(Error::invalid(STRESSOR, found, "stressors that end with themselves").into());
        }
    }
    names.extend(expected.iter().map(|control| control.stressor.clone()));
    let mut once: Vec<Value> = Vec::new();
    for name in names.into_iter().map(Value::from) {
        if !once.contains(&name) {
            once.push(name);
        }
    }
    study.factors.insert(STRESSOR.to_owned(), once);
    Ok(())
}

/// The cells of this part, in the order in which to run them: where the controls fail, it is known from the start.
fn order(study: &Study, args: &RunArgs, expected: &[Expectation]) -> anyhow::Result<Vec<Cell>> {
    let is_control = |cell: &Cell| {
        let name = cell.factors.get(STRESSOR).and_then(Value::as_str);
        cell.repetition == 0 && expected.iter().any(|control| Some(control.stressor.as_str()) == name)
    };
    let (mut controls, others): (Vec<Cell>, Vec<Cell>) = study.cells()?.into_iter().partition(is_control);
    controls.extend_from_slice(args.shard.of(&others));
    Ok(controls)
}

/// Measures one cell. What fails for one stressor is no reason not to measure the next; only a signal ends the study.
fn measure(asking: &Asking<'_>, cell: &Cell, out: &Path) -> Result<CellFacts, Ended> {
    let order = stressor(cell, asking.place).map_err(Ended)?;
    let dir = out.join(RUNS).join(&cell.id);
    let measured = fresh(&dir).and_then(|()| cell::measure(asking, &order, &dir));
    if let Some(signal) = asking.signals.arrived() {
        return Err(Ended(Interrupted(signal).into()));
    }
    let facts = match measured {
        Err(error) if error.is::<Interrupted>() => return Err(Ended(error)),
        Err(error) => cell::failed(&order, asking.place, failure::sentence(&error)),
        Ok(facts) => ground::judge(facts, &dir, out).map_err(Ended)?,
    };
    if !asking.args.keep {
        let _ = fs::remove_dir_all(&dir);
        // Stays while it holds anything.
        let _ = fs::remove_dir(out.join(RUNS));
    }
    Ok(CellFacts { name: name(cell), ..facts })
}

/// An interrupted cell has left its run directory.
fn fresh(dir: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("remove", dir, error).into())
        }
        _ => Ok(()),
    }
}

/// What the cell asks to be run.
fn stressor(cell: &Cell, place: &Place) -> anyhow::Result<Order> {
    let name = cell.factors.get(STRESSOR).and_then(Value::as_str).unwrap_or_default();
    let number = |factor: &str| match cell.factors.get(factor) {
        None => Ok(None),
        Some(value) => value.as_f64().filter(|number| *number >= 0.0).map(Some).ok_or_else(|| {
            Error::invalid(factor.to_owned(), value.to_string(), "a number that is not negative")
        }),
    };
    Ok(Order {
        rate: number("rate")?,
        bytes: number("bytes")?.map(|bytes| bytes as u64),
        workers: number("workers")?.map(|workers| workers as u32),
        ..Order::plain(name, &place.housekeeping)
    })
}

/// The stressor and what is asked of it.
fn name(cell: &Cell) -> String {
    let stressor = cell.factors.get(STRESSOR).and_then(Value::as_str).unwrap_or_default();
    let asked = cell.factors.iter().filter(|(factor, _)| *factor != STRESSOR);
    asked.fold(stressor.to_owned(), |name, (factor, value)| format!("{name} {factor}={value}"))
}

/// A line on a cell that has just been run.
fn in_short(facts: &CellFacts) -> String {
    let found = exposure::conclude(std::slice::from_ref(facts), &[]);
    found.rows.first().map_or_else(String::new, report::exposure_line)
}

/// Writes the conclusions and prints them.
fn answer(args: &RunArgs, out: &Path, kept: kept::Kept, found: &exposure::Exposure) -> anyhow::Result<u8> {
    let study = report::ExposureStudy {
        title: kept.study.name.clone(),
        dir: out.display().to_string(),
        conditions: kept.conditions(),
        machine: kept.machine,
        exposure: found.clone(),
    };
    store::write_json(&out.join("exposure.json"), &study.json())?;
    store::write_whole(&out.join("exposure.html"), report::exposure_page(&study)?.as_bytes())?;
    if args.json {
        println!("{}", study.json());
    } else {
        print!("{}", report::exposure_text(&study, report::TextOptions::default()));
    }
    Ok(if found.void { 2 } else { 0 })
}
