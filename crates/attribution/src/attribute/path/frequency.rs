//! A CPU whose frequency changes may stop meanwhile.
//!
//! Depending on the driver, the event comes at the request or at the end of the change, from the
//! CPU itself or from the requesting one. No event shows how long the CPU stops. The driver reports
//! the upper limit of a change, and each event of the CPU shows it at work. So at most this much
//! time, before and after the change and between two events of the CPU, belongs to it.
//!
//! Linux drivers/cpufreq/cpufreq.c (`cpufreq_notify_transition`, `cpufreq_driver_fast_switch`).

use crate::attribute::blocking::Stretch;
use crate::attribute::cause::Causes;
use crate::attribute::delay::Blocking;
use crate::view::{Change, KernelEvent, What};

/// The changes of one CPU's frequency.
#[derive(Debug, Default)]
pub(super) struct Frequency {
    /// When the CPU was last seen at work, ns.
    worked_ns: Option<i64>,
    /// A change and its time, ns, since which the CPU was not seen at work.
    changed: Option<(i64, Change)>,
}

impl Frequency {
    /// The next event of the CPU, or of its frequency. Passes on the stretches before it in which
    /// the CPU may have stopped.
    pub(super) fn event(&mut self, event: &KernelEvent, own: u32, sink: &mut impl FnMut(Stretch)) {
        // Frequency events are rare, and most machines record none.
        if self.changed.is_none() && !matches!(event.what, What::Frequency { .. }) {
            if event.cpu == own {
                self.worked_ns = Some(event.ts_ns);
            }
        } else {
            self.changes(event, own).into_iter().flatten().for_each(sink);
        }
    }

    #[inline(never)]
    fn changes(&mut self, event: &KernelEvent, own: u32) -> [Option<Stretch>; 2] {
        let ts_ns = event.ts_ns;
        let change = match event.what {
            What::Frequency { cpu, change } if cpu == own => change,
            _ => None,
        };
        let before = self.worked_ns.zip(change).map(|(worked_ns, change)| {
            stretch([worked_ns.max(ts_ns.saturating_sub(change.most_ns)), ts_ns], change)
        });
        let ends = event.cpu == own || change.is_some();
        let behind = self
            .changed
            .filter(|_| ends)
            .map(|(at_ns, change)| stretch([at_ns, ts_ns.min(at_ns.saturating_add(change.most_ns))], change));
        if event.cpu == own {
            self.worked_ns = Some(ts_ns);
        }
        if ends {
            self.changed = change.map(|change| (ts_ns, change));
        }
        [behind, before].map(|one| one.filter(|one| one.t1_ns > one.t0_ns))
    }

    /// Whether a change may be in progress.
    #[inline(always)]
    pub(super) fn is_changing(&self) -> bool {
        self.changed.is_some()
    }

    /// The CPU is seen at work, and no change is in progress.
    #[inline(always)]
    pub(super) fn works(&mut self, ts_ns: i64) {
        self.worked_ns = Some(ts_ns);
    }

    /// Events are missing.
    pub(super) fn lost(&mut self) {
        *self = Self::default();
    }
}

fn stretch([t0_ns, t1_ns]: [i64; 2], change: Change) -> Stretch {
    Stretch {
        blocking: Blocking::FrequencyChange,
        t0_ns,
        t1_ns,
        label: change.label,
        causes: Causes::default(),
        sleeper: None,
        shut: true,
    }
}
