//! Simple sets: independent sporadic tasks on one core, in order of priority, one set after another
//! through the same memory.
//!
//! Large batches are nearly always such sets. For them `fp-rta` and `edf-qpa` need neither a
//! [`Question`] nor a [`crate::Verdict`], whose lists take longer than the test. The tests are the
//! same functions that [`crate::analyze`] calls, so that every number of an answer is the same.

mod columns;
mod line;

use crate::analyze::Test;
use crate::ask::{Ask, EdfJitter};
use crate::asked::{Question, Unit};
use crate::edf_qpa::{Shifted, decide_within};
use crate::fp_rta::Found;
use crate::system::System;
use crate::task::{MAX_NS, Task};
use crate::window::{Limits, Work};
pub use columns::{Column, Key, TaskColumns};

/// A simple set. Its memory is used again for the next one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimpleSet {
    /// The unit in which it was given.
    pub unit: Unit,
    /// Its tasks in ns, highest priority first; every field in range.
    pub tasks: Vec<Task>,
    /// Whether any task names its core.
    placed: bool,
}

impl SimpleSet {
    /// Reads a line of JSON in place of the set before. False where the line is anything else or
    /// has anything unusual: [`crate::question::read`] reads it then, or says what is wrong.
    pub fn read(&mut self, line: &[u8]) -> bool {
        line::read(line, self).is_some()
    }

    /// The set as any other question.
    pub fn question(&self) -> Question {
        let tasks = self.tasks.iter().map(|&task| task.into()).collect();
        let places = (0..self.tasks.len()).collect();
        let system = System { cores: 1, tasks };
        Question { unit: self.unit, system, places, placed: self.placed, equals: Vec::new() }
    }

    /// A time in the unit of the set.
    pub fn in_unit(&self, ns: u64) -> u64 {
        self.unit.of(ns)
    }
}

/// Tests of simple sets, with the memory that they need.
#[derive(Debug, Default)]
pub struct SimpleTests {
    found: Found,
    shifted: Vec<Shifted>,
}

/// What a test says of a simple set; as [`crate::Verdict`], where all tasks are on core 0 and only
/// their own `blocking_ns` blocks them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimpleVerdict<'a> {
    /// Every deadline is met.
    pub schedulable: bool,
    /// By task, ns; `None` beyond the deadline, and for all tasks where the test only decides.
    pub response_times: &'a [Option<u64>],
    /// How often the right-hand side of a busy-window equation, or demand, was evaluated.
    pub rounds: u64,
}

impl Ask {
    /// Whether [`SimpleTests`] answers what is asked.
    pub fn is_simple(&self) -> bool {
        matches!(self.test, Test::FpRta | Test::EdfQpa)
            && self.partition.is_none()
            && self.order.is_none()
            && self.locks.is_none()
            && self.blocking_only.is_none()
            && self.overheads.is_none()
            && self.edf_jitter == EdfJitter::Deadlines
    }
}

impl SimpleTests {
    /// Answers for a set, to which it adds the jitter that is asked for. None where the question
    /// is not simple ([`Ask::is_simple`]) or a task is left undecided.
    pub fn answer(&mut self, ask: &Ask, set: &mut SimpleSet) -> Option<SimpleVerdict<'_>> {
        if !ask.is_simple() {
            return None;
        }
        if ask.extra_jitter_ns > 0 {
            for task in &mut set.tasks {
                task.jitter_ns = task.jitter_ns.saturating_add(ask.extra_jitter_ns).min(MAX_NS);
            }
        }
        let limits = Limits::default();
        let mut work = Work::of(limits);
        let found = &mut self.found;
        if ask.test == Test::FpRta {
            found.analyse(&set.tasks, &mut work);
            if !found.undecided.is_empty() {
                return None;
            }
            let Found { schedulable, ref response_times, rounds, .. } = *found;
            return Some(SimpleVerdict { schedulable, response_times, rounds });
        }
        let decided = decide_within(&set.tasks, limits, &mut work, &mut self.shifted);
        found.response_times.clear();
        found.response_times.resize(set.tasks.len(), None);
        Some(SimpleVerdict {
            schedulable: decided.answer?,
            response_times: &found.response_times,
            rounds: decided.rounds,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn task() -> impl Strategy<Value = Task> {
        let scale = prop::sample::select(vec![1u64, 1_000, 1 << 43, MAX_NS / 400]);
        (5u64..400, 1u64..60, 30u64..220, 0u64..40, 0u64..9, scale).prop_map(|(t, c, d, j, b, by)| Task {
            period_ns: t * by,
            deadline_ns: (t * d / 100).clamp(1, 400) * by,
            cost_ns: c * by,
            jitter_ns: if j > 20 { 0 } else { j * by },
            blocking_ns: if b > 2 { 0 } else { b * by },
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        #[test]
        fn every_number_is_that_of_the_general_way(
            tasks in prop::collection::vec(task(), 0..24),
            edf in any::<bool>(), sorted in any::<bool>(),
            jitter in prop::sample::select(vec![0, 3, 2_000, MAX_NS]),
        ) {
            let mut tasks = tasks;
            if sorted {
                tasks.sort_by_key(|task| task.deadline_ns);
            }
            let ask = Ask { extra_jitter_ns: jitter, ..Ask::of(if edf { Test::EdfQpa } else { Test::FpRta }) };
            let mut set = SimpleSet { tasks, ..SimpleSet::default() };
            let mut question = set.question();
            let expected = ask.answer(&mut question, Limits::default()).unwrap();
            // Used twice, so that nothing of one set is left for the next.
            let mut tests = SimpleTests::default();
            let mut other = SimpleSet { tasks: vec![Task::implicit(9, 7); 30], ..SimpleSet::default() };
            tests.answer(&ask, &mut other);
            if let Some(found) = tests.answer(&ask, &mut set) {
                prop_assert_eq!(found.schedulable, expected.schedulable);
                prop_assert_eq!(found.response_times, &expected.response_times);
                prop_assert_eq!(found.rounds, expected.rounds);
                prop_assert!(expected.undecided.is_empty());
                let blocking: Vec<u64> = set.tasks.iter().map(|task| task.blocking_ns).collect();
                prop_assert_eq!(blocking, expected.blocking);
            } else {
                prop_assert!(!expected.undecided.is_empty());
            }
        }
    }

    #[test]
    fn what_is_not_simple_is_left_to_others() {
        let mut set = SimpleSet { tasks: vec![Task::implicit(10, 3)], ..SimpleSet::default() };
        let mut tests = SimpleTests::default();
        assert!(tests.answer(&Ask::of(Test::FpRta), &mut set).is_some_and(|one| one.schedulable));
        for ask in [
            Ask::of(Test::EdfRta),
            Ask { edf_jitter: EdfJitter::PeriodsToo, ..Ask::of(Test::EdfQpa) },
            Ask { order: Some(crate::Order::RateMonotonic), ..Ask::of(Test::FpRta) },
        ] {
            assert_eq!(tests.answer(&ask, &mut set), None);
        }
        // A window of more rounds than the cap allows.
        let full = Task::implicit(1_000_000_007, 1_000_000_006);
        set.tasks = vec![full, Task::implicit(MAX_NS, 4_000_000)];
        assert_eq!(tests.answer(&Ask::of(Test::FpRta), &mut set), None);
    }
}
