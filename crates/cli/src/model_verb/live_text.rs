//! The check of a program that runs, in lines: how it begins, each second, the first job beyond its
//! bound, how it ended.

use super::text::refutation;
use super::words::time;
use crate::measure::table::table;
use analysis::task_model::check::live::LiveState;
use analysis::task_model::check::{CheckedThread, Refutation};
use analysis::task_model::choose::LEAST_JOBS;
use report::format::{count, span};
use report::task_model::of_earlier;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// Schema of the answer in JSON.
const SCHEMA: &str = "stillcore.model-check/1";

/// What was lost so far.
pub(super) struct Lost {
    /// By the kernel, for want of room.
    pub(super) events: u64,
    /// Here, for want of time.
    pub(super) dropped_pages: u64,
}

/// How it ended.
pub(super) struct Ended {
    pub(super) state: LiveState,
    /// When it began, CLOCK_MONOTONIC, ns.
    pub(super) began_ns: i64,
    /// How long it was, ns.
    pub(super) length_ns: u64,
    /// Places where events are missing.
    pub(super) holes: u64,
    /// Activations of threads beyond the most that are followed.
    pub(super) left_out: u64,
    /// How often names and numbers had grown so much that all began anew.
    pub(super) renewals: u64,
}

/// What is held against what.
pub(super) fn begins(model: &Path, names: &BTreeSet<String>) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    format!("holding jobs against the bounds of {}: {}", model.display(), names.join(", "))
}

/// How things stand.
pub(super) fn line(state: &LiveState, since_ns: u64, lost: &Lost) -> String {
    let checked = &state.checked;
    let mut text = format!(
        "{:>8}: {} jobs held, {} late",
        span(since_ns),
        count(checked.jobs()),
        count(checked.refuted)
    );
    if let Some(nearest) = state.nearest() {
        let _ = write!(text, "; nearest to its bound: {}", used(nearest));
    }
    for (name, jobs) in &state.waiting {
        let _ = write!(text, "; {name}: {jobs} of {LEAST_JOBS} jobs");
    }
    let Lost { events, dropped_pages } = lost;
    if events + dropped_pages > 0 {
        let _ = write!(text, "; lost: {} events, {} pages", count(*events), count(*dropped_pages));
    }
    text
}

fn used(thread: &CheckedThread) -> String {
    let share = 100.0 * thread.longest_ns as f64 / thread.bound_ns.max(1) as f64;
    format!("{} {share:.0} % ({} of {})", thread.comm, time(thread.longest_ns), time(thread.bound_ns))
}

/// The first job that took longer than its bound.
pub(super) fn first(job: &Refutation, began_ns: i64) -> String {
    format!("first job that took longer than its bound:\n{}", refutation(job, began_ns, "recording began"))
}

/// How it ended.
pub(super) fn summary(model: &Path, ended: &Ended) -> String {
    let checked = &ended.state.checked;
    let mut text = format!("{}\n", of_earlier(&model.display().to_string(), checked));
    let _ = writeln!(text, "in {}, while it ran\n", span(ended.length_ns));
    let rows = checked.threads.iter().map(|one| {
        let share = 100.0 * one.longest_ns as f64 / one.bound_ns.max(1) as f64;
        vec![
            format!("{}[{}]", one.comm, one.pid),
            time(one.bound_ns),
            time(one.longest_ns),
            format!("{share:.0} %"),
            count(one.jobs),
            count(one.refuted),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if !rows.is_empty() {
        let head = ["response", "bound", "observed max", "of it", "jobs", "late"];
        text.push_str(&table(&head, rows));
        text.push('\n');
    }
    if checked.refuted > 0 {
        text.push_str("jobs that took longer than their bound, the longest beyond it first\n");
        let jobs = checked.refuting.iter().map(|job| refutation(job, ended.began_ns, "recording began"));
        jobs.for_each(|job| text.push_str(&job));
    }
    for one in &checked.unmatched {
        let _ = writeln!(text, "not checked: {one}");
    }
    notes(ended).iter().for_each(|note| {
        let _ = writeln!(text, "note: {note}");
    });
    text
}

fn notes(ended: &Ended) -> Vec<String> {
    let mut notes = Vec::new();
    if ended.holes > 0 {
        notes.push(format!(
            "events are missing in {} places: jobs around them were not held against their bounds",
            count(ended.holes)
        ));
    }
    if ended.left_out > 0 {
        notes.push(format!(
            "{} activations are of more threads than are followed at a time, and were not checked",
            count(ended.left_out)
        ));
    }
    if ended.renewals > 0 {
        notes.push(format!(
            "{} times the names of ended tasks were forgotten; jobs that were open then were not checked",
            count(ended.renewals)
        ));
    }
    notes
}

/// The same as one JSON object.
pub(super) fn json(model: &Path, ended: &Ended) -> Value {
    json!({
        "schema": SCHEMA,
        "model": model,
        "length_ns": ended.length_ns,
        "checked": ended.state.checked,
        "first": ended.state.first,
        "holes": ended.holes,
        "statements": notes(ended),
    })
}
