//! A run one of whose calls that write fails as on a full disk, in any of its processes:
//! `tests/no_space.py`.

#![allow(dead_code, reason = "the bench and the test use each their part")]

use super::full_disk::{Disk, Outcome, Size, judged, measuring};
use super::kills::{named_after, processes, temporary};
use model::store;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Room for all of it.
const ENOUGH: Size = Size { pages: 16_384, names: 4_096 };
/// Exit code of the helper where no call can be made to fail.
const UNAVAILABLE: i32 = 77;
/// Time limit for guardians and children to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// Which call fails.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    /// Its number among those of all processes of the run, from 1; 0 for none.
    pub(crate) call: u64,
    /// Whether all later calls fail too, as on a disk that stays full.
    pub(crate) stay: bool,
    /// Whether the run records a trace, which changes the machine more.
    pub(crate) trace: bool,
}

/// The result of such a run.
#[derive(Debug)]
pub(crate) struct Faulty {
    /// How the run ended.
    pub(crate) outcome: Outcome,
    /// Calls that it has made.
    pub(crate) calls: u64,
    /// The one that failed, and the file; none where the run made fewer.
    pub(crate) failed: Option<String>,
    /// Leftovers.
    pub(crate) left: Vec<String>,
}

/// Runs in an empty scratch directory; none where no call can be made to fail, or no disk mounted.
pub(crate) fn run_with(program: &Path, scratch: &Path, fault: Fault, duration: &str) -> Option<Faulty> {
    let disk = Disk::mount(&scratch.join("disk"), ENOUGH)?;
    let report = scratch.join("calls.json");
    let mut helper = Command::new("python3");
    helper.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/no_space.py"));
    helper.arg(fault.call.to_string()).arg(&disk.0).arg(&report);
    if fault.stay {
        helper.arg("--stay");
    }
    helper.arg("--").arg(program);
    let mut command = measuring(helper, &disk, duration);
    if fault.trace {
        command.arg("--trace=auto");
    }
    let output = command.output().ok()?;
    if output.status.code() == Some(UNAVAILABLE) {
        return None;
    }
    let mut outcome = judged(&output, &disk, program, scratch);
    let said: Option<Value> = fs::read(&report).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    if said.is_none() {
        outcome.wrong.push(format!("the helper failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let said = said.unwrap_or_default();
    let failed = said["failed"].as_str().map(str::to_owned);
    if outcome.whole && failed.is_some() {
        // The run took another way: then all of it has to be there.
        let run = disk.0.join("run");
        let complete = model::run::stored::read_run(&run).is_ok_and(|run| run.complete);
        let there = [store::ANALYSIS, store::REPORT].iter().all(|name| run.join(name).exists());
        if !complete || !there || run.join(store::PARTIAL).exists() || outcome.samples == 0 {
            outcome.wrong.push("exit 0, and not all of the run is there".to_owned());
        }
    }
    let pid = said["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
    let left = leftovers(&disk.0, pid);
    Some(Faulty { outcome, calls: said["calls"].as_u64().unwrap_or(0), failed, left })
}

/// Processes, tracing instances, groups, journals, temporary files.
fn leftovers(dir: &Path, pid: Option<u32>) -> Vec<String> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let mut left = processes(dir);
        left.extend(pid.into_iter().flat_map(named_after));
        let journal = fs::read_dir(dir.join("state/journal")).into_iter().flatten().filter_map(Result::ok);
        left.extend(journal.map(|entry| {
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            format!("journal {}: {text:?}", entry.path().display())
        }));
        let state = fs::read_dir(dir.join("state")).into_iter().flatten().filter_map(Result::ok);
        let names = state.map(|entry| entry.file_name().to_string_lossy().into_owned());
        left.extend(names.filter(|name| name != "journal").map(|name| format!("state {name}")));
        left.extend(temporary(&dir.join("run")));
        if left.is_empty() || Instant::now() > give_up {
            return left;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
