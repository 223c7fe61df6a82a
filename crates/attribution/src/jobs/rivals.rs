//! For whom a thread waited after its wake-up: the tasks on its CPU that go before it, and its
//! equals. The rest of the wait is the kernel's: what cannot be preempted, and getting out of idle.
//! Who kept the CPU meanwhile, though less urgent, is known too.

use crate::by_cpu::ByCpu;
use crate::prio::Prio;
use std::collections::VecDeque;

/// Stretches that are remembered of a CPU.
const MOST: usize = 128;

/// Who had a CPU, up to the last switch.
#[derive(Debug, Default)]
struct Cpu {
    /// When each stretch ended, and the priority and number of who had it; the latest last.
    stretches: VecDeque<(i64, Prio, i32)>,
    /// Where the earliest of them began, ns; `None` before the first switch.
    begin_ns: Option<i64>,
}

/// Who had the CPU while a thread waited for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waited {
    /// Tasks at least as urgent, ns.
    pub(super) rivals_ns: u64,
    /// The less urgent task that had it for the longest, idle not counted, and how long, ns.
    pub(super) kept: Option<(i32, u64)>,
}

/// All CPUs.
#[derive(Debug, Default)]
pub(super) struct Rivals(ByCpu<Cpu>);

impl Rivals {
    /// A CPU is handed over.
    pub(super) fn switch(&mut self, cpu: u32, ts_ns: i64, prev: (Prio, i32)) {
        if self.0.get(cpu).is_none() {
            self.0.insert(cpu, Cpu::default());
        }
        let Some(cpu) = self.0.get_mut(cpu) else { return };
        if cpu.begin_ns.is_none() {
            cpu.begin_ns = Some(ts_ns);
            return;
        }
        if cpu.stretches.len() == MOST {
            cpu.begin_ns = cpu.stretches.pop_front().map(|(end_ns, ..)| end_ns);
        }
        cpu.stretches.push_back((ts_ns, prev.0, prev.1));
    }

    /// For whom a thread of this priority waited in a time that ends with the last switch; `None`
    /// where it began before what is remembered.
    pub(super) fn waited(&self, cpu: u32, prio: Prio, [from_ns, to_ns]: [i64; 2]) -> Option<Waited> {
        let cpu = self.0.get(cpu)?;
        let mut begin_ns = cpu.begin_ns.filter(|begin_ns| *begin_ns <= from_ns)?;
        let mut waited = Waited { rivals_ns: 0, kept: None };
        for (end_ns, holder, pid) in &cpu.stretches {
            let shared_ns = end_ns.min(&to_ns).saturating_sub(begin_ns.max(from_ns)).max(0).unsigned_abs();
            if *holder <= prio && !holder.is_fair() {
                waited.rivals_ns = waited.rivals_ns.saturating_add(shared_ns);
            } else if *pid != 0 && shared_ns > waited.kept.map_or(0, |(_, ns)| ns) {
                waited.kept = Some((*pid, shared_ns));
            }
            begin_ns = *end_ns;
        }
        Some(waited)
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
        let time_ns = |rivals: &Rivals, prio, time| Some(rivals.waited(0, prio, time)?.rivals_ns);
        assert_eq!(time_ns(&rivals, same, [0, 5]), None);
        // From 100 on fair, then urgent from 200, equal from 250, and fair again from 300 to 310.
        for (at, prev) in [(100, same), (200, fair), (250, urgent), (300, same), (310, fair)] {
            rivals.switch(0, at, (prev, i32::from(prev == fair)));
        }
        assert_eq!(time_ns(&rivals, same, [150, 310]), Some(100));
        assert_eq!(time_ns(&rivals, same, [230, 310]), Some(70));
        assert_eq!(time_ns(&rivals, urgent, [150, 310]), Some(50));
        assert_eq!(time_ns(&rivals, same, [50, 310]), None);
        let kept = |prio, time| rivals.waited(0, prio, time).unwrap().kept;
        assert_eq!(kept(same, [120, 310]), Some((1, 80)));
        assert_eq!(kept(same, [200, 300]), None);
        rivals.lost(0);
        assert_eq!(time_ns(&rivals, same, [150, 310]), None);
    }
}
