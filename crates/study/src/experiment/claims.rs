//! Statements on groups of cells, judged: one verdict for each kernel and setting, never one of
//! all.
//!
//! Where other factors are left open, repetitions are compared with those that are alike in them.
//! Times of emulated guests are compared with one another and never with a number or as a ratio.

use super::declared::{Cells, Claim, Experiment, ValueKind};
use super::result::CellResult;
use super::words::text;
use crate::cell::Cell;
use crate::experiment::concluded::{Claimed, Figures, Judgement};
use crate::experiment::factors::{FLAVOUR, KERNEL, SETTING, VALUE, VERSION, flavour, version};
use crate::experiment::sheet::number;
use stats::judge::{self, Decision, Finding, Pair, Quantity};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// What a claim says of its groups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Form {
    /// Each group has more than the one before it.
    Rising { or_as_much: bool },
    /// The first has at least so many times as much as the second.
    RatioAtLeast(f64),
    /// It has between so many times as much.
    RatioBetween([f64; 2]),
    /// The one group has at least so much.
    AtLeast(f64),
    /// At most so much.
    AtMost(f64),
    /// Some, or none.
    Happens(bool),
}

impl Claim {
    /// Its groups and what is said of them; what is wrong with it otherwise.
    pub(super) fn form(&self) -> Result<(Vec<&Cells>, Form), &'static str> {
        let pair = |cells: &'_ [Cells], what| if cells.len() == 2 { Ok(()) } else { Err(what) };
        let forms = [!self.less.is_empty(), !self.rising.is_empty(), !self.same.is_empty()];
        let forms = forms.into_iter().chain([!self.ratio.is_empty(), self.of.is_some()]);
        if forms.filter(|has| *has).count() != 1 {
            return Err("a claim; expected one of less and than, rising, same, ratio, of");
        }
        let rising = Form::Rising { or_as_much: self.or_as_much };
        let bounds = (self.at_least, self.at_most);
        if !self.less.is_empty() {
            return Ok((vec![&self.less, &self.than], rising));
        }
        if !self.rising.is_empty() {
            return if self.rising.len() > 1 {
                Ok((self.rising.iter().collect(), rising))
            } else {
                Err("rising; expected at least two groups")
            };
        }
        if let Some(of) = &self.of {
            let form = match (bounds, self.happens) {
                ((Some(number), None), None) => Form::AtLeast(number),
                ((None, Some(number)), None) => Form::AtMost(number),
                ((None, None), Some(happens)) => Form::Happens(happens),
                _ => return Err("of; expected one of at_least, at_most, happens"),
            };
            return Ok((vec![of], form));
        }
        if !self.same.is_empty() {
            pair(&self.same, "same; expected two groups")?;
            let within =
                self.within.filter(|share| *share >= 0.0).ok_or("same; expected within = a share")?;
            let bounds = [1.0 / (1.0 + within), 1.0 + within];
            return Ok((self.same.iter().collect(), Form::RatioBetween(bounds)));
        }
        pair(&self.ratio, "ratio; expected two groups")?;
        let form = match bounds {
            (Some(low), None) => Form::RatioAtLeast(low),
            (Some(low), Some(high)) if low <= high => Form::RatioBetween([low, high]),
            _ => return Err("ratio; expected at_least, or at_least and at_most"),
        };
        Ok((self.ratio.iter().collect(), form))
    }
}

/// The level of a cell; that of the kernel's version and flavour follows from its name.
fn level<'a>(cell: &'a Cell, factor: &str) -> &'a str {
    let kernel = || text(cell.factors.get(KERNEL));
    match factor {
        VERSION => version(kernel()),
        FLAVOUR => flavour(kernel()),
        _ => text(cell.factors.get(factor)),
    }
}

pub(super) fn matches(cell: &Cell, cells: &Cells) -> bool {
    let levels = cells.iter().filter(|(factor, _)| factor.get_ref() != VALUE);
    levels.into_iter().all(|(factor, wanted)| level(cell, factor.get_ref()) == wanted.get_ref())
}

/// The value of a group: its own, or that of the claim.
fn value_of<'a>(claim: &'a Claim, cells: &'a Cells) -> &'a str {
    let own = cells.iter().find(|(factor, _)| factor.get_ref() == VALUE);
    own.map_or_else(|| claim.value.get_ref(), |(_, value)| value.get_ref())
}

