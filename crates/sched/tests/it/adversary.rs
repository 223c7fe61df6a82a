//! A few sets of every test and protocol against the adversary (`cargo xtask bench adversary` takes
//! 20,000 of each), and that it finds what wrong tests overlook: each counter-example here was once
//! called schedulable.

use crate::common::adversary::campaign::trials;
use crate::common::adversary::executors::beyond;
use crate::common::adversary::search::{Effort, Late, Search};
use crate::common::adversary::simulate::Rules;
use crate::common::adversary::supplies::withheld;
use crate::common::numbers::Numbers;
use sched::executor::{ExecutorAnalysis, ReadyOrder, bound_executors, read_executors};
use sched::locks::{Locks, Protocol};
use sched::{Ask, Limits, System, Test, question};

#[test]
fn no_accepted_set_has_a_late_job() {
    for (at, trial) in trials().iter().enumerate() {
        let tally = trial.run(12, Effort { starts: 3, changes: 8 }, at as u64);
        assert_eq!(tally.wrong, 0, "{}: {:?}", trial.name, tally.first);
        assert!(tally.accepted > 0, "{}: nothing is accepted", trial.name);
    }
}

/// A late job under rules where every deadline is promised.
fn late(system: &System, rules: Rules<'_>, starts: u64) -> Option<Late> {
    let promises: Vec<Option<u64>> = system.tasks.iter().map(|one| Some(one.task.deadline_ns)).collect();
    let search = Search {
        system,
        rules,
        promises: &promises,
        interrupts: &|jobs| withheld(system, jobs),
        effort: Effort { starts, changes: 12 },
    };
    search.late_job(&mut Numbers(7))
}

const PRIORITIES: Rules<'static> =
    Rules { by_deadline: false, global: false, levels: &[0, 1, 2, 3, 4], locks: None };

/// Schedulable where jobs arrive at whole ticks of 4 ns only, by Guan's test in ticks: arrivals at
/// quarters make the fourth task late.
#[test]
fn arrivals_between_ticks_are_found() {
    let line = r#"{"cores":2,"tasks":[{"period":16,"cost":4},{"period":16,"cost":4},{"period":40,"cost":4,"deadline":24},
        {"period":28,"cost":20},{"period":40,"cost":8,"deadline":28}]}"#;
    let system = question::read(line.replace('\n', "")).unwrap().system;
    let found = late(&system, Rules { global: true, ..PRIORITIES }, 4_000).expect("the fourth task is late");
    assert_eq!((found.task, found.at_most), (3, 28));
    assert!(found.response > 28, "{found:?}");
}

/// A spin lock of the second core's own, taken as held at a ceiling.
#[test]
fn a_spin_lock_that_delays_its_own_core_is_found() {
    let line = r#"{"cores":2,"tasks":[{"period":1000,"cost":50,"deadline":60},{"period":5000,"cost":400,"requests":[{"resource":0,"length":300}]},
        {"period":9000,"cost":400,"requests":[{"resource":0,"length":300}]}]}"#;
    let system = question::read(line.replace('\n', "")).unwrap().system;
    let rules = |locks| Rules { locks: Some(locks), ..PRIORITIES };
    assert_eq!(late(&system, rules(Locks::of(Protocol::FifoNp)), 40).map(|one| one.task), Some(0));
    assert!(late(&system, rules(Locks::with_ceilings(Protocol::FifoNp).unwrap()), 40).is_none());
}

/// Under the stack resource policy no less urgent job starts while a job is held back. Where the
/// first task may, here between the second's release and the end of the section that holds it back,
/// the second is late by up to a tick.
#[test]
fn who_is_held_back_holds_back_all_less_urgent() {
    let line = r#"{"tasks":[{"period":16,"cost":4,"deadline":12},{"period":24,"cost":4,"requests":[{"resource":1,"length":4}]},
        {"period":120,"cost":44,"deadline":104,"requests":[{"resource":1,"length":16}]}]}"#;
    let mut question = question::read(line.replace('\n', "")).unwrap();
    let ask = Ask { locks: Some(Protocol::MsrpLp.into()), ..Ask::of(Test::EdfQpa) };
    assert!(ask.answer(&mut question, Limits::default()).unwrap().schedulable);
    let rules = Rules { by_deadline: true, locks: ask.locks, ..PRIORITIES };
    assert!(late(&question.system, rules, 400).is_none());
}

