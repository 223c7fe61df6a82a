//! Fixed-priority orderings of a task set.
//!
//! Rate monotonic: Liu and Layland 1973, optimal for D = T. Deadline monotonic: Leung and Whitehead
//! 1982, optimal for D <= T. With release jitter (D - J) monotonic is optimal: Zuhily and Burns
//! 2007, "Optimal (D-J)-monotonic priority assignment". None is optimal for D > T or with blocking.
//!
//! Each returns the indices of the tasks, highest priority first; equal keys keep the order given.
//! Indices, not a sorted copy, so that a caller can carry names along.

use crate::task::Task;

/// Shortest period first.
pub fn rate_monotonic(tasks: &[Task]) -> Vec<usize> {
    by_key(tasks, |task| task.period_ns)
}

/// Shortest relative deadline first.
pub fn deadline_monotonic(tasks: &[Task]) -> Vec<usize> {
    by_key(tasks, |task| task.deadline_ns)
}

/// Shortest deadline after the latest release first.
pub fn deadline_minus_jitter_monotonic(tasks: &[Task]) -> Vec<usize> {
    by_key(tasks, |task| task.deadline_ns.saturating_sub(task.jitter_ns))
}

fn by_key(tasks: &[Task], key: impl Fn(&Task) -> u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&index| key(&tasks[index]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ordering_uses_its_own_key_and_is_stable() {
        let task = |period_ns, deadline_ns, jitter_ns| Task {
            deadline_ns,
            jitter_ns,
            ..Task::implicit(period_ns, 1)
        };
        let tasks = [task(40, 11, 0), task(30, 20, 10), task(50, 12, 1), task(30, 40, 39)];
        assert_eq!(rate_monotonic(&tasks), [1, 3, 0, 2]);
        assert_eq!(deadline_monotonic(&tasks), [0, 2, 1, 3]);
        assert_eq!(deadline_minus_jitter_monotonic(&tasks), [3, 1, 0, 2]);
    }
}
