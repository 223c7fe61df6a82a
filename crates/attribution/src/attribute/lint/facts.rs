//! What is set up wrongly, by what was read of `/proc`.

use super::rules::Rule;
use crate::prio::Prio;
use model::watch::WatchRecord;

/// Something that holds all the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fact {
    pub(crate) rule: Rule,
    pub(crate) detail: String,
}

/// Memory that the thread's process had locked, KiB.
pub(crate) fn locked_kib(record: &WatchRecord, tid: i32) -> Option<u64> {
    record.lint.as_ref()?.tasks.iter().find(|task| task.tid == tid)?.locked_kib
}

/// What is set up wrongly for a real-time thread.
pub(crate) fn of_thread(record: &WatchRecord, tid: i32, prio: Prio) -> Vec<Fact> {
    let mut all = Vec::new();
    if prio.realtime() == Some(99) {
        all.push(Fact { rule: Rule::Priority, detail: String::new() });
    }
    let Some(facts) = &record.lint else { return all };
    let Some(task) = facts.tasks.iter().find(|task| task.tid == tid) else { return all };
    // Its own bandwidth bounds a deadline task.
    if !task.has_rttime && prio != Prio::DEADLINE {
        all.push(Fact { rule: Rule::NoBudget, detail: String::new() });
    }
    let inside = task.allowed.and(&facts.isolated);
    let outside = task.allowed.minus(&facts.isolated);
    if !inside.is_empty() && !outside.is_empty() {
        let detail = format!("CPUs {}, of which {inside} isolated", task.allowed);
        all.push(Fact { rule: Rule::Affinity, detail });
    }
    all
}
