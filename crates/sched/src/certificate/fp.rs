//! Certificates under fixed priorities: windows that suffice, or iterates that never do.
//!
//! The least solution of the busy-window equation is at least every iterate from 0 (Knaster-Tarski,
//! as in `window`), so that iterates beyond the deadline prove that a job is late; any solution
//! within it proves the contrary.

use super::{Proof, overloads};
use crate::task::Task;
use crate::window::{Demand, Limits};

/// Most windows or points of a core: beyond, nothing is proved.
const MOST_NUMBERS: usize = 1 << 20;

pub(super) fn prove(tasks: &[Task], limits: Limits) -> Proof {
    let mut all = Vec::with_capacity(tasks.len());
    let mut open = false;
    for index in 0..tasks.len() {
        match windows(tasks, index, limits) {
            Found::Windows(windows) => all.push(windows),
            Found::Late(proof) => return proof,
            Found::Open => open = true,
        }
    }
    if open { Proof::Open } else { Proof::FpInTime { windows_ns: all } }
}

enum Found {
    Windows(Vec<u64>),
    Late(Proof),
    Open,
}

fn windows(tasks: &[Task], index: usize, limits: Limits) -> Found {
    let task = &tasks[index];
    if task.deadline_ns > task.period_ns && overloads(&tasks[..=index]) {
        return Found::Late(Proof::Overload { task: index });
    }
    let mut windows = Vec::new();
    let (mut window, mut rounds) = (0, 0);
    for job in 0.. {
        let Some(arrival) = u64::checked_mul(job, task.period_ns) else { return Found::Open };
        let due = arrival.saturating_add(task.deadline_ns);
        let demand = demand(tasks, index, job);
        loop {
            if rounds >= limits.rounds_per_task || windows.len() >= MOST_NUMBERS {
                return Found::Open;
            }
            rounds += 1;
            let next = demand.at(window);
            if next.saturating_add(task.jitter_ns) > due {
                return points(tasks, index, job, due);
            }
            if next <= window {
                break;
            }
            window = next;
        }
        windows.push(window);
        if window.saturating_add(task.jitter_ns) <= arrival.saturating_add(task.period_ns)
            || repeats(&tasks[..=index], job)
        {
            break;
        }
    }
    Found::Windows(windows)
}

fn demand(tasks: &[Task], index: usize, job: u64) -> Demand<'_> {
    let task = &tasks[index];
    let base = task.cost_ns.saturating_mul(job + 1).saturating_add(task.blocking_ns);
    Demand { base, higher: &tasks[..index], extra_jitter: 0 }
}

/// Iterates from 0 until the job is late.
fn points(tasks: &[Task], index: usize, job: u64, due: u64) -> Found {
    let demand = demand(tasks, index, job);
    let mut points = Vec::new();
    let mut point = 0u64;
    while point.saturating_add(tasks[index].jitter_ns) <= due {
        if points.len() >= MOST_NUMBERS {
            return Found::Open;
        }
        point = demand.at(point);
        points.push(point);
    }
    Found::Late(Proof::FpLate { task: index, job, points_ns: points })
}

/// Whether the windows of later jobs repeat those up to this one, this many periods later: demand
/// in these periods is at most what fits.
fn repeats(tasks: &[Task], job: u64) -> bool {
    let Some(own) = tasks.last() else { return true };
    let length = u128::from(own.period_ns) * (u128::from(job) + 1);
    let whole = |task: &Task| length.is_multiple_of(u128::from(task.period_ns));
    let asked = |task: &Task| (length / u128::from(task.period_ns)).saturating_mul(u128::from(task.cost_ns));
    tasks.iter().all(whole) && tasks.iter().map(asked).fold(0, u128::saturating_add) <= length
}
