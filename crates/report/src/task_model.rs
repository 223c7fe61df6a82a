//! What the task model of a program guarantees, in a sentence.

use crate::format;
use analysis::task_model::chain::ChainTimes;
use analysis::task_model::check::Checked;
use analysis::task_model::lock_check::LockWaits;
use analysis::task_model::optimise::Optimised;
use analysis::task_model::shape::{ReleaseKind, TaskModel, ThreadModel};
use analysis::task_model::verdict::{Bound, Guarantee};
use attribution::prio::Prio;
use std::fmt::Write;

/// The verdict, how far it is from the first late job, and what it does not cover. A model that its
/// own jobs refute guarantees nothing.
pub fn sentence(model: &TaskModel, guarantee: Option<&Guarantee>, checked: Option<&Checked>) -> String {
    let refuted = checked.filter(|checked| checked.refuted > 0);
    let text = match (guarantee, refuted) {
        (_, Some(checked)) => format!(
            "Nothing is guaranteed: {} of {} jobs took longer than their bound.",
            format::count(checked.refuted),
            format::count(checked.jobs())
        ),
        (None, None) => "Nothing can be guaranteed: no thread of the program can be modelled.".to_owned(),
        (Some(guarantee), None) => of_guarantee(guarantee) + &culprit(model, guarantee),
    };
    let uncovered = model.threads.iter().filter(|one| one.of_program && !one.is_task() && is_urgent(one));
    match uncovered.count() {
        0 => text,
        1 => text + " 1 thread under a real-time policy has no model, and is not covered.",
        n => format!("{text} {n} threads under real-time policies have no model, and are not covered."),
    }
}

/// The chain that the model is refuted by, if one took longer than its bound: the one that did so
/// most often.
pub fn of_refuted_chain(chains: &[ChainTimes]) -> Option<String> {
    let worst = chains.iter().filter(|chain| chain.refuted > 0).max_by_key(|chain| chain.refuted)?;
    let names: Vec<&str> = worst.threads.iter().map(|(_, name)| name.as_str()).collect();
    Some(format!(
        "Nothing is guaranteed: {} of {} instances of the chain {} took longer than its bound.",
        format::count(worst.refuted),
        format::count(worst.n),
        names.join(" > ")
    ))
}

/// The waits for locks that the model is refuted by, if a job was blocked longer than its bound
/// counts: those of the thread that was so most often.
pub fn of_refuted_waits(waits: &[LockWaits]) -> Option<String> {
    let worst = waits.iter().filter(|one| one.refuted > 0).max_by_key(|one| one.refuted)?;
    let time = |ns: u64| format::ns(i64::try_from(ns).unwrap_or(i64::MAX));
    Some(format!(
        "Nothing is guaranteed: locks blocked {} of {} jobs of {} longer than their bound, for {} of {}.",
        format::count(worst.refuted),
        format::count(worst.jobs),
        worst.comm,
        time(worst.blocked_ns),
        time(worst.bound_ns.unwrap_or(0))
    ))
}

/// Who makes a thread late by keeping its CPU, where that alone is half of the deadline.
fn culprit(model: &TaskModel, guarantee: &Guarantee) -> String {
    let late = guarantee.bounds.iter().filter(|bound| bound.in_time() == Some(false));
    let kept = late.filter_map(|bound| {
        let thread = model.threads.iter().find(|thread| thread.pid == bound.pid)?;
        let kept = thread.kept.as_ref().filter(|kept| Some(kept.ns) >= bound.deadline_ns.map(|ns| ns / 2))?;
        Some((bound.cpu, kept))
    });
    match kept.max_by_key(|(_, kept)| kept.ns) {
        Some((cpu, kept)) => {
            let ns = format::ns(i64::try_from(kept.ns).unwrap_or(i64::MAX));
            format!(" {} kept CPU {cpu} for {ns} without a switch.", kept.by)
        }
        None => String::new(),
    }
}

