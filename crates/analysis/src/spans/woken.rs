//! Who is woken on a CPU and for it, and what an IPI brings: who has asked for that.

use super::Span;
use super::cpu::Cpu;
use super::frame::{Frame, Kind};
use crate::attribute::{Cause, Causes};
use crate::labels::LabelId;
use crate::view::Context;

/// Tasks woken between two switches that are told apart.
const MOST_WOKEN: usize = 16;
impl Cpu {
    /// A wake-up done on this CPU: whoever is running caused it.
    #[inline(always)]
    pub(super) fn woke(&mut self, pid: i32) {
        let own = pid == self.probe;
        for frame in self.stack.iter_mut().rev() {
            frame.woke_probe |= own;
            frame.woke_other |= !own;
            if frame.context == Context::Hard && !frame.absorbed {
                break;
            }
        }
    }

    /// A task is woken to run here; `here` where this CPU does the waking itself.
    #[inline(always)]
    pub(super) fn wanted(&mut self, pid: i32, here: bool, sink: &mut impl FnMut(&Span)) {
        // Most wake-ups have two events.
        if self.woken.last() != Some(&pid) {
            self.add_woken(pid);
        }
        // It had slept since it was preempted, elsewhere.
        self.preempted.remove(pid);
        if pid == self.probe && here && self.is_undecided() {
            // The probe's wake-up has another cause than the IPI that came before.
            self.settle(false, sink);
        }
    }

    #[inline(never)]
    fn add_woken(&mut self, pid: i32) {
        if self.woken.len() < MOST_WOKEN && !self.woken.contains(&pid) {
            self.woken.push(pid);
        }
    }

    /// Whether nothing but a task runs.
    pub(super) fn is_plain(&self) -> bool {
        self.stack.is_empty()
    }

    /// The IPI that is going on.
    fn ipi(&mut self) -> Option<&mut Frame> {
        self.stack.iter_mut().rev().find(|frame| frame.kind == Kind::Ipi && !frame.absorbed)
    }

    /// The first function that an IPI brought names it; whoever asked for any of them has caused
    /// it.
    pub(super) fn called(&mut self, label: LabelId, cause: Option<Cause>) {
        if let Some(ipi) = self.ipi() {
            if !ipi.named {
                (ipi.label, ipi.named) = (label, true);
            }
            cause.into_iter().for_each(|cause| ipi.causes.add(cause));
        }
    }

    /// An IPI completes a wake-up that another CPU asked for.
    pub(super) fn woken_from_afar(&mut self, cause: Cause) {
        if let Some(ipi) = self.ipi() {
            ipi.causes.add(cause);
        }
    }

    /// Who asked for a TLB flush: whoever sent the IPI that brought it, else the last who asked for
    /// one.
    pub(super) fn flushed(&mut self, last: Option<Cause>) -> Causes {
        let last = last.map_or_else(Causes::default, Causes::one);
        let Some(ipi) = self.ipi() else { return last };
        if ipi.causes.is_empty() {
            ipi.causes = last;
        }
        ipi.causes
    }
}
