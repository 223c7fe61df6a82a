//! What the repetitions of a plan can decide of each claim, before anything is run.
//!
//! Nothing is known yet of how repetitions spread, so the limit itself is said: the largest spread,
//! or the least number of events, at which an effect of 1.5 is found with a probability of 90 %.

use super::claims::{Form, apart_of, matches, quantity};
use super::declared::{Claim, Experiment};
use super::plan::Planned;
use stats::judge::{EFFECT, Quantity, largest_spread, least_events};
use std::collections::{BTreeMap, BTreeSet};

/// Below these a number cannot be shown to be above or below the middle of a group: 1 / 2^6.
const LEAST_OF_ONE: usize = 6;
/// Below these no test distinguishes two groups: 1 of 70 labellings.
const LEAST_OF_TWO: usize = 4;

/// What can be decided of a claim, on one kernel and setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Decidable {
    /// Which statement of a paper it is.
    pub statement: Option<String>,
    /// In words, where it is our own.
    pub text: String,
    /// Kernel; empty where the claim names it.
    pub condition: String,
    /// Repetitions of the group that has the fewest.
    pub repetitions: usize,
    /// What they can decide.
    pub limit: Limit,
}

/// What repetitions can decide.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// Chance has no part, or one event decides.
    Certain,
    /// An effect where the lesser group has at least so many events a repetition.
    Events(f64),
    /// An effect where the logarithms of repetitions spread by at most this.
    Spread(f64),
    /// Nothing; so many repetitions are the fewest that can.
    TooFew(usize),
    /// A time of an emulated guest stands against no number.
    EmulatedTime,
    /// A group has no cells in this plan.
    NoCells,
}

impl Limit {
    /// Whether the repetitions can decide it at all.
    pub const fn decidable(self) -> bool {
        matches!(self, Self::Certain | Self::Events(_) | Self::Spread(_))
    }

    /// In words.
    pub fn words(self) -> String {
        match self {
            Self::Certain => "decidable".to_owned(),
            Self::Events(least) => {
                format!("decidable: {EFFECT} times as many are found from {least} a repetition on")
            }
            Self::Spread(most) => {
                format!(
                    "decidable: {EFFECT} times as much is found where repetitions spread by {:.0} % or less",
                    most * 100.0
                )
            }
            Self::TooFew(least) => format!("not decidable: needs {least} repetitions at least"),
            Self::EmulatedTime => {
                "not decidable in a guest: a time that is emulated stands against no number".to_owned()
            }
            Self::NoCells => "not decidable: a group has no cells in this plan".to_owned(),
        }
    }
}

/// What a plan can decide, one for each claim and kernel.
pub fn decidable(experiment: &Experiment, cells: &[Planned]) -> Vec<Decidable> {
    let mut limits = Limits::default();
    experiment.claims.iter().flat_map(|claim| of_claim(experiment, claim, cells, &mut limits)).collect()
}

/// Limits that were computed, by repetitions: thousands of studies are drawn for each.
#[derive(Debug, Default)]
struct Limits {
    events: BTreeMap<usize, f64>,
    spread: BTreeMap<usize, Option<f64>>,
}

fn of_claim(
    experiment: &Experiment,
    claim: &Claim,
    cells: &[Planned],
    limits: &mut Limits,
) -> Vec<Decidable> {
    // Forms were checked when the file was read.
    let Ok((groups, form)) = claim.form() else { return Vec::new() };
    let named: BTreeSet<&str> =
        groups.iter().flat_map(|cells| cells.keys()).map(|key| key.get_ref().as_str()).collect();
    let mut conditions: BTreeMap<String, (Vec<usize>, bool)> = BTreeMap::new();
    for planned in cells.iter().filter(|planned| matches(&planned.cell, &claim.when)) {
        for (group, _) in groups.iter().enumerate().filter(|(_, cells)| matches(&planned.cell, cells)) {
            let (counts, guest) = conditions.entry(apart_of(&planned.cell, &named)).or_default();
            counts.resize(groups.len(), 0);
            counts[group] += 1;
            *guest |= planned.boot.kernel.is_some();
        }
    }
    let quantity = quantity(experiment, claim.value.get_ref());
    let time = experiment.value(claim.value.get_ref()).is_some_and(|value| value.time);
    let decidable = |condition, repetitions, limit| Decidable {
        statement: claim.statement.as_ref().map(|id| id.get_ref().clone()),
        text: claim.text.clone(),
        condition,
        repetitions,
        limit,
    };
    if conditions.is_empty() {
        return vec![decidable(String::new(), 0, Limit::NoCells)];
    }
    let one = |(condition, (counts, guest)): (String, (Vec<usize>, bool))| {
        let repetitions = counts.into_iter().min().unwrap_or(0);
        decidable(condition, repetitions, limits.limit(quantity, form, repetitions, time && guest))
    };
    conditions.into_iter().map(one).collect()
}

impl Limits {
    fn limit(&mut self, quantity: Quantity, form: Form, repetitions: usize, emulated_time: bool) -> Limit {
        let of_one = matches!(form, Form::AtLeast(_) | Form::AtMost(_));
        match (quantity, form) {
            _ if repetitions == 0 => Limit::NoCells,
            (_, form) if emulated_time && !matches!(form, Form::Rising { .. }) => Limit::EmulatedTime,
            (Quantity::Constant, _) | (_, Form::Happens(_)) => Limit::Certain,
            (Quantity::Count, _) if of_one => Limit::Certain,
            (Quantity::Count, _) => {
                Limit::Events(*self.events.entry(repetitions).or_insert_with(|| least_events(repetitions)))
            }
            (Quantity::Measured, _) if of_one && repetitions < LEAST_OF_ONE => Limit::TooFew(LEAST_OF_ONE),
            (Quantity::Measured, _) if of_one => Limit::Certain,
            (Quantity::Measured, _) => self
                .spread
                .entry(repetitions)
                .or_insert_with(|| largest_spread(repetitions))
                .map_or(Limit::TooFew(LEAST_OF_TWO), Limit::Spread),
        }
    }
}
