//! Who requests what, arranged for counting.
//!
//! All requests of a task for one resource count as long as its longest; reads and writes apart for
//! reader-writer locks and together for mutual exclusion. Claims of one core are sorted longest
//! first, because every bound takes the longest that it may.

use super::LocalLocks;
use crate::system::{Access, System};
use std::collections::HashMap;

/// The requests of a system, independent of any response time. Built once, used by every pass.
#[derive(Debug, Clone)]
pub struct Sharing {
    pub(super) tasks: Vec<Sharer>,
    pub(super) resources: Vec<Resource>,
    /// Tasks of each core in priority order.
    pub(super) cores: Vec<Vec<usize>>,
    /// Those of them that request anything.
    users: Vec<Vec<usize>>,
    /// One above the highest core in use.
    pub(super) cores_in_use: u64,
    /// How resources are held that one core alone uses.
    local: LocalLocks,
}

/// A task as locks see it.
#[derive(Debug, Clone)]
pub(super) struct Sharer {
    pub(super) period_ns: u64,
    pub(super) deadline_ns: u64,
    pub(super) jitter_ns: u64,
    pub(super) cost_ns: u64,
    pub(super) core: u32,
    /// Its rank at priority-ordered locks, 0 first.
    pub(super) lock_priority: u32,
    /// Its place among the tasks of its core.
    pub(super) rank: usize,
    /// At most one a resource.
    pub(super) uses: Vec<Use>,
}

/// What one job of a task requests of one resource.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Use {
    /// Index into [`Sharing::resources`].
    pub(super) resource: usize,
    pub(super) writes: u64,
    pub(super) reads: u64,
    pub(super) write_ns: u64,
    pub(super) read_ns: u64,
}

impl Use {
    pub(super) fn count(&self) -> u64 {
        self.writes.saturating_add(self.reads)
    }

    pub(super) fn length_ns(&self) -> u64 {
        self.write_ns.max(self.read_ns)
    }
}

/// Equal requests of one task for one resource.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claim {
    pub(super) task: usize,
    pub(super) core: u32,
    /// Most of them a job, at least 1.
    pub(super) count: u64,
    pub(super) length_ns: u64,
}

/// The claims of one core, longest first; never empty.
#[derive(Debug, Clone)]
pub(super) struct CoreClaims {
    pub(super) core: u32,
    pub(super) claims: Vec<Claim>,
}

/// The claims on one resource, ordered by core.
#[derive(Debug, Clone, Default)]
pub(super) struct Claims {
    pub(super) cores: Vec<CoreClaims>,
    /// The longest claim of every core, together.
    longest_ns: u64,
    /// Each job issues this many requests of every core's longest claim.
    sure: u64,
}

impl Claims {
    pub(super) fn remote(&self, core: u32) -> impl Iterator<Item = &[Claim]> {
        self.cores.iter().filter(move |one| one.core != core).map(|one| one.claims.as_slice())
    }

    /// The longest `each` requests of every core but one, as count and length together, where one
    /// job of each core's longest claim is enough for them.
    pub(super) fn surely_longest(&self, each: u64, core: u32) -> Option<(u64, u64)> {
        if each > self.sure {
            return None;
        }
        let own = self.cores.binary_search_by_key(&core, |one| one.core).ok();
        let own_ns = own.map_or(0, |at| self.cores[at].claims[0].length_ns);
        let others = self.cores.len() - usize::from(own.is_some());
        Some((each.saturating_mul(others as u64), each.saturating_mul(self.longest_ns - own_ns)))
    }

    fn insert(&mut self, claim: Claim) {
        match self.cores.binary_search_by_key(&claim.core, |one| one.core) {
            Ok(at) => self.cores[at].claims.push(claim),
            Err(at) => self.cores.insert(at, CoreClaims { core: claim.core, claims: vec![claim] }),
        }
    }

    fn sort(&mut self) {
        for core in &mut self.cores {
            core.claims.sort_by_key(|claim| std::cmp::Reverse(claim.length_ns));
        }
        let first = || self.cores.iter().map(|core| &core.claims[0]);
        self.longest_ns = first().map(|claim| claim.length_ns).sum();
        self.sure = first().map(|claim| claim.count).min().unwrap_or(0);
    }
}

/// Reads of equal length; never empty.
#[derive(Debug, Clone)]
pub(super) struct ReadRun {
    pub(super) length_ns: u64,
    pub(super) claims: Vec<Claim>,
    /// Reads of one job of every task together.
    pub(super) count: u64,
    /// The same core by core, ordered by core.
    pub(super) by_core: Vec<(u32, u64)>,
}

impl ReadRun {
    /// Reads of one job of every task of other cores.
    pub(super) fn count_elsewhere(&self, core: u32) -> u64 {
        let here = self.by_core.binary_search_by_key(&core, |one| one.0).map_or(0, |at| self.by_core[at].1);
        self.count - here
    }
}

/// A resource and all who claim it.
#[derive(Debug, Clone, Default)]
pub(super) struct Resource {
    /// Reads and writes alike.
    pub(super) any: Claims,
    /// Writes alone.
    pub(super) writes: Claims,
    /// Reads of all cores, longest first.
    pub(super) reads: Vec<ReadRun>,
    /// The highest priority, as least index, among its users.
    pub(super) ceiling: usize,
    /// The shortest deadline among its users.
    pub(super) shortest_deadline_ns: u64,
}

impl Resource {
    /// Whether more than one core uses it.
    pub(super) fn is_global(&self) -> bool {
        self.any.cores.len() > 1
    }
}

