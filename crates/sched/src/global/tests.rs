//! What all tests of this folder have in common.

use super::*;
use crate::MAX_NS;
use proptest::prelude::*;

fn ask(tasks: &[Task], cores: u32, test: GlobalTest) -> Verdict {
    global(tasks, cores, test, Limits { rounds_per_task: 1_000 })
}

#[test]
fn one_task_is_schedulable_and_an_overload_is_not() {
    for test in GlobalTest::ALL.into_iter().filter(|test| *test != GlobalTest::EdfDa) {
        assert!(ask(&[Task::implicit(10, 4)], 2, test).schedulable, "{}", test.name());
        assert!(ask(&[], 2, test).schedulable, "{}", test.name());
        assert!(
            !ask(&[Task { deadline_ns: 3, ..Task::implicit(10, 4) }], 2, test).schedulable,
            "{}",
            test.name()
        );
        assert!(!ask(&[Task::implicit(10, 7); 3], 2, test).schedulable, "{}", test.name());
    }
    // Late, but never by more than a bound: x = 0 up to a utilization of 1, else (7 + 7 - 7) / (3 -
    // 0.7), rounded up.
    assert_eq!(ask(&[Task::implicit(10, 4)], 2, GlobalTest::EdfDa).response_times, [Some(14)]);
    assert_eq!(ask(&[Task::implicit(10, 7); 4], 3, GlobalTest::EdfDa).response_times, [Some(17 + 4); 4]);
    assert!(!ask(&[Task::implicit(10, 7); 3], 2, GlobalTest::EdfDa).schedulable);
}

#[test]
fn jitter_shortens_period_and_deadline_and_counts_in_the_response() {
    let late = Task { jitter_ns: 3, ..Task::implicit(10, 2) };
    let shifted = Task::implicit(7, 2);
    // Room enough for the periods of the others to show.
    let (below, late_below) = (Task::implicit(60, 20), Task { jitter_ns: 3, ..Task::implicit(63, 20) });
    for test in GlobalTest::ALL {
        let (with, without) = (
            ask(&[late, late, late, late_below], 2, test),
            ask(&[shifted, shifted, shifted, below], 2, test),
        );
        assert_eq!(with.schedulable, without.schedulable, "{}", test.name());
        let plus: Vec<Option<u64>> =
            without.response_times.iter().map(|response| response.map(|ns| ns + 3)).collect();
        assert_eq!(with.response_times, plus, "{}", test.name());
        assert!(!ask(&[Task { jitter_ns: 10, ..late }], 2, test).schedulable, "{}", test.name());
    }
}

#[test]
fn extremes_do_not_overflow() {
    let edge = [1, 2, MAX_NS / 2, MAX_NS - 1, MAX_NS];
    let mut tasks = Vec::new();
    for period_ns in edge {
        for cost_ns in edge.into_iter().filter(|cost| *cost <= period_ns) {
            tasks.push(Task::implicit(period_ns, cost_ns));
        }
    }
    for test in GlobalTest::ALL {
        for cores in [2, 3, crate::MAX_CORES] {
            ask(&tasks, cores, test);
            for pair in tasks.windows(2) {
                ask(pair, cores, test);
            }
        }
    }
}

#[test]
fn the_cap_leaves_a_question_open() {
    let tasks = [
        Task::implicit(1_000_003, 500_001),
        Task::implicit(1_000_033, 500_015),
        Task::implicit(1_000_037, 900_000),
    ];
    let verdict = global(&tasks, 2, GlobalTest::EdfBar, Limits { rounds_per_task: 0 });
    assert_eq!((verdict.schedulable, verdict.undecided), (false, vec![0, 1, 2]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_accepts_exactly_what_one_of_the_tests_by_deadline_accepts(
        tasks in proptest::collection::vec((2u64..40, 1u64..20, 1u64..40, 0u64..3), 1..8),
        cores in 1u32..5,
    ) {
        let task = |(period_ns, cost, deadline, jitter_ns): (u64, u64, u64, u64)| Task {
            deadline_ns: deadline.min(period_ns),
            jitter_ns,
            ..Task::implicit(period_ns, cost.min(period_ns))
        };
        let tasks: Vec<Task> = tasks.into_iter().map(task).collect();
        let tests = BY_DEADLINE.into_iter().filter(|test| cores > 1 || *test != GlobalTest::EdfFfDbf);
        let accepted = tests.filter(|test| ask(&tasks, cores, *test).schedulable).count();
        prop_assert_eq!(ask(&tasks, cores, GlobalTest::EdfAny).schedulable, accepted > 0);
    }
}
