//! Priority donation: the rules of the OMLP on pinned tasks.
//!
//! A job with an incomplete request is the most urgent of its core. Released above it, the highest
//! of the others gives its priority away: it is suspended until the request is complete. Who
//! executes below a job that waits, and requests, waits until no request of its core is incomplete
//! and nobody above it is pending.

use super::job::Stretch;
use super::simulate::{At, Simulation};
use sched::locks::Protocol;

impl Simulation<'_> {
    /// Whether jobs donate their priority.
    pub(super) fn donates(&self) -> bool {
        matches!(self.protocol(), Protocol::Omlp | Protocol::OmlpRw) && !self.rules.global
    }

    /// Jobs of a core that have arrived and are not over.
    fn pending(&self, core: u32) -> impl Iterator<Item = usize> + '_ {
        let pending = move |&task: &usize| {
            self.system.tasks[task].core == core
                && self.current(task).is_some_and(|(job, _)| job.ready <= self.now)
        };
        (0..self.states.len()).filter(pending)
    }

    /// None of who does not run.
    pub(super) fn donating_rank(&self, task: usize, stretch: Stretch) -> Option<(u64, u64, u64, u64)> {
        let state = self.states[task];
        match state.at {
            At::Holding(..) => return Some((0, 0, 0, 0)),
            At::Waiting { .. } => return None,
            At::Plain => {}
        }
        let level = |task: usize| self.rules.levels[task];
        let core = self.system.tasks[task].core;
        let requests = self.pending(core).find(|&other| self.states[other].at != At::Plain);
        let first = self.pending(core).filter(|&other| Some(other) != requests).min_by_key(|&one| level(one));
        if let Some(other) = requests {
            let donor = first == Some(task) && level(task) < level(other);
            // Its own request waits until it is the most urgent itself.
            if donor || matches!(stretch, Stretch::Holds(..)) {
                return None;
            }
        }
        Some((1, level(task) as u64, 1, state.queued))
    }
}
