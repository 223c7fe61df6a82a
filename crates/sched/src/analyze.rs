//! One question, one test by name, one answer: called by the command, the Python package and
//! studies.

use crate::edf_qpa::edf_qpa_within;
use crate::edf_rta::response_times_edf;
use crate::fp_curves::response_times_with_bounds;
use crate::fp_published::{Published, response_times_as_published};
use crate::fp_rta::response_times_within;
use crate::fp_suspension::{SuspensionError, response_times_with_suspension};
use crate::global::sched_deadline::{self, Admission};
use crate::global::{GlobalTest, global};
use crate::overheads_error::OverheadsError;
use crate::system::{System, SystemTask};
use crate::task::{Task, TaskError, TaskSet};
use crate::verdict::Verdict;
use crate::window::{Limits, Work};
use thiserror::Error;

/// A schedulability test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// Fixed priorities, each core by itself: response times.
    FpRta,
    /// The same by a published equation that differs, to compare with.
    FpPublished(Published),
    /// Fixed priorities with sections that cannot be preempted.
    FpLimited,
    /// EDF, each core by itself: processor demand.
    EdfQpa,
    /// EDF, each core by itself: response times.
    EdfRta,
    /// Any task on any core.
    Global(GlobalTest),
    /// Whether Linux admits the tasks to `SCHED_DEADLINE`, all cores one root domain.
    SchedDeadline,
    /// The same with every core a root domain of its own.
    SchedDeadlinePartitioned,
}

