//! What `disturb` prints: what each stressor did and who says so; the lists.

use crate::measure::table::table;
use disturb::suite::Suite;
use disturb::{Status, StressorSpec};
use model::Cpus;
use model::stressor::{StressorRecord, StressorState};
use report::{Page, TextOptions, format};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// Everything that the answer reports.
pub(super) struct Answer<'a> {
    pub(super) suite: &'a Suite,
    pub(super) cpus: &'a Cpus,
    pub(super) measured: &'a Cpus,
    pub(super) records: &'a [StressorRecord],
    pub(super) limits: &'a [String],
    pub(super) interrupted: Option<&'static str>,
}

/// Successful operations per second.
fn per_s(record: &StressorRecord) -> f64 {
    let seconds = (record.t1_ns - record.t0_ns).max(1) as f64 / 1e9;
    record.ops_ok as f64 / seconds
}

fn failed(record: &StressorRecord) -> u64 {
    record.ops_failed.values().sum()
}

fn counts(named: &BTreeMap<String, u64>) -> String {
    named.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
}

fn word(state: StressorState) -> &'static str {
    match state {
        StressorState::Ok => "ok",
        StressorState::Void => "void",
        StressorState::Stuck => "stuck",
        StressorState::Absent => "absent",
    }
}

/// Live status line: operations per second of each stressor so far, and which have not begun.
pub(super) fn live(all: &[Status], elapsed: Duration) -> String {
    const SHOWN: usize = 3;
    let seconds = elapsed.as_secs_f64().max(0.1);
    let one = |child: &Status| match (child.ready, child.ended) {
        (_, true) => format!("{} ended", child.name),
        (false, _) => format!("{} begins", child.name),
        _ => format!("{} {:.0}/s", child.name, child.ops_ok as f64 / seconds),
    };
    let mut words: Vec<String> = all.iter().take(SHOWN).map(one).collect();
    if all.len() > SHOWN {
        words.push(format!("{} more", all.len() - SHOWN));
    }
    words.join(", ")
}

/// Whether a reader of the table has to know this of the confinement: what did not hold, and what
/// the traffic went over.
fn is_noteworthy(word: &str) -> bool {
    word.starts_with("not ") || word.starts_with("traffic over ")
}

/// What each stressor did, who says so, and what did not go as it should.
pub(crate) fn stressors(records: &[StressorRecord]) -> String {
    let row = |record: &StressorRecord| {
        vec![
            record.name.clone(),
            record.cpus.to_string(),
            word(record.state).to_owned(),
            format::count(record.ops_ok),
            format!("{:.1}", per_s(record)),
            format::count(failed(record)),
            format!("{} of {}", format::count(record.witness.seen), format::count(record.witness.expected)),
        ]
    };
    let head = ["stressor", "CPUs", "state", "operations", "per s", "failed", "witness"];
    let mut page = table(&head, records.iter().map(row).collect());
    let _ = writeln!(
        page,
        "\nwitness: growth of a counter that is not the stressor's own, of the least it must have grown by"
    );
    for record in records {
        if let Some(reason) = &record.reason {
            let _ =
                writeln!(page, "{} on CPU {}: {}: {reason}", record.name, record.cpus, word(record.state));
        }
        for word in record.confined_by.iter().filter(|word| is_noteworthy(word)) {
            let _ = writeln!(page, "{} on CPU {}: {word}", record.name, record.cpus);
        }
        if record.stalls > 0 {
            let (stalls, of) = (record.stalls, (record.t1_ns - record.t0_ns + 500_000_000) / 1_000_000_000);
            let _ = writeln!(
                page,
                "{} on CPU {}: stalled: no operation in {stalls} of {of} seconds",
                record.name, record.cpus
            );
        }
        if !record.parts.is_empty() {
            let parts = counts(&record.parts);
            let _ = writeln!(page, "{} on CPU {}: {parts}", record.name, record.cpus);
        }
        if failed(record) > 0 {
            let kinds = counts(&record.ops_failed);
            let _ = writeln!(page, "{} on CPU {}: failed: {kinds}", record.name, record.cpus);
        }
    }
    page
}

impl Answer<'_> {
    pub(super) fn json(&self) -> Value {
        let with_rate = |record: &StressorRecord| {
            let mut value = json!(record);
            value["ops_per_s"] = json!(per_s(record));
            value
        };
        json!({
            "schema": super::SCHEMA,
            "tool_version": env!("CARGO_PKG_VERSION"),
            "suite": self.suite.id,
            "cpus": self.cpus,
            "measured": self.measured,
            "colocated": !self.cpus.and(self.measured).is_empty(),
            "stressors": self.records.iter().map(with_rate).collect::<Vec<_>>(),
            "limits": self.limits,
            "interrupted": self.interrupted,
        })
    }

    pub(super) fn page(&self) -> String {
        let mut page =
            format!("{}: on CPU {}, measured CPU {}\n\n", self.suite.title, self.cpus, self.measured);
        page.push_str(&stressors(self.records));
        for limit in self.limits {
            let _ = writeln!(page, "note: {limit}");
        }
        if let Some(signal) = self.interrupted {
            let _ = writeln!(page, "note: ended early by {signal}");
        }
        page
    }
}

pub(super) fn list_json(stressors: &[StressorSpec], suites: &[Suite]) -> Value {
    let stressor = |spec: &StressorSpec| {
        json!({
            "name": spec.name, "title": spec.title, "class": spec.class, "operation": spec.operation, "privilege": spec.privilege,
            "needs": spec.needs, "kernel_paths": spec.kernel_paths, "witness": spec.witness, "cleanup": spec.cleanup,
            "danger": spec.danger, "default_rate": spec.default_rate, "memory_bytes": spec.memory_bytes, "processes": spec.processes,
            "modules": spec.modules, "writes": spec.writes, "colocated": spec.colocated, "dangerous": spec.dangerous, "peer": spec.peer,
        })
    };
    json!({
        "schema": "stillcore.disturb-list/1",
        "stressors": stressors.iter().map(stressor).collect::<Vec<_>>(),
        "suites": suites,
    })
}

pub(super) fn list_page(stressors: &[StressorSpec], suites: &[Suite]) -> String {
    let mut page = Page::new(TextOptions::default());
    let widest = stressors.iter().map(|spec| spec.name.len()).max().unwrap_or(0);
    page.item("", "stressors (* only with --dangerous):");
    for spec in stressors {
        let mark = if spec.dangerous { "*" } else { " " };
        page.item(&format!(" {mark}{:widest$} {:9} ", spec.name, spec.class), spec.title);
    }
    page.heading("suites:");
    let widest = suites.iter().map(|suite| suite.id.len()).max().unwrap_or(0);
    for suite in suites {
        let names: Vec<&str> = suite.stressors.iter().map(|member| member.name.as_str()).collect();
        page.item(&format!("  {:widest$} ", suite.id), &format!("{} ({})", suite.title, suite.source));
        page.item(&format!("  {:widest$} ", ""), &names.join(" "));
    }
    page.finish()
}
