//! The global OMLP: any task on any core, waiters suspend, and the holder has the highest priority
//! among its waiters.
//!
//! Brandenburg and Anderson, "Optimality results for multiprocessor real-time locking", RTSS 2010:
//! while it would execute without locks, a request of a job is delayed by at most 2m - 1 others, m
//! being the number of cores, two of one task (Brandenburg's thesis, 2011); where no more than m +
//! 1 tasks use the resource, by one of each other task (lemma 15). A resource has a queue of m
//! places in order of arrival, and one by priority before it. Oracle: SchedCAT's
//! `global_omlp_bounds`, to the unit; and the adversary of the tests, which executes the rules.
//!
//! Suspension counts as execution: at every moment each of the m most urgent pending jobs executes,
//! or is delayed so that its bound covers it. Up to a first late job the schedule is one of
//! independent jobs with costs longer by their bounds, so a test of these covers it. Until then no
//! job is pending for longer than its deadline, from which the bounds count.

use super::answer::{beyond, charged, check, given_responses, show, unanswered};
use super::pending::Window;
use super::sharing::{Claim, Sharing, Use};
use super::waiting::windows;
use super::{Blocking, Charge, LocalLocks, Locks, Protocol};
use crate::analyze::{Refusal, Test, analyze_globally};
use crate::global::GlobalTest;
use crate::system::System;
use crate::task::Task;
use crate::verdict::Verdict;
use crate::window::Limits;

/// Whether all deadlines are met by one of the global tests.
pub(super) fn analyze(
    system: &System,
    locks: Locks,
    test: GlobalTest,
    limits: Limits,
) -> Result<Verdict, Refusal> {
    refuse(system, locks, Test::Global(test))?;
    let deadlines: Vec<u64> = system.tasks.iter().map(|one| one.task.deadline_ns).collect();
    let bound = blocking(system, &deadlines);
    let charge = |(at, task): (usize, &Task)| charged(*task, Charge::SpinInflates, bound.spin[at], 0);
    let tasks: Vec<Task> = system.tasks.iter().map(|one| one.task).collect();
    let longer: Vec<Task> = tasks.iter().enumerate().map(charge).collect();
    let mut verdict = analyze_globally(system, &longer, test, limits)?;
    verdict.tasks = tasks;
    verdict.cores = system.tasks.iter().map(|one| one.core).collect();
    show(system, &bound, &mut verdict);
    Ok(verdict)
}

/// One pass of blocking from the response times of the system, as
/// [`block_once`](super::block_once).
pub fn block_once_globally(
    system: &System,
    locks: impl Into<Locks>,
    test: GlobalTest,
) -> Result<Verdict, Refusal> {
    refuse(system, locks.into(), Test::Global(test))?;
    let responses = given_responses(system);
    let mut verdict = unanswered(system);
    show(system, &blocking(system, &responses), &mut verdict);
    verdict.rounds = 1;
    verdict.response_times = responses.into_iter().map(Some).collect();
    Ok(verdict)
}

fn refuse(system: &System, locks: Locks, test: Test) -> Result<(), Refusal> {
    if locks.protocol() != Protocol::Omlp {
        return Err(beyond(test.name(), locks.protocol().name(), "omlp, or fp-rta on pinned tasks"));
    }
    // Its tasks may be late, and a job pending beside the next one.
    if test == Test::Global(GlobalTest::EdfDa) {
        return Err(beyond(test.name(), "locks", "another global test"));
    }
    check(system, Protocol::Omlp)
}

/// Blocking of jobs that are pending for so long.
fn blocking(system: &System, responses: &[u64]) -> Blocking {
    let sharing = Sharing::of(system, LocalLocks::NonPreemptable);
    let users: Vec<Vec<Claim>> =
        (0..sharing.resources.len()).map(|one| longest_first(&sharing, one)).collect();
    let delay = |window: Window<'_>| {
        let each = |one: &Use| delay(&window, &users[one.resource], one.count(), system.cores);
        window.own().uses.iter().map(each).fold(0, u64::saturating_add)
    };
    let spin = windows(&sharing, responses).map(delay).collect();
    Blocking { spin, arrival: vec![0; system.tasks.len()] }
}

fn longest_first(sharing: &Sharing, resource: usize) -> Vec<Claim> {
    let cores = &sharing.resources[resource].any.cores;
    let mut claims: Vec<Claim> = cores.iter().flat_map(|one| one.claims.iter().copied()).collect();
    claims.sort_by_key(|claim| std::cmp::Reverse(claim.length_ns));
    claims
}

/// What so many requests of one job wait for at a resource.
fn delay(window: &Window<'_>, users: &[Claim], requests: u64, cores: u32) -> u64 {
    let others = users.len() as u64 - 1;
    let (most, of_each) =
        if others <= u64::from(cores) { (others, 1) } else { (2 * u64::from(cores) - 1, 2) };
    let (mut left, of_each) = (most.saturating_mul(requests), requests.saturating_mul(of_each));
    let mut sum: u64 = 0;
    for claim in users.iter().filter(|claim| claim.task != window.task) {
        let taken = window.supply(claim).min(of_each).min(left);
        left -= taken;
        sum = sum.saturating_add(taken.saturating_mul(claim.length_ns));
    }
    sum
}
