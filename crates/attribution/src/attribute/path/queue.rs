//! How the scheduler treats the task: when it runs, sleeps, or waits for the CPU, and whether it is
//! passed over while it waits.
//!
//! A scheduler that idles or takes a lower task while one with precedence waits has one reason: the
//! waiting task has no budget left. That is real-time throttling (also of a group of tasks),
//! a server for fair tasks, the runtime of a deadline, or `cpu.max` (Linux kernel/sched/core.c,
//! `pick_next_task`).
//!
//! If the task itself sleeps and a lower one follows, an earlier preempted task with precedence
//! over the latter is passed over. But it may have moved to another CPU, for which not every trace
//! has events. If it runs here again without having been woken or moved, it was here meanwhile.

use crate::prio::Prio;
use crate::view::Task;

/// Preempted tasks that are remembered.
const MOST_READY: usize = 32;

/// What the task does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum State {
    /// Not known.
    #[default]
    Unknown,
    Runs,
    Sleeps,
    /// It is in the queue of its CPU since then, ns; after it was preempted, or woken.
    Waits {
        since_ns: i64,
        preempted: bool,
    },
}

/// The queue of one CPU as far as it concerns one task.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) state: State,
    /// Of the tasks that were taken while this one waited, the lowest; idle is below all.
    last_taken: Option<(bool, Prio)>,
    /// A runnable task under a real-time policy or a deadline that was followed by a lower one:
    /// since then no such task has run here.
    passed_over: Option<i32>,
    /// When that ended while the task waited.
    taken_again_ns: Option<i64>,
    /// Tasks under a real-time policy or a deadline that were preempted here and have not been seen
    /// since.
    ready: Vec<i32>,
    /// The last of those, if a lower one was taken: passed over, if it is still here.
    perhaps: Option<i32>,
    /// The time for which the task waited meanwhile.
    waited: Option<(i32, [i64; 2])>,
}

impl Queue {
    /// The task is put into the queue.
    pub(super) fn woken(&mut self, at_ns: i64) {
        if !matches!(self.state, State::Waits { .. } | State::Runs) {
            self.waits(at_ns, false);
        }
    }

    /// Whether a switch between two other tasks changes nothing here: the task does not wait, and
    /// neither of the two is followed, nor was before.
    #[inline(always)]
    pub(super) fn stays(&self, tid: i32, prev: Task, next: Task) -> bool {
        let first = |task: Task| task.prio.is_known() && !task.prio.is_fair();
        let nobody = self.ready.is_empty() && self.waited.is_none();
        let waits = matches!(self.state, State::Waits { .. });
        nobody && !waits && prev.pid != tid && !first(prev) && !first(next)
    }

    /// The CPU switches from one task to another; `tid` is the task. Returns the time, up to now,
    /// in which it was out of budget.
    #[inline(always)]
    pub(super) fn switched(
        &mut self,
        at_ns: i64,
        tid: i32,
        prev: Task,
        runnable: bool,
        next: Task,
    ) -> Option<[i64; 2]> {
        let first = |task: Task| task.prio.is_known() && !task.prio.is_fair();
        if prev.pid == tid && runnable {
            self.waits(at_ns, true);
        } else if prev.pid == tid {
            self.state = State::Sleeps;
        }
        let perhaps = self.perhaps.take_if(|_| first(next));
        if perhaps == Some(next.pid) {
            self.taken_again_ns = self.taken_again_ns.or(Some(at_ns));
        }
        let mut without = None;
        if next.pid == tid {
            if let State::Waits { since_ns, .. } = self.state {
                without = self.passed_over_until(at_ns, next.prio).map(|until_ns| [since_ns, until_ns]);
                self.waited = perhaps.filter(|_| without.is_none()).map(|pid| (pid, [since_ns, at_ns]));
            }
            self.state = State::Runs;
        } else if let State::Waits { .. } = self.state {
            let last = (next.pid == 0, next.prio);
            self.last_taken = Some(self.last_taken.map_or(last, |known| known.max(last)));
        }
        if first(next) {
            self.taken_again_ns = self.taken_again_ns.or(self.passed_over.take().map(|_| at_ns));
        } else if runnable && first(prev) {
            self.passed_over = Some(prev.pid);
        } else if self.passed_over.is_none() {
            self.perhaps = self.perhaps.or(self.ready.last().copied());
        }
        // A task that comes back in another class perhaps had no precedence.
        let back = self.waited.take_if(|(pid, _)| *pid == next.pid).filter(|_| first(next));
        let waited = back.map(|(_, waited)| waited);
        if !self.ready.is_empty() {
            self.ready.retain(|pid| *pid != next.pid);
        }
        if runnable && first(prev) {
            self.ready.push(prev.pid);
            let many = self.ready.len().saturating_sub(MOST_READY);
            self.ready.drain(..many);
        }
        without.or(waited)
    }