/// A holder inherits on its own core, where the first task still goes before it: the second waits
/// for both. Above all tasks of its core it delays the second by its section alone.
#[test]
fn a_holder_that_is_preempted_on_another_core_is_found() {
    let line = r#"{"cores":2,"tasks":[{"period":400,"cost":80,"core":1},{"period":400,"cost":40,"deadline":100,"requests":[{"resource":0,"length":8}]},
        {"period":800,"cost":40,"core":1,"requests":[{"resource":0,"length":20}]}]}"#;
    let system = question::read(line.replace('\n', "")).unwrap().system;
    let rules = |protocol: Protocol| Rules { locks: Some(protocol.into()), ..PRIORITIES };
    assert_eq!(late(&system, rules(Protocol::Pip), 400).map(|one| one.task), Some(1));
    for protocol in [Protocol::Mpcp, Protocol::FmlpPlus, Protocol::Dpcp] {
        assert!(late(&system, rules(protocol), 40).is_none(), "{protocol:?}");
    }
}

/// Equal priorities, taken as distinct in the order of the list.
#[test]
fn equals_that_queue_are_found() {
    let line = r#"{"tasks":[{"period":20,"cost":5,"deadline":5},{"period":20,"cost":5}]}"#;
    let system = question::read(line).unwrap().system;
    assert_eq!(late(&system, Rules { levels: &[0, 0], ..PRIORITIES }, 40).map(|one| one.task), Some(0));
    assert!(late(&system, PRIORITIES, 40).is_none());
}

/// A budget that comes first in one period and last in the next, and three releases at once: what
/// counts half of the gap, or one release a period, is late by a nanosecond.
#[test]
fn withheld_supplies_and_bursts_are_found() {
    let line = |by: u64| {
        let (burst, below) = (60 - by, 100 - by);
        format!(
            r#"{{"supply":{{"budget":16,"period":40}},"tasks":[{{"period":200,"cost":12,"deadline":{burst}}},{{"arrivals":[[0,2],[160,3]],"cost":8,"deadline":{below}}}]}}"#
        )
    };
    for (by, is_late) in [(0, false), (1, true)] {
        let mut question = question::read(line(by)).unwrap();
        let verdict = Ask::of(Test::FpRta).answer(&mut question, Limits::default()).unwrap();
        assert_eq!(verdict.schedulable, !is_late, "{verdict:?}");
        assert_eq!(late(&question.system, PRIORITIES, 400).is_some(), is_late);
    }
}

/// Bounds of executors are reached, and what holds for timers that go before all else does not
/// where they wait for a ready set.
#[test]
fn executors_reach_their_bounds_and_timers_that_wait_are_found() {
    let line = r#"{"order":"timers-first","executors":[{"budget":3,"period":5},null],"callbacks":[
        {"kind":"timer","executor":1,"period":200,"cost":2},{"kind":"subscription","executor":1,"after":[0],"cost":7},
        {"kind":"subscription","executor":1,"period":200,"cost":9},{"kind":"subscription","executor":0,"after":[1],"cost":3}],
        "chains":[{"callbacks":[0,1,3]}]}"#;
    let system = read_executors(line.replace('\n', "")).unwrap().system;
    let bounds = bound_executors(&system, ExecutorAnalysis::Best, Limits::default());
    // 9, 2 and 7 in one executor, then 2 (5 - 3) + 3.
    assert_eq!((bounds.responses_ns[0], bounds.chains_ns[0]), (Some(11), Some(25)));
    let effort = Effort { starts: 300, changes: 12 };
    let none = vec![None; 4];
    let late = |system: &_, responses: &[Option<u64>], chains: &[Option<u64>]| {
        beyond(system, responses, chains, effort, &mut Numbers(7)).is_some()
    };
    assert!(!late(&system, &bounds.responses_ns, &bounds.chains_ns));
    assert!(late(&system, &none, &[Some(24)]));
    // The second is bounded from its activation, which may come while the first still runs.
    for at in [0, 2, 3] {
        let mut less = none.clone();
        less[at] = bounds.responses_ns[at].map(|bound| bound - 1);
        assert!(late(&system, &less, &[None]), "callback {at}");
    }
    // Both subscriptions are in a ready set that the timer just missed.
    let line = r#"{"order":"timers-first","callbacks":[{"kind":"timer","period":200,"cost":2},
        {"kind":"subscription","period":200,"cost":7},{"kind":"subscription","period":200,"cost":9}]}"#;
    let mut system = read_executors(line.replace('\n', "")).unwrap().system;
    let bounds = bound_executors(&system, ExecutorAnalysis::Best, Limits::default());
    assert_eq!(bounds.responses_ns[0], Some(11));
    assert!(!late(&system, &bounds.responses_ns, &[]));
    system.order = ReadyOrder::Any;
    assert!(late(&system, &bounds.responses_ns[..1], &[]));
}
