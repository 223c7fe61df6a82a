//! The load of a cell: what each stressor was asked for and did, by the records in the answers of
//! the steps. A cell under a twentieth of a load is another measurement than one under all of it.

use model::stressor::{StressorRecord, StressorState};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// The copies of a stressor together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Its name.
    pub stressor: String,
    /// How many of it there were.
    pub copies: u64,
    /// The worst verdict on any of them.
    pub state: StressorState,
    /// Operations asked for; none where at least one was to go as fast as it can.
    pub asked: Option<u64>,
    /// Operations that succeeded.
    pub operations: u64,
    /// The same per second.
    pub per_s: f64,
}

/// The loads in these answers, in the order of the first copies. A record that two answers have,
/// such as that of a measurement and of its report, counts once.
pub fn loads<'a>(answers: impl IntoIterator<Item = &'a Value>) -> Vec<Load> {
    let mut seen = BTreeSet::new();
    let mut loads: Vec<Load> = Vec::new();
    let records = answers.into_iter().filter_map(|answer| answer.get("stressors")?.as_array());
    for record in records.flatten().filter_map(|record| StressorRecord::deserialize(record).ok()) {
        if seen.insert((record.name.clone(), record.cpus.to_string(), record.t0_ns, record.t1_ns)) {
            add(&mut loads, &record);
        }
    }
    loads
}

fn add(loads: &mut Vec<Load>, record: &StressorRecord) {
    let seconds = (record.t1_ns - record.t0_ns).max(1) as f64 / 1e9;
    let per_s = record.ops_ok as f64 / seconds;
    match loads.iter_mut().find(|load| load.stressor == record.name) {
        Some(load) => {
            load.copies += 1;
            load.state = worse(load.state, record.state);
            load.asked = load.asked.zip(record.ops_asked).map(|(one, other)| one + other);
            load.operations += record.ops_ok;
            load.per_s += per_s;
        }
        None => loads.push(Load {
            stressor: record.name.clone(),
            copies: 1,
            state: record.state,
            asked: record.ops_asked,
            operations: record.ops_ok,
            per_s,
        }),
    }
}

fn worse(one: StressorState, other: StressorState) -> StressorState {
    use StressorState::{Absent, Ok, Stuck, Void, Weak};
    [Stuck, Void, Absent, Weak].into_iter().find(|state| one == *state || other == *state).unwrap_or(Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record(cpu: &str, asked: Option<u64>, done: u64, state: &str) -> Value {
        json!({ "name": "u_fork", "cpus": cpu, "ops_asked": asked, "ops_ok": done, "ops_failed": {}, "t0_ns": 0,
            "t1_ns": 2_000_000_000, "state": state, "witness": { "name": "c", "expected": 1, "seen": 1 } })
    }

    #[test]
    fn copies_are_added_up_and_the_same_record_counts_once() {
        let two = [record("0", Some(100), 100, "ok"), record("1", Some(100), 3, "weak")];
        let measured = json!({ "stressors": two });
        let report = json!({ "stressors": two, "other": 1 });
        let found = loads([&measured, &report, &json!({ "stressors": null }), &json!(7)]);
        let expected = Load {
            stressor: "u_fork".to_owned(),
            copies: 2,
            state: StressorState::Weak,
            asked: Some(200),
            operations: 103,
            per_s: 51.5,
        };
        assert_eq!(found, [expected]);
        let free = json!({ "stressors": [record("0", None, 5, "ok"), record("1", Some(9), 9, "void")] });
        assert_eq!((loads([&free])[0].asked, loads([&free])[0].state), (None, StressorState::Void));
    }
}
