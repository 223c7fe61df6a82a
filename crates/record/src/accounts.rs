//! The kernel's accounts of a recording that goes on.

use super::held::CutPages;
use model::run::TraceCpu;

/// What the kernel has counted of each CPU's buffer so far.
#[derive(Debug, Clone, Default)]
pub struct Accounts(Vec<TraceCpu>);

impl Accounts {
    pub(super) fn of(cpus: Vec<TraceCpu>) -> Self {
        Self(cpus)
    }

    /// Events that were written into the buffers.
    pub fn events(&self) -> u64 {
        self.0.iter().map(|cpu| cpu.read + cpu.left + cpu.overrun).sum()
    }

    /// The same, with what was lost since alone.
    pub(super) fn since(mut self, before: &Self) -> Self {
        for now in &mut self.0 {
            if let Some(before) = before.0.iter().find(|before| before.cpu == now.cpu) {
                now.overrun = now.overrun.saturating_sub(before.overrun);
                now.commit_overrun = now.commit_overrun.saturating_sub(before.commit_overrun);
                now.dropped = now.dropped.saturating_sub(before.dropped);
            }
        }
        self
    }

    /// The account of what was cut out: what else was read is not in the file.
    pub(super) fn of_cut(&self, cut: &CutPages) -> TraceCpu {
        let account = self.0.iter().find(|account| account.cpu == cut.cpu).copied().unwrap_or_default();
        // What is unread yet is later than what was cut out.
        let (left, discarded) = (0, account.read.saturating_sub(cut.events));
        TraceCpu { cpu: cut.cpu, left, discarded, pages: cut.pages, ..account }
    }
}
