//! The scheduling domains of the measured CPUs: a CPU in none gets no task by balancing, whatever took it out (`isolcpus=`, a partition,
//! cpusets of version 1).
//!
//! Sources: Linux `Documentation/scheduler/sched-stats.rst` (`/proc/schedstat`: each CPU's line is followed by those of its domains, named
//! from version 17 on), `Documentation/scheduler/sched-domains.rst`. debugfs shows them too, from 6.4 on only where `sched/verbose` was
//! set (commit 34320745dfc9); before 5.13 they were in `/proc/sys/kernel/sched_domain`.

use super::super::catalogue::Mechanism;
use super::remedy::propose;
use super::{Outcome, Scene, named};
use model::Cpus;
use std::collections::BTreeMap;

const STATISTICS: &str = "proc/schedstat";

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

/// CPU → its domains, as names with their CPUs; CPUs without any are left out. `None` where this kernel does not tell.
fn read(scene: &Scene) -> Option<BTreeMap<u32, Vec<String>>> {
    let text = scene.root.maybe(STATISTICS)?;
    let mut domains = BTreeMap::<u32, Vec<String>>::new();
    let mut cpu = None;
    for line in text.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        match words.as_slice() {
            [first, ..] if first.starts_with("cpu") => cpu = first[3..].parse().ok(),
            [first, second, rest @ ..] if first.starts_with("domain") => {
                let span = |mask: &str| Cpus::parse_hex(mask).ok();
                let domain = match (span(second), rest.first()) {
                    // A name that is also a hex number, such as MC is not, comes before a mask.
                    (_, Some(mask))
                        if !second.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b',') =>
                    {
                        span(mask).map(|cpus| format!("{second} {cpus}"))
                    }
                    (Some(cpus), _) => Some(cpus.to_string()),
                    _ => None,
                };
                if let (Some(cpu), Some(domain)) = (cpu, domain) {
                    domains.entry(cpu).or_default().push(domain);
                }
            }
            _ => {}
        }
    }
    cpu.map(|_: u32| domains)
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
}