    /// A task is woken: it was not ready before.
    #[inline(always)]
    pub(super) fn slept(&mut self, pid: i32) {
        if !(self.ready.is_empty() && self.perhaps.is_none() && self.waited.is_none()) {
            self.forget(pid);
        }
    }

    #[inline(never)]
    fn forget(&mut self, pid: i32) {
        self.ready.retain(|ready| *ready != pid);
        self.perhaps.take_if(|ready| *ready == pid);
        self.waited.take_if(|(ready, _)| *ready == pid);
    }

    fn waits(&mut self, since_ns: i64, preempted: bool) {
        self.state = State::Waits { since_ns, preempted };
        (self.last_taken, self.taken_again_ns) = (None, None);
    }

    /// Until when a task of this priority, which waited until now, was passed over.
    #[inline(never)]
    fn passed_over_until(&self, now_ns: i64, prio: Prio) -> Option<i64> {
        let behind = |(idle, taken): (bool, Prio)| idle || (taken.is_known() && !taken.may_delay(prio));
        if prio.is_known() && self.last_taken.is_some_and(behind) {
            return Some(now_ns);
        }
        let ended_ns = if self.passed_over.is_some() { Some(now_ns) } else { self.taken_again_ns };
        ended_ns.filter(|_| prio.is_known() && !prio.is_fair())
    }

    /// A task leaves the CPU for another one, or comes from one.
    pub(super) fn moved(&mut self, pid: i32) {
        self.slept(pid);
        if self.passed_over == Some(pid) {
            self.passed_over = None;
        }
    }

    /// Events are missing.
    pub(super) fn lost(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A task of three under FIFO, three under OTHER, one whose priority is not known, and idle.
    fn task(number: u8) -> Task {
        let prio = match number {
            0 => Prio::new(120),
            1..4 => Prio::new(i64::from(10 * number)),
            4..7 => Prio::new(i64::from(116 + number)),
            _ => Prio::UNKNOWN,
        };
        Task { prio, ..Task::unnamed(i32::from(number), 0) }
    }

    proptest! {
        /// Whoever the task is.
        #[test]
        fn a_switch_that_stays_changes_nothing(
            tid in 1i32..8,
            steps in prop::collection::vec((0u8..6, any::<bool>(), 0u8..8), 1..60),
        ) {
            let mut queue = Queue::default();
            let mut runs = 0;
            for (at_ns, (kind, runnable, number)) in (0..).zip(steps) {
                match kind {
                    0 => queue.woken(at_ns),
                    1 => queue.slept(i32::from(number)),
                    2 if runnable => queue.moved(i32::from(number)),
                    _ => {
                        let (prev, next) = (task(runs), task(number));
                        let (stays, before) = (queue.stays(tid, prev, next), format!("{queue:?}"));
                        let without = queue.switched(at_ns, tid, prev, runnable, next);
                        if stays && next.pid != tid {
                            prop_assert_eq!((before, None), (format!("{queue:?}"), without));
                        }
                        runs = number;
                    }
                }
            }
        }
    }
}
