//! SMT siblings of the measured CPUs: they share the core's execution units and first-level caches.
//!
//! Source: Linux `Documentation/admin-guide/cputopology.rst`. Siblings are read, never computed:
//! firmware numbers them 0-1, 2-3 on one machine and 0-4, 1-5 on the next.

use super::super::catalogue::Mechanism;
use super::remedy::propose;
use super::{Outcome, Scene, are, named};
use model::Cpus;

pub(super) fn judge(scene: &Scene, mechanism: &Mechanism) -> Outcome {
    let topology = &scene.machine.topology;
    let own = topology.cpus.iter().filter(|cpu| scene.cpus.contains(cpu.cpu));
    let cores = own.fold(Cpus::default(), |all, cpu| all.or(&cpu.siblings));
    if cores.is_empty() {
        return Outcome::unknown("the kernel does not report which CPUs share a core");
    }
    let others = cores.minus(scene.cpus).and(&topology.online);
    if others.is_empty() {
        let reason = if cores.minus(scene.cpus).is_empty() {
            format!("{} share their cores with no other CPU", named(scene.cpus))
        } else {
            format!("the siblings {} are offline", cores.minus(scene.cpus))
        };
        return Outcome::ok(reason).having(cores.to_string());
    }
    let reached = others.minus(&topology.isolated);
    if reached.is_empty() {
        let reason = format!("the siblings {others} are isolated too: leave them idle");
        return Outcome::ok(reason).having(cores.to_string());
    }
    let reason = format!(
        "{} in the same {} as {} and open to every task: {}",
        are(&reached),
        if scene.cpus.len() == 1 { "core" } else { "cores" },
        named(scene.cpus),
        mechanism.harm
    );
    propose(scene, mechanism, &[], reason).having(cores.to_string())
}
