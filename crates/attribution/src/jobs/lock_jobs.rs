//! The jobs of one thread that locks: how often each requests which lock, how long it waits for
//! locks and how long it suspends itself beside.

use super::follow::Activation;
use super::kind::Kind;
use super::lock_shape::{JobWait, LockingThread};
use std::collections::BTreeMap;

/// Jobs that waited that are kept.
const MOST: usize = 16;

/// The requests of a job, by lock.
pub(super) type Requests = BTreeMap<usize, u64>;

/// A job that has not ended.
#[derive(Debug)]
struct Job {
    requests: Requests,
    suspended_ns: u64,
    suspensions: u64,
    waits: u64,
    wait: JobWait,
}

/// What came of an activation.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// The requests of the job that ended before it.
    pub(super) requests: Option<Requests>,
    /// Whether it waited for a lock before, on a CPU that nobody else had.
    pub(super) waited_alone: bool,
}

/// The jobs while they stream by.
#[derive(Debug, Default)]
pub(super) struct LockJobs {
    /// Of the activation that goes on: when the thread got which lock.
    requests: Vec<(i64, usize)>,
    /// When its last sleep began, if that was for a lock, and what it took.
    slept: Option<(i64, JobWait)>,
    /// How long sections of others, which count by themselves, kept it from its CPU since its last
    /// wake-up.
    sections_ns: u64,
    job: Option<Job>,
    pub(super) sums: LockingThread,
}

impl LockJobs {
    /// The thread gets a lock.
    pub(super) fn gets(&mut self, ts_ns: i64, lock: usize) {
        self.requests.push((ts_ns, lock));
    }

    /// It has slept for a lock since then.
    pub(super) fn waited(&mut self, since_ns: i64, wait: JobWait) {
        self.slept = Some((since_ns, wait));
    }

    /// It has the CPU after a wake-up, from which sections of others kept it for so long.
    pub(super) fn came(&mut self, sections_ns: u64) {
        self.sections_ns = sections_ns;
    }

    /// Takes an activation that has ended. `in_lock`: whether it slept in the futex of a lock
    /// before.
    pub(super) fn activation(&mut self, separator: Kind, activation: &Activation, in_lock: bool) -> Ended {
        let Activation { kind, release, slept_ns, ended_ns, after_gap, dispatch, .. } = *activation;
        let late_ns = dispatch.ns.saturating_sub(std::mem::take(&mut self.sections_ns));
        self.sums.dispatch_ns = self.sums.dispatch_ns.max(late_ns);
        let mut requests = Requests::new();
        // Those of activations of which events are missing belong to no job.
        for (_, lock) in self.requests.drain(..).filter(|(at, _)| (slept_ns..=ended_ns).contains(at)) {
            *requests.entry(lock).or_default() += 1;
        }
        let woken_ns = release.window.latest_ns;
        let asleep_ns = woken_ns.saturating_sub(slept_ns).max(0).unsigned_abs();
        let seen = self.slept.filter(|(since_ns, _)| *since_ns == slept_ns).map(|(_, wait)| wait);
        // Some kernels leave out the switches to idle and back: nobody else had the CPU.
        let alone = JobWait { woken_ns, waited_ns: asleep_ns, blocked_ns: asleep_ns };
        let wait = seen.or(in_lock.then_some(alone));
        let waited_alone = in_lock && seen.is_none();
        if after_gap {
            self.job = None;
        }
        if kind == Some(separator) {
            let wait = JobWait { woken_ns, waited_ns: 0, blocked_ns: 0 };
            let job = Job { requests, suspended_ns: 0, suspensions: 0, waits: 0, wait };
            let before = self.job.replace(job);
            return Ended { requests: before.map(|job| self.count(job, true)), waited_alone };
        }
        if let Some(job) = &mut self.job {
            for (lock, n) in requests {
                *job.requests.entry(lock).or_default() += n;
            }
            if let Some(wait) = wait {
                job.waits += 1;
                job.wait.waited_ns = job.wait.waited_ns.saturating_add(wait.waited_ns);
                job.wait.blocked_ns = job.wait.blocked_ns.saturating_add(wait.blocked_ns);
            } else {
                job.suspended_ns = job.suspended_ns.saturating_add(asleep_ns);
                job.suspensions += 1;
            }
        }
        Ended { requests: None, waited_alone }
    }

    /// Counts a job; one that the end of the recording cut short for its requests alone.
    fn count(&mut self, job: Job, is_whole: bool) -> Requests {
        let sums = &mut self.sums;
        sums.lockings = sums.lockings.max(job.requests.values().sum());
        if is_whole {
            sums.jobs += 1;
            sums.suspended_ns = sums.suspended_ns.max(job.suspended_ns);
            sums.suspensions = sums.suspensions.max(job.suspensions);
            if job.suspensions > 0 {
                sums.suspending.jobs += 1;
                sums.suspending.suspensions += job.suspensions;
                sums.suspending.total_ns = sums.suspending.total_ns.saturating_add(job.suspended_ns);
            }
            if job.waits > 0 {
                sums.waiting += 1;
                sums.waited_ns = sums.waited_ns.max(job.wait.waited_ns);
                let at = sums.longest.partition_point(|one| one.blocked_ns >= job.wait.blocked_ns);
                sums.longest.insert(at, job.wait);
                sums.longest.truncate(MOST);
            }
        }
        job.requests
    }

    /// Events are missing: the job that goes on is not known.
    pub(super) fn lost(self) -> Self {
        Self { sums: self.sums, ..Self::default() }
    }

    /// The recording ends. Returns the requests of the job that it cut short.
    pub(super) fn finish(&mut self) -> Option<Requests> {
        let job = self.job.take()?;
        Some(self.count(job, false))
    }
}
