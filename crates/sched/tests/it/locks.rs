//! Locks by hand: small systems with answers worked out on paper, and what must hold of any system.

use proptest::prelude::*;
use sched::locks::{Blocking, Locks, Protocol, Semantics, Sharing, analyze_with_locks, block_once, blocking};
use sched::question;
use sched::{Ask, Heuristic, Limits, System, Test, Verdict};

fn system(line: &str) -> System {
    question::read(line).expect("a system").system
}

fn pass(system: &System, protocol: Protocol) -> Blocking {
    let given: Vec<u64> =
        system.tasks.iter().map(|one| one.response_time_ns.expect("each has one")).collect();
    blocking(&Sharing::of(system, Locks::of(protocol).local()), protocol, Semantics::Sound, &given)
}

fn answer(system: &System, protocol: Protocol) -> Verdict {
    analyze_with_locks(system, Test::FpRta, protocol, Limits::default()).expect("within the model")
}

/// One task on core 0 with a section of 2, two on core 1 with 5 and 7.
fn three() -> System {
    system(
        r#"{"cores":2,"tasks":[
            {"period":100,"cost":10,"response_time":20,"core":0,"requests":[{"resource":4,"length":2}]},
            {"period":100,"cost":10,"response_time":30,"core":1,"requests":[{"resource":4,"length":5}]},
            {"period":100,"cost":10,"response_time":40,"core":1,"requests":[{"resource":4,"length":7}]}]}"#,
    )
}

#[test]
fn fifo_by_hand() {
    // Task 0 waits for the longer of the two. Task 1 for the one section there is, which then is
    // not there to delay the one below it. Task 2 waits once for itself and could once for task 1.
    let blocking = pass(&three(), Protocol::FifoNp);
    assert_eq!((blocking.spin, blocking.arrival), (vec![7, 2, 2], vec![0, 7, 0]));
    let baseline = pass(&three(), Protocol::Baseline);
    assert_eq!((baseline.spin, baseline.arrival), (vec![12, 2, 2], vec![0, 7, 0]));
    // Classic MSRP has the arrival wait, too, and counts task 1 apart.
    let classic = pass(&three(), Protocol::MsrpClassic);
    assert_eq!((classic.spin, classic.arrival), (vec![7, 2, 2], vec![0, 9, 0]));
}

#[test]
fn preemption_while_spinning_costs_another_turn() {
    // Task 1 spins on core 1 below task 0, which comes twice in its 30 ns; core 0 has four jobs of
    // section 6 in 30 + 90 ns.
    let system = system(
        r#"{"cores":2,"tasks":[
            {"period":20,"cost":1,"response_time":5,"core":1},
            {"period":200,"cost":10,"response_time":30,"core":1,"requests":[{"resource":0,"length":3}]},
            {"period":30,"cost":10,"response_time":90,"core":0,"requests":[{"resource":0,"length":6}]}]}"#,
    );
    assert_eq!(pass(&system, Protocol::FifoNp).spin[1], 6);
    assert_eq!(pass(&system, Protocol::FifoP).spin[1], 6 + 2 * 6);
}

#[test]
fn who_is_behind_delays_once_and_who_is_ahead_as_often_as_he_comes() {
    let with = |mine: u32, other: u32| {
        system(&format!(
            r#"{{"cores":2,"tasks":[
            {{"period":400,"cost":10,"response_time":50,"core":0,"lock_priority":{mine},"requests":[{{"resource":0,"length":3}}]}},
            {{"period":40,"cost":9,"response_time":30,"core":1,"lock_priority":{other},"requests":[{{"resource":0,"count":2,"length":4}}]}}]}}"#,
        ))
    };
    // In 50 + 30 ns two jobs of two requests each; while one request waits (8 ns: 30 + 9 < 40) one
    // job.
    assert_eq!(pass(&with(0, 1), Protocol::Priority).spin[0], 4);
    assert_eq!(pass(&with(1, 0), Protocol::Priority).spin[0], 8);
    assert_eq!(pass(&with(1, 1), Protocol::Priority).spin[0], 8);
    assert_eq!(pass(&with(1, 1), Protocol::PriorityFifo).spin[0], 4);
    assert_eq!(pass(&with(1, 0), Protocol::PriorityFifo).spin[0], 8);
}

