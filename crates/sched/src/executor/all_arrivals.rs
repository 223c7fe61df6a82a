//! Bounds that count all that arrives in a busy window before an instance starts, whatever ready
//! sets do (ECRTS 2019, lemmas 3, 4, 5 and 8).

use super::core::Core;
use crate::flow::Unanswered;

/// What is looked at.
struct Looked<'a> {
    /// The callbacks of the chain.
    chain: &'a [usize],
    /// Those that delay it.
    others: Vec<usize>,
    /// How long those may that do not.
    blocking_ns: u64,
}

/// From the activation of the first of these callbacks to the end of the last, ns; each but the
/// first is activated by the one before it alone, and in its executor.
pub(super) fn response(core: &mut Core<'_>, chain: &[usize]) -> Result<u64, Unanswered> {
    let (&[first, ..], Some(&end)) = (chain, chain.last()) else { return Err(Unanswered::Late) };
    let timer = chain.len() == 1 && core.is_immediate(end);
    let delays = |core: &Core<'_>, load: usize| !timer || (core.is_immediate(load) && load < end);
    let apart = (0..core.loads.len()).filter(|load| !chain.contains(load));
    let (others, later): (Vec<usize>, Vec<usize>) = apart.partition(|&load| delays(core, load));
    // Timers wait for whatever is being executed, and for timers registered before.
    let mut blocking_ns = 0;
    for load in later {
        blocking_ns = core.cost(load, 1)?.max(blocking_ns);
    }
    // A timer is bounded in an executor that does not keep up with the rest.
    if core.overloaded && !timer {
        return Err(Unanswered::Late);
    }
    let looked = Looked { chain, others, blocking_ns };
    let longest = core.least(0, |core, time| {
        let own = looked.of_chain(core, time, chain)?;
        Ok(own.saturating_add(looked.of_others(core, time)?))
    })?;
    let mut activations = Vec::new();
    let arrivals = core.loads[first].in_busy_window.as_ref().ok_or(Unanswered::Late)?;
    arrivals.steps(longest, core.sources, core.rounds, &mut activations)?;
    activations.sort_unstable();
    activations.dedup();
    let mut worst = 0;
    for activation in activations {
        let response = core.least(activation, |core, response| {
            let until = activation + response;
            let instances = core.arrived_in_busy_window(first, until)?;
            let cost = core.loads[end].costs.least(instances).ok_or(Unanswered::Undecided)?;
            // What comes after the start does not delay it.
            let started = until.saturating_sub(cost).max(activation) + 1;
            let own = looked.of_chain(core, activation + 1, &[end])?;
            let before = looked.of_chain(core, started, &chain[..chain.len() - 1])?;
            Ok(own.saturating_add(before).saturating_add(looked.of_others(core, started)?))
        })?;
        worst = worst.max(response);
    }
    Ok(worst)
}

impl Looked<'_> {
    /// Execution of callbacks of the chain, all of which have the arrivals of the first.
    fn of_chain(&self, core: &mut Core<'_>, time: u64, callbacks: &[usize]) -> Result<u64, Unanswered> {
        let instances = core.arrived_in_busy_window(self.chain[0], time)?;
        callbacks.iter().try_fold(0u64, |sum, &load| Ok(sum.saturating_add(core.cost(load, instances)?)))
    }

    fn of_others(&self, core: &mut Core<'_>, time: u64) -> Result<u64, Unanswered> {
        self.others.iter().try_fold(self.blocking_ns, |sum, &load| {
            let instances = core.arrived_in_busy_window(load, time)?;
            Ok(sum.saturating_add(core.cost(load, instances)?))
        })
    }
}