/// Levels by factor.
type Levels<'a> = BTreeMap<&'a str, &'a str>;

/// The repetitions of each group, by what else a cell is.
type Strata<'a> = BTreeMap<Levels<'a>, Vec<Vec<f64>>>;

/// Judges a claim: a verdict for each kernel and setting that has cells of it.
pub(super) fn judged(experiment: &Experiment, claim: &Claim, results: &[(Cell, CellResult)]) -> Vec<Claimed> {
    // Forms were checked when the file was read.
    let Ok((groups, form)) = claim.form() else { return Vec::new() };
    let named: BTreeSet<&str> =
        groups.iter().flat_map(|cells| cells.keys()).map(|key| key.get_ref().as_str()).collect();
    let value = claim.value.get_ref().as_str();
    let mut conditions: BTreeMap<Vec<&str>, (Strata<'_>, bool)> = BTreeMap::new();
    let mut reasons: Vec<&str> = Vec::new();
    let mut ran = false;
    for (cell, result) in results.iter().filter(|(cell, _)| matches(cell, &claim.when)) {
        for (group, cells) in groups.iter().enumerate().filter(|(_, cells)| matches(cell, cells)) {
            let value = value_of(claim, cells);
            ran = true;
            let Some(number) = result.values.get(value).copied().flatten() else {
                reasons.extend(result.reason.as_deref().or(result.absent.get(value).map(String::as_str)));
                continue;
            };
            let (condition, rest) = apart(cell, &named);
            let (strata, emulated) = conditions.entry(condition).or_default();
            strata.entry(rest).or_insert_with(|| vec![Vec::new(); groups.len()])[group].push(number);
            *emulated |= result.emulated;
        }
    }
    let quantity = quantity(experiment, value);
    let claimed = |condition: String, figures, judgement, why| Claimed {
        statement: claim.statement.as_ref().map(|id| id.get_ref().clone()),
        text: claim.text.clone(),
        value: value.to_owned(),
        condition,
        figures,
        judgement,
        why,
    };
    if conditions.is_empty() {
        let why = match reasons.first() {
            Some(reason) => (*reason).to_owned(),
            None if ran => format!("no cell gave a number for {value}"),
            None => missing(&groups),
        };
        return vec![claimed(String::new(), Vec::new(), Judgement::NotApplicable, why)];
    }
    let time = experiment.value(value).is_some_and(|value| value.time);
    let verdict = |(condition, (strata, emulated)): (Vec<&str>, (Strata<'_>, bool))| {
        let figures: Vec<Figures> =
            groups.iter().enumerate().map(|(at, cells)| figures(&strata, at, cells)).collect();
        let decision = decided(quantity, form, &strata);
        let (judgement, why) = said(form, decision, &figures, &strata, time && emulated);
        claimed(condition.join(" "), figures, judgement, why)
    };
    conditions.into_iter().map(verdict).collect()
}

/// What a verdict is given for, and what else a cell is. A factor that the claim names is neither.
fn apart<'a>(cell: &'a Cell, named: &BTreeSet<&str>) -> (Vec<&'a str>, Levels<'a>) {
    let by_kernel = [VERSION, FLAVOUR].iter().any(|name| named.contains(name));
    let kernel = if named.contains(KERNEL) || named.contains(VERSION) && named.contains(FLAVOUR) {
        ""
    } else if named.contains(VERSION) {
        level(cell, FLAVOUR)
    } else if by_kernel {
        level(cell, VERSION)
    } else {
        level(cell, KERNEL)
    };
    let condition = [kernel, level(cell, SETTING)].into_iter().filter(|part| !part.is_empty()).collect();
    let rest = cell.factors.iter().filter(|(name, _)| ![KERNEL, SETTING].contains(&name.as_str()));
    let rest = rest.filter(|(name, _)| !named.contains(name.as_str()));
    (condition, rest.map(|(name, level)| (name.as_str(), text(Some(level)))).collect())
}

/// What a verdict is given for, in words.
pub(super) fn apart_of(cell: &Cell, named: &BTreeSet<&str>) -> String {
    apart(cell, named).0.join(" ")
}

/// The test that judges a value.
pub(super) fn quantity(experiment: &Experiment, value: &str) -> Quantity {
    match experiment.value(value).map(|value| value.kind) {
        Some(ValueKind::Count) => Quantity::Count,
        Some(ValueKind::Constant) => Quantity::Constant,
        _ => Quantity::Measured,
    }
}

fn decided(quantity: Quantity, form: Form, strata: &Strata<'_>) -> Decision {
    let pairs: Vec<Pair<'_>> = strata
        .values()
        .filter_map(|groups| Some(Pair { first: groups.first()?, second: groups.get(1)? }))
        .collect();
    let all: Vec<f64> = strata.values().flatten().flatten().copied().collect();
    match form {
        Form::Rising { or_as_much } => {
            let groups: Vec<Vec<&[f64]>> =
                strata.values().map(|groups| groups.iter().map(Vec::as_slice).collect()).collect();
            judge::rising(quantity, &groups, or_as_much)
        }
        Form::RatioAtLeast(times) => judge::ratio_at_least(quantity, &pairs, times),
        Form::RatioBetween(bounds) => judge::ratio_between(quantity, &pairs, bounds),
        Form::AtLeast(number) => judge::at_least(quantity, &all, number),
        Form::AtMost(number) => judge::at_most(quantity, &all, number),
        Form::Happens(true) => judge::present(quantity, &all),
        Form::Happens(false) => judge::absent(&all),
    }
}

fn said(
    form: Form,
    decision: Decision,
    figures: &[Figures],
    strata: &Strata<'_>,
    emulated_time: bool,
) -> (Judgement, String) {
    let each = figures.iter().map(|one| {
        let value = one.median.map_or_else(|| "not measured".to_owned(), number);
        format!("{}: {value} ({})", one.group, one.n)
    });
    let mut why = each.collect::<Vec<_>>().join(", ");
    if emulated_time && !matches!(form, Form::Rising { .. }) {
        return (
            Judgement::NotComparable,
            format!("{why}; a time of an emulated guest stands against no number"),
        );
    }
    if figures.iter().any(|one| one.n == 0) {
        return (Judgement::NotApplicable, why);
    }
    let judgement = match decision.finding {
        Finding::Holds => Judgement::Agrees,
        Finding::Fails => Judgement::Differs,
        Finding::Undecided => Judgement::Inconclusive,
    };
    let p = if decision.finding == Finding::Fails { decision.p_true } else { decision.p_false };
    if let Some(p) = p {
        _ = if p < 0.001 { write!(why, "; p < 0.001") } else { write!(why, "; p = {p:.3}") };
    }
    if matches!(
        (form, decision.finding),
        (Form::Happens(false), Finding::Holds) | (Form::Happens(true), Finding::Undecided)
    ) {
        let n: usize = figures.iter().map(|one| one.n).sum();
        _ = write!(why, "; at most {} a repetition (95 %)", number(3.0 / n as f64));
    }
    if form == Form::Happens(true) && decision.finding == Finding::Holds {
        let all: Vec<f64> = strata.values().flatten().flatten().copied().collect();
        let seen = all.iter().filter(|value| **value > 0.0).count();
        _ = write!(why, "; in {seen} of {}", all.len());
    }
    if strata.len() > 1 {
        let open: BTreeSet<&str> = strata.keys().flat_map(|levels| levels.keys().copied()).collect();
        let open: Vec<&str> = open.into_iter().collect();
        _ = write!(why, "; {} levels of {} apart", strata.len(), open.join(", "));
    }
    if emulated_time {
        why.push_str("; times of emulated guests against one another");
    }
    (judgement, why)
}

fn figures(strata: &Strata<'_>, group: usize, cells: &Cells) -> Figures {
    let mut values: Vec<f64> = strata.values().flat_map(|groups| groups[group].iter().copied()).collect();
    let levels: Vec<&str> = cells.values().map(|level| level.get_ref().as_str()).collect();
    let group = if levels.is_empty() { "all".to_owned() } else { levels.join(" ") };
    Figures { group, n: values.len(), median: stats::runs::median(&mut values) }
}

/// Why there are no cells.
fn missing(groups: &[&Cells]) -> String {
    let kernels: BTreeSet<&str> = groups
        .iter()
        .flat_map(|cells| cells.iter())
        .filter(|(factor, _)| [KERNEL, VERSION, FLAVOUR].contains(&factor.get_ref().as_str()))
        .map(|(_, level)| level.get_ref().as_str())
        .collect();
    if kernels.is_empty() {
        return "no such cell was run".to_owned();
    }
    format!(
        "needs kernels {}: no cell of them was run",
        kernels.into_iter().collect::<Vec<_>>().join(" and ")
    )
}
