//! The answer as rows and columns: one sheet per value, the published number in brackets beside the
//! measured one.

use super::declared::{Experiment, ValueOf};
use crate::experiment::concluded::{Concluded, Group, Summary};
use crate::experiment::factors::{KERNEL, SETTING};
use crate::experiment::sheet::{Sheet, number};
use std::collections::BTreeMap;

/// A sheet for each value and list; one sheet with a column per value where no factor goes across.
pub fn sheets(experiment: &Experiment, concluded: &Concluded) -> Vec<Sheet> {
    let mut factors: Vec<&str> =
        experiment.factors.iter().map(|factor| factor.name.get_ref().as_str()).collect();
    if concluded.groups.iter().any(|group| group.levels.contains_key(KERNEL)) {
        factors.insert(0, KERNEL);
    }
    if concluded.groups.iter().any(|group| group.levels.contains_key(SETTING)) {
        factors.push(SETTING);
    }
    let columns: Vec<&str> = experiment.table.columns.iter().map(|name| name.get_ref().as_str()).collect();
    let rows: Vec<&str> = match experiment.table.rows.as_slice() {
        [] => factors.iter().copied().filter(|name| !columns.contains(name)).collect(),
        named => named
            .iter()
            .map(|name| name.get_ref().as_str())
            .chain(
                factors
                    .iter()
                    .copied()
                    .filter(|name| !columns.contains(name) && !named.iter().any(|one| one.get_ref() == name)),
            )
            .collect(),
    };
    let mut sheets: Vec<Sheet> = if columns.is_empty() {
        vec![together(experiment, concluded, &rows)]
    } else {
        experiment.values.iter().map(|value| sheet(value, concluded, &rows, &columns)).collect()
    };
    sheets.extend(super::list::sheets(experiment, concluded, &rows, &columns));
    sheets
}

fn together(experiment: &Experiment, concluded: &Concluded, rows: &[&str]) -> Sheet {
    let heads = experiment.values.iter().map(|value| match value.unit.as_str() {
        "" => value.name.get_ref().clone(),
        unit => format!("{} {unit}", value.name.get_ref()),
    });
    let row = |group: &Group| {
        let levels = rows.iter().map(|name| group.levels.get(*name).cloned().unwrap_or_default());
        let values = experiment.values.iter().map(|value| cell_text(group, value.name.get_ref(), concluded));
        levels.chain(values).collect()
    };
    let titles: Vec<String> =
        experiment.values.iter().map(|value| format!("{}: {}", value.name.get_ref(), value.title)).collect();
    Sheet {
        title: titles.join("; "),
        head: rows.iter().map(|name| (*name).to_owned()).chain(heads).collect(),
        rows: concluded.groups.iter().map(row).collect(),
    }
}

fn sheet(value: &ValueOf, concluded: &Concluded, rows: &[&str], columns: &[&str]) -> Sheet {
    let key = |group: &Group, names: &[&str]| -> Vec<String> {
        names.iter().map(|name| group.levels.get(*name).cloned().unwrap_or_default()).collect()
    };
    let mut across: Vec<Vec<String>> = Vec::new();
    let mut down: Vec<Vec<String>> = Vec::new();
    for group in &concluded.groups {
        let (right, below) = (key(group, columns), key(group, rows));
        if !across.contains(&right) {
            across.push(right);
        }
        if !down.contains(&below) {
            down.push(below);
        }
    }
    let unit = if value.unit.is_empty() { String::new() } else { format!(", {}", value.unit) };
    let heads = across
        .iter()
        .map(|levels| if levels.is_empty() { value.name.get_ref().clone() } else { levels.join(" ") });
    let head = rows.iter().map(|name| (*name).to_owned()).chain(heads).collect();
    let row = |below: &Vec<String>| {
        let cell = |right: &Vec<String>| {
            let group = concluded
                .groups
                .iter()
                .find(|group| key(group, rows) == *below && key(group, columns) == *right);
            group.map_or_else(String::new, |group| cell_text(group, value.name.get_ref(), concluded))
        };
        below.iter().cloned().chain(across.iter().map(cell)).collect()
    };
    Sheet { title: format!("{}{unit}", value.title), head, rows: down.iter().map(row).collect() }
}

fn cell_text(group: &Group, value: &str, concluded: &Concluded) -> String {
    let none = Summary::default();
    let summary = group.values.get(value).unwrap_or(&none);
    let measured = match (summary.median, summary.low, summary.high) {
        (Some(median), Some(low), Some(high)) if low < high => {
            format!("{} [{}, {}]", number(median), number(low), number(high))
        }
        (Some(median), ..) => number(median),
        _ if group.ok == 0 || group.absent.contains_key(value) => "n/a".to_owned(),
        _ => "-".to_owned(),
    };
    let of =
        |at: &BTreeMap<String, String>| at.iter().all(|(name, level)| group.levels.get(name) == Some(level));
    let published: Vec<String> = concluded
        .published
        .iter()
        .filter(|one| one.value == value && of(&one.at))
        .map(|one| number(one.published))
        .collect();
    if published.is_empty() { measured } else { format!("{measured} ({})", published.join(", ")) }
}
