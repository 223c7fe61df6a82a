//! What is remembered while somebody waits for a lock: who ran when, which calls were made, and
//! which waits have ended.

use super::log::Log;
use super::wait::LockWait;
use crate::labels::LabelId;
use model::syscalls::Syscall;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// The most ended waits and calls that are remembered.
const MOST: usize = 1 << 12;

/// A call that has ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) tid: i32,
    pub(super) name: &'static str,
    pub(super) t0_ns: i64,
    pub(super) t1_ns: i64,
}

/// A call that has not ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct InCall {
    pub(super) call: &'static Syscall,
    pub(super) t0_ns: i64,
    /// Its first argument: of a futex call the address of the word.
    pub(super) word: u64,
    /// Where in the program it was made.
    pub(super) callers: Option<LabelId>,
}

/// A wait that lasts, as others see it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lasting {
    pub(super) word: u64,
    pub(super) t0_ns: i64,
    /// The lock's owner, by memory or by inheritance.
    pub(super) owner: Option<i32>,
}

#[derive(Debug, Default)]
pub(super) struct Past {
    pub(super) log: Log,
    /// Waits that have ended.
    pub(super) closed: VecDeque<LockWait>,
    calls: VecDeque<Call>,
    in_call: FxHashMap<i32, InCall>,
    /// Waits that last, by thread.
    lasting: FxHashMap<i32, Lasting>,
}

impl Past {
    /// A thread begins a call.
    pub(super) fn enter(&mut self, tid: i32, call: InCall) {
        self.in_call.insert(tid, call);
    }

    /// A thread ends its call.
    pub(super) fn exit(&mut self, tid: i32, t1_ns: i64) {
        self.lasting.remove(&tid);
        if let Some(InCall { call, t0_ns, .. }) = self.in_call.remove(&tid) {
            push(&mut self.calls, Call { tid, name: call.name, t0_ns, t1_ns });
        }
    }

    /// Where in the program a thread's call was made.
    pub(super) fn came_from(&mut self, tid: i32, callers: LabelId) {
        if let Some(call) = self.in_call.get_mut(&tid) {
            call.callers.get_or_insert(callers);
        }
    }

    /// A thread sleeps in a wait for a lock.
    pub(super) fn sleeps(&mut self, tid: i32, wait: Lasting) {
        self.lasting.insert(tid, wait);
    }

    /// A wait has ended.
    pub(super) fn closed(&mut self, wait: LockWait) {
        push(&mut self.closed, wait);
    }

    /// The call that a thread is in.
    pub(super) fn in_call(&self, tid: i32) -> Option<&InCall> {
        self.in_call.get(&tid)
    }

    /// The wait for a lock that a thread is in.
    pub(super) fn lasting(&self, tid: i32) -> Option<Lasting> {
        self.lasting.get(&tid).copied()
    }

    /// The call that a task was in during this time.
    pub(super) fn call_of(&self, tid: i32, [t0_ns, t1_ns]: [i64; 2]) -> Option<&'static str> {
        let now = self.in_call.get(&tid).filter(|now| now.t0_ns <= t0_ns).map(|now| now.call.name);
        let during = |call: &&Call| call.tid == tid && call.t0_ns <= t0_ns && call.t1_ns >= t1_ns;
        self.calls.iter().rev().find(during).map(|call| call.name).or(now)
    }

    /// Keeps what a wait since `from_ns` can need; `None`: nothing.
    pub(super) fn keep_from(&mut self, from_ns: Option<i64>, now_ns: i64) {
        self.log.keep_from(from_ns, now_ns);
        let from_ns = from_ns.unwrap_or(i64::MAX);
        while self.closed.front().is_some_and(|one| one.t1_ns < from_ns) {
            self.closed.pop_front();
        }
        while self.calls.front().is_some_and(|one| one.t1_ns < from_ns) {
            self.calls.pop_front();
        }
    }

    /// Events are missing.
    pub(super) fn lost(&mut self, now_ns: i64) {
        self.log.lost(now_ns);
        self.closed.clear();
        self.calls.clear();
        self.in_call.clear();
        self.lasting.clear();
    }
}

fn push<T>(all: &mut VecDeque<T>, one: T) {
    if all.len() == MOST {
        all.pop_front();
    }
    all.push_back(one);
}
