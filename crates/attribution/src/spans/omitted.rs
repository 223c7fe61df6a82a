//! Switches that the kernel did not record: some kernels leave some out without counting them as
//! lost.
//!
//! Every event names the current task. If that is not the last one switched to, a switch was left
//! out between this event and the previous one on the CPU. The earlier task ran at least until the
//! previous event; the other runs at least from this one on. An idle CPU for which the other was
//! woken does nothing else before it switches: there, the other runs from the previous event on.
//!
//! A kernel 6.18 was seen to leave out nearly all switches from idle, in a plain instance with
//! `sched_switch` alone.

use super::cpu::Cpu;
use super::hand_over::HandOver;
use crate::labels::LabelId;
use crate::view::Task;

impl Cpu {
    /// The omitted hand-over before an event whose current task is `who`, and the task that left.
    /// `before_ns`: the CPU's previous event. `leaves`: the event is a switch from `who` itself.
    /// `unseen`: the name of a task that no switch named.
    #[inline(always)]
    pub(super) fn omitted(
        &mut self,
        [before_ns, ts_ns]: [i64; 2],
        who: i32,
        leaves: bool,
        unseen: LabelId,
    ) -> Option<(i32, HandOver)> {
        let current = self.current()?.pid;
        if who == current {
            self.leaving = None;
            return None;
        }
        if self.leaving == Some(who) && !leaves {
            return None;
        }
        Some(self.left_out(current, [before_ns, ts_ns], who, unseen))
    }

    #[cold]
    fn left_out(
        &mut self,
        current: i32,
        [before_ns, ts_ns]: [i64; 2],
        who: i32,
        unseen: LabelId,
    ) -> (i32, HandOver) {
        self.breaks += 1;
        let at_once = current == 0 && self.woken.contains(&who);
        let came_ns = if at_once { before_ns } else { ts_ns };
        let next = Task::unnamed(who, unseen);
        (current, HandOver { left_ns: before_ns, came_ns, runnable: false, next, named: false })
    }
}
