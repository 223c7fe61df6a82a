//! What was right at the end of applying.

use machine::Irq;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What was so at the end of applying.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Watched {
    /// Mechanisms that were as isolation wants them, by id.
    pub right: BTreeSet<String>,
    /// Interrupts that may be handled on the isolated CPUs all the same, number → handlers: those
    /// that cannot be moved or were left.
    pub interrupts: BTreeMap<u32, String>,
    /// Interrupts that were moved and were handled there still: where interrupts are not remapped,
    /// x86 moves them when they come next.
    pub late: BTreeMap<u32, String>,
    /// Tasks that somebody had pinned to CPUs isolated at boot, `TID/STARTTIME/NAME`.
    #[serde(default)]
    pub pinned: BTreeSet<String>,
}

impl Watched {
    /// Whether an interrupt stayed. A number alone is not enough: a device that goes gives its
    /// numbers back.
    pub(crate) fn stayed(&self, irq: &Irq) -> bool {
        self.interrupts.get(&irq.number) == Some(&handlers(irq))
    }

    /// Whether an interrupt was yet to leave.
    pub(crate) fn was_late(&self, irq: &Irq) -> bool {
        self.late.get(&irq.number) == Some(&handlers(irq))
    }
}

pub(crate) fn handlers(irq: &Irq) -> String {
    irq.names.join("+")
}
