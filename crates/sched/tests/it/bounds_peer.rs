//! Arrival curves, cost curves and EDF against the analyses of `response-time-analysis`, whose
//! authors have proved them: the same values on drawn sets.

use crate::common::numbers::Numbers;
use response_time_analysis::arrival::{Curve, ExtrapolatingCurve};
use response_time_analysis::demand::RBF;
use response_time_analysis::fixed_point::SearchResult;
use response_time_analysis::supply::{Periodic, SupplyBound};
use response_time_analysis::time::{Duration, Service};
use response_time_analysis::{edf, fixed_priority, wcet};
use sched::{Bounds, Limits, Supply, System, SystemTask, Task, Test, analyze};

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

const SETS: usize = 12_000;
/// Of the peer for busy windows; deadlines are at most this.
const LIMIT: u64 = 4_000;

/// Compares drawn sets: the peer is given the demands, the deadlines, and a task.
fn compare(test: Test, deadlines: (u64, u64), theirs: impl Fn(&[Demand], &[u64], usize) -> SearchResult) {
    let mut numbers = Numbers(20_261_128);
    let (mut equal, mut none) = (0, 0);
    for set in 0..SETS {
        let bounds: Vec<Bounds> = (0..numbers.between(1, 4)).map(|_| draw(&mut numbers)).collect();
        let due: Vec<u64> = bounds.iter().map(|_| numbers.between(deadlines.0, deadlines.1)).collect();
        let task = |(bounds, &deadline_ns): (&Bounds, &u64)| SystemTask {
            bounds: Some(Box::new(bounds.clone())),
            ..Task { deadline_ns, ..Task::implicit(bounds.intervals_ns[0].max(1), bounds.costs_ns[0]) }.into()
        };
        let system = System { cores: 1, tasks: bounds.iter().zip(&due).map(task).collect() };
        let found = analyze(&system, test, Limits::default()).unwrap();
        let demands: Vec<Demand> = bounds.iter().map(peer).collect();
        for (at, response) in found.response_times.iter().enumerate() {
            match (response, theirs(&demands, &due, at)) {
                (Some(ours), Ok(theirs)) => {
                    assert_eq!(Duration::from(*ours), theirs, "set {set}, task {at}: {bounds:?} {due:?}");
                    equal += 1;
                }
                (None, Ok(theirs)) => {
                    assert!(theirs > Duration::from(due[at]), "set {set}, task {at}: {bounds:?} {due:?}");
                }
                // Their limit is for busy windows, ours for responses.
                (_, Err(_)) => none += 1,
            }
        }
    }
    assert!(equal > SETS && none > 0, "{equal} equal, {none} beyond the limit");
}

#[test]
fn fixed_priorities_have_the_values_of_the_peer() {
    compare(Test::FpRta, (LIMIT, LIMIT), |demands, _, at| {
        let limit = Duration::from(LIMIT);
        fixed_priority::fully_preemptive::dedicated_uniproc_rta(&demands[at], &demands[..at], limit)
    });
}

#[test]
fn deadlines_have_the_values_of_the_peer() {
    compare(Test::EdfRta, (20, 300), |demands, due, at| {
        let task =
            |at: usize| edf::fully_preemptive::Task { rbf: &demands[at], deadline: Duration::from(due[at]) };
        let others: Vec<_> = (0..demands.len()).filter(|other| *other != at).map(task).collect();
        edf::fully_preemptive::dedicated_uniproc_rta(&task(at), &others, Duration::from(LIMIT))
    });
}

#[test]
fn supplies_are_those_of_the_peer() {
    let mut numbers = Numbers(7);
    for _ in 0..20_000 {
        let period_ns = numbers.between(1, 200);
        let supply = Supply { budget_ns: numbers.between(1, period_ns), period_ns };
        let theirs = Periodic::new(supply.budget_ns.into(), period_ns.into());
        let time = numbers.between(0, 2_000);
        assert_eq!(Duration::from(supply.time_for(time)), theirs.service_time(time.into()));
        assert_eq!(Service::from(supply.service(time)), theirs.provided_service(time.into()));
    }
}
