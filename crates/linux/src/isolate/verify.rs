//! Verifying what stands: each change compared with what is there now, the mechanisms audited again by their effective state, and what
//! has come since: tasks and interrupts that may run on the isolated CPUs, CPUs that went or came.

use super::audit::audit;
use super::catalogue::Catalogue;
use super::change::{Settings, value};
use super::journal::Entry;
use super::standing::Found;
use super::stray::strays;
use crate::error::Error;
use crate::machine::{self, Root, irqs};
use model::plan::StepKind;
use model::{Cpus, Finding};
use serde::Serialize;
use std::collections::BTreeSet;

/// What verifying found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Changes that hold.
    pub holding: usize,
    /// Changes whose target is gone: a task that ended, an interrupt that was freed.
    pub gone: usize,
    /// The files among those that are gone.
    pub vanished: Vec<String>,
    /// One sentence for each thing that is not as it was left.
    pub drifted: Vec<String>,
}

/// Compares the machine with what stands.
pub fn verify(
    root: &Root,
    catalogue: &Catalogue,
    found: &Found,
    settings: &mut dyn Settings,
) -> Result<Verified, Error> {
    let mut verified = Verified::default();
    for entry in &found.open {
        let (Some(kind), Some(new)) = (entry.kind, &entry.new) else { continue };
        if kind.remembers() {
            continue;
        }
        let now = match settings.read(kind, &entry.target) {
            Ok(now) => now,
            Err(error) => {
                verified.drifted.push(format!("{} {} cannot be told: {error}", entry.id, entry.target));
                continue;
            }
        };
        match now {
            None => {
                verified.gone += 1;
                if kind == StepKind::File {
                    verified.vanished.push(entry.target.clone());
                }
            }
            Some(now) if value::same(&now, new) || entry.read_back.as_deref() == Some(&now) => {
                verified.holding += 1;
            }
            Some(now) => {
                verified.drifted.push(format!("{} {} is {now}, not {new}", entry.id, entry.target));
            }
        }
    }
    let machine = machine::read(root)?;
    let present = found.head.isolated.or(&found.head.housekeeping);
    let online = &machine.topology.online;
    // CPUs that others have isolated are in neither set.
    let came = online.minus(&present).minus(&machine.topology.isolated);
    for (cpus, what) in [(present.minus(online), "went offline"), (came, "came online")] {
        if !cpus.is_empty() {
            verified.drifted.push(format!("CPU {cpus} {what} since"));
        }
    }
    if !found.head.isolated.is_empty() {
        newcomers(root, found, &mut verified);
        let failing = effective(root, &machine, catalogue, found);
        verified
            .drifted
            .extend(failing.into_iter().map(|finding| format!("{}: {}", finding.id, finding.reason)));
    }
    Ok(verified)
}

/// Interrupts and tasks that may now run there.
fn newcomers(root: &Root, found: &Found, verified: &mut Verified) {
    let known: BTreeSet<_> = found.open.iter().map(|entry| entry.target.as_str()).collect();
    let meets = |cpus: &Cpus| !cpus.and(&found.head.isolated).is_empty();
    for irq in irqs(root).into_iter().filter(|irq| meets(&irq.allowed) && irq.movable != Some(false)) {
        let file = format!("/proc/irq/{}/smp_affinity_list", irq.number);
        // One that the journal knows is told above; the rest were refused by their driver, or are new.
        if !known.contains(file.as_str()) {
            let names = irq.names.join("+");
            verified.drifted.push(format!(
                "interrupt {} {names} may be handled on {}",
                irq.number,
                irq.allowed.and(&found.head.isolated)
            ));
        }
    }
    for step in strays(&found.head.isolated, &found.head.housekeeping) {
        if !known.contains(step.target.as_str()) {
            let may = step.old.unwrap_or_default();
            verified.drifted.push(format!("task {} may run on {may}", step.target));
        }
    }
}

/// Mechanisms that were changed and are not effective: the value holds, and does not do what it should.
fn effective(root: &Root, machine: &model::Machine, catalogue: &Catalogue, found: &Found) -> Vec<Finding> {
    let made = |entry: &&Entry| entry.kind.is_some_and(|kind| !kind.remembers());
    let changed: BTreeSet<_> = found.open.iter().filter(made).map(|entry| entry.id.as_str()).collect();
    // Affinities of tasks and interrupts are told one by one above.
    let told = ["user-tasks", "kthread-affinity", "kswapd-affinity", "irq-affinity"];
    let findings = audit(root, machine, catalogue, &found.head.cpus);
    findings
        .into_iter()
        .filter(|finding| changed.contains(finding.id.as_str()) && !told.contains(&finding.id.as_str()))
        .filter(Finding::failed)
        .collect()
}
