//! Interrupts that are or may be handled on the measured CPUs, and which of them cannot be moved.
//!
//! Sources: Linux `Documentation/core-api/irq/irq-affinity.rst`, `kernel/irq/proc.c`; commit
//! 11ea68f553e2 (managed interrupts).

use super::super::catalogue::Mechanism;
use super::remedy::{Off, propose};
use super::{Outcome, Scene, named, some_of};
use machine::Irq;
use model::{Cpus, FindingState};

pub(super) fn judge(scene: &Scene, mechanism: &Mechanism) -> Outcome {
    if !scene.root.has("proc/irq") {
        return Outcome::absent(mechanism);
    }
    let all = scene.irqs();
    if all.is_empty() {
        return Outcome::unknown("/proc/irq names no interrupt with a handler");
    }
    let reaches = |set: &Cpus| !set.and(scene.cpus).is_empty();
    let (movable, pinned): (Vec<_>, Vec<_>) =
        all.iter().filter(|irq| reaches(&irq.allowed)).partition(|irq| irq.movable != Some(false));
    // The mask of one that no user may move is the kernel's own choice, of which it uses what is
    // effective: with isolcpus=managed_irq a housekeeping CPU, and of the timer before the local
    // ones CPU 0.
    let (fixed, elsewhere): (Vec<_>, Vec<_>) = pinned.into_iter().partition(|irq| reaches(&irq.effective));
    let late: Vec<_> = all.iter().filter(|irq| !reaches(&irq.allowed) && reaches(&irq.effective)).collect();
    let here: Vec<_> = all.iter().filter(|irq| reaches(&irq.effective)).collect();
    outcome(scene, mechanism, &movable, &fixed, &late, &elsewhere)
        .having(format!(
            "{} of {} may be handled on {}",
            movable.len() + fixed.len(),
            all.len(),
            named(scene.cpus)
        ))
        .in_effect(if here.is_empty() { "none".to_owned() } else { names(&here) })
}

fn outcome(
    scene: &Scene,
    mechanism: &Mechanism,
    movable: &[&Irq],
    fixed: &[&Irq],
    late: &[&Irq],
    elsewhere: &[&Irq],
) -> Outcome {
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
            "{} is handled on {} and cannot be moved by a user{}",
            names(fixed),
            named(scene.cpus),
            hint(scene)
        );
        return Outcome::new(FindingState::Immovable, reason);
    }
    if !late.is_empty() {
        let reason =
            format!("{} is set to leave {} and will at its next interrupt", names(late), named(scene.cpus));
        return Outcome::new(FindingState::Fixable, reason)
            .cured_by("let the device interrupt once, then audit again".to_owned());
    }
    if !elsewhere.is_empty() {
        let reason = format!(
            "no interrupt is handled on {}; the masks of {} name them, and the kernel handles these elsewhere",
            named(scene.cpus),
            names(elsewhere)
        );
        return Outcome::ok(reason);
    }
    Outcome::ok(format!("no interrupt may be handled on {}", named(scene.cpus)))
}

/// What a reboot may do for those whose driver sets their CPUs.
fn hint(scene: &Scene) -> &'static str {
    let asked = crate::probe::parameter::value(scene, "isolcpus")
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

#[cfg(test)]
mod tests {
    use super::super::tests::{judged, with_cpus};

    /// One interrupt that no user may move; of a mask, and handled on a CPU of it.
    fn pinned(allowed: &str, effective: &str) -> (String, String) {
        let files = with_cpus(&[
            ("proc/irq/0/smp_affinity_list", allowed),
            ("proc/irq/0/effective_affinity_list", effective),
            ("proc/irq/0/timer/keep", ""),
            ("stillcore-modes", "444 proc/irq/0/smp_affinity_list"),
        ]);
        let (state, reason, _) = judged("irq-affinity", &files);
        (state, reason)
    }

    #[test]
    fn one_that_cannot_be_moved_is_judged_by_where_it_is_handled() {
        // A PC's timer before the local ones, and a managed interrupt that isolcpus=managed_irq
        // keeps on a housekeeping CPU: the audit failed for both, for ever.
        let (state, reason) = pinned("0-3", "0");
        assert_eq!(state, "ok", "{reason}");
        assert!(reason.contains("0 timer") && reason.contains("elsewhere"), "{reason}");
        assert_eq!(pinned("0-3", "2").0, "immovable");
        // A kernel that does not report where it is handled may handle it anywhere.
        assert_eq!(pinned("0-3", "").0, "immovable");
    }

    /// Before 6.12 its file can be written by its mode, and the kernel refuses.
    #[test]
    fn nobody_moves_the_first_timer_of_a_pc() {
        let files = with_cpus(&[
            ("proc/irq/0/smp_affinity_list", "0-3"),
            ("proc/irq/0/effective_affinity_list", "0"),
            ("proc/irq/0/timer/keep", ""),
        ]);
        let (state, reason, _) = judged("irq-affinity", &files);
        assert_eq!(state, "ok", "{reason}");
    }

    /// `isolcpus=managed_irq` at work, on a kernel that shows managed interrupts in debugfs alone.
    #[test]
    fn a_managed_interrupt_that_is_directed_to_housekeeping_is_no_finding() {
        let judge = |effective: &str| {
            let files = with_cpus(&[
                ("proc/cmdline", "isolcpus=managed_irq,domain,2-3"),
                ("proc/mounts", "none /dbg debugfs rw 0 0"),
                ("dbg/irq/irqs/30", "dstate: 0x1\n   IRQD_AFFINITY_MANAGED\n"),
                ("proc/irq/30/smp_affinity_list", "0-3"),
                ("proc/irq/30/effective_affinity_list", effective),
                ("proc/irq/30/nvme0q1/keep", ""),
            ]);
            judged("irq-affinity", &files)
        };
        assert_eq!(judge("0").0, "ok", "{}", judge("0").1);
        assert!(judge("0").1.contains("30 nvme0q1"));
        assert_eq!(judge("3").0, "immovable");
    }
}
