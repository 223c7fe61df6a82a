//! Arrival curves, cost curves and EDF against the analyses of `response-time-analysis`, whose
//! authors have proved them: the same values on drawn sets.

use crate::common::numbers::Numbers;
use response_time_analysis::arrival::{Curve, ExtrapolatingCurve};
use response_time_analysis::demand::RBF;
use response_time_analysis::time::{Duration, Service};
use response_time_analysis::{fixed_priority, wcet};
use sched::{Bounds, Limits, System, SystemTask, Task, Test, analyze};

type Demand = RBF<ExtrapolatingCurve, wcet::ExtrapolatingCurve>;

/// Intervals and costs that bound each other already: the peer takes them as they are.
fn draw(numbers: &mut Numbers) -> Bounds {
    let entries = numbers.between(3, 6) as usize;
    // Distances of releases in a row, repeated: what they imply is what they are.
    let base: Vec<u64> = (0..3).map(|_| numbers.between(0, 40)).collect();
    let time = |job: usize| (0..job).map(|at| base[at % 3]).sum::<u64>() + job as u64;
    let shortest = |jobs: usize| (0..3).map(|from| time(from + jobs) - time(from)).min().unwrap_or(0);
    let costs: Vec<u64> = (0..3).map(|_| numbers.between(1, 9)).collect();
    let most =
        |jobs: usize| (0..3).map(|from| (0..jobs).map(|at| costs[(from + at) % 3]).sum()).max().unwrap_or(0);
    Bounds {
        intervals_ns: (1..=entries).map(shortest).collect(),
        costs_ns: (1..=entries).map(most).collect(),
        supply: None,
    }
}

fn peer(bounds: &Bounds) -> Demand {
    let far = bounds.intervals_ns.iter().map(|&ns| Duration::from(ns)).collect();
    let costs = bounds.costs_ns.iter().map(|&ns| Service::from(ns)).collect();
    RBF::new(ExtrapolatingCurve::new(Curve::new(far)), wcet::ExtrapolatingCurve::new(wcet::Curve::new(costs)))
}

#[test]
fn fixed_priorities_have_the_values_of_the_peer() {
    let mut numbers = Numbers(20_261_128);
    let (mut equal, mut none) = (0, 0);
    for set in 0..12_000 {
        let bounds: Vec<Bounds> = (0..numbers.between(1, 4)).map(|_| draw(&mut numbers)).collect();
        let deadline_ns = 4_000;
        let task = |bounds: &Bounds| SystemTask {
            bounds: Some(Box::new(bounds.clone())),
            ..Task { deadline_ns, ..Task::implicit(bounds.intervals_ns[0].max(1), bounds.costs_ns[0]) }.into()
        };
        let system = System { cores: 1, tasks: bounds.iter().map(task).collect() };
        let found = analyze(&system, Test::FpRta, Limits::default()).unwrap();
        let demands: Vec<Demand> = bounds.iter().map(peer).collect();
        for (at, response) in found.response_times.iter().enumerate() {
            let limit = Duration::from(deadline_ns);
            let theirs =
                fixed_priority::fully_preemptive::dedicated_uniproc_rta(&demands[at], &demands[..at], limit);
            match (response, theirs) {
                (Some(ours), Ok(theirs)) => {
                    assert_eq!(*ours, u64::from(theirs), "set {set}, task {at}: {bounds:?}");
                    equal += 1;
                }
                // Their limit is for busy windows, ours for responses.
                (_, Err(_)) => none += 1,
                (None, Ok(theirs)) => panic!("set {set}, task {at}: none here, {theirs:?} there"),
            }
        }
    }
    assert!(equal > 10_000 && none > 0, "{equal} equal, {none} beyond the limit");
}
