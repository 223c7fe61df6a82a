//! Bounds that count ready sets: between the activation of an instance and its start each other
//! callback is executed once for each polling point, and once more (RTSS 2021, theorem 2).

use super::core::Core;
use crate::flow::Unanswered;

/// From the activation of the first of these callbacks to the end of the last, each activated by
/// the one before it, ns.
pub(super) fn response(core: &mut Core<'_>, chain: &[usize]) -> Result<u64, Unanswered> {
    let Some(&end) = chain.last() else { return Err(Unanswered::Late) };
    let polling_points = core.polling_points(chain)?;
    // What waits already was activated within the longest response of its callback.
    let start = core.least(0, |core, time| {
        let mut demand = 1u64;
        for load in (0..core.loads.len()).filter(|load| *load != end) {
            let arrived = match core.loads[load].response_ns {
                Some(response_ns) if core.loads[load].arrivals.is_some() => {
                    Some(core.arrived(load, time.saturating_add(response_ns).saturating_sub(1))?)
                }
                _ => None,
            };
            let count = core.interfering(load, end, arrived, polling_points);
            demand = demand.saturating_add(core.cost(load, count.ok_or(Unanswered::Late)?)?);
        }
        let earlier = earlier(core, end, time)?;
        Ok(demand.saturating_add(core.cost(end, earlier)?))
    })?;
    let earlier = earlier(core, end, start)?;
    core.end_of(end, start, earlier)
}

/// The most instances of the last callback that are executed before the one looked at.
fn earlier(core: &mut Core<'_>, end: usize, time: u64) -> Result<u64, Unanswered> {
    let response_ns = core.loads[end].response_ns.ok_or(Unanswered::Late)?;
    let arrived = core.arrived(end, time.saturating_add(response_ns).saturating_sub(1))?;
    Ok(arrived.saturating_sub(1))
}
