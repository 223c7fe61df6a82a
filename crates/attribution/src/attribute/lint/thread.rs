//! One thread: what it did since its last wait, and what of that was in its loop.

use super::rules::Rule;
use crate::labels::LabelId;
use crate::prio::Prio;
use model::syscalls::Wait;
use rustc_hash::FxHashMap;

/// The most kinds of findings in one thread, and those since its last wait.
const MOST: usize = 256;

/// What was found of one kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Count {
    pub(super) n: u64,
    pub(super) first_ns: i64,
    /// Where in the program, the first time that this is known.
    pub(super) callers: Option<LabelId>,
    /// Of page faults: those in which it slept.
    pub(super) slept: Slept,
}

/// Page faults in which a thread slept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Slept {
    pub(super) n: u64,
    pub(super) longest_ns: i64,
}

/// Something that it did since its last wait.
#[derive(Debug)]
struct Did {
    found: Found,
    ts_ns: i64,
    callers: Option<LabelId>,
    /// How long it slept in it, if at all.
    slept_ns: Option<i64>,
}

/// What is found: a rule, and what exactly.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Found {
    pub(super) rule: Rule,
    pub(super) detail: String,
}

#[derive(Debug, Default)]
pub(super) struct ThreadLint {
    /// As the scheduler saw it last.
    prio: Option<Prio>,
    /// The most urgent of these, when it inherited none.
    pub(super) realtime: Option<Prio>,
    /// When it first waited, under whatever policy.
    pub(super) first_wait_ns: Option<i64>,
    /// Whether it has waited since it became real-time.
    has_waited: bool,
    /// Whether it has the priority of one that waits for its lock.
    pub(super) inherits: bool,
    /// Whether it was there before the recording.
    was_there: bool,
    /// Whether it has waited at all.
    has_slept: bool,
    /// What it waits for in the call that it is in, if threads wait there.
    pub(super) in_wait: Option<Wait>,
    pending: Vec<Did>,
    /// Whether the last of these is also the thread's last event.
    is_last: bool,
    /// Whether the last event is the begin of a call, and where in the program that call is.
    at_call: bool,
    called_from: Option<LabelId>,
    /// Whether it is in a page fault, the last of these.
    in_fault: bool,
    /// Since when it sleeps in that.
    asleep_ns: Option<i64>,
    pub(super) found: FxHashMap<Found, Count>,
}

impl ThreadLint {
    /// A thread that was there before: in a call in which threads wait, or in none.
    pub(super) fn new(in_wait: Option<Wait>) -> Self {
        Self { in_wait, has_slept: true, was_there: true, ..Self::default() }
    }

    /// Whether the recording saw it begin.
    pub(super) fn is_new(&self) -> bool {
        !self.was_there
    }

    /// Whether what it does is part of a real-time loop.
    pub(super) fn in_loop(&self) -> bool {
        self.has_waited && self.prio.is_some_and(is_realtime)
    }

    /// Its priority where it waits in its loop, in a call in which threads wait.
    pub(super) fn waits_as(&self) -> Option<Prio> {
        self.prio.filter(|_| self.in_loop() && self.in_wait.is_some())
    }

    /// It did something.
    pub(super) fn did(&mut self, rule: Rule, detail: impl FnOnce() -> String, ts_ns: i64) {
        self.is_last = self.in_loop() && self.pending.len() < MOST;
        self.in_fault = false;
        if self.is_last {
            let found = Found { rule, detail: detail() };
            self.pending.push(Did { found, ts_ns, callers: None, slept_ns: None });
        }
    }

    /// It begins a call.
    pub(super) fn calls(&mut self) {
        self.did_other();
        (self.at_call, self.called_from) = (true, None);
    }

    /// What it waits for in its call is ended by somebody who should not.
    pub(super) fn is_woken(&mut self, rule: Rule, detail: impl FnOnce() -> String, ts_ns: i64) {
        self.did(rule, detail, ts_ns);
        let last = self.pending.last_mut().filter(|_| self.is_last);
        last.into_iter().for_each(|did| did.callers = self.called_from);
        self.is_last = false;
    }

    /// It uses a page that is not there.
    pub(super) fn faults(&mut self, address: u64, ts_ns: i64) {
        self.did(Rule::PageFault, || format!("at {:#x}", address & !0xfff), ts_ns);
        self.in_fault = self.is_last;
    }

