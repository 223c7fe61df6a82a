//! Memory nodes: those of CPUs, and those of the devices that move data.
//!
//! Files: Linux `Documentation/ABI/stable/sysfs-devices-node`,
//! `Documentation/ABI/testing/sysfs-bus-pci` (`numa_node`: -1 where firmware does not say).

use super::Root;

/// Where a device may show its node: it is a PCI device, belongs to a virtio device, or to a
/// controller.
const PLACES: [&str; 3] = ["device/numa_node", "device/../numa_node", "device/device/numa_node"];
/// Classes of devices. A disk of several NVMe controllers is below none of them.
const CLASSES: [&str; 3] = ["sys/class/net", "sys/class/nvme", "sys/block"];

/// The highest number of a node that a kernel can be built for (`NODES_SHIFT` is at most 10 in
/// `arch/*/Kconfig`). A larger one in a captured tree is damage.
const MAX_NODE: u32 = 1023;

/// A network or block device, or a controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceNode {
    /// Its name.
    pub name: String,
    /// Its node; `None` where firmware names none.
    pub node: Option<u32>,
}

/// The node of a CPU.
pub(super) fn of_cpu(root: &Root, cpu: u32) -> Option<u32> {
    let names = root.names(&format!("sys/devices/system/cpu/cpu{cpu}"));
    let mut nodes = names.iter().filter_map(|name| name.strip_prefix("node")?.parse().ok());
    nodes.find(|node| *node <= MAX_NODE)
}

/// The devices whose place the kernel shows.
pub fn device_nodes(root: &Root) -> Vec<DeviceNode> {
    let of_class = |class: &str| {
        let device = |name: String| {
            let mut files = PLACES.iter().map(|place| format!("{class}/{name}/{place}"));
            let node = files.find_map(|file| root.number::<i64>(&file))?;
            Some(DeviceNode { name, node: u32::try_from(node).ok().filter(|node| *node <= MAX_NODE) })
        };
        root.names(class).into_iter().filter_map(device).collect::<Vec<_>>()
    };
    CLASSES.into_iter().flat_map(of_class).collect()
}

/// The files that show the nodes of devices, as patterns.
pub(super) fn files() -> impl Iterator<Item = String> {
    CLASSES.into_iter().flat_map(|class| PLACES.map(|place| format!("{class}/*/{place}")))
}
