//! Many sets at a time give the verdicts of one set at a time, with any instructions, and of the
//! equation as in the papers.

use proptest::prelude::*;
use sched::generate::{Generator, Periods, Spec, Utilizations};
use sched::{
    Limits, MAX_NS, Path, Task, TaskSet, are_generated_schedulable, are_schedulable, is_schedulable,
    response_times,
};

/// Strict: R = w + J ≤ D, one job a window.
fn textbook(set: &TaskSet) -> bool {
    let tasks = set.tasks();
    (0..tasks.len()).all(|i| {
        let own = tasks[i].cost_ns + tasks[i].blocking_ns;
        let mut w = own;
        while w + tasks[i].jitter_ns <= tasks[i].deadline_ns {
            let next = own
                + tasks[..i].iter().map(|k| (w + k.jitter_ns).div_ceil(k.period_ns) * k.cost_ns).sum::<u64>();
            if next == w {
                return true;
            }
            w = next;
        }
        false
    })
}

fn both_paths(sets: &[TaskSet]) -> Vec<bool> {
    let widest = are_schedulable(sets, Limits::default(), Path::Widest);
    assert_eq!(widest, are_schedulable(sets, Limits::default(), Path::Portable));
    widest
}

#[test]
fn generated_sets_have_the_verdict_of_response_times() {
    let spec = |periods| Spec { periods, ..Spec::default() };
    let (low_ns, high_ns) = (1_000_000, 100_000_000);
    for (spec, seed) in [
        (spec(Spec::default().periods), 1),
        (Spec { tasks: 7, ..spec(Periods::LogUniform { low_ns, high_ns, granularity_ns: 1 }) }, 2),
        (spec(Periods::Uniform { low_ns, high_ns, granularity_ns: 1_000_000 }), 3),
        (spec(Periods::harmonic(low_ns, high_ns, 2)), 4),
        (Spec { tasks: 1, ..spec(Spec::default().periods) }, 5),
    ] {
        let mut accepted = [0; 2];
        for utilization in [0.72, 0.8, 0.84, 0.97, 1.0] {
            let generator = Generator::new(Spec { utilization, ..spec.clone() }, seed).unwrap();
            let jitters = [0, 104_000, 2_000_000];
            // Neither end is a multiple of what goes side by side.
            let range = 5..610;
            let at = |path| {
                are_generated_schedulable(&generator, range.clone(), &jitters, Limits::default(), path)
                    .unwrap()
            };
            let found = at(Path::Widest);
            assert_eq!(found, at(Path::Portable));
            for (jitter, verdicts) in jitters.iter().zip(&found) {
                assert_eq!(verdicts.len(), 605);
                for (set, verdict) in range.clone().zip(verdicts) {
                    let set = generator.set(set).unwrap().with_added_jitter(*jitter).unwrap();
                    assert_eq!(response_times(&set, Limits::default()).schedulable, *verdict);
                    assert_eq!(textbook(&set), *verdict);
                    accepted[usize::from(*verdict)] += 1;
                }
            }
        }
        // Otherwise nothing was compared.
        assert!(accepted.iter().all(|count| *count > 50), "{accepted:?} with seed {seed}");
    }
}

#[test]
fn sets_that_cannot_be_drawn_side_by_side() {
    let spec = Spec {
        deadlines: [0.7, 1.0],
        utilizations: Utilizations::RandFixedSum,
        jitter_ns: 77,
        ..Spec::default()
    };
    let generator = Generator::new(Spec { utilization: 0.78, ..spec }, 9).unwrap();
    let found =
        are_generated_schedulable(&generator, 0..99, &[5_000, 0], Limits::default(), Path::Widest).unwrap();
    for (set, (late, early)) in found[0].iter().zip(&found[1]).enumerate() {
        let tasks: Vec<Task> = generator
            .set(set as u64)
            .unwrap()
            .tasks()
            .iter()
            .map(|task| Task { jitter_ns: 0, ..*task })
            .collect();
        let set = TaskSet::new(tasks).unwrap();
        assert_eq!(textbook(&set), *early);
        assert_eq!(textbook(&set.with_added_jitter(5_000).unwrap()), *late);
    }
    assert!(found[1].iter().any(|one| *one) && found[1].iter().any(|one| !*one));
}

