//! `stillcore graph judge`: result files against a target file.

use crate::measure::table::table;
use clap::Args;
use graph::results::target::Verdict;
use graph::results::{latency, resources, target};
use model::Error;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Arguments of `graph judge`.
#[derive(Debug, Args)]
pub(crate) struct JudgeArgs {
    /// Directory with latency_total.txt and optionally resources.txt: NAME_log of ros2-performance,
    /// with either generation of headers, or of a stillcore run.
    #[arg(value_name = "DIR")]
    pub(crate) results: PathBuf,
    /// Target file (performance_target/*.json of ros2-performance).
    #[arg(long, value_name = "FILE")]
    pub(crate) target: PathBuf,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Judges.
pub(crate) fn run(args: &JudgeArgs) -> anyhow::Result<u8> {
    let target = read_target(&args.target)?;
    let path = args.results.join("latency_total.txt");
    let total = latency::read_total(&path, &read(&path)?)?;
    let path = args.results.join("resources.txt");
    let used = if path.exists() { resources::read(&path, &read(&path)?)? } else { Vec::new() };
    let mut verdicts = target::judge(&target, &total, &used);
    if used.is_empty() {
        // What was not measured is not judged.
        verdicts.retain(|verdict| !target.resources.contains_key(&verdict.quantity));
    }
    if args.json {
        println!("{}", json!({"schema": "stillcore.graph-judge/1", "total": total, "target": verdicts}));
    } else {
        print!("{}", verdict_table(&verdicts));
    }
    Ok(2 * u8::from(verdicts.iter().any(|verdict| !verdict.pass)))
}

/// A target file.
pub(super) fn read_target(path: &Path) -> Result<target::Target, Error> {
    target::read(path, &read(path)?)
}

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|error| Error::io("read", path, error))
}

/// Limits as rows.
pub(super) fn verdict_table(verdicts: &[Verdict]) -> String {
    let row = |verdict: &Verdict| {
        vec![
            verdict.quantity.clone(),
            format!("{:.4}", verdict.found),
            verdict.limit.to_string(),
            if verdict.pass { "pass" } else { "FAIL" }.to_owned(),
        ]
    };
    table(&["target", "found", "limit", ""], verdicts.iter().map(row).collect())
}
