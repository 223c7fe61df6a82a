//! Hardware queues of block devices: which CPUs submit through each, and where its completions
//! interrupt.
//!
//! Files: Linux `Documentation/ABI/stable/sysfs-block`, `block/blk-mq-sysfs.c` (`mq/N/cpu_list`).
//! Queue N of `nvme0n1` has the interrupt `nvme0q(N+1)`, that of a virtio disk `virtioX-req.N`.
//! Other drivers' interrupts are not distinguished by queue.

use super::id;
use super::interrupts::messages;
use super::scene::Scene;
use crate::resources::irq_here::IrqHere;
use model::resource::{Kind, Resource};

const CLASS: &str = "sys/block";

/// A row for each queue that this CPU uses or that interrupts it. Disks of no size, such as unused
/// loop devices, are left out.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    let disks = scene.root.names(CLASS);
    let used =
        disks.iter().filter(|disk| scene.root.number::<u64>(&format!("{CLASS}/{disk}/size")) != Some(0));
    used.flat_map(|disk| of_disk(scene, disk)).collect()
}

fn of_disk(scene: &Scene, disk: &str) -> Vec<Resource> {
    let own = format!("{CLASS}/{disk}");
    let numbers: Vec<_> = ["device", "device/..", "device/device"]
        .iter()
        .flat_map(|at| messages(scene, &format!("{own}/{at}")))
        .collect();
    let driver = scene.uevent(&format!("{own}/device"), "DRIVER");
    let row = |queue: &String| {
        let number: u32 = queue.parse().ok()?;
        let irq = scene.irqs().iter().find(|here| serves(here, disk, number, &numbers));
        queue_row(scene, &format!("{own}/mq/{queue}"), irq).map(|row| Resource {
            name: format!("{disk} queue {number}"),
            owner: Some(
                driver.as_ref().map_or_else(|| disk.to_owned(), |driver| format!("{disk} ({driver})")),
            ),
            ..row
        })
    };
    scene.root.names(&format!("{own}/mq")).iter().filter_map(row).collect()
}

fn serves(here: &IrqHere, disk: &str, queue: u32, numbers: &[u32]) -> bool {
    let controller = disk.rsplit_once('n').map_or(disk, |(controller, _)| controller);
    let (nvme, virtio) = (format!("{controller}q{}", u64::from(queue) + 1), format!("-req.{queue}"));
    let virtio_here = numbers.contains(&here.irq.number);
    here.irq.names.iter().any(|name| *name == nvme || virtio_here && name.ends_with(&virtio))
}

fn queue_row(scene: &Scene, at: &str, irq: Option<&IrqHere>) -> Option<Resource> {
    let submits = scene.spaced(&format!("{at}/cpu_list"));
    let here = submits.as_ref().is_some_and(|cpus| cpus.contains(scene.cpu));
    let (count, irq) = (irq.and_then(|irq| irq.count), irq.map(|here| &here.irq));
    let routed = irq.map(|irq| irq.effective.contains(scene.cpu));
    let allowed = irq.is_some_and(|irq| irq.allowed.contains(scene.cpu)) || routed == Some(true);
    let did = count.map(|count| count > 0);
    if !here && !allowed && did != Some(true) {
        return None;
    }
    let interrupt = |irq: &crate::Irq| format!("interrupt {} on {}", irq.number, irq.effective);
    let reason = match (irq, here) {
        (None, _) => {
            "completes requests of this CPU; which interrupt serves the queue is not known, or it has none"
        }
        (Some(_), true) => "requests of this CPU complete through it, and go where its interrupt goes",
        (Some(_), false) => "only its interrupt may come here",
    };
    Some(Resource {
        asked: submits.map(|cpus| format!("used by {cpus}")),
        effective: irq.map(interrupt),
        observed: count.map(|count| format!("{count} interrupts since boot")),
        count,
        may_touch: Some(true),
        in_force: routed,
        touched: did,
        movable: irq.and_then(|irq| irq.movable),
        reason: Some(reason.to_owned()),
        mechanism: Some(if here { id::BLK_MQ } else { id::IRQ }.to_owned()),
        ..Resource::new(Kind::BlockQueue, "")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn queues_are_joined_with_their_interrupts() {
        let (_dir, root) = tree(&[
            (
                "proc/interrupts",
                "  CPU0 CPU1 CPU2 CPU3\n 27: 0 0 0 5 x nvme0q2\n 36: 0 0 0 4 x virtio1-req.0\n 37: 0 0 0 4 x virtio7-req.0\n",
            ),
            ("proc/irq/27/smp_affinity_list", "2-3"),
            ("proc/irq/27/effective_affinity_list", "3"),
            ("sys/kernel/irq/27/actions", "nvme0q2"),
            ("proc/irq/36/smp_affinity_list", "0-3"),
            ("proc/irq/36/effective_affinity_list", "2"),
            ("sys/kernel/irq/36/actions", "virtio1-req.0"),
            ("proc/irq/37/smp_affinity_list", "3"),
            ("sys/kernel/irq/37/actions", "virtio7-req.0"),
            ("sys/block/nvme0n1/size", "100"),
            ("sys/block/nvme0n1/mq/0/cpu_list", "0, 1"),
            ("sys/block/nvme0n1/mq/1/cpu_list", "2, 3"),
            ("sys/block/vda/size", "100"),
            ("sys/block/vda/device/uevent", "DRIVER=virtio_blk"),
            ("sys/block/vda/msi_irqs/36", ""),
            ("sys/block/vda/mq/0/cpu_list", "0, 1, 2, 3"),
            ("sys/block/sda/size", "5"),
            ("sys/block/sda/mq/0/cpu_list", "3"),
            ("sys/block/loop0/size", "0"),
            ("sys/block/loop0/mq/0/cpu_list", "0, 1, 2, 3"),
            ("sys/block/sdb/mq/x/cpu_list", "3"),
            ("sys/block/sdb/mq/0/cpu_list", "\u{fffd}"),
        ]);
        let rows = rows(&Scene::new(&root, 3));
        let seen: Vec<_> = rows
            .iter()
            .map(|row| (row.name.as_str(), row.effective.as_deref(), row.in_force, row.count))
            .collect();
        assert_eq!(
            seen,
            [
                ("nvme0n1 queue 1", Some("interrupt 27 on 3"), Some(true), Some(5)),
                ("sda queue 0", None, None, None),
                ("vda queue 0", Some("interrupt 36 on 2"), Some(false), Some(4)),
            ]
        );
        assert_eq!(rows[2].owner.as_deref(), Some("vda (virtio_blk)"));
        assert_eq!(rows[0].asked.as_deref(), Some("used by 2,3"));
    }
}
