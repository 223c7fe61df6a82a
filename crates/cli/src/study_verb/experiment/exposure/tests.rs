//! The table of kernels and ways of isolating, without a guest.

use super::matrix::gather;
use super::onto::onto;
use super::*;
use crate::study_verb::exposure::Declared;
use analysis::exposure::{Count, Stretch};
use model::EventClass;
use report::Matrix;
use serde_json::json;
use std::time::Duration;
use study::experiment::{CellState, Plan, Published};

const PROFILES: [&str; 2] = ["partition", "boot"];

fn experiment(duration: u64, stressors: &[&str]) -> Experiment {
    let declared = Declared {
        name: "matrix",
        stressors: stressors.iter().map(|name| (*name).to_owned()).collect(),
        duration: Duration::from_secs(duration),
        priority: 0,
        kprobes: false,
        repetitions: 1,
        guests: Some(json!({ "smp": "3" })),
    };
    Experiment::from_toml(&declared.text().unwrap(), &Published::from_toml("").unwrap()).unwrap()
}

/// A stressor that did 1000 operations, with so many events beside them.
fn counted(stressor: &str, events: u64) -> CellResult {
    let record = json!({ "name": stressor, "cpus": "0-1", "ops_ok": 1000, "ops_failed": {}, "parts": {}, "t0_ns": 0, "t1_ns": 1,
        "witness": { "name": "w", "expected": 1, "seen": 1 }, "state": "ok", "confined_by": [] });
    let record = serde_json::from_value(record).unwrap();
    let stretch = |count: u64| {
        let count = Count { count, dispersion: 1.0, by_cpu: [(2, count)].into() };
        Stretch {
            length_ns: 1_000_000_000,
            classes: [(EventClass::IpiCall, count.clone())].into(),
            all: count,
        }
    };
    let facts = CellFacts {
        void: None,
        observable: [EventClass::IpiCall].into(),
        disturbed: stretch(events),
        idle_before: stretch(0),
        idle_after: stretch(0),
        ..CellFacts::without_measurement(record, &Cpus::one(2), String::new())
    };
    let result = CellResult::without(CellState::Ok, String::new(), "6.1", true, "0");
    CellResult { reason: None, answer: Some(serde_json::to_value(facts).unwrap()), ..result }
}

/// Results of all cells on some kernels, but those of which `result` makes none.
fn results(
    experiment: &Experiment,
    kernels: &[&str],
    result: impl Fn(&str, &str, &str) -> Option<CellResult>,
) -> Vec<(Cell, CellResult)> {
    let kernels: Vec<String> = kernels.iter().map(|name| (*name).to_owned()).collect();
    let plan = Plan::of(experiment, &kernels, 1, 1.0).unwrap();
    let level = |cell: &Cell, factor: &str| cell.factors[factor].as_str().unwrap().to_owned();
    let of = |planned: study::experiment::Planned| {
        let [kernel, profile, stressor] =
            [KERNEL, PROFILE, STRESSOR].map(|factor| level(&planned.cell, factor));
        let wanted = PROFILES.contains(&profile.as_str());
        Some((planned.cell, result(&kernel, &profile, &stressor).filter(|_| wanted)?))
    };
    plan.cells.into_iter().filter_map(of).collect()
}

fn table(experiment: &Experiment, results: &[(Cell, CellResult)]) -> Matrix {
    let place = tempfile::tempdir().unwrap();
    let args = AnswerOptions { scale: 1.0, json: true, quiet: false, cells: 0, onto: None };
    gather(&args, experiment, results, place.path()).unwrap()
}

fn events_of(stressor: &str) -> u64 {
    if stressor == "calc_pi" { 0 } else { 3000 }
}

const STRESSORS: [&str; 4] = ["perf_sys", "tlb_span", "schedstats", "calc_pi"];

