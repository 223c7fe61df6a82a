//! EDF on each core, FIFO spin locks between cores: processor demand with blocking.
//!
//! Classic: costs inflated by the classic MSRP bound, arrival blocking by interval length (Gai,
//! Lipari and Di Natale, RTSS 2001; Baruah, "Resource sharing in EDF-scheduled systems: a closer
//! look", RTSS 2006). Exact for its program: how much other cores delay a busy interval in all, by
//! the structure of `longest` (Biondi and Brandenburg, "Lightweight real-time synchronization under
//! P-EDF on symmetric and asymmetric multiprocessors", ECRTS 2016, constraints 8 to 17).
//!
//! Release jitter takes J from a deadline where demand is counted, and from nothing where a job may
//! block: a job that blocks an interval of length t was released before it and has D > t. A local
//! request blocks where its resource has a user whose deadline is no longer than that of some job
//! in the interval; SchedCAT leaves out the case that they are the same task.

use super::longest::{Limits as Room, longest};
use super::sharing::{Claim, Resource, Sharing};
use super::{Blocking, Charge, LocalLocks, Protocol, msrp};
use crate::analyze::Refusal;
use crate::edf_qpa::{Shifted, demand, last_deadline_before, longest_interval};
use crate::locks::answer::{check, unanswered};
use crate::system::System;
use crate::task::{Task, TaskSet};
use crate::verdict::Verdict;
use crate::window::Limits;

/// Whether all deadlines are met under EDF and classic MSRP. No response times.
pub(super) fn classic(system: &System, limits: Limits) -> Result<Verdict, Refusal> {
    check(system, Protocol::MsrpClassic)?;
    let sharing = Sharing::of(system, LocalLocks::Ceiling);
    let bound = msrp::classic(&sharing);
    let mut verdict = unanswered(system);
    crate::locks::answer::show(system, &bound, &mut verdict);
    verdict.schedulable = true;
    for (core, indices) in system.by_core().iter().enumerate().filter(|(_, indices)| !indices.is_empty()) {
        let tasks = indices.iter().map(|&at| {
            crate::locks::answer::charged(system.tasks[at].task, Charge::SpinInflates, bound.spin[at], 0)
        });
        let set = TaskSet::new(tasks.collect())?;
        let local = Local::of(&sharing, core as u32, indices, set.tasks());
        settle(local.meets_inflated(set.tasks(), limits, &mut verdict.rounds), indices, &mut verdict);
    }
    Ok(verdict)
}

/// Whether all deadlines are met under EDF and MSRP, blocking counted for whole intervals. No
/// response times, no blocking by task.
pub(super) fn exact(system: &System, limits: Limits) -> Result<Verdict, Refusal> {
    check(system, Protocol::MsrpLp)?;
    let sharing = Sharing::of(system, LocalLocks::Ceiling);
    let mut verdict = unanswered(system);
    let nothing = vec![0; system.tasks.len()];
    let none = Blocking { spin: nothing.clone(), arrival: nothing };
    crate::locks::answer::show(system, &none, &mut verdict);
    verdict.schedulable = true;
    for (core, indices) in system.by_core().iter().enumerate().filter(|(_, indices)| !indices.is_empty()) {
        let set = system.set_of(indices)?;
        let local = Local::of(&sharing, core as u32, indices, set.tasks());
        settle(local.meets_exactly(limits, &mut verdict.rounds), indices, &mut verdict);
    }
    Ok(verdict)
}

fn settle(answer: Option<bool>, indices: &[usize], verdict: &mut Verdict) {
    verdict.schedulable &= answer == Some(true);
    if answer.is_none() {
        verdict.undecided.extend(indices);
    }
}

/// One core, seen from an interval of its time.
struct Local<'a> {
    sharing: &'a Sharing,
    core: u32,
    indices: &'a [usize],
    /// Deadlines less jitter, with costs as charged.
    shifted: Vec<Shifted>,
    /// Blocking that the system brings, the largest of any task.
    other_ns: u64,
    /// Some task's cost or jitter leaves it no time at all.
    hopeless: bool,
}

impl<'a> Local<'a> {
    fn of(sharing: &'a Sharing, core: u32, indices: &'a [usize], tasks: &[Task]) -> Self {
        let shift = |task: &Task| Shifted {
            period: task.period_ns,
            deadline: task.deadline_ns.saturating_sub(task.jitter_ns),
            cost: task.cost_ns,
        };
        let shifted: Vec<Shifted> = tasks.iter().map(shift).collect();
        let hopeless = shifted.iter().any(|task| task.cost > task.deadline);
        let other_ns = tasks.iter().map(|task| task.blocking_ns).max().unwrap_or(0);
        Self { sharing, core, indices, shifted, other_ns, hopeless }
    }

