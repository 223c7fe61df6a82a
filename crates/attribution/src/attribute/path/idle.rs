//! A sleeping CPU takes time to wake, and what it is woken for waits for that.
//!
//! No event shows how long: the first one after the CPU went to sleep comes later. The driver
//! reports the exit latency of the state, so at most this much time before that event belongs to
//! it. A timer that fires late, or a hypervisor, may have taken the rest.
//!
//! Linux drivers/cpuidle/cpuidle.c (`cpuidle_enter_state`);
//! Documentation/admin-guide/pm/cpuidle.rst (`latency`).

use crate::attribute::blocking::Stretch;
use crate::attribute::cause::Causes;
use crate::attribute::delay::Blocking;
use crate::view::{IdleState, KernelEvent, What};

/// The idle state that one CPU is in, and since when, ns.
#[derive(Debug, Default)]
pub(super) struct Idle(Option<(i64, IdleState)>);

impl Idle {
    /// The next event of the CPU. Returns the longest time in which the CPU woke, once that has
    /// ended.
    pub(super) fn event(&mut self, event: &KernelEvent) -> Option<Stretch> {
        // Idle events are rare.
        if self.0.is_none() && !matches!(event.what, What::Idle(_)) {
            return None;
        }
        self.changes(event)
    }

    #[inline(never)]
    fn changes(&mut self, event: &KernelEvent) -> Option<Stretch> {
        let slept = self.0.take();
        if let What::Idle(state) = event.what {
            self.0 = state.map(|state| (event.ts_ns, state));
            return None;
        }
        let (since_ns, IdleState { label, exit_ns }) = slept?;
        Some(Stretch {
            blocking: Blocking::IdleExit,
            t0_ns: since_ns.max(event.ts_ns.saturating_sub(exit_ns)),
            t1_ns: event.ts_ns,
            label,
            causes: Causes::default(),
            sleeper: None,
            shut: true,
        })
    }

    /// Whether the CPU sleeps.
    #[inline(always)]
    pub(super) fn sleeps(&self) -> bool {
        self.0.is_some()
    }

    /// Events are missing.
    pub(super) fn lost(&mut self) {
        self.0 = None;
    }
}
