//! The bounds held against every job of a trace: the same that the model is of, or a later one. A
//! job that took longer than its bound refutes the model, and is shown with what it did.

use super::choose::choose_as;
use super::shape::{TaskModel, ThreadModel};
use super::verdict::Guarantee;
use attribution::Error;
use attribution::jobs::read::Source;
use attribution::jobs::shape::{Kept, ObservedJob, ProgramJobs};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Jobs that are shown.
const MOST_SHOWN: usize = 5;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// The threads, in the order of the guarantee.
    pub threads: Vec<CheckedThread>,
    /// Jobs that took longer than their bound, the longest beyond it first.
    pub refuting: Vec<Refutation>,
    /// How many there were.
    pub refuted: u64,
    /// Threads of which no job was compared: name and reason.
    pub unmatched: Vec<String>,
}

impl Checked {
    /// All jobs that were compared with their bound.
    pub fn jobs(&self) -> u64 {
        self.threads.iter().map(|thread| thread.jobs).sum()
    }
}

/// One thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedThread {
    /// Its number in the trace.
    pub pid: i32,
    /// Its name.
    pub comm: String,
    /// Its bound, ns.
    pub bound_ns: u64,
    /// Jobs compared with it.
    pub jobs: u64,
    /// Of these, those that took longer.
    pub refuted: u64,
    /// The longest response, ns.
    pub longest_ns: u64,
}

/// A job that took longer than its bound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refutation {
    /// Its thread.
    pub pid: i32,
    /// That one's name.
    pub comm: String,
    /// When it was released, ns of the trace's clock.
    pub release_ns: i64,
    /// From there to its end, ns.
    pub response_ns: u64,
    /// The bound, ns.
    pub bound_ns: u64,
    /// How long it executed, ns.
    pub executed_ns: u64,
    /// The longest that the model knows, its margin included, ns.
    pub cost_ns: u64,
    /// How long it slept, ns.
    pub suspended_ns: u64,
    /// The longest that the model knows, its margin included, ns.
    pub suspension_ns: u64,
    /// The longest from a wake-up to the switch to it, tasks at least as urgent not counted, ns.
    #[serde(default)]
    pub dispatch_ns: u64,
    /// The less urgent task that kept the CPU meanwhile.
    #[serde(default)]
    pub kept: Option<Kept>,
    /// From the release of the job before, ns.
    pub after_ns: Option<i64>,
}

impl Refutation {
    /// What of the model the job contradicts by itself, in words; `None` where neither its cost nor
    /// its suspension does.
    pub fn contradicts(&self) -> Option<&'static str> {
        match (self.executed_ns > self.cost_ns, self.suspended_ns > self.suspension_ns) {
            (true, true) => Some("it executed and slept longer than the model says"),
            (true, false) => Some("it executed longer than the model says"),
            (false, true) => Some("it slept longer than the model says"),
            (false, false) => None,
        }
    }
}

/// Compares every job of a trace with its bound. Threads are found by number where that has the
/// name, else by name. Their jobs are separated by what separates them in the model.
pub fn check(
    source: &Source,
    jobs: &ProgramJobs,
    model: &TaskModel,
    guarantee: &Guarantee,
) -> Result<Checked, Error> {
    let mut unmatched = Vec::new();
    let (mut separators, mut rows) = (BTreeMap::new(), BTreeMap::new());
    for bound in &guarantee.bounds {
        let mut not = |why: &str| unmatched.push(format!("{}: {why}", bound.comm));
        let Some(bound_ns) = bound.bound_ns else {
            not("it has no bound");
            continue;
        };
        let named: Vec<_> = jobs.threads.iter().filter(|one| one.comm == bound.comm).collect();
        let same = named.iter().find(|one| one.tid == bound.pid);
        let only = if let [only] = named.as_slice() { Some(only) } else { None };
        let Some(thread) = same.or(only) else {
            not("no thread, or several, of this name have jobs");
            continue;
        };
        let of = model.threads.iter().find(|one| one.pid == bound.pid);
        let at = match choose_as(thread, of.and_then(|one| one.waits_in.as_deref())) {
            Ok(at) => at,
            Err(why) => {
                not(&why);
                continue;
            }
        };
        separators.insert(thread.tid, thread.kinds[at].kind);
        rows.insert(
            thread.tid,
            Row {
                thread: CheckedThread {
                    pid: thread.tid,
                    comm: bound.comm.clone(),
                    bound_ns,
                    jobs: 0,
                    refuted: 0,
                    longest_ns: 0,
                },
                model: of,
                last_ns: None,
            },
        );
    }
    let (mut refuting, mut refuted) = (Vec::new(), 0);
    let names = source.each_job(&separators, |job| {
        let Some(row) = rows.get_mut(&job.tid) else { return };
        if let Some(one) = row.add(job, guarantee) {
            refuted += 1;
            refuting.push((one, job.kept));
            refuting.sort_by_key(|(one, _): &(Refutation, _)| Reverse(one.response_ns - one.bound_ns));
            refuting.truncate(MOST_SHOWN);
        }
    })?;
    let named =
        |(one, kept): (Refutation, Option<_>)| Refutation { kept: kept.map(|kept| names.kept(kept)), ..one };
    let refuting = refuting.into_iter().map(named).collect();
    Ok(Checked { threads: rows.into_values().map(|row| row.thread).collect(), refuting, refuted, unmatched })
}

struct Row<'a> {
    thread: CheckedThread,
    model: Option<&'a ThreadModel>,
    last_ns: Option<i64>,
}

impl Row<'_> {
    fn add(&mut self, job: &ObservedJob, guarantee: &Guarantee) -> Option<Refutation> {
        let after_ns = self.last_ns.map(|last_ns| job.release_ns.saturating_sub(last_ns));
        self.last_ns = Some(job.release_ns);
        self.thread.jobs += 1;
        self.thread.longest_ns = self.thread.longest_ns.max(job.response_ns);
        if job.response_ns <= self.thread.bound_ns {
            return None;
        }
        self.thread.refuted += 1;
        let more = |ns: u64| guarantee.assumed.more(ns);
        Some(Refutation {
            pid: self.thread.pid,
            comm: self.thread.comm.clone(),
            release_ns: job.release_ns,
            response_ns: job.response_ns,
            bound_ns: self.thread.bound_ns,
            executed_ns: job.executed_ns,
            cost_ns: self.model.map_or(0, |model| more(model.cost.most_ns())),
            suspended_ns: job.suspended_ns,
            suspension_ns: self.model.map_or(0, |model| more(model.suspension.total_ns)),
            dispatch_ns: job.dispatch_ns,
            kept: None,
            after_ns,
        })
    }
}
