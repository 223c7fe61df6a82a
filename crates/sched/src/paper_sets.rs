//! Published task sets, as data with their source, so that a report can show a known example.

use crate::task::{Task, TaskSet};

/// A task set somebody published, and what they computed for it.
#[derive(Debug, Clone, Copy)]
pub struct PaperSet {
    /// Short name.
    pub name: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Its tasks, highest priority first.
    pub tasks: &'static [Task],
    /// Response times its authors computed, ns.
    pub published_response_times_ns: &'static [u64],
}

impl PaperSet {
    /// The set, ready for a test.
    pub fn task_set(&self) -> TaskSet {
        // Every entry of ALL passes the check (tested below), so the empty default is never taken.
        TaskSet::new(self.tasks.to_vec()).unwrap_or_default()
    }
}

const MS: u64 = 1_000_000;

/// Three harmonic, rate-monotonic tasks with D = T.
pub const IEEE_ACCESS_2020: PaperSet = PaperSet {
    name: "ieee-access-2020",
    source: "R. Delgado and B. W. Choi, \"New Insights Into the Real-Time Performance of a Multicore \
             Processor\", IEEE Access 8, 2020, Table 6 and the text below it, doi:10.1109/ACCESS.2020.3029858",
    tasks: &[
        Task::implicit(10 * MS, 3 * MS),
        Task::implicit(20 * MS, 5 * MS),
        Task::implicit(40 * MS, 10 * MS),
    ],
    published_response_times_ns: &[3 * MS, 8 * MS, 29 * MS],
};

/// Every published set.
pub const ALL: &[PaperSet] = &[IEEE_ACCESS_2020];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, response_times};

    #[test]
    fn published_response_times_are_reproduced() {
        for paper in ALL {
            let set = TaskSet::new(paper.tasks.to_vec()).unwrap();
            let verdict = response_times(&set, Limits::default());
            let published: Vec<Option<u64>> =
                paper.published_response_times_ns.iter().copied().map(Some).collect();
            assert_eq!(verdict.response_times, published, "{}", paper.name);
            assert!(verdict.schedulable);
        }
    }
}
