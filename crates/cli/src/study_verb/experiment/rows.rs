//! The results as a table for other tools: one row per cell, factors and values as columns.

use report::export::{Column, Values, table_parquet};
use serde_json::json;
use study::Cell;
use study::experiment::{CellResult, CellState, Experiment, KERNEL, SETTING, Under, ValueOf};

/// Schema in the file's metadata.
const SCHEMA: &str = "stillcore.study-table/1";

/// The whole file.
pub(super) fn parquet(
    experiment: &Experiment,
    scale: f64,
    results: &[(Cell, CellResult)],
) -> Result<Vec<u8>, report::Error> {
    let columns = columns(experiment, scale, results);
    let units = experiment.values.iter().map(|value| (value.name.get_ref().clone(), json!(value.unit)));
    let about = json!({
        "schema": SCHEMA,
        "name": experiment.name.get_ref(),
        "title": experiment.title,
        "source": experiment.source,
        "units": units.collect::<serde_json::Map<_, _>>(),
    });
    table_parquet(&columns, &about)
}

fn columns(experiment: &Experiment, scale: f64, results: &[(Cell, CellResult)]) -> Vec<Column> {
    let text = |of: &dyn Fn(&Cell, &CellResult) -> Option<String>| {
        Values::Text(results.iter().map(|(cell, result)| of(cell, result)).collect())
    };
    let mut table = Table(Vec::new());
    table.add("experiment", "", text(&|_, _| Some(experiment.name.get_ref().clone())));
    table.add("scale", "", Values::Number(results.iter().map(|_| Some(scale)).collect()));
    table.add("cell", "", text(&|cell, _| Some(cell.id.clone())));
    let repetitions = results.iter().map(|(cell, _)| Some(i64::from(cell.repetition)));
    table.add("repetition", "", Values::Count(repetitions.collect()));
    // All 64 bits of it: no signed number, and no float.
    table.add("seed", "", text(&|cell, _| Some(cell.seed.to_string())));
    table.add("state", "", text(&|_, result| Some(state(result.state).to_owned())));
    table.add("reason", "", text(&|_, result| result.reason.clone()));
    table.add("place", "", text(&|_, result| Some(result.place.clone())));
    table.add(
        "emulated",
        "",
        Values::Flag(results.iter().map(|(_, result)| Some(result.emulated)).collect()),
    );
    table.add("tool_version", "", text(&|_, result| Some(result.tool_version.clone())));
    table.add("wall_s", "", Values::Number(results.iter().map(|(_, result)| Some(result.wall_s)).collect()));
    let under = |of: fn(&Under) -> &String| text(&|_, result| result.under.as_ref().map(of).cloned());
    table.add("kernel_release", "", under(|under| &under.release));
    table.add("boot_line", "", under(|under| &under.cmdline));
    table.add("processor", "", under(|under| &under.processor));
    table.add("measured_cpus", "", under(|under| &under.measured));
    let extra =
        |name: &'static str| results.iter().any(|(cell, _)| cell.factors.contains_key(name)).then_some(name);
    let declared = experiment.factors.iter().map(|factor| factor.name.get_ref().as_str());
    for factor in extra(KERNEL).into_iter().chain(declared).chain(extra(SETTING)) {
        let level =
            |cell: &Cell| cell.factors.get(factor).and_then(|level| level.as_str()).map(str::to_owned);
        table.add(factor, "factor", text(&|cell, _| level(cell)));
    }
    for value in &experiment.values {
        let number = |result: &CellResult| result.values.get(value.name.get_ref()).copied().flatten();
        let numbers = results.iter().map(|(_, result)| number(result)).collect();
        table.add(&with_unit(value), "value", Values::Number(numbers));
    }
    table.0
}

/// As `state` is spelled in `cells/ID.json`.
fn state(state: CellState) -> &'static str {
    match state {
        CellState::Ok => "ok",
        CellState::Needs => "needs",
        CellState::NotApplicable => "not-applicable",
        CellState::Failed => "failed",
    }
}

/// `max_us`, `share_percent`, `drift_us_per_min`; a count has no unit.
fn with_unit(value: &ValueOf) -> String {
    let unit = value.unit.replace('%', "percent").replace('/', "_per_");
    [value.name.get_ref().as_str(), &unit]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("_")
}

struct Table(Vec<Column>);

impl Table {
    /// Adds a column under a name that needs no quotes in SQL and that is not in use: `kind` is put
    /// before a name in use.
    fn add(&mut self, name: &str, kind: &str, values: Values) {
        let plain: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
            .collect();
        let mut name = match plain.chars().next() {
            Some(first) if first.is_ascii_alphabetic() => plain,
            _ => format!("{kind}_{plain}"),
        };
        while self.0.iter().any(|column| column.name == name) {
            name = format!("{kind}_{name}");
        }
        self.0.push(Column { name, values });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use study::experiment::{Plan, Published};

    const TEXT: &str = r#"
schema = "stillcore.experiment/1"
name = "small"
title = "t"
source = "s"
seed = 3
repetitions = 1
[[factor]]
name = "state"
levels = ["a", "b"]
[[factor]]
name = "50us load"
levels = ["idle"]
[[step]]
run = ["study", "list"]
[[value]]
name = "max"
title = "m"
unit = "us/min"
at = "max"
[[value]]
name = "state"
title = "s"
at = "state"
"#;

    #[test]
    fn names_need_no_quotes_and_are_nobody_elses() {
        let experiment = Experiment::from_toml(TEXT, &Published::from_toml("").unwrap()).unwrap();
        let plan = Plan::of(&experiment, &[], 1, 1.0).unwrap();
        let result = CellResult::without(CellState::Failed, "why".to_owned(), "here", false, "0");
        let results: Vec<_> =
            plan.cells.iter().map(|planned| (planned.cell.clone(), result.clone())).collect();
        let columns = columns(&experiment, 1.0, &results);
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names[15..], ["factor_state", "factor_50us_load", "max_us_per_min", "value_state"]);
        let Values::Text(levels) = &columns[15].values else { panic!("{columns:?}") };
        let expected: Vec<_> = plan
            .cells
            .iter()
            .map(|planned| planned.cell.factors["state"].as_str().map(str::to_owned))
            .collect();
        assert_eq!(*levels, expected);
        assert_eq!(columns[17].values, Values::Number(vec![None, None]));
        assert!(!parquet(&experiment, 1.0, &results).unwrap().is_empty());
    }
}
