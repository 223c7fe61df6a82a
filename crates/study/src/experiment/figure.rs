//! The drawn part of an answer, as plain data: panels of values over a factor, of distributions, of
//! values over time, of lanes.
//!
//! Factors that are neither the axis nor distinguish curves make panels of their own, so that
//! nothing is averaged unseen. Repetitions are combined as in tables (median, lowest, highest);
//! bins of distributions are summed. Courses in time are those of the first repetition.

use super::declared::Experiment;
use super::result::{CellResult, Row};
use super::words::text;
use crate::cell::Cell;
use crate::experiment::concluded::{Concluded, Group};
use crate::experiment::factors::{KERNEL, SETTING};
use crate::experiment::parts::{Figure, Kind};
use serde::Serialize;
use std::collections::BTreeMap;

/// A median with what repetitions span.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Index of its place along the axis.
    pub at: usize,
    /// Median of repetitions.
    pub median: f64,
    /// Lowest.
    pub low: f64,
    /// Highest.
    pub high: f64,
}

/// One curve, or bars of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// Its levels.
    pub label: String,
    /// Where it was measured.
    pub points: Vec<Point>,
    /// What was published: place along the axis, value.
    pub published: Vec<(usize, f64)>,
}

/// One distribution in a few numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spread {
    /// Its levels.
    pub label: String,
    /// Least, median, quantile where the figure has one, observed maximum.
    pub min: f64,
    /// Median.
    pub median: f64,
    /// A high quantile.
    pub quantile: Option<f64>,
    /// Observed maximum.
    pub max: f64,
    /// The published maximum.
    pub published: Option<f64>,
}

/// Bins of one distribution.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bins {
    /// Its levels.
    pub label: String,
    /// Lower end and count, ascending.
    pub bins: Vec<[f64; 2]>,
    /// Observed maximum of all repetitions, in the unit of its value.
    pub max: f64,
}

/// Values over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trail {
    /// Its levels.
    pub label: String,
    /// Time and value.
    pub points: Vec<[f64; 2]>,
}

/// Quantiles of two distributions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Quantiles {
    /// Of the reference, and of what is compared with it.
    pub points: Vec<[f64; 2]>,
    /// Slope and intercept of the line through them, the intercept in the unit of its value.
    pub line: Option<[f64; 2]>,
}

/// Something that ran.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Span {
    /// In which lane.
    pub lane: String,
    /// What.
    pub label: String,
    /// When it began, and how long it took.
    pub from: f64,
    /// Length.
    pub length: f64,
}

/// What a panel shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Drawn {
    /// Lines or bars over places along an axis.
    Over {
        /// What the places are: a factor, or nothing where they are values.
        x: String,
        /// The places.
        ticks: Vec<String>,
        /// The curves.
        curves: Vec<Curve>,
    },
    /// Distributions in a few numbers.
    Spread(Vec<Spread>),
    /// Distributions in bins.
    Counts(Vec<Bins>),
    /// Courses.
    Course(Vec<Trail>),
    /// Lanes.
    Lanes(Vec<Span>),
    /// Quantiles against quantiles.
    Qq(Quantiles),
}

/// One chart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Panel {
    /// Levels that all of it has in common: `kernel 6.1, load busy`; empty where a figure has one
    /// panel.
    pub title: String,
    /// What it shows.
    pub drawn: Drawn,
}

