//! From the model to tasks of `stillcore sched`: fixed priorities as `SCHED_FIFO` has them, each
//! core by itself.

pub use super::assumed::{Assumed, Of};
use super::lock_rules::rule;
use super::lock_tasks::{self, is_general, settle};
use super::shape::{Interference, Release, ReleaseKind, TaskModel, ThreadModel};
use infer::bucket::Bucket;
use model::Cpus;
use sched::asked::{Question, Unit};
use sched::locks::Protocol;
use sched::{Bounds, MAX_NS, System, SystemTask, Task, equals};
use serde_json::json;
use std::collections::BTreeMap;

/// The pieces into which demand without a model is cut: a bound exceeds the demand by at most one.
const LARGEST_PIECE_NS: u64 = 20_000;

/// The tasks, and who each is.
#[derive(Debug, Clone, PartialEq)]
pub struct Tasks {
    /// The question to `stillcore sched`, in priority order.
    pub question: Question,
    /// Who each task of it is.
    pub of: Vec<Of>,
    /// The CPU of each core of it.
    pub cpus: Vec<u32>,
    /// The rank of each task, 0 first; equal ranks are equal priorities.
    pub ranks: Vec<usize>,
    /// How requests are served, where there are any.
    pub locks: Option<Protocol>,
    /// Threads that locks leave without a bound, by number, and why.
    pub unbounded: BTreeMap<i32, String>,
}

/// Makes the tasks; `None` where no thread can be analysed.
pub fn tasks(model: &TaskModel, assumed: &Assumed) -> Option<Tasks> {
    let threads = model.threads.iter().enumerate().filter(|(_, thread)| thread.is_task());
    let cpus: Cpus = threads.clone().flat_map(|(_, thread)| thread.cpus.iter()).collect();
    let cpus: Vec<u32> = cpus.iter().collect();
    let core = |cpu: u32| cpus.iter().position(|one| *one == cpu).map(|at| at as u32);
    let mut ruling = rule(model);
    settle(model, &mut ruling);
    let general = is_general(&ruling);
    // The analysis of suspensions knows periods alone, as does that of locks between CPUs.
    let by_curve = !general && !threads.clone().any(|(_, thread)| thread.suspension.total_ns > 0);
    // Interrupts go before everything.
    let mut all: Vec<(i32, Of, SystemTask)> = threads
        .filter_map(|(at, thread)| {
            let task = of_thread(thread, assumed);
            let task = if by_curve { with_curve(task, thread, assumed) } else { task };
            Some((
                i32::from(thread.prio?),
                Of::Thread(at),
                SystemTask { core: core(thread.cpus.iter().next()?)?, ..task },
            ))
        })
        .collect();
    all.extend(model.interference.iter().enumerate().filter_map(|(at, one)| {
        let prio = one.prio.map_or(i32::MIN, i32::from);
        Some((
            prio,
            Of::Interference(at),
            SystemTask { core: core(one.cpu)?, ..of_interference(one, assumed) },
        ))
    }));
    lock_tasks::add(&mut all, model, assumed, &ruling, core);
    all.sort_by_key(|(prio, of, _)| (*prio, matches!(of, Of::Thread(_))));
    let mut prios: Vec<i32> = all.iter().map(|(prio, ..)| *prio).collect();
    if general {
        // Threads whose order matters have priorities of their own.
        prios = (0..).take(all.len()).collect();
    }
    let mut distinct = prios.clone();
    distinct.dedup();
    let ranks = prios.iter().filter_map(|prio| distinct.binary_search(prio).ok()).collect();
    let of: Vec<Of> = all.iter().map(|(_, of, _)| *of).collect();
    let tasks: Vec<SystemTask> = all.into_iter().map(|(.., task)| task).collect();
    let question = Question {
        unit: Unit::Ns,
        places: (0..tasks.len()).collect(),
        placed: true,
        equals: equals(&prios),
        system: System { cores: cpus.len() as u32, tasks },
    };
    of.iter().any(|one| matches!(one, Of::Thread(_))).then_some(Tasks {
        question,
        of,
        cpus,
        ranks,
        locks: ruling.protocol,
        unbounded: ruling.unbounded,
    })
}

