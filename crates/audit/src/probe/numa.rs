//! Memory and devices on the NUMA nodes of the measured CPUs: the memory side of isolation (RTSS
//! 2024, interference-free operating system, §V, bound NUMA nodes to keep memory and caches apart).
//!
//! Files: Linux `Documentation/admin-guide/cgroup-v2.rst` (`cpuset.mems`),
//! `Documentation/ABI/testing/sysfs-bus-pci` (`numa_node`).

use super::super::catalogue::Mechanism;
use super::remedy::propose;
use super::{Outcome, Scene, named, some_of};
use std::collections::BTreeSet;

/// The nodes of the measured CPUs and all nodes; `None` where there is at most one.
fn nodes(scene: &Scene) -> Option<(BTreeSet<u32>, BTreeSet<u32>)> {
    let cpus = &scene.machine.topology.cpus;
    let all: BTreeSet<_> = cpus.iter().filter_map(|cpu| cpu.node).collect();
    let own = cpus.iter().filter(|cpu| scene.cpus.contains(cpu.cpu)).filter_map(|cpu| cpu.node).collect();
    (all.len() > 1).then_some((own, all))
}

pub(super) fn judge_mems(scene: &Scene, mechanism: &Mechanism) -> Outcome {
    let Some((own, all)) = nodes(scene) else { return Outcome::absent(mechanism) };
    let shared: BTreeSet<_> = scene
        .housekeeping
        .iter()
        .filter_map(|cpu| scene.machine.topology.cpus.iter().find(|one| one.cpu == cpu)?.node)
        .filter(|node| own.contains(node))
        .collect();
    if !shared.is_empty() {
        let reason = format!(
            "{} share memory node {} with housekeeping CPUs: {}",
            named(scene.cpus),
            list(&shared),
            mechanism.harm
        );
        return propose(scene, mechanism, &[], reason);
    }
    let users: Vec<_> = mems(scene)
        .into_iter()
        .filter(|(_, cpus, mems)| {
            cpus.and(scene.cpus).is_empty() && mems.iter().any(|node| own.contains(node))
        })
        .map(|(group, ..)| group)
        .collect();
    if users.is_empty() && !mems(scene).is_empty() {
        return Outcome::ok(format!("no group of other CPUs may take memory of node {}", list(&own)));
    }
    let who = if users.is_empty() { "every task".to_owned() } else { some_of(&users) };
    let reason =
        format!("{who} may take memory of node {} of {}: {}", list(&own), list(&all), mechanism.harm);
    propose(scene, mechanism, &[], reason)
}

/// The memory nodes of each cpuset.
pub(super) fn mems_value(scene: &Scene) -> Option<String> {
    let text = |(group, _, mems): &(String, model::Cpus, BTreeSet<u32>)| format!("{group} {}", list(mems));
    Some(mems(scene).iter().map(text).collect::<Vec<_>>().join("; ")).filter(|text| !text.is_empty())
}

/// Groups of the first two levels that name memory nodes.
fn mems(scene: &Scene) -> Vec<(String, model::Cpus, BTreeSet<u32>)> {
    let Some(place) = machine::mounted_at(scene.root, "cgroup2") else { return Vec::new() };
    let files = ["/*/cpuset.mems", "/*/*/cpuset.mems"]
        .iter()
        .flat_map(|end| scene.root.glob(&format!("{place}{end}")));
    files
        .filter_map(|file| {
            let group = file.strip_suffix("/cpuset.mems")?.to_owned();
            let mems = scene.root.cpus(&file).filter(|mems| !mems.is_empty())?;
            let cpus = scene.root.cpus(&format!("{group}/cpuset.cpus")).unwrap_or_default();
            Some((group, cpus, mems.0))
        })
        .collect()
}

pub(super) fn judge_devices(scene: &Scene, mechanism: &Mechanism) -> Outcome {
    let Some((own, _)) = nodes(scene) else { return Outcome::absent(mechanism) };
    let all = machine::device_nodes(scene.root).into_iter();
    let here = all.filter(|device| device.node.is_some_and(|node| own.contains(&node)));
    let here: Vec<_> = here.map(|device| device.name).collect();
    if here.is_empty() {
        return Outcome::ok(format!("no network or block device is on node {}", list(&own)));
    }
    let reason = format!("{} on node {}: {}", some_of(&here), list(&own), mechanism.harm);
    propose(scene, mechanism, &[], reason)
}

fn list(nodes: &BTreeSet<u32>) -> String {
    model::Cpus(nodes.clone()).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::tests::judged;

    const TWO_NODES: [(&str, &str); 6] = [
        ("sys/devices/system/cpu/online", "0-3"),
        ("sys/devices/system/cpu/cpu0/node0/.keep", ""),
        ("sys/devices/system/cpu/cpu1/node0/.keep", ""),
        ("sys/devices/system/cpu/cpu2/node1/.keep", ""),
        ("sys/devices/system/cpu/cpu3/node1/.keep", ""),
        ("sys/class/net/eth0/device/numa_node", "1"),
    ];

    #[test]
    fn a_device_beside_the_measured_cpus_is_reported() {
        let (_, reason, _) = judged("numa-devices", &TWO_NODES);
        assert!(reason.starts_with("eth0 on node 1"), "{reason}");
        assert_eq!(judged("numa-devices", &TWO_NODES[..1]).0, "not-applicable");
        // A virtio disk has its node one device further up; a disk of several NVMe controllers has
        // none above it.
        let more = [
            ("sys/block/vda/device/.keep", ""),
            ("sys/block/vda/numa_node", "1"),
            ("sys/class/nvme/nvme0/device/numa_node", "1"),
            ("sys/block/sda/device/numa_node", "-1"),
        ];
        let (_, reason, _) = judged("numa-devices", &[&TWO_NODES[..], &more].concat());
        assert!(reason.starts_with("eth0, nvme0, vda on node 1"), "{reason}");
    }

    #[test]
    fn memory_is_apart_only_where_groups_say_so() {
        let (state, reason, _) = judged("cpuset-mems", &TWO_NODES);
        assert!(state != "ok" && reason.starts_with("every task may take memory of node 1"), "{reason}");
        let grouped = [
            &TWO_NODES[..],
            &[
                ("proc/mounts", "c /c cgroup2 rw 0 0"),
                ("c/house/cpuset.mems", "0"),
                ("c/house/cpuset.cpus", "0-1"),
                ("c/rt/cpuset.mems", "1"),
                ("c/rt/cpuset.cpus", "2-3"),
            ],
        ]
        .concat();
        assert_eq!(judged("cpuset-mems", &grouped).0, "ok");
    }
}
