//! Chains: threads of which each job is released by one of the thread before. Bounds from the
//! release of the first to the end of the last, held against every instance of the trace.
//!
//! A job of a thread is released while the job runs that releases it, so no later than that one
//! ends. Behind its release it takes at most its bound less the jitter from which that counts: the
//! busy window of a job that is done before the next of its thread arrives (R = w + J: Audsley and
//! others, "Applying new scheduling theory to static priority pre-emptive scheduling", Software
//! Engineering Journal 8, 1993). A thread that may have several jobs pending counts with all of its
//! bound. The sum bounds the chain.

use super::shape::TaskModel;
use super::verdict::Guarantee;
use attribution::jobs::shape::ObservedJob;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Share of a thread's jobs, in percent, that the one before it releases.
const FOLLOWED: u64 = 90;
/// Chains that are followed, and threads of one.
const MOST_CHAINS: usize = 16;
const MOST_THREADS: usize = 16;
/// Jobs of a thread that are remembered until those that they release are known, and the ends of
/// chains that wait for theirs.
const MOST_JOBS: usize = 256;

/// A chain of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// Number and name of each thread, from the first.
    pub threads: Vec<(i32, String)>,
    /// From the release of the first to the end of the last, ns; `None` where some thread has no
    /// bound.
    pub bound_ns: Option<u64>,
}

/// What the trace has of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainTimes {
    /// Number and name of each thread, from the first.
    pub threads: Vec<(i32, String)>,
    /// From the release of the first to the end of the last, ns; `None` where some thread has no
    /// bound.
    pub bound_ns: Option<u64>,
    /// Instances that were followed from end to end.
    pub n: u64,
    /// Of these, those that took longer than the bound.
    pub refuted: u64,
    /// Jobs of the last thread of which a job before is not known.
    pub unlinked: u64,
    /// The longest of them, ns.
    pub longest_ns: u64,
    /// Its jobs, from the first.
    pub longest: Vec<ObservedJob>,
}

/// The chains of a model, from threads that no other releases.
pub fn chains(model: &TaskModel, guarantee: &Guarantee) -> Vec<Chain> {
    let next =
        |pid: i32| model.chains.iter().filter(move |one| one.from == pid && one.n * 100 >= one.of * FOLLOWED);
    let is_first =
        |pid: i32| !model.chains.iter().any(|one| one.to == pid && one.n * 100 >= one.of * FOLLOWED);
    let mut open: Vec<Vec<i32>> =
        model.threads.iter().map(|one| one.pid).filter(|pid| is_first(*pid)).map(|pid| vec![pid]).collect();
    let mut found = Vec::new();
    while let Some(path) = open.pop() {
        let Some(last) = path.last() else { continue };
        let nexts: Vec<i32> = next(*last).map(|one| one.to).filter(|to| !path.contains(to)).collect();
        if nexts.is_empty() || path.len() == MOST_THREADS {
            found.push(path);
        } else {
            open.extend(nexts.into_iter().map(|to| path.iter().copied().chain([to]).collect()));
        }
    }
    found.retain(|path| path.len() > 1);
    found.sort_by(|a, b| (b.len(), a).cmp(&(a.len(), b)));
    found.truncate(MOST_CHAINS);
    let name = |pid: i32| model.threads.iter().find(|one| one.pid == pid).map(|one| one.comm.clone());
    let named = |path: &[i32]| path.iter().map(|pid| (*pid, name(*pid).unwrap_or_default())).collect();
    found
        .iter()
        .map(|path| Chain { threads: named(path), bound_ns: bound_ns(path, model, guarantee) })
        .collect()
}

fn bound_ns(path: &[i32], model: &TaskModel, guarantee: &Guarantee) -> Option<u64> {
    let mut total_ns = 0u64;
    for (at, pid) in path.iter().enumerate() {
        let bound = guarantee.bounds.iter().find(|bound| bound.pid == *pid)?;
        let (response_ns, jitter_ns) = (bound.bound_ns?, bound.jitter_ns);
        let release = &model.threads.iter().find(|one| one.pid == *pid)?.release;
        let is_alone = response_ns <= release.period_ns;
        let counted_ns = if at > 0 && is_alone { response_ns.saturating_sub(jitter_ns) } else { response_ns };
        total_ns = total_ns.checked_add(counted_ns)?;
    }
    Some(total_ns)
}

/// A chain while the jobs stream by: each thread's in the order of their releases, those of
/// different threads in any.
#[derive(Debug)]
pub(super) struct Followed {
    times: ChainTimes,
    /// The latest jobs of each thread but the last.
    jobs: Vec<VecDeque<ObservedJob>>,
    /// Instances whose first job is not known yet: from the last job to the first that is.
    open: VecDeque<Vec<ObservedJob>>,
}

/// What is known of the job that released another.
enum Before {
    Found(ObservedJob),
    Missing,
    NotYet,
}

impl Followed {
    pub(super) fn new(Chain { threads, bound_ns }: Chain) -> Self {
        let jobs = vec![VecDeque::new(); threads.len()];
        let times = ChainTimes {
            threads,
            bound_ns,
            n: 0,
            refuted: 0,
            unlinked: 0,
            longest_ns: 0,
            longest: Vec::new(),
        };
        Self { times, jobs, open: VecDeque::new() }
    }

