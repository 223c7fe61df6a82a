//! Drawn executors of ROS 2.

use super::Numbers;
use sched::Supply;
use sched::executor::{Callback, CallbackChain, CallbackKind, ExecutorSystem, External, ReadyOrder};

/// What is drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drawn {
    pub(crate) order: ReadyOrder,
    /// Load of each executor, percent of what it gets.
    pub(crate) load: (u64, u64),
    /// Most delay between callbacks, ns.
    pub(crate) delay: u64,
    /// All times are multiples of this, ns.
    pub(crate) unit: u64,
}

/// Up to seven callbacks in one to three executors, and one or two chains.
pub(crate) fn draw(drawn: Drawn, numbers: &mut Numbers) -> ExecutorSystem {
    let executors = numbers.between(1, 3) as usize;
    let count = numbers.between(2, 7) as usize;
    let load = numbers.between(drawn.load.0, drawn.load.1);
    let supplies: Vec<Option<Supply>> = (0..executors).map(|_| supply(drawn.unit, numbers)).collect();
    let mut callbacks: Vec<Callback> = Vec::new();
    let mut rates: Vec<f64> = Vec::new();
    for place in 0..count {
        let triggered = place > 0 && numbers.between(0, 9) < 6;
        let (mut after, mut external, mut rate) = (Vec::new(), None, 0.0);
        if triggered {
            for _ in 0..numbers.between(1, 5).div_ceil(3) {
                let before = numbers.between(0, place as u64 - 1) as usize;
                if !after.contains(&before) && rates[before] + rate < 0.2 {
                    after.push(before);
                    rate += rates[before];
                }
            }
        }
        if after.is_empty() || numbers.between(0, 9) == 0 {
            let period = numbers.between(10, 80);
            external = Some(activations(period, drawn.unit, numbers));
            rate += 1.0 / period as f64;
        }
        let kind = match numbers.between(0, 7) {
            0..=2 if after.is_empty() => CallbackKind::Timer,
            0..=4 => CallbackKind::Subscription,
            5 => CallbackKind::Service,
            6 => CallbackKind::Client,
            _ => CallbackKind::Waitable,
        };
        let delay_ns =
            if after.is_empty() { 0 } else { numbers.between(0, 1) * numbers.between(0, drawn.delay) };
        rates.push(rate);
        callbacks.push(Callback {
            kind,
            executor: numbers.between(0, executors as u64 - 1) as usize,
            cost_ns: 0,
            costs_ns: Vec::new(),
            external,
            after,
            delay_ns: delay_ns * drawn.unit,
            deadline_ns: None,
        });
    }
    for (executor, supply) in supplies.iter().enumerate() {
        let weights: Vec<u64> = callbacks.iter().map(|_| numbers.between(1, 20)).collect();
        let here = |one: &Callback| one.executor == executor;
        let all: u64 =
            callbacks.iter().zip(&weights).filter(|(one, _)| here(one)).map(|(_, weight)| weight).sum();
        let share = supply.map_or(1.0, Supply::share) * load as f64 / 100.0;
        for (place, one) in callbacks.iter_mut().enumerate().filter(|(_, one)| here(one)) {
            let cost = share * weights[place] as f64 / all as f64 / rates[place];
            let cost = (cost as u64).clamp(1, 60);
            one.cost_ns = cost * drawn.unit;
            if numbers.between(0, 3) == 0 {
                // The first costs more than those that follow it.
                let more = numbers.between(0, cost);
                one.costs_ns =
                    (0..numbers.between(2, 4)).map(|at| (cost + more + at * cost) * drawn.unit).collect();
                one.cost_ns = one.costs_ns[0];
            }
        }
    }
    let chains = (0..numbers.between(1, 2)).map(|_| chain(&callbacks, numbers)).collect();
    ExecutorSystem { order: drawn.order, executors: supplies, callbacks, chains }
}

/// From any callback backwards.
fn chain(callbacks: &[Callback], numbers: &mut Numbers) -> CallbackChain {
    let mut at = numbers.between(callbacks.len() as u64 / 2, callbacks.len() as u64 - 1) as usize;
    let mut chain = vec![at];
    while let [_, ..] = &callbacks[at].after[..] {
        at = callbacks[at].after[numbers.between(0, callbacks[at].after.len() as u64 - 1) as usize];
        chain.insert(0, at);
    }
    CallbackChain { callbacks: chain, limit_ns: None }
}

/// A period, with jitter in one of three, or a burst.
fn activations(period: u64, unit: u64, numbers: &mut Numbers) -> External {
    let jitter = numbers.between(0, 2) / 2 * numbers.between(0, 2 * period);
    let intervals: Vec<u64> = match numbers.between(0, 3) {
        0 => {
            let count = numbers.between(2, 4);
            // Even steps, then a rest: each interval follows from those before it.
            let step = numbers.between(0, period);
            (1..=count).map(|at| if at == count { period * count } else { step * at }).collect()
        }
        _ => Vec::new(),
    };
    let mut intervals_ns: Vec<u64> = intervals.into_iter().map(|interval| interval * unit).collect();
    intervals_ns.sort_unstable();
    External { period_ns: period * unit, intervals_ns, jitter_ns: jitter * unit }
}

fn supply(unit: u64, numbers: &mut Numbers) -> Option<Supply> {
    let period = numbers.between(2, 12);
    let budget = numbers.between(period.div_ceil(3), period);
    (numbers.between(0, 2) > 0).then_some(Supply { budget_ns: budget * unit, period_ns: period * unit })
}
