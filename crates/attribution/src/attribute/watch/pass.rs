//! Scheduler events that concern no watched thread: only what may be needed later is kept of them,
//! and they are skipped.
//!
//! Nearly every event of a busy machine is one of these, and its record ([`Record`]) shows that at
//! once.

use super::event::WatchEvent;
use super::program::{Follow, Watch};
use crate::labels::LabelId;
use crate::prio::Prio;
use crate::records::{Record, TaskField};

impl Watch {
    /// Skips an event, given without `what`. False where it may matter: then pass it to
    /// [`Watch::event`]; nothing of it is kept here that this would change. `says`: whether events
    /// of its number are used here, called where no record shows it. `names`: those of the
    /// record's tasks.
    #[inline(always)]
    pub(crate) fn passes(
        &mut self,
        event: &WatchEvent,
        record: &Record<'_>,
        names: [LabelId; 2],
        says: impl FnOnce() -> bool,
    ) -> bool {
        if self.may_watch(event.pid) || !self.expected.is_empty() {
            return false;
        }
        match record {
            Record::Switch { prev, next, .. } => {
                let as_before = self.running.get(event.cpu).is_none_or(|before| *before == prev.pid);
                let follows = self.may_follow(prev) || self.may_follow(next);
                if !as_before || follows || names.into_iter().any(|name| self.follows_name(name)) {
                    return false;
                }
                self.running.insert(event.cpu, next.pid);
                self.last.remove(event.cpu);
                self.wakers.switched(event.cpu);
            }
            Record::Wake { task, done: false, .. } => {
                if self.may_follow(task) || self.follows_name(names[0]) {
                    return false;
                }
                let by = self.wakers.who(event).0;
                self.last.insert(event.cpu, (by, task.pid));
                self.is_woken(task.pid, by);
            }
            Record::Wake { task, done: true, .. } => {
                if self.may_watch(task.pid) {
                    return false;
                }
            }
            Record::Other => {
                if says() {
                    return false;
                }
            }
        }
        self.now_ns = event.ts_ns;
        self.touched.clear();
        true
    }

    /// Whether a task is watched, or one that has the same low bits.
    #[inline(always)]
    fn may_watch(&self, pid: i32) -> bool {
        self.watched.may_have(pid)
    }

    /// Whether a task is watched, or its priority may require it.
    #[inline(always)]
    fn may_follow(&self, task: &TaskField<'_>) -> bool {
        let first = || self.follow == Follow::RealTime && !Prio::new(i64::from(task.prio)).is_fair();
        self.may_watch(task.pid) || first()
    }

    #[inline(always)]
    fn follows_name(&self, name: LabelId) -> bool {
        self.follow == Follow::Named(name)
    }
}
