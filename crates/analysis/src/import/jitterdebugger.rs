//! jitterdebugger's `results.json` (versions 1 to 3): a histogram a thread; `count` has what lies
//! beyond the last bin as well.
//!
//! Version 3 says the unit, `resolution_in_ns`, and is us without.

use super::json::Document;
use super::{Facts, single};
use crate::groups::measured::{MeasuredRun, Tool};
use model::Error;
use model::sample::ProbeKind;
use serde_json::Value;

pub(super) fn is(document: &Document) -> bool {
    document.get(&["cpu"]).is_some_and(Value::is_object)
}

pub(super) fn run(document: &Document, name: String) -> Result<MeasuredRun, Error> {
    let resolution = document.get(&["sysinfo", "resolution_in_ns"]).and_then(Value::as_u64);
    let unit_ns = resolution.filter(|ns| (1..=1_000_000).contains(ns)).unwrap_or(1_000);
    let mut threads = Vec::new();
    for (number, thread) in document.members("cpu")? {
        let parsed = document.thread(&format!("cpu.{number}"), thread, unit_ns, Some("count"))?;
        // The key is the number of the thread, in the order of the CPUs it was given, and not the
        // CPU.
        threads.push(parsed);
    }
    let facts = Facts { kernel: document.text(&["sysinfo", "release"]), ..Facts::default() };
    single(name, Tool::Jitterdebugger, ProbeKind::Wakeup, threads, facts)
}
