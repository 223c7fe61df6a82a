//! Switches that the kernel did not record: some kernels leave some out without counting them as lost.
//!
//! Every event names the task that was current. Where that is not the one that was switched to last, a switch was left out between this
//! event and the one before it on the CPU. The one that ran before did so until that event at least; the other runs from this one on at
//! least. An idle CPU for which the other was woken does nothing else before it switches: there, the other runs from the event before.
//!
//! A kernel 6.18 was seen to leave out nearly all switches from idle, in a plain instance with `sched_switch` alone.

use super::cpu::Cpu;
use super::hand_over::HandOver;
use crate::labels::LabelId;
use crate::view::Task;

impl Cpu {
    /// The hand-over, and from whom, that must have been before an event, the first after `before_ns`, of which `who` is current. `tells`: it is a switch
    /// from `who` itself. `unseen`: the name of who came without being named.
    #[inline(always)]
    pub(super) fn omitted(
        &mut self,
        [before_ns, ts_ns]: [i64; 2],
        who: i32,
        tells: bool,
        unseen: LabelId,
    ) -> Option<(i32, HandOver)> {
        let current = self.current()?.pid;
        if who == current {
            self.leaving = None;
            return None;
        }
        if self.leaving == Some(who) && !tells {
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
