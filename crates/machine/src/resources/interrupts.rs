//! Numbered interrupts: where each may be handled, where it is routed, how often this CPU handled
//! it.
//!
//! Files: Linux `Documentation/core-api/irq/irq-affinity.rst`; the vector and the managed flag in
//! debugfs `irq/irqs/N` (`kernel/irq/debugfs.c`, with CONFIG_GENERIC_IRQ_DEBUGFS). An interrupt of
//! one CPU (arm64's timers) has no mask, only counts.

use super::id;
use super::scene::Scene;
use crate::resources::irq_here::IrqHere;
use model::Cpus;
use model::resource::{Kind, Resource};
use std::collections::BTreeMap;

/// A row for each interrupt that may reach the CPU, or did.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    let mut rows: Vec<_> = Vec::new();
    if let Err(why) = scene.interrupts() {
        let reason = format!("how often the CPU handled an interrupt is not known: {why}");
        rows.push(Resource { reason: Some(reason), ..Resource::new(Kind::Irq, "counts of interrupts") });
    }
    let owners = owners(scene);
    rows.extend(scene.irqs().iter().filter_map(|here| row(scene, here, &owners)));
    rows
}

fn row(scene: &Scene, here: &IrqHere, owners: &BTreeMap<u32, String>) -> Option<Resource> {
    let IrqHere { irq, count, chip, managed, vector } = here;
    let unmasked = irq.allowed.is_empty();
    let may = irq.allowed.contains(scene.cpu) || irq.effective.contains(scene.cpu) || unmasked;
    let did = count.map(|count| count > 0);
    if !may && did != Some(true) {
        return None;
    }
    let vector = vector.map_or(String::new(), |vector| format!(", vector {vector}"));
    let spelled = |cpus: &Cpus| (!cpus.is_empty()).then(|| cpus.to_string());
    let (reason, mechanism) = match (unmasked, irq.movable, managed) {
        (true, ..) => ("each CPU has an interrupt of this number to itself", None),
        (_, Some(false), Some(true)) => {
            ("the kernel spreads it and lets nobody move it", Some(id::IRQ_MANAGED))
        }
        (_, Some(false), _) => ("the kernel lets nobody move it", Some(id::IRQ_MANAGED)),
        (_, Some(true), _) => ("its affinity can be set", Some(id::IRQ)),
        (_, None, _) => {
            ("this kernel says only when its affinity is written whether it can be moved", Some(id::IRQ))
        }
    };
    Some(Resource {
        asked: spelled(&irq.allowed),
        effective: spelled(&irq.effective).map(|cpus| format!("{cpus}{vector}")),
        observed: count.map(|count| format!("{count} since boot")),
        count: *count,
        owner: owners
            .get(&irq.number)
            .cloned()
            .or_else(|| chip.split(' ').next().map(str::to_owned))
            .filter(|o| !o.is_empty()),
        may_touch: Some(may),
        in_force: Some(irq.effective.contains(scene.cpu) || unmasked),
        touched: did,
        movable: irq.movable,
        reason: Some(reason.to_owned()),
        mechanism: mechanism.map(str::to_owned),
        ..Resource::new(Kind::Irq, format!("{} {}", irq.number, irq.names.join(",")))
    })
}

/// Driver and address of the PCI device behind each message-signalled interrupt.
fn owners(scene: &Scene) -> BTreeMap<u32, String> {
    const DEVICES: &str = "sys/bus/pci/devices";
    let mut owners = BTreeMap::new();
    for address in scene.root.names(DEVICES) {
        let device = format!("{DEVICES}/{address}");
        let numbers: Vec<u32> = messages(scene, &device);
        if !numbers.is_empty() {
            let driver = scene.uevent(&device, "DRIVER").unwrap_or_else(|| "no driver".to_owned());
            owners.extend(numbers.into_iter().map(|number| (number, format!("{driver} {address}"))));
        }
    }
    owners
}

/// The message-signalled interrupts of a device.
pub(super) fn messages(scene: &Scene, device: &str) -> Vec<u32> {
    let names = scene.root.names(&format!("{device}/msi_irqs"));
    names.into_iter().filter_map(|name| name.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    const FILES: &[(&str, &str)] = &[
        (
            "proc/interrupts",
            "   CPU0 CPU1 CPU2\n  4: 9 0 0 IO-APIC 4-edge ttyS0\n 27: 0 0 5 PCI-MSIX-0000:00:02.0 1-edge nvme0q2\n 30: 0 0 7 GICv2 30 Level arch_timer\n 40: 3 0 0 IO-APIC 9-edge acpi\n",
        ),
        ("proc/irq/4/smp_affinity_list", "0-2"),
        ("proc/irq/4/effective_affinity_list", "0"),
        ("sys/kernel/irq/4/actions", "ttyS0"),
        ("proc/irq/27/smp_affinity_list", "2"),
        ("proc/irq/27/effective_affinity_list", "2"),
        ("sys/kernel/irq/27/actions", "nvme0q2"),
        ("proc/irq/40/smp_affinity_list", "0-1"),
        ("sys/kernel/irq/40/actions", "acpi"),
        ("proc/mounts", "d /d debugfs rw 0 0"),
        (
            "d/irq/irqs/27",
            "handler: handle_edge_irq\n IRQD_AFFINITY_MANAGED\n  Vector:    35\n  Target:     2",
        ),
        ("sys/bus/pci/devices/0000_00_02.0/msi_irqs/27", "msix"),
        ("sys/bus/pci/devices/0000_00_02.0/uevent", "DRIVER=nvme\nPCI_ID=1"),
    ];

    #[test]
    fn asked_in_force_and_seen_are_kept_apart() {
        let (_dir, root) = tree(FILES);
        let rows = rows(&Scene::new(&root, 2));
        let names: Vec<_> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["4 ttyS0", "27 nvme0q2", "30 arch_timer"], "40 can not and did not");
        let (serial, nvme, timer) = (&rows[0], &rows[1], &rows[2]);
        assert_eq!(
            (serial.may_touch, serial.in_force, serial.touched),
            (Some(true), Some(false), Some(false))
        );
        assert_eq!((serial.movable, serial.mechanism.as_deref()), (None, Some("irq-affinity")));
        assert_eq!((nvme.may_touch, nvme.in_force, nvme.touched), (Some(true), Some(true), Some(true)));
        assert_eq!(nvme.effective.as_deref(), Some("2, vector 35"));
        assert_eq!((nvme.owner.as_deref(), nvme.count), (Some("nvme 0000_00_02.0"), Some(5)));
        assert_eq!((nvme.movable, nvme.mechanism.as_deref()), (Some(false), Some("irq-managed")));
        assert_eq!((timer.asked.as_deref(), timer.movable, timer.count), (None, Some(false), Some(7)));
    }

    #[test]
    fn an_interrupt_that_came_before_it_was_moved_is_reported() {
        let (_dir, root) = tree(FILES);
        let rows = rows(&Scene::new(&root, 0));
        let acpi = rows.iter().find(|row| row.name == "40 acpi").unwrap();
        assert_eq!((acpi.asked.as_deref(), acpi.touched), (Some("0,1"), Some(true)));
    }

    #[test]
    fn without_counts_nothing_is_said_to_be_untouched() {
        let (_dir, root) = tree(&FILES[1..]);
        let rows = rows(&Scene::new(&root, 2));
        assert!(rows[0].reason.as_deref().unwrap().contains("there is no /proc/interrupts"));
        assert!(rows[1..].iter().all(|row| row.touched.is_none() && row.count.is_none()));
    }
}
