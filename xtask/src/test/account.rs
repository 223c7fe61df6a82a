//! The account of a run of the tests, as data (`stillcore.result/1`): a row a step, in seconds,
//! with its tests.

use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::place;
use crate::steps::{Counts, Done};

/// The budget of the fast tier, s.
const BUDGET_S: f64 = 1200.0;

/// One run.
#[derive(Debug, Serialize)]
pub(crate) struct Account {
    schema: &'static str,
    name: String,
    command: String,
    /// With `-dirty` where the tree differs from it.
    commit: String,
    profile: &'static str,
    machine: String,
    started: String,
    tests: u32,
    failed: u32,
    skipped: Vec<String>,
    rows: Vec<Row>,
}

/// One step, or the whole.
#[derive(Debug, Serialize)]
struct Row {
    what: String,
    /// Wall time. Steps that ran beside each other overlap.
    value: f64,
    unit: &'static str,
    /// Tests that ran.
    n: u32,
    skipped: usize,
    notes: Vec<String>,
    failure: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<f64>,
    verdict: &'static str,
}

/// The account of a run of `wall`.
pub(crate) fn of(name: &str, command: &str, root: &Path, done: &[Done], wall: Duration) -> Result<Account> {
    let mut all = Counts::default();
    done.iter().for_each(|step| all.add(step.counts.clone()));
    let mut rows: Vec<Row> = done.iter().map(row).collect();
    let took = wall.as_secs_f64();
    rows.push(Row {
        what: "all".into(),
        value: rounded(took),
        unit: "s",
        n: all.passed + all.failed,
        skipped: all.skipped.len(),
        notes: vec![],
        failure: None,
        budget: Some(BUDGET_S),
        verdict: if took <= BUDGET_S { "met" } else { "missed" },
    });
    Ok(Account {
        schema: "stillcore.result/1",
        name: name.into(),
        command: command.into(),
        commit: place::commit(root)?,
        profile: "ci",
        machine: place::machine(),
        started: place::utc(SystemTime::now() - wall),
        tests: all.passed + all.failed,
        failed: all.failed,
        skipped: all.skipped,
        rows,
    })
}

fn row(step: &Done) -> Row {
    Row {
        what: step.name.clone(),
        value: rounded(step.took.as_secs_f64()),
        unit: "s",
        n: step.counts.passed + step.counts.failed,
        skipped: step.counts.skipped.len(),
        notes: step.counts.notes.clone(),
        failure: step.failure.clone(),
        budget: None,
        verdict: "none",
    }
}

/// Tenths of a second.
fn rounded(seconds: f64) -> f64 {
    (seconds * 10.0).round() / 10.0
}

impl Account {
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self).context("encode the account")?;
        text.push('\n');
        std::fs::write(path, text).with_context(|| format!("write {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_a_step_and_one_for_all_with_the_budget() {
        let step = Done {
            name: "tidy".into(),
            took: Duration::from_millis(1234),
            counts: Counts { passed: 2, failed: 1, skipped: vec!["s".into()], notes: vec![] },
            failure: Some("x".into()),
        };
        let root = crate::repo::root();
        let account = of("make-test", "c", &root, &[step], Duration::from_secs(1300)).unwrap();
        let json = serde_json::to_value(&account).unwrap();
        assert_eq!(json["schema"], "stillcore.result/1");
        assert_eq!((&json["rows"][0]["value"], &json["rows"][0]["n"]), (&1.2.into(), &3.into()));
        assert_eq!(
            (&json["rows"][1]["what"], &json["rows"][1]["verdict"]),
            (&"all".into(), &"missed".into())
        );
        assert_eq!((&json["tests"], &json["failed"]), (&3.into(), &1.into()));
    }
}
