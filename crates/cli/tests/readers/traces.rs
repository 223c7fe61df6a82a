//! Traces that others have recorded: their threads followed, their wake-ups taken apart, and the
//! results of the kernel's own tracers in them.

use super::{Outcome, Reader, bytes, fixture};
use analysis::task_model::build::build;
use analysis::task_model::check::check;
use analysis::task_model::system::Assumed;
use analysis::task_model::verdict::guarantee;
use attribution::any_trace::{Threads, Wanted, any_trace, unless_of_tracers};
use attribution::attribute::paths::Keep;
use attribution::jobs::read::Source;
use attribution::timerlat;
use ftrace::TraceFile;
use std::collections::BTreeMap;

/// Small recordings, of cyclictest and of timerlat.
const FILES: [&str; 3] = ["cyclictest/6.1.dat", "cyclictest/6.1-rt.dat", "timerlat-6.12-rt/trace.dat"];

pub(crate) fn reader() -> Reader {
    let seeds = FILES.iter().map(|file| fixture(&format!("fixtures/traces/{file}"))).collect();
    Reader { name: "any-trace", seeds, damage: bytes, read, short: 12 }
}

fn read(bytes: &[u8]) -> Outcome {
    let Ok(file) = TraceFile::from_bytes("damaged", bytes.to_vec()) else { return Outcome::Refused };
    let buffers: Vec<&str> = file.buffers().iter().map(|buffer| buffer.name.as_str()).collect();
    let keep = Keep { worst: 3, sample: None };
    let wanted = Wanted { threads: Threads::RealTime, cpus: None, window: [i64::MIN, i64::MAX], keep };
    let numbers = Wanted { threads: Threads::Numbers(vec![0, 1, i32::MAX]), ..wanted.clone() };
    let all = [
        any_trace(&file, &buffers, &wanted).is_ok(),
        any_trace(&file, &buffers, &numbers).is_ok(),
        unless_of_tracers(&file, &buffers, &wanted).is_ok(),
    ];
    let over = timerlat::Wanted { over_ns: 0, release_ns: None, keep: 3 };
    let results = timerlat::kernel_results(&file, &buffers, &over).is_ok();
    models(bytes);
    match (all.iter().any(|ok| *ok) || results, file.problems().is_empty()) {
        (true, true) => Outcome::Whole,
        (true, false) => Outcome::Partial,
        (false, _) => Outcome::Refused,
    }
}

/// The jobs of its threads, and what is concluded from them, up to every job held against its
/// bound.
fn models(bytes: &[u8]) {
    let file = TraceFile::from_bytes("damaged", bytes.to_vec()).unwrap();
    let Ok(source) = Source::of_trace(file) else { return };
    let Ok(jobs) = source.jobs() else { return };
    let model = build(&jobs);
    let assumed = Assumed { margin_ppm: 200_000, deadlines_ns: BTreeMap::new() };
    if let Some(guarantee) = guarantee(&model, &assumed) {
        check(&source, &jobs, &model, &guarantee).unwrap();
    }
}
