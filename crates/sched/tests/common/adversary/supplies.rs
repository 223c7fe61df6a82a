//! Supply withheld in the worst way: the budget comes first in one period, last in the next ones.

use super::job::Job;
use super::simulate::Interrupt;
use sched::System;

/// The time that cores do not supply, in order of time: the longest gap begins where most jobs of
/// the core are ready at once, or a little beside it.
pub(crate) fn withheld(system: &System, jobs: &[Vec<Job>]) -> Vec<Interrupt> {
    let mut all = Vec::new();
    let end = jobs.iter().flatten().map(|job| job.due).max().unwrap_or(0);
    for core in 0..system.cores {
        let of_core = || system.tasks.iter().zip(jobs).filter(|(one, _)| one.core == core);
        let supply = of_core().find_map(|(one, _)| one.bounds.as_ref()?.supply);
        let Some(supply) = supply.filter(|supply| supply.budget_ns < supply.period_ns) else { continue };
        let gap = supply.period_ns - supply.budget_ns;
        let ready = || of_core().flat_map(|(_, jobs)| jobs).map(|job| job.ready);
        let most = ready().max_by_key(|&at| (ready().filter(|&one| one == at).count(), u64::MAX - at));
        let shift = ready().sum::<u64>() % 8;
        let most = most.unwrap_or(0);
        let from = if shift < 5 { most } else { (most + shift).saturating_sub(6) };
        // Before it the budget came first in every period.
        let first = (from + gap) % supply.period_ns;
        let mut period = first;
        if first >= gap {
            all.push(Interrupt { core, at: first - gap, ns: gap });
        }
        while period <= end + 2 * supply.period_ns {
            // This period begins with the gap if it is the next after `from`, or later.
            let at = if period >= from { period } else { period + supply.budget_ns };
            all.push(Interrupt { core, at, ns: gap });
            period += supply.period_ns;
        }
    }
    all.sort_by_key(|one| one.at);
    all
}