    /// It did something that is no mistake.
    pub(super) fn did_other(&mut self) {
        (self.is_last, self.in_fault, self.at_call) = (false, false, false);
    }

    /// Nothing will show where in the program its last event was.
    pub(super) fn stays_unplaced(&mut self) {
        self.is_last = false;
    }

    /// Where in the program its last event was.
    pub(super) fn came_from(&mut self, callers: LabelId) {
        let last = self.pending.last_mut().filter(|_| self.is_last);
        last.into_iter().for_each(|did| did.callers = Some(callers));
        if self.at_call {
            self.called_from = Some(callers);
        }
        (self.is_last, self.at_call) = (false, false);
    }

    /// The scheduler shows its priority as it leaves a CPU; `sleeps`: to wait.
    pub(super) fn leaves(&mut self, prio: Prio, sleeps: bool, ts_ns: i64) {
        if !prio.is_known() || (self.inherits && !sleeps) {
            return;
        }
        self.prio = Some(prio);
        if is_realtime(prio) && !self.inherits {
            self.realtime = Some(self.realtime.map_or(prio, |before| before.min(prio)));
        }
        if !sleeps {
            return;
        }
        if self.in_fault {
            self.asleep_ns = Some(ts_ns);
        }
        self.first_wait_ns.get_or_insert(ts_ns);
        // It also sleeps for a page, for a file, or for a lock of the kernel at its end; and the C
        // library holds a new thread back by a futex until its creator has set it up.
        if let Some(wait) = self.in_wait {
            let is_start = wait == Wait::Futex && !self.has_slept;
            self.has_slept = true;
            if !is_start {
                self.waits();
            }
        }
    }

    /// It has the CPU again.
    pub(super) fn runs(&mut self, ts_ns: i64) {
        let Some(since_ns) = self.asleep_ns.take() else { return };
        let last = self.pending.last_mut().filter(|_| self.in_fault);
        last.into_iter().for_each(|did| *did.slept_ns.get_or_insert(0) += ts_ns - since_ns);
    }

    /// Its call returns. Who is too late does not sleep in it: its turn ends all the same.
    pub(super) fn returns(&mut self) {
        if let Some(Wait::Sleep | Wait::Poll) = self.in_wait.take() {
            self.waits();
        }
    }

    /// It gives itself a policy, though it could have had it from the beginning.
    pub(super) fn sets_policy(&mut self, ts_ns: i64) {
        if !self.prio.is_some_and(is_realtime) {
            let found = Found { rule: Rule::BornOther, detail: String::new() };
            let count = Count { n: 1, first_ns: ts_ns, callers: None, slept: Slept::default() };
            self.found.insert(found, count);
        }
        // The scheduler's next event shows what it has become.
        self.prio = None;
    }

    /// It begins another program: what was before is not that one's.
    pub(super) fn executes(&mut self) {
        *self = Self { prio: self.prio, realtime: self.realtime, ..Self::default() };
    }

    /// Whether it ran as a real-time thread without a turn of its own, so that its loop is not known.
    pub(super) fn has_no_loop(&self) -> bool {
        self.realtime.is_some() && !self.has_waited
    }

    /// It has ended: what it did since its last wait was no part of its loop.
    pub(super) fn ended(&mut self) {
        self.pending.clear();
    }

    /// It waits: what it did since the last time was in its loop.
    pub(super) fn waits(&mut self) {
        for Did { found, ts_ns, callers, slept_ns } in self.pending.drain(..) {
            if self.found.len() < MOST || self.found.contains_key(&found) {
                let new = Count { n: 0, first_ns: ts_ns, callers, slept: Slept::default() };
                let count = self.found.entry(found).or_insert(new);
                count.n += 1;
                count.callers = count.callers.or(callers);
                count.slept.n += u64::from(slept_ns.is_some());
                count.slept.longest_ns = count.slept.longest_ns.max(slept_ns.unwrap_or(0));
            }
        }
        (self.in_fault, self.asleep_ns) = (false, None);
        self.has_waited = self.prio.is_some_and(is_realtime);
    }
}

/// Under SCHED_FIFO, SCHED_RR or SCHED_DEADLINE.
fn is_realtime(prio: Prio) -> bool {
    prio.realtime().is_some() || prio == Prio::DEADLINE
}
