//! Certificates are found, hold, and no altered one is believed.

use super::*;
use crate::system::SystemTask;
use crate::{Task, analyze};
use proptest::prelude::*;
use serde_json::Value;

fn system(tasks: &[Task], cores: u32) -> System {
    let place =
        |(at, task): (usize, &Task)| SystemTask { core: at as u32 % cores, ..SystemTask::from(*task) };
    System { cores, tasks: tasks.iter().enumerate().map(place).collect() }
}

fn certificate(system: &System, test: Test) -> Certificate {
    certify(system, test, None, Limits::default()).unwrap().unwrap()
}

/// The verdict of the test itself on the subject of the certificate; none where it reaches none.
fn truth(certificate: &Certificate) -> Option<bool> {
    let test = Test::by_name(&certificate.test).unwrap();
    let mut all = true;
    for core in &certificate.cores {
        let verdict = analyze(&system(core.tasks.tasks(), 1), test, Limits::default()).unwrap();
        if !verdict.undecided.is_empty() {
            return None;
        }
        all &= verdict.schedulable;
    }
    Some(all)
}

/// Every certificate that differs in one number, one truth value or one missing or doubled element,
/// as JSON.
fn alterations(value: &Value) -> Vec<Value> {
    match value {
        Value::Number(number) => {
            let Some(number) = number.as_u64() else { return Vec::new() };
            let mut near = vec![0, number + 1, number * 2 + 3, number / 2];
            near.extend(number.checked_sub(1));
            near.retain(|other| *other != number);
            near.into_iter().map(Value::from).collect()
        }
        Value::Bool(truth) => vec![Value::from(!truth)],
        Value::Array(items) => {
            let mut all = Vec::new();
            for at in 0..items.len() {
                let mut without = items.clone();
                without.remove(at);
                all.push(Value::from(without));
                let mut doubled = items.clone();
                doubled.insert(at, items[at].clone());
                all.push(Value::from(doubled));
                for other in alterations(&items[at]) {
                    let mut altered = items.clone();
                    altered[at] = other;
                    all.push(Value::from(altered));
                }
            }
            all
        }
        Value::Object(fields) => {
            let mut all = Vec::new();
            for (key, field) in fields {
                for other in alterations(field) {
                    let mut altered = fields.clone();
                    altered.insert(key.clone(), other);
                    all.push(Value::from(altered));
                }
            }
            all
        }
        Value::String(text) => match text.as_str() {
            "fp-rta" => vec![Value::from("edf-qpa"), Value::from("gedf-gfb")],
            "edf-qpa" => vec![Value::from("fp-rta")],
            SCHEMA => vec![Value::from("stillcore.sched-certificate/1")],
            _ => vec![Value::from("overload"), Value::from("open"), Value::from("0000000000000000")],
        },
        Value::Null => Vec::new(),
    }
}

/// None is accepted as it is; with a new digest only if the test gives the same verdict on the
/// tasks that it names.
fn refuses_alterations(certificate: &Certificate) -> usize {
    let mut refused = 0;
    for altered in alterations(&serde_json::to_value(certificate).unwrap()) {
        // The reader refuses whatever is not a certificate at all.
        let Ok(mut altered) = serde_json::from_value::<Certificate>(altered) else { continue };
        if altered == *certificate {
            continue;
        }
        assert!(check(&altered).is_err(), "{altered:?}");
        altered.digest = digest(&altered);
        if altered == *certificate {
            continue;
        }
        if check(&altered).is_ok() {
            assert!(truth(&altered).is_none_or(|truth| truth == altered.schedulable), "{altered:?}");
        } else {
            refused += 1;
        }
    }
    refused
}

fn claims(certificate: &Certificate) -> Vec<String> {
    let claim =
        |core: &CoreProof| serde_json::to_value(&core.proof).unwrap()["claim"].as_str().unwrap().to_owned();
    certificate.cores.iter().map(claim).collect()
}

#[test]
fn every_claim_is_made_holds_and_is_refused_when_altered() {
    let late = |jitter_ns, task| Task { jitter_ns, ..task };
    let lax = |period_ns, cost_ns| Task { deadline_ns: 10 * period_ns, ..Task::implicit(period_ns, cost_ns) };
    let cases: [(Test, &str, Vec<Task>); 9] = [
        (
            Test::FpRta,
            "fp-in-time",
            vec![Task::implicit(10, 3), late(2, Task::implicit(20, 5)), Task::implicit(40, 10)],
        ),
        (
            Test::FpRta,
            "fp-in-time",
            vec![Task::implicit(70, 26), Task { deadline_ns: 120, ..Task::implicit(100, 62) }],
        ),
        // A full core: the busy window never ends, its windows repeat.
        (
            Test::FpRta,
            "fp-in-time",
            vec![Task::implicit(10, 5), Task { deadline_ns: 1000, jitter_ns: 3, ..Task::implicit(14, 7) }],
        ),
        (Test::FpRta, "fp-late", vec![Task::implicit(10, 5), Task::implicit(12, 6)]),
        (Test::FpRta, "overload", vec![Task::implicit(10, 6), lax(10, 5)]),
        (Test::EdfQpa, "edf-in-time", vec![Task::implicit(10, 5), late(1, Task::implicit(14, 7))]),
        (Test::EdfQpa, "edf-late", vec![Task::implicit(10, 5), late(2, Task::implicit(14, 7))]),
        (Test::EdfQpa, "overload", vec![lax(10, 6), lax(10, 5)]),
        (Test::EdfQpa, "hopeless", vec![late(5, Task::implicit(10, 6))]),
    ];
    for (test, claim, tasks) in cases {
        let certificate = certificate(&system(&tasks, 1), test);
        assert_eq!(claims(&certificate), [claim]);
        assert_eq!(check(&certificate), Ok(()));
        let refused = refuses_alterations(&certificate);
        assert!(refused > 5, "{claim}: {refused}");
    }
}

