//! Who wakes a task: the current thread, or in an interrupt, what runs there; for a timer, its
//! intended expiry.

use super::event::{WatchEvent, What};
use crate::by_cpu::ByCpu;
use crate::labels::LabelId;
use rustc_hash::FxHashMap;

/// The most timers remembered.
const MOST: usize = 1 << 16;
/// Deepest nesting that is followed.
const DEEPEST: usize = 8;
/// A timer whose clock differs by more than this from the trace's uses another clock.
const SAME_CLOCK_NS: u64 = 1_000_000_000;

/// Who woke a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum By {
    /// A high-resolution timer's function.
    Timer {
        /// Its function.
        function: LabelId,
    },
    /// Another interrupt, softirq or timer.
    Interrupt(LabelId),
    /// An interrupt that was not recorded.
    SomeInterrupt,
    /// A thread.
    Thread(i32),
    /// Not known.
    Unknown,
}

/// What runs on a CPU above the task.
#[derive(Debug, Clone, Copy)]
struct Open {
    by: By,
    /// When the timer was to expire, by the trace's clock, ns. The offset to a timer's other clock
    /// is too large by the time from the interrupt's clock reading to the event, so such a timer
    /// seems less late than it was.
    intended_ns: Option<i64>,
}

/// The contexts of all CPUs, and the timers that are armed.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    open: ByCpu<Vec<Open>>,
    armed: FxHashMap<u64, i64>,
    /// Whether the trace's clock is not CLOCK_MONOTONIC.
    other_clock: bool,
}

impl Wakers {
    /// The trace's clock is not CLOCK_MONOTONIC, however near to it.
    pub(crate) fn by_another_clock(&mut self) {
        self.other_clock = true;
    }

    /// Takes note of an event.
    pub(crate) fn event(&mut self, event: &WatchEvent) {
        match event.what {
            What::Armed { timer, expires_ns } => {
                if self.armed.len() >= MOST {
                    self.armed.clear();
                }
                self.armed.insert(timer, expires_ns);
            }
            What::Expires { timer, now_ns, function } => {
                let same = !self.other_clock && now_ns.abs_diff(event.ts_ns) < SAME_CLOCK_NS;
                let intended = |at_ns: i64| {
                    if same { at_ns } else { event.ts_ns.saturating_sub(now_ns.saturating_sub(at_ns)) }
                };
                let intended_ns = self.armed.remove(&timer).map(intended);
                self.enter(event.cpu, Open { by: By::Timer { function }, intended_ns });
            }
            What::Enter(label) => self.enter(event.cpu, Open { by: By::Interrupt(label), intended_ns: None }),
            What::Exit => {
                self.open.get_mut(event.cpu).and_then(Vec::pop);
            }
            What::Switch { .. } => self.switched(event.cpu),
            _ => {}
        }
    }

    /// A CPU switches from one task to another: no interrupt lasts beyond that.
    #[inline(always)]
    pub(crate) fn switched(&mut self, cpu: u32) {
        if let Some(open) = self.open.get_mut(cpu) {
            open.clear();
        }
    }

    fn enter(&mut self, cpu: u32, what: Open) {
        match self.open.get_mut(cpu) {
            Some(open) => {
                if open.len() == DEEPEST {
                    open.remove(0);
                }
                open.push(what);
            }
            None => drop(self.open.insert(cpu, vec![what])),
        }
    }

    /// Who causes an event, and the intended expiry of the timer behind it.
    #[inline(always)]
    pub(crate) fn who(&self, event: &WatchEvent) -> (By, Option<i64>) {
        let innermost = self.open.get(event.cpu).and_then(|open| open.last());
        match innermost {
            // On PREEMPT_RT soft timers and softirqs run in threads.
            Some(open) => (open.by, open.intended_ns),
            None if event.in_task => (By::Thread(event.pid), None),
            None => (By::SomeInterrupt, None),
        }
    }

    /// Events of this CPU are missing.
    pub(crate) fn lost(&mut self, cpu: u32) {
        self.open.remove(cpu);
        self.armed.clear();
    }
}
