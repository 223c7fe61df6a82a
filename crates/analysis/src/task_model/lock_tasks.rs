//! Requests for locks as tasks of `stillcore sched` have them.

use super::assumed::{Assumed, Of};
use super::lock_rules::Ruling;
use super::lock_shape::{Request, User};
use super::shape::{TaskModel, ThreadModel};
use sched::locks::Protocol;
use sched::{Access, MAX_NS, SystemTask, Task};

/// A task that is being made: its priority, whose it is, and the task.
pub(super) type Placed = (i32, Of, SystemTask);

/// Whether the bound is that of several cores, or of a protocol other than inheritance: it knows
/// neither suspensions, equals, curves, nor blocking by something else.
pub(super) fn is_general(ruling: &Ruling) -> bool {
    ruling.protocol.is_some_and(|protocol| ruling.is_global || protocol != Protocol::Pip)
}

/// Refuses what no bound covers together.
pub(super) fn settle(model: &TaskModel, ruling: &mut Ruling) {
    if is_general(ruling)
        && let Some(why) = beside(model, ruling)
    {
        refuse_all(model, ruling, &why);
    }
    // Whoever has no bound keeps others waiting, on other CPUs too.
    while is_general(ruling) {
        let is_unbounded =
            |at: &&u32| users(model, **at).any(|(_, one)| ruling.unbounded.contains_key(&one.pid));
        let Some(at) = ruling.counted.iter().find(is_unbounded).copied() else { return };
        let why = format!("lock {}: a thread that uses it has no bound", model.locks.all[at as usize].name());
        refuse(model, ruling, at, &why);
    }
}

fn refuse_all(model: &TaskModel, ruling: &mut Ruling, why: &str) {
    let counted: Vec<u32> = ruling.counted.iter().copied().collect();
    for at in counted {
        let why = format!("lock {}: {why}", model.locks.all[at as usize].name());
        refuse(model, ruling, at, &why);
    }
}

fn refuse(model: &TaskModel, ruling: &mut Ruling, at: u32, why: &str) {
    let users: Vec<(&User, &ThreadModel)> = users(model, at).collect();
    let ceiling = users.iter().filter_map(|(_, thread)| thread.prio).min().unwrap_or(i16::MAX);
    ruling.refuse(model, &super::lock_rules::cpus(&users), ceiling, why);
    ruling.counted.remove(&at);
    if ruling.counted.is_empty() {
        ruling.protocol = None;
    }
}

/// What the general bound does not go with.
fn beside(model: &TaskModel, ruling: &Ruling) -> Option<String> {
    let name = ruling.protocol.map_or("", Protocol::name);
    let bound = if name == Protocol::Pip.name() {
        "between CPUs the bound of priority inheritance".to_owned()
    } else {
        format!("the bound of {name}")
    };
    let tasks: Vec<&ThreadModel> = model.threads.iter().filter(|one| one.is_task()).collect();
    if let Some(one) = tasks.iter().find(|one| one.suspension.total_ns > 0) {
        return Some(format!("{bound} knows no self-suspension, and {} suspends itself", one.comm));
    }
    let locks = |one: &ThreadModel| one.requests.iter().any(|request| ruling.counted.contains(&request.lock));
    for (at, one) in tasks.iter().enumerate() {
        let equal = tasks[at + 1..]
            .iter()
            .find(|other| other.prio == one.prio && (other.cpus == one.cpus || locks(one) && locks(other)));
        if let Some(other) = equal {
            return Some(format!(
                "{bound} knows no equal priorities, which {} and {} have",
                one.comm, other.comm
            ));
        }
    }
    None
}

/// The users of a lock that took it, and their threads.
fn users(model: &TaskModel, at: u32) -> impl Iterator<Item = (&User, &ThreadModel)> {
    let users = model.locks.all.get(at as usize).map(|lock| &lock.users[..]).unwrap_or_default();
    users
        .iter()
        .filter(|user| user.taken > 0)
        .filter_map(|user| Some((user, model.threads.iter().find(|one| one.pid == user.pid)?)))
}

