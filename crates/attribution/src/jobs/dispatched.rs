//! How late the kernel lets real-time threads run on each CPU, whichever these are: what a thread
//! meets there that is not there yet.

use super::follow::{Came, Dispatch};
use crate::by_cpu::ByCpu;

/// One CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct OfCpu {
    pub(super) n: u64,
    pub(super) longest: Dispatch,
    /// Of these, those after a timer that was late, as each is by some nanoseconds.
    pub(super) timers: u64,
    pub(super) late_ns: u64,
}

/// All CPUs.
#[derive(Debug, Default)]
pub(super) struct Dispatched(ByCpu<OfCpu>);

impl Dispatched {
    pub(super) fn add(&mut self, cpu: u32, Came { dispatch, late_ns }: Came) {
        if self.0.get(cpu).is_none() {
            self.0.insert(cpu, OfCpu::default());
        }
        let Some(cpu) = self.0.get_mut(cpu) else { return };
        cpu.n += 1;
        cpu.longest = cpu.longest.or_longer(dispatch);
        cpu.timers += u64::from(late_ns > 0);
        cpu.late_ns = cpu.late_ns.max(late_ns);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &OfCpu)> {
        self.0.iter()
    }
}
