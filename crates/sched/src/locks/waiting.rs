//! Counts for locks whose waiters suspend: what other tasks do in an interval of any start.
//!
//! A task whose job completes within R of its arrival executes for at most
//! ceil((L + R - C) / T) C in an interval of length L, wherever that lies (Chen et al., "Many
//! suspensions, many problems: a review of self-suspending tasks in real-time systems", Real-Time
//! Systems 55, 2019, section 4).

use super::pending::Window;
use super::sharing::{Sharing, Use};

/// Steps of a recurrence before the response time serves as the bound.
const MOST_STEPS: u32 = 1_000_000;

/// The most that a task executes in an interval.
pub(super) fn workload(window: &Window<'_>, task: usize, interval_ns: u64) -> u64 {
    let other = &window.sharing.tasks[task];
    let late_ns = window.responses[task].saturating_sub(other.cost_ns);
    let jobs = interval_ns.saturating_add(late_ns).div_ceil(other.period_ns);
    jobs.saturating_mul(other.cost_ns)
}

/// Requests of one use of a task in an interval.
pub(super) fn requests_in(window: &Window<'_>, task: usize, one: &Use, interval_ns: u64) -> u64 {
    window.jobs_in(task, interval_ns).saturating_mul(one.count())
}

/// What sections of one use take in an interval.
pub(super) fn sections_in(window: &Window<'_>, task: usize, one: &Use, interval_ns: u64) -> u64 {
    requests_in(window, task, one, interval_ns).saturating_mul(one.length_ns())
}

/// The longest sections of a task while the job is pending, `most` at most, among some uses.
pub(super) fn longest_of(window: &Window<'_>, task: usize, most: u64, counts: impl Fn(&Use) -> bool) -> u64 {
    let mut uses: Vec<&Use> = window.sharing.tasks[task].uses.iter().filter(|one| counts(one)).collect();
    uses.sort_by_key(|one| std::cmp::Reverse(one.length_ns()));
    let (mut left, mut sum) = (most, 0u64);
    for one in uses {
        let taken = requests_in(window, task, one, window.response()).min(left);
        left -= taken;
        sum = sum.saturating_add(taken.saturating_mul(one.length_ns()));
    }
    sum
}

/// The least wait that covers all work of its own length; no job waits longer than it is pending.
/// A request that comes at the very end of the wait may still go first.
pub(super) fn least_wait(window: &Window<'_>, work_in: impl Fn(u64) -> u64) -> u64 {
    let most = window.response();
    let mut wait_ns = 0;
    for _ in 0..MOST_STEPS {
        let longer = work_in(wait_ns + 1);
        if longer <= wait_ns {
            return wait_ns;
        }
        if longer >= most {
            return most;
        }
        wait_ns = longer;
    }
    most
}

/// Whether several cores use the resource.
pub(super) fn is_global(sharing: &Sharing, one: &Use) -> bool {
    sharing.resources[one.resource].is_global()
}

/// The longest section below a task on a resource of its core alone, held at a ceiling that reaches
/// the task.
pub(super) fn longest_under_ceiling(sharing: &Sharing, task: usize) -> u64 {
    let below = sharing.lower_users(task).iter().flat_map(|&local| &sharing.tasks[local].uses);
    let blocks = below.filter(|one| {
        let resource = &sharing.resources[one.resource];
        !resource.is_global() && resource.ceiling <= task
    });
    blocks.map(Use::length_ns).max().unwrap_or(0)
}

/// A window for each task, in priority order.
pub(super) fn windows<'a>(
    sharing: &'a Sharing,
    responses: &'a [u64],
) -> impl Iterator<Item = Window<'a>> + use<'a> {
    (0..sharing.tasks.len()).map(move |task| Window { sharing, responses, task })
}
