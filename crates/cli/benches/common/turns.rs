//! Tools in turns: each repetition runs every tool once, in a shuffled order, so that a machine that drifts drifts for all.

use super::{Failed, median};
use analysis::runs::Ratio;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use study::{Cell, Store, Study};

/// The results of every tool, in the order of its runs.
pub(crate) struct Turns(BTreeMap<String, Vec<Value>>);

/// Runs the tools; `one` makes a run of the tool it is given.
pub(crate) fn turns(
    name: &str,
    tools: &[&str],
    repetitions: u32,
    one: impl Fn(&str) -> Result<Value, Failed>,
) -> Result<Turns, Failed> {
    let study = Study {
        schema: study::STUDY_SCHEMA.to_owned(),
        name: name.to_owned(),
        runner: String::new(),
        seed: 1,
        factors: BTreeMap::from([("tool".to_owned(), tools.iter().map(|tool| json!(tool)).collect())]),
        repetitions,
    };
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // Runs of an earlier call were made on another machine, as far as this one is concerned.
    let _ = std::fs::remove_dir_all(&directory);
    let cells = study.cells().map_err(Failed::because)?;
    let tool = |cell: &Cell| cell.factors["tool"].as_str().unwrap_or_default().to_owned();
    let done =
        study::run(&cells, &Store::new(&directory), |cell| one(&tool(cell))).map_err(Failed::because)?;
    let mut results: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (cell, result) in done.results {
        results.entry(tool(&cell)).or_default().push(result);
    }
    Ok(Turns(results))
}

impl Turns {
    /// The median of a figure over a tool's runs; NaN where it has none.
    pub(crate) fn median(&self, tool: &str, figure: &str) -> f64 {
        median(self.all((tool, figure)))
    }

    /// What a tool's first run said under this name.
    pub(crate) fn first(&self, tool: &str, name: &str) -> Option<&Value> {
        self.0.get(tool)?.first()?.get(name)
    }

    /// The sum of a figure over a tool's runs.
    pub(crate) fn sum(&self, tool: &str, figure: &str) -> u64 {
        self.0.get(tool).into_iter().flatten().filter_map(|run| run[figure].as_u64()).sum()
    }

    /// A line that sets two tools side by side in one figure: medians of their runs, the median ratio of the pairs of runs with its 95 %
    /// interval, and whether that keeps to what is asked of it.
    pub(crate) fn compare(&self, label: &str, ours: (&str, &str), theirs: (&str, &str), budget: Budget) {
        let (one, other) = (self.median(ours.0, ours.1), self.median(theirs.0, theirs.1));
        let told = match analysis::runs::compare(&self.all(ours), &self.all(theirs), 1) {
            None => "no pairs of runs".to_owned(),
            Some(Ratio { ratio, interval: None, .. }) => {
                format!("ratio {ratio:.3}, too few pairs for an interval")
            }
            Some(Ratio { ratio, interval: Some([low, high]), .. }) => {
                format!("ratio {ratio:.3}, {low:.3} to {high:.3}{}", budget.of_interval(low, high))
            }
        };
        println!("{label}: stillcore {one:.0}, {} {other:.0}, {told}", theirs.0);
    }

    fn all(&self, (tool, figure): (&str, &str)) -> Vec<f64> {
        self.0.get(tool).into_iter().flatten().filter_map(|run| run[figure].as_f64()).collect()
    }
}

/// What is asked of a figure.
#[derive(Clone, Copy)]
pub(crate) enum Budget {
    /// Nothing.
    None,
    /// At most this.
    AtMost(f64),
    /// At least this.
    AtLeast(f64),
}

impl Budget {
    /// Whether a figure keeps to it.
    pub(crate) fn verdict(self, figure: f64) -> String {
        self.of_interval(figure, figure)
    }

    /// Whether all of an interval does; where only a part of it does, these runs cannot tell.
    fn of_interval(self, low: f64, high: f64) -> String {
        let (sign, limit, [first, last]) = match self {
            Self::None => return String::new(),
            Self::AtMost(limit) => ("<=", limit, [low <= limit, high <= limit]),
            Self::AtLeast(limit) => (">=", limit, [low >= limit, high >= limit]),
        };
        let told = match (first, last) {
            (true, true) => "met",
            (false, false) => "not met",
            _ => "these runs cannot tell",
        };
        format!(" (budget {sign} {limit}: {told})")
    }
}