pub(super) fn of_thread(thread: &ThreadModel, assumed: &Assumed) -> SystemTask {
    let period_ns = thread.release.period_ns.clamp(1, MAX_NS);
    let suspends = thread.suspension.total_ns > 0;
    // The analysis of suspensions needs a deadline within the period; without suspensions and
    // without a deadline, the bound of the response time is wanted however long it is.
    let longest_ns = if suspends { period_ns } else { MAX_NS };
    let deadline_ns = assumed.deadline_ns(thread).map_or(longest_ns, |(ns, _)| ns.min(longest_ns));
    let dispatches = thread.suspension.most.saturating_add(1);
    let task = Task {
        period_ns,
        deadline_ns: deadline_ns.max(1),
        cost_ns: assumed.more(thread.cost.most_ns()).max(1),
        jitter_ns: assumed.more(thread.release.jitter_ns),
        blocking_ns: assumed.more(thread.dispatch_ns).saturating_mul(dispatches).min(MAX_NS),
    };
    SystemTask {
        suspension_ns: assumed.more(thread.suspension.total_ns),
        suspensions: if suspends { u32::try_from(thread.suspension.most).unwrap_or(u32::MAX) } else { 0 },
        ..task.into()
    }
}

/// Whether a thread has no period, and a curve that limits its releases.
pub(super) fn has_curve(thread: &ThreadModel) -> bool {
    thread.release.kind != ReleaseKind::Periodic && !thread.release.curve.is_empty()
}

/// The same by the curve of its releases, where only that limits them: period and jitter describe
/// many in a long time, and a bound from them counts that jitter as lateness of each job.
fn with_curve(task: SystemTask, thread: &ThreadModel, assumed: &Assumed) -> SystemTask {
    let Release { curve, late_ns, .. } = &thread.release;
    if !has_curve(thread) {
        return task;
    }
    // As much shorter as everything else is longer.
    let shorter = |ns: i64| {
        let ns = u128::from((ns - 1).max(0).unsigned_abs()) * 1_000_000;
        u64::try_from(ns / (1_000_000 + u128::from(assumed.margin_ppm))).unwrap_or(MAX_NS).min(MAX_NS)
    };
    let intervals_ns: Vec<u64> = curve.iter().map(|(length_ns, _)| shorter(*length_ns)).collect();
    if intervals_ns.last().is_none_or(|last_ns| *last_ns == 0) {
        return task;
    }
    let period_ns = intervals_ns[0].max(1);
    // The curve is of wake-ups. A response counts from what a timer intended.
    let blocking_ns = task.task.blocking_ns.saturating_add(assumed.more(*late_ns)).min(MAX_NS);
    SystemTask {
        task: Task { period_ns, jitter_ns: 0, blocking_ns, ..task.task },
        bounds: Some(Box::new(Bounds { intervals_ns, ..Bounds::default() })),
        ..task
    }
}

/// A leaky bucket as a task: small jobs of C, as many as the rate needs, with so much jitter that
/// the burst comes at once. In any interval of length d, ⌈(d + J) / T⌉ · C is at least
/// burst + rate · d if T = C / rate and J = burst / rate, and exceeds it by at most C.
pub(super) fn of_interference(one: &Interference, assumed: &Assumed) -> SystemTask {
    let Bucket { rate, burst_ns, longest_ns, .. } = one.demand;
    let cost_ns = assumed.more(longest_ns).clamp(1, LARGEST_PIECE_NS);
    let rate = rate * (1.0 + assumed.margin_ppm as f64 / 1e6);
    let in_ns = |value: f64| (value as u64).clamp(1, MAX_NS);
    let task = Task {
        deadline_ns: MAX_NS,
        jitter_ns: in_ns((assumed.more(burst_ns) as f64 / rate).ceil()),
        ..Task::implicit(in_ns((cost_ns as f64 / rate).floor()), cost_ns)
    };
    task.into()
}

/// The question as a line for `stillcore sched analyze --test fp-rta`, with `--locks` where tasks
/// have requests.
pub fn line(tasks: &Tasks) -> serde_json::Value {
    let one = |(task, rank): (&SystemTask, &usize)| {
        let mut one = json!({
            "deadline": task.task.deadline_ns,
            "cost": task.task.cost_ns,
            "blocking": task.task.blocking_ns,
            "core": task.core,
            "priority": rank,
        });
        if let Some(bounds) = &task.bounds {
            let counts = 2_u64..;
            one["arrivals"] = bounds.intervals_ns.iter().zip(counts).map(|(ns, n)| json!([ns, n])).collect();
        } else {
            one["period"] = task.task.period_ns.into();
            one["jitter"] = task.task.jitter_ns.into();
            one["suspension"] = task.suspension_ns.into();
        }
        if tasks.locks.is_some() && task.suspensions > 0 {
            one["suspensions"] = task.suspensions.into();
        }
        if !task.requests.is_empty() {
            let request = |one: &sched::Request| json!({ "resource": one.resource, "count": one.count, "length": one.length_ns });
            one["requests"] = task.requests.iter().map(request).collect();
        }
        one
    };
    let system = &tasks.question.system;
    let all: Vec<_> = system.tasks.iter().zip(&tasks.ranks).map(one).collect();
    json!({ "unit": "ns", "cores": system.cores, "tasks": all })
}
