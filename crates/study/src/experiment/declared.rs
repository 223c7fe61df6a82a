//! The file: factors and their levels, the commands of a cell, the values taken from them, what was
//! published.

use super::quantity::Quantity;
use crate::experiment::parts::{Ablation, Conclusion, Figure, Level, ListOf, Take, Wants};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

/// The schema that a file must name.
pub const EXPERIMENT_SCHEMA: &str = "stillcore.experiment/1";

/// An experiment as declared.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// [`EXPERIMENT_SCHEMA`].
    pub schema: Spanned<String>,
    /// Name, also of its directory: small letters, digits, hyphens.
    pub name: Spanned<String>,
    /// What it shows.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// What a reader of the answer must know: contradictions in the source, differences from it.
    #[serde(default)]
    pub notes: Vec<String>,
    /// From which the order and every cell's seed follow.
    pub seed: u64,
    /// How often each combination is run.
    pub repetitions: Spanned<u32>,
    /// Where it is run.
    #[serde(default)]
    pub machine: Machine,
    /// What is varied.
    #[serde(default, rename = "factor")]
    pub factors: Vec<Factor>,
    /// What a scale makes smaller.
    #[serde(default)]
    pub quantities: BTreeMap<String, Quantity>,
    /// The quantity that sets how long a cell takes; none for verbs that compute.
    pub takes: Option<Spanned<String>>,
    /// Where `takes` is a count: the factor or duration that one of them takes.
    pub each: Option<Spanned<String>>,
    /// What a cell does, in this order.
    #[serde(rename = "step")]
    pub steps: Vec<Step>,
    /// What is taken from what it printed.
    #[serde(rename = "value")]
    pub values: Vec<ValueOf>,
    /// Values by name, such as one per topic.
    #[serde(default, rename = "list")]
    pub lists: Vec<ListOf>,
    /// Lists that are taken from it for figures.
    #[serde(default, rename = "series")]
    pub series: Vec<SeriesOf>,
    /// What was published, beside what.
    #[serde(default, rename = "published")]
    pub published: Vec<PublishedAt>,
    /// Statements of the source about its results.
    #[serde(default, rename = "claim")]
    pub claims: Vec<Claim>,
    /// Mechanisms whose worth is measured.
    pub ablation: Option<Ablation>,
    /// What is concluded from all answers of the first step, in place of tables of values.
    pub conclusion: Option<Conclusion>,
    /// How the answer is laid out.
    #[serde(default)]
    pub table: Table,
    /// What is drawn of it.
    #[serde(default, rename = "figure")]
    pub figures: Vec<Figure>,
}

/// Where an experiment is run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Kernels of the lab; a factor of its own, `kernel`, where there are any.
    #[serde(default)]
    pub kernels: Vec<String>,
    /// Cores of a guest, or cores and threads as in 4x2 [default: 4].
    pub smp: Option<String>,
    /// Architecture of guests [default: this machine's].
    pub arch: Option<String>,
    /// Accelerator of guests: `tcg`, `kvm` or `auto` [default: tcg].
    pub accel: Option<String>,
    /// Guest memory, MiB.
    pub memory_mib: Option<u32>,
    /// Two network cards joined to each other in guests: `e1000` or `virtio`.
    pub nic: Option<String>,
    /// Modules to load in guests where the kernel has them.
    #[serde(default)]
    pub modules: Vec<String>,
    /// Whether every cell is about isolated CPUs, as of a level.
    pub isolated: Option<bool>,
    /// What else every cell needs.
    pub needs: Option<Wants>,
}

/// A factor and its levels, at least one, none twice.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Factor {
    /// Its name, and its placeholder's.
    pub name: Spanned<String>,
    /// Its levels, in the order of tables.
    pub levels: Spanned<Vec<Level>>,
}

/// One call of this program.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// By which a value names it; needed where there are several.
    #[serde(default)]
    pub name: String,
    /// The words behind `stillcore`; `{NAME}` stands for a level, a quantity, `cpus`, `cpu`,
    /// `housekeeping`, `dir`, `out`, `seed`.
    pub run: Spanned<Vec<String>>,
    /// Only in cells of these levels.
    #[serde(default)]
    pub when: BTreeMap<Spanned<String>, Spanned<String>>,
}

