//! Interrupts that are or may be handled on the measured CPUs, and which of them cannot be moved.
//!
//! Sources: Linux `Documentation/core-api/irq/irq-affinity.rst`, `kernel/irq/proc.c`; commit 11ea68f553e2 (managed interrupts).

use super::super::catalogue::Mechanism;
use super::remedy::{Off, propose};
use super::{Outcome, Scene, cmdline, named, some_of};
use crate::machine::{Irq, irqs};
use model::{Cpus, FindingState};

pub(super) fn judge(scene: &Scene, mechanism: &Mechanism) -> Outcome {
    if !scene.root.has("proc/irq") {
        return Outcome::absent(mechanism);
    }
    let all = irqs(scene.root);
    if all.is_empty() {
        return Outcome::unknown("/proc/irq names no interrupt with a handler");
    }
    let reaches = |set: &Cpus| !set.and(scene.cpus).is_empty();
    let (movable, fixed): (Vec<_>, Vec<_>) =
        all.iter().filter(|irq| reaches(&irq.allowed)).partition(|irq| irq.movable != Some(false));
    let late: Vec<_> = all.iter().filter(|irq| !reaches(&irq.allowed) && reaches(&irq.effective)).collect();
    let here: Vec<_> = all.iter().filter(|irq| reaches(&irq.effective)).collect();
    outcome(scene, mechanism, &movable, &fixed, &late)
        .having(format!(
            "{} of {} may be handled on {}",
            movable.len() + fixed.len(),
            all.len(),
            named(scene.cpus)
        ))
        .in_effect(if here.is_empty() { "none".to_owned() } else { names(&here) })
}

fn outcome(scene: &Scene, mechanism: &Mechanism, movable: &[&Irq], fixed: &[&Irq], late: &[&Irq]) -> Outcome {
    if !movable.is_empty() {
        let stays = (!fixed.is_empty()).then(|| {
            format!("{} may be handled on {} and cannot be moved by a user", names(fixed), named(scene.cpus))
        });
        let more = match fixed.len() {
            0 => String::new(),
            count => format!("; {count} more cannot be moved by a user ({})", names(fixed)),
        };
        let reason = format!("{} may be handled on {}{more}", names(movable), named(scene.cpus));
        let file = |irq: &&Irq| {
            Off::file(&format!("proc/irq/{}/smp_affinity_list", irq.number), irq.allowed.to_string())
        };
        return propose(scene, mechanism, &movable.iter().map(file).collect::<Vec<_>>(), reason)
            .leaving(stays);
    }
    if !fixed.is_empty() {
        let reason = format!(
            "{} may be handled on {} and cannot be moved by a user{}",
            names(fixed),
            named(scene.cpus),
            hint(scene)
        );
        return Outcome::new(FindingState::Immovable, reason);
    }
    if !late.is_empty() {
        let reason = format!(
            "{} has been told to leave {} and will at its next interrupt",
            names(late),
            named(scene.cpus)
        );
        return Outcome::new(FindingState::Fixable, reason)
            .cured_by("let the device interrupt once, then audit again".to_owned());
    }
    Outcome::ok(format!("no interrupt may be handled on {}", named(scene.cpus)))
}

/// What a reboot may do for those whose driver sets their CPUs.
fn hint(scene: &Scene) -> &'static str {
    let asked = cmdline::value(scene, "isolcpus")
        .is_some_and(|value| value.split(',').any(|word| word == "managed_irq"));
    if asked {
        "; isolcpus=managed_irq is set, so only a device with fewer queues would leave them"
    } else {
        "; isolcpus=managed_irq or a device with fewer queues may keep those of drivers away"
    }
}

fn names(irqs: &[&Irq]) -> String {
    some_of(&irqs.iter().map(|irq| format!("{} {}", irq.number, irq.names.join("+"))).collect::<Vec<_>>())
}
