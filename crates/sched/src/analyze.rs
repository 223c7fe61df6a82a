//! One question, one test by name, one answer: what the command, the Python package and studies call.

use crate::edf_qpa::edf_qpa;
use crate::fp_rta::response_times;
use crate::fp_suspension::{SuspensionError, response_times_with_suspension};
use crate::system::System;
use crate::task::{Task, TaskError};
use crate::verdict::Verdict;
use crate::window::Limits;
use thiserror::Error;

/// A schedulability test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// Fixed priorities, each core by itself: response times.
    FpRta,
    /// The same with sections that cannot be preempted.
    FpLimited,
    /// EDF, each core by itself: processor demand.
    EdfQpa,
}

impl Test {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 3] = [Self::FpRta, Self::FpLimited, Self::EdfQpa];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FpRta => "fp-rta",
            Self::FpLimited => "fp-limited",
            Self::EdfQpa => "edf-qpa",
        }
    }

    /// The test of one name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|test| test.name() == name)
    }
}

/// Why a test does not answer a question.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The test says nothing of systems that have this.
    #[error("{test} knows nothing of {what}; expected a system without, or {instead}")]
    Beyond {
        /// The test.
        test: &'static str,
        /// What the system has.
        what: &'static str,
        /// What does.
        instead: &'static str,
    },
    /// A core's tasks are no task set.
    #[error(transparent)]
    Tasks(#[from] TaskError),
    /// Self-suspension beyond what the analysis is proven for.
    #[error(transparent)]
    Suspension(#[from] SuspensionError),
}

/// Answers. Arrays of the verdict are in the order of the system's tasks.
pub fn analyze(system: &System, test: Test, limits: Limits) -> Result<Verdict, Refusal> {
    if system.shares() {
        return Err(beyond(test, "requests for resources", "--locks PROTOCOL"));
    }
    if test != Test::FpRta && system.suspends() {
        return Err(beyond(test, "self-suspension", "fp-rta"));
    }
    let all: Vec<Task> = system.tasks.iter().map(|task| task.task).collect();
    let mut whole = Verdict::unanswered(&all);
    whole.cores = system.tasks.iter().map(|task| task.core).collect();
    whole.schedulable = true;
    for indices in system.by_core() {
        let verdict = on_one_core(system, &indices, test, limits)?;
        whole.schedulable &= verdict.schedulable;
        whole.rounds += verdict.rounds;
        whole.undecided.extend(verdict.undecided.iter().map(|&at| indices[at]));
        for (at, &index) in indices.iter().enumerate() {
            whole.response_times[index] = verdict.response_times[at];
            whole.blocking[index] = verdict.blocking[at];
        }
    }
    whole.undecided.sort_unstable();
    Ok(whole)
}

fn beyond(test: Test, what: &'static str, instead: &'static str) -> Refusal {
    Refusal::Beyond { test: test.name(), what, instead }
}

fn on_one_core(system: &System, indices: &[usize], test: Test, limits: Limits) -> Result<Verdict, Refusal> {
    let set = system.set_of(indices)?;
    Ok(match test {
        Test::FpRta if indices.iter().any(|&index| system.tasks[index].suspension_ns > 0) => {
            let suspensions: Vec<u64> =
                indices.iter().map(|&index| system.tasks[index].suspension_ns).collect();
            response_times_with_suspension(&set, &suspensions, limits)?
        }
        Test::FpRta => response_times(&set, limits),
        Test::FpLimited => {
            let sections: Vec<u64> =
                indices.iter().map(|&index| system.tasks[index].non_preemptive_ns).collect();
            crate::fp_limited::response_times_limited(&set, &sections, limits)?
        }
        Test::EdfQpa => edf_qpa(&set, limits),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question;

    fn answer(line: &str, test: Test) -> Result<Verdict, Refusal> {
        analyze(&question::read(line).unwrap().system, test, Limits::default())
    }

    #[test]
    fn cores_are_analysed_apart_and_answered_together() {
        let line = r#"{"cores":2,"tasks":[{"period":10,"cost":3,"core":1},{"period":20,"cost":5},{"period":40,"cost":10,"core":1}]}"#;
        let verdict = answer(line, Test::FpRta).unwrap();
        assert_eq!(verdict.response_times, [Some(3), Some(5), Some(16)]);
        assert_eq!((verdict.cores, verdict.schedulable), (vec![1, 0, 1], true));
        assert!(answer(line, Test::EdfQpa).unwrap().schedulable);
    }

    #[test]
    fn what_a_test_does_not_know_it_refuses() {
        let shares = r#"{"tasks":[{"period":10,"cost":3,"requests":[{"resource":0,"length":1}]}]}"#;
        assert!(answer(shares, Test::FpRta).unwrap_err().to_string().contains("requests for resources"));
        let suspends = r#"{"tasks":[{"period":10,"cost":3,"suspension":2}]}"#;
        assert!(answer(suspends, Test::EdfQpa).unwrap_err().to_string().contains("self-suspension"));
        assert_eq!(answer(suspends, Test::FpRta).unwrap().response_times, [Some(5)]);
    }

    #[test]
    fn names_are_unique_and_found() {
        for test in Test::ALL {
            assert_eq!(Test::by_name(test.name()), Some(test));
        }
        assert_eq!(Test::by_name("fp"), None);
    }
}
