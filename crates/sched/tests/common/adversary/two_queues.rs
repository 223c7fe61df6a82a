//! The global OMLP: each resource has a queue of as many places as there are cores, its holder
//! first, in order of arrival, and one by priority before it. The holder inherits.

use super::job::Stretch;
use super::simulate::{At, Simulation};

/// Who goes first: the least.
type Place = (u64, u64);

impl Simulation<'_> {
    /// Those before the queue enter it as long as it has places, and its first holds what is free.
    pub(super) fn move_up(&mut self, resource: u32) {
        loop {
            let queued = |one: &usize| self.states[*one].turn > 0;
            let inside = self.waiters(resource).filter(queued).count();
            let inside = inside + usize::from(self.holder(resource).is_some());
            let before = self.waiters(resource).filter(|one| !queued(one));
            match before.min_by_key(|&one| self.urgency(one)) {
                Some(first) if inside < self.running.len() => {
                    self.requests += 1;
                    self.states[first].turn = self.requests;
                }
                _ => break,
            }
        }
        if self.holder(resource).is_some() {
            return;
        }
        let queued = self.waiters(resource).filter(|one| self.states[*one].turn > 0);
        let Some(first) = queued.min_by_key(|&one| self.states[one].turn) else { return };
        if let At::Waiting { access, .. } = self.states[first].at {
            self.states[first].at = At::Holding(resource, access);
        }
    }

    /// The priority of its own.
    fn urgency(&self, task: usize) -> Place {
        let Some((job, _)) = self.current(task) else { return (u64::MAX, 0) };
        if self.rules.by_deadline { (job.due, job.tie) } else { (self.rules.levels[task] as u64, 0) }
    }

    pub(super) fn choose_inheriting(&mut self) {
        let ready = |task: usize| {
            let (job, stretch) = self.current(task)?;
            if job.ready > self.now || stretch == Stretch::Suspends {
                return None;
            }
            let own = self.urgency(task);
            match self.states[task].at {
                At::Plain => Some((own, task)),
                At::Waiting { .. } => None,
                At::Holding(resource, _) => {
                    let waiters = self.waiters(resource).map(|one| self.urgency(one));
                    Some((waiters.chain([own]).min().unwrap_or(own), task))
                }
            }
        };
        let mut ready: Vec<(Place, usize)> = (0..self.states.len()).filter_map(ready).collect();
        ready.sort_unstable();
        let mut urgent = ready.into_iter().map(|one| one.1);
        self.running.fill_with(|| urgent.next());
    }
}
