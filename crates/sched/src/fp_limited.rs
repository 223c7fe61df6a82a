//! Fixed priorities with sections that cannot be preempted, wherever in a job they lie.
//!
//! A task of lower priority that has just entered such a section delays a busy window once, by the
//! longest of them (floating non-preemptive regions: Baruah, "The limited-preemption uniprocessor
//! scheduling of sporadic task systems", ECRTS 2005; Yao, Buttazzo and Bertogna, RTCSA 2010). A
//! task's own sections may lie anywhere, so they do not shorten its response.

use crate::fp_rta::response_times;
use crate::task::{Task, TaskError, TaskSet};
use crate::verdict::Verdict;
use crate::window::Limits;

/// Response times with the longest non-preemptive section of each task, ns, in priority order.
/// [`Verdict::blocking`] is the blocking given and that of the sections.
///
/// The section counts whole: with integer times the task must have entered it before, which would
/// take off one unit.
pub fn response_times_limited(
    set: &TaskSet,
    sections_ns: &[u64],
    limits: Limits,
) -> Result<Verdict, TaskError> {
    let tasks = set.tasks();
    let mut longest_below = 0;
    let mut blocked: Vec<Task> = Vec::with_capacity(tasks.len());
    for (index, task) in tasks.iter().enumerate().rev() {
        blocked.push(Task { blocking_ns: task.blocking_ns.saturating_add(longest_below), ..*task });
        longest_below = longest_below.max(sections_ns.get(index).copied().unwrap_or(0).min(task.cost_ns));
    }
    blocked.reverse();
    let mut verdict = response_times(&TaskSet::new(blocked)?, limits);
    verdict.tasks = tasks.to_vec();
    Ok(verdict)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_section_below_delays_once_and_none_delays_the_lowest() {
        let set =
            TaskSet::new(vec![Task::implicit(10, 2), Task::implicit(20, 4), Task::implicit(40, 8)]).unwrap();
        let limited = |sections: &[u64]| response_times_limited(&set, sections, Limits::default()).unwrap();
        assert_eq!(limited(&[9, 3, 5]).response_times, [Some(7), Some(13), Some(16)]);
        assert_eq!(limited(&[9, 3, 5]).blocking, [5, 5, 0]);
        assert_eq!(limited(&[0, 0, 0]), response_times(&set, Limits::default()));
        // No section is longer than the whole job.
        assert_eq!(limited(&[0, 0, 99]).blocking, [8, 8, 0]);
    }
}
