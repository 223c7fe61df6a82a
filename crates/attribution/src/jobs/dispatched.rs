//! How late the kernel lets real-time threads run on each CPU, whichever these are: what a thread
//! meets there that is not there yet.

use super::follow::{Dispatch, Released};
use crate::by_cpu::ByCpu;

/// One CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct OfCpu {
    pub(super) n: u64,
    pub(super) longest: Dispatch,
    /// Activations after a timer that was late, as each is by some nanoseconds.
    pub(super) timers: u64,
    pub(super) late_ns: u64,
}

/// All CPUs.
#[derive(Debug, Default)]
pub(super) struct Dispatched(ByCpu<OfCpu>);

impl Dispatched {
    /// A thread came onto the CPU after a wake-up.
    pub(super) fn came(&mut self, cpu: u32, dispatch: Dispatch) {
        if let Some(cpu) = self.of(cpu) {
            cpu.n += 1;
            cpu.longest = cpu.longest.or_longer(dispatch);
        }
    }

    /// A thread ended there what it was released for: also where the switch to it is missing, or
    /// not needed because it had not slept yet.
    pub(super) fn ended(&mut self, cpu: u32, release: &Released) {
        let late_ns = release.late_ns();
        if late_ns > 0
            && let Some(cpu) = self.of(cpu)
        {
            cpu.timers += 1;
            cpu.late_ns = cpu.late_ns.max(late_ns);
        }
    }

    fn of(&mut self, cpu: u32) -> Option<&mut OfCpu> {
        if self.0.get(cpu).is_none() {
            self.0.insert(cpu, OfCpu::default());
        }
        self.0.get_mut(cpu)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &OfCpu)> {
        self.0.iter()
    }
}
