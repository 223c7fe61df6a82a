//! What the holders of a lock did while somebody waited for it: each nanosecond of the wait goes to
//! one holder and one activity. Where a holder itself waited for a lock, the time goes to that
//! one's holder, and so on.
//!
//! Priority inversion without a bound: a thread less urgent than the waiter keeps the holder from
//! running (L. Sha, R. Rajkumar, J. Lehoczky, "Priority Inheritance Protocols", IEEE Transactions
//! on Computers 39(9), 1990, §I). Time in which the holder itself runs is bounded by its critical
//! section, and is none.

use super::log::{Doing, Runner};
use super::past::Past;
use super::wait::{Held, LockWait};
use crate::prio::Prio;
use rustc_hash::FxHashMap;

/// The longest chain of locks that is followed.
const DEEPEST: usize = 8;
/// The most steps that are kept in the order of time.
const STEPS: usize = 64;

/// What a holder did, without times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Activity {
    Ran,
    Preempted { by: Option<(i32, Prio)> },
    Slept { call: Option<&'static str> },
    Unknown,
}

/// A row of the answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Row {
    /// The holder, and its priority while it waited for a CPU.
    pub(super) holder: i32,
    pub(super) prio: Prio,
    /// The further locks on the way to it.
    pub(super) through: Vec<u64>,
    pub(super) doing: Activity,
    pub(super) inversion: bool,
}

/// Where the time of a wait went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Explained {
    /// Longest first.
    pub(super) rows: Vec<(Row, u64)>,
    /// The same in the order of time, as far as there is room.
    pub(super) course: Vec<Step>,
    pub(super) inversion_ns: u64,
}

/// A row's part of the time at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) t0_ns: i64,
    pub(super) t1_ns: i64,
    pub(super) row: Row,
}

/// Takes a wait apart.
pub(super) fn explain(past: &Past, wait: &LockWait) -> Explained {
    let mut explainer = Explainer { past, waiter: wait, sums: FxHashMap::default(), course: Vec::new() };
    for held in &wait.holders {
        explainer.holder(held, &mut Vec::new());
    }
    let Explainer { sums, course, .. } = explainer;
    let mut rows: Vec<(Row, u64)> = sums.into_iter().collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let inversion_ns = rows.iter().filter(|(row, _)| row.inversion).map(|(_, ns)| ns).sum();
    Explained { rows, course, inversion_ns }
}

struct Explainer<'a> {
    past: &'a Past,
    waiter: &'a LockWait,
    sums: FxHashMap<Row, u64>,
    course: Vec<Step>,
}

impl Explainer<'_> {
    fn holder(&mut self, held: &Held, through: &mut Vec<u64>) {
        let Held { tid, t0_ns, t1_ns, .. } = *held;
        for stretch in self.past.log.of_task(tid, t0_ns, t1_ns) {
            let time = [stretch.t0_ns, stretch.t1_ns];
            match stretch.doing {
                Doing::Ran => self.add(tid, through, Activity::Ran, time),
                Doing::Waited { by, prio } => self.preempted(tid, prio, through, by, time),
                Doing::Slept => self.slept(tid, time, through),
                Doing::Unknown => self.add(tid, through, Activity::Unknown, time),
            }
        }
    }

    fn add(&mut self, holder: i32, through: &[u64], doing: Activity, time: [i64; 2]) {
        let prio = Prio::UNKNOWN;
        self.row(Row { holder, prio, through: through.to_vec(), doing, inversion: false }, time);
    }

    fn row(&mut self, row: Row, [t0_ns, t1_ns]: [i64; 2]) {
        *self.sums.entry(row.clone()).or_default() += t1_ns.abs_diff(t0_ns);
        let has_room = self.course.len() < STEPS;
        match self.course.last_mut() {
            Some(last) if last.row == row && last.t1_ns == t0_ns => last.t1_ns = t1_ns,
            _ if has_room => self.course.push(Step { t0_ns, t1_ns, row }),
            _ => {}
        }
    }

    fn preempted(&mut self, holder: i32, prio: Prio, through: &[u64], by: Option<Runner>, time: [i64; 2]) {
        let waiter = self.waiter.prio;
        // A CPU that idles, or runs whom the holder is about to replace, only takes its time to switch.
        let inversion = by.is_some_and(|by| {
            let less_urgent =
                waiter.is_known() && !waiter.is_fair() && by.prio.is_known() && by.prio > waiter;
            by.tid != 0 && by.tid != self.waiter.tid && less_urgent && by.prio.may_delay(prio)
        });
        let doing = Activity::Preempted { by: by.map(|by| (by.tid, by.prio)) };
        self.row(Row { holder, prio, through: through.to_vec(), doing, inversion }, time);
    }

    /// It slept: where that was in a wait for a lock, its holders answer for the time.
    fn slept(&mut self, tid: i32, [from_ns, t1_ns]: [i64; 2], through: &mut Vec<u64>) {
        let past = self.past;
        let is_deep = through.len() >= DEEPEST;
        let waits = past.closed.iter().filter(|wait| {
            let overlaps = wait.t0_ns < t1_ns && wait.t1_ns > from_ns;
            wait.tid == tid && overlaps && !wait.holders.is_empty() && !is_deep
        });
        let mut t0_ns = from_ns;
        for wait in waits {
            self.asleep(tid, [t0_ns, wait.t0_ns.min(t1_ns)], through);
            through.push(wait.word);
            for held in &wait.holders {
                let (from_ns, until_ns) = (held.t0_ns.max(t0_ns), held.t1_ns.min(t1_ns));
                if from_ns < until_ns {
                    let part = Held { t0_ns: from_ns, t1_ns: until_ns, tid: held.tid, evidence: Vec::new() };
                    self.holder(&part, through);
                }
            }
            through.pop();
            t0_ns = wait.t1_ns.clamp(t0_ns, t1_ns);
        }
        if let (Some(lasting), false) = (past.lasting(tid), is_deep)
            && let Some(owner) = lasting.owner
            && lasting.t0_ns < t1_ns
            && !through.contains(&lasting.word)
            && lasting.word != self.waiter.word
        {
            self.asleep(tid, [t0_ns, lasting.t0_ns], through);
            through.push(lasting.word);
            let t0_ns = lasting.t0_ns.max(t0_ns);
            self.holder(&Held { tid: owner, t0_ns, t1_ns, evidence: Vec::new() }, through);
            through.pop();
            return;
        }
        self.asleep(tid, [t0_ns, t1_ns], through);
    }

    fn asleep(&mut self, tid: i32, [t0_ns, t1_ns]: [i64; 2], through: &[u64]) {
        if t1_ns > t0_ns {
            let call = self.past.call_of(tid, [t0_ns, t1_ns]);
            self.add(tid, through, Activity::Slept { call }, [t0_ns, t1_ns]);
        }
    }
}
