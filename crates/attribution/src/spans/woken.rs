//! Wake-ups on a CPU and for it, and the sources of what an IPI brings.

use super::Span;
use super::cpu::Cpu;
use super::frame::{Frame, Kind};
use crate::attribute::{Cause, Causes};
use crate::labels::LabelId;
use crate::view::Context;
use model::EventClass;

/// The most tasks kept that were woken between two switches.
const MOST_WOKEN: usize = 16;
impl Cpu {
    /// A wake-up done on this CPU, caused by what runs there.
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
        // It slept elsewhere after it was preempted.
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

    /// The open IPI.
    fn ipi(&mut self) -> Option<&mut Frame> {
        self.stack.iter_mut().rev().find(|frame| frame.kind == Kind::Ipi && !frame.absorbed)
    }

    /// The first function that an IPI brought names it; the source of each of them is a cause.
    pub(super) fn called(&mut self, label: LabelId, cause: Option<Cause>) {
        if let Some(ipi) = self.ipi() {
            if !ipi.named {
                (ipi.label, ipi.named) = (label, true);
            }
            cause.into_iter().for_each(|cause| ipi.causes.add(cause));
        }
    }

    /// An IPI completes a wake-up that another CPU requested; `label`: the function that does so.
    pub(super) fn woken_from_afar(&mut self, label: LabelId, cause: Cause) {
        if let Some(ipi) = self.ipi() {
            if ipi.class == EventClass::IpiCall && !ipi.named {
                (ipi.label, ipi.named) = (label, true);
            }
            ipi.causes.add(cause);
        }
    }

    /// The source of a TLB flush: the sender of the IPI that brought it, else the last source of
    /// a flush.
    pub(super) fn flushed(&mut self, last: Option<Cause>) -> Causes {
        let last = last.map_or_else(Causes::default, Causes::one);
        let Some(ipi) = self.ipi() else { return last };
        if ipi.causes.is_empty() {
            ipi.causes = last;
        }
        ipi.causes
    }
}
