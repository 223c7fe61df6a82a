//! The CPU's memory node: its memory, the CPUs that use it first, and the devices that move data
//! through it.
//!
//! Files: Linux `Documentation/ABI/stable/sysfs-devices-node`.

use super::id;
use super::scene::{Scene, some_of};
use crate::nodes;
use model::resource::{Kind, Resource};

/// The node, and the devices on it.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    let Some(node) = nodes::of_cpu(scene.root, scene.cpu) else { return Vec::new() };
    let at = format!("sys/devices/system/node/node{node}");
    let cpus = scene.root.cpus(&format!("{at}/cpulist"));
    let count = scene.root.cpus("sys/devices/system/node/online").map_or(1, |nodes| nodes.len());
    let memory = scene.root.maybe(&format!("{at}/meminfo")).as_deref().and_then(total_kib);
    let shared = cpus.as_ref().map(|cpus| cpus.len() > 1);
    let memory_row = Resource {
        effective: cpus.map(|cpus| format!("shared by CPUs {cpus}")),
        observed: memory.map(|kib| format!("{} MiB", kib / 1024)),
        owner: Some("memory controller".to_owned()),
        may_touch: shared,
        in_force: shared,
        movable: Some(count > 1),
        reason: Some(
            if count > 1 {
                "other tasks can be given memory of other nodes"
            } else {
                "this machine has one node"
            }
            .to_owned(),
        ),
        mechanism: Some(id::CPUSET_MEMS.to_owned()),
        ..Resource::new(Kind::Numa, format!("memory of node {node}"))
    };
    [Some(memory_row), devices(scene, node)].into_iter().flatten().collect()
}

fn total_kib(meminfo: &str) -> Option<u64> {
    meminfo.lines().find_map(|line| line.split_once("MemTotal:")?.1.split_whitespace().next()?.parse().ok())
}

/// Network and block devices on the node; where firmware names no node, that is said.
fn devices(scene: &Scene, node: u32) -> Option<Resource> {
    let all = nodes::device_nodes(scene.root);
    let unplaced = all.iter().filter(|device| device.node.is_none()).count();
    let here = all.into_iter().filter(|device| device.node == Some(node));
    let here: Vec<_> = here.map(|device| device.name).collect();
    if here.is_empty() && unplaced == 0 {
        return None;
    }
    let unplaced =
        if unplaced > 0 { format!("firmware names no node for {unplaced} devices; ") } else { String::new() };
    Some(Resource {
        effective: Some(if here.is_empty() { "none known".to_owned() } else { some_of(&here) }),
        owner: Some("devices".to_owned()),
        may_touch: if here.is_empty() { None } else { Some(true) },
        in_force: if here.is_empty() { None } else { Some(true) },
        movable: Some(false),
        reason: Some(format!("{unplaced}a device stays in its slot")),
        mechanism: Some(id::NUMA_DEVICES.to_owned()),
        ..Resource::new(Kind::Numa, format!("devices on node {node}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn the_node_with_its_memory_and_devices() {
        let (_dir, root) = tree(&[
            ("sys/devices/system/cpu/cpu3/node1/.keep", ""),
            ("sys/devices/system/node/online", "0-1"),
            ("sys/devices/system/node/node1/cpulist", "2-3"),
            ("sys/devices/system/node/node1/meminfo", "Node 1 MemTotal:  2097152 kB\nNode 1 MemFree: 5 kB"),
            ("sys/class/net/eth0/device/numa_node", "1"),
            ("sys/class/net/eth1/device/numa_node", "0"),
            ("sys/block/vda/device/.keep", ""),
            ("sys/block/vda/numa_node", "-1"),
            ("sys/block/sda/device/numa_node", "what"),
        ]);
        let rows = super::rows(&Scene::new(&root, 3));
        assert_eq!(rows[0].effective.as_deref(), Some("shared by CPUs 2,3"));
        assert_eq!((rows[0].observed.as_deref(), rows[0].movable), (Some("2048 MiB"), Some(true)));
        assert_eq!(rows[1].effective.as_deref(), Some("eth0"));
        assert!(rows[1].reason.as_deref().unwrap().starts_with("firmware names no node for 1 devices"));
        assert!(super::rows(&Scene::new(&root, 2)).is_empty());
    }
}
