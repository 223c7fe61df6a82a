//! Locks whose waiters suspend, by hand, and what they refuse.

use sched::global::GlobalTest;
use sched::locks::{Locks, Protocol, Semantics, analyze_with_locks, block_once, block_once_globally};
use sched::overheads::{Overheads, analyze_with_locks_and_overheads};
use sched::question;
use sched::{Ask, Limits, System, Test, Verdict};

fn system(line: &str) -> System {
    question::read(line.replace('\n', "")).expect("a system").system
}

fn answer(system: &System, protocol: Protocol) -> Verdict {
    analyze_with_locks(system, Test::FpRta, protocol, Limits::default()).expect("within the model")
}

/// Waits for other cores, local sections, responses.
fn numbers(system: &System, protocol: Protocol) -> [Vec<u64>; 3] {
    let Verdict { spin, arrival, response_times, .. } = answer(system, protocol);
    [spin, arrival, response_times.into_iter().map(Option::unwrap).collect()]
}

/// The first and the last task share a resource between cores.
const SHARED: &str = r#"{"cores":2,"tasks":[
    {"period":100,"cost":10,"core":0,"requests":[{"resource":0,"length":2}]},
    {"period":100,"cost":20,"core":1},
    {"period":200,"cost":10,"core":1,"requests":[{"resource":0,"length":5}]}]}"#;

#[test]
fn between_cores_by_hand() {
    let set = system(SHARED);
    // The first task waits for 5, which delays the second as well. The last waits while the first
    // executes: all of its 10 where a holder has no priority but its own.
    assert_eq!(numbers(&set, Protocol::Pip), [vec![5, 0, 10], vec![0, 5, 0], vec![15, 25, 40]]);
    for protocol in [Protocol::Mpcp, Protocol::FmlpPlus] {
        assert_eq!(numbers(&set, protocol), [vec![5, 0, 2], vec![0, 5, 0], vec![15, 25, 32]], "{protocol:?}");
    }
    // The agent of the last task executes on the core of the first, and not beside the second.
    assert_eq!(numbers(&set, Protocol::Dpcp), [vec![0, 0, 2], vec![5, 0, 0], vec![15, 20, 32]]);
}

#[test]
fn donation_by_hand() {
    let set = system(SHARED);
    // Waits are costs for all below; the second task gives its priority to the last for 2 + 5.
    for protocol in [Protocol::Omlp, Protocol::OmlpRw] {
        assert_eq!(numbers(&set, protocol), [vec![5, 0, 2], vec![0, 7, 0], vec![15, 27, 32]], "{protocol:?}");
    }
    let readers = system(
        r#"{"cores":3,"tasks":[
            {"period":100,"cost":10,"core":0,"requests":[{"resource":0,"length":2}]},
            {"period":100,"cost":10,"core":1,"requests":[{"resource":0,"length":5,"access":"read"}]},
            {"period":100,"cost":10,"core":2,"requests":[{"resource":0,"length":7,"access":"read"}]}]}"#,
    );
    // Readers read together: the writer waits for the longer, a reader for one phase and the
    // writer.
    assert_eq!(answer(&readers, Protocol::Omlp).spin, [12, 9, 7]);
    assert_eq!(answer(&readers, Protocol::OmlpRw).spin, [7, 9, 7]);
}

#[test]
fn any_task_on_any_core_by_hand() {
    let line = |tasks: u64| {
        let task = |length: u64| {
            format!(r#"{{"period":100,"cost":10,"requests":[{{"resource":0,"length":{length}}}]}}"#)
        };
        let tasks: Vec<String> = (1..=tasks).map(task).collect();
        format!(r#"{{"cores":2,"tasks":[{}]}}"#, tasks.join(","))
    };
    let waits = |tasks| {
        let test = Test::Global(GlobalTest::EdfGfb);
        let verdict =
            analyze_with_locks(&system(&line(tasks)), test, Protocol::Omlp, Limits::default()).unwrap();
        (verdict.schedulable, verdict.spin)
    };
    // Up to m + 1 users all queue as they come. From four on, three sections, two of one task.
    assert_eq!(waits(3), (true, vec![5, 4, 3]));
    assert_eq!(waits(4), (true, vec![11, 11, 10, 8]));
    // The densities are 1.47 in all, and 2 - 0.50 at most; with sections longer by 10, 2.07.
    let costly = line(3).replace("\"cost\":10", "\"cost\":45");
    let test = Test::Global(GlobalTest::EdfGfb);
    let schedulable = |line: &str| {
        analyze_with_locks(&system(line), test, Protocol::Omlp, Limits::default()).unwrap().schedulable
    };
    assert!(schedulable(&costly) && !schedulable(&costly.replace("\"length\":", "\"length\":1")));
}

#[test]
fn other_protocols_and_bounded_tardiness_are_refused_where_tasks_migrate() {
    let set = system(SHARED);
    for protocol in Protocol::ALL {
        for test in GlobalTest::ALL {
            let answer = analyze_with_locks(&set, Test::Global(test), protocol, Limits::default());
            let known = protocol == Protocol::Omlp && test != GlobalTest::EdfDa;
            assert_eq!(answer.is_ok(), known, "{protocol:?} {test:?}");
            assert_eq!(block_once_globally(&set, protocol, test).is_ok(), known, "{protocol:?} {test:?}");
        }
    }
}

/// No bound here covers a request within another, whatever the protocol.
#[test]
fn nested_requests_are_refused_under_every_protocol() {
    let line = r#"{"tasks":[{"period":100,"cost":10,"requests":[{"resource":0,"length":5,"requests":[{"resource":1,"length":2}]}]}]}"#;
    for (protocol, test) in Protocol::ALL.into_iter().flat_map(|one| Test::ALL.map(|test| (one, test))) {
        let ask = Ask { locks: Some(protocol.into()), ..Ask::of(test) };
        let refused = question::read(line).map(|mut asked| ask.answer(&mut asked, Limits::default()));
        let error = refused.expect_err(protocol.name()).to_string();
        assert!(error.starts_with("tasks[0].requests[0]: a request within a request"), "{error}");
    }
}

#[test]
fn inheritance_does_not_reach_above_a_task_of_the_holders_core() {
    // The holder of 5 inherits the second task's priority, below the first: 5 + 20.
    let set = system(
        r#"{"cores":2,"tasks":[
            {"period":100,"cost":20,"core":1},
            {"period":100,"cost":10,"core":0,"requests":[{"resource":0,"length":2}]},
            {"period":200,"cost":10,"core":1,"requests":[{"resource":0,"length":5}]}]}"#,
    );
    assert_eq!(answer(&set, Protocol::Pip).response_times[1], Some(35));
    assert_eq!(answer(&set, Protocol::Mpcp).response_times[1], Some(15));
}

