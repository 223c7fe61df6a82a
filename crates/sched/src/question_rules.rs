//! What the numbers of a question mean, and which contradict each other: the same for both readers.

use crate::system::SystemTask;

/// What a priority is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Policy {
    /// A rank, 0 first.
    #[default]
    Ranks,
    /// That of `SCHED_FIFO`, the highest first (sched(7)).
    Linux,
}

impl Policy {
    /// The least and the greatest number.
    pub(crate) const fn priorities(self) -> (u64, u64) {
        match self {
            Self::Ranks => (0, u32::MAX as u64),
            Self::Linux => (1, 99),
        }
    }

    /// Its place among all others, 0 first. The priority is in range.
    pub(crate) const fn rank(self, priority: u64) -> u64 {
        match self {
            Self::Ranks => priority,
            Self::Linux => self.priorities().1 - priority,
        }
    }
}

/// A part of a job that is longer than the job: its key, and its length, ns.
pub(crate) fn too_long(task: &SystemTask) -> Option<(TooLong, u64)> {
    let cost_ns = task.task.cost_ns;
    if task.non_preemptive_ns > cost_ns {
        return Some((TooLong::Section, task.non_preemptive_ns));
    }
    let at = task.requests.iter().position(|request| request.count > 0 && request.length_ns > cost_ns)?;
    Some((TooLong::Request(at), task.requests[at].length_ns))
}

/// Which part of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TooLong {
    /// A section that cannot be preempted.
    Section,
    /// The request of this number.
    Request(usize),
}

#[cfg(test)]
mod tests {
    use crate::question::read;

    #[test]
    fn priorities_of_linux_are_99_first() {
        let line = |policy: &str, priorities: [&str; 3]| {
            let task = |one: &str| format!(r#"{{"period":10,"cost":1{one}}}"#);
            format!(r#"{{{policy}"tasks":[{}]}}"#, priorities.map(task).join(","))
        };
        let linux = r#""policy":"linux","#;
        let question =
            read(line(linux, [r#","priority":1"#, r#","priority":80"#, r#","priority":80"#])).unwrap();
        assert_eq!((question.places, question.equals.len()), (vec![1, 2, 0], 1));
        assert_eq!(question.equals[0], 0..2);
        for (wrong, field) in [
            (
                line(linux, [r#","priority":0"#, r#","priority":2"#, r#","priority":3"#]),
                "tasks[0].priority: 0, expected an integer from 1 to 99",
            ),
            (
                line(linux, [r#","priority":1"#, r#","priority":100"#, r#","priority":3"#]),
                "tasks[1].priority: 100",
            ),
            (
                line(linux, [""; 3]),
                "tasks[0].priority: nothing, expected a priority for every task, 99 the highest",
            ),
            (line(r#""policy":"fifo","#, [""; 3]), "policy: \"fifo\", expected \"linux\""),
            (line(r#""policy":7,"#, [""; 3]), "policy: 7"),
        ] {
            let error = read(&wrong).unwrap_err().to_string();
            assert!(error.starts_with(field), "{wrong}: {error}");
        }
    }

    #[test]
    fn no_part_of_a_job_is_longer_than_the_job() {
        let line = |what: &str| format!(r#"{{"unit":"us","tasks":[{{"period":10,"cost":3,{what}}}]}}"#);
        assert!(read(line(r#""non_preemptive":3,"requests":[{"resource":0,"length":3,"count":9}]"#)).is_ok());
        assert!(read(line(r#""requests":[{"resource":0,"length":4,"count":0}]"#)).is_ok());
        for (what, expected) in [
            (r#""non_preemptive":4"#, "tasks[0].non_preemptive: 4, expected at most the cost, 3"),
            (
                r#""requests":[{"resource":0,"length":1},{"resource":1,"length":5}]"#,
                "tasks[0].requests[1].length: 5, expected at most the cost, 3",
            ),
        ] {
            let error = read(line(what)).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{what}: {error}");
        }
    }
}
