//! What a run of the tests did, as data (`stillcore.result/1`): a row a step, in seconds, with its tests.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

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
        commit: commit(root)?,
        profile: "ci",
        machine: machine(),
        started: started(wall)?,
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

pub(super) fn commit(root: &Path) -> Result<String> {
    let safe = format!("safe.directory={}", root.display());
    let git = |args: &[&str]| {
        let out = Command::new("git").args(["-c", &safe]).args(args).current_dir(root).output();
        out.context("run git").map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "HEAD"])?;
    if commit.is_empty() {
        return Ok("unknown".into());
    }
    let dirty = !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Ok(if dirty { format!("{commit}-dirty") } else { commit })
}

/// Kernel, processor and CPUs.
pub(super) fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cpus = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let kernel = read("/proc/sys/kernel/osrelease");
    format!(
        "Linux {} {}, {}, {cpus} CPUs",
        kernel.trim(),
        std::env::consts::ARCH,
        model.map_or("unknown processor", |(_, name)| name)
    )
}

/// When the run began, as `date` prints it in UTC.
fn started(wall: Duration) -> Result<String> {
    let ago = format!("@{}", now_s().saturating_sub(wall.as_secs()));
    let out = Command::new("date").args(["-u", "-d", &ago, "+%FT%TZ"]).output().context("run date")?;
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

fn now_s() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
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
