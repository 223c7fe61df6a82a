//! The section of a program's locks, with names.

use super::explain::{self, Explained, Row, Step as Did};
use super::shape::{
    Activity, Holder, Lock, LockHolder, LockSection, LockWait, Part, Step, ThreadName, WaitEnd, Waiter,
};
use super::sums::{Key, OfLock};
use super::wait::{LockWait as Waited, Unknown};
use super::waits::Locks;
use crate::labels::LabelId;
use crate::prio::Prio;
use std::cmp::Reverse;

/// The most locks that are listed.
const LISTED: usize = 100;

impl Locks {
    /// The section; `None` where nobody waited for a lock. `comm`: the name of a task;
    /// `text`: that of a label.
    pub(crate) fn section(
        &self,
        comm: &dyn Fn(i32) -> String,
        text: &dyn Fn(LabelId) -> String,
    ) -> Option<LockSection> {
        let named = Named { locks: self, comm, text };
        let mut locks: Vec<(&Key, &OfLock)> = self.sums.locks.iter().collect();
        locks.sort_by_key(|(key, lock)| (Reverse(lock.total_ns), **key));
        let unlisted = self.sums.unlisted + locks.iter().skip(LISTED).map(|(_, lock)| lock.n).sum::<u64>();
        let section = LockSection {
            locks: locks.into_iter().take(LISTED).map(|(key, lock)| named.lock(key, lock)).collect(),
            unlisted,
            worst: self.sums.worst.iter().map(|(wait, explained)| named.wait(wait, explained)).collect(),
            inversions: self.sums.inversions,
            withheld: self.withheld,
            memory: self.memory,
            kernel_owners: self.kernel.owners,
            every: self.every.section(&|tid| named.thread(tid, Prio::UNKNOWN), text),
        };
        let is_there = !section.locks.is_empty() || section.withheld > 0 || section.every.is_some();
        is_there.then_some(section)
    }
}

struct Named<'a> {
    locks: &'a Locks,
    comm: &'a dyn Fn(i32) -> String,
    text: &'a dyn Fn(LabelId) -> String,
}

impl Named<'_> {
    fn thread(&self, tid: i32, prio: Prio) -> ThreadName {
        let prio = if prio.is_known() { prio } else { self.locks.past.log.prio_of(tid) };
        ThreadName { tid, comm: (self.comm)(tid), prio: prio.number() }
    }

    fn lock(&self, key: &Key, lock: &OfLock) -> Lock {
        let mut waiters: Vec<_> = lock.waiters.iter().collect();
        waiters.sort_by_key(|(tid, waiter)| (Reverse(waiter.total_ns), **tid));
        let mut holders: Vec<_> = lock.holders.iter().collect();
        holders.sort_by_key(|(tid, waits)| (Reverse(**waits), **tid));
        Lock {
            word: key.word,
            tgid: key.process,
            kind: lock.kind,
            name: lock.name.map(self.text),
            waited: lock.waited.summary(),
            known: lock.known,
            n: lock.n,
            waiters: waiters
                .into_iter()
                .map(|(tid, waiter)| Waiter {
                    thread: self.thread(*tid, Prio::UNKNOWN),
                    waited: waiter.waited.summary(),
                    first_ns: waiter.first_ns.unwrap_or_default(),
                    lasting: waiter.lasting,
                    inversions: waiter.inversions,
                })
                .collect(),
            holders: holders
                .into_iter()
                .map(|(tid, waits)| LockHolder { thread: self.thread(*tid, Prio::UNKNOWN), waits: *waits })
                .collect(),
        }
    }

    fn wait(&self, wait: &Waited, explained: &Explained) -> LockWait {
        LockWait {
            waiter: self.thread(wait.tid, wait.prio),
            word: wait.word,
            kind: wait.kind,
            name: wait.name.map(self.text),
            call: wait.call.map(str::to_owned),
            callers: wait.callers.map(self.text),
            t0_ns: wait.t0_ns,
            t1_ns: wait.t1_ns,
            end: wait.end,
            holders: wait
                .holders
                .iter()
                .map(|held| Holder {
                    thread: self.thread(held.tid, Prio::UNKNOWN),
                    t0_ns: held.t0_ns,
                    t1_ns: held.t1_ns,
                    evidence: held.evidence.clone(),
                })
                .collect(),
            unknown: wait.unknown.map(|unknown| self.why(unknown)),
            parts: explained.rows.iter().map(|(row, ns)| self.part(row, *ns)).collect(),
            course: explained.course.iter().map(|step| self.step(step)).collect(),
            inherited: wait.inherited,
            inversion_ns: explained.inversion_ns,
            circle: if wait.end == WaitEnd::Lasts { self.circle(wait) } else { Vec::new() },
        }
    }

    fn part(&self, row: &Row, ns: u64) -> Part {
        let holder = self.thread(row.holder, row.prio);
        let (through, inversion) = (row.through.clone(), row.inversion);
        Part { holder, through, doing: self.activity(row.doing), ns, inversion }
    }

    fn step(&self, step: &Did) -> Step {
        let Did { t0_ns, t1_ns, row } = step;
        let holder = self.thread(row.holder, row.prio);
        let (t0_ns, t1_ns, inversion) = (*t0_ns, *t1_ns, row.inversion);
        Step { t0_ns, t1_ns, holder, doing: self.activity(row.doing), inversion }
    }

    fn activity(&self, did: explain::Activity) -> Activity {
        match did {
            explain::Activity::Ran => Activity::Ran,
            explain::Activity::Preempted { by } => {
                Activity::Preempted { by: by.map(|(tid, prio)| self.thread(tid, prio)) }
            }
            explain::Activity::Slept { call } => Activity::Slept { call: call.map(str::to_owned) },
            explain::Activity::Unknown => Activity::Unknown,
        }
    }

    fn why(&self, unknown: Unknown) -> String {
        match unknown {
            Unknown::NotReleased => "its memory was not read, and nobody released it".to_owned(),
            Unknown::NotByRelease => "no watched thread that was releasing it woke the waiter".to_owned(),
            Unknown::Readers => "readers held it, and it names the last to come alone".to_owned(),
            Unknown::NotShown => "its memory was not read, or showed no owner".to_owned(),
            Unknown::Forgotten => "more locks were released while it lasted than are remembered".to_owned(),
            Unknown::Disagree { memory, released } => format!(
                "its memory named {}[{memory}], but {}[{released}] released it first",
                (self.comm)(memory),
                (self.comm)(released)
            ),
        }
    }

    /// Threads that wait for one another.
    fn circle(&self, wait: &Waited) -> Vec<ThreadName> {
        let mut tids = vec![wait.tid];
        let mut owner = wait.holders.last().map(|held| held.tid);
        while let Some(tid) = owner {
            if tid == wait.tid {
                return tids.into_iter().map(|tid| self.thread(tid, Prio::UNKNOWN)).collect();
            }
            if tids.contains(&tid) {
                break;
            }
            tids.push(tid);
            owner = self.locks.past.lasting(tid).and_then(|lasting| lasting.owner);
        }
        Vec::new()
    }
}
