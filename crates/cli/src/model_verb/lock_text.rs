//! The locks of a model in tables: who requests which, and how long jobs were blocked.

use crate::measure::table::table;
use analysis::task_model::lock_check::LockWaits;
use analysis::task_model::lock_shape::Lock;
use analysis::task_model::shape::TaskModel;
use analysis::task_model::verdict::Guarantee;
use attribution::jobs::lock_shape::LockProtocol;
use report::format::{count, ns};
use sched::locks::Protocol;
use std::fmt::Write;
use std::path::Path;

fn time(value: u64) -> String {
    ns(i64::try_from(value).unwrap_or(i64::MAX))
}

/// The command that answers for the tasks of the model.
pub(super) fn sched_command(file: &Path, locks: Option<Protocol>) -> String {
    let locks = locks.map_or_else(String::new, |one| format!(" --locks {}", one.name()));
    format!("stillcore sched analyze --test fp-rta{locks} {}", file.display())
}

/// All of it; empty where no requests are known.
pub(super) fn text(model: &TaskModel, guarantee: Option<&Guarantee>, waits: &[LockWaits]) -> String {
    if !model.locks.every {
        return String::new();
    }
    let mut text = locks(model);
    for (why, names) in unbounded(guarantee) {
        let _ = writeln!(text, "no bound for {}: {why}", names.join(", "));
    }
    text.push_str(&blocked(waits));
    if text.is_empty() { text } else { text + "\n" }
}

/// Who shares which lock.
fn locks(model: &TaskModel) -> String {
    let is_shared = |lock: &&Lock| lock.users.iter().filter(|user| user.taken > 0).count() > 1;
    let head = ["lock", "protocol", "thread", "requests", "held at most", "locked", "waits"];
    let rows: Vec<Vec<String>> = model
        .locks
        .all
        .iter()
        .filter(is_shared)
        .flat_map(|lock| {
            lock.users.iter().filter(|user| user.taken > 0).enumerate().map(move |(at, user)| {
                let first = |text: String| if at == 0 { text } else { String::new() };
                vec![
                    first(lock.name()),
                    first(protocol(lock.protocol).to_owned()),
                    format!("{}[{}]", user.comm, user.pid),
                    if user.requests == 0 { "-".to_owned() } else { count(user.requests) },
                    user.held_ns.map_or_else(|| "-".to_owned(), time),
                    count(user.taken),
                    count(user.waits),
                ]
            })
        })
        .collect();
    let alone = model.locks.all.len() - model.locks.all.iter().filter(is_shared).count();
    let mut text = String::new();
    if !rows.is_empty() {
        text.push_str(&table(&head, rows));
        text.push_str(
            "requests: the most of one job; held: execution with the lock, interrupts not counted\n",
        );
    }
    if alone > 0 {
        let _ = writeln!(
            text,
            "{} have one user, and keep nobody waiting",
            report::format::plural(alone as u64, "lock")
        );
    }
    text
}

fn protocol(protocol: LockProtocol) -> &'static str {
    match protocol {
        LockProtocol::Plain => "plain",
        LockProtocol::Inherits => "inherits",
        LockProtocol::Protects => "protects",
        LockProtocol::Unknown => "not known",
    }
}

/// Reasons, and the threads that have no bound for it.
fn unbounded(guarantee: Option<&Guarantee>) -> Vec<(&str, Vec<String>)> {
    let mut all: Vec<(&str, Vec<String>)> = Vec::new();
    for bound in guarantee.into_iter().flat_map(|guarantee| &guarantee.bounds) {
        let Some(why) = bound.why.as_deref() else { continue };
        let name = format!("{}[{}]", bound.comm, bound.pid);
        match all.iter_mut().find(|(one, _)| *one == why) {
            Some((_, names)) => names.push(name),
            None => all.push((why, vec![name])),
        }
    }
    all
}

fn blocked(waits: &[LockWaits]) -> String {
    let head = ["waits for locks", "jobs", "waited", "longest wait", "blocked at most", "bound", "beyond"];
    let rows: Vec<Vec<String>> = waits
        .iter()
        .map(|one| {
            vec![
                format!("{}[{}]", one.comm, one.pid),
                count(one.jobs),
                count(one.waiting),
                time(one.waited_ns),
                time(one.blocked_ns),
                one.bound_ns.map_or_else(|| "none".to_owned(), time),
                count(one.refuted),
            ]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    table(&head, rows)
        + "blocked: of its waits, while no thread at least as urgent and no interrupt had the CPU\n"
}