    /// The resources whose local requests may block an interval of this length, each with its
    /// longest such request.
    fn blockers(&self, interval_ns: u64) -> impl Iterator<Item = (&'a Resource, usize, u64)> + '_ {
        let sharing = self.sharing;
        let inside =
            self.indices.iter().zip(&self.shifted).filter(move |(_, task)| task.deadline <= interval_ns);
        let longest_inside = inside.map(|(&at, _)| sharing.tasks[at].deadline_ns).max();
        let later = self.indices.iter().filter(move |&&at| sharing.tasks[at].deadline_ns > interval_ns);
        let uses = later.flat_map(move |&at| &sharing.tasks[at].uses);
        let resources =
            uses.map(move |one| (&sharing.resources[one.resource], one.resource, one.length_ns()));
        resources.filter(move |(resource, ..)| {
            resource.is_global() || longest_inside.is_some_and(|most| resource.shortest_deadline_ns <= most)
        })
    }

    /// Processor demand of costs that contain their spinning.
    fn meets_inflated(&self, tasks: &[Task], limits: Limits, rounds: &mut u64) -> Option<bool> {
        let utilization: f64 = tasks.iter().map(Task::utilization).sum();
        if self.hopeless || utilization > 1.0 + 1e-9 {
            return Some(false);
        }
        let cap = limits.rounds_per_task.saturating_mul(tasks.len() as u64);
        // Nothing blocks an interval longer than all deadlines; there, demand alone counts.
        let most = tasks.iter().map(|task| task.deadline_ns).max().unwrap_or(0);
        let longest =
            longest_interval(tasks, &self.shifted, self.other_ns, utilization, rounds, cap)?.max(most);
        let span = |resource: &Resource, length_ns: u64| {
            let others = resource.any.remote(self.core);
            let wait = others.fold(0, |sum: u64, claims| sum.saturating_add(claims[0].length_ns));
            length_ns.saturating_add(wait)
        };
        let arrival = |t: u64| {
            self.blockers(t).map(|(resource, _, length_ns)| span(resource, length_ns)).max().unwrap_or(0)
        };
        let any = self.indices.iter().flat_map(|&at| &self.sharing.tasks[at].uses);
        let at_most =
            any.map(|one| span(&self.sharing.resources[one.resource], one.length_ns())).max().unwrap_or(0);
        let mut next = last_deadline_before(&self.shifted, longest.saturating_add(1));
        while let Some(t) = next {
            if *rounds >= cap {
                return None;
            }
            *rounds += 1;
            let demand = demand(&self.shifted, t).saturating_add(self.other_ns);
            if demand.saturating_add(arrival(t)) > t {
                return Some(false);
            }
            // Arrival blocking can be longer for a shorter interval: only below demand with the
            // longest are all intervals harmless.
            let harmless = demand.saturating_add(at_most).saturating_add(1);
            next = last_deadline_before(&self.shifted, t.min(harmless));
        }
        Some(true)
    }

    /// Processor demand with all delay by other cores, interval by interval, up to the end of the
    /// longest busy interval.
    fn meets_exactly(&self, limits: Limits, rounds: &mut u64) -> Option<bool> {
        if self.hopeless {
            return Some(false);
        }
        let cap = limits.rounds_per_task.saturating_mul(self.indices.len() as u64);
        let any = self.indices.iter().flat_map(|&at| &self.sharing.tasks[at].uses);
        let at_most = any.fold(0, |most: u64, one| {
            let cores = self.sharing.resources[one.resource].any.remote(self.core);
            let met = cores.fold(one.length_ns(), |sum, claims| sum.saturating_add(claims[0].length_ns));
            most.max(met)
        });
        let mut window = 1;
        loop {
            let longer = self.arrived(window);
            if longer == window {
                return Some(true);
            }
            if longer > u64::MAX / 4 {
                // Beyond any time that is counted exactly.
                return None;
            }
            let mut next = self.last_step_before(longer);
            while let Some(t) = next.filter(|&t| t >= window) {
                if *rounds >= cap {
                    return None;
                }
                *rounds += 1;
                let demand = demand(&self.shifted, t).saturating_add(self.other_ns);
                if self.due(t) && demand.saturating_add(self.blocking(t)) > t {
                    return Some(false);
                }
                let spin = self.spin(|at| self.due_jobs(at, t), t);
                let harmless = demand.saturating_add(spin).saturating_add(at_most).saturating_add(1);
                next = self.last_step_before(t.min(harmless));
            }
            window = longer;
        }
    }

    /// Whether any job can be due within an interval of this length.
    fn due(&self, interval_ns: u64) -> bool {
        self.shifted.iter().any(|task| task.deadline <= interval_ns)
    }

    /// What arrives in an interval and has to be worked off, with all that it spins: the
    /// busy-interval equation.
    fn arrived(&self, interval_ns: u64) -> u64 {
        let jobs = |at: usize| {
            let sharer = &self.sharing.tasks[self.indices[at]];
            interval_ns.saturating_add(sharer.jitter_ns).div_ceil(sharer.period_ns)
        };
        let work = (0..self.indices.len()).fold(self.other_ns, |sum: u64, at| {
            sum.saturating_add(jobs(at).saturating_mul(self.shifted[at].cost))
        });
        work.saturating_add(self.spin(jobs, interval_ns))
    }

    /// Jobs of a local task that arrive and are due within an interval.
    fn due_jobs(&self, at: usize, interval_ns: u64) -> u64 {
        let task = &self.shifted[at];
        interval_ns.checked_sub(task.deadline).map_or(0, |room| room / task.period + 1)
    }

    /// Jobs of a task in an interval, one that arrived before it included: it ends by its deadline.
    fn jobs_across(&self, task: usize, interval_ns: u64) -> u64 {
        let sharer = &self.sharing.tasks[task];
        interval_ns.saturating_add(sharer.deadline_ns).div_ceil(sharer.period_ns)
    }

    /// How much one resource delays this many local requests, and an arrival.
    fn delay(&self, resource: usize, slots: u64, arrival: bool, interval_ns: u64) -> u64 {
        let room = |claim: &Claim| {
            let jobs = self.jobs_across(claim.task, interval_ns);
            let met = self.requests(resource, |at| {
                self.jobs_across(self.indices[at], self.sharing.tasks[claim.task].deadline_ns)
            });
            let supply = jobs.saturating_mul(claim.count);
            Room { supply, spinning: supply.min(met.saturating_mul(jobs)) }
        };
        let cores = self.sharing.resources[resource].any.remote(self.core);
        cores.fold(0, |sum: u64, claims| sum.saturating_add(longest(claims, slots, arrival, room)))
    }

    /// Local requests of a resource by so many jobs of each task.
    fn requests(&self, resource: usize, jobs: impl Fn(usize) -> u64) -> u64 {
        self.indices.iter().enumerate().fold(0, |sum: u64, (at, &task)| {
            let one = self.sharing.tasks[task].uses.iter().find(|one| one.resource == resource);
            one.map_or(sum, |one| sum.saturating_add(jobs(at).saturating_mul(one.count())))
        })
    }

    /// All spinning of so many jobs of each local task.
    fn spin(&self, jobs: impl Fn(usize) -> u64, interval_ns: u64) -> u64 {
        (0..self.sharing.resources.len()).fold(0, |sum: u64, resource| {
            let slots = self.requests(resource, &jobs);
            if slots == 0 { sum } else { sum.saturating_add(self.delay(resource, slots, false, interval_ns)) }
        })
    }

    /// Spinning of the jobs due within an interval, and the worst arrival blocking.
    fn blocking(&self, interval_ns: u64) -> u64 {
        let jobs = |at: usize| self.due_jobs(at, interval_ns);
        let arrival = self.blockers(interval_ns).map(|(_, resource, length_ns)| {
            let slots = self.requests(resource, jobs);
            let with = self.delay(resource, slots, true, interval_ns);
            let without = self.delay(resource, slots, false, interval_ns);
            length_ns.saturating_add(with.saturating_sub(without))
        });
        self.spin(jobs, interval_ns).saturating_add(arrival.max().unwrap_or(0))
    }

    /// The longest interval below `t` at which demand or blocking steps up.
    fn last_step_before(&self, t: u64) -> Option<u64> {
        let remote = (0..self.sharing.tasks.len()).filter(|&task| self.sharing.tasks[task].core != self.core);
        let step = |task: usize| {
            let sharer = &self.sharing.tasks[task];
            // One job more from k T - D + 1 on.
            let room = t.checked_sub(2)?.saturating_add(sharer.deadline_ns);
            let last = room / sharer.period_ns * sharer.period_ns;
            last.checked_sub(sharer.deadline_ns).map(|start| start + 1)
        };
        remote.filter_map(step).chain(last_deadline_before(&self.shifted, t)).max()
    }
}
