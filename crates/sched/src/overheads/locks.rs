//! Overheads beside spin locks, under fixed priorities.
//!
//! Spinning jobs are not suspended: locks add no switch, and what a job costs and when it is
//! released is charged as without them (Brandenburg 2011, chapters 3 and 7). Interrupts are taken
//! while a lock is held, and who waits for it on another core waits for them, too. A lock granted
//! at t and held for h is delayed by interrupts that are under way at t and that come until t + h.
//! Of interrupts alone no core is busy for longer than b = sum ceil((b + J_s) / T_s) c_s, so all of
//! them were to be taken in an interval of b + h:
//!
//! > h = L + sum over sources s of the core, ceil((h + b + J_s) / T_s) c_s
//!
//! For the job itself, which is analysed with the interrupts of its core as tasks above all, they
//! count twice where it blocks others of its core: never too little.

use super::Overheads;
use crate::analyze::{Refusal, Test, beyond};
use crate::locks::{Locks, Protocol, response_times_with_locks};
use crate::system::System;
use crate::task::{MAX_NS, Task, TaskError};
use crate::verdict::Verdict;
use crate::window::{Demand, Limits, Load, Window};

/// Answers for tasks that spin for locks, with the overheads counted. Costs and critical sections
/// of the system are those without.
///
/// Knows `fp-rta`. Preemptable spinning is refused for locks that do not serve in order of arrival.
/// The wait there depends on everything that gets in between, and how much of it is interrupts is
/// unknown.
pub fn analyze_with_locks_and_overheads(
    system: &System,
    test: Test,
    locks: impl Into<Locks>,
    overheads: &Overheads,
    limits: Limits,
) -> Result<Verdict, Refusal> {
    let locks = locks.into();
    if test != Test::FpRta {
        return Err(beyond(test, "overheads beside locks", "fp-rta"));
    }
    if locks.protocol().suspends() {
        let what = "overheads beside locks whose waiters suspend";
        return Err(beyond(test, what, "spin locks, or --locks without overheads"));
    }
    if matches!(locks.protocol(), Protocol::PriorityP | Protocol::PriorityFifoP | Protocol::UnorderedP) {
        let what = "overheads beside locks whose queue interrupts can lengthen";
        return Err(beyond(test, what, "the same without -p, or fifo-p"));
    }
    overheads.check()?;
    let mut charged = system.clone();
    let mut interrupts = Vec::with_capacity(system.cores as usize);
    for (core, indices) in system.by_core().into_iter().enumerate() {
        let tasks: Vec<Task> = indices.iter().map(|&at| system.tasks[at].task).collect();
        let sources = overheads.interrupts(&tasks);
        let held = Held::of(&sources, limits);
        for at in indices {
            let one = &mut charged.tasks[at];
            one.task.cost_ns = in_range(at, crate::Field::Cost, overheads.cost_with_switches(&one.task))?;
            one.task.jitter_ns = in_range(at, crate::Field::Jitter, overheads.jitter(&one.task))?;
            for request in &mut one.requests {
                // Held for ever: longer than any deadline.
                request.length_ns =
                    held.as_ref().and_then(|held| held.time(request.length_ns, limits)).unwrap_or(MAX_NS);
            }
        }
        debug_assert_eq!(interrupts.len(), core);
        interrupts.push(sources);
    }
    let mut verdict = response_times_with_locks(&charged, locks, &interrupts, limits)?;
    verdict.tasks = system.tasks.iter().map(|one| one.task).collect();
    Ok(verdict)
}

fn in_range(task: usize, field: crate::Field, value: u64) -> Result<u64, TaskError> {
    if value > MAX_NS { Err(TaskError::OutOfRange { task, field, value }) } else { Ok(value) }
}

/// How long locks are held on one core.
struct Held<'a> {
    sources: &'a [Task],
    /// Longest time that the core is busy with nothing but interrupts.
    busy_ns: u64,
}

