//! Who ran where, and who waited for a CPU, since the first of the waits that have not ended: what
//! lock holders did is asked only when a wait ends.

use crate::attribute::watch::event::Leaves;
use crate::by_cpu::ByCpu;
use crate::by_task::ByTask;
use crate::prio::Prio;
use std::collections::VecDeque;

/// The most entries; older ones are forgotten, and what they would have shown is unknown.
const MOST: usize = 1 << 16;

/// An entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) ts_ns: i64,
    pub(super) change: Change,
}

/// What changed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    Switch {
        cpu: u32,
        prev: Runner,
        leaves: Leaves,
        next: Runner,
    },
    /// A sleeping task becomes runnable.
    Woken {
        tid: i32,
    },
}

/// A task on a CPU, with its effective priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Runner {
    pub(super) tid: i32,
    pub(super) prio: Prio,
}

/// What a task did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    Ran,
    /// It was runnable, and this one had the CPU; `None`: not known.
    Waited {
        by: Option<Runner>,
        prio: Prio,
    },
    Slept,
    Unknown,
}

/// A stretch of a task's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) t0_ns: i64,
    pub(super) t1_ns: i64,
    pub(super) doing: Doing,
}

#[derive(Debug, Default)]
pub(super) struct Log {
    entries: VecDeque<Entry>,
    /// Everything from here on is there; `None`: nothing is wanted.
    since_ns: Option<i64>,
    running: ByCpu<Runner>,
    /// The last known state of each task.
    states: ByTask<Option<State>>,
    /// The priority of each task when it last went to sleep, when it inherits none.
    prios: ByTask<Option<Prio>>,
}

/// A task's state between two of its changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    /// Since it left or was woken; the CPU that it left, and its priority then.
    Runnable {
        cpu: Option<u32>,
        prio: Prio,
    },
    Asleep,
}

impl State {
    /// Of a task that leaves a CPU.
    fn after(leaves: Leaves, cpu: u32, prio: Prio) -> Self {
        match leaves {
            Leaves::Runnable => Self::Runnable { cpu: Some(cpu), prio },
            Leaves::Sleeps | Leaves::Blocks | Leaves::Ended => Self::Asleep,
        }
    }

    /// The state that one change left and the next one found; `None` if a change between them is
    /// missing.
    fn agreed(self, found: Self) -> Option<Self> {
        match (self, found) {
            (Self::Runnable { cpu, prio }, Self::Runnable { prio: found, .. }) => {
                Some(Self::Runnable { cpu, prio: if prio.is_known() { prio } else { found } })
            }
            _ => (self == found).then_some(self),
        }
    }
}

impl Log {
    /// Keeps everything from `ts_ns` on; `None`: nothing.
    pub(super) fn keep_from(&mut self, ts_ns: Option<i64>, now_ns: i64) {
        match (ts_ns, self.since_ns) {
            (None, _) => {
                self.entries.clear();
                self.since_ns = None;
            }
            (Some(_), None) => self.since_ns = Some(now_ns),
            (Some(ts_ns), Some(since_ns)) if ts_ns > since_ns => {
                self.since_ns = Some(ts_ns);
                while self.entries.front().is_some_and(|entry| entry.ts_ns < ts_ns) {
                    self.entries.pop_front();
                }
            }
            _ => {}
        }
    }

    /// Takes a change.
    pub(super) fn add(&mut self, ts_ns: i64, change: Change) {
        match change {
            Change::Switch { cpu, prev, leaves, next } => {
                self.running.insert(cpu, next);
                *self.states.entry(prev.tid) = Some(State::after(leaves, cpu, prev.prio));
                let prio = self.prios.entry(prev.tid);
                if prev.prio.is_known() && (prio.is_none() || leaves.waits()) {
                    *prio = Some(prev.prio);
                }
                *self.states.entry(next.tid) = Some(State::Running);
            }
            Change::Woken { tid } => {
                let state = self.states.entry(tid);
                if *state != Some(State::Running) {
                    *state = Some(State::Runnable { cpu: None, prio: Prio::UNKNOWN });
                }
            }
        }
        if self.since_ns.is_none() {
            return;
        }
        if self.entries.len() == MOST {
            self.entries.pop_front();
            self.since_ns = self.entries.front().map(|entry| entry.ts_ns);
        }
        self.entries.push_back(Entry { ts_ns, change });
    }

    /// Forgets everything: events are missing.
    pub(super) fn lost(&mut self, ts_ns: i64) {
        self.entries.clear();
        self.running.clear();
        self.states = ByTask::default();
        self.since_ns = self.since_ns.map(|_| ts_ns);
    }

    /// A task's priority when it inherits none, as far as it is known.
    pub(super) fn prio_of(&self, tid: i32) -> Prio {
        self.prios.get(tid).copied().flatten().unwrap_or(Prio::UNKNOWN)
    }

