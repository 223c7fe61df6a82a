//! The decoded events of a trace, which one thread hands to another.

use crate::holes::Hole;
use crate::labels::LabelId;
use crate::prio::Prio;
use crate::view::{At, KernelEvent, Level, Switch, Wake};
use model::Cpus;

/// One step. It stores the most frequent events inline, and compactly: each cache line that one
/// thread writes must travel to the other's CPU, and back before it is written again.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// The first of each pair is the task that leaves the CPU.
    Switch {
        ts_ns: i64,
        cpu: u32,
        level: Level,
        irqs_off: bool,
        runnable: bool,
        pids: [i32; 2],
        prios: [Prio; 2],
        comms: [LabelId; 2],
        softirqd: [bool; 2],
    },
    Wake(At, Wake),
    /// The next of [`Steps::events`].
    Other,
    /// The next of [`Steps::rare`].
    Rare,
}

/// A step that is rare or no event.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rare {
    /// Events are missing.
    Lost(Hole),
    /// A thread whose wake-ups are not known in advance is to run from then on, ns.
    Released(i32, i64),
    /// The CPU where it runs, and since when, ns; or it does not run.
    Ran(i32, Option<(u32, i64)>),
}

/// Some steps, in order.
#[derive(Debug, Default)]
pub(super) struct Steps {
    pub(super) all: Vec<Step>,
    /// The events of [`Step::Other`]: they are large and less frequent.
    pub(super) events: Vec<KernelEvent>,
    /// The steps of [`Step::Rare`].
    pub(super) rare: Vec<Rare>,
    /// The sets of CPUs that these events name first.
    pub(super) sets: Vec<Cpus>,
}

impl Step {
    /// A switch. `None` if the leaving task was not current, which no kernel records.
    #[inline(always)]
    pub(super) fn of_switch(at: At, switch: Switch) -> Option<Self> {
        let (At { ts_ns, cpu, pid, level, irqs_off }, Switch { prev, runnable, next }) = (at, switch);
        (pid == prev.pid).then_some(Self::Switch {
            ts_ns,
            cpu,
            level,
            irqs_off,
            runnable,
            pids: [prev.pid, next.pid],
            prios: [prev.prio, next.prio],
            comms: [prev.comm, next.comm],
            softirqd: [prev.softirqd, next.softirqd],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_small() {
        assert_eq!(size_of::<Step>(), 40);
    }
}
