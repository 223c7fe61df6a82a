//! How long the interrupts of each CPU took: handlers, softirqs and timers, as far as they have
//! events. What the kernel does before and behind those counts to the thread that was interrupted.

use crate::attribute::watch::event::{WatchEvent, What};
use crate::by_cpu::ByCpu;
use infer::bucket::Buckets;

/// Deepest nesting that is followed.
const DEEPEST: usize = 8;

/// One CPU.
#[derive(Debug, Default)]
struct Cpu {
    /// By nesting: whether it is an interrupt. On PREEMPT_RT softirqs and soft timers are work of
    /// the thread that runs them.
    open: Vec<bool>,
    /// When the outermost interrupt began, while there is one.
    since_ns: Option<i64>,
    total_ns: u64,
    demand: Buckets,
}

impl Cpu {
    fn end(&mut self, ts_ns: i64) {
        if let Some(since_ns) = self.since_ns.take() {
            let took_ns = ts_ns.saturating_sub(since_ns).max(0).unsigned_abs();
            self.total_ns = self.total_ns.saturating_add(took_ns);
            self.demand.add(since_ns, took_ns);
        }
    }
}

/// All CPUs.
#[derive(Debug, Default)]
pub(super) struct Interrupts(ByCpu<Cpu>);

impl Interrupts {
    pub(super) fn event(&mut self, event: &WatchEvent) {
        let begins = matches!(event.what, What::Enter(_) | What::Expires { .. });
        let ends = matches!(event.what, What::Exit | What::Switch { .. });
        if !begins && !ends {
            return;
        }
        if self.0.get(event.cpu).is_none() {
            self.0.insert(event.cpu, Cpu::default());
        }
        let Some(cpu) = self.0.get_mut(event.cpu) else { return };
        if begins {
            if cpu.open.len() == DEEPEST {
                cpu.open.remove(0);
            }
            cpu.open.push(!event.in_task);
            if !event.in_task && cpu.since_ns.is_none() {
                cpu.since_ns = Some(event.ts_ns);
            }
            return;
        }
        // No interrupt lasts beyond a switch.
        if matches!(event.what, What::Switch { .. }) {
            cpu.open.clear();
        } else {
            cpu.open.pop();
        }
        if !cpu.open.contains(&true) {
            cpu.end(event.ts_ns);
        }
    }

    /// Events of this CPU are missing.
    pub(super) fn lost(&mut self, cpu: u32) {
        if let Some(cpu) = self.0.get_mut(cpu) {
            cpu.open.clear();
            cpu.since_ns = None;
        }
    }

    /// The time in interrupts on a CPU until now, ns.
    pub(super) fn total_ns(&self, cpu: u32, now_ns: i64) -> u64 {
        let Some(cpu) = self.0.get(cpu) else { return 0 };
        let open_ns = cpu.since_ns.map_or(0, |since_ns| now_ns.saturating_sub(since_ns).max(0));
        cpu.total_ns.saturating_add(open_ns.unsigned_abs())
    }

    /// The demand of each CPU's interrupts.
    pub(super) fn demands(&self) -> impl Iterator<Item = (u32, &Buckets)> {
        self.0.iter().map(|(cpu, one)| (cpu, &one.demand))
    }
}