/// What came of holding the bounds of an earlier model, by name, against these jobs. Other jobs
/// than those that it was made of: how many exceed it has an upper limit (3 / n for none of n, 95
/// %).
pub fn of_earlier(name: &str, checked: &Checked) -> String {
    let jobs = checked.jobs();
    match (jobs, checked.refuted) {
        (0, _) => format!("Nothing was checked: no job of this program has a bound in {name}."),
        (_, 0) => format!(
            "The bounds of {name} held for all {} jobs (at most {} of 10,000 are later, 95 %, if late jobs come singly).",
            format::count(jobs),
            (3.0 / jobs as f64 * 1e4).ceil()
        ),
        (_, refuted) => format!(
            "The bounds of {name} do not hold: {} of {} jobs took longer.",
            format::count(refuted),
            format::count(jobs)
        ),
    }
}

fn is_urgent(thread: &ThreadModel) -> bool {
    thread.prio.is_none_or(|prio| !Prio::new(i64::from(prio)).is_fair())
}

/// A thread by name and number; one that a what-if adds has none.
pub fn named(comm: &str, pid: i32) -> String {
    if pid > 0 { format!("{comm}[{pid}]") } else { format!("{comm} (added)") }
}

/// The same of a guarantee by itself.
pub fn of_guarantee(guarantee: &Guarantee) -> String {
    let late: Vec<&str> = guarantee
        .bounds
        .iter()
        .filter(|bound| bound.in_time() == Some(false))
        .map(|bound| bound.comm.as_str())
        .collect();
    if let Some(text) = of_locks(guarantee) {
        return text;
    }
    match guarantee.schedulable {
        None => return "No thread has a deadline; the bounds of their response times are below.".to_owned(),
        Some(false) => {
            let deadlines = if late.len() == 1 { "its deadline" } else { "their deadlines" };
            return format!("Not schedulable: {} may miss {deadlines}.", late.join(", "));
        }
        Some(true) => {}
    }
    let mut text = match guarantee.spare_ppm {
        Some(ppm) => format!("Schedulable under this model, with {} to spare", percent(ppm)),
        None => "Schedulable under this model, even if all costs grow a hundredfold".to_owned(),
    };
    if let Some(first) = &guarantee.first {
        let grows = if first.grows == first.late { "it" } else { &first.grows };
        let by = percent(first.by_ppm);
        let _ = write!(text, "; the first to miss is {} if {grows} grows by {by}", first.late);
    }
    if let Some(jitter_ns) = guarantee.jitter_ns {
        let jitter = format::ns(i64::try_from(jitter_ns).unwrap_or(i64::MAX));
        let _ = write!(text, "; {jitter} more release jitter breaks it");
        if let Some(worst_ns) = guarantee.worst_jitter_ns {
            let worst = format::ns(i64::try_from(worst_ns).unwrap_or(i64::MAX));
            let _ = write!(text, ", measured worst {worst}");
        }
    }
    text + "."
}

/// Threads that locks leave without a bound; nothing is said of a margin then.
fn of_locks(guarantee: &Guarantee) -> Option<String> {
    let without = || guarantee.bounds.iter().filter(|bound| bound.why.is_some());
    let why = without().find_map(|bound| bound.why.as_deref())?;
    let names = |all: Vec<&Bound>| all.iter().map(|bound| bound.comm.as_str()).collect::<Vec<_>>().join(", ");
    let late = guarantee.bounds.iter().filter(|one| one.why.is_none() && one.in_time() == Some(false));
    let late: Vec<&Bound> = late.collect();
    let mut text = format!("No bound for {}: {why}.", names(without().collect()));
    if !late.is_empty() {
        let _ = write!(text, " {} may miss deadlines.", names(late));
    }
    Some(text)
}

/// A growth: `18 %`, `3.4 times as much` beyond a doubling.
pub(crate) fn percent(ppm: u64) -> String {
    match ppm {
        0..10_000 => format!("{:.1} %", ppm as f64 / 1e4),
        10_000..1_000_000 => format!("{} %", ppm / 10_000),
        _ => format!("a factor of {:.1}", 1.0 + ppm as f64 / 1e6),
    }
}

