//! Who runs when: from one moment at which anything changes to the next.

use super::job::{Job, Stretch};
use sched::locks::{LocalLocks, Locks, Protocol};
use sched::{Access, System};

/// What the cores go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules<'a> {
    /// Whether deadlines decide; else priorities.
    pub(crate) by_deadline: bool,
    /// Whether any job may run on any core.
    pub(crate) global: bool,
    /// Who shares a priority, as a number for each task; equals are served as they become ready.
    pub(crate) levels: &'a [usize],
    /// How resources are shared.
    pub(crate) locks: Option<Locks>,
}

/// Time that interrupts take of a core: it starts at a moment, ns, and lasts this long. The running
/// job stays there, keeps what it holds, and makes no progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interrupt {
    pub(crate) core: u32,
    pub(crate) at: u64,
    pub(crate) ns: u64,
}

/// Where a job is in its current stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    /// In any but a critical section, or before it.
    Plain,
    Waiting {
        resource: u32,
        access: Access,
        since: u64,
    },
    Holding(u32, Access),
}

/// A task: its first job that is not over.
#[derive(Debug, Clone, Copy)]
pub(super) struct State {
    job: usize,
    stretch: usize,
    left: u64,
    pub(super) at: At,
    /// Since it was last ready to run; equals queue by it.
    pub(super) queued: u64,
    /// The place of its section among those of its core, where waiters suspend.
    pub(super) turn: u64,
}

pub(crate) struct Simulation<'a> {
    pub(super) system: &'a System,
    pub(super) rules: Rules<'a>,
    jobs: &'a [Vec<Job>],
    pub(super) states: Vec<State>,
    /// Whether the last phase of a resource was a writer's.
    pub(super) wrote: Vec<bool>,
    /// The cores on which a resource is used by one alone.
    local: Vec<Option<u32>>,
    pub(super) seed: u64,
    pub(super) now: u64,
    /// What each core runs.
    pub(super) running: Vec<Option<usize>>,
    /// Requests and grants so far, where waiters suspend.
    pub(super) requests: u64,
    /// What interrupts still take of each core.
    backlog: Vec<u64>,
}

/// The longest response of each task, ns, from the arrival. A job runs to its end however late it
/// is.
pub(crate) fn responses(
    system: &System,
    rules: Rules<'_>,
    jobs: &[Vec<Job>],
    interrupts: &[Interrupt],
    seed: u64,
) -> Vec<u64> {
    let mut worst = vec![0; system.tasks.len()];
    let mut simulation = Simulation::new(system, rules, jobs, seed);
    let mut interrupts = interrupts.iter().copied().peekable();
    loop {
        while let Some(one) = interrupts.next_if(|one| one.at <= simulation.now) {
            simulation.backlog[one.core as usize] += one.ns;
        }
        simulation.settle();
        let Some(until) = simulation.next_change(interrupts.peek().map(|one| one.at)) else { return worst };
        simulation.advance(until, &mut worst);
    }
}

impl<'a> Simulation<'a> {
    fn new(system: &'a System, rules: Rules<'a>, jobs: &'a [Vec<Job>], seed: u64) -> Self {
        let requests = || system.tasks.iter().flat_map(|one| &one.requests);
        let resources = requests().map(|one| one.resource as usize + 1).max().unwrap_or(0);
        let local = |resource: usize| {
            let uses =
                |one: &&sched::SystemTask| one.requests.iter().any(|one| one.resource as usize == resource);
            let mut users = system.tasks.iter().filter(uses).map(|one| one.core);
            let first = users.next()?;
            users.all(|core| core == first).then_some(first)
        };
        let mut simulation = Self {
            system,
            rules,
            jobs,
            states: vec![
                State { job: 0, stretch: 0, left: 0, at: At::Plain, queued: 0, turn: 0 };
                jobs.len()
            ],
            wrote: vec![false; resources],
            local: (0..resources).map(local).collect(),
            seed,
            now: 0,
            running: vec![None; system.cores as usize],
            requests: 0,
            backlog: vec![0; system.cores as usize],
        };
        for task in 0..jobs.len() {
            simulation.begin(task, 0);
        }
        simulation
    }

