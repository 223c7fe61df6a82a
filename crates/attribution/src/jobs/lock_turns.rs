//! Who had which CPU from one switch to the next, and for how long without interrupts.

use rustc_hash::FxHashMap;

/// Who has a CPU.
#[derive(Debug, Clone, Copy)]
struct OnCpu {
    tid: i32,
    since_ns: i64,
    interrupts_ns: u64,
}

/// A task had a CPU.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    pub(super) tid: i32,
    pub(super) from_ns: i64,
    /// Interrupts not counted.
    pub(super) had_ns: u64,
}

/// All CPUs.
#[derive(Debug, Default)]
pub(super) struct Turns(FxHashMap<u32, OnCpu>);

impl Turns {
    /// A CPU is handed to a task. `interrupts_ns`: what interrupts have taken there so far. Returns
    /// the turn that ends.
    pub(super) fn switch(&mut self, cpu: u32, ts_ns: i64, interrupts_ns: u64, next: i32) -> Option<Turn> {
        let before = self.0.insert(cpu, OnCpu { tid: next, since_ns: ts_ns, interrupts_ns })?;
        let passed_ns = ts_ns.saturating_sub(before.since_ns).max(0).unsigned_abs();
        let had_ns = passed_ns.saturating_sub(interrupts_ns.saturating_sub(before.interrupts_ns));
        Some(Turn { tid: before.tid, from_ns: before.since_ns, had_ns })
    }

    /// Since when a task has a CPU.
    pub(super) fn since(&self, cpu: u32, tid: i32) -> Option<i64> {
        self.0.get(&cpu).filter(|one| one.tid == tid).map(|one| one.since_ns)
    }

    /// Events are missing.
    pub(super) fn lost(&mut self) {
        self.0.clear();
    }
}
