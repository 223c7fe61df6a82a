//! Locks whose waiters suspend against stored answers of SchedCAT, where both count alike: one pass
//! of blocking under SchedCAT's semantics. How they were made stands in the file.

use std::collections::HashMap;

use sched::locks::{Protocol, Semantics, block_once};
use sched::question;
use serde::Deserialize;

#[derive(Deserialize)]
struct Fixture {
    sets: Vec<Answered>,
}

#[derive(Deserialize)]
struct Answered {
    /// As a line of `sched analyze`.
    line: serde_json::Value,
    /// By protocol, for each task: the waits for other cores, none without a bound, and the local
    /// share.
    #[serde(flatten)]
    answers: HashMap<String, Vec<(Option<u64>, u64)>>,
}

#[test]
fn one_pass_is_that_of_schedcat() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/locks_schedcat.json");
    let fixture: Fixture = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut compared = 0;
    for (id, set) in fixture.sets.iter().enumerate() {
        let system = question::read(set.line.to_string()).unwrap().system;
        assert_eq!(set.answers.len(), 3);
        for (name, answers) in &set.answers {
            let protocol = Protocol::by_name(name).unwrap();
            let ours = block_once(&system, protocol, Semantics::SchedCat).unwrap();
            let sound = block_once(&system, protocol, Semantics::Sound).unwrap();
            for (task, &(waits, local)) in answers.iter().enumerate() {
                let bound = (ours.spin[task] < u64::MAX / 2).then_some(ours.spin[task]);
                assert_eq!((bound, ours.arrival[task]), (waits, local), "{name}, set {id}, task {task}");
                // Ours takes fewer jobs in a wait, and treats resources of one core apart.
                assert!(waits.is_none_or(|waits| sound.spin[task] <= waits), "{name}, set {id}, task {task}");
                compared += 1;
            }
        }
    }
    assert!(compared > 4_000, "{compared}");
}
