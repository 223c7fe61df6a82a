//! Least solution of the level-i busy-window equation
//!
//! > w = base + sum over higher priorities k of ceil((w + J_k) / T_k) C_k
//!
//! by fixed-point iteration (Joseph and Pandya 1986; with release jitter: Audsley et al. 1993), and
//! bounds on it that need no iteration (Bini and Baruah, "Efficient computation of response time
//! bounds under fixed-priority scheduling", RTNS 2007).
//!
//! The right-hand side f is monotone. From any start at or below the least solution the iterates
//! stay at or below it, and the first w with f(w) <= w is the least solution itself
//! (Knaster-Tarski), so a good lower bound changes the number of rounds but never the answer.

use crate::task::Task;

/// Relative slack that makes the floating-point bounds safe: it covers the rounding of a sum over
/// [`crate::MAX_TASKS`] utilizations (2^20 terms of 2^-53 each) with room to spare.
const MARGIN: f64 = 1e-9;

/// How much work one task may cost.
///
/// The equation is pseudo-polynomial: near full utilization the rounds can be as many as the
/// nanoseconds of a deadline. A task that reaches the cap is reported as undecided, never as
/// schedulable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Evaluations of the equation a task.
    pub rounds_per_task: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { rounds_per_task: 1_000_000 }
    }
}

/// Task visits that a whole set may cost for each of [`Limits::rounds_per_task`]: some seconds by
/// default, however many tasks there are.
const LOOKS_A_ROUND: u64 = 3_000;

/// The rest of the work that a whole set may cost: with a million tasks even one round for each is
/// too much.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    limits: Limits,
    looks_left: u64,
}

impl Work {
    pub(crate) fn of(limits: Limits) -> Self {
        Self { limits, looks_left: limits.rounds_per_task.saturating_mul(LOOKS_A_ROUND) }
    }

    /// Limits of a question whose rounds visit this many tasks each; none where no work is left.
    pub(crate) fn rounds_of(&self, tasks: usize) -> Option<Limits> {
        let wanted = self.limits.rounds_per_task;
        // Mostly there is enough, which a multiplication shows sooner than a division.
        let is_enough =
            wanted.checked_mul((tasks as u64).max(1)).is_some_and(|looks| looks <= self.looks_left);
        let rounds = if is_enough { wanted } else { wanted.min(self.rounds_left(tasks)) };
        (rounds > 0).then_some(Limits { rounds_per_task: rounds })
    }

    /// Rounds that are left where each visits this many tasks.
    pub(crate) fn rounds_left(&self, tasks: usize) -> u64 {
        self.looks_left / (tasks as u64).max(1)
    }

    /// Takes off what it has cost.
    pub(crate) fn spend(&mut self, rounds: u64, tasks: usize) {
        self.looks_left =
            self.looks_left.saturating_sub(rounds.saturating_add(1).saturating_mul(tasks as u64));
    }
}

/// The right-hand side of the equation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Demand<'a> {
    /// Demand that does not depend on the window: own jobs and blocking, ns.
    pub(crate) base: u64,
    /// Higher-priority tasks.
    pub(crate) higher: &'a [Task],
    /// Release jitter added to each of them, ns.
    pub(crate) extra_jitter: u64,
}

/// Where the iteration ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Window {
    /// The least solution.
    Exact(u64),
    /// The least solution is above the limit, or there is none.
    Beyond,
    /// Rounds ran out first.
    Undecided,
}

/// The least w with f(w) <= w if it is at most `limit`, of a monotone f. `start` must not exceed
/// it.
#[inline]
pub(crate) fn least(f: impl Fn(u64) -> u64, start: u64, limit: u64, rounds: &mut u64, cap: u64) -> Window {
    let mut window = start;
    loop {
        if window > limit {
            return Window::Beyond;
        }
        if *rounds >= cap {
            return Window::Undecided;
        }
        *rounds += 1;
        let next = f(window);
        if next <= window {
            return Window::Exact(window);
        }
        window = next;
    }
}

impl Demand<'_> {
    /// f(w). Saturates, which reads as "beyond every limit".
    pub(crate) fn at(&self, window: u64) -> u64 {
        self.higher.iter().fold(self.base, |sum, task| {
            let arrivals_in = window.saturating_add(task.jitter_ns).saturating_add(self.extra_jitter);
            sum.saturating_add(arrivals_in.div_ceil(task.period_ns).saturating_mul(task.cost_ns))
        })
    }

    /// The least solution if it is at most `limit`. `start` must not exceed it.
    pub(crate) fn least(&self, start: u64, limit: u64, rounds: &mut u64, cap: u64) -> Window {
        least(|window| self.at(window), start, limit, rounds, cap)
    }

    /// By how much the jitter of all tasks may still grow while `window` stays the least solution.
    ///
    /// It stays a solution until one ceiling changes, and a larger jitter has no smaller solution.
    pub(crate) fn jitter_slack(&self, window: u64) -> u64 {
        let slack = |task: &Task| {
            let arrivals_in = window.saturating_add(task.jitter_ns).saturating_add(self.extra_jitter);
            match arrivals_in % task.period_ns {
                0 => 0,
                rest => task.period_ns - rest,
            }
        };
        self.higher.iter().map(slack).min().unwrap_or(u64::MAX)
    }
}

