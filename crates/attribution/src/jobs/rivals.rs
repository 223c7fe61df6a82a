//! For whom a thread waited after its wake-up: the tasks on its CPU that go before it, and its
//! equals. The rest of the wait is the kernel's: what cannot be preempted, and getting out of idle.

use crate::by_cpu::ByCpu;
use crate::prio::Prio;
use std::collections::VecDeque;

/// Stretches that are remembered of a CPU.
const MOST: usize = 128;

/// Who had a CPU, up to the last switch.
#[derive(Debug, Default)]
struct Cpu {
    /// When each stretch ended, and the priority of who had it; the latest last.
    stretches: VecDeque<(i64, Prio)>,
    /// Where the earliest of them began, ns; `None` before the first switch.
    begin_ns: Option<i64>,
}

/// All CPUs.
#[derive(Debug, Default)]
pub(super) struct Rivals(ByCpu<Cpu>);

impl Rivals {
    /// A CPU is handed over.
    pub(super) fn switch(&mut self, cpu: u32, ts_ns: i64, [prev, _]: [Prio; 2]) {
        if self.0.get(cpu).is_none() {
            self.0.insert(cpu, Cpu::default());
        }
        let Some(cpu) = self.0.get_mut(cpu) else { return };
        if cpu.begin_ns.is_none() {
            cpu.begin_ns = Some(ts_ns);
            return;
        }
        if cpu.stretches.len() == MOST {
            cpu.begin_ns = cpu.stretches.pop_front().map(|(end_ns, _)| end_ns);
        }
        cpu.stretches.push_back((ts_ns, prev));
    }

    /// How long tasks at least as urgent as `prio` had a CPU in a time that ends with the last
    /// switch, ns; `None` where it began before what is remembered.
    pub(super) fn time_ns(&self, cpu: u32, prio: Prio, [from_ns, to_ns]: [i64; 2]) -> Option<u64> {
        let cpu = self.0.get(cpu)?;
        let mut begin_ns = cpu.begin_ns.filter(|begin_ns| *begin_ns <= from_ns)?;
        let mut total_ns = 0;
        for (end_ns, holder) in &cpu.stretches {
            if *holder <= prio && !holder.is_fair() {
                let shared_ns = end_ns.min(&to_ns).saturating_sub(begin_ns.max(from_ns));
                total_ns = shared_ns.max(0).unsigned_abs().saturating_add(total_ns);
            }
            begin_ns = *end_ns;
        }
        Some(total_ns)
    }

    /// Events of this CPU are missing.
    pub(super) fn lost(&mut self, cpu: u32) {
        self.0.remove(cpu);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tasks_at_least_as_urgent_are_waited_for() {
        let mut rivals = Rivals::default();
        let [urgent, same, fair] = [10, 40, 120].map(Prio::new);
        assert_eq!(rivals.time_ns(0, same, [0, 5]), None);
        // From 100 on fair, then urgent from 200, equal from 250, and fair again from 300 to 310.
        for (at, prev) in [(100, same), (200, fair), (250, urgent), (300, same), (310, fair)] {
            rivals.switch(0, at, [prev, prev]);
        }
        assert_eq!(rivals.time_ns(0, same, [150, 310]), Some(100));
        assert_eq!(rivals.time_ns(0, same, [230, 310]), Some(70));
        assert_eq!(rivals.time_ns(0, urgent, [150, 310]), Some(50));
        assert_eq!(rivals.time_ns(0, same, [50, 310]), None);
        rivals.lost(0);
        assert_eq!(rivals.time_ns(0, same, [150, 310]), None);
    }
}