/// A value of a cell.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueOf {
    /// Its name.
    pub name: Spanned<String>,
    /// What it is, for headings.
    pub title: String,
    /// Unit as printed: `us`, `%`, nothing for counts.
    #[serde(default)]
    pub unit: String,
    /// Where it is in the step's JSON: keys and indices between slashes, `*` for every element,
    /// `[KEY=TEXT]` for some.
    pub at: String,
    /// What is made of several.
    #[serde(default)]
    pub take: Take,
    /// A factor for the unit.
    #[serde(default = "one")]
    pub times: f64,
    /// A length of time: from an emulated guest it does not describe the machine.
    #[serde(default)]
    pub time: bool,
    /// What it is otherwise, for the test that judges it.
    #[serde(default)]
    pub kind: ValueKind,
    /// The step it is of, where there are several.
    pub step: Option<Spanned<String>>,
}

/// What repetitions of a value have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValueKind {
    /// Repetitions differ.
    #[default]
    Measured,
    /// Events that are independent of one another.
    Count,
    /// Chance has no part: what is calculated, a number of nodes.
    Constant,
}

fn one() -> f64 {
    1.0
}

/// A list of a cell: bins of a distribution, values over time, what ran when.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeriesOf {
    /// Its name.
    pub name: Spanned<String>,
    /// Where its rows are in the step's JSON, as of a value; with a path with `*`, the rows of all
    /// places follow one another.
    pub at: String,
    /// Keys or indices of the numbers of a row.
    pub columns: Spanned<Vec<String>>,
    /// The key of its lane, where rows lie in lanes.
    pub lane: Option<String>,
    /// The key of what it is called.
    pub label: Option<String>,
    /// The step it is of, where there are several.
    pub step: Option<Spanned<String>>,
}

/// A published number beside cells.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedAt {
    /// Which value.
    pub value: Spanned<String>,
    /// In which cells: levels by factor; factors left out may have any level.
    #[serde(default)]
    pub at: BTreeMap<Spanned<String>, Spanned<String>>,
    /// Where it is among the published numbers, such as `replication.max_latency.vanilla`.
    pub key: Spanned<String>,
    /// What it was measured on.
    pub system: String,
    /// A factor for the unit.
    #[serde(default = "one")]
    pub times: f64,
    /// How far a measured interval may be from it to agree, as a share of it.
    #[serde(default)]
    pub within: f64,
    /// Why the two cannot be compared, where they cannot.
    pub not_comparable: Option<String>,
}

/// Cells: levels by factor; factors left out may have any level. Besides the factors of the file,
/// `version` and `flavour` (`stock`, `rt`, `openeuler`) are those of the kernel; `value` is the
/// group's value, where it is not the claim's.
pub type Cells = BTreeMap<Spanned<String>, Spanned<String>>;

/// A statement on groups of cells, of the source or of our own. It has one form: `less` and `than`,
/// `rising`, `same`, `ratio`, or `of`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Which statement of a paper it is, or is a part of; none for our own.
    pub statement: Option<Spanned<String>>,
    /// In words; needed for our own.
    #[serde(default)]
    pub text: String,
    /// Which value.
    pub value: Spanned<String>,
    /// Only in these cells.
    #[serde(default)]
    pub when: Cells,
    /// Cells that have less …
    #[serde(default)]
    pub less: Cells,
    /// … than these.
    #[serde(default)]
    pub than: Cells,
    /// Groups each of which has more than the one before it.
    #[serde(default)]
    pub rising: Vec<Cells>,
    /// An order holds also where two have as much.
    #[serde(default)]
    pub or_as_much: bool,
    /// Two groups that have the same, but for a share of it.
    #[serde(default)]
    pub same: Vec<Cells>,
    /// That share, such as 0.2: between 1 / 1.2 and 1.2 times as much.
    pub within: Option<f64>,
    /// Two groups, the first of which has so many times as much as the second.
    #[serde(default)]
    pub ratio: Vec<Cells>,
    /// One group.
    pub of: Option<Cells>,
    /// The ratio, or the group, is at least this.
    pub at_least: Option<f64>,
    /// At most this.
    pub at_most: Option<f64>,
    /// The group has none, or some.
    pub happens: Option<bool>,
}

/// Layout of the answer.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Factors whose levels are rows [default: all but those of columns].
    #[serde(default)]
    pub rows: Vec<Spanned<String>>,
    /// Factors whose levels are columns.
    #[serde(default)]
    pub columns: Vec<Spanned<String>>,
}

impl Experiment {
    /// The list of this name.
    pub fn series_of(&self, name: &str) -> Option<&SeriesOf> {
        self.series.iter().find(|series| series.name.get_ref() == name)
    }

    /// The value of this name.
    pub fn value(&self, name: &str) -> Option<&ValueOf> {
        self.values.iter().find(|value| value.name.get_ref() == name)
    }
}
