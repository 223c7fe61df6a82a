//! Queues of network devices: the interrupt of each, and to which CPUs software steers packets.
//!
//! Files: Linux `Documentation/networking/scaling.rst` (RPS, XPS). Which interrupt serves which
//! queue no file says: the device's message-signalled interrupts are matched by the driver's names
//! (`virtio2-input.0`, `eth0-TxRx-3`, `mlx5_comp2@pci:…`, `eth0-rx-1`). Devices without hardware
//! have no interrupt; their packets are handled where they are sent, unless RPS says otherwise.

use super::id;
use super::interrupts::messages;
use super::scene::Scene;
use crate::resources::irq_here::IrqHere;
use model::Cpus;
use model::resource::{Kind, Resource};

const CLASS: &str = "sys/class/net";

/// A row for each queue that may reach the CPU, or did.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    scene.root.names(CLASS).iter().flat_map(|device| of_device(scene, device)).collect()
}

fn of_device(scene: &Scene, device: &str) -> Vec<Resource> {
    let own = format!("{CLASS}/{device}");
    let driver = scene.uevent(&format!("{own}/device"), "DRIVER");
    // A virtio device's interrupts belong to the PCI device above it.
    let mut numbers = messages(scene, &format!("{own}/device"));
    numbers.extend(messages(scene, &format!("{own}/device/..")));
    let irqs: Vec<_> = scene
        .irqs()
        .iter()
        .filter(|here| numbers.contains(&here.irq.number) || names_device(here, device))
        .collect();
    let hardware = driver.is_some() || !irqs.is_empty();
    let owner = driver.map_or_else(|| device.to_owned(), |driver| format!("{device} ({driver})"));
    let queues = scene.root.names(&format!("{own}/queues"));
    let row = |queue: &String| {
        let at = format!("{own}/queues/{queue}");
        let (direction, number) = queue.split_once('-')?;
        let number = number.parse().ok()?;
        let irq = irqs.iter().find(|here| serves(here, direction, number));
        queue_row(scene, &Queue { at, direction, irq: irq.copied(), hardware }).map(|row| Resource {
            owner: Some(owner.clone()),
            ..Resource { name: format!("{device} {queue}"), ..row }
        })
    };
    queues.iter().filter_map(row).collect()
}

fn names_device(here: &IrqHere, device: &str) -> bool {
    let own = |name: &String| {
        name.strip_prefix(device).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '@']))
    };
    here.irq.names.iter().any(own)
}

/// Whether the name of the interrupt's handler is that of the queue.
fn serves(here: &IrqHere, direction: &str, queue: u32) -> bool {
    here.irq.names.iter().any(|name| {
        let name = name.split('@').next().unwrap_or(name).to_ascii_lowercase();
        let head = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let head_has =
            |words: &[&str]| words.iter().any(|word| head.trim_end_matches(['-', '.', '_']).ends_with(word));
        let both = head_has(&["txrx", "tx-rx", "comp", "mq", "queue", "ring"]);
        let own = match direction {
            "rx" => head_has(&["rx", "input"]) && !head_has(&["txrx"]),
            _ => head_has(&["tx", "output"]),
        };
        (both || own) && name[head.len()..].parse() == Ok(queue)
    })
}

struct Queue<'a> {
    at: String,
    direction: &'a str,
    irq: Option<&'a IrqHere>,
    /// Whether there is a device that interrupts.
    hardware: bool,
}

fn queue_row(scene: &Scene, queue: &Queue) -> Option<Resource> {
    let receives = queue.direction == "rx";
    let file = if receives { "rps_cpus" } else { "xps_cpus" };
    let steered = scene.root.mask(&format!("{}/{file}", queue.at)).filter(|cpus| !cpus.is_empty());
    let steers = steered.as_ref().is_some_and(|cpus| cpus.contains(scene.cpu));
    let (irq, count) = (queue.irq.map(|here| &here.irq), queue.irq.and_then(|here| here.count));
    let routed = irq.map(|irq| irq.effective.contains(scene.cpu));
    let allowed = irq.map(|irq| irq.allowed.contains(scene.cpu) || irq.effective.contains(scene.cpu));
    let known = irq.is_some() || !queue.hardware;
    if known && !steers && allowed != Some(true) && count.unwrap_or(0) == 0 {
        return None;
    }
    let name = if receives { "RPS" } else { "XPS" };
    let asked = steered.as_ref().map_or_else(|| format!("no {name}"), |cpus| format!("{name} {cpus}"));
    let effective = irq.map(|irq| format!("interrupt {} on {}", irq.number, irq.effective));
    let (reason, mechanism) = why(receives, steers, irq.is_some());
    let movable = if steers { Some(true) } else { irq.and_then(|irq| irq.movable) };
    let yes_or_unknown = |answer: Option<bool>| {
        if steers {
            Some(true)
        } else if queue.hardware {
            answer
        } else {
            Some(false)
        }
    };
    Some(Resource {
        asked: Some(asked),
        effective: effective.or_else(|| steered.map(|cpus: Cpus| cpus.to_string())),
        observed: count.map(|count| format!("{count} interrupts since boot")),
        count,
        may_touch: yes_or_unknown(allowed),
        in_force: yes_or_unknown(routed),
        touched: count.map(|count| count > 0),
        movable,
        reason: Some(reason.to_owned()),
        mechanism: Some(mechanism.to_owned()),
        ..Resource::new(Kind::NetQueue, "")
    })
}

