//! What was played, in a table or as JSON.

use crate::measure::table::table;
use graph::load::Played;
use model::load::Load;
use report::format::{count, span};
use serde_json::json;
use std::fmt::Write;
use std::path::Path;

/// A table of the threads.
pub(super) fn text(load: &Load, played: &Played) -> String {
    let head = ["thread", "policy", "CPU", "jobs", "missed", "utilization"];
    let rows = load
        .threads
        .iter()
        .zip(&played.threads)
        .map(|(thread, one)| {
            let priority = one.policy.priority;
            let policy = if priority > 0 {
                format!("{} {priority}", one.policy.name)
            } else {
                one.policy.name.clone()
            };
            vec![
                format!("{}[{}]", thread.name, one.tid),
                policy,
                thread.cpus.as_ref().map_or_else(|| "any".to_owned(), ToString::to_string),
                count(one.rounds),
                count(one.missed),
                format!("{:.1} %", 100.0 * one.cpu_ns as f64 / played.duration_ns.max(1) as f64),
            ]
        })
        .collect();
    let mut text = format!("{} threads played for {}\n\n", load.threads.len(), span(played.duration_ns));
    text.push_str(&table(&head, rows));
    if let Some(why) = &played.memory_unlocked {
        let _ = writeln!(text, "note: memory could not be locked: {why}");
    }
    for (thread, _) in load.threads.iter().zip(&played.threads).filter(|(_, one)| one.stuck) {
        let _ = writeln!(text, "note: {} did not end: it waited for another thread", thread.name);
    }
    text
}

/// The same as one object.
pub(super) fn json(from: &Path, load: &Load, played: &Played, notes: &[String]) -> serde_json::Value {
    let threads: Vec<_> = load
        .threads
        .iter()
        .zip(&played.threads)
        .map(|(thread, one)| {
            json!({
                "name": thread.name,
                "tid": one.tid,
                "policy": one.policy,
                "cpus": thread.cpus,
                "jobs": one.rounds,
                "missed": one.missed,
                "cpu_ns": one.cpu_ns,
                "stuck": one.stuck,
            })
        })
        .collect();
    json!({
        "schema": "stillcore.model-replay/1",
        "from": from,
        "duration_ns": played.duration_ns,
        "interrupted": played.interrupted,
        "memory_unlocked": played.memory_unlocked,
        "threads": threads,
        "notes": notes,
    })
}
