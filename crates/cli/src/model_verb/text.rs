//! The model in words and tables, readable at 100 columns.

use super::command::what_if;
use super::document::Document;
use super::lock_text;
use super::what_if_text;
use super::words::{in_time, time};
use crate::measure::table::table;
use analysis::task_model::chain::ChainTimes;
use analysis::task_model::change::{Change, Value};
use analysis::task_model::check::{Checked, Refutation};
use analysis::task_model::choose::Confidence;
use analysis::task_model::compare::Compared;
use analysis::task_model::optimise::Optimised;
use analysis::task_model::shape::{TaskModel, ThreadModel};
use analysis::task_model::verdict::{Bound, Guarantee};
use report::format::{count, span};
use report::task_model::{
    kind, of_earlier, of_guarantee, of_refuted_chain, of_refuted_waits, searched, sentence,
};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Everything that is printed.
/// `tasks`: the command for the tasks that were written; `again`: the one that answers once more.
pub(super) fn text(document: &Document, tasks: Option<&str>, again: &str) -> String {
    let model = &document.model;
    let (guarantee, checked) = (document.guarantee.as_ref(), document.checked.as_ref());
    let earlier = document.checked_model.as_ref().map(|path| path.display().to_string());
    let mut text = match (&earlier, checked) {
        (Some(name), Some(checked)) => {
            format!("{}\n{}\n", of_earlier(name, checked), sentence(model, guarantee, None))
        }
        _ => format!("{}\n", sentence(model, guarantee, checked)),
    };
    if let Some(waits) = of_refuted_waits(&document.lock_waits) {
        text = format!("{waits}\n{text}");
    }
    if let Some(chain) = of_refuted_chain(&document.chain_times) {
        text = format!("{chain}\n{text}");
    }
    let _ =
        writeln!(text, "of {} in {}\n", span(model.to_ns.abs_diff(model.from_ns)), document.source.display());
    text.push_str(&threads(model));
    if let Some(guarantee) = &document.guarantee {
        text.push_str(&bounds(guarantee));
        text.push_str(&dispatches(model));
    }
    text.push_str(&lock_text::text(model, document.guarantee.as_ref(), &document.lock_waits));
    if let (Some(now), Some(what_if)) = (&document.guarantee, &document.what_if) {
        text.push_str(&what_if_text::text(now, what_if, &document.source));
    }
    if let Some(optimised) = &document.optimised {
        text.push_str(&proposal(optimised, again));
    }
    text.push_str(&without(model));
    text.push_str(&chains(model, &document.chain_times));
    text.push_str(&interference(model));
    if let Some(checked) = checked {
        text.push_str(&check(checked, earlier.is_some(), model));
    }
    if let (Some(compared), Some(earlier)) = (&document.compared, &document.compared_model) {
        text.push_str(&comparison(compared, earlier));
    }
    for statement in &model.statements {
        let _ = writeln!(text, "note: {statement}");
    }
    if let Some(tasks) = tasks {
        let _ = writeln!(text, "tasks: {tasks}");
    }
    text
}

fn name(thread: &ThreadModel) -> String {
    format!("{}[{}]", thread.comm, thread.pid)
}