/// Among what the best was looked for, and what is known of it.
pub fn searched(optimised: &Optimised) -> String {
    let placements = format::plural(optimised.placements, "placement");
    let cpus: model::Cpus = optimised.cpus.iter().copied().collect();
    let among = match (optimised.is_exhaustive, optimised.is_optimal) {
        (true, true) => format!("all {placements} on CPUs {cpus}, each with its best priorities"),
        (true, false) => {
            format!(
                "all {placements} on CPUs {cpus}, priorities as good as found: threads suspend themselves or come in bursts"
            )
        }
        (false, _) => format!("{placements} on CPUs {cpus} that were tried, not all"),
    };
    let found = match (&optimised.proposal, optimised.now.schedulable) {
        (Some(_), _) => "the best",
        (None, Some(true)) => "nothing better was found",
        (None, None) => "nothing to gain: no thread has a deadline",
        (None, Some(false)) => {
            let factor = optimised.best_ppm as f64 / 1e4;
            let none = if optimised.is_exhaustive && optimised.is_optimal {
                "none meets all deadlines"
            } else {
                "none was found that meets all deadlines"
            };
            return format!(
                "proposal: {none}; the best needs costs of {factor:.1} % of these, with the margin ({among})"
            );
        }
    };
    format!("proposal: {found} among {among}")
}