impl Sharing {
    /// Of a system; requests of count 0 are none.
    pub fn of(system: &System, local: LocalLocks) -> Self {
        let mut numbers = HashMap::new();
        let mut ranks = vec![0; system.cores as usize];
        let mut tasks = Vec::with_capacity(system.tasks.len());
        for (index, task) in system.tasks.iter().enumerate() {
            let mut uses: Vec<Use> = Vec::new();
            for request in task.requests.iter().filter(|request| request.count > 0) {
                let next = numbers.len();
                let resource = *numbers.entry(request.resource).or_insert(next);
                let at = uses.iter().position(|one| one.resource == resource).unwrap_or_else(|| {
                    uses.push(Use { resource, ..Use::default() });
                    uses.len() - 1
                });
                let (count, length) = match request.access {
                    Access::Write => (&mut uses[at].writes, request.length_ns),
                    Access::Read => (&mut uses[at].reads, request.length_ns),
                };
                *count = count.saturating_add(request.count);
                let longest = match request.access {
                    Access::Write => &mut uses[at].write_ns,
                    Access::Read => &mut uses[at].read_ns,
                };
                *longest = (*longest).max(length);
            }
            let rank = &mut ranks[task.core as usize];
            tasks.push(Sharer {
                period_ns: task.task.period_ns,
                deadline_ns: task.task.deadline_ns,
                jitter_ns: task.task.jitter_ns,
                cost_ns: task.task.cost_ns,
                core: task.core,
                lock_priority: task.lock_priority.unwrap_or(index as u32),
                rank: *rank,
                uses,
            });
            *rank += 1;
        }
        let resources = resources(&tasks, numbers.len());
        let cores_in_use = tasks.iter().map(|task| u64::from(task.core) + 1).max().unwrap_or(0);
        let cores = system.by_core();
        let requests = |task: &usize| !tasks[*task].uses.is_empty();
        let users = cores.iter().map(|core| core.iter().copied().filter(requests).collect()).collect();
        Self { tasks, resources, cores, users, cores_in_use, local }
    }

    /// Whether a local request for a resource can block a task on arrival.
    pub(super) fn blocks_on_arrival(&self, resource: usize, task: usize) -> bool {
        let resource = &self.resources[resource];
        self.local == LocalLocks::NonPreemptable || resource.is_global() || resource.ceiling <= task
    }

    /// Whether a task requests what other cores request, too.
    pub(super) fn leaves_core(&self, task: usize) -> bool {
        self.tasks[task].uses.iter().any(|one| self.resources[one.resource].is_global())
    }

    /// Local tasks of higher priority, in priority order.
    pub(super) fn higher(&self, task: usize) -> &[usize] {
        let own = &self.tasks[task];
        &self.cores[own.core as usize][..own.rank]
    }

    /// Those of them that request anything.
    pub(super) fn higher_users(&self, task: usize) -> &[usize] {
        let users = &self.users[self.tasks[task].core as usize];
        &users[..users.partition_point(|&user| user < task)]
    }

    /// Local tasks of lower priority that request anything, in priority order.
    pub(super) fn lower_users(&self, task: usize) -> &[usize] {
        let users = &self.users[self.tasks[task].core as usize];
        &users[users.partition_point(|&user| user <= task)..]
    }

    /// The longest of `times` among local tasks of lower priority, for every task.
    pub(super) fn longest_below(&self, times: &[u64]) -> Vec<u64> {
        let mut below = vec![0; self.tasks.len()];
        for core in &self.cores {
            let mut longest = 0;
            for &task in core.iter().rev() {
                below[task] = longest;
                longest = longest.max(times[task]);
            }
        }
        below
    }
}

fn resources(tasks: &[Sharer], count: usize) -> Vec<Resource> {
    let mut resources =
        vec![Resource { ceiling: usize::MAX, shortest_deadline_ns: u64::MAX, ..Resource::default() }; count];
    let mut reads = vec![Vec::new(); count];
    for (task, sharer) in tasks.iter().enumerate() {
        for one in &sharer.uses {
            let resource = &mut resources[one.resource];
            resource.ceiling = resource.ceiling.min(task);
            resource.shortest_deadline_ns = resource.shortest_deadline_ns.min(sharer.deadline_ns);
            let claim = |count, length_ns| Claim { task, core: sharer.core, count, length_ns };
            resource.any.insert(claim(one.count(), one.length_ns()));
            if one.writes > 0 {
                resource.writes.insert(claim(one.writes, one.write_ns));
            }
            if one.reads > 0 {
                reads[one.resource].push(claim(one.reads, one.read_ns));
            }
        }
    }
    for (resource, mut reads) in resources.iter_mut().zip(reads) {
        reads.sort_by_key(|claim: &Claim| std::cmp::Reverse(claim.length_ns));
        resource.reads = reads.chunk_by(|one, next| one.length_ns == next.length_ns).map(run_of).collect();
        resource.any.sort();
        resource.writes.sort();
    }
    resources
}

fn run_of(claims: &[Claim]) -> ReadRun {
    let mut by_core: Vec<(u32, u64)> = Vec::new();
    for claim in claims {
        match by_core.binary_search_by_key(&claim.core, |one| one.0) {
            Ok(at) => by_core[at].1 = by_core[at].1.saturating_add(claim.count),
            Err(at) => by_core.insert(at, (claim.core, claim.count)),
        }
    }
    ReadRun {
        length_ns: claims[0].length_ns,
        claims: claims.to_vec(),
        count: by_core.iter().fold(0, |sum: u64, one| sum.saturating_add(one.1)),
        by_core,
    }
}