    fn begin(&mut self, task: usize, job: usize) {
        let first = self.jobs[task].get(job);
        self.states[task] = State {
            job,
            stretch: 0,
            left: first.and_then(|job| job.stretches.first()).map_or(0, |one| one.1),
            at: At::Plain,
            queued: first.map_or(0, |job| job.ready.max(self.now)),
            turn: 0,
        };
    }

    pub(super) fn current(&self, task: usize) -> Option<(&'a Job, Stretch)> {
        let state = self.states[task];
        let job = self.jobs[task].get(state.job)?;
        Some((job, job.stretches[state.stretch].0))
    }

    pub(super) fn protocol(&self) -> Protocol {
        self.rules.locks.map_or(Protocol::FifoNp, Locks::protocol)
    }

    /// Whether whoever spins can be preempted.
    fn spinners_yield(&self) -> bool {
        matches!(
            self.protocol(),
            Protocol::FifoP | Protocol::PriorityP | Protocol::PriorityFifoP | Protocol::UnorderedP
        )
    }

    /// Whether a resource stays on one core and is held at its ceiling.
    pub(super) fn has_ceiling(&self, resource: u32) -> bool {
        self.local[resource as usize].is_some()
            && self.rules.locks.is_some_and(|locks| locks.local() == LocalLocks::Ceiling)
    }