#[test]
fn phases_by_hand() {
    // A writer of 4 and two readers of 3 and 5, a core each. The writer waits for the longer read;
    // a reader for the writer and the other.
    let system = system(
        r#"{"cores":3,"tasks":[
            {"period":100,"cost":10,"response_time":20,"core":0,"requests":[{"resource":0,"length":4}]},
            {"period":100,"cost":10,"response_time":20,"core":1,"requests":[{"resource":0,"length":3,"access":"read"}]},
            {"period":100,"cost":10,"response_time":20,"core":2,"requests":[{"resource":0,"length":5,"access":"read"}]}]}"#,
    );
    assert_eq!(pass(&system, Protocol::PhaseFair).spin, [5, 9, 7]);
    // In order of arrival the writer waits for one phase of readers as well, but the mutex would
    // serve both one by one.
    assert_eq!(pass(&system, Protocol::TaskFair).spin, [5, 9, 7]);
    assert_eq!(pass(&system, Protocol::TaskFairMutex).spin, [8, 9, 7]);
}

#[test]
fn a_resource_of_one_core_blocks_all_above_it_or_up_to_its_ceiling() {
    let system = system(
        r#"{"tasks":[
            {"period":100,"cost":10,"response_time":10},
            {"period":100,"cost":10,"response_time":20,"requests":[{"resource":0,"length":4}]},
            {"period":100,"cost":10,"response_time":30},
            {"period":100,"cost":10,"response_time":40,"requests":[{"resource":0,"length":6}]}]}"#,
    );
    let responses: Vec<u64> = system.tasks.iter().map(|one| one.response_time_ns.unwrap()).collect();
    for protocol in Protocol::ALL.into_iter().filter(|one| !one.suspends()) {
        let msrp = matches!(protocol, Protocol::MsrpHolistic | Protocol::MsrpClassic | Protocol::MsrpLp);
        let plain = pass(&system, protocol);
        let highest = if msrp { 0 } else { 6 };
        assert_eq!((plain.spin, plain.arrival), (vec![0; 4], vec![highest, 6, 6, 0]), "{protocol:?}");
        // The reader-writer bounds know no ceilings.
        let Some(locks) = Locks::with_ceilings(protocol) else { continue };
        let sharing = Sharing::of(&system, locks.local());
        let arrival = blocking(&sharing, protocol, Semantics::Sound, &responses).arrival;
        assert_eq!(arrival, [0, 6, 6, 0], "{protocol:?}");
    }
}

/// The holder of a spin lock is not preempted: the first task comes while the second holds it for
/// 300 us, and responds after 350.
#[test]
fn a_spin_lock_delays_its_own_core_whoever_uses_it() {
    let line = r#"{"unit":"us","cores":2,"tasks":[{"period":1000,"cost":50,"deadline":60},
        {"period":5000,"cost":400,"requests":[{"resource":0,"length":300}]},
        {"period":9000,"cost":400,"requests":[{"resource":0,"length":300}]}]}"#;
    let set = system(line);
    let spins = |one: &Protocol| *one != Protocol::MsrpLp && !one.suspends();
    for protocol in Protocol::ALL.into_iter().filter(spins) {
        let msrp = matches!(protocol, Protocol::MsrpHolistic | Protocol::MsrpClassic);
        assert_eq!(answer(&set, protocol).schedulable, msrp, "{protocol:?}");
        if let Some(locks) = Locks::with_ceilings(protocol) {
            let ceilings = analyze_with_locks(&set, Test::FpRta, locks, Limits::default()).unwrap();
            assert_eq!(
                (ceilings.schedulable, ceilings.response_times[0]),
                (true, Some(50_000)),
                "{protocol:?}"
            );
        }
    }
    // No placement makes another lock of it.
    let ask = Ask {
        locks: Some(Protocol::FifoNp.into()),
        partition: Heuristic::by_name("ff"),
        ..Ask::of(Test::FpRta)
    };
    let mut question = question::read(line.replace('\n', "")).unwrap();
    assert!(!ask.answer(&mut question, Limits::default()).unwrap().schedulable);
}

