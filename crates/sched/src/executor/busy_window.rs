//! Bounds that count ready sets from the start of a busy window, at which nothing waits (RTSS 2021,
//! theorem 3): for every moment at which the instance looked at may be activated in it, all that
//! arrived before, and what polling points add.

use super::core::Core;
use crate::flow::Unanswered;

/// From the activation of the first of these callbacks to the end of the last, each activated by
/// the one before it, ns.
pub(super) fn response(core: &mut Core<'_>, chain: &[usize]) -> Result<u64, Unanswered> {
    let Some(&end) = chain.last() else { return Err(Unanswered::Late) };
    if core.overloaded {
        return Err(Unanswered::Late);
    }
    let polling_points = core.polling_points(chain)?;
    // No instance of a busy window is activated later (lemma 18).
    let latest = core.least(0, |core, time| {
        let own = core.arrived_in_busy_window(end, time)?;
        let others = others(core, end, time, time, polling_points)?;
        Ok(core.cost(end, own)?.saturating_add(others).saturating_add(1))
    })?;
    let mut worst = 0;
    for activation in activations(core, end, latest)? {
        let earlier = core.arrived_in_busy_window(end, activation + 1)?.saturating_sub(1);
        let start = core.least(0, |core, time| {
            let others = others(core, end, time, activation, polling_points)?;
            Ok(core.cost(end, earlier)?.saturating_add(others).saturating_add(1))
        })?;
        let ended = core.end_of(end, start, earlier)?;
        // Of a chain it is not known how long before it was activated.
        let since = if chain.len() == 1 { activation } else { 0 };
        worst = worst.max(ended.saturating_sub(since));
    }
    Ok(worst)
}

/// Execution of all other callbacks in a window of length `time`, if the instance looked at is
/// activated at `activation` (definition 5).
fn others(
    core: &mut Core<'_>,
    end: usize,
    time: u64,
    activation: u64,
    polling_points: u64,
) -> Result<u64, Unanswered> {
    let mut demand = 0u64;
    for load in (0..core.loads.len()).filter(|load| *load != end) {
        let arrived = core.arrived_in_busy_window(load, time)?;
        let before = core.arrived_in_busy_window(load, activation)?;
        let polled = before.saturating_add(polling_points);
        let count = core.interfering(load, end, Some(arrived), polled).unwrap_or(arrived);
        demand = demand.saturating_add(core.cost(load, count)?);
    }
    Ok(demand)
}

/// The activations that may be the worst, before `latest` (lemma 19).
fn activations(core: &mut Core<'_>, end: usize, latest: u64) -> Result<Vec<u64>, Unanswered> {
    let Some(last) = latest.checked_sub(1) else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for load in 0..core.loads.len() {
        if load != end && core.is_immediate(load) {
            continue;
        }
        let arrivals = core.loads[load].in_busy_window.as_ref().ok_or(Unanswered::Late)?;
        let mut steps = Vec::new();
        arrivals.steps(last, core.sources, core.rounds, &mut steps)?;
        // Of others those count that are there before the activation.
        let shift = u64::from(load != end);
        all.extend(steps.into_iter().map(|step| step + shift).filter(|step| *step <= last));
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}
