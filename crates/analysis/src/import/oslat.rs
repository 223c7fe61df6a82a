//! `oslat --json=FILE` (rt-tests, `oslat.c`, file version 1): every turn of the busy loop by its
//! length in us, a histogram a thread.
//!
//! Turns without a gap are in it as well, in its first bins, so it is compared by its rates of long
//! ones and its maximum. The last bin also holds longer turns: its count is separated where the
//! maximum lies beyond it.

use super::cyclictest_json::{facts, whole};
use super::json::Document;
use super::single;
use crate::groups::measured::{MeasuredRun, Tool};
use model::Error;
use model::sample::ProbeKind;
use serde_json::Value;

/// `freq` of a thread is in no other file.
pub(super) fn is(document: &Document) -> bool {
    let threads = document.get(&["thread"]).and_then(Value::as_object);
    threads.is_some_and(|threads| threads.values().next().is_some_and(|thread| thread.get("freq").is_some()))
}

pub(super) fn run(document: &Document, name: String) -> Result<MeasuredRun, Error> {
    whole(document)?;
    let mut threads = Vec::new();
    for (number, thread) in document.members("thread")? {
        let key = format!("thread.{number}");
        let mut parsed = document.thread(&key, thread, 1_000, None)?;
        let last = parsed.bins.counts.last().copied();
        if let Some((edge, count)) =
            last.filter(|(edge, _)| parsed.bins.max_ns.is_some_and(|max| max > *edge))
        {
            parsed.bins.counts.pop();
            (parsed.bins.over, parsed.bins.over_from_ns) = (count, Some(edge));
        }
        let seconds =
            thread.get("duration").and_then(Value::as_f64).filter(|seconds| *seconds > 0.0 && *seconds < 1e9);
        let seconds = seconds
            .ok_or_else(|| document.wrong(&format!("{key}.duration"), "is no duration", "seconds above 0"))?;
        parsed.duration_ns = Some((seconds * 1e9) as u64);
        threads.push(parsed);
    }
    single(name, Tool::Oslat, ProbeKind::Noise, threads, facts(document))
}