fn why(receives: bool, steers: bool, irq: bool) -> (&'static str, &'static str) {
    match (steers, receives, irq) {
        (true, true, _) => ("software steers packets of this queue here", id::NET_RPS),
        (true, false, _) => ("what this CPU sends goes through this queue, and its locks", id::NET_XPS),
        (false, _, true) => ("the queue goes where its interrupt goes", id::IRQ),
        (false, _, false) => (
            "which interrupt serves the queue is not known; the driver's names do not show it",
            id::NET_QUEUES,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    fn machine(extra: &[(&str, &str)]) -> (tempfile::TempDir, crate::Root) {
        let mut files = vec![
            (
                "proc/interrupts",
                "  CPU0 CPU1 CPU2 CPU3\n 38: 0 0 0 5 x virtio2-input.0\n 39: 9 0 0 0 x virtio2-output.0\n 51: 0 0 7 0 x eth1-TxRx-1\n",
            ),
            ("proc/irq/38/smp_affinity_list", "0-3"),
            ("proc/irq/38/effective_affinity_list", "3"),
            ("sys/kernel/irq/38/actions", "virtio2-input.0"),
            ("proc/irq/39/smp_affinity_list", "0"),
            ("proc/irq/39/effective_affinity_list", "0"),
            ("sys/kernel/irq/39/actions", "virtio2-output.0"),
            ("proc/irq/51/smp_affinity_list", "2"),
            ("sys/kernel/irq/51/actions", "eth1-TxRx-1"),
            ("sys/class/net/eth0/device/uevent", "DRIVER=virtio_net"),
            ("sys/class/net/eth0/msi_irqs/38", ""),
            ("sys/class/net/eth0/msi_irqs/39", ""),
            ("sys/class/net/eth0/queues/rx-0/rps_cpus", "0"),
            ("sys/class/net/eth0/queues/tx-0/xps_cpus", "0"),
            ("sys/class/net/eth1/device/uevent", "DRIVER=igb"),
            ("sys/class/net/eth1/queues/rx-1/rps_cpus", "c"),
            ("sys/class/net/eth1/queues/rx-2/rps_cpus", "0"),
            ("sys/class/net/lo/queues/rx-0/rps_cpus", "0"),
        ];
        files.extend(extra);
        tree(&files)
    }

    #[test]
    fn queues_are_joined_with_their_interrupts_by_the_drivers_names() {
        let (_dir, root) = machine(&[]);
        let rows = rows(&Scene::new(&root, 3));
        let names: Vec<_> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["eth0 rx-0", "eth1 rx-1", "eth1 rx-2"], "eth0 tx-0 and lo cannot");
        assert_eq!(rows[0].effective.as_deref(), Some("interrupt 38 on 3"));
        assert_eq!((rows[0].in_force, rows[0].touched, rows[0].count), (Some(true), Some(true), Some(5)));
        assert_eq!(rows[0].owner.as_deref(), Some("eth0 (virtio_net)"));
        assert_eq!(rows[1].asked.as_deref(), Some("RPS 2,3"));
        assert_eq!((rows[1].may_touch, rows[1].touched), (Some(true), Some(false)));
        assert_eq!(rows[1].mechanism.as_deref(), Some("net-rps"));
        assert_eq!(rows[2].may_touch, None, "{:?}", rows[2]);
        assert!(rows[2].reason.as_deref().unwrap().contains("not known"));
    }

    #[test]
    fn a_virtual_device_is_listed_only_where_it_is_steered() {
        let (_dir, root) = machine(&[("sys/class/net/lo/queues/rx-0/rps_cpus", "8")]);
        let rows = rows(&Scene::new(&root, 3));
        let row = rows.iter().find(|row| row.name == "lo rx-0").unwrap();
        assert_eq!((row.may_touch, row.in_force, row.movable), (Some(true), Some(true), Some(true)));
    }

    #[test]
    fn names_of_many_drivers() {
        let (_dir, root) = machine(&[
            ("proc/irq/60/smp_affinity_list", "3"),
            ("sys/kernel/irq/60/actions", "mlx5_comp2@pci:0000:01:00.0"),
            ("proc/irq/61/smp_affinity_list", "3"),
            ("sys/kernel/irq/61/actions", "eth9-rx-1"),
        ]);
        let scene = Scene::new(&root, 3);
        let irq = |number| scene.irqs().iter().find(|here| here.irq.number == number).unwrap();
        assert!(serves(irq(60), "rx", 2) && serves(irq(60), "tx", 2) && !serves(irq(60), "rx", 0));
        assert!(serves(irq(61), "rx", 1) && !serves(irq(61), "tx", 1));
        assert!(serves(irq(51), "tx", 1) && serves(irq(51), "rx", 1) && !serves(irq(51), "rx", 0));
    }

    #[test]
    fn strange_queues_are_passed_over() {
        let (_dir, root) = machine(&[
            ("sys/class/net/eth2/queues/rx/rps_cpus", "f"),
            ("sys/class/net/eth2/queues/rx-x/rps_cpus", "f"),
            ("sys/class/net/eth2/queues/tx-99999999999/xps_cpus", "f"),
            ("sys/class/net/eth2/queues/rx-1/rps_cpus", "zz"),
        ]);
        assert!(rows(&Scene::new(&root, 3)).iter().all(|row| !row.name.starts_with("eth2")));
    }
}
