//! Whether the machine was still the one on which a study began, in the same boot: a cell that was
//! measured on another one is void.
//!
//! A stressor may move a kernel thread onto the measured CPUs for the rest of the boot (a cpuset
//! partition does so to `rcu_preempt`), or leave a setting changed. Its own row says so
//! ("contaminated") and remains: it began on the original machine. The next cells would be charged
//! with what that thread does, unless the machine is back in its first state.

use super::changed::shifted;
use super::facts::{CellFacts, Ground};
use std::collections::BTreeMap;

/// Differences that are named.
const NAMED: usize = 2;

/// The cells, void where another began earlier in the same boot, with other settings.
pub(super) fn judge(cells: &[CellFacts]) -> Vec<CellFacts> {
    let mut first: BTreeMap<&str, &Ground> = BTreeMap::new();
    for ground in cells.iter().filter_map(|cell| cell.ground.as_ref()) {
        let known = first.entry(&ground.boot_id).or_insert(ground);
        if ground.t_ns < known.t_ns {
            *known = ground;
        }
    }
    let judged = |cell: &CellFacts| {
        let shifted = cell.ground.as_ref().and_then(|ground| {
            let first = first.get(ground.boot_id.as_str())?;
            reason(&shifted(&first.state, &ground.state, &cell.measured))
        });
        CellFacts { void: cell.void.clone().or(shifted), ..cell.clone() }
    };
    cells.iter().map(judged).collect()
}

fn reason(shifted: &[String]) -> Option<String> {
    let named = shifted.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
    let more = shifted.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    (!shifted.is_empty())
        .then(|| format!("the machine was no longer the one that the study began on: {named}{more}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Cpus;
    use model::machine::MachineState;

    fn cell(boot_id: &str, t_ns: i64, rcu_on: &str) -> CellFacts {
        let text = r#"{"name":"timer","cpus":"0","ops_ok":1,"ops_failed":{},"parts":{},"t0_ns":0,"t1_ns":0,
            "witness":{"name":"w","expected":1,"seen":1},"state":"ok","confined_by":[]}"#;
        let record = serde_json::from_str(text).unwrap();
        let state = MachineState {
            kthread_affinity: [("rcu_preempt/0".to_owned(), rcu_on.to_owned())].into(),
            ..MachineState::default()
        };
        let ground = Some(Ground { boot_id: boot_id.to_owned(), t_ns, state });
        let facts = CellFacts::without_measurement(record, &Cpus::one(2), String::new());
        CellFacts { void: None, ground, ..facts }
    }

    #[test]
    fn what_comes_after_a_change_is_void_until_it_is_undone() {
        // In the order of ids, not of time.
        let cells = [
            cell("a", 30, "0-3"),
            cell("a", 10, "0-1"),
            cell("a", 20, "0-1"),
            cell("a", 40, "0-1"),
            cell("another", 5, "0-3"),
        ];
        let void: Vec<Option<String>> = judge(&cells).into_iter().map(|cell| cell.void).collect();
        assert_eq!(void[1..], [None, None, None, None]);
        let void = void[0].as_ref().unwrap();
        assert!(void.contains("rcu_preempt/0: 0-1 before, 0-3 after"), "{void}");
    }
}
