//! Priority inheritance: `PTHREAD_PRIO_INHERIT`, which is Linux's rt_mutex, on pinned tasks.
//!
//! Oracle: the adversary of the tests, which executes these rules. Assumed of the kernel
//! (Documentation/locking/rt-mutex-design.rst): waiters queue by priority; a holder inherits the
//! highest priority among its waiters, on its own core; who is woken holds the lock only once it
//! runs, and until then a task of higher priority may take it first.
//!
//! On one core this is the protocol of Sha, Rajkumar and Lehoczky, "Priority inheritance
//! protocols", IEEE Transactions on Computers 39, 1990: a lower-priority task delays a job by at
//! most one section, and so does each resource (theorems 3 and 6). A section counts if its
//! resource has a user of at least the job's priority, on any core.
//!
//! Between cores a request of task i waits for at most one section of a task below i: the queue
//! puts all others behind it. While it waits, the core of the holder (or of a woken waiter ahead)
//! runs only what is at least as urgent as i: tasks above i with all that they execute, and
//! sections of tasks below i that a task above i waits for. The wait is the least that covers this
//! work on all cores that use the resource. Shares of the own core are interference, or sections of
//! local tasks below, counted there. Such a task can start a section only while the job is
//! suspended: once before it arrives, and once whenever its wait begins, be it anew because a task
//! above on another core has taken the lock first.

use super::Blocking;
use super::pending::Window;
use super::sharing::{Sharing, Use};
use super::waiting::{is_global, least_wait, longest_of, requests_in, sections_in, windows, workload};

pub(super) fn blocking(sharing: &Sharing, responses: &[u64]) -> Blocking {
    let mut result = Blocking::default();
    for window in windows(sharing, responses) {
        result.spin.push(remote(&window));
        result.arrival.push(local(&window));
    }
    result
}

/// Waits while other cores are what delays.
fn remote(window: &Window<'_>) -> u64 {
    let sharing = window.sharing;
    let (mut each, mut sections) = (0u64, 0u64);
    let mut cores: Vec<u32> = Vec::new();
    for one in window.own().uses.iter().filter(|one| is_global(sharing, one)) {
        let lower = longest_below(window, one.resource, |core| core != window.own().core);
        sections = sections.saturating_add(one.count().saturating_mul(lower));
        let wait_ns = one_wait(window, one.resource);
        let elsewhere = users_of(sharing, one.resource).filter(|&core| core != window.own().core);
        let ahead = elsewhere.fold(lower, |sum: u64, core| {
            cores.push(core);
            sum.saturating_add(urgent_work(window, core, Some(one.resource), wait_ns + 1))
        });
        each = each.saturating_add(one.count().saturating_mul(ahead.min(window.response())));
    }
    cores.sort_unstable();
    cores.dedup();
    let all = cores.iter().fold(sections, |sum: u64, &core| {
        sum.saturating_add(urgent_work(window, core, None, window.response()))
    });
    each.min(all)
}

/// How long one request can wait.
fn one_wait(window: &Window<'_>, resource: usize) -> u64 {
    let lower = longest_below(window, resource, |_| true);
    least_wait(window, |interval_ns| {
        users_of(window.sharing, resource).fold(lower, |sum: u64, core| {
            sum.saturating_add(urgent_work(window, core, Some(resource), interval_ns))
        })
    })
}

fn users_of(sharing: &Sharing, resource: usize) -> impl Iterator<Item = u32> + '_ {
    sharing.resources[resource].any.cores.iter().map(|one| one.core)
}

/// The longest section of a task below for a resource, on some cores.
fn longest_below(window: &Window<'_>, resource: usize, on: impl Fn(u32) -> bool) -> u64 {
    let claims = window.sharing.resources[resource].any.cores.iter().flat_map(|one| &one.claims);
    let below = claims.filter(|claim| claim.task > window.task && on(claim.core));
    below.map(|claim| claim.length_ns).max().unwrap_or(0)
}

/// What a core executes in an interval that is more urgent than the job: tasks above it, and
/// sections of tasks below it that have inherited, but for those of one resource, of which no more
/// than one comes first.
fn urgent_work(window: &Window<'_>, core: u32, but: Option<usize>, interval_ns: u64) -> u64 {
    let sharing = window.sharing;
    let others = sharing.cores[core as usize].iter().copied().filter(|&other| other != window.task);
    others.fold(0, |sum: u64, other| {
        let work = if other < window.task {
            workload(window, other, interval_ns)
        } else {
            let uses = sharing.tasks[other].uses.iter();
            let inherits = uses.filter(|one| {
                Some(one.resource) != but && sharing.resources[one.resource].ceiling < window.task
            });
            inherits.fold(0, |sum: u64, one| sum.saturating_add(sections_in(window, other, one, interval_ns)))
        };
        sum.saturating_add(work)
    })
}

/// Sections of local tasks below at an inherited priority: each task, and each resource, delays
/// once for each time at which such sections may be under way.
fn local(window: &Window<'_>) -> u64 {
    let sharing = window.sharing;
    let reaches = |one: &Use| sharing.resources[one.resource].ceiling <= window.task;
    let starts = starts(window);
    let below = sharing.lower_users(window.task);
    let by_task = below
        .iter()
        .fold(0, |sum: u64, &other| sum.saturating_add(longest_of(window, other, starts, reaches)));
    let mut longest: Vec<(usize, u64)> = Vec::new();
    for one in below.iter().flat_map(|&other| &sharing.tasks[other].uses).filter(|one| reaches(one)) {
        match longest.iter_mut().find(|(resource, _)| *resource == one.resource) {
            Some((_, length_ns)) => *length_ns = (*length_ns).max(one.length_ns()),
            None => longest.push((one.resource, one.length_ns())),
        }
    }
    let by_resource =
        longest.iter().fold(0, |sum: u64, (_, ns)| sum.saturating_add(starts.saturating_mul(*ns)));
    by_task.min(by_resource)
}

/// Moments before which local tasks below may have begun a section: the arrival, and the end of
/// each suspension.
fn starts(window: &Window<'_>) -> u64 {
    let sharing = window.sharing;
    let shared = window.own().uses.iter().filter(|one| is_global(sharing, one));
    shared.fold(1, |sum: u64, own| {
        let above = (0..window.task).filter(|&other| sharing.tasks[other].core != window.own().core);
        let above = above.flat_map(|other| {
            let uses = sharing.tasks[other].uses.iter().filter(|one| one.resource == own.resource);
            uses.map(move |one| requests_in(window, other, one, window.response()))
        });
        above.fold(sum.saturating_add(own.count()), u64::saturating_add)
    })
}