/// The panels of a figure, in the order of the file's levels; none where nothing of it was
/// measured.
pub fn panels(
    experiment: &Experiment,
    figure: &Figure,
    concluded: &Concluded,
    results: &[(Cell, CellResult)],
) -> Vec<Panel> {
    let used: Vec<&str> = figure.x.iter().chain(&figure.curves).map(|name| name.get_ref().as_str()).collect();
    let of = |group: &&Group| {
        figure.only.iter().all(|(name, level)| group.levels.get(name.get_ref()) == Some(level.get_ref()))
    };
    let groups: Vec<&Group> = concluded.groups.iter().filter(of).collect();
    let varied = |name: &str| {
        let level = |group: &&Group| group.levels.get(name).cloned();
        groups.iter().any(|group| level(group) != groups.first().and_then(level))
    };
    let mut apart: Vec<&str> = vec![KERNEL];
    apart.extend(experiment.factors.iter().map(|factor| factor.name.get_ref().as_str()));
    apart.push(SETTING);
    apart.retain(|name| !used.contains(name) && varied(name));
    let mut keys: Vec<(String, Vec<&Group>)> = Vec::new();
    for group in groups {
        let title = apart.iter().filter_map(|name| Some(format!("{name} {}", group.levels.get(*name)?)));
        let title = title.collect::<Vec<_>>().join(", ");
        match keys.iter_mut().find(|(one, _)| *one == title) {
            Some((_, groups)) => groups.push(group),
            None => keys.push((title, vec![group])),
        }
    }
    let panel = |(title, groups): (String, Vec<&Group>)| {
        let drawn = match figure.kind {
            Kind::Lines | Kind::Bars => over(experiment, figure, concluded, &groups)?,
            Kind::Spread => spreads(figure, concluded, &groups)?,
            Kind::Counts => counts(figure, results, &groups)?,
            Kind::Course => courses(figure, results, &groups)?,
            Kind::Lanes => lanes(figure, results, &groups)?,
            Kind::Qq => quantiles(figure, results, &groups)?,
        };
        Some(Panel { title, drawn })
    };
    keys.into_iter().filter_map(panel).collect()
}

/// The name of a curve or row: its levels, or the given text where there are none.
fn label(figure: &Figure, group: &Group, otherwise: &str) -> String {
    let levels = figure.curves.iter().filter_map(|name| group.levels.get(name.get_ref()).cloned());
    let levels = levels.collect::<Vec<_>>().join(" ");
    if levels.is_empty() { otherwise.to_owned() } else { levels }
}

fn over(experiment: &Experiment, figure: &Figure, concluded: &Concluded, groups: &[&Group]) -> Option<Drawn> {
    let values: Vec<&str> = figure.values.iter().map(|name| name.get_ref().as_str()).collect();
    let factor = figure.x.as_ref().map(|name| name.get_ref().as_str());
    let place = |group: &Group, value: &str| match factor {
        Some(factor) => group.levels.get(factor).cloned().unwrap_or_default(),
        None => experiment.value(value).map_or_else(String::new, |value| value.title.clone()),
    };
    let (mut ticks, mut curves): (Vec<String>, Vec<Curve>) = (Vec::new(), Vec::new());
    for (group, value) in groups.iter().flat_map(|group| values.iter().map(move |value| (*group, *value))) {
        let tick = place(group, value);
        let at = ticks.iter().position(|one| *one == tick).unwrap_or_else(|| {
            ticks.push(tick);
            ticks.len() - 1
        });
        let label = label(figure, group, "measured");
        let at_curve = curves.iter().position(|one| one.label == label).unwrap_or_else(|| {
            curves.push(Curve { label, points: Vec::new(), published: Vec::new() });
            curves.len() - 1
        });
        let (Some(curve), Some(summary)) = (curves.get_mut(at_curve), group.values.get(value)) else {
            continue;
        };
        if let (Some(median), Some(low), Some(high)) = (summary.median, summary.low, summary.high) {
            curve.points.push(Point { at, median, low, high });
        }
        curve.published.extend(published(concluded, group, value).map(|number| (at, number)));
    }
    let any = curves.iter().any(|curve| !curve.points.is_empty());
    any.then(|| Drawn::Over { x: factor.unwrap_or_default().to_owned(), ticks, curves })
}

/// Published numbers of a value in a group.
fn published<'a>(
    concluded: &'a Concluded,
    group: &'a Group,
    value: &'a str,
) -> impl Iterator<Item = f64> + 'a {
    let of = move |at: &BTreeMap<String, String>| {
        at.iter().all(|(name, level)| group.levels.get(name) == Some(level))
    };
    concluded.published.iter().filter(move |one| one.value == value && of(&one.at)).map(|one| one.published)
}

fn spreads(figure: &Figure, concluded: &Concluded, groups: &[&Group]) -> Option<Drawn> {
    let names: Vec<&str> = figure.values.iter().map(|name| name.get_ref().as_str()).collect();
    let row = |group: &&Group| {
        let value = |name: &str| group.values.get(name).and_then(|summary| summary.median);
        let (min, median, last) = (names.first()?, names.get(1)?, names.last()?);
        let quantile = if names.len() == 4 { value(names[2]) } else { None };
        // The maximum is that of all repetitions.
        let max = group.values.get(*last).and_then(|summary| summary.high)?;
        let published = published(concluded, group, last).next();
        let label = label(figure, group, "measured");
        Some(Spread { label, min: value(min)?, median: value(median)?, quantile, max, published })
    };
    let rows: Vec<Spread> = groups.iter().filter_map(row).collect();
    (!rows.is_empty()).then_some(Drawn::Spread(rows))
}

