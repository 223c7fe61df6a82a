//! Numbered interrupts, with what one CPU has of each.

use crate::irq::detail;
use crate::resources::table::Row;
use crate::{Irq, Root, debugfs, irqs};
use model::Cpus;
use std::collections::BTreeMap;

/// A numbered interrupt with what this CPU has of it.
pub(crate) struct IrqHere {
    pub(crate) irq: Irq,
    /// How often this CPU handled it; `None` where the kernel does not report it.
    pub(crate) count: Option<u64>,
    /// Words of `/proc/interrupts` after the counts: chip, hardware number, handlers.
    pub chip: String,
    /// Whether the kernel spreads it by itself, where debugfs says.
    pub managed: Option<bool>,
    /// Its vector, on x86, where debugfs says.
    pub vector: Option<u32>,
}

/// The interrupts that have handlers, and those without a mask that this CPU has handled.
pub(crate) fn read(root: &Root, counts: Option<&[Row]>) -> Vec<IrqHere> {
    let rows = counts.unwrap_or_default();
    let rows: BTreeMap<u32, _> = rows.iter().filter_map(|row| Some((row.name.parse().ok()?, row))).collect();
    let debugfs = debugfs(root);
    let mut all: BTreeMap<u32, Irq> = irqs(root).into_iter().map(|irq| (irq.number, irq)).collect();
    for (number, row) in rows.iter().filter(|(_, row)| row.count > 0) {
        all.entry(*number).or_insert_with(|| Irq {
            number: *number,
            names: row.text.split_whitespace().last().map(str::to_owned).into_iter().collect(),
            allowed: Cpus::default(),
            effective: Cpus::default(),
            movable: Some(false),
        });
    }
    let one = |(number, irq): (u32, Irq)| {
        let row = rows.get(&number);
        let detail = detail(root, debugfs.as_deref(), number);
        IrqHere {
            count: row.map(|row| row.count).or_else(|| counts.is_some().then_some(0)),
            chip: row.map(|row| row.text.clone()).unwrap_or_default(),
            managed: detail.as_ref().map(|detail| detail.contains("IRQD_AFFINITY_MANAGED")),
            vector: detail.as_deref().and_then(vector),
            irq,
        }
    };
    all.into_iter().map(one).collect()
}

pub(crate) fn vector(detail: &str) -> Option<u32> {
    detail.lines().find_map(|line| line.trim().strip_prefix("Vector:")?.trim().parse().ok())
}
