//! This machine as cells find it: what it is, how it booted, and which of its CPUs are measured.

use anyhow::Context;
use audit::booted;
use journal::enter;
use machine::Root;
use model::{Cpus, Machine};
use study::experiment::Ground;

/// Reads it; the CPUs are those that the user named, else the isolated ones, else the highest.
pub(super) fn read(cpus: Option<&Cpus>) -> anyhow::Result<Ground> {
    let machine = machine::read(&Root::live())?;
    let reachable = enter::reachable(&machine.topology.online).context("asking for CPUs")?;
    let cpus = match cpus {
        Some(cpus) => cpus.clone(),
        None => machine::cpus_default(&machine, &reachable)?,
    };
    let housekeeping =
        machine::housekeeping(&machine, &cpus).unwrap_or_else(|_| machine.topology.online.clone());
    Ok(of(machine, cpus, housekeeping))
}

/// Of a machine that was read, with the CPUs that were chosen.
pub(super) fn of(machine: Machine, cpus: Cpus, housekeeping: Cpus) -> Ground {
    let booted = booted(&Root::live(), &machine);
    Ground { machine, booted, cpus, housekeeping }
}
