//! The rules of locks whose waiters suspend: who may run, at which priority, and who gets a lock.
//!
//! Whatever can happen in one moment happens in a drawn order: requests, grants, and what they lead
//! to. Waiters do not run, but for one case: under priority inheritance who is woken holds the lock
//! only once it runs, and until then another task of higher priority may take it.

use super::Numbers;
use super::job::Stretch;
use super::simulate::{At, Simulation};
use sched::locks::Protocol;

/// What can happen now.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A running job requests a resource.
    Requests { task: usize, resource: u32 },
    /// A waiting job gets the resource that it waits for.
    Enters { task: usize, resource: u32 },
}

/// Who runs first: the least.
type Rank = (u64, u64, u64, u64);

impl Simulation<'_> {
    pub(super) fn settle_suspending(&mut self) {
        for turn in 0.. {
            if self.donates() {
                (0..self.wrote.len()).for_each(|resource| self.serve(resource as u32, self.protocol()));
            } else if self.rules.global {
                (0..self.wrote.len()).for_each(|resource| self.move_up(resource as u32));
            }
            self.choose_suspending();
            let steps = self.steps();
            if steps.is_empty() {
                return;
            }
            let seed = self.seed ^ self.now.rotate_left(20) ^ (turn << 50);
            match steps[Numbers(seed).between(0, steps.len() as u64 - 1) as usize] {
                Step::Requests { task, resource } => self.request(task, resource),
                Step::Enters { task, resource } => self.enter(task, resource),
            }
        }
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for task in 0..self.states.len() {
            let runs = self.running.contains(&Some(task));
            match (self.states[task].at, self.current(task)) {
                (At::Plain, Some((_, Stretch::Holds(resource, _)))) if runs => {
                    steps.push(Step::Requests { task, resource });
                }
                (At::Waiting { resource, .. }, _) if self.may_enter(task, resource, runs) => {
                    steps.push(Step::Enters { task, resource });
                }
                _ => {}
            }
        }
        steps
    }

    fn may_enter(&self, task: usize, resource: u32, runs: bool) -> bool {
        // These are served elsewhere.
        if self.donates() || self.rules.global {
            return false;
        }
        let free = self.holder(resource).is_none() && self.is_next(task, resource);
        match self.protocol() {
            Protocol::Pip => free && runs,
            // Its agent is chosen only where ceilings let it have the resource.
            Protocol::Dpcp if !self.has_ceiling(resource) => runs,
            _ => free,
        }
    }

    fn request(&mut self, task: usize, resource: u32) {
        let Some((_, Stretch::Holds(_, access))) = self.current(task) else { return };
        self.requests += 1;
        let since = self.requests;
        let by_priority = self.protocol() == Protocol::Pip;
        let first = self.waiters(resource).all(|other| by_priority && self.level(other) > self.level(task));
        let agent = self.protocol() == Protocol::Dpcp && !self.has_ceiling(resource);
        self.states[task].at = At::Waiting { resource, access, since };
        if self.donates() || self.rules.global {
            self.states[task].turn = 0;
            return;
        }
        if !agent && first && self.holder(resource).is_none() {
            self.enter(task, resource);
        }
    }

    fn enter(&mut self, task: usize, resource: u32) {
        let At::Waiting { access, since, .. } = self.states[task].at else { return };
        self.requests += 1;
        // Sections go first in order of requests, or of grants.
        let turn = if self.protocol() == Protocol::FmlpPlus { since } else { self.requests };
        self.states[task].at = At::Holding(resource, access);
        self.states[task].turn = turn;
    }

    /// Whether a waiting job is served before all others.
    fn is_next(&self, task: usize, resource: u32) -> bool {
        let key = |task: usize| match (self.protocol(), self.states[task].at) {
            (Protocol::FmlpPlus, At::Waiting { since, .. }) => since,
            _ => self.level(task),
        };
        self.waiters(resource).all(|other| key(other) >= key(task))
    }

    fn level(&self, task: usize) -> u64 {
        self.rules.levels[task] as u64
    }

    pub(super) fn holder(&self, resource: u32) -> Option<usize> {
        (0..self.states.len())
            .find(|&task| matches!(self.states[task].at, At::Holding(one, _) if one == resource))
    }

    pub(super) fn waiters(&self, resource: u32) -> impl Iterator<Item = usize> + '_ {
        let waits = move |task: &usize| matches!(self.states[*task].at, At::Waiting { resource: one, .. } if one == resource);
        (0..self.states.len()).filter(waits)
    }

    /// The core on which a job executes now: under the DPCP sections go to that of the user of the
    /// highest priority.
    pub(super) fn place(&self, task: usize) -> usize {
        let own = self.system.tasks[task].core as usize;
        let (At::Waiting { resource, .. } | At::Holding(resource, _)) = self.states[task].at else {
            return own;
        };
        if self.protocol() != Protocol::Dpcp || self.has_ceiling(resource) {
            return own;
        }
        let first = self.users(resource).min_by_key(|&user| self.level(user));
        first.map_or(own, |user| self.system.tasks[user].core as usize)
    }

    fn choose_suspending(&mut self) {
        if self.rules.global {
            return self.choose_inheriting();
        }
        for core in 0..self.running.len() {
            let here = (0..self.states.len()).filter(|&task| self.place(task) == core);
            let agents: Vec<usize> = here.clone().filter(|&task| self.is_agent(task)).collect();
            self.running[core] = if let Some(agent) = self.first_agent(&agents) {
                Some(agent)
            } else {
                here.filter_map(|task| Some((self.suspending_rank(task)?, task))).min().map(|one| one.1)
            };
        }
    }

    fn is_agent(&self, task: usize) -> bool {
        let (At::Waiting { resource, .. } | At::Holding(resource, _)) = self.states[task].at else {
            return false;
        };
        self.protocol() == Protocol::Dpcp && !self.has_ceiling(resource)
    }

    /// By the priority ceiling protocol: the agent of the highest priority, or, where ceilings of
    /// what others hold keep it from its resource, the one that holds it up.
    fn first_agent(&self, agents: &[usize]) -> Option<usize> {
        let first = agents.iter().copied().min_by_key(|&agent| self.level(agent))?;
        if matches!(self.states[first].at, At::Holding(..)) {
            return Some(first);
        }
        let ceiling = |agent: usize| match self.states[agent].at {
            At::Holding(resource, _) => self.users(resource).map(|user| self.level(user)).min(),
            _ => None,
        };
        let others = agents.iter().copied().filter(|&other| other != first);
        match others.filter_map(|other| Some((ceiling(other)?, other))).min() {
            Some((highest, blocker)) if highest <= self.level(first) => Some(blocker),
            _ => Some(first),
        }
    }

    /// None of who does not run.
    fn suspending_rank(&self, task: usize) -> Option<Rank> {
        let (job, stretch) = self.current(task)?;
        if job.ready > self.now || stretch == Stretch::Suspends {
            return None;
        }
        if self.donates() {
            return self.donating_rank(task, stretch);
        }
        let level = self.level(task);
        let state = self.states[task];
        match state.at {
            At::Plain => Some((1, level, 1, state.queued)),
            At::Waiting { resource, .. } => {
                let woken = self.protocol() == Protocol::Pip
                    && self.holder(resource).is_none()
                    && self.is_next(task, resource);
                woken.then_some((1, level, 1, state.queued))
            }
            At::Holding(resource, _) if self.has_ceiling(resource) => {
                let ceiling = self.users(resource).map(|user| self.level(user)).min();
                Some((1, ceiling.map_or(level, |ceiling| ceiling.min(level)), 0, 0))
            }
            At::Holding(resource, _) => Some(match self.protocol() {
                Protocol::Pip => {
                    let inherited = self.waiters(resource).map(|waiter| self.level(waiter)).min();
                    (1, inherited.map_or(level, |one| one.min(level)), 0, 0)
                }
                Protocol::Mpcp => {
                    let core = self.system.tasks[task].core;
                    let elsewhere = self.users(resource).filter(|&user| self.system.tasks[user].core != core);
                    (0, elsewhere.map(|user| self.level(user)).min().unwrap_or(u64::MAX), state.turn, 0)
                }
                _ => (0, state.turn, 0, 0),
            }),
        }
    }
}
