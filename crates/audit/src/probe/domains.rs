//! The scheduling domains of the measured CPUs: a CPU in none gets no task by balancing, whatever
//! took it out (`isolcpus=`, a partition, cpusets of version 1).
//!
//! Source: Linux `Documentation/scheduler/sched-domains.rst`.

use super::super::catalogue::Mechanism;
use super::remedy::propose;
use super::{Outcome, Scene, named};
use machine::{Domain, domains};
use model::Cpus;
use std::collections::BTreeMap;

pub(super) fn judge(scene: &Scene, mechanism: &Mechanism) -> Outcome {
    let Some(domains) = read(scene) else { return Outcome::absent(mechanism) };
    let domained: Vec<_> = scene.cpus.iter().filter(|cpu| domains.contains_key(cpu)).collect();
    let Some(first) = domained.first() else {
        return Outcome::ok(format!("{} in no scheduling domain", super::are(scene.cpus))).having("none");
    };
    let held: Cpus = domained.iter().copied().collect();
    let spans = domains[first].join(", ");
    let reason = format!("{} balanced within {spans}: {}", super::are(&held), mechanism.harm);
    propose(scene, mechanism, &[], reason).having(format!("{} of {}", held.len(), named(scene.cpus)))
}

pub(super) fn value(scene: &Scene) -> Option<String> {
    let domains = read(scene)?;
    Some(
        domains
            .iter()
            .map(|(cpu, spans)| format!("{cpu}: {}", spans.join(", ")))
            .collect::<Vec<_>>()
            .join("; "),
    )
}

/// The CPUs that cpusets of version 1 have taken out of the domains. That a CPU is in none is not
/// enough: where all others are isolated, the one on which everything runs is in none either.
pub(super) fn taken_out(scene: &Scene) -> Cpus {
    let Some(groups) = machine::cpusets_v1(scene.root).filter(|groups| !groups.top_balances) else {
        return Cpus::default();
    };
    let within = domains(scene.root).unwrap_or_default();
    let out = scene.machine.topology.online.minus(&groups.below);
    out.iter().filter(|cpu| !within.contains_key(cpu)).collect()
}

/// CPU → its domains, as names with their CPUs; CPUs without any are left out. `None` where this
/// kernel does not report them.
fn read(scene: &Scene) -> Option<BTreeMap<u32, Vec<String>>> {
    let span = |domain: Domain| match domain.name {
        Some(name) => format!("{name} {}", domain.cpus),
        None => domain.cpus.to_string(),
    };
    let of = |(cpu, domains): (u32, Vec<Domain>)| (cpu, domains.into_iter().map(span).collect());
    Some(domains(scene.root)?.into_iter().map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{judged, with_cpus};

    #[test]
    fn only_a_cpu_without_domains_is_apart() {
        let with = |text| judged("sched-domains", &with_cpus(&[("proc/schedstat", text)]));
        let apart =
            "version 15\ntimestamp 1\ncpu0 0 0\ndomain0 3 0 0\ncpu1 0 0\ndomain0 3 0 0\ncpu2 0 0\ncpu3 0 0\n";
        assert_eq!(with(apart).0, "ok");
        let (state, reason, _) = with("version 15\ncpu2 0 0\ndomain0 c 0\ndomain1 f 0\ncpu3 0 0\n");
        assert_ne!(state, "ok");
        assert!(reason.starts_with("CPU 2 is balanced within 2,3, 0-3: "), "{reason}");
        let (_, reason, _) = with("version 17\ncpu3 0 0\ndomain0 SMT 0000,0000000c 0\ndomain1 PKG f 0\n");
        assert!(reason.starts_with("CPU 3 is balanced within SMT 2,3, PKG 0-3: "), "{reason}");
        assert_eq!(judged("sched-domains", &with_cpus(&[])).0, "not-applicable");
    }

    /// Cpusets of version 1 leave no other trace in what the kernel lists as isolated.
    #[test]
    fn what_cpusets_of_version_1_have_taken_out_is_isolated_from_the_scheduler() {
        let with = |top, domains| {
            let files = [
                ("proc/mounts", "none /c cgroup rw,cpuset 0 0"),
                ("c/cpuset.cpus", "0-3"),
                ("c/cpuset.sched_load_balance", top),
                ("c/stillcore-house/cpuset.cpus", "0-1"),
                ("c/stillcore-house/cpuset.sched_load_balance", "1"),
                ("proc/schedstat", domains),
            ];
            let (state, reason, _) = judged("isolcpus", &with_cpus(&files));
            assert_eq!(state == "ok", reason.contains("cpusets of version 1 leave CPUs 2,3 out"), "{reason}");
            state
        };
        let apart = "version 15\ncpu0 0\ndomain0 3 0\ncpu1 0\ndomain0 3 0\ncpu2 0\ncpu3 0\n";
        assert_eq!(with("0", apart), "ok");
        assert_eq!(with("0", "version 15\ncpu2 0\ndomain0 c 0\ncpu3 0\n"), "boot", "it did not come to it");
        // CPUs that are in no domain because all others are isolated do everybody's work.
        assert_eq!(with("1", apart), "boot");
    }
}