#[test]
fn what_does_not_go_into_a_lane_is_decided_all_the_same() {
    let set = |tasks: &[Task]| TaskSet::new(tasks.to_vec()).unwrap();
    let late_deadline = Task { deadline_ns: 120, ..Task::implicit(100, 62) };
    let huge = Task::implicit(MAX_NS, MAX_NS / 2);
    let own_jitter = Task { jitter_ns: 20, ..Task::implicit(10, 1) };
    let many_rounds = Task::implicit(1_000_000_007, 1_000_000_006);
    let sets = [
        set(&[]),
        set(&[Task { deadline_ns: 70, ..Task::implicit(70, 26) }, late_deadline]),
        set(&[huge, huge]),
        set(&[huge, huge, huge]),
        set(&[own_jitter]),
        set(&[many_rounds, Task::implicit(100_000_000_000, 1)]),
        set(&[many_rounds, Task::implicit(1 << 50, 1_000_000)]),
        set(&[Task::implicit(10, 10)]),
        set(&[Task::implicit(10, 11)]),
    ];
    let expected: Vec<bool> = sets.iter().map(|set| is_schedulable(set, Limits::default())).collect();
    assert_eq!(both_paths(&sets), expected);
    assert_eq!(expected, [true, true, true, false, false, true, true, true, false]);
    assert_eq!(both_paths(&[]), Vec::<bool>::new());
}

fn task(scale: u64) -> impl Strategy<Value = Task> {
    (10u64..1000, 1u64..120, 20u64..101, 0u64..60, 0u64..30).prop_map(
        move |(period, cost, percent, jitter, blocking)| Task {
            period_ns: period * scale,
            deadline_ns: (period * scale * percent / 100).max(1),
            cost_ns: cost * scale,
            jitter_ns: jitter * scale,
            blocking_ns: blocking * scale,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Unlike sets side by side, with jitter and blocking of their own, small and close to the
    /// largest times that a lane takes.
    #[test]
    fn any_sets(
        mut sets in (prop::sample::select(vec![1u64, 1_000_003, (1 << 50) / 1000]))
            .prop_flat_map(|scale| prop::collection::vec(prop::collection::vec(task(scale), 0..12), 1..40)),
    ) {
        sets.iter_mut().for_each(|tasks| tasks.sort_by_key(|task| task.deadline_ns));
        let sets: Vec<TaskSet> = sets.into_iter().map(|tasks| TaskSet::new(tasks).unwrap()).collect();
        let expected: Vec<bool> = sets.iter().map(textbook).collect();
        prop_assert_eq!(both_paths(&sets), expected);
    }

    /// Windows that end exactly at the deadline, or one ns beyond.
    #[test]
    fn at_the_edge(tasks in prop::collection::vec(task(1), 1..10), off in 0u64..3) {
        let set = TaskSet::new(tasks).unwrap();
        let loose: Vec<Task> = set.tasks().iter().map(|t| Task { deadline_ns: t.period_ns, ..*t }).collect();
        let answer = response_times(&TaskSet::new(loose).unwrap(), Limits::default());
        let tight: Vec<Task> = answer.tasks.iter().zip(&answer.response_times)
            .map(|(t, r)| Task { deadline_ns: (r.unwrap_or(t.period_ns) + 1).saturating_sub(off).clamp(1, t.period_ns), ..*t })
            .collect();
        let tight = TaskSet::new(tight).unwrap();
        prop_assert_eq!(both_paths(std::slice::from_ref(&tight)), [textbook(&tight)]);
    }
}