    pub(super) fn users(&self, resource: u32) -> impl Iterator<Item = usize> + '_ {
        let uses =
            move |task: &usize| self.system.tasks[*task].requests.iter().any(|one| one.resource == resource);
        (0..self.system.tasks.len()).filter(uses)
    }

    /// Who runs first: those that cannot be preempted, then by level or deadline; at its ceiling a
    /// job goes before equals.
    fn rank(&self, task: usize, job: &Job, stretch: Stretch) -> (u64, u64, u64, u64) {
        let state = self.states[task];
        let begun = self.jobs[task][state.job].stretches[state.stretch].1 > state.left;
        let place = if self.rules.by_deadline { job.due } else { self.rules.levels[task] as u64 };
        let queued = if self.rules.by_deadline { job.tie } else { state.queued };
        let urgent = match (state.at, stretch) {
            (At::Plain, Stretch::Alone) => begun,
            (At::Waiting { .. }, _) => !self.spinners_yield(),
            (At::Holding(resource, _), _) if self.has_ceiling(resource) => {
                let ceiling = self.users(resource).map(|user| self.rules.levels[user] as u64).min();
                let place = if self.rules.by_deadline { place } else { place.min(ceiling.unwrap_or(place)) };
                return (1, place, 0, 0);
            }
            (At::Holding(..), _) => true,
            _ => false,
        };
        if urgent { (0, 0, 0, 0) } else { (1, place, 1, queued) }
    }

    /// Under EDF a job starts only if its deadline is shorter than that of every user of a resource
    /// that another of its core holds at a ceiling (the stack resource policy).
    fn held_back(&self, task: usize) -> bool {
        let one = &self.system.tasks[task];
        let shorter = |user: usize| one.task.deadline_ns < self.system.tasks[user].task.deadline_ns;
        self.rules.by_deadline
            && !self.has_begun(task)
            && (0..self.states.len()).any(|other| {
                let At::Holding(resource, _) = self.states[other].at else { return false };
                other != task
                    && self.system.tasks[other].core == one.core
                    && self.has_ceiling(resource)
                    && !self.users(resource).all(shorter)
            })
    }

    fn has_begun(&self, task: usize) -> bool {
        let State { job, stretch, left, at, .. } = self.states[task];
        let whole = self.jobs[task].get(job).map(|job| job.stretches[stretch].1);
        stretch > 0 || at != At::Plain || whole.is_some_and(|whole| left < whole)
    }

    /// Everything that happens at this moment: who runs, who asks, who gets a lock.
    fn settle(&mut self) {
        if self.protocol().suspends() {
            return self.settle_suspending();
        }
        self.choose();
        if self.rules.locks.is_none() {
            return;
        }
        for task in 0..self.states.len() {
            let core = self.system.tasks[task].core as usize;
            if self.backlog[core] > 0 {
                continue;
            }
            let runs = self.running[core] == Some(task);
            match (self.states[task].at, self.current(task)) {
                // Preempted: it gives up its place.
                (At::Waiting { .. }, _) if !runs => self.states[task].at = At::Plain,
                (At::Plain, Some((_, Stretch::Holds(resource, access)))) if runs => {
                    self.states[task].at = At::Waiting { resource, access, since: self.now };
                }
                _ => {}
            }
        }
        for resource in 0..self.wrote.len() {
            self.serve(resource as u32, self.protocol());
        }
    }

    fn choose(&mut self) {
        let ready = |task: usize| {
            let (job, stretch) = self.current(task)?;
            let runs = job.ready <= self.now && stretch != Stretch::Suspends;
            runs.then(|| (self.rank(task, job, stretch), task))
        };
        let mut ready: Vec<_> = (0..self.states.len()).filter_map(ready).collect();
        ready.sort_unstable();
        let ready: Vec<usize> = ready.into_iter().map(|one| one.1).collect();
        if self.rules.global {
            let mut urgent = ready.into_iter();
            self.running.fill_with(|| urgent.next());
            return;
        }
        for core in 0..self.running.len() {
            // An interrupt is over before anybody else runs.
            if self.backlog[core] == 0 || self.running[core].is_none() {
                self.running[core] = self.first_of(core, &ready);
            }
        }
    }

    /// Who of those that are ready, the most urgent first, runs on a core. While a job is held
    /// back, none that is less urgent starts.
    fn first_of(&self, core: usize, ready: &[usize]) -> Option<usize> {
        let mut held_back = false;
        for &task in ready.iter().filter(|&&task| self.system.tasks[task].core as usize == core) {
            if self.held_back(task) {
                held_back = true;
            } else if !held_back || self.has_begun(task) {
                return Some(task);
            }
        }
        None
    }

    /// Whether a task gets on with its stretch.
    fn proceeds(&self, task: usize, job: &Job, stretch: Stretch) -> bool {
        if stretch == Stretch::Suspends {
            return job.ready <= self.now;
        }
        let Some(core) = self.running.iter().position(|one| *one == Some(task)) else { return false };
        let waits = matches!(self.states[task].at, At::Waiting { .. });
        self.backlog[core] == 0 && !waits
    }

    /// The next moment at which anything changes; none when all is over.
    fn next_change(&self, interrupt: Option<u64>) -> Option<u64> {
        let mut next = None;
        let mut at = |moment: u64| next = Some(next.map_or(moment, |one: u64| one.min(moment)));
        for task in 0..self.states.len() {
            let Some((job, stretch)) = self.current(task) else { continue };
            if job.ready > self.now {
                at(job.ready);
            } else if self.proceeds(task, job, stretch) {
                at(self.now + self.states[task].left);
            }
        }
        let over = (0..self.states.len()).all(|task| self.current(task).is_none());
        for backlog in self.backlog.iter().filter(|left| **left > 0) {
            at(self.now + backlog);
        }
        interrupt.into_iter().filter(|_| !over).for_each(at);
        if over { None } else { next }
    }

    fn advance(&mut self, until: u64, worst: &mut [u64]) {
        let passed = until - self.now;
        let proceeding: Vec<usize> = (0..self.states.len())
            .filter(|&task| {
                self.current(task).is_some_and(|(job, stretch)| self.proceeds(task, job, stretch))
            })
            .collect();
        self.now = until;
        for backlog in &mut self.backlog {
            *backlog = backlog.saturating_sub(passed);
        }
        for task in proceeding {
            self.states[task].left -= passed;
            if self.states[task].left > 0 {
                continue;
            }
            let State { job, stretch, .. } = self.states[task];
            let suspended = self.jobs[task][job].stretches[stretch].0 == Stretch::Suspends;
            self.states[task].at = At::Plain;
            if let Some(next) = self.jobs[task][job].stretches.get(stretch + 1) {
                self.states[task].stretch += 1;
                self.states[task].left = next.1;
                if suspended {
                    self.states[task].queued = self.now;
                }
            } else {
                worst[task] = worst[task].max(self.now - self.jobs[task][job].arrival);
                self.begin(task, job + 1);
            }
        }
    }
}