/// Adds the requests for the locks that are counted, and a task for each thread that holds one and
/// has no model: its sections count, wherever they come.
pub(super) fn add(
    all: &mut Vec<Placed>,
    model: &TaskModel,
    assumed: &Assumed,
    ruling: &Ruling,
    core: impl Fn(u32) -> Option<u32>,
) {
    let general = is_general(ruling);
    if general {
        in_periods(all, model, assumed);
    }
    for (_, of, task) in all.iter_mut() {
        if let Of::Thread(at) = of {
            let thread = &model.threads[*at];
            let counted = thread.requests.iter().filter(|one| ruling.counted.contains(&one.lock));
            task.requests = counted.map(|one| request(model, assumed, thread, *one, general)).collect();
            let longest_ns = task.requests.iter().map(|one| one.length_ns.saturating_mul(one.count)).max();
            task.task.cost_ns = task.task.cost_ns.max(longest_ns.unwrap_or(0)).min(MAX_NS);
        }
        if general {
            // A suspended waiter hands its CPU over, and may be dispatched late again and again.
            let waits = task.requests.iter().fold(1u64, |sum, one| sum.saturating_add(one.count));
            let late_ns = task.task.blocking_ns.saturating_mul(waits);
            task.task.cost_ns = task.task.cost_ns.saturating_add(late_ns).min(MAX_NS);
            task.task.blocking_ns = 0;
            task.task.deadline_ns = task.task.deadline_ns.min(task.task.period_ns);
        }
    }
    let others = model.threads.iter().filter(|thread| !thread.is_task());
    for thread in others {
        let requests: Vec<Request> = ruling
            .counted
            .iter()
            .filter_map(|at| {
                let (user, _) = users(model, *at).find(|(user, _)| user.pid == thread.pid)?;
                Some(Request { lock: *at, count: 1, length_ns: user.held_ns? })
            })
            .collect();
        let Some(core) = thread.cpus.iter().next().and_then(&core).filter(|_| !requests.is_empty()) else {
            continue;
        };
        let requests: Vec<sched::Request> =
            requests.into_iter().map(|one| request(model, assumed, thread, one, general)).collect();
        let cost_ns = requests.iter().map(|one| one.length_ns).max().unwrap_or(1).max(1);
        let task = Task::implicit(MAX_NS, cost_ns);
        let prio = thread.prio.map_or(i32::MAX, i32::from);
        all.push((prio, Of::Holder(thread.pid), SystemTask { core, requests, ..task.into() }));
    }
}

/// Interference as tasks of which one job is pending at a time: with the period P, all that a leaky
/// bucket lets through in P. In an interval of length d, ⌈d / P⌉ (burst + rate · P) is at least
/// burst + rate · d. What is below all threads of its CPU delays none.
fn in_periods(all: &mut Vec<Placed>, model: &TaskModel, assumed: &Assumed) {
    let threads: Vec<(i32, u32, u64)> = all
        .iter()
        .filter(|(_, of, _)| matches!(of, Of::Thread(_)))
        .map(|(prio, _, task)| (*prio, task.core, task.task.period_ns))
        .collect();
    all.retain_mut(|(prio, of, task)| {
        let Of::Interference(at) = of else { return true };
        let here = threads.iter().filter(|(_, core, _)| *core == task.core);
        if !here.clone().any(|(other, ..)| *prio <= *other) {
            return false;
        }
        let demand = &model.interference[*at].demand;
        let period_ns = here.map(|(.., period_ns)| *period_ns).min().unwrap_or(MAX_NS);
        let share_ns = (demand.rate * period_ns as f64).ceil() as u64;
        let cost_ns = assumed.more(demand.burst_ns.saturating_add(share_ns)).max(1);
        task.task = Task::implicit(period_ns, cost_ns);
        true
    });
}

/// A section is over when a thread at least as urgent that waits for it has its CPU. `general`: a
/// holder on another CPU than the waiter's may be dispatched late as well, as others are there.
fn request(
    model: &TaskModel,
    assumed: &Assumed,
    thread: &ThreadModel,
    one: Request,
    general: bool,
) -> sched::Request {
    let is_late = |user: &&ThreadModel| user.is_task() && user.pid != thread.pid && user.prio <= thread.prio;
    let waiters = users(model, one.lock).map(|(_, user)| user).filter(is_late);
    let waiter_ns = waiters.map(|user| assumed.more(user.dispatch_ns)).max().unwrap_or(0);
    let beside = model.threads.iter().filter(|other| general && other.is_task() && other.cpus == thread.cpus);
    let holder_ns = beside.map(|other| assumed.more(other.dispatch_ns)).max().unwrap_or(0);
    let late_ns = waiter_ns.saturating_add(holder_ns);
    let length_ns = assumed.more(one.length_ns).saturating_add(late_ns).clamp(1, MAX_NS);
    sched::Request { resource: one.lock, count: one.count, length_ns, access: Access::Write }
}