#[test]
fn on_one_core_each_task_and_each_resource_delays_once() {
    let line = |third: u32| {
        format!(
            r#"{{"tasks":[{{"period":100,"cost":10,"requests":[{{"resource":0,"length":1}},{{"resource":1,"length":1}}]}},
                {{"period":100,"cost":10,"requests":[{{"resource":0,"length":4}},{{"resource":1,"length":6}}]}},
                {{"period":100,"cost":10,"requests":[{{"resource":{third},"length":5}}]}}]}}"#
        )
    };
    // 6 of the second task and 5 of the third, on two resources.
    assert_eq!(answer(&system(&line(0)), Protocol::Pip).arrival, [11, 5, 0]);
    // The third has a resource that nobody above it uses.
    assert_eq!(answer(&system(&line(2)), Protocol::Pip).arrival, [6, 0, 0]);
    // Ceilings, and sections above all tasks of the core, let only one section be under way.
    for protocol in [Protocol::Mpcp, Protocol::Dpcp, Protocol::FmlpPlus] {
        assert_eq!(answer(&system(&line(0)), protocol).arrival, [6, 5, 0], "{protocol:?}");
    }
}

#[test]
fn who_waits_for_another_core_interferes_as_if_released_late() {
    // The first task of core 0 waits for up to 45: R - C = 45.
    let line = |cost: u64| {
        format!(
            r#"{{"cores":2,"tasks":[
                {{"period":60,"cost":10,"core":0,"requests":[{{"resource":0,"length":1}}]}},
                {{"period":300,"cost":{cost},"core":0}},
                {{"period":900,"cost":60,"core":1,"requests":[{{"resource":0,"length":45}}]}}]}}"#
        )
    };
    // 51 + 2 * 10 = 71, and 71 + 45 has two periods; 56 + 2 * 10 = 76, and 76 + 45 has a third.
    assert_eq!(answer(&system(&line(51)), Protocol::Mpcp).response_times[1], Some(71));
    assert_eq!(answer(&system(&line(56)), Protocol::Mpcp).response_times[1], Some(86));
}

#[test]
fn what_does_not_go_together_is_refused() {
    let set = system(SHARED);
    let limits = Limits::default();
    for protocol in Protocol::ALL.into_iter().filter(|one| one.suspends()) {
        let name = protocol.name();
        let refusal = |test| analyze_with_locks(&set, test, protocol, limits).unwrap_err().to_string();
        assert_eq!(
            refusal(Test::EdfQpa),
            format!("edf-qpa knows nothing of {name}; expected a system without, or msrp-classic or msrp-lp")
        );
        assert!(refusal(Test::FpLimited).contains("expected a system without, or fp-rta"), "{name}");
        let overheads = Overheads::default();
        let with = analyze_with_locks_and_overheads(&set, Test::FpRta, protocol, &overheads, limits);
        assert!(with.unwrap_err().to_string().contains("waiters suspend"), "{name}");
        let line = SHARED.replacen("\"cost\":20", "\"cost\":20,\"suspension\":3", 1);
        let suspends = analyze_with_locks(&system(&line), Test::FpRta, protocol, limits).unwrap_err();
        assert!(suspends.to_string().contains("self-suspension"), "{name}");
        let line = SHARED.replacen("\"cost\":20", "\"cost\":20,\"blocking\":3", 1);
        let blocked = analyze_with_locks(&system(&line), Test::FpRta, protocol, limits).unwrap_err();
        assert!(blocked.to_string().contains("blocking by anything but locks"), "{name}");
        assert!(Locks::with_ceilings(protocol).is_none_or(|locks| !locks.adds_ceilings()), "{name}");
    }
    let once = block_once(&set, Protocol::Pip, Semantics::SchedCat).unwrap_err();
    assert!(once.to_string().contains("--semantics sound"), "{once}");
}
