//! The conclusion of experiments whose cells are `measure exposure`: events per operation of each
//! stressor, judged by the controls; a table of kernels and ways of isolating where there are
//! several.
//!
//! `matrix` makes the table, `onto` puts its rows into an older one, `kernels` keeps what each
//! kernel of the lab is.

pub(super) mod kernels;
mod matrix;
mod onto;
#[cfg(test)]
mod tests;

use super::options::AnswerOptions;
use analysis::exposure::{self, CellFacts, Expectation};
use disturb::suite::{self, Expect, Member};
use model::{Cpus, Error, Machine, store};
use std::path::Path;
use study::Cell;
use study::experiment::{Amount, Apart, CellResult, Experiment, KERNEL, Under};

/// The factor whose levels are stressors.
pub(crate) const STRESSOR: &str = "stressor";
/// The factor whose levels are ways of isolating.
pub(crate) const PROFILE: &str = "profile";
/// In the directory of a study that ran on a machine as it stands: that machine when it began.
const MACHINE: &str = "machine.json";

/// Writes the conclusions and prints them. Exit code 2 where the controls void a study on one
/// machine.
pub(super) fn write_and_print(
    args: &AnswerOptions,
    experiment: &Experiment,
    apart: &Apart,
    out: &Path,
) -> anyhow::Result<u8> {
    if !apart.settings.is_empty() {
        let found = format!("cells ran under different conditions: {}", apart.settings.join("; "));
        return Err(Error::invalid(out.display(), found, "one machine, kernel and boot line a study").into());
    }
    let results = apart.results.as_slice();
    let several =
        results.iter().any(|(cell, _)| [KERNEL, PROFILE].iter().any(|one| cell.factors.contains_key(*one)));
    if several {
        return matrix::write_and_print(args, experiment, results, out);
    }
    let expected = expected()?;
    let counted = results.iter().map(|result| facts(result, &expected));
    let found = exposure::conclude(&counted.collect::<anyhow::Result<Vec<_>>>()?, &expected);
    let machine = out.join(MACHINE);
    let study = report::ExposureStudy {
        title: experiment.name.get_ref().clone(),
        dir: out.display().to_string(),
        conditions: conditions(args, experiment, results),
        machine: machine.exists().then(|| store::read_json(&machine)).transpose()?,
        exposure: found,
    };
    store::write_json(&out.join("exposure.json"), &study.json())?;
    store::write_whole(&out.join("exposure.html"), report::exposure_page(&study)?.as_bytes())?;
    if args.json {
        println!("{}", study.json());
    } else {
        print!("{}", report::exposure_text(&study, crate::terminal::plain_options()));
    }
    Ok(if study.exposure.void { 2 } else { 0 })
}

/// Keeps what the machine is, when the first cell is run on it.
pub(super) fn keep_machine(out: &Path, machine: &Machine) -> anyhow::Result<()> {
    let path = out.join(MACHINE);
    if !path.exists() {
        store::write_json(&path, machine)?;
    }
    Ok(())
}

/// What a cell shows, in a line; nothing where it was not measured.
pub(super) fn in_short(cell: &Cell, result: &CellResult) -> Option<String> {
    result.answer.as_ref()?;
    let facts = facts(&(cell.clone(), result.clone()), &[]).ok()?;
    let found = exposure::conclude(&[facts], &[]);
    found.rows.first().map(report::exposure_line)
}

/// The counts of a cell, under the name of its row: the stressor, and what else is varied of it; a
/// control is one whatever else is varied.
fn facts((cell, result): &(Cell, CellResult), expected: &[Expectation]) -> anyhow::Result<CellFacts> {
    let level = |factor: &str| cell.factors.get(factor).and_then(|level| level.as_str()).unwrap_or_default();
    let stressor = level(STRESSOR);
    let is_control = expected.iter().any(|control| control.stressor == stressor);
    let fixed = |name: &str| is_control || [STRESSOR, KERNEL, PROFILE].contains(&name);
    let others = cell.factors.keys().filter(|name| !fixed(name));
    let name = others.fold(stressor.to_owned(), |name, factor| format!("{name} {factor}={}", level(factor)));
    let facts = if let Some(answer) = &result.answer {
        serde_json::from_value(answer.clone())
            .map_err(|error| Error::invalid(&cell.id, error, "an answer of measure exposure"))?
    } else {
        let cpus = |of: fn(&Under) -> &String| {
            let text = result.under.as_ref().map(of);
            text.and_then(|text| text.parse::<Cpus>().ok()).unwrap_or_default()
        };
        let (measured, others) = (cpus(|under| &under.measured), cpus(|under| &under.housekeeping));
        CellFacts::failed(stressor, &others, &measured, result.reason.clone().unwrap_or_default())
    };
    Ok(CellFacts { name, ..facts })
}

/// The controls of every study: those of the suites.
fn expected() -> anyhow::Result<Vec<Expectation>> {
    let mut expected = Vec::new();
    for suite in suite::suites()?.into_iter().filter(|suite| suite.expect != Expect::Any) {
        let seen = suite.expect == Expect::Seen;
        let one = |member: Member| Expectation { stressor: member.name, seen };
        expected.extend(suite.stressors.into_iter().map(one));
    }
    Ok(expected)
}

/// The conditions that all cells share, in words.
fn conditions(
    args: &AnswerOptions,
    experiment: &Experiment,
    results: &[(Cell, CellResult)],
) -> Vec<(String, String)> {
    let under = results.iter().find_map(|(_, result)| result.under.as_ref());
    let mut pairs: Vec<(&str, String)> = Vec::new();
    if let Some(under) = under {
        pairs.push(("kernel", format!("{} {}", under.release, under.version)));
        pairs.push(("command line", under.cmdline.clone()));
        pairs.push(("measured CPUs", measured(&under.measured, experiment)));
        pairs.push(("stressors on CPUs", under.housekeeping.clone()));
    }
    pairs.extend(window(args, experiment).map(|window| (WINDOWS, window)));
    pairs.push(("repetitions", experiment.repetitions.get_ref().to_string()));
    pairs.push(("seed of the order", experiment.seed.to_string()));
    pairs.extend(results.first().map(|(_, result)| ("stillcore", result.tool_version.clone())));
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The heading of their length.
const WINDOWS: &str = "idle before, disturbed, idle after";

/// The measured CPUs, and what keeps them busy.
fn measured(cpus: &str, experiment: &Experiment) -> String {
    let words = experiment.steps.first().map_or(&[][..], |step| step.run.get_ref());
    let given = words.iter().position(|word| word == "--priority").and_then(|at| words.get(at + 1));
    let policy = given.map_or_else(|| "SCHED_OTHER".to_owned(), |priority| format!("SCHED_FIFO {priority}"));
    format!("{cpus}, each kept busy in user space under {policy}")
}

/// How long each window is.
fn window(args: &AnswerOptions, experiment: &Experiment) -> Option<String> {
    match experiment.quantities.get("duration")?.scaled(args.scale) {
        Amount::Time(ns) => Some(format!("{} s each", ns as f64 / 1e9)),
        Amount::Count(_) => None,
    }
}
