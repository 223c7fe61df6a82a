//! Values of a cell by name: the maximum of each topic, of each CPU. A scenario's maximum is that
//! of its worst topic; the papers' figures show them topic by topic.

use super::declared::Experiment;
use super::result::CellResult;
use super::taken::{at, made};
use crate::experiment::concluded::{Concluded, Group, Summary, of_numbers};
use crate::experiment::parts::ListOf;
use crate::experiment::sheet::{Sheet, number};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The values of an answer, by name. Elements without a name or a value are left out.
pub fn listed(answer: &Value, list: &ListOf) -> BTreeMap<String, f64> {
    let mut found: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for element in at(answer, &list.over) {
        let Some(name) = at(element, &list.by).first().and_then(|name| name.as_str()) else { continue };
        let numbers = at(element, &list.at).into_iter().filter_map(Value::as_f64);
        found.entry(name.to_owned()).or_default().extend(numbers);
    }
    let figure = |(name, numbers): (String, Vec<f64>)| Some((name, made(&numbers, list.take)? * list.times));
    found.into_iter().filter_map(figure).collect()
}

/// Combines the lists of several repetitions: by list and name.
pub(super) fn together(
    experiment: &Experiment,
    all: &[&CellResult],
) -> BTreeMap<String, BTreeMap<String, Summary>> {
    let lists = experiment.lists.iter().map(|list| {
        let name = list.name.get_ref();
        let of: Vec<&BTreeMap<String, f64>> =
            all.iter().filter_map(|result| result.lists.get(name)).collect();
        let keys: BTreeSet<&String> = of.iter().flat_map(|figures| figures.keys()).collect();
        let summary = |key: &String| of_numbers(of.iter().filter_map(|figures| figures.get(key)).copied());
        (name.clone(), keys.into_iter().map(|key| (key.clone(), summary(key))).collect())
    });
    lists.filter(|(_, figures): &(_, BTreeMap<_, _>)| !figures.is_empty()).collect()
}

/// One table per list: a row per name and combination of the factors that go down.
pub(super) fn sheets(
    experiment: &Experiment,
    concluded: &Concluded,
    rows: &[&str],
    columns: &[&str],
) -> Vec<Sheet> {
    let of = |group: &Group, names: &[&str]| -> Vec<String> {
        names.iter().map(|name| group.levels.get(*name).cloned().unwrap_or_default()).collect()
    };
    let groups = &concluded.groups;
    let across = groups.iter().fold(Vec::new(), |mut all: Vec<Vec<String>>, group| {
        let levels = of(group, columns);
        if !all.contains(&levels) {
            all.push(levels);
        }
        all
    });
    let sheet = |list: &ListOf| {
        let name = list.name.get_ref();
        let mut lines: Vec<(Vec<String>, &String)> = Vec::new();
        for group in groups {
            for key in group.lists.get(name).into_iter().flat_map(BTreeMap::keys) {
                let line = (of(group, rows), key);
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
        let cell = |line: &(Vec<String>, &String), right: &Vec<String>| {
            let group = groups.iter().find(|one| of(one, rows) == line.0 && of(one, columns) == *right);
            group.and_then(|group| group.lists.get(name)?.get(line.1)).map_or_else(String::new, summary_text)
        };
        let row = |line: &(Vec<String>, &String)| {
            let figures = across.iter().map(|right| cell(line, right));
            line.0.iter().cloned().chain([line.1.clone()]).chain(figures).collect()
        };
        let heads =
            across.iter().map(|levels| if levels.is_empty() { name.clone() } else { levels.join(" ") });
        let by = list.by.rsplit('/').next().unwrap_or_default().to_owned();
        let unit = if list.unit.is_empty() { String::new() } else { format!(", {}", list.unit) };
        Sheet {
            title: format!("{}{unit}", list.title),
            head: rows.iter().map(|name| (*name).to_owned()).chain([by]).chain(heads).collect(),
            rows: lines.iter().map(row).collect(),
        }
    };
    experiment.lists.iter().map(sheet).filter(|sheet| !sheet.rows.is_empty()).collect()
}

fn summary_text(summary: &Summary) -> String {
    match (summary.median, summary.low, summary.high) {
        (Some(median), Some(low), Some(high)) if low < high => {
            format!("{} [{}, {}]", number(median), number(low), number(high))
        }
        (Some(median), ..) => number(median),
        _ => "-".to_owned(),
    }
}
