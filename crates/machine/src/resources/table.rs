//! One CPU's column of `/proc/interrupts` and `/proc/softirqs`.

use crate::resources::refusal::Refusal;
use crate::{CpuCounts, Root, cpu_table};
use model::Cpus;

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// The text before the colon.
    pub(super) name: String,
    /// The CPU's count since boot.
    pub(super) count: u64,
    /// The text after the counts.
    pub(super) text: String,
}

/// The rows for the CPU, or why there are none.
pub(super) fn read(root: &Root, cpu: u32, file: &'static str) -> Result<Vec<Row>, Refusal> {
    let text = root.text(file).map_err(|error| Refusal::of(root, error))?;
    let rows = cpu_table(&text.ok_or(Refusal::Absent(file))?, Some(&Cpus::one(cpu)));
    let row = |CpuCounts { name, counts, text }| Some(Row { name, count: *counts.get(&cpu)?, text });
    Ok(rows.ok_or(Refusal::NoColumn { file, cpu })?.into_iter().filter_map(row).collect())
}
