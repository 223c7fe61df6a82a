//! What happens while one job is pending: the counts on which every bound is based.
//!
//! A remote task x releases work in at most ceil((L + R_x) / T_x) jobs of any interval of length L:
//! one may have arrived R_x before it and still run. A local higher-priority task h does so in
//! ceil((w + J_h) / T_h) jobs, w being the busy window R_i - J_i. SchedCAT counts ceil(R_i / T_h),
//! which is the same where all jitters are equal and too little where J_h is above J_i. Taken here
//! is the larger of the two, ceil((R_i + max(0, J_h - J_i)) / T_h); SchedCAT's under its own
//! semantics.

use super::Semantics;
use super::sharing::{Claim, Sharer, Sharing};

/// One job while it is pending, and what other cores can request meanwhile.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window<'a> {
    pub(super) sharing: &'a Sharing,
    /// For each task, how long a job is pending at most, from its arrival.
    pub(super) responses: &'a [u64],
    /// Whose job this is.
    pub(super) task: usize,
}

impl<'a> Window<'a> {
    pub(super) fn own(&self) -> &'a Sharer {
        &self.sharing.tasks[self.task]
    }

    /// How long the job is pending at most, from its arrival.
    pub(super) fn response(&self) -> u64 {
        self.responses[self.task]
    }

    /// Jobs of a remote task in an interval.
    pub(super) fn jobs_in(&self, task: usize, interval_ns: u64) -> u64 {
        interval_ns.saturating_add(self.responses[task]).div_ceil(self.sharing.tasks[task].period_ns)
    }

    /// Requests of a claim in an interval.
    pub(super) fn requests_in(&self, claim: &Claim, interval_ns: u64) -> u64 {
        self.jobs_in(claim.task, interval_ns).saturating_mul(claim.count)
    }

    /// Requests of a claim while the job is pending.
    pub(super) fn supply(&self, claim: &Claim) -> u64 {
        self.requests_in(claim, self.response())
    }
}

/// One task's job and the counts of its window. Reused from task to task.
#[derive(Debug)]
pub(super) struct Pending<'a> {
    pub(super) window: Window<'a>,
    semantics: Semantics,
    /// For each resource, the local tasks of at least this priority that request it, and their jobs
    /// while this one is pending.
    requesters: Vec<Vec<(usize, u64)>>,
    /// For each resource, their requests: ncs in the paper.
    requests: Vec<u64>,
    /// Resources with requests, each once.
    requested: Vec<usize>,
    /// For each resource, the longest local lower-priority request that can block on arrival; 0
    /// where none can.
    sections: Vec<u64>,
    /// Resources that can block on arrival, each once.
    blockers: Vec<usize>,
}

impl<'a> Pending<'a> {
    pub(super) fn new(sharing: &'a Sharing, responses: &'a [u64], semantics: Semantics) -> Self {
        let count = sharing.resources.len();
        Self {
            window: Window { sharing, responses, task: 0 },
            semantics,
            requesters: vec![Vec::new(); count],
            requests: vec![0; count],
            requested: Vec::new(),
            sections: vec![0; count],
            blockers: Vec::new(),
        }
    }

    /// Counts for one task.
    pub(super) fn enter(&mut self, task: usize) {
        self.window.task = task;
        for resource in self.requested.drain(..) {
            self.requesters[resource].clear();
            self.requests[resource] = 0;
        }
        for resource in self.blockers.drain(..) {
            self.sections[resource] = 0;
        }
        let sharing = self.window.sharing;
        for &local in sharing.higher_users(task) {
            self.request(local, self.local_jobs(local));
        }
        self.request(task, 1);
        for &local in sharing.lower_users(task) {
            for one in &sharing.tasks[local].uses {
                if sharing.blocks_on_arrival(one.resource, task) {
                    // The list distinguishes a section of length 0 from none.
                    if !self.blockers.contains(&one.resource) {
                        self.blockers.push(one.resource);
                    }
                    let longest = &mut self.sections[one.resource];
                    *longest = (*longest).max(one.length_ns());
                }
            }
        }
    }

