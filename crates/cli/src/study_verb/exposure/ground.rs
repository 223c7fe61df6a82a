//! What the machine was like when a study began, in this boot: a cell that is measured on another one is void.
//!
//! A stressor may move a kernel thread onto the measured CPUs for the rest of the boot (a cpuset
//! partition does so to `rcu_preempt`), or leave a setting changed. Its own row says so
//! ("contaminated") and remains: it began on the original machine. The next cells would be charged
//! with what that thread does, unless the machine is back in its first state.

use analysis::exposure::{self, CellFacts};

use model::machine::{MachineState, Snapshot};
use model::store;
use serde::{Deserialize, Serialize};
use std::path::Path;

const FILE: &str = "ground.json";
const SCHEMA: &str = "stillcore.ground/1";
/// Differences that are named.
const NAMED: usize = 2;

/// Content of `ground.json`: how the machine was set when the study began in this boot. A cell that
/// is measured with other settings is void.
#[derive(Debug, Serialize, Deserialize)]
struct Ground {
    schema: String,
    /// The boot that it is of: a later one begins anew.
    boot_id: String,
    /// How the machine was set before the first cell.
    state: MachineState,
}

/// The facts of a cell whose run directory is `dir`; void where the machine was no longer the one
/// on which the study in `out` began.
pub(super) fn judge(facts: CellFacts, dir: &Path, out: &Path) -> anyhow::Result<CellFacts> {
    let before: Snapshot = store::read_json(&dir.join(store::MACHINE_BEFORE))?;
    let boot_id = journal::boot_id()?;
    let path = out.join(FILE);
    let known = if path.exists() { Some(store::read_json::<Ground>(&path)?) } else { None };
    let Some(ground) = known.filter(|ground| ground.boot_id == boot_id) else {
        store::write_json(&path, &Ground { schema: SCHEMA.to_owned(), boot_id, state: before.state })?;
        return Ok(facts);
    };
    let shifted = exposure::shifted(&ground.state, &before.state, &facts.measured);
    Ok(CellFacts { void: facts.void.clone().or_else(|| reason(&shifted)), ..facts })
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
    use model::machine::Machine;

    #[test]
    fn what_comes_after_a_change_is_void_until_it_is_undone() {
        let (study, run) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let with_rcu_on = |list: &str| {
            let state = MachineState {
                kthread_affinity: [("rcu_preempt/0".to_owned(), list.to_owned())].into(),
                ..MachineState::default()
            };
            let snapshot =
                Snapshot { schema: model::machine::SCHEMA.to_owned(), machine: Machine::default(), state };
            store::write_json(&run.path().join(store::MACHINE_BEFORE), &snapshot).unwrap();
            let text = r#"{"name":"calc_pi","cpus":"0","ops_ok":1,"ops_failed":{},"t0_ns":0,"t1_ns":1,
                "witness":{"name":"w","expected":0,"seen":0},"state":"ok","confined_by":[]}"#;
            let mut facts = CellFacts::without_measurement(
                serde_json::from_str(text).unwrap(),
                &Cpus::one(2),
                String::new(),
            );
            facts.void = None;
            judge(facts, run.path(), study.path()).unwrap().void
        };
        assert_eq!(with_rcu_on("0-1"), None);
        let void = with_rcu_on("0-3").unwrap();
        assert!(void.contains("rcu_preempt/0: 0-1 before, 0-3 after"), "{void}");
        assert_eq!(with_rcu_on("0-1"), None);
        // Another boot is another ground.
        let path = study.path().join(FILE);
        let mut ground: Ground = store::read_json(&path).unwrap();
        ground.boot_id = "another".to_owned();
        store::write_json(&path, &ground).unwrap();
        assert_eq!(with_rcu_on("0-3"), None);
    }
}