/// The lists of a group's cells, a repetition each.
fn lists<'a>(
    figure: &'a Figure,
    results: &'a [(Cell, CellResult)],
    group: &'a Group,
) -> impl Iterator<Item = &'a [Row]> + 'a {
    with_lists(figure, results, group).map(|(rows, _)| rows)
}

/// The same, with all that came of the cell.
fn with_lists<'a>(
    figure: &'a Figure,
    results: &'a [(Cell, CellResult)],
    group: &'a Group,
) -> impl Iterator<Item = (&'a [Row], &'a CellResult)> + 'a {
    let name = figure.of.as_ref().map_or("", |of| of.get_ref().as_str());
    let of = move |cell: &Cell| {
        cell.factors
            .iter()
            .all(|(name, level)| group.levels.get(name).map(String::as_str) == Some(text(Some(level))))
    };
    let mut found: Vec<&(Cell, CellResult)> = results.iter().filter(|(cell, _)| of(cell)).collect();
    found.sort_by_key(|(cell, _)| cell.repetition);
    found.into_iter().filter_map(move |(_, result)| Some((result.series.get(name)?.rows.as_slice(), result)))
}

/// The first two numbers of a row.
fn pair(row: &Row) -> Option<[f64; 2]> {
    Some([*row.at.first()?, *row.at.get(1)?])
}

fn counts(figure: &Figure, results: &[(Cell, CellResult)], groups: &[&Group]) -> Option<Drawn> {
    let bins = |group: &&Group| {
        let mut bins: Vec<[f64; 2]> = lists(figure, results, group).flatten().filter_map(pair).collect();
        bins.sort_by(|a, b| a[0].total_cmp(&b[0]));
        bins.dedup_by(|next, kept| {
            let same = next[0].total_cmp(&kept[0]).is_eq();
            if same {
                kept[1] += next[1];
            }
            same
        });
        let max = group.values.get(figure.values.first()?.get_ref())?.high?;
        (!bins.is_empty()).then(|| Bins { label: label(figure, group, "measured"), bins, max })
    };
    let all: Vec<Bins> = groups.iter().filter_map(bins).collect();
    (!all.is_empty()).then_some(Drawn::Counts(all))
}

fn courses(figure: &Figure, results: &[(Cell, CellResult)], groups: &[&Group]) -> Option<Drawn> {
    let trail = |group: &&Group| {
        let points: Vec<[f64; 2]> = lists(figure, results, group).next()?.iter().filter_map(pair).collect();
        (!points.is_empty()).then(|| Trail { label: label(figure, group, "measured"), points })
    };
    let all: Vec<Trail> = groups.iter().filter_map(trail).collect();
    (!all.is_empty()).then_some(Drawn::Course(all))
}

fn lanes(figure: &Figure, results: &[(Cell, CellResult)], groups: &[&Group]) -> Option<Drawn> {
    let span = |prefix: &str, row: &Row| {
        let [from, length] = pair(row)?;
        let named = [prefix, &figure.what, &row.lane];
        let lane = named.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        Some(Span { lane, label: row.label.clone(), from, length })
    };
    let of = |group: &&Group| -> Vec<Span> {
        let prefix = label(figure, group, "");
        let rows = lists(figure, results, group).next().unwrap_or_default();
        rows.iter().filter_map(|row| span(&prefix, row)).collect()
    };
    let all: Vec<Span> = groups.iter().flat_map(of).collect();
    (!all.is_empty()).then_some(Drawn::Lanes(all))
}

/// Of the first repetition: points and line are of the same runs.
fn quantiles(figure: &Figure, results: &[(Cell, CellResult)], groups: &[&Group]) -> Option<Drawn> {
    let (rows, result) = groups.iter().find_map(|group| with_lists(figure, results, group).next())?;
    let points: Vec<[f64; 2]> = rows.iter().filter_map(pair).collect();
    let value = |at: usize| result.values.get(figure.values.get(at)?.get_ref()).copied().flatten();
    let line = value(0).zip(value(1)).map(|(slope, intercept)| [slope, intercept]);
    (!points.is_empty()).then_some(Drawn::Qq(Quantiles { points, line }))
}
