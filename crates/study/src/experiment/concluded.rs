//! What is concluded of an experiment.

use crate::experiment::result::CellResult;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One value over the repetitions of a combination.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Repetitions that have it.
    pub n: usize,
    /// Their median, lowest and highest.
    pub median: Option<f64>,
    /// Lowest.
    pub low: Option<f64>,
    /// Highest.
    pub high: Option<f64>,
}

/// One combination of levels.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// Level by factor.
    pub levels: BTreeMap<String, String>,
    /// Cells of it that have a result.
    pub cells: usize,
    /// Cells of those with values.
    pub ok: usize,
    /// By value.
    pub values: BTreeMap<String, Summary>,
    /// By list and name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lists: BTreeMap<String, BTreeMap<String, Summary>>,
    /// Why cells have none, each reason once.
    pub reasons: Vec<String>,
    /// Why no cell has a number for a value.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub absent: BTreeMap<String, String>,
    /// Where they ran, each once.
    pub places: Vec<String>,
    /// Whether any ran in an emulated guest.
    pub emulated: bool,
}

/// Whether what was measured is what was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// It is.
    Agrees,
    /// It is not.
    Differs,
    /// These repetitions do not decide it.
    #[serde(rename = "cannot-be-told")]
    Inconclusive,
    /// The two are not of the same kind.
    NotComparable,
    /// It was not measured.
    NotApplicable,
}

impl Judgement {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::Inconclusive => "inconclusive",
            Self::NotComparable => "not comparable",
            Self::NotApplicable => "not applicable",
        }
    }
}

/// A published number beside what was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Beside {
    /// Which value.
    pub value: String,
    /// In which cells.
    pub at: BTreeMap<String, String>,
    /// What it was measured on.
    pub system: String,
    /// The number, in the unit of the value.
    pub published: f64,
    /// What was measured.
    pub measured: Summary,
    /// The judgement.
    pub judgement: Judgement,
    /// Why.
    pub why: String,
}

/// One group of a statement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// Its levels.
    pub group: String,
    /// Repetitions.
    pub n: usize,
    /// Their median.
    pub median: Option<f64>,
}

/// A statement, on one kernel and setting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claimed {
    /// Which of a paper it is; null for one of our own.
    pub statement: Option<String>,
    /// In words; empty where the statement's own are meant.
    pub text: String,
    /// Which value.
    pub value: String,
    /// Kernel and setting; empty where the statement names them, or where there are no cells.
    pub condition: String,
    /// Its groups.
    pub figures: Vec<Figures>,
    /// The judgement.
    pub judgement: Judgement,
    /// Why.
    pub why: String,
}

/// The answer of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Concluded {
    /// Every combination that has a result, in the order of the file.
    pub groups: Vec<Group>,
    /// Published numbers.
    pub published: Vec<Beside>,
    /// Statements.
    pub claims: Vec<Claimed>,
}

pub(super) fn summary<'a>(results: impl Iterator<Item = &'a CellResult>, value: &str) -> Summary {
    of_numbers(results.filter_map(|result| *result.values.get(value)?))
}

/// Repetitions put together.
pub(crate) fn of_numbers(numbers: impl Iterator<Item = f64>) -> Summary {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    let n = numbers.len();
    let median = match n {
        0 => None,
        _ if n % 2 == 1 => Some(numbers[n / 2]),
        _ => Some(f64::midpoint(numbers[n / 2 - 1], numbers[n / 2])),
    };
    Summary { n, median, low: numbers.first().copied(), high: numbers.last().copied() }
}
