//! Combines repetitions and sets them beside what was published: agrees, differs, inconclusive, not
//! comparable; each with its reason.
//!
//! A published number agrees where repetitions show that they are within the share of it that the
//! file allows, so that a wide spread is no agreement; it differs where they show the opposite.

use super::claims::{judged, quantity};
use super::declared::{Experiment, PublishedAt};
use super::published::Published;
use super::result::{CellResult, CellState};
use super::words::text;
use crate::cell::Cell;
use crate::experiment::concluded::{Beside, Concluded, Group, Judgement, Summary, summary};
use crate::experiment::factors::{KERNEL, SETTING};
use crate::experiment::sheet::number;
use stats::judge::{self, Finding};
use std::collections::BTreeMap;
use toml::Spanned;

/// Draws the conclusions.
pub fn conclude(experiment: &Experiment, numbers: &Published, results: &[(Cell, CellResult)]) -> Concluded {
    let beside = |one| beside(experiment, numbers, one, results);
    Concluded {
        groups: groups(experiment, results),
        published: experiment.published.iter().flat_map(beside).collect(),
        claims: experiment.claims.iter().flat_map(|claim| judged(experiment, claim, results)).collect(),
    }
}

fn groups(experiment: &Experiment, results: &[(Cell, CellResult)]) -> Vec<Group> {
    let mut found: Vec<(BTreeMap<String, String>, Vec<&CellResult>)> = Vec::new();
    for (cell, result) in results {
        let levels: BTreeMap<String, String> =
            cell.factors.iter().map(|(name, level)| (name.clone(), text(Some(level)).to_owned())).collect();
        match found.iter_mut().find(|(one, _)| *one == levels) {
            Some((_, all)) => all.push(result),
            None => found.push((levels, vec![result])),
        }
    }
    let place = |levels: &BTreeMap<String, String>| -> Vec<usize> {
        let of = |factor: &super::Factor| {
            let has = levels.get(factor.name.get_ref());
            factor.levels.get_ref().iter().position(|level| Some(&level.name) == has).unwrap_or(usize::MAX)
        };
        let kernel = levels.get(KERNEL);
        let kernel =
            experiment.machine.kernels.iter().position(|one| Some(one) == kernel).unwrap_or(usize::MAX);
        std::iter::once(kernel).chain(experiment.factors.iter().map(of)).collect()
    };
    found.sort_by_cached_key(|(levels, _)| place(levels));
    found.into_iter().map(|(levels, all)| group(experiment, levels, &all)).collect()
}

fn group(experiment: &Experiment, levels: BTreeMap<String, String>, all: &[&CellResult]) -> Group {
    let once = |texts: Vec<String>| {
        let mut kept: Vec<String> = Vec::new();
        texts.into_iter().for_each(|text| {
            if !kept.contains(&text) {
                kept.push(text);
            }
        });
        kept
    };
    let values = experiment.values.iter().map(|value| {
        let name = value.name.get_ref();
        (name.clone(), summary(all.iter().copied(), name))
    });
    let values: BTreeMap<String, Summary> = values.collect();
    let absent = values.iter().filter(|(_, summary)| summary.n == 0);
    let absent = absent.filter_map(|(name, _)| {
        let why = all.iter().find_map(|result| result.absent.get(name))?;
        Some((name.clone(), why.clone()))
    });
    Group {
        absent: absent.collect(),
        values,
        lists: super::list::together(experiment, all),
        cells: all.len(),
        ok: all.iter().filter(|result| result.state == CellState::Ok).count(),
        reasons: once(all.iter().filter_map(|result| result.reason.clone()).collect()),
        places: once(all.iter().map(|result| result.place.clone()).collect()),
        emulated: all.iter().any(|result| result.emulated),
        levels,
    }
}

fn matches(cell: &Cell, levels: &BTreeMap<Spanned<String>, Spanned<String>>) -> bool {
    levels.iter().all(|(factor, level)| text(cell.factors.get(factor.get_ref())) == level.get_ref())
}

