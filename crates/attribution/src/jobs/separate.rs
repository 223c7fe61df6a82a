//! Jobs of a thread: what it does from one sleep of a given kind to the next; sleeps of other kinds
//! are suspensions of the job.

use super::follow::{Activation, Dispatch, Released};
use super::kind::Kind;

/// One job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) release: Released,
    /// When it had done all that it did.
    pub(super) ended_ns: i64,
    pub(super) executed_ns: u64,
    /// Asleep within it, ns.
    pub(super) suspended_ns: u64,
    pub(super) suspensions: u64,
    /// The longest of its activations.
    pub(super) dispatch: Dispatch,
}

impl Job {
    /// From its release to its end, ns: at least this long where the release is uncertain.
    pub(super) fn response_ns(&self) -> u64 {
        let Released { window, is_uncertain, .. } = self.release;
        let from_ns = if is_uncertain { window.latest_ns } else { window.earliest_ns };
        self.ended_ns.saturating_sub(from_ns).max(0).unsigned_abs()
    }
}

/// Makes jobs of activations.
#[derive(Debug)]
pub(super) struct Separator {
    pub(super) kind: Kind,
    open: Option<Job>,
}

impl Separator {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, open: None }
    }

    /// What comes next does not follow what was seen last.
    pub(super) fn forget(&mut self) {
        self.open = None;
    }

    /// Takes the next activation; returns the job that ended before it.
    pub(super) fn add(&mut self, activation: &Activation) -> Option<Job> {
        let Activation { kind, release, slept_ns, ended_ns, executed_ns, after_gap, dispatch } = *activation;
        if after_gap {
            self.open = None;
        }
        if kind == Some(self.kind) {
            let job = Job { release, ended_ns, executed_ns, suspended_ns: 0, suspensions: 0, dispatch };
            return self.open.replace(job);
        }
        if let Some(job) = &mut self.open {
            let asleep_ns = release.window.latest_ns.saturating_sub(slept_ns).max(0);
            job.suspended_ns = job.suspended_ns.saturating_add(asleep_ns.unsigned_abs());
            job.suspensions += 1;
            job.executed_ns = job.executed_ns.saturating_add(executed_ns);
            job.ended_ns = ended_ns;
            job.dispatch = job.dispatch.or_longer(dispatch);
        }
        None
    }
}
