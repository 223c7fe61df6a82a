//! Tools in turns: each repetition runs every tool once, in a shuffled order, so that a machine
//! that drifts drifts for all.

use super::{Failed, median};
use result::{Ratio, Row};
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
        name: name.to_owned(),
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
    /// The median of a value over a tool's runs; NaN where it has none.
    pub(crate) fn median(&self, tool: &str, figure: &str) -> f64 {
        median(self.all((tool, figure)))
    }

    /// The value of this name in a tool's first run.
    pub(crate) fn first(&self, tool: &str, name: &str) -> Option<&Value> {
        self.0.get(tool)?.first()?.get(name)
    }

    /// The sum of a value over a tool's runs.
    pub(crate) fn sum(&self, tool: &str, figure: &str) -> u64 {
        self.0.get(tool).into_iter().flatten().filter_map(|run| run[figure].as_u64()).sum()
    }

    /// A row that sets two tools side by side: medians of their runs times `scale`, and the median
    /// ratio of the pairs of runs with its 95 % interval.
    pub(crate) fn row(
        &self,
        what: impl Into<String>,
        (unit, scale): (&str, f64),
        ours: (&str, &str),
        theirs: (&str, &str),
    ) -> Row {
        let ratio = stats::runs::compare(&self.all(ours), &self.all(theirs), 1).map(|found| Ratio {
            median: found.ratio,
            low: found.interval.map(|[low, _]| low),
            high: found.interval.map(|[_, high]| high),
        });
        Row::new(what, self.median(ours.0, ours.1) * scale, unit)
            .n(self.all(ours).len() as u64)
            .beside(theirs.0, self.median(theirs.0, theirs.1) * scale)
            .ratio(ratio)
    }

    /// A row of a count over all runs of a tool.
    pub(crate) fn sum_row(&self, what: impl Into<String>, tool: &str, figure: &str) -> Row {
        Row::new(what, self.sum(tool, figure) as f64, "").n(self.all((tool, figure)).len() as u64)
    }

    fn all(&self, (tool, figure): (&str, &str)) -> Vec<f64> {
        self.0.get(tool).into_iter().flatten().filter_map(|run| run[figure].as_f64()).collect()
    }
}