#[test]
fn the_table_has_all_results_what_failed_and_what_a_kernel_refuses() {
    let experiment = experiment(2, &STRESSORS);
    let without = |state, why: &str| Some(CellResult::without(state, why.to_owned(), "g", true, "0"));
    let results =
        results(&experiment, &["5.10", "6.1"], |kernel, profile, stressor| match (kernel, profile) {
            ("5.10", "partition") => without(CellState::NotApplicable, "this kernel does not hold it"),
            ("6.1", "partition") => without(CellState::Failed, "the guest's time was over"),
            ("6.1", "boot") if stressor == "perf_sys" => without(CellState::Failed, "it hung"),
            _ => Some(counted(stressor, events_of(stressor))),
        });
    let matrix = table(&experiment, &results);
    let columns: Vec<_> = matrix
        .columns
        .iter()
        .map(|column| {
            (column.profile.as_str(), column.kernel.as_str(), column.absent.as_deref(), column.void)
        })
        .collect();
    assert_eq!(
        columns,
        [
            ("partition", "5.10", Some("this kernel does not hold it"), false),
            ("partition", "6.1", Some("the guest's time was over"), false),
            ("boot", "5.10", None, false),
            ("boot", "6.1", None, false),
        ]
    );
    let row = matrix.columns[3].rows.iter().find(|row| row.stressor == "perf_sys").unwrap();
    assert_eq!(row.reason.as_deref(), Some("it hung"), "one that failed takes no other with it");
    assert_eq!(matrix.profiles.len(), 2);
}

#[test]
fn rows_measured_anew_go_into_a_table_of_the_same_conditions_only() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("matrix.json");
    let of = |duration: u64, stressor: &str, events: u64| {
        let stressors: Vec<&str> = [stressor].into_iter().chain(STRESSORS[1..].iter().copied()).collect();
        let experiment = experiment(duration, &stressors);
        let counts = |name: &str| if name == stressor { events } else { events_of(name) };
        let results = results(&experiment, &["6.1"], |_, profile, name| {
            (profile == "boot").then(|| counted(name, counts(name)))
        });
        table(&experiment, &results)
    };
    store::write_json(&file, &of(2, "perf_sys", 8000).json()).unwrap();
    let (asked, cpus) = (["timer".to_owned()], Cpus::one(2));
    let events = |matrix: &Matrix, name: &str| {
        let row = matrix.columns[0].rows.iter().find(|row| row.stressor == name);
        row.map(|row| row.classes[0].coefficient.events)
    };
    let merged = onto(of(2, "timer", 500), &file, &asked, &cpus).unwrap();
    assert_eq!((events(&merged, "perf_sys"), events(&merged, "timer")), (Some(8000), Some(500)));
    assert_eq!(merged.conditions.last().unwrap().0, "rows of timer (boot)");
    // Once more: the row is replaced, and its condition too.
    store::write_json(&file, &merged.json()).unwrap();
    let again = onto(of(2, "timer", 600), &file, &asked, &cpus).unwrap();
    assert_eq!(events(&again, "timer"), Some(600));
    assert_eq!(again.conditions.len(), merged.conditions.len());
    let error = onto(of(3, "timer", 500), &file, &asked, &cpus).unwrap_err().to_string();
    assert!(error.contains("was 2 s each there and is 3 s each now"), "{error}");
}

/// What else is varied of a stressor makes a row of its own, and a control stays one.
#[test]
fn a_control_is_one_whatever_else_is_varied() {
    let text = r#"
schema = "stillcore.experiment/1"
name = "rates"
title = "t"
source = "s"
seed = 1
repetitions = 1
conclusion = "exposure"
factor = [{ name = "stressor", levels = ["timer", "tlb_span", "schedstats", "calc_pi"] }, { name = "rate", levels = [100, 1000] }]
step = [{ run = ["measure", "exposure", "{stressor}", "--rate", "{rate}"] }]
value = [{ name = "operations", title = "operations", at = "record/ops_ok" }]
"#;
    let experiment = Experiment::from_toml(text, &Published::from_toml("").unwrap()).unwrap();
    let plan = Plan::of(&experiment, &[], 1, 1.0).unwrap();
    let expected = expected().unwrap();
    let facts: Vec<CellFacts> = plan
        .cells
        .into_iter()
        .map(|planned| {
            let stressor = planned.cell.factors[STRESSOR].as_str().unwrap().to_owned();
            facts(&(planned.cell, counted(&stressor, events_of(&stressor))), &expected).unwrap()
        })
        .collect();
    let found = exposure::conclude(&facts, &expected);
    assert!(!found.void, "{:?}", found.verdict);
    let mut names: Vec<&str> = found.rows.iter().map(|row| row.stressor.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["calc_pi", "schedstats", "timer rate=100", "timer rate=1000", "tlb_span"]);
}
