//! The bounds held against every job of a trace: the same that the model is of, or a later one. A
//! job that took longer than its bound refutes the model, and is shown with what it did. [`live`]
//! does the same while the program runs.

pub mod live;

use super::choose::choose_as;
use super::shape::TaskModel;
use super::verdict::{Bound, Guarantee};
use attribution::Error;
use attribution::jobs::kind::Kind;
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
    let (matches, unmatched) = matches(jobs, model, guarantee);
    let mut separators = BTreeMap::new();
    let mut rows = BTreeMap::new();
    for (tid, Match { bound, kind }) in matches {
        separators.insert(tid, kind);
        rows.insert(tid, Row::new(tid, bound, model, guarantee));
    }
    let mut longest = Longest::default();
    let mut order = 0;
    let names = source.each_job(&separators, |job| {
        order += 1;
        let Some(row) = rows.get_mut(&job.tid) else { return };
        row.add(job).into_iter().for_each(|refutation| longest.add(Beyond::new(refutation, job, order)));
    })?;
    let threads: Vec<CheckedThread> = rows.into_values().map(|row| row.thread).collect();
    let refuted = threads.iter().map(|thread| thread.refuted).sum();
    Ok(Checked { threads, refuting: longest.named(|kept| names.kept(kept)), refuted, unmatched })
}

/// What a thread of a trace is held against.
#[derive(Debug, Clone, Copy)]
struct Match<'g> {
    bound: &'g Bound,
    /// The kind of sleep that separates its jobs.
    kind: Kind,
}

/// By thread number: what each thread is held against; and the bounds that nobody is.
fn matches<'g>(
    jobs: &ProgramJobs,
    model: &TaskModel,
    guarantee: &'g Guarantee,
) -> (BTreeMap<i32, Match<'g>>, Vec<String>) {
    let (mut matches, mut unmatched) = (BTreeMap::new(), Vec::new());
    for bound in &guarantee.bounds {
        let mut not = |why: &str| unmatched.push(format!("{}: {why}", bound.comm));
        if bound.bound_ns.is_none() {
            not("it has no bound");
            continue;
        }
        let named: Vec<_> = jobs.threads.iter().filter(|one| one.comm == bound.comm).collect();
        let same = named.iter().find(|one| one.tid == bound.pid);
        let only = if let [only] = named.as_slice() { Some(only) } else { None };
        let Some(thread) = same.or(only) else {
            not("no thread, or several, of this name have jobs");
            continue;
        };
        let of = model.threads.iter().find(|one| one.pid == bound.pid);
        match choose_as(thread, of.and_then(|one| one.waits_in.as_deref())) {
            Ok(at) => {
                matches.insert(thread.tid, Match { bound, kind: thread.kinds[at].kind });
            }
            Err(why) => not(&why),
        }
    }
    (matches, unmatched)
}

/// A thread while its jobs stream by.
#[derive(Debug, Clone)]
struct Row {
    thread: CheckedThread,
    /// The longest that the model knows, with the margin, ns.
    cost_ns: u64,
    suspension_ns: u64,
    last_ns: Option<i64>,
}

impl Row {
    fn new(tid: i32, bound: &Bound, model: &TaskModel, guarantee: &Guarantee) -> Self {
        let of = model.threads.iter().find(|one| one.pid == bound.pid);
        let more = |ns: u64| guarantee.assumed.more(ns);
        Self {
            thread: CheckedThread {
                pid: tid,
                comm: bound.comm.clone(),
                bound_ns: bound.bound_ns.unwrap_or(u64::MAX),
                jobs: 0,
                refuted: 0,
                longest_ns: 0,
            },
            cost_ns: of.map_or(0, |model| more(model.cost.most_ns())),
            suspension_ns: of.map_or(0, |model| more(model.suspension.total_ns)),
            last_ns: None,
        }
    }

    /// Takes the next job; returns it if it took longer than its bound.
    fn add(&mut self, job: &ObservedJob) -> Option<Refutation> {
        let after_ns = self.last_ns.map(|last_ns| job.release_ns.saturating_sub(last_ns));
        self.last_ns = Some(job.release_ns);
        self.thread.jobs += 1;
        self.thread.longest_ns = self.thread.longest_ns.max(job.response_ns);
        if job.response_ns <= self.thread.bound_ns {
            return None;
        }
        self.thread.refuted += 1;
        Some(Refutation {
            pid: self.thread.pid,
            comm: self.thread.comm.clone(),
            release_ns: job.release_ns,
            response_ns: job.response_ns,
            bound_ns: self.thread.bound_ns,
            executed_ns: job.executed_ns,
            cost_ns: self.cost_ns,
            suspended_ns: job.suspended_ns,
            suspension_ns: self.suspension_ns,
            dispatch_ns: job.dispatch_ns,
            kept: None,
            after_ns,
        })
    }
}

/// A refuting job, its place among all jobs, and who kept the CPU, by number.
#[derive(Debug, Clone)]
struct Beyond {
    refutation: Refutation,
    kept: Option<(i32, u64)>,
    order: u64,
}

impl Beyond {
    fn new(refutation: Refutation, job: &ObservedJob, order: u64) -> Self {
        Self { refutation, kept: job.kept, order }
    }

    fn named(&self, name: impl Fn((i32, u64)) -> Kept) -> Refutation {
        Refutation { kept: self.kept.map(name), ..self.refutation.clone() }
    }
}

/// The jobs that went farthest beyond their bounds.
#[derive(Debug, Clone, Default)]
struct Longest(Vec<Beyond>);

impl Longest {
    fn add(&mut self, one: Beyond) {
        self.0.push(one);
        let beyond = |one: &Refutation| one.response_ns - one.bound_ns;
        self.0.sort_by_key(|one| (Reverse(beyond(&one.refutation)), one.order));
        self.0.truncate(MOST_SHOWN);
    }

    fn named(&self, name: impl Fn((i32, u64)) -> Kept) -> Vec<Refutation> {
        self.0.iter().map(|one| one.named(&name)).collect()
    }
}
