//! What a task asks of its core, with curves or without, and how long a core takes for it.

use crate::bounds::{Costs, Releases};
use crate::supply::Supply;
use crate::system::SystemTask;
use crate::task::Task;

/// Relative slack for sums of utilizations in floating point, as in `window`.
pub(crate) const MARGIN: f64 = 1e-9;

/// What a task asks of its core.
pub(crate) struct Flow {
    pub(crate) task: Task,
    pub(crate) releases: Releases,
    pub(crate) costs: Costs,
}

/// Why there is no response time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// A window outgrows the deadline.
    Late,
    /// The cap came first.
    Undecided,
}

/// Evaluations of an equation: how many, and how many there may be.
pub(crate) struct Rounds {
    pub(crate) used: u64,
    pub(crate) cap: u64,
}

impl Rounds {
    /// One more, if it is left.
    pub(crate) fn take(&mut self) -> Result<(), Unanswered> {
        if self.used >= self.cap {
            return Err(Unanswered::Undecided);
        }
        self.used += 1;
        Ok(())
    }
}

impl Flow {
    pub(crate) fn of(one: &SystemTask) -> Self {
        let (intervals, costs) =
            one.bounds.as_ref().map_or((&[][..], &[][..]), |one| (&one.intervals_ns[..], &one.costs_ns[..]));
        Self {
            task: one.task,
            releases: Releases::of(one.task.period_ns, intervals),
            costs: Costs::of(one.task.cost_ns, costs),
        }
    }

    /// Share of a processor in the long run.
    pub(crate) fn load(&self) -> f64 {
        self.releases.rate() * self.costs.mean()
    }

    /// Execution of all jobs released in a window.
    pub(crate) fn demand(&mut self, window_ns: u64) -> Option<u64> {
        let jobs = self.releases.within(window_ns.saturating_add(self.task.jitter_ns))?;
        self.costs.of_jobs(jobs)
    }
}

/// What the core of these tasks supplies; none for all of its time.
pub(crate) fn supply_of(tasks: &[&SystemTask]) -> Option<Supply> {
    tasks.iter().find_map(|one| one.bounds.as_ref()?.supply)
}

/// The longest time in which a core serves so much demand, ns.
pub(crate) fn time_for(supply: Option<Supply>, demand_ns: u64) -> u64 {
    supply.map_or(demand_ns, |supply| supply.time_for(demand_ns))
}
