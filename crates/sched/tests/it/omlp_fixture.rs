//! The OMLP against stored answers of SchedCAT, to the unit, and its priority inheritance where it
//! speaks of the same: global scheduling on a single core. How they were made stands in the file.

use sched::asked::Question;
use sched::global::GlobalTest;
use sched::locks::{Protocol, Semantics, block_once};
use sched::{Ask, Limits, System, Test, question};
use serde::Deserialize;

#[derive(Deserialize)]
struct Fixture {
    sets: Vec<Answered>,
}

#[derive(Deserialize)]
struct Answered {
    /// As a line of `sched analyze`.
    line: serde_json::Value,
    /// For each task, waits and donation.
    omlp: Vec<(u64, u64)>,
    #[serde(rename = "omlp-rw")]
    readers: Vec<(u64, u64)>,
    /// For each task, all that delays its requests.
    global: Vec<u64>,
    /// Of a set of one core: all that delays, and the part of it by tasks above.
    #[serde(rename = "global pip")]
    inheritance: Option<Vec<(u64, u64)>>,
}

fn sets() -> Vec<(Question, Answered)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/omlp_schedcat.json");
    let fixture: Fixture = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    fixture.sets.into_iter().map(|set| (question::read(set.line.to_string()).unwrap(), set)).collect()
}

#[test]
fn one_pass_is_that_of_schedcat() {
    let pass = |system: &System, protocol: Protocol, semantics| {
        let verdict = block_once(system, protocol, semantics).unwrap();
        verdict.spin.into_iter().zip(verdict.arrival).collect::<Vec<_>>()
    };
    let mut waits = [0; 3];
    for (id, (mut question, set)) in sets().into_iter().enumerate() {
        for semantics in Semantics::ALL {
            assert_eq!(pass(&question.system, Protocol::Omlp, semantics), set.omlp, "set {id}");
            assert_eq!(pass(&question.system, Protocol::OmlpRw, semantics), set.readers, "set {id}");
        }
        let ask = Ask {
            locks: Some(Protocol::Omlp.into()),
            blocking_only: Some(Semantics::Sound),
            ..Ask::of(Test::Global(GlobalTest::EdfGfb))
        };
        let verdict = ask.answer(&mut question, Limits::default()).unwrap();
        assert_eq!((&verdict.spin, verdict.schedulable), (&set.global, false), "set {id}");
        let some = |all: &[(u64, u64)]| all.iter().filter(|one| one.0 > 0).count();
        waits[0] += some(&set.omlp);
        waits[1] += some(&set.readers);
        waits[2] += set.global.iter().filter(|one| **one > 0).count();
    }
    assert!(waits.iter().all(|waits| *waits > 500), "{waits:?}");
}

/// SchedCAT bounds priority inheritance under global scheduling (Easwaran and Andersson, RTSS
/// 2009), which is on one core what is here on one core. It counts each section of tasks below that
/// may inherit; Sha, Rajkumar and Lehoczky count one of each task, or of each resource. So the
/// share of tasks below is no more here, and the same where there is one section.
#[test]
fn inheritance_on_one_core_is_no_more_than_that_of_schedcat() {
    let (mut equal, mut less) = (0, 0);
    for (id, (question, set)) in sets().into_iter().enumerate() {
        let Some(theirs) = set.inheritance else { continue };
        let ours = block_once(&question.system, Protocol::Pip, Semantics::Sound).unwrap();
        for (task, (all, above)) in theirs.into_iter().enumerate() {
            let (ours, theirs) = (ours.arrival[task], all - above);
            assert!(ours <= theirs, "set {id}, task {task}: {ours} and {theirs}");
            equal += usize::from(ours == theirs && ours > 0);
            less += usize::from(ours < theirs);
        }
        assert!(ours.spin.iter().all(|wait| *wait == 0), "set {id}");
    }
    assert!(equal > 10 && less > 50, "{equal} {less}");
}