/// Running sums over the higher-priority tasks, from which the bounds follow in constant time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Load {
    /// Sum of U_k = C_k / T_k.
    utilization: f64,
    /// Sum of U_k J_k.
    jitter: f64,
    /// Sum of C_k (1 - U_k).
    carry: f64,
}

impl Load {
    /// Sums over `tasks`, each with `extra_jitter` on top of its own.
    pub(crate) fn of(tasks: &[Task], extra_jitter: u64) -> Self {
        let mut load = Self::default();
        for task in tasks {
            load.add(task, extra_jitter);
        }
        load
    }

    /// Adds one task. There is no way to take one out: a difference of large sums would lose the
    /// relative precision that [`MARGIN`] relies on.
    pub(crate) fn add(&mut self, task: &Task, extra_jitter: u64) {
        let utilization = task.utilization();
        self.utilization += utilization;
        self.jitter += utilization * (task.jitter_ns as f64 + extra_jitter as f64);
        self.carry += task.cost_ns as f64 * (1.0 - utilization).max(0.0);
    }

    /// Certainly above 1: the equation has no solution, or the queue grows without end.
    pub(crate) fn overloaded(&self) -> bool {
        self.utilization > 1.0 + MARGIN
    }

    /// A window no solution is below: dropping the ceilings gives w >= (base + sum U J) / (1 - sum
    /// U).
    pub(crate) fn lower_bound(&self, base: u64) -> u64 {
        let idle = 1.0 - self.utilization + MARGIN;
        if idle <= 0.0 {
            return u64::MAX;
        }
        let bound = (base as f64 + self.jitter) / idle * (1.0 - MARGIN) - 1.0;
        base.max(bound as u64)
    }

    /// A window the least solution is not above, or `None` near full load.
    ///
    /// What task k *executes* in [0, w] is at most U_k (w + J_k) + C_k (1 - U_k): at most the demand
    /// released, and no more than it would execute alone. For the last ceiling's remainder r = (w + J_k)
    /// mod T_k, the first bound proves it if r >= C_k and the second, counted from the last release, if r
    /// < C_k.
    pub(crate) fn upper_bound(&self, base: u64) -> Option<f64> {
        let idle = 1.0 - self.utilization - MARGIN;
        let bound = (base as f64 + self.jitter + self.carry) / idle * (1.0 + MARGIN) + 1.0;
        (idle > 0.0).then_some(bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn task() -> impl Strategy<Value = Task> {
        (2u64..400, 1u64..60, 0u64..300).prop_map(|(period_ns, cost_ns, jitter_ns)| Task {
            jitter_ns,
            ..Task::implicit(period_ns, cost_ns.min(period_ns))
        })
    }

    proptest! {
        #[test]
        fn bounds_enclose_the_least_solution(
            higher in prop::collection::vec(task(), 0..8), base in 1u64..200, extra_jitter in 0u64..50,
        ) {
            let demand = Demand { base, higher: &higher, extra_jitter };
            let load = Load::of(&higher, extra_jitter);
            let slow = (base..200_000).find(|&w| demand.at(w) <= w);
            if let Some(least) = slow {
                prop_assert!(load.lower_bound(base) <= least);
                if let Some(upper) = load.upper_bound(base) {
                    prop_assert!(least as f64 <= upper, "{least} above {upper}");
                }
                let found = demand.least(load.lower_bound(base), least, &mut 0, 1_000_000);
                prop_assert_eq!(found, Window::Exact(least));
                prop_assert_eq!(demand.least(base, least - 1, &mut 0, 1_000_000), Window::Beyond);
            }
        }

        #[test]
        fn slack_is_exact(
            higher in prop::collection::vec(task(), 1..5), base in 1u64..50, extra_jitter in 0u64..50,
        ) {
            let at = |extra: u64| {
                Demand { base, higher: &higher, extra_jitter: extra }.least(base, 100_000, &mut 0, 1_000_000)
            };
            if let Window::Exact(window) = at(extra_jitter) {
                let slack = Demand { base, higher: &higher, extra_jitter }.jitter_slack(window);
                prop_assert_eq!(at(extra_jitter + slack), Window::Exact(window));
                prop_assert_ne!(at(extra_jitter + slack + 1), Window::Exact(window));
            }
        }
    }

    #[test]
    fn no_overflow_at_the_edges_of_the_ranges() {
        let huge = Task { jitter_ns: crate::MAX_NS, ..Task::implicit(1, crate::MAX_NS) };
        let demand = Demand { base: crate::MAX_NS, higher: &[huge; 3], extra_jitter: u64::MAX };
        assert_eq!(demand.at(u64::MAX), u64::MAX);
        assert_eq!(demand.least(1, crate::MAX_NS, &mut 0, 10), Window::Beyond);
        assert_eq!(Load::of(&[huge], u64::MAX).lower_bound(1), u64::MAX);
        assert!(Load::of(&[huge], 0).upper_bound(1).is_none());
    }

    #[test]
    fn the_cap_is_kept() {
        let full = Task::implicit(1_000_000_007, 1_000_000_006);
        let demand = Demand { base: 1, higher: &[full], extra_jitter: 0 };
        let mut rounds = 0;
        assert_eq!(demand.least(1, u64::MAX, &mut rounds, 1), Window::Undecided);
        assert_eq!(rounds, 1);
    }
}