    /// The entries from `from_ns` on.
    fn entries_from(&self, from_ns: i64) -> impl Iterator<Item = &Entry> {
        let at = self.entries.partition_point(|entry| entry.ts_ns < from_ns);
        self.entries.range(at..)
    }

    /// What a task did from `t0_ns` to `t1_ns`, without gaps.
    pub(super) fn of_task(&self, tid: i32, t0_ns: i64, t1_ns: i64) -> Vec<Stretch> {
        let mut stretches = Vec::new();
        let mut add = |stretch: Stretch| {
            if stretch.t1_ns > stretch.t0_ns {
                stretches.push(stretch);
            }
        };
        let Some(since_ns) = self.since_ns else {
            return vec![Stretch { t0_ns, t1_ns, doing: Doing::Unknown }];
        };
        let mut at_ns = t0_ns.max(since_ns.min(t1_ns));
        add(Stretch { t0_ns, t1_ns: at_ns, doing: Doing::Unknown });
        let mut state: Option<State> = None;
        for entry in self.entries_from(at_ns) {
            let Some((before, after, cpu)) = seen(entry, tid) else { continue };
            let until_ns = entry.ts_ns.min(t1_ns);
            match state.map_or(Some(before), |state| state.agreed(before)) {
                Some(state) => self.stretch(state, [at_ns, until_ns], cpu, &mut add),
                None => add(Stretch { t0_ns: at_ns, t1_ns: until_ns, doing: Doing::Unknown }),
            }
            (at_ns, state) = (until_ns, Some(after));
            if entry.ts_ns >= t1_ns {
                break;
            }
        }
        if at_ns < t1_ns {
            // Nothing has changed since.
            match state.or(self.states.get(tid).copied().flatten()) {
                Some(state) => self.stretch(state, [at_ns, t1_ns], None, &mut add),
                None => add(Stretch { t0_ns: at_ns, t1_ns, doing: Doing::Unknown }),
            }
        }
        stretches
    }

    /// `came`: the CPU on which it then ran.
    fn stretch(
        &self,
        state: State,
        [t0_ns, t1_ns]: [i64; 2],
        came: Option<u32>,
        add: &mut impl FnMut(Stretch),
    ) {
        match state {
            State::Running => add(Stretch { t0_ns, t1_ns, doing: Doing::Ran }),
            State::Asleep => add(Stretch { t0_ns, t1_ns, doing: Doing::Slept }),
            State::Runnable { cpu: left, prio } => match (left, came) {
                // It moved to another CPU at some time in between.
                (Some(left), Some(came)) if left != came => {
                    add(Stretch { t0_ns, t1_ns, doing: Doing::Waited { by: None, prio } });
                }
                (_, Some(cpu)) | (Some(cpu), None) => self.on_cpu(cpu, prio, [t0_ns, t1_ns], add),
                (None, None) => add(Stretch { t0_ns, t1_ns, doing: Doing::Waited { by: None, prio } }),
            },
        }
    }

    /// Who had a CPU while somebody waited for it. Some kernels leave switches out of the trace: then
    /// who leaves is not who came, and between the two it is not known.
    fn on_cpu(&self, cpu: u32, prio: Prio, [t0_ns, t1_ns]: [i64; 2], add: &mut impl FnMut(Stretch)) {
        let start = self.entries.partition_point(|entry| entry.ts_ns <= t0_ns);
        let switch = |entry: &Entry| match entry.change {
            Change::Switch { cpu: here, prev, next, .. } if here == cpu => Some((entry.ts_ns, prev, next)),
            _ => None,
        };
        let mut came = self.entries.range(..start).rev().find_map(switch).map(|(_, _, next)| next.tid);
        let mut at_ns = t0_ns;
        for (ts_ns, prev, next) in self.entries.range(start..).filter_map(switch) {
            let by = came.is_none_or(|tid| tid == prev.tid).then_some(prev);
            let until_ns = ts_ns.min(t1_ns);
            add(Stretch { t0_ns: at_ns, t1_ns: until_ns, doing: Doing::Waited { by, prio } });
            (at_ns, came) = (until_ns, Some(next.tid));
            if ts_ns >= t1_ns {
                return;
            }
        }
        let by = self.running.get(cpu).copied();
        add(Stretch { t0_ns: at_ns, t1_ns, doing: Doing::Waited { by, prio } });
    }
}

/// What an entry shows of a task: its state before and after, and the CPU on which it runs next.
fn seen(entry: &Entry, tid: i32) -> Option<(State, State, Option<u32>)> {
    match entry.change {
        Change::Switch { cpu, prev, leaves, .. } if prev.tid == tid => {
            Some((State::Running, State::after(leaves, cpu, prev.prio), None))
        }
        Change::Switch { cpu, next, .. } if next.tid == tid => {
            Some((State::Runnable { cpu: Some(cpu), prio: next.prio }, State::Running, Some(cpu)))
        }
        Change::Woken { tid: woken } if woken == tid => {
            Some((State::Asleep, State::Runnable { cpu: None, prio: Prio::UNKNOWN }, None))
        }
        _ => None,
    }
}
