//! Facts of every run that are no samples: the machine before and after, what the audit finds, what
//! reading a clock costs.

use super::place::Place;
use audit::{Catalogue, audit, values};
use machine::Root;
use model::machine::{SCHEMA, Snapshot};
use model::run::ObserverCost;
use model::store;
use std::path::Path;
use sys::counter::Counter;

/// Writes the machine as it is now.
pub(crate) fn write_snapshot(place: &Place, dir: &Path, name: &str) -> anyhow::Result<()> {
    let root = Root::live();
    let values = values(&root, &place.machine, &place.mechanisms);
    let snapshot = Snapshot {
        schema: SCHEMA.to_owned(),
        machine: place.machine.clone(),
        state: machine::state(&root, values),
    };
    Ok(store::write_json(&dir.join(name), &snapshot)?)
}

/// Writes this machine, read anew, as it is now.
pub(crate) fn snapshot_to(dir: &Path, name: &str) -> anyhow::Result<()> {
    let snapshot = audit::snapshot(&Root::live(), &Catalogue::embedded()?)?;
    Ok(store::write_json(&dir.join(name), &snapshot)?)
}

/// Writes what the audit of the measured CPUs finds.
pub(crate) fn write_findings(place: &Place, dir: &Path) -> anyhow::Result<()> {
    let findings = audit(&Root::live(), &place.machine, &place.mechanisms, &place.measured);
    Ok(store::write_json(&dir.join(store::FINDINGS), &findings)?)
}

/// What reading a clock costs here.
pub(crate) fn own_cost() -> ObserverCost {
    ObserverCost {
        clock_read_ns: Some(Counter::Monotonic.read_cost_ns()),
        counter_read_ns: Some(Counter::Cpu.read_cost_ns()),
        ..ObserverCost::default()
    }
}
