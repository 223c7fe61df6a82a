//! Where, along the axis of a uniform release jitter, a response time grows by more than the jitter
//! itself.
//!
//! Between steps R = w + J with w constant, so a nanosecond of latency costs a nanosecond of
//! response. At a step one more job of a higher-priority task falls into the busy window and w
//! jumps by at least its cost. The distance to the first step is the latency a set absorbs at face
//! value. The steps are found exactly, by going from each jitter straight to the next at which one
//! ceiling of the window equation changes.

use serde::{Deserialize, Serialize};

use crate::fp_rta::{Level, Outcome};
use crate::task::{Task, TaskSet};
use crate::window::{Limits, Load};

/// One step. Times in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JitterStep {
    /// Largest uniform jitter before the step: one nanosecond more takes it.
    pub last_jitter_ns: u64,
    /// Which task's response steps up.
    pub task: usize,
    /// Its response less the uniform jitter, before.
    pub before_ns: u64,
    /// The same, after; `null` where the window outgrows the deadline (or was not decided).
    pub after_ns: Option<u64>,
}

/// The steps of a set, by jitter, then by task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JitterSteps {
    /// The steps with `last_jitter_ns < up_to_ns`.
    pub steps: Vec<JitterStep>,
    /// End of the range looked at, ns.
    pub up_to_ns: u64,
    /// Tasks whose search ended at the cap on steps: later steps of theirs are missing.
    pub truncated: Vec<usize>,
    /// The question.
    pub tasks: Vec<Task>,
}

/// Finds the steps of every task for uniform jitters up to `up_to_ns`, at most `cap` changes of a
/// ceiling a task.
pub fn jitter_steps(set: &TaskSet, up_to_ns: u64, cap: usize, limits: Limits) -> JitterSteps {
    let tasks = set.tasks();
    let mut found = JitterSteps { steps: Vec::new(), up_to_ns, truncated: Vec::new(), tasks: tasks.to_vec() };
    for index in 0..tasks.len() {
        task_steps(tasks, index, cap, limits, &mut found);
    }
    found.steps.sort_by_key(|step| (step.last_jitter_ns, step.task));
    found
}

fn task_steps(tasks: &[Task], index: usize, cap: usize, limits: Limits, found: &mut JitterSteps) {
    // The response less the uniform jitter, and how far it stays the same.
    let at = |extra_jitter: u64| {
        let load = Load::of(&tasks[..index], extra_jitter);
        match (Level { tasks, index, extra_jitter, load: &load, limits, want_slack: true }).response().outcome
        {
            Outcome::Within { response_ns, jitter_slack } => Some((response_ns - extra_jitter, jitter_slack)),
            Outcome::Beyond | Outcome::Undecided => None,
        }
    };
    let mut jitter = 0;
    let Some((mut before_ns, mut slack)) = at(jitter) else { return };
    for _ in 0..cap {
        let last_jitter_ns = jitter.saturating_add(slack);
        if last_jitter_ns >= found.up_to_ns {
            return;
        }
        jitter = last_jitter_ns + 1;
        let next = at(jitter);
        let after_ns = next.map(|(response_ns, _)| response_ns);
        // Another job can move without becoming the worst one.
        if after_ns != Some(before_ns) {
            found.steps.push(JitterStep { last_jitter_ns, task: index, before_ns, after_ns });
        }
        let Some(next) = next else { return };
        (before_ns, slack) = next;
    }
    found.truncated.push(index);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{paper_sets, response_times};
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn ieee_access_set_steps_just_past_one_millisecond() {
        let set = paper_sets::IEEE_ACCESS_2020.task_set();
        let found = jitter_steps(&set, 7 * MS, 100, Limits::default());
        let step = |last, task, before, after| JitterStep {
            last_jitter_ns: last * MS,
            task,
            before_ns: before * MS,
            after_ns: Some(after * MS),
        };
        assert_eq!(found.steps, [step(1, 2, 29, 32), step(2, 1, 8, 11)]);
        assert!(found.truncated.is_empty());
        assert_eq!(jitter_steps(&set, 1_000_000, 100, Limits::default()).steps, []);
        assert_eq!(jitter_steps(&set, 1_000_001, 100, Limits::default()).steps.len(), 1);
    }

    #[test]
    fn the_cap_is_reported() {
        let set = TaskSet::new(vec![Task::implicit(10, 1), Task::implicit(1000, 100)]).unwrap();
        let found = jitter_steps(&set, 500, 2, Limits::default());
        assert_eq!(found.truncated, [1]);
        assert_eq!(found.steps.len(), 2);
    }

    proptest! {
        #[test]
        fn equals_a_scan_of_every_jitter(
            rows in prop::collection::vec((10u64..150, 1u64..40, 50u64..250, 0u64..30, 0u64..10), 1..5),
        ) {
            let task = |&(period_ns, cost_ns, percent, jitter_ns, blocking_ns): &(u64, u64, u64, u64, u64)| Task {
                period_ns, deadline_ns: period_ns * percent / 100, cost_ns, jitter_ns, blocking_ns,
            };
            let set = TaskSet::new(rows.iter().map(task).collect()).unwrap();
            let responses = |jitter| {
                response_times(&set.with_added_jitter(jitter).unwrap(), Limits::default()).response_times
            };
            let mut expected = Vec::new();
            for jitter in 0..120 {
                for (index, (now, next)) in responses(jitter).iter().zip(responses(jitter + 1)).enumerate() {
                    let after_ns = next.map(|r| r - jitter - 1);
                    if let Some(before_ns) = now.map(|r| r - jitter)
                        && after_ns != Some(before_ns)
                    {
                        expected.push(JitterStep { last_jitter_ns: jitter, task: index, before_ns, after_ns });
                    }
                }
            }
            prop_assert_eq!(jitter_steps(&set, 120, 10_000, Limits::default()).steps, expected);
        }
    }
}
