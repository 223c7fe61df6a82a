//! What `disturb` prints: what each stressor did and who says so; the lists.

use crate::measure::table::table;
use disturb::suite::Suite;
use disturb::{Status, StressorSpec};
use model::Cpus;
use model::stressor::StressorRecord;
use report::{Page, format};
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

/// The copies of one stressor that ended alike.
struct Copies<'a>(Vec<&'a StressorRecord>);

impl<'a> Copies<'a> {
    /// All records, in the order of their first copies.
    fn of(records: &'a [StressorRecord]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for record in records {
            let is_same = |one: &StressorRecord| one.name == record.name && one.state == record.state;
            match all.iter_mut().find(|copies| is_same(copies.0[0])) {
                Some(copies) => copies.0.push(record),
                None => all.push(Self(vec![record])),
            }
        }
        all
    }

    fn row(&self) -> Vec<String> {
        let (first, sum) = (self.0[0], |of: &dyn Fn(&StressorRecord) -> u64| -> u64 {
            self.0.iter().map(|record| of(record)).sum()
        });
        let copies = if self.0.len() > 1 { format!(" x {}", self.0.len()) } else { String::new() };
        let asked = self.0.iter().map(|record| record.ops_asked).sum::<Option<u64>>();
        let cpus: Cpus = self.0.iter().flat_map(|record| record.cpus.iter()).collect();
        // Copies share some counters, so that their growth cannot be added up.
        let least = self.0.iter().map(|record| &record.witness);
        let least = least.min_by_key(|witness| i128::from(witness.seen) - i128::from(witness.expected));
        let witness = least.map_or_else(String::new, |witness| {
            format!("{} of {}", format::count(witness.seen), format::count(witness.expected))
        });
        vec![
            format!("{}{copies}", first.name),
            cpus.to_string(),
            first.state.word().to_owned(),
            asked.map_or_else(
                || if first.state.happened() { "no limit" } else { "-" }.to_owned(),
                format::count,
            ),
            format::count(sum(&|record| record.ops_ok)),
            format!("{:.1}", self.0.iter().map(|record| per_s(record)).sum::<f64>()),
            format::count(sum(&failed)),
            witness,
        ]
    }

    /// What did not go as it should, a line each; of many copies the first lines.
    fn remarks(&self) -> Vec<String> {
        const SHOWN: usize = 6;
        let mut lines: Vec<String> = self.0.iter().flat_map(|record| remarks(record)).collect();
        if lines.len() > SHOWN {
            let more = lines.split_off(SHOWN).len();
            lines.push(format!("{}: {more} more such lines with --json", self.0[0].name));
        }
        lines
    }
}

fn remarks(record: &StressorRecord) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(reason) = &record.reason {
        lines.push(format!("{}: {reason}", record.state.word()));
    }
    lines.extend(record.confined_by.iter().filter(|word| is_noteworthy(word)).cloned());
    if record.stalls > 0 {
        let (stalls, of) = (record.stalls, (record.t1_ns - record.t0_ns + 500_000_000) / 1_000_000_000);
        lines.push(format!("stalled: no operation in {stalls} of {of} seconds"));
    }
    if !record.parts.is_empty() {
        lines.push(counts(&record.parts));
    }
    if failed(record) > 0 {
        lines.push(format!("failed: {}", counts(&record.ops_failed)));
    }
    lines.iter().map(|line| format!("{} on CPU {}: {line}", record.name, record.cpus)).collect()
}

/// What each stressor was asked for and did, who says so, and what did not go as it should.
pub(crate) fn stressors(records: &[StressorRecord]) -> String {
    let all = Copies::of(records);
    let head = ["stressor", "CPUs", "state", "asked", "operations", "per s", "failed", "witness"];
    let mut page = table(&head, all.iter().map(Copies::row).collect());
    let _ = writeln!(
        page,
        "\nwitness: growth of a counter that is not the stressor's own, of the least it must have grown by"
    );
    for line in all.iter().flat_map(Copies::remarks) {
        let _ = writeln!(page, "{line}");
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
    let mut page = Page::new(crate::terminal::plain_options());
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

#[cfg(test)]
mod tests {
    use super::*;
    use model::stressor::{StressorState, Witness};

    fn record(name: &str, cpu: u32, asked: Option<u64>, done: u64, state: StressorState) -> StressorRecord {
        StressorRecord {
            name: name.to_owned(),
            cpus: Cpus::one(cpu),
            ops_asked: asked,
            ops_ok: done,
            ops_failed: BTreeMap::new(),
            parts: BTreeMap::new(),
            t0_ns: 0,
            t1_ns: 2_000_000_000,
            witness: Witness { name: "counter".to_owned(), expected: done, seen: done + u64::from(cpu) },
            state,
            reason: (state != StressorState::Ok).then(|| format!("{done} operations succeeded")),
            confined_by: Vec::new(),
            rates: Vec::new(),
            stalls: 0,
        }
    }

    #[test]
    fn copies_are_one_row_with_what_was_asked_and_done_and_weak_ones_another() {
        let records = [
            record("u_fork", 0, Some(2000), 1500, StressorState::Ok),
            record("fault", 0, None, 7, StressorState::Ok),
            record("u_fork", 3, Some(2000), 1700, StressorState::Ok),
            record("u_fork", 4, Some(2000), 107, StressorState::Weak),
        ];
        let page = stressors(&records);
        let row = |at: usize| page.lines().nth(at).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(row(0), "stressor CPUs state asked operations per s failed witness");
        assert_eq!(row(2), "u_fork x 2 0,3 ok 4,000 3,200 1600.0 0 1,500 of 1,500");
        assert_eq!(row(3), "fault 0 ok no limit 7 3.5 0 7 of 7");
        assert_eq!(row(4), "u_fork 4 weak 2,000 107 53.5 0 111 of 107");
        assert!(page.contains("u_fork on CPU 4: weak: 107 operations succeeded\n"), "{page}");
    }

    #[test]
    fn remarks_of_many_copies_are_cut_and_counted() {
        let records: Vec<_> =
            (0..20).map(|cpu| record("u_fork", cpu, Some(9), 1, StressorState::Weak)).collect();
        let page = stressors(&records);
        assert_eq!(page.matches(": weak: ").count(), 6);
        assert!(page.contains("u_fork: 14 more such lines with --json"), "{page}");
    }
}
