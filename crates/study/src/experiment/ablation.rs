//! The worth of each mechanism: all of them against all but one, and the smallest sets that do as
//! well as all.
//!
//! Every subset is measured (a full factorial design), so that the sufficient sets are found by
//! inspection: greedy elimination misses sets whose members stand in for one another. A set
//! suffices where its median is at most that of all mechanisms plus the share that the file allows,
//! or at most the highest repetition of all of them. It is smallest where no part of it suffices.
//! Comparisons are judged by the tests that judge statements.
//!
//! Sets are called sufficient only where every repetition of every subset was measured: one that is
//! missing might be smaller than what was found.

use super::claims::quantity;
use super::declared::Experiment;
use super::result::CellResult;
use crate::cell::Cell;
use crate::experiment::concluded::{Concluded, Group, Judgement};
use crate::experiment::parts::Ablation;
use serde::Serialize;
use stats::judge::{self, Finding, Pair};
use std::collections::BTreeMap;

/// One mechanism left out of all.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeftOut {
    /// Which.
    pub mechanism: String,
    /// Median with all.
    pub all: f64,
    /// Median without this one.
    pub without: f64,
    /// Whether it is needed beside the others, and why that is said.
    pub needed: Judgement,
    /// Why.
    pub why: String,
    /// What the other CPUs get done with all mechanisms, as a share of what they get done without
    /// this one.
    pub cost: Option<f64>,
}

/// What came out, for one combination of the other factors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ablated {
    /// Levels of the other factors.
    pub levels: BTreeMap<String, String>,
    /// Each left out.
    pub left_out: Vec<LeftOut>,
    /// The smallest sets that suffice, the empty one where nothing is needed; none where a subset
    /// was not measured in all repetitions.
    pub sufficient: Option<Vec<Vec<String>>>,
    /// Subsets that were measured in all repetitions, of those that there are.
    pub measured: [usize; 2],
}

/// Evaluates every combination of the other factors; empty where the file declares no ablation.
pub fn ablated(
    experiment: &Experiment,
    concluded: &Concluded,
    results: &[(Cell, CellResult)],
) -> Vec<Ablated> {
    let Some(ablation) = &experiment.ablation else { return Vec::new() };
    let names: Vec<&str> = ablation.factors.get_ref().iter().map(|name| name.get_ref().as_str()).collect();
    let rest = |group: &Group| {
        let mut levels = group.levels.clone();
        levels.retain(|name, _| !names.contains(&name.as_str()));
        levels
    };
    let mut others: Vec<BTreeMap<String, String>> = Vec::new();
    for group in &concluded.groups {
        let levels = rest(group);
        if !others.contains(&levels) {
            others.push(levels);
        }
    }
    let of = |levels: BTreeMap<String, String>| {
        let groups: Vec<&Group> = concluded.groups.iter().filter(|group| rest(group) == levels).collect();
        one(experiment, ablation, &names, &groups, results, levels)
    };
    others.into_iter().map(of).collect()
}

/// The subset that a group has on, a bit a mechanism.
fn subset(ablation: &Ablation, names: &[&str], group: &Group) -> usize {
    let on = |name: &&str| group.levels.get(*name) == Some(ablation.with.get_ref());
    names.iter().enumerate().filter(|(_, name)| on(name)).map(|(bit, _)| 1 << bit).sum()
}

