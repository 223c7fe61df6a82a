//! The multiprocessor priority ceiling protocol: waiters suspend and queue by priority; a section
//! on a resource of several cores executes above all tasks of its core, at the highest priority
//! among the resource's users of other cores. Resources of one core have ceilings.
//!
//! Rajkumar, "Real-time synchronization protocols for shared memory multiprocessors", ICDCS 1990.
//! The bound is that of Lakshmanan, de Niz and Rajkumar, "Coordinated task scheduling, allocation
//! and synchronization on multiprocessors", RTSS 2009, equations 1 to 3, where waiters suspend.
//! Oracle: SchedCAT's `mpcp_bounds`, equal under its own counting, where a task has ceil(W / T) + 1
//! jobs in a wait of W. Verdicts rest on ceil((W + R) / T), which is no more.

use super::pending::Window;
use super::sharing::{Resource, Sharing, Use};
use super::waiting::{is_global, least_wait, longest_of, longest_under_ceiling, windows};
use super::{Blocking, Semantics};

pub(super) fn blocking(sharing: &Sharing, responses: &[u64], semantics: Semantics) -> Blocking {
    let ceilings = sharing.resources.iter().map(Ceilings::of).collect();
    let sections = Sections { sharing, semantics, ceilings };
    let held: Vec<Vec<Held>> = (0..sharing.resources.len()).map(|resource| sections.held(resource)).collect();
    let mut result = Blocking::default();
    for window in windows(sharing, responses) {
        let (mut waits, mut suspensions) = (0u64, 0u64);
        for one in window.own().uses.iter().filter(|one| sections.counts(one)) {
            let wait_ns = match semantics {
                Semantics::Sound => wait(&window, &held[one.resource]),
                Semantics::SchedCat => wait_as_schedcat(&window, &held[one.resource]),
            };
            waits = waits.saturating_add(one.count().saturating_mul(wait_ns));
            if wait_ns > 0 || semantics == Semantics::SchedCat {
                suspensions = suspensions.saturating_add(one.count());
            }
        }
        result.spin.push(waits);
        result.arrival.push(sections.below(&window, suspensions.saturating_add(1)));
    }
    result
}

/// Sections of one task on one resource.
struct Held {
    task: usize,
    /// Most of them a job.
    count: u64,
    /// From the grant to the release.
    response_ns: u64,
}

/// The wait of one request: for at most one section of a task below, and for all of tasks above.
fn wait(window: &Window<'_>, held: &[Held]) -> u64 {
    least_wait(window, |interval_ns| work(window, held, |other| window.jobs_in(other, interval_ns)))
}

fn work(window: &Window<'_>, held: &[Held], jobs: impl Fn(usize) -> u64) -> u64 {
    let below = held.iter().filter(|one| one.task > window.task).map(|one| one.response_ns);
    let above = held.iter().filter(|one| one.task < window.task);
    above.fold(below.max().unwrap_or(0), |sum: u64, one| {
        let requests = jobs(one.task).saturating_mul(one.count);
        sum.saturating_add(requests.saturating_mul(one.response_ns))
    })
}

/// The same from 1 on, counted as SchedCAT does; without end, the largest number.
fn wait_as_schedcat(window: &Window<'_>, held: &[Held]) -> u64 {
    let own = window.own();
    let mut wait_ns = 1;
    while wait_ns <= own.period_ns.max(window.response()) {
        let period_ns = |other: usize| window.sharing.tasks[other].period_ns;
        let next = work(window, held, |other| wait_ns.div_ceil(period_ns(other)).saturating_add(1));
        if next == wait_ns {
            return wait_ns;
        }
        wait_ns = next;
    }
    u64::MAX
}

/// The priorities of the sections of one resource.
struct Ceilings {
    /// The core of its first user.
    core: u32,
    first: usize,
    /// The first user of another core; the largest number without one.
    elsewhere: usize,
}

impl Ceilings {
    fn of(resource: &Resource) -> Self {
        let claims = || resource.any.cores.iter().flat_map(|one| &one.claims);
        let Some(first) = claims().min_by_key(|claim| claim.task) else {
            return Self { core: 0, first: usize::MAX, elsewhere: usize::MAX };
        };
        let elsewhere = claims().filter(|claim| claim.core != first.core).map(|claim| claim.task).min();
        Self { core: first.core, first: first.task, elsewhere: elsewhere.unwrap_or(usize::MAX) }
    }

    /// The priority on a core, as the least index of a user elsewhere.
    fn on(&self, core: u32) -> usize {
        if core == self.core { self.elsewhere } else { self.first }
    }
}

/// Who executes at which priority.
struct Sections<'a> {
    sharing: &'a Sharing,
    semantics: Semantics,
    ceilings: Vec<Ceilings>,
}

impl Sections<'_> {
    /// Whether sections execute above all tasks: SchedCAT takes all to do so.
    fn counts(&self, one: &Use) -> bool {
        self.semantics == Semantics::SchedCat || is_global(self.sharing, one)
    }

    fn ceiling(&self, core: u32, resource: usize) -> usize {
        self.ceilings[resource].on(core)
    }

    fn held(&self, resource: usize) -> Vec<Held> {
        let claims = self.sharing.resources[resource].any.cores.iter().flat_map(|one| &one.claims);
        let held = claims.map(|claim| Held {
            task: claim.task,
            count: claim.count,
            response_ns: claim.length_ns.saturating_add(self.ahead(claim.task, claim.core, resource)),
        });
        held.collect()
    }

    /// What comes before a section on its core: each other task may have one at this priority or a
    /// higher one under way; for another it would have to execute below.
    fn ahead(&self, task: usize, core: u32, resource: usize) -> u64 {
        let ceiling = self.ceiling(core, resource);
        let others = self.sharing.cores[core as usize].iter().filter(|&&other| other != task);
        others.fold(0, |sum: u64, &other| {
            let uses = self.sharing.tasks[other].uses.iter().filter(|one| self.counts(one));
            let ahead = uses.filter(|one| self.ceiling(core, one.resource) <= ceiling);
            sum.saturating_add(ahead.map(Use::length_ns).max().unwrap_or(0))
        })
    }

    /// Sections of local tasks below: one of each for each time at which it may be under way, the
    /// arrival and the end of each suspension, and one below a ceiling.
    fn below(&self, window: &Window<'_>, starts: u64) -> u64 {
        let below = self.sharing.lower_users(window.task);
        if self.semantics == Semantics::SchedCat {
            let longest = below
                .iter()
                .map(|&other| self.sharing.tasks[other].uses.iter().map(Use::length_ns).max().unwrap_or(0));
            return starts.saturating_mul(longest.fold(0, u64::saturating_add));
        }
        let ceilings = starts.saturating_mul(longest_under_ceiling(self.sharing, window.task));
        below.iter().fold(ceilings, |sum: u64, &other| {
            sum.saturating_add(longest_of(window, other, starts, |one| is_global(self.sharing, one)))
        })
    }
}