fn threads(model: &TaskModel) -> String {
    let head =
        ["thread", "CPU", "priority", "released", "every", "jitter", "cost", "asleep", "jobs", "waits in"];
    let rows: Vec<Vec<String>> = model
        .threads
        .iter()
        .filter(|thread| thread.is_task())
        .map(|thread| {
            let release = &thread.release;
            vec![
                name(thread),
                thread.cpus.to_string(),
                thread.realtime().map_or_else(|| "-".to_owned(), |one| one.to_string()),
                kind(release.kind).to_owned(),
                time(release.period_ns),
                time(release.jitter_ns),
                time(thread.cost.most_ns()),
                if thread.suspension.most == 0 { "-".to_owned() } else { time(thread.suspension.total_ns) },
                count(thread.cost.n),
                waits(thread),
            ]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut text = table(&head, rows);
    text.push_str(
        "cost: longest execution of a job, interrupts not counted; asleep: longest suspension of a job\n",
    );
    let missed: u64 = model.threads.iter().map(|thread| thread.release.missed).sum();
    if missed > 0 {
        let _ = writeln!(text, "{} releases are missing from their periods", count(missed));
    }
    text + "\n"
}

fn waits(thread: &ThreadModel) -> String {
    let what = thread.waits_in.clone().unwrap_or_default();
    if thread.confidence == Some(Confidence::Inferred) { format!("{what} (inferred)") } else { what }
}

fn bounds(guarantee: &Guarantee) -> String {
    let head = ["response", "CPU", "bound", "observed max", "deadline", "in time"];
    let rows = guarantee
        .bounds
        .iter()
        .map(|one| {
            let deadline = one.deadline_ns.map_or_else(|| "-".to_owned(), time);
            vec![
                format!("{}[{}]", one.comm, one.pid),
                one.cpu.to_string(),
                one.bound_ns.map_or_else(|| "none".to_owned(), time),
                time(one.observed_ns),
                if one.is_assumed { format!("{deadline} (assumed)") } else { deadline },
                in_time(one).to_owned(),
            ]
        })
        .collect();
    let mut text = table(&head, rows);
    let _ = writeln!(
        text,
        "bound: of the response time from the nominal release (fp-rta), with {} % added to everything observed\n",
        guarantee.assumed.margin_ppm / 10_000
    );
    text
}

/// What the kernel takes, and who kept the CPU meanwhile: the longest of each CPU.
fn dispatches(model: &TaskModel) -> String {
    let mut longest: BTreeMap<String, &ThreadModel> = BTreeMap::new();
    for thread in model.threads.iter().filter(|thread| thread.is_task() && thread.dispatch_ns > 0) {
        let known = longest.entry(thread.cpus.to_string()).or_insert(thread);
        if thread.dispatch_ns > known.dispatch_ns {
            *known = thread;
        }
    }
    let mut text = String::new();
    for (cpu, thread) in longest {
        let waited = time(thread.dispatch_ns);
        let _ = write!(text, "longest dispatch on CPU {cpu}: {waited}, of {}", name(thread));
        if let Some(kept) = &thread.kept {
            let _ = write!(text, "; {} kept the CPU for {} of it", kept.by, time(kept.ns));
        }
        text.push('\n');
    }
    if text.is_empty() {
        return text;
    }
    text + "dispatch: from a wake-up to the switch, tasks at least as urgent not counted\n\n"
}

/// This model against another.
fn comparison(compared: &Compared, earlier: &Path) -> String {
    let head = ["difference", "threads", "median", "largest", "of thread", "before", "now"];
    let percent = |part: f64| format!("{:.2} %", 100.0 * part);
    let rows = compared
        .quantities
        .iter()
        .map(|one| {
            let value = |value: f64| {
                if one.is_rate() { format!("{value:.2}") } else { time(value.round() as u64) }
            };
            vec![
                one.what.clone(),
                count(one.n as u64),
                percent(one.median),
                percent(one.largest),
                one.thread.clone(),
                value(one.before),
                value(one.after),
            ]
        })
        .collect();
    let mut text = table(&head, rows);
    let _ = writeln!(
        text,
        "from {}: {} threads by name, {} of them released alike\n",
        earlier.display(),
        compared.threads,
        compared.alike
    );
    if !compared.unmatched.is_empty() {
        let _ = writeln!(text, "not compared, not once in both: {}\n", compared.unmatched.join(", "));
    }
    text
}

/// The best CPUs and priorities, and how that is known.
fn proposal(optimised: &Optimised, again: &str) -> String {
    let Some(proposal) = &optimised.proposal else { return format!("{}\n\n", searched(optimised)) };
    let rows = proposal
        .then
        .bounds
        .iter()
        .filter_map(|then| {
            let now = optimised.now.bounds.iter().find(|now| now.pid == then.pid)?;
            let of = |value: fn(&Change) -> Option<String>| {
                let named = format!("{}[{}]", then.comm, then.pid);
                let ours = |one: &&Change| one.thread == then.comm || one.thread == named;
                proposal.changes.iter().filter(ours).find_map(value).unwrap_or_else(|| "-".to_owned())
            };
            let bound = |one: &Bound| one.bound_ns.map_or_else(|| "none".to_owned(), time);
            Some(vec![
                format!("{}[{}]", then.comm, then.pid),
                now.cpu.to_string(),
                of(|one| if let Value::Cpu(cpu) = one.value { Some(cpu.to_string()) } else { None }),
                of(|one| if let Value::Priority(prio) = one.value { Some(prio.to_string()) } else { None }),
                bound(now),
                bound(then),
                then.deadline_ns.map_or_else(|| "-".to_owned(), time),
            ])
        })
        .collect();
    let head = ["proposal", "CPU", "new CPU", "new priority", "bound", "new bound", "deadline"];
    let mut text = format!("{}now:  {}\n", table(&head, rows), of_guarantee(&optimised.now));
    let _ = writeln!(text, "then: {}", of_guarantee(&proposal.then));
    let _ = writeln!(text, "{}", searched(optimised));
    let _ = writeln!(text, "same answer: {}", what_if(again, &proposal.changes));
    for assumed in &optimised.assumed {
        let _ = writeln!(text, "assumed: {assumed}");
    }
    text + "\n"
}

fn without(model: &TaskModel) -> String {
    let mut text = String::new();
    // Others compete with the program, and are listed as such.
    for thread in model.threads.iter().filter(|thread| thread.of_program) {
        if let Some(why) = &thread.why {
            let _ = writeln!(text, "not modelable: {}: {why}", name(thread));
        }
    }
    if text.is_empty() { text } else { text + "\n" }
}

/// Who releases whom, and how long each chain takes from end to end.
fn chains(model: &TaskModel, times: &[ChainTimes]) -> String {
    let mut text = String::new();
    for link in &model.chains {
        let _ = writeln!(
            text,
            "{}[{}] releases {}[{}]: {} of {} jobs",
            link.from_comm,
            link.from,
            link.to_comm,
            link.to,
            count(link.n),
            count(link.of)
        );
    }
    let head = ["chain, from end to end", "bound", "observed max", "instances", "beyond"];
    let rows: Vec<Vec<String>> = times
        .iter()
        .map(|one| {
            let names: Vec<&str> = one.threads.iter().map(|(_, name)| name.as_str()).collect();
            vec![
                names.join(" > "),
                one.bound_ns.map_or_else(|| "none".to_owned(), time),
                if one.n == 0 { "-".to_owned() } else { time(one.longest_ns) },
                count(one.n),
                count(one.refuted),
            ]
        })
        .collect();
    if !rows.is_empty() {
        text.push_str(&table(&head, rows));
    }
    if text.is_empty() { text } else { text + "\n" }
}

fn interference(model: &TaskModel) -> String {
    let head = ["competes on CPU", "what", "times", "longest", "burst", "share"];
    let rows: Vec<Vec<String>> = model
        .interference
        .iter()
        .map(|one| {
            vec![
                one.cpu.to_string(),
                one.what.clone(),
                count(one.demand.n),
                time(one.demand.longest_ns),
                time(one.demand.burst_ns),
                format!("{:.2} %", one.demand.rate * 100.0),
            ]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    table(&head, rows) + "in any interval at most the burst, and the share of it\n\n"
}

/// Jobs and their bounds. The first line has the count where the bounds are of an earlier model.
fn check(checked: &Checked, is_earlier: bool, model: &TaskModel) -> String {
    let mut text = String::new();
    if checked.refuted > 0 {
        text.push_str("jobs that took longer than their bound, the longest beyond it first\n");
        let jobs = checked.refuting.iter().map(|job| refutation(job, model.from_ns, "the first event"));
        jobs.for_each(|job| text.push_str(&job));
    } else if !is_earlier && checked.jobs() > 0 {
        let _ = writeln!(
            text,
            "checked: none of {} jobs took longer than its bound, which is of the same jobs (--check takes others)",
            count(checked.jobs())
        );
    }
    for one in &checked.unmatched {
        let _ = writeln!(text, "not checked: {one}");
    }
    if text.is_empty() { text } else { text + "\n" }
}

/// A job beyond its bound. `what` was at `from_ns`.
pub(super) fn refutation(job: &Refutation, from_ns: i64, what: &str) -> String {
    let at = job.release_ns.saturating_sub(from_ns).max(0).unsigned_abs();
    let mut text = format!(
        "  {}[{}], released {} after {what}: {} of {}; executed {} of {}",
        job.comm,
        job.pid,
        time(at),
        time(job.response_ns),
        time(job.bound_ns),
        time(job.executed_ns),
        time(job.cost_ns)
    );
    if job.suspension_ns > 0 || job.suspended_ns > 0 {
        let _ = write!(text, ", asleep {} of {}", time(job.suspended_ns), time(job.suspension_ns));
    }
    let else_ns = job.response_ns.saturating_sub(job.executed_ns).saturating_sub(job.suspended_ns);
    let _ = write!(text, "; neither for {}", time(else_ns));
    if let Some(kept) = &job.kept {
        let _ = write!(text, ", {} of which {} kept the CPU", time(kept.ns), kept.by);
    }
    if let Some(what) = job.contradicts() {
        let _ = write!(text, ": {what}");
    }
    text + "\n"
}