#[test]
fn windows_that_are_too_short_too_long_or_too_few_are_refused() {
    let tasks = [Task::implicit(10, 3), Task::implicit(20, 5), Task::implicit(40, 10)];
    let good = certificate(&system(&tasks, 1), Test::FpRta);
    let with = |windows_ns: Vec<Vec<u64>>| {
        let mut other = good.clone();
        other.cores[0].proof = Proof::FpInTime { windows_ns };
        other.digest = digest(&other);
        check(&other)
    };
    assert_eq!(with(vec![vec![3], vec![8], vec![29]]), Ok(()));
    // Wide enough for its own work, too: a proof need not be the least.
    assert_eq!(with(vec![vec![10], vec![8], vec![40]]), Ok(()));
    for bad in [
        vec![vec![2], vec![8], vec![29]],
        vec![vec![3], vec![7], vec![29]],
        vec![vec![3], vec![8], vec![28]],
        vec![vec![3], vec![8], vec![41]],
        vec![vec![3], vec![8], vec![]],
        vec![vec![3], vec![8]],
        vec![vec![3], vec![8], vec![29], vec![29]],
    ] {
        assert!(with(bad.clone()).is_err(), "{bad:?}");
    }
}

#[test]
fn a_busy_window_that_is_cut_off_is_refused() {
    let good = certificate(&system(&[Task::implicit(10, 3), Task::implicit(20, 5)], 1), Test::EdfQpa);
    assert_eq!(good.cores[0].proof, Proof::EdfInTime { busy_ns: 8, points_ns: Vec::new() });
    for busy_ns in [0, 1, 7] {
        let mut cut = good.clone();
        cut.cores[0].proof = Proof::EdfInTime { busy_ns, points_ns: Vec::new() };
        cut.digest = digest(&cut);
        assert!(check(&cut).is_err(), "{busy_ns}");
    }
}

#[test]
fn what_cannot_be_certified_is_refused_or_left_out() {
    let mut suspends = system(&[Task::implicit(10, 3)], 1);
    suspends.tasks[0].suspension_ns = 1;
    assert!(certify(&suspends, Test::FpRta, None, Limits::default()).is_err());
    assert!(certify(&suspends, Test::SchedDeadline, None, Limits::default()).is_err());
    let long = [
        Task::implicit(1_000_003, 500_001),
        Task { deadline_ns: crate::MAX_NS, ..Task::implicit(1_000_033, 500_015) },
    ];
    assert_eq!(certify(&system(&long, 1), Test::FpRta, None, Limits { rounds_per_task: 3 }), Ok(None));
    // A core that is full and blocked: late can be proved, in time cannot.
    let full = |deadline_ns| [Task { deadline_ns, blocking_ns: 4, ..Task::implicit(15, 15) }];
    assert_eq!(claims(&certificate(&system(&full(15), 1), Test::EdfQpa)), ["edf-late"]);
    assert_eq!(certify(&system(&full(19), 1), Test::EdfQpa, None, Limits::default()), Ok(None));
    let empty = System { cores: 2, tasks: Vec::new() };
    assert_eq!(certify(&empty, Test::EdfQpa, None, Limits::default()), Ok(None));
}

fn tasks() -> impl Strategy<Value = Vec<Task>> {
    let one = (5u64..60, 1u64..24, 30u64..260, 0u64..12, 0u64..5).prop_map(
        |(period_ns, cost, deadline, jitter_ns, blocking_ns)| Task {
            period_ns,
            deadline_ns: (period_ns * deadline / 100).max(1),
            cost_ns: (period_ns * cost / 60).max(1),
            jitter_ns,
            blocking_ns,
        },
    );
    prop::collection::vec(one, 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn verdicts_and_certificates_agree(tasks in tasks(), cores in 1u32..3) {
        let system = system(&tasks, cores);
        for test in [Test::FpRta, Test::EdfQpa] {
            let verdict = analyze(&system, test, Limits::default()).unwrap();
            let found = certify(&system, test, None, Limits::default()).unwrap();
            if let Some(certificate) = found {
                prop_assert!(certificate.schedulable == verdict.schedulable || !verdict.undecided.is_empty());
                prop_assert_eq!(check(&certificate), Ok(()));
                let text = serde_json::to_string(&certificate).unwrap();
                prop_assert_eq!(&serde_json::from_str::<Certificate>(&text).unwrap(), &certificate);
            } else {
                // Utilization 1 and blocking, or 1 to the last bit: no window of work ever ends.
                prop_assert!(tasks.iter().map(Task::utilization).sum::<f64>() > 0.999);
            }
        }
    }

    #[test]
    fn no_altered_certificate_claims_what_is_not_so(tasks in tasks()) {
        let system = system(&tasks, 1);
        for test in [Test::FpRta, Test::EdfQpa] {
            if let Some(certificate) = certify(&system, test, None, Limits::default()).unwrap() {
                refuses_alterations(&certificate);
            }
        }
    }
}