impl<'a> Held<'a> {
    /// None where interrupts leave no time.
    fn of(sources: &'a [Task], limits: Limits) -> Option<Self> {
        let start = sources.iter().fold(0, |sum: u64, source| sum.saturating_add(source.cost_ns));
        let demand = Demand { base: 0, higher: sources, extra_jitter: 0 };
        match demand.least(start, MAX_NS, &mut 0, limits.rounds_per_task) {
            Window::Exact(busy_ns) => Some(Self { sources, busy_ns }),
            Window::Beyond | Window::Undecided => None,
        }
    }

    fn time(&self, length_ns: u64, limits: Limits) -> Option<u64> {
        let demand = Demand { base: length_ns, higher: self.sources, extra_jitter: self.busy_ns };
        let start = Load::of(self.sources, self.busy_ns).lower_bound(length_ns);
        match demand.least(start, MAX_NS, &mut 0, limits.rounds_per_task) {
            Window::Exact(held_ns) => Some(held_ns),
            Window::Beyond | Window::Undecided => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::analyze_with_locks;
    use crate::system::{Access, Request, SystemTask};

    fn system(rows: &[(u64, u64, u32, u64)]) -> System {
        let task = |&(period, cost, core, length_ns): &(u64, u64, u32, u64)| SystemTask {
            core,
            requests: vec![Request { resource: 0, count: 1, length_ns, access: Access::Write }],
            ..Task::implicit(period, cost).into()
        };
        System { cores: 2, tasks: rows.iter().map(task).collect() }
    }

    fn ask(system: &System, protocol: Protocol, overheads: &Overheads) -> Result<Verdict, Refusal> {
        analyze_with_locks_and_overheads(system, Test::FpRta, protocol, overheads, Limits::default())
    }

    #[test]
    fn a_lock_is_held_while_its_core_takes_interrupts() {
        let two = system(&[(1000, 100, 0, 10), (1000, 100, 1, 20)]);
        // Without anything: each spins for the other's section.
        let none = ask(&two, Protocol::FifoNp, &Overheads::default()).unwrap();
        assert_eq!(none, analyze_with_locks(&two, Test::FpRta, Protocol::FifoNp, Limits::default()).unwrap());
        assert_eq!(none.response_times, [Some(120), Some(110)]);
        // A tick of 5 every 50: one may be under way, b = 5, and one comes in 30 + 5: h = 20 + 5.
        let ticks = Overheads { tick_ns: 5, tick_period_ns: 50, ..Overheads::default() };
        let verdict = ask(&two, Protocol::FifoNp, &ticks).unwrap();
        assert_eq!(verdict.spin, [25, 15]);
        // w = 100 + 25 + 5 ceil(w / 50): 140, and 100 + 15 + 5 * 3 = 130.
        assert_eq!(verdict.response_times, [Some(140), Some(130)]);
    }

    #[test]
    fn switches_are_part_of_the_cost_and_not_of_the_section() {
        let two = system(&[(1000, 100, 0, 10), (1000, 100, 1, 20)]);
        let switches = Overheads { context_switch_ns: 3, cache_related_ns: 4, ..Overheads::default() };
        let verdict = ask(&two, Protocol::PhaseFair, &switches).unwrap();
        assert_eq!((verdict.spin, verdict.response_times), (vec![20, 10], vec![Some(130), Some(120)]));
    }

    #[test]
    fn what_is_not_known_is_refused_and_storms_are_late() {
        let two = system(&[(1000, 100, 0, 10), (1000, 100, 1, 20)]);
        let refused = |protocol| ask(&two, protocol, &Overheads::default()).unwrap_err().to_string();
        assert!(refused(Protocol::UnorderedP).contains("whose queue interrupts can lengthen"));
        let edf = analyze_with_locks_and_overheads(
            &two,
            Test::EdfQpa,
            Protocol::MsrpClassic,
            &Overheads::default(),
            Limits::default(),
        );
        assert!(edf.unwrap_err().to_string().contains("expected a system without, or fp-rta"));
        let storm = Overheads { tick_ns: 10, tick_period_ns: 10, ..Overheads::default() };
        assert!(!ask(&two, Protocol::FifoNp, &storm).unwrap().schedulable);
        let huge = Overheads { context_switch_ns: MAX_NS, ..Overheads::default() };
        assert!(ask(&two, Protocol::FifoNp, &huge).unwrap_err().to_string().contains("cost_ns"));
    }
}