#[test]
fn a_release_that_comes_late_counts_in_the_window_of_one_that_does_not() {
    // w = 10 of the lower task: with J = 15 two jobs of the higher one (period 20) may be ready in
    // it, each with a request.
    let with = |jitter: u64| {
        system(&format!(
            r#"{{"cores":2,"tasks":[
            {{"period":20,"cost":1,"jitter":{jitter},"response_time":16,"core":0,"requests":[{{"resource":0,"length":1}}]}},
            {{"period":90,"cost":9,"response_time":10,"core":0}},
            {{"period":9,"cost":4,"response_time":9,"core":1,"requests":[{{"resource":0,"length":3}}]}}]}}"#,
        ))
    };
    assert_eq!(pass(&with(0), Protocol::FifoNp).spin[1], 3);
    assert_eq!(pass(&with(15), Protocol::FifoNp).spin[1], 6);
    let schedcat = block_once(&with(15), Protocol::FifoNp, Semantics::SchedCat).unwrap();
    assert_eq!(schedcat.spin[1], 3);
}

#[test]
fn what_cannot_be_answered_is_refused() {
    let asked = |line: &str, test, protocol| {
        analyze_with_locks(&system(line), test, protocol, Limits::default()).unwrap_err().to_string()
    };
    let plain = r#"{"tasks":[{"period":10,"cost":3}]}"#;
    assert!(asked(plain, Test::EdfQpa, Protocol::FifoNp).contains("msrp-classic or msrp-lp"));
    assert!(asked(plain, Test::FpRta, Protocol::MsrpLp).contains("edf-qpa"));
    let late = r#"{"tasks":[{"period":10,"cost":3,"deadline":11}]}"#;
    assert!(asked(late, Test::FpRta, Protocol::FifoNp).contains("deadlines beyond periods"));
    let suspends = r#"{"tasks":[{"period":10,"cost":3,"suspension":1}]}"#;
    assert!(asked(suspends, Test::EdfQpa, Protocol::MsrpLp).contains("self-suspension"));
}

#[test]
fn a_fixpoint_by_hand() {
    // Task 0: C + J = 4, waits for 2: 6. Task 1: C = 5, waits for 1: 6. Once more, nothing changes.
    let two = system(
        r#"{"cores":2,"tasks":[
            {"period":50,"cost":3,"jitter":1,"core":0,"requests":[{"resource":0,"length":1}]},
            {"period":60,"cost":5,"core":1,"requests":[{"resource":0,"length":2}]}]}"#,
    );
    let verdict = answer(&two, Protocol::FifoNp);
    assert_eq!((verdict.response_times, verdict.blocking), (vec![Some(6), Some(6)], vec![2, 1]));
    assert_eq!((verdict.rounds, verdict.schedulable), (2, true));
    let mut late = two;
    late.tasks[1].task.deadline_ns = 5;
    let verdict = answer(&late, Protocol::FifoNp);
    // Where one window outgrows its deadline no response time is a bound.
    assert_eq!((verdict.response_times, verdict.schedulable), (vec![None, None], false));
}

#[test]
fn extreme_values_do_not_overflow() {
    let most = sched::MAX_NS;
    let line = format!(
        r#"{{"cores":2,"tasks":[
        {{"period":1,"cost":{most},"jitter":{most},"response_time":{most},"core":0,"requests":[{{"resource":0,"count":4294967296,"length":{most}}}]}},
        {{"period":1,"cost":{most},"response_time":{most},"core":0,"requests":[{{"resource":0,"count":4294967296,"length":{most}}}]}},
        {{"period":{most},"cost":1,"response_time":0,"core":1,"requests":[{{"resource":0,"length":0,"access":"read"}}]}}]}}"#
    );
    let system = system(&line);
    for protocol in Protocol::ALL {
        pass(&system, protocol);
        if protocol != Protocol::MsrpLp {
            assert!(!answer(&system, protocol).schedulable, "{protocol:?}");
        }
    }
    for protocol in [Protocol::MsrpClassic, Protocol::MsrpLp] {
        assert!(!analyze_with_locks(&system, Test::EdfQpa, protocol, Limits::default()).unwrap().schedulable);
    }
}

