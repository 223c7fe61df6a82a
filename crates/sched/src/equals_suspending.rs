//! Tasks of equal priority that suspend themselves.
//!
//! A suspending task interferes as if its release jitter were R - C (`fp_suspension`), with R the
//! bound of its own response time. Where equals wait for each other, none of these bounds is known
//! before the others. Each is first taken to be the deadline: had some job exceeded it, one would
//! have done so first, while all before it were in time, and its bound below would not hold. Bounds
//! found so hold for all jobs, and take the place of the deadlines until nothing changes.

use crate::analyze::{Refusal, Test, beyond};
use crate::fp_rta::response_times;
use crate::fp_suspension::check_deadlines;
use crate::system::System;
use crate::task::{Task, TaskSet};
use crate::verdict::Verdict;
use crate::window::Limits;
use std::ops::Range;

/// Bounds become smaller at most so often.
const MOST_ROUNDS: usize = 8;

/// Response times under fixed priorities where tasks suspend themselves and some are equals.
/// `runs`: the equals, as places in the system.
pub(crate) fn response_times_of_suspending_equals(
    system: &System,
    runs: &[Range<usize>],
    limits: Limits,
) -> Result<Verdict, Refusal> {
    if system.bounded().is_some() {
        return Err(beyond(Test::FpRta, "self-suspension beside curves or a supply", "one of them"));
    }
    let tasks: Vec<Task> = system.tasks.iter().map(|one| one.task).collect();
    let suspensions_ns: Vec<u64> = system.tasks.iter().map(|one| one.suspension_ns).collect();
    check_deadlines(&tasks, &suspensions_ns)?;
    let mut verdict = Verdict::unanswered(&tasks);
    verdict.cores = system.tasks.iter().map(|one| one.core).collect();
    let mut bounds_ns: Vec<u64> = tasks.iter().map(|task| task.deadline_ns).collect();
    for _ in 0..MOST_ROUNDS {
        let found = round(system, runs, &bounds_ns, limits, &mut verdict)?;
        let before = std::mem::replace(&mut verdict.response_times, found);
        let is_final = before == verdict.response_times;
        let in_time = |(at, response): (usize, &Option<u64>)| {
            suspensions_ns[at] == 0
                || response.is_some_and(|response_ns| response_ns <= tasks[at].deadline_ns)
        };
        // One that may be late shifts everything that it may interfere with.
        if let Some(first) = verdict.response_times.iter().enumerate().position(|one| !in_time(one)) {
            let first = runs.iter().find(|run| run.contains(&first)).map_or(first, |run| run.start);
            verdict.response_times[first..].fill(None);
            break;
        }
        if is_final {
            break;
        }
        for (bound_ns, response) in bounds_ns.iter_mut().zip(&verdict.response_times) {
            *bound_ns = response.unwrap_or(*bound_ns).min(*bound_ns);
        }
    }
    verdict.undecided.sort_unstable();
    verdict.undecided.dedup();
    verdict.schedulable = verdict.undecided.is_empty() && verdict.meets_deadlines();
    Ok(verdict)
}

/// The response time of each task if suspending ones have these bounds.
fn round(
    system: &System,
    runs: &[Range<usize>],
    bounds_ns: &[u64],
    limits: Limits,
    verdict: &mut Verdict,
) -> Result<Vec<Option<u64>>, Refusal> {
    let as_jitter = |at: usize| {
        let one = &system.tasks[at];
        let jitter_ns = bounds_ns[at].saturating_sub(one.task.cost_ns).max(one.task.jitter_ns);
        Task { jitter_ns: if one.suspension_ns > 0 { jitter_ns } else { one.task.jitter_ns }, ..one.task }
    };
    let mut found = Vec::with_capacity(system.tasks.len());
    for (at, one) in system.tasks.iter().enumerate() {
        let end = runs.iter().find(|run| run.contains(&at)).map_or(at + 1, |run| run.end);
        let beside = (0..end).filter(|other| *other != at && system.tasks[*other].core == one.core);
        let mut tasks: Vec<Task> = beside.map(as_jitter).collect();
        tasks.push(Task { blocking_ns: one.task.blocking_ns.saturating_add(one.suspension_ns), ..one.task });
        let last = tasks.len() - 1;
        let answer = response_times(&TaskSet::new(tasks)?, limits);
        verdict.rounds += answer.rounds;
        if answer.undecided.contains(&last) {
            verdict.undecided.push(at);
        }
        found.push(answer.response_times[last]);
    }
    Ok(found)
}