fn one(
    experiment: &Experiment,
    ablation: &Ablation,
    names: &[&str],
    groups: &[&Group],
    results: &[(Cell, CellResult)],
    levels: BTreeMap<String, String>,
) -> Ablated {
    let by: BTreeMap<usize, &Group> =
        groups.iter().map(|group| (subset(ablation, names, group), *group)).collect();
    let value = ablation.value.get_ref().as_str();
    let figure = |set: usize, name: &str| {
        by.get(&set).and_then(|group| group.values.get(name)).and_then(|one| one.median)
    };
    let whole = (1 << names.len()) - 1;
    let repetitions = groups.iter().map(|group| group.cells).max().unwrap_or(0);
    let full = |set: &usize| {
        let n = by.get(set).and_then(|group| group.values.get(value)).map_or(0, |one| one.n);
        n > 0 && n == repetitions
    };
    let measured = (0..=whole).filter(full).count();
    let words = |set: usize| -> Vec<String> {
        names
            .iter()
            .enumerate()
            .filter(|(bit, _)| set >> bit & 1 == 1)
            .map(|(_, name)| (*name).to_owned())
            .collect()
    };
    let left_out = |(bit, name): (usize, &&str)| {
        let other = whole & !(1 << bit);
        let (all, without) = (figure(whole, value)?, figure(other, value)?);
        let of = |set: usize| -> Vec<f64> {
            let there =
                results.iter().filter(|(cell, _)| is(ablation, names, cell, set) && within(cell, &levels));
            there.filter_map(|(_, result)| *result.values.get(value)?).collect()
        };
        let (with, less) = (of(whole), of(other));
        let decision =
            judge::order(quantity(experiment, value), &[Pair { first: &with, second: &less }], false);
        let needed = match decision.finding {
            Finding::Holds => Judgement::Agrees,
            Finding::Fails => Judgement::Differs,
            Finding::Undecided => Judgement::Inconclusive,
        };
        let p = if decision.finding == Finding::Fails { decision.p_true } else { decision.p_false };
        let p = p.map_or_else(String::new, |p| format!(", p = {p:.3}"));
        let why = format!("{} against {} repetitions{p}", with.len(), less.len());
        let cost = ablation.cost.as_ref().map(|cost| cost.get_ref().as_str());
        let cost = cost
            .and_then(|cost| Some(figure(whole, cost)? / figure(other, cost).filter(|other| *other > 0.0)?));
        Some(LeftOut { mechanism: (*name).to_owned(), all, without, needed, why, cost })
    };
    let smallest = || {
        let all = figure(whole, value)?;
        let highest = by.get(&whole).and_then(|group| group.values.get(value)?.high).unwrap_or(all);
        let enough = highest.max(all * (1.0 + ablation.within));
        let suffices = |set: usize| figure(set, value).is_some_and(|median| median <= enough);
        let smallest =
            |set: &usize| suffices(*set) && !(0..*set).any(|part| part & set == part && suffices(part));
        Some((0..=whole).filter(smallest).map(words).collect())
    };
    Ablated {
        left_out: names.iter().enumerate().filter_map(left_out).collect(),
        sufficient: if measured > whole { smallest() } else { None },
        measured: [measured, whole + 1],
        levels,
    }
}

fn is(ablation: &Ablation, names: &[&str], cell: &Cell, set: usize) -> bool {
    let has = |(bit, name): (usize, &&str)| {
        let wanted = if set >> bit & 1 == 1 { &ablation.with } else { &ablation.without };
        super::words::text(cell.factors.get(*name)) == wanted.get_ref()
    };
    names.iter().enumerate().all(has)
}

fn within(cell: &Cell, levels: &BTreeMap<String, String>) -> bool {
    levels.iter().all(|(name, level)| super::words::text(cell.factors.get(name)) == level)
}

impl Ablated {
    /// What is said of it, a sentence each.
    pub fn sentences(&self) -> Vec<String> {
        let levels: Vec<&str> = self.levels.values().map(String::as_str).collect();
        let place = if levels.is_empty() { String::new() } else { format!("{}: ", levels.join(" ")) };
        let one = |one: &LeftOut| {
            let cost = one.cost.map_or_else(String::new, |share| {
                format!("; with it the other CPUs do {:.0} % of what they do without it", share * 100.0)
            });
            let word = match one.needed {
                Judgement::Agrees => "needed beside the others",
                Judgement::Differs => "better left out",
                Judgement::NotApplicable => "not applicable",
                _ => "not shown to be needed beside the others",
            };
            format!(
                "{place}{} left out of all: {} instead of {}: {word}: {}{cost}",
                one.mechanism,
                crate::experiment::sheet::number(one.without),
                crate::experiment::sheet::number(one.all),
                one.why
            )
        };
        let name =
            |set: &Vec<String>| if set.is_empty() { "none at all".to_owned() } else { set.join(" + ") };
        let [measured, there] = self.measured;
        let sets = match &self.sufficient {
            Some(sets) => {
                let sets: Vec<String> = sets.iter().map(name).collect();
                format!(
                    "{place}smallest sufficient: {} ({measured} of {there} subsets measured)",
                    sets.join(", or ")
                )
            }
            None => format!(
                "{place}no set is called sufficient: {measured} of {there} subsets were measured in all repetitions, and one that was not \
                 may be smaller"
            ),
        };
        self.left_out.iter().map(one).chain([sets]).collect()
    }
}