#[test]
fn names_are_unique_and_found() {
    for protocol in Protocol::ALL {
        assert_eq!(Protocol::by_name(protocol.name()), Some(protocol));
    }
    for semantics in Semantics::ALL {
        assert_eq!(Semantics::by_name(semantics.name()), Some(semantics));
    }
}

/// Period, cost, jitter, core, and a request: resource, length, whether it reads.
type Drawn = (u64, u64, u64, u32, Option<(u32, u64, bool)>);

fn systems() -> impl Strategy<Value = System> {
    let task = (20u64..90, 5u64..9, 0u64..9, 0u32..3, prop::option::of((0u32..2, 1u64..5, prop::bool::ANY)));
    prop::collection::vec(task, 2..8).prop_map(|tasks| {
        let task = |(period, cost, jitter, core, request): Drawn| {
            let requests = request.map_or_else(String::new, |(resource, length, reads)| {
                let access = if reads { "read" } else { "write" };
                format!(r#"{{"resource":{resource},"length":{length},"access":"{access}"}}"#)
            });
            format!(
                r#"{{"period":{period},"cost":{cost},"jitter":{jitter},"core":{core},"lock_priority":3,"requests":[{requests}]}}"#
            )
        };
        let tasks: Vec<String> = tasks.into_iter().map(task).collect();
        system(&format!(r#"{{"cores":3,"tasks":[{}]}}"#, tasks.join(",")))
    })
}

proptest! {
    #[test]
    fn a_harder_system_is_never_schedulable_where_the_easier_is_not(
        system in systems(), at in 0usize..8, field in 0usize..4, by in 1u64..9,
    ) {
        let mut harder = system.clone();
        let at = at % harder.tasks.len();
        let task = &mut harder.tasks[at];
        match field {
            0 => task.task.cost_ns += by,
            1 => task.task.jitter_ns += by,
            2 => task.task.blocking_ns += by,
            _ => task.requests.iter_mut().for_each(|one| one.length_ns += by),
        }
        for protocol in Protocol::ALL.into_iter().filter(|one| *one != Protocol::MsrpLp) {
            // Blocking by anything else is refused.
            if protocol.suspends() && field == 2 {
                continue;
            }
            let (before, after) = (answer(&system, protocol), answer(&harder, protocol));
            prop_assert!(before.schedulable || !after.schedulable, "{:?}", protocol);
            for (before, after) in before.response_times.iter().zip(&after.response_times) {
                if let (Some(before), Some(after)) = (before, after) {
                    prop_assert!(before <= after, "{protocol:?}");
                }
            }
        }
    }

    #[test]
    fn equal_priorities_are_no_order(system in systems()) {
        let of = |protocol| answer(&system, protocol);
        prop_assert_eq!(of(Protocol::Priority).blocking, of(Protocol::Unordered).blocking);
        prop_assert_eq!(of(Protocol::PriorityP).blocking, of(Protocol::UnorderedP).blocking);
    }

    #[test]
    fn scales_with_the_unit(system in systems(), factor in 2u64..1000) {
        let mut scaled = system.clone();
        for one in &mut scaled.tasks {
            one.task.period_ns *= factor;
            one.task.deadline_ns *= factor;
            one.task.cost_ns *= factor;
            one.task.jitter_ns *= factor;
            one.requests.iter_mut().for_each(|request| request.length_ns *= factor);
        }
        for protocol in [Protocol::FifoNp, Protocol::FifoP, Protocol::PhaseFair, Protocol::MsrpHolistic] {
            let expected: Vec<Option<u64>> =
                answer(&system, protocol).response_times.iter().map(|one| one.map(|ns| ns * factor)).collect();
            prop_assert_eq!(answer(&scaled, protocol).response_times, expected);
        }
    }
}
