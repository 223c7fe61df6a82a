//! The guest's side of a cell: isolates as the profile says, then runs the study; stores the output
//! of both beside their results.
//!
//! Both are the command's own verbs, called as a user would, so that the matrix measures what a user gets.

use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

/// Second word of the hidden verb.
pub(crate) const VERB: &str = "lab-cell";
/// Where the study is, relative to the working directory.
pub(crate) const STUDY: &str = "exposure";
/// What `isolate apply --json` printed.
pub(crate) const ISOLATION: &str = "isolation.json";
/// The messages of both calls.
pub(crate) const LOG: &str = "cell.log";
/// How both ended.
pub(crate) const ENDED: &str = "cell.json";

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    /// CPUs to isolate and to measure.
    pub(crate) cpus: String,
    /// `--placement`, where something is to be applied.
    pub(crate) placement: Option<String>,
    /// Further arguments of the study.
    pub(crate) study: Vec<String>,
}

/// How it ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ended {
    /// Exit code of `isolate apply`; absent where nothing was to be applied.
    pub(crate) isolation: Option<i32>,
    /// The placement that `isolate apply` reached; absent where it failed.
    pub(crate) placement: Option<String>,
    /// Exit code of the study; absent where it was not run.
    pub(crate) study: Option<i32>,
}

/// Carries the order out. Skips the study where the isolation reached is not the one required.
pub(crate) fn run(words: &[OsString]) -> anyhow::Result<()> {
    let text = words.first().and_then(|word| word.to_str()).unwrap_or_default();
    let order: Order = serde_json::from_str(text).context("the order of the cell")?;
    let mut ended = Ended::default();
    if let Some(placement) = &order.placement {
        let arguments = ["isolate", "apply", "--cpus", &order.cpus, "--placement", placement, "--json"];
        ended.isolation = Some(call(&arguments, Path::new(ISOLATION))?);
        let answer: serde_json::Value = std::fs::read(ISOLATION)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        ended.placement = answer["placement"].as_str().map(str::to_owned);
    }
    if ended.placement == order.placement {
        let fixed = ["study", "run", "exposure", "--cpus", &order.cpus, "--out", STUDY, "--json"];
        let arguments: Vec<&str> = fixed.into_iter().chain(order.study.iter().map(String::as_str)).collect();
        // The same object is in the study's directory.
        ended.study = Some(call(&arguments, Path::new("/dev/null"))?);
    }
    model::store::write_json(Path::new(ENDED), &ended)?;
    Ok(())
}

/// Calls this program with its stdout in a file; returns its exit code, 128 and more for a signal.
fn call(arguments: &[&str], stdout: &Path) -> anyhow::Result<i32> {
    let log = File::options().create(true).append(true).open(LOG).context(LOG)?;
    let out = File::options()
        .create(true)
        .truncate(true)
        .write(true)
        .open(stdout)
        .with_context(|| stdout.display().to_string())?;
    let own = std::env::current_exe()?;
    let status = Command::new(own).args(arguments).stdin(Stdio::null()).stdout(out).stderr(log).status()?;
    Ok(status.code().unwrap_or(128))
}