/// How jobs are released, in a word.
pub fn kind(kind: ReleaseKind) -> &'static str {
    match kind {
        ReleaseKind::Periodic => "periodic",
        ReleaseKind::Sporadic => "sporadic",
        ReleaseKind::Curve => "bursts",
        ReleaseKind::None => "-",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use attribution::jobs::shape::Kept;
    use serde_json::json;

    fn model(of_program: bool, prio: i16) -> TaskModel {
        let thread = json!({
            "pid": 7, "comm": "a", "policy": null, "prio": prio, "cpus": "0", "of_program": of_program,
            "waits_in": null, "confidence": null,
            "release": {
                "kind": "none", "period_ns": 0, "offset_ns": null, "jitter_ns": 0, "missed": 0,
                "uncertain": 0, "curve": [], "from_ns": 0, "to_ns": 0, "n": 0
            },
            "cost": { "curve_ns": [], "n": 0, "total_ns": 0 },
            "suspension": { "total_ns": 0, "most": 0 },
            "dispatch_ns": 0, "response_ns": 0, "demand": null, "why": "it ran on CPUs 0,1"
        });
        let model = json!({
            "schema": "stillcore.model/1", "from_ns": 0, "to_ns": 1, "threads": [thread], "chains": [],
            "interference": [], "lost": 0, "statements": []
        });
        serde_json::from_value(model).unwrap()
    }

    fn guarantee() -> Guarantee {
        serde_json::from_value(json!({
            "assumed": { "margin_ppm": 0, "deadlines_ns": {} },
            "bounds": [], "schedulable": true, "spare_ppm": 500_000, "first": null, "jitter_ns": null
        }))
        .unwrap()
    }

    #[test]
    fn what_is_not_covered_is_said_and_what_is_refuted_guarantees_nothing() {
        let said = |model: &TaskModel, checked| sentence(model, Some(&guarantee()), checked);
        assert_eq!(said(&model(true, 120), None), "Schedulable under this model, with 50 % to spare.");
        let uncovered = said(&model(true, 40), None);
        assert!(uncovered.ends_with("1 thread under a real-time policy has no model, and is not covered."));
        let checked =
            Checked { threads: Vec::new(), refuting: Vec::new(), refuted: 3, unmatched: Vec::new() };
        let refuted = said(&model(false, 40), Some(&checked));
        assert_eq!(refuted, "Nothing is guaranteed: 3 of 0 jobs took longer than their bound.");
        assert_eq!(
            of_earlier("a", &checked),
            "Nothing was checked: no job of this program has a bound in a."
        );
    }

    #[test]
    fn how_far_it_is_from_its_first_late_job_is_one_sentence() {
        let first = json!({ "grows": "filter", "by_ppm": 310_000, "late": "control" });
        let guarantee = Guarantee {
            spare_ppm: Some(180_000),
            first: serde_json::from_value(first).unwrap(),
            jitter_ns: Some(412_000),
            worst_jitter_ns: Some(71_000),
            ..guarantee()
        };
        assert_eq!(
            of_guarantee(&guarantee),
            "Schedulable under this model, with 18 % to spare; the first to miss is control if filter grows \
             by 31 %; 412.0 us more release jitter breaks it, measured worst 71.00 us."
        );
    }

    #[test]
    fn a_chain_beyond_its_bound_refutes_the_model() {
        let chain = |refuted| ChainTimes {
            threads: vec![(1, "a".to_owned()), (2, "b".to_owned())],
            bound_ns: Some(5),
            n: 40,
            refuted,
            unlinked: 0,
            longest_ns: 9,
            longest: Vec::new(),
        };
        assert_eq!(of_refuted_chain(&[chain(0)]), None);
        assert_eq!(
            of_refuted_chain(&[chain(0), chain(3)]).unwrap(),
            "Nothing is guaranteed: 3 of 40 instances of the chain a > b took longer than its bound."
        );
    }

    #[test]
    fn locks_that_leave_threads_without_a_bound_come_first() {
        let bound = |comm: &str, bound_ns: Option<u64>, why: Option<&str>| {
            json!({
                "pid": 7, "comm": comm, "cpu": 1, "deadline_ns": 10, "is_assumed": false, "bound_ns": bound_ns,
                "observed_ns": 1, "why": why
            })
        };
        let why = Some("lock 0x10: it does not inherit priorities");
        let bounds = [bound("a", None, why), bound("b", None, why), bound("c", Some(11), None)];
        let bounds = bounds.map(|one| serde_json::from_value(one).unwrap()).to_vec();
        let found = Guarantee { bounds, schedulable: Some(false), spare_ppm: None, ..guarantee() };
        assert_eq!(
            of_guarantee(&found),
            "No bound for a, b: lock 0x10: it does not inherit priorities. c may miss deadlines."
        );
    }

    #[test]
    fn a_wait_beyond_its_bound_refutes_the_model() {
        let waits = |refuted| LockWaits {
            pid: 1,
            comm: "a".to_owned(),
            jobs: 40,
            waiting: 5,
            waited_ns: 9_000_000,
            blocked_ns: 8_000_000,
            bound_ns: Some(5_000_000),
            refuted,
        };
        assert_eq!(of_refuted_waits(&[waits(0)]), None);
        assert_eq!(
            of_refuted_waits(&[waits(0), waits(3)]).unwrap(),
            "Nothing is guaranteed: locks blocked 3 of 40 jobs of a longer than their bound, for 8.000 ms of 5.000 ms."
        );
    }

    #[test]
    fn who_keeps_a_cpu_for_half_a_deadline_is_named() {
        let mut model = model(true, 40);
        (model.threads[0].why, model.threads[0].dispatch_ns) = (None, 9_000_000);
        model.threads[0].kept = Some(Kept { by: "khugepaged".to_owned(), ns: 8_000_000 });
        let bound = json!({
            "pid": 7, "comm": "a", "cpu": 1, "deadline_ns": 10_000_000, "is_assumed": false, "bound_ns": null,
            "observed_ns": 1
        });
        let bounds = vec![serde_json::from_value(bound).unwrap()];
        let late = Guarantee { bounds, schedulable: Some(false), spare_ppm: None, ..guarantee() };
        assert_eq!(
            sentence(&model, Some(&late), None),
            "Not schedulable: a may miss its deadline. khugepaged kept CPU 1 for 8.000 ms without a switch."
        );
        model.threads[0].kept = Some(Kept { by: "khugepaged".to_owned(), ns: 4_000_000 });
        assert_eq!(sentence(&model, Some(&late), None), "Not schedulable: a may miss its deadline.");
    }
}
