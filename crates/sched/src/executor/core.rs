//! What one executor serves, and the equation that all analyses solve.

use super::arrivals::{Arrivals, Sources};
use super::{CallbackKind, ReadyOrder};
use crate::bounds::Costs;
use crate::flow::{Rounds, Unanswered, time_for};
use crate::supply::Supply;
use crate::task::MAX_NS;

/// A callback as the analyses of its executor know it.
pub(super) struct Load {
    pub(super) kind: CallbackKind,
    pub(super) costs: Costs,
    /// In any interval; none where nothing is known.
    pub(super) arrivals: Option<Arrivals>,
    /// In an interval that begins with a busy window of the executor.
    pub(super) in_busy_window: Option<Arrivals>,
    /// The response assumed so far; none for none.
    pub(super) response_ns: Option<u64>,
}

/// An executor.
pub(super) struct Core<'a> {
    pub(super) supply: Option<Supply>,
    pub(super) order: ReadyOrder,
    /// Its callbacks, in order of registration.
    pub(super) loads: &'a mut [Load],
    pub(super) sources: &'a mut Sources,
    /// Whether more is asked of it than it gets in the long run.
    pub(super) overloaded: bool,
    pub(super) rounds: &'a mut Rounds,
}

impl Core<'_> {
    /// Whether instances of this callback are executed as soon as they are there, and not by ready
    /// sets.
    pub(super) fn is_immediate(&self, load: usize) -> bool {
        self.order == ReadyOrder::TimersFirst && self.loads[load].kind == CallbackKind::Timer
    }

    /// The most instances of `load` between the activation and the start of one of `end`, of
    /// `arrived` that are there (none: any number), where so many polling points come between.
    ///
    /// The ready set that is executed at the activation has one, and so has each of the sets that
    /// follow, of which `end` is executed in the last.
    pub(super) fn interfering(
        &self,
        load: usize,
        end: usize,
        arrived: Option<u64>,
        polling_points: u64,
    ) -> Option<u64> {
        if self.is_immediate(load) {
            return arrived;
        }
        let may_come_first = match self.order {
            ReadyOrder::Any => true,
            ReadyOrder::TimersFirst | ReadyOrder::Registered => {
                self.is_immediate(end) || (self.loads[load].kind, load) < (self.loads[end].kind, end)
            }
        };
        let polled = polling_points.saturating_add(u64::from(may_come_first));
        Some(arrived.map_or(polled, |arrived| arrived.min(polled)))
    }

    /// The most polling points while instances of these callbacks wait, one after another (RTSS
    /// 2021, definition 3): of each as many as it has instances in its longest response, since each
    /// polling point finds one. The curves are those of any interval, because such a response may
    /// begin anywhere in a busy window.
    pub(super) fn polling_points(&mut self, chain: &[usize]) -> Result<u64, Unanswered> {
        chain.iter().try_fold(0u64, |sum, &at| {
            let load = &self.loads[at];
            let (Some(arrivals), Some(response_ns)) = (&load.arrivals, load.response_ns) else {
                return Err(Unanswered::Late);
            };
            let points = arrivals.within(response_ns, self.sources).ok_or(Unanswered::Undecided)?;
            Ok(sum.saturating_add(points))
        })
    }

    /// Activations of a callback in an interval of this length.
    pub(super) fn arrived(&mut self, load: usize, length_ns: u64) -> Result<u64, Unanswered> {
        let arrivals = self.loads[load].arrivals.as_ref().ok_or(Unanswered::Late)?;
        arrivals.within(length_ns, self.sources).ok_or(Unanswered::Undecided)
    }

    /// The same for an interval that begins with a busy window.
    pub(super) fn arrived_in_busy_window(&mut self, load: usize, length_ns: u64) -> Result<u64, Unanswered> {
        let arrivals = self.loads[load].in_busy_window.as_ref().ok_or(Unanswered::Late)?;
        arrivals.within(length_ns, self.sources).ok_or(Unanswered::Undecided)
    }

    /// The most execution of so many instances in a row.
    pub(super) fn cost(&mut self, load: usize, instances: u64) -> Result<u64, Unanswered> {
        self.loads[load].costs.of_jobs(instances).ok_or(Unanswered::Undecided)
    }

    /// The end of an instance whose execution begins when the supply has done all demand before it,
    /// at `start_ns` at the latest (the second step of both theorems of RTSS 2021).
    pub(super) fn end_of(&mut self, load: usize, start_ns: u64, earlier: u64) -> Result<u64, Unanswered> {
        let own = self.cost(load, earlier + 1)?.saturating_sub(self.cost(load, earlier)?);
        let done = self.supply.map_or(start_ns, |supply| supply.service(start_ns)).saturating_sub(1);
        Ok(time_for(self.supply, done.saturating_add(own)))
    }

    /// The least time, counted from `offset_ns`, by which the demand of that time is served.
    pub(super) fn least(
        &mut self,
        offset_ns: u64,
        mut demand: impl FnMut(&mut Self, u64) -> Result<u64, Unanswered>,
    ) -> Result<u64, Unanswered> {
        let mut time = 1;
        while time <= MAX_NS {
            self.rounds.take()?;
            let served = time_for(self.supply, demand(self, time)?).saturating_sub(offset_ns);
            if served <= time {
                return Ok(served);
            }
            time = served;
        }
        Err(Unanswered::Late)
    }
}