impl Test {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 20] = [
        Self::FpRta,
        Self::FpPublished(Published::Replication),
        Self::FpPublished(Published::Access2020),
        Self::FpLimited,
        Self::EdfQpa,
        Self::EdfRta,
        Self::Global(GlobalTest::EdfGfb),
        Self::Global(GlobalTest::EdfBak),
        Self::Global(GlobalTest::EdfBcl),
        Self::Global(GlobalTest::EdfBclIterative),
        Self::Global(GlobalTest::EdfBar),
        Self::Global(GlobalTest::EdfRta),
        Self::Global(GlobalTest::EdfFfDbf),
        Self::Global(GlobalTest::EdfLoad),
        Self::Global(GlobalTest::EdfAny),
        Self::Global(GlobalTest::EdfDa),
        Self::Global(GlobalTest::FpGuan),
        Self::Global(GlobalTest::FpBertogna),
        Self::SchedDeadline,
        Self::SchedDeadlinePartitioned,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FpRta => "fp-rta",
            Self::FpPublished(published) => published.name(),
            Self::FpLimited => "fp-limited",
            Self::EdfQpa => "edf-qpa",
            Self::EdfRta => "edf-rta",
            Self::Global(test) => test.name(),
            Self::SchedDeadline => "sched-deadline",
            Self::SchedDeadlinePartitioned => "sched-deadline-partitioned",
        }
    }

    /// Whether cores are analysed one by one, so that every task needs one.
    pub const fn is_partitioned(self) -> bool {
        !matches!(self, Self::Global(_) | Self::SchedDeadline)
    }

    /// Whether it asks which task has the higher priority.
    pub const fn is_by_priority(self) -> bool {
        use GlobalTest::{FpBertogna, FpGuan};
        matches!(
            self,
            Self::FpRta | Self::FpPublished(_) | Self::FpLimited | Self::Global(FpGuan | FpBertogna)
        )
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
    /// The tasks of a core are invalid.
    #[error(transparent)]
    Tasks(#[from] TaskError),
    /// Self-suspension beyond what the analysis is proven for.
    #[error(transparent)]
    Suspension(#[from] SuspensionError),
    /// Cores are to be assigned to tasks that name theirs.
    #[error("some task names its core; expected none to be named where --partition assigns them")]
    Placed,
    /// Overheads out of their range.
    #[error(transparent)]
    Overheads(#[from] OverheadsError),
}

/// Answers for a system in ns. Arrays of the verdict are in the order of the system's tasks.
pub fn analyze(system: &System, test: Test, limits: Limits) -> Result<Verdict, Refusal> {
    if system.shares() {
        return Err(beyond(test, "requests for resources", "--locks PROTOCOL"));
    }
    if test != Test::FpRta && system.suspends() {
        return Err(beyond(test, "self-suspension", "fp-rta"));
    }
    // Admission checks bandwidths only.
    let counts_sections =
        matches!(test, Test::FpLimited | Test::SchedDeadline | Test::SchedDeadlinePartitioned);
    if !counts_sections && system.limits_preemption() {
        return Err(beyond(test, "sections that cannot be preempted", "fp-limited, core by core"));
    }
    if !matches!(test, Test::FpRta | Test::EdfRta) {
        refuse_bounds(system, test)?;
    } else if let (Some(_), true) = (system.bounded(), system.suspends()) {
        return Err(beyond(test, "self-suspension beside curves or a supply", "one of them"));
    }
    let all: Vec<Task> = system.tasks.iter().map(|task| task.task).collect();
    let mut whole = Verdict::unanswered(&all);
    if let Test::Global(test) = test {
        whole = analyze_globally(system, &all, test, limits)?;
    }
    whole.cores = system.tasks.iter().map(|task| task.core).collect();
    if let Test::SchedDeadline | Test::SchedDeadlinePartitioned = test {
        whole.schedulable = is_admitted(system, &all, test, Admission::default())?;
    }
    let by_core =
        matches!(test, Test::FpRta | Test::FpPublished(_) | Test::FpLimited | Test::EdfQpa | Test::EdfRta);
    if !by_core {
        return Ok(whole);
    }
    whole.schedulable = true;
    let mut work = Work::of(limits);
    for indices in system.by_core() {
        let verdict = on_one_core(system, &indices, test, limits, &mut work)?;
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

pub(crate) fn beyond(test: Test, what: &'static str, instead: &'static str) -> Refusal {
    Refusal::Beyond { test: test.name(), what, instead }
}

/// Refuses curves and supplies.
pub(crate) fn refuse_bounds(system: &System, test: Test) -> Result<(), Refusal> {
    let only = "--test fp-rta or edf-rta by itself, without locks, overheads, --partition and --order";
    system.bounded().map_or(Ok(()), |what| Err(beyond(test, what, only)))
}

fn on_one_core(
    system: &System,
    indices: &[usize],
    test: Test,
    limits: Limits,
    work: &mut Work,
) -> Result<Verdict, Refusal> {
    let set = system.set_of(indices)?;
    let of_core = || indices.iter().map(|&index| &system.tasks[index]).collect::<Vec<&SystemTask>>();
    Ok(match test {
        Test::FpRta if indices.iter().any(|&index| system.tasks[index].bounds.is_some()) => {
            response_times_with_bounds(&of_core(), work)
        }
        Test::EdfRta => response_times_edf(&of_core(), work),
        Test::FpRta if indices.iter().any(|&index| system.tasks[index].suspension_ns > 0) => {
            let suspensions: Vec<u64> =
                indices.iter().map(|&index| system.tasks[index].suspension_ns).collect();
            response_times_with_suspension(&set, &suspensions, limits)?
        }
        Test::FpRta => response_times_within(&set, work),
        Test::FpPublished(_) if set.tasks().iter().any(|task| task.deadline_ns > task.period_ns) => {
            return Err(beyond(test, "deadlines beyond periods", "fp-rta"));
        }
        Test::FpPublished(published) => response_times_as_published(&set, published, limits),
        Test::FpLimited => {
            let sections: Vec<u64> =
                indices.iter().map(|&index| system.tasks[index].non_preemptive_ns).collect();
            crate::fp_limited::response_times_limited(&set, &sections, limits)?
        }
        _ => edf_qpa_within(&set, limits, work),
    })
}

/// Answers for these tasks on the cores of a system.
pub(crate) fn analyze_globally(
    system: &System,
    tasks: &[Task],
    test: GlobalTest,
    limits: Limits,
) -> Result<Verdict, Refusal> {
    let refuse = |what, instead| Err(beyond(Test::Global(test), what, instead));
    TaskSet::new(tasks.to_vec())?;
    if tasks.iter().any(|task| task.deadline_ns > task.period_ns) {
        return refuse("deadlines beyond periods", "fp-rta or edf-qpa on single cores");
    }
    if test != GlobalTest::FpBertogna && tasks.iter().any(|task| task.blocking_ns > 0) {
        return refuse("blocking", "gfp-bertogna");
    }
    if test == GlobalTest::EdfDa && tasks.iter().any(|task| task.deadline_ns != task.period_ns) {
        return refuse("deadlines other than periods", "gedf-rta");
    }
    if test == GlobalTest::EdfFfDbf && system.cores == 1 {
        return refuse("a single core", "edf-qpa");
    }
    Ok(global(tasks, system.cores, test, limits))
}

/// Whether Linux admits the tasks under other settings than the usual ones; `partitioned` says
/// whether every core is a root domain of its own.
pub fn admission(system: &System, partitioned: bool, rules: Admission) -> Result<Verdict, Refusal> {
    let all: Vec<Task> = system.tasks.iter().map(|task| task.task).collect();
    let test = if partitioned { Test::SchedDeadlinePartitioned } else { Test::SchedDeadline };
    if system.shares() {
        return Err(beyond(test, "requests for resources", "--locks PROTOCOL"));
    }
    if system.suspends() {
        return Err(beyond(test, "self-suspension", "fp-rta"));
    }
    refuse_bounds(system, test)?;
    let mut verdict = Verdict::unanswered(&all);
    verdict.cores = system.tasks.iter().map(|task| task.core).collect();
    verdict.schedulable = is_admitted(system, &all, test, rules)?;
    Ok(verdict)
}

fn is_admitted(system: &System, tasks: &[Task], test: Test, rules: Admission) -> Result<bool, Refusal> {
    if tasks.iter().any(|task| task.jitter_ns > 0 || task.blocking_ns > 0) {
        return Err(beyond(test, "release jitter and blocking", "edf-qpa, which promises deadlines"));
    }
    Ok(match test {
        Test::SchedDeadline => sched_deadline::admits(tasks, system.cores, rules),
        _ => system.by_core().iter().all(|indices| {
            let own: Vec<Task> = indices.iter().map(|&index| tasks[index]).collect();
            sched_deadline::admits(&own, 1, rules)
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::Ask;
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
    fn sections_that_cannot_be_preempted_are_counted_or_refused() {
        let line = r#"{"tasks":[{"period":10,"cost":2},{"period":40,"cost":9,"non_preemptive":8}]}"#;
        assert_eq!(answer(line, Test::FpLimited).unwrap().response_times, [Some(10), Some(13)]);
        for test in Test::ALL {
            match test {
                Test::FpLimited | Test::SchedDeadline | Test::SchedDeadlinePartitioned => {}
                _ => {
                    let refusal = answer(line, test).unwrap_err().to_string();
                    assert!(refusal.contains("sections that cannot be preempted"), "{refusal}");
                }
            }
        }
    }

    /// A unit is how times are written, not when jobs arrive. Under global fixed priorities the
    /// fourth task here ends 7.25 ms after its arrival at 21.25 where others arrive at 22, 22,
    /// 25.75, 26 and 26.25 ms; whole milliseconds do not show that.
    #[test]
    fn global_tests_say_the_same_in_every_unit() {
        let line = |unit: &str, by: u64| {
            let times = [(4, 1, 4), (4, 1, 4), (10, 1, 6), (7, 5, 7), (10, 2, 7)];
            let task = |(period, cost, deadline): (u64, u64, u64)| {
                let [period, cost, deadline] = [period, cost, deadline].map(|time| time * by);
                format!("{{\"period\":{period},\"cost\":{cost},\"deadline\":{deadline}}}")
            };
            let tasks: Vec<String> = times.into_iter().map(task).collect();
            format!("{{\"unit\":\"{unit}\",\"cores\":2,\"tasks\":[{}]}}", tasks.join(","))
        };
        for test in Test::ALL.into_iter().filter(|test| matches!(test, Test::Global(_))) {
            let [ms, us, ns] = [("ms", 1), ("us", 1_000), ("ns", 1_000_000)].map(|(unit, by)| {
                let mut question = question::read(line(unit, by)).unwrap();
                Ask::of(test).answer(&mut question, Limits::default())
            });
            assert!(ms == us && us == ns, "{}: {ms:?} {us:?} {ns:?}", test.name());
            if matches!(test, Test::Global(GlobalTest::FpGuan)) {
                assert!(!ms.unwrap().schedulable);
            }
        }
    }

    #[test]
    fn admission_is_to_all_cores_or_to_each() {
        let line = r#"{"unit":"ms","cores":2,"tasks":[{"period":100,"cost":50},{"period":100,"cost":50},{"period":100,"cost":50}]}"#;
        assert!(answer(line, Test::SchedDeadline).unwrap().schedulable);
        assert!(!answer(line, Test::SchedDeadlinePartitioned).unwrap().schedulable);
        let late = r#"{"unit":"ms","tasks":[{"period":100,"cost":50,"jitter":1}]}"#;
        assert!(answer(late, Test::SchedDeadline).unwrap_err().to_string().contains("release jitter"));
    }

    #[test]
    fn names_are_unique_and_found() {
        for test in Test::ALL {
            assert_eq!(Test::by_name(test.name()), Some(test));
        }
        assert_eq!(Test::by_name("fp"), None);
    }
}