/// A published number beside its cells: one answer per kernel and setting, which are never
/// combined.
fn beside(
    experiment: &Experiment,
    numbers: &Published,
    one: &PublishedAt,
    results: &[(Cell, CellResult)],
) -> Vec<Beside> {
    let mut by: BTreeMap<BTreeMap<String, String>, Vec<&(Cell, CellResult)>> = BTreeMap::new();
    for pair in results.iter().filter(|(cell, _)| matches(cell, &one.at)) {
        let level = |name: &str| Some((name.to_owned(), pair.0.factors.get(name)?.as_str()?.to_owned()));
        by.entry([KERNEL, SETTING].into_iter().filter_map(level).collect()).or_default().push(pair);
    }
    if by.len() < 2 {
        let found: Vec<&(Cell, CellResult)> = by.into_values().flatten().collect();
        return vec![beside_one(experiment, numbers, one, &found, &BTreeMap::new())];
    }
    by.iter().map(|(levels, found)| beside_one(experiment, numbers, one, found, levels)).collect()
}

fn beside_one(
    experiment: &Experiment,
    numbers: &Published,
    one: &PublishedAt,
    found: &[&(Cell, CellResult)],
    levels: &BTreeMap<String, String>,
) -> Beside {
    let value = one.value.get_ref();
    let all: Vec<&CellResult> = found.iter().map(|(_, result)| result).collect();
    let measured = summary(all.iter().copied(), value);
    // Keys were checked when the file was read.
    let published = numbers.number(one.key.get_ref()).unwrap_or(f64::NAN) * one.times;
    let time = experiment.value(value).is_some_and(|value| value.time);
    let emulated = all.iter().any(|result| result.emulated);
    let (judgement, mut why) = compared(experiment, one, published, &measured, &all, time && emulated);
    let open = open_factors(found);
    if measured.n > 0 && !open.is_empty() {
        why = format!("{why}; all levels of {} together", open.join(", "));
    }
    let declared = one.at.iter().map(|(factor, level)| (factor.get_ref().clone(), level.get_ref().clone()));
    Beside {
        value: value.clone(),
        at: declared.chain(levels.clone()).collect(),
        system: one.system.clone(),
        published,
        measured,
        judgement,
        why,
    }
}

/// Factors in which the cells of one published number differ.
fn open_factors(found: &[&(Cell, CellResult)]) -> Vec<String> {
    let Some((first, _)) = found.first() else { return Vec::new() };
    let differs =
        |name: &&String| found.iter().any(|(cell, _)| cell.factors.get(*name) != first.factors.get(*name));
    first.factors.keys().filter(differs).cloned().collect()
}

fn compared(
    experiment: &Experiment,
    one: &PublishedAt,
    published: f64,
    measured: &Summary,
    found: &[&CellResult],
    emulated_time: bool,
) -> (Judgement, String) {
    let (Some(low), Some(high)) = (measured.low, measured.high) else {
        let absent = found.iter().find_map(|result| result.absent.get(one.value.get_ref()).cloned());
        let reason = found.iter().find_map(|result| result.reason.clone()).or(absent);
        let reason = reason.unwrap_or_else(|| {
            let kernel = one.at.iter().find(|(factor, _)| factor.get_ref() == KERNEL);
            match kernel.filter(|_| found.is_empty()) {
                Some((_, kernel)) => format!("needs kernel {}: no cell of it was run", kernel.get_ref()),
                None if found.is_empty() => "no such cell was run".to_owned(),
                None => "no figure".to_owned(),
            }
        });
        return (Judgement::NotApplicable, reason);
    };
    if let Some(why) = &one.not_comparable {
        return (Judgement::NotComparable, why.clone());
    }
    if emulated_time {
        let why = "times of an emulated guest are not those of a machine";
        return (Judgement::NotComparable, why.to_owned());
    }
    let quantity = quantity(experiment, one.value.get_ref());
    let values: Vec<f64> =
        found.iter().filter_map(|result| *result.values.get(one.value.get_ref())?).collect();
    let margin = one.within * published.abs();
    let within =
        if one.within > 0.0 { format!(", give or take {:.0} %", one.within * 100.0) } else { String::new() };
    let here = format!("{} repetitions from {} to {}{within}", measured.n, number(low), number(high));
    let sides = [
        judge::at_least(quantity, &values, published - margin),
        judge::at_most(quantity, &values, published + margin),
    ];
    let has = |finding| sides.iter().any(|side| side.finding == finding);
    if has(Finding::Fails) {
        (Judgement::Differs, here)
    } else if has(Finding::Undecided) {
        (Judgement::Inconclusive, format!("{here} decide neither"))
    } else {
        (Judgement::Agrees, here)
    }
}