    pub(super) fn add(&mut self, job: &ObservedJob) {
        let Some(place) = self.times.threads.iter().position(|(pid, _)| *pid == job.tid) else { return };
        if place + 1 == self.times.threads.len() {
            if self.open.len() == MOST_JOBS {
                self.open.pop_front();
                self.times.unlinked += 1;
            }
            self.open.push_back(vec![*job]);
        } else {
            if self.jobs[place].len() == MOST_JOBS {
                self.jobs[place].pop_front();
            }
            self.jobs[place].push_back(*job);
        }
        self.resolve();
    }

    /// Completes instances from the oldest on, as far as the jobs before are known.
    fn resolve(&mut self) {
        while let Some(mut instance) = self.open.pop_front() {
            loop {
                let place = self.times.threads.len() - instance.len();
                if place == 0 {
                    self.count(instance);
                    break;
                }
                match self.before(place - 1, instance[instance.len() - 1].woken_ns) {
                    Before::Found(job) => instance.push(job),
                    Before::Missing => {
                        self.times.unlinked += 1;
                        break;
                    }
                    Before::NotYet => {
                        self.open.push_front(instance);
                        return;
                    }
                }
            }
        }
    }

    /// The job of a thread in which this moment lies.
    fn before(&self, place: usize, woken_ns: i64) -> Before {
        let jobs = &self.jobs[place];
        let within = |job: &&ObservedJob| job.release_ns <= woken_ns && woken_ns <= job.ended_ns;
        match jobs.iter().rev().find(within) {
            Some(job) => Before::Found(*job),
            None if jobs.back().is_some_and(|job| job.release_ns > woken_ns) => Before::Missing,
            None => Before::NotYet,
        }
    }

    fn count(&mut self, mut instance: Vec<ObservedJob>) {
        instance.reverse();
        let (Some(first), Some(last)) = (instance.first(), instance.last()) else { return };
        let took_ns = last.ended_ns.saturating_sub(first.release_ns).max(0).unsigned_abs();
        let times = &mut self.times;
        times.n += 1;
        times.refuted += u64::from(times.bound_ns.is_some_and(|bound_ns| took_ns > bound_ns));
        if took_ns > times.longest_ns {
            (times.longest_ns, times.longest) = (took_ns, instance);
        }
    }

    pub(super) fn finish(self) -> ChainTimes {
        let unlinked = self.times.unlinked + self.open.len() as u64;
        ChainTimes { unlinked, ..self.times }
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::{Link, ReleaseKind};
    use super::super::tests::{assumed, program, thread};
    use super::super::verdict::guarantee;
    use super::*;

    fn job(tid: i32, release_ns: i64, ended_ns: i64) -> ObservedJob {
        ObservedJob {
            tid,
            release_ns,
            ended_ns,
            response_ns: ended_ns.abs_diff(release_ns),
            executed_ns: 0,
            suspended_ns: 0,
            dispatch_ns: 0,
            kept: None,
            woken_ns: release_ns,
            released_by: None,
        }
    }

    fn followed(bound_ns: u64, jobs: &[ObservedJob]) -> ChainTimes {
        let threads = [1, 2, 3].map(|pid| (pid, format!("t{pid}"))).to_vec();
        let mut followed = Followed::new(Chain { threads, bound_ns: Some(bound_ns) });
        jobs.iter().for_each(|job| followed.add(job));
        followed.finish()
    }

    #[test]
    fn instances_are_followed_in_whatever_order_their_jobs_come() {
        let jobs = [
            // The last thread's first, and one that nobody is known to have released.
            job(3, 50, 60),
            job(3, 130, 150),
            job(2, 110, 132),
            job(1, 100, 112),
            job(1, 200, 215),
            job(2, 212, 240),
            job(3, 235, 280),
            job(1, 300, 310),
            job(2, 308, 330),
        ];
        let times = followed(60, &jobs);
        assert_eq!((times.n, times.unlinked), (2, 1));
        assert_eq!((times.longest_ns, times.refuted), (80, 1));
        assert_eq!(times.longest.iter().map(|job| job.tid).collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn only_the_jitter_that_a_bound_contains_is_left_out() {
        const MS: u64 = 1_000_000;
        let mut threads = vec![thread(1, 20, 10 * MS, 3 * MS), thread(2, 30, 20 * MS, 5 * MS)];
        threads[1].release.jitter_ns = 2 * MS;
        let mut model = program(threads, Vec::new());
        let name = |pid: i32| (pid, format!("t{pid}"));
        let [(from, from_comm), (to, to_comm)] = [name(1), name(2)];
        model.chains = vec![Link { from, from_comm, to, to_comm, n: 100, of: 100 }];
        let bound = |model: &TaskModel| {
            let guarantee = guarantee(model, &assumed(0)).unwrap();
            (guarantee.bounds[1].bound_ns, chains(model, &guarantee)[0].bound_ns)
        };
        // 3, and 3 + 5 from the second's release, which is at most 2 later than the bound counts
        // from.
        assert_eq!(bound(&model), (Some(10 * MS), Some(11 * MS)));
        // By a curve, the bound counts from the wake-up itself.
        model.threads[1].release.kind = ReleaseKind::Curve;
        model.threads[1].release.curve = vec![(20 * MS as i64 + 1, 2)];
        assert_eq!(bound(&model), (Some(8 * MS), Some(11 * MS)));
    }
}
