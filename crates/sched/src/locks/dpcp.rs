//! The distributed priority ceiling protocol: agents execute all sections on a resource of several
//! cores on one of them, above all tasks of it, at their tasks' priorities and under priority
//! ceilings; whose section it is suspends meanwhile. Resources of one core have ceilings.
//!
//! Rajkumar, Sha and Lehoczky, "Real-time synchronization protocols for multiprocessors", RTSS
//! 1988; the bound is that of Rajkumar, "Synchronization in real-time systems", 1991, page 87.
//! Oracle: SchedCAT's `dpcp_bounds`, equal under its own counting, in which agents serve resources
//! of one core, too. The core of a resource is that of its user of the highest priority.

use super::pending::Window;
use super::sharing::{Sharing, Use};
use super::waiting::{is_global, longest_under_ceiling, requests_in, sections_in, windows};
use super::{Blocking, Semantics};

pub(super) fn blocking(sharing: &Sharing, responses: &[u64], semantics: Semantics) -> Blocking {
    let agents = Agents { sharing, semantics };
    let mut result = Blocking::default();
    for window in windows(sharing, responses) {
        let cores = (0..sharing.cores_in_use as u32).filter(|&core| core != window.own().core);
        let remote = cores.fold(0, |sum: u64, core| sum.saturating_add(agents.elsewhere(&window, core)));
        result.spin.push(remote);
        result.arrival.push(agents.here(&window));
    }
    result
}

/// Who executes sections where.
struct Agents<'a> {
    sharing: &'a Sharing,
    semantics: Semantics,
}

impl<'a> Agents<'a> {
    /// Whether an agent of a core serves requests.
    fn serves(&self, core: u32, one: &Use) -> bool {
        let resource = &self.sharing.resources[one.resource];
        let serves = self.semantics == Semantics::SchedCat || resource.is_global();
        serves && self.sharing.tasks[resource.ceiling].core == core
    }

    /// What the agents of a core serve for other tasks than one.
    fn served(&'a self, core: u32, but: usize) -> impl Iterator<Item = (usize, &'a Use)> + 'a {
        let others = self.sharing.tasks.iter().enumerate().filter(move |(other, _)| *other != but);
        let uses = others.flat_map(|(other, task)| task.uses.iter().map(move |one| (other, one)));
        uses.filter(move |(_, one)| self.serves(core, one))
    }

    /// What delays requests that another core serves: all requests of tasks above, and one of a
    /// task below for each, under a ceiling that reaches the job.
    fn elsewhere(&self, window: &Window<'_>, core: u32) -> u64 {
        let own = window.own().uses.iter().filter(|one| self.serves(core, one));
        let mut left = own.fold(0, |sum: u64, one| sum.saturating_add(one.count()));
        if left == 0 {
            return 0;
        }
        let (above, mut below): (Vec<_>, Vec<_>) =
            self.served(core, window.task).partition(|(other, _)| *other < window.task);
        let mut sum = above.iter().fold(0, |sum: u64, (other, one)| {
            sum.saturating_add(sections_in(window, *other, one, window.response()))
        });
        below.retain(|(_, one)| self.sharing.resources[one.resource].ceiling <= window.task);
        below.sort_by_key(|(_, one)| std::cmp::Reverse(one.length_ns()));
        for (other, one) in below {
            let taken = requests_in(window, other, one, window.response()).min(left);
            left -= taken;
            sum = sum.saturating_add(taken.saturating_mul(one.length_ns()));
        }
        sum
    }

    /// What the agents of the job's own core execute meanwhile, and sections below a ceiling: one
    /// before it arrives and one for each request for which it suspends.
    fn here(&self, window: &Window<'_>) -> u64 {
        let agents = self.served(window.own().core, window.task).fold(0, |sum: u64, (other, one)| {
            sum.saturating_add(sections_in(window, other, one, window.response()))
        });
        if self.semantics == Semantics::SchedCat {
            return agents;
        }
        let suspends = window.own().uses.iter().filter(|one| is_global(self.sharing, one));
        let starts = suspends.fold(1, |sum: u64, one| sum.saturating_add(one.count()));
        agents.saturating_add(starts.saturating_mul(longest_under_ceiling(self.sharing, window.task)))
    }
}
