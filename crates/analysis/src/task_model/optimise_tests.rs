//! Programs whose best placement is known.

use super::super::tests::{MS, assumed, program, thread};
use super::*;
use crate::task_model::shape::Suspension;
use proptest::prelude::*;

fn found(model: &TaskModel, cpus: &[u32]) -> Optimised {
    optimise(model, &assumed(0), &cpus.iter().copied().collect()).unwrap()
}

fn changes(found: &Optimised) -> Vec<String> {
    let all = found.proposal.iter().flat_map(|one| &one.changes);
    all.map(ToString::to_string).collect()
}

#[test]
fn priorities_are_exchanged_where_that_is_better_and_kept_where_it_is_not() {
    // The thread with the longer period is the more urgent one: 5 of 20, then 3 of 8.
    let model = program(vec![thread(1, 20, 20 * MS, 5 * MS), thread(2, 30, 8 * MS, 3 * MS)], Vec::new());
    let best = found(&model, &[1]);
    assert_eq!(changes(&best), ["t2.priority=79", "t1.priority=69"]);
    // 8 c = 8 with the longer one above; with it below, 3 c + 3 c + 5 c = 16: c = 16 / 11.
    assert_eq!((best.now.spare_ppm, best.is_optimal), (Some(0), true));
    assert_eq!(best.proposal.as_ref().unwrap().then.spare_ppm, Some(454_000));
    assert_eq!(best.best_ppm, 1_454_000);
    let again = found(&changed(&model, &best.proposal.unwrap().changes).unwrap(), &[1]);
    assert_eq!(again.proposal, None);
}

#[test]
fn a_thread_moves_to_the_idle_cpu_and_no_other_does() {
    let mut model = program(
        vec![thread(1, 20, 10 * MS, 4 * MS), thread(2, 30, 10 * MS, 2 * MS), thread(3, 40, 10 * MS, 2 * MS)],
        Vec::new(),
    );
    model.cpus = [1, 2].into_iter().collect();
    let best = found(&model, &[1, 2]);
    assert_eq!((best.placements, best.is_exhaustive), (8, true));
    // 8 of 10 becomes 4 of 10 on each.
    assert_eq!(best.now.spare_ppm, Some(250_000));
    assert_eq!(best.proposal.as_ref().unwrap().then.spare_ppm, Some(1_500_000));
    assert_eq!(changes(&best), ["t1.cpu=2"]);
    let refused = optimise(&model, &assumed(0), &[1, 7].into_iter().collect()).unwrap_err();
    assert!(refused.to_string().contains("CPU 7 was not recorded"), "{refused}");
}

#[test]
fn a_thread_without_a_model_keeps_its_place_among_priorities() {
    let interference = super::super::shape::Interference {
        cpu: 1,
        what: "irq/9".to_owned(),
        prio: Some(25),
        demand: infer::bucket::Bucket { rate: 0.01, burst_ns: 10_000, longest_ns: 10_000, n: 9 },
    };
    let model =
        program(vec![thread(1, 20, 20 * MS, 5 * MS), thread(2, 30, 8 * MS, 2 * MS)], vec![interference]);
    assert_eq!(found(&model, &[1]).proposal, None);
}

#[test]
fn what_cannot_be_in_time_is_not_proposed() {
    let model = program(vec![thread(1, 20, 10 * MS, 6 * MS), thread(2, 30, 10 * MS, 6 * MS)], Vec::new());
    let best = found(&model, &[1]);
    assert_eq!((best.now.schedulable, best.proposal.is_some()), (Some(false), false));
    // 12 c = 10.
    assert_eq!(best.best_ppm, 833_000);
}

#[test]
fn threads_of_one_name_are_changed_one_by_one() {
    let mut threads = vec![thread(1, 20, 20 * MS, 5 * MS), thread(2, 30, 8 * MS, 3 * MS)];
    threads.iter_mut().for_each(|thread| thread.comm = "worker".to_owned());
    let best = found(&program(threads, Vec::new()), &[1]);
    assert_eq!(changes(&best), ["worker[2].priority=79", "worker[1].priority=69"]);
}

#[test]
fn many_threads_are_placed_within_bounds_of_time() {
    let threads =
        (1..=24).map(|pid| thread(pid, 20 + pid as i16, 10 * MS * u64::from(pid.unsigned_abs()), MS));
    let mut model = program(threads.collect(), Vec::new());
    model.cpus = [1, 2, 3].into_iter().collect();
    let best = found(&model, &[1, 2, 3]);
    assert!(!best.is_exhaustive && best.proposal.is_some());
    assert!(best.proposal.unwrap().then.spare_ppm > best.now.spare_ppm);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// No order of priorities is better where no thread suspends itself.
    #[test]
    fn no_order_is_better(
        tasks in prop::collection::vec((5u64..40, 1u64..4, 0u64..3), 2..5),
        suspends in any::<bool>(),
    ) {
        let mut threads: Vec<ThreadModel> = tasks.iter().zip(1..).map(|((period, cost, jitter), pid)| {
            let mut one = thread(pid, 20 + pid as i16, period * MS, cost * MS);
            one.release.jitter_ns = jitter * MS;
            one
        }).collect();
        if suspends {
            threads[0].suspension = Suspension { total_ns: MS, most: 1, ..Suspension::default() };
        }
        let model = program(threads, Vec::new());
        let best = found(&model, &[1]);
        let spare = |model: &TaskModel| {
            let one = guarantee(model, &assumed(0)).unwrap();
            if one.schedulable == Some(true) { i128::from(one.spare_ppm.unwrap_or(u64::MAX)) } else { -1 }
        };
        let after = best.proposal.as_ref().map_or_else(|| spare(&model), |one| {
            i128::from(one.then.spare_ppm.unwrap_or(u64::MAX))
        });
        prop_assert!(after >= spare(&model));
        prop_assert_eq!(best.is_optimal, !suspends);
        let mut orders = vec![vec![]];
        for pid in 1..=tasks.len() {
            orders = orders.iter().flat_map(|order: &Vec<usize>| (0..=order.len()).map(move |at| {
                let mut longer = order.clone();
                longer.insert(at, pid);
                longer
            })).collect();
        }
        for order in orders.iter().filter(|_| !suspends) {
            let mut other = model.clone();
            for (rank, pid) in order.iter().enumerate() {
                let thread = other.threads.iter_mut().find(|one| one.pid == *pid as i32).unwrap();
                thread.prio = Some(20 + rank as i16);
            }
            prop_assert!(spare(&other) <= after, "{:?} {:?}", order, best);
        }
    }
}