    fn request(&mut self, local: usize, jobs: u64) {
        for one in &self.window.sharing.tasks[local].uses {
            if self.requesters[one.resource].is_empty() {
                self.requested.push(one.resource);
            }
            self.requesters[one.resource].push((local, jobs));
            let requests = &mut self.requests[one.resource];
            *requests = requests.saturating_add(jobs.saturating_mul(one.count()));
        }
    }

    /// Jobs of a local higher-priority task while this one is pending.
    fn local_jobs(&self, local: usize) -> u64 {
        let other = &self.window.sharing.tasks[local];
        let later = match self.semantics {
            Semantics::Sound => other.jitter_ns.saturating_sub(self.window.own().jitter_ns),
            Semantics::SchedCat => 0,
        };
        self.window.response().saturating_add(later).div_ceil(other.period_ns)
    }

    /// Releases of local higher-priority jobs while this one is pending.
    pub(super) fn preemptions(&self) -> u64 {
        let higher = self.window.sharing.higher(self.window.task).iter();
        higher.fold(0, |sum: u64, &local| sum.saturating_add(self.local_jobs(local)))
    }

    /// What local higher-priority jobs execute in an interval.
    pub(super) fn interference(&self, interval_ns: u64) -> u64 {
        self.window.sharing.higher(self.window.task).iter().fold(0, |sum: u64, &local| {
            let other = &self.window.sharing.tasks[local];
            let jitter_ns = match self.semantics {
                Semantics::Sound => other.jitter_ns,
                Semantics::SchedCat => 0,
            };
            let jobs = interval_ns.saturating_add(jitter_ns).div_ceil(other.period_ns);
            sum.saturating_add(jobs.saturating_mul(other.cost_ns))
        })
    }

    /// How many requests of a claim can delay the spinning of this job or a local one before it:
    /// only while a job is pending that requests the resource. That binds where this task itself
    /// does not request it.
    pub(super) fn spin_supply(&self, resource: usize, claim: &Claim) -> u64 {
        let supply = self.window.supply(claim);
        let requesters = &self.requesters[resource];
        if requesters.last().is_some_and(|(local, _)| *local == self.window.task) {
            return supply;
        }
        let met = requesters.iter().fold(0, |sum: u64, &(local, jobs)| {
            sum.saturating_add(
                jobs.saturating_mul(self.window.jobs_in(claim.task, self.window.responses[local])),
            )
        });
        supply.min(met.saturating_mul(claim.count))
    }

    /// Requests of this job and of local higher-priority ones while it is pending.
    pub(super) fn requests(&self, resource: usize) -> u64 {
        self.requests[resource]
    }

    /// The tasks that issue them.
    pub(super) fn requesters(&self, resource: usize) -> impl Iterator<Item = usize> + '_ {
        self.requesters[resource].iter().map(|(task, _)| *task)
    }

    /// Local lower-priority tasks that request a resource.
    pub(super) fn lower_requesters(&self, resource: usize) -> impl Iterator<Item = usize> + '_ {
        let sharing = self.window.sharing;
        let uses = move |task: &&usize| sharing.tasks[**task].uses.iter().any(|one| one.resource == resource);
        sharing.lower_users(self.window.task).iter().filter(uses).copied()
    }

    /// The resources that the job and local higher-priority ones request.
    pub(super) fn requested(&self) -> &[usize] {
        &self.requested
    }

    /// The resources that can block on arrival, each with its longest local request.
    pub(super) fn blockers(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.blockers.iter().map(|&resource| (resource, self.sections[resource]))
    }

    /// The longest local request that can block on arrival.
    pub(super) fn longest_section(&self) -> u64 {
        self.blockers().map(|(_, length)| length).max().unwrap_or(0)
    }

    /// Claims on a resource from other cores, core by core.
    pub(super) fn remote(&self, resource: usize) -> impl Iterator<Item = &'a [Claim]> + use<'a> {
        self.window.sharing.resources[resource].any.remote(self.window.own().core)
    }
}
