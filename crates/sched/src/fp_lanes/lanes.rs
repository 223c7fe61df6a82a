//! Sets side by side, a set a lane: the data, and the bounds that need no iteration.
//!
//! Times are whole numbers of ns in floating point. Up to [`LARGEST`] their sums, and products with
//! a count of jobs that matter, stay below 2^53 and are exact, so that a comparison here is a
//! comparison of integers.

#![expect(
    clippy::needless_bitwise_bool,
    reason = "a branch would keep loops over lanes from becoming vector instructions"
)]

use crate::generate::columns::Columns;
use crate::generate::portable::floor;
use crate::task::TaskSet;

/// Largest time a lane takes, ns: 13 days. A set with a larger one is decided by itself.
pub(super) const LARGEST: u64 = 1 << 50;

/// Relative slack of bounds in floating point, as in `window`.
const MARGIN: f64 = 1e-9;

/// Level k of lane l in `[k][l]`.
#[derive(Debug, Clone)]
pub(super) struct Lanes<const L: usize> {
    /// Levels in use.
    pub(super) tasks: usize,
    pub(super) period: Vec<[f64; L]>,
    /// 1 / period.
    pub(super) inverse: Vec<[f64; L]>,
    pub(super) cost: Vec<[f64; L]>,
    pub(super) jitter: Vec<[f64; L]>,
    pub(super) blocking: Vec<[f64; L]>,
    /// Largest window in time: D - J.
    pub(super) limit: Vec<[f64; L]>,
    /// Levels of each lane; those above are padding without demand.
    pub(super) count: [usize; L],
    /// Numerator and denominator of the lower bound on each window.
    pub(super) bound: Vec<[[f64; L]; 2]>,
}

/// What the bounds say of each lane.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds<const L: usize> {
    /// Some level cannot be in time.
    pub(super) misses: [bool; L],
    /// Every level below this one is in time.
    pub(super) easy: [f64; L],
}

impl<const L: usize> Lanes<L> {
    pub(super) fn new(tasks: usize) -> Self {
        let rows = || vec![[0.0; L]; tasks];
        Self {
            tasks,
            period: vec![[1.0; L]; tasks],
            inverse: vec![[1.0; L]; tasks],
            cost: rows(),
            jitter: rows(),
            blocking: rows(),
            limit: rows(),
            count: [tasks; L],
            bound: vec![[[0.0; L]; 2]; tasks],
        }
    }

    /// Puts a set into a lane; false if it does not fit: D > T, a time above [`LARGEST`], or more
    /// tasks than levels.
    pub(super) fn put(&mut self, lane: usize, set: &TaskSet) -> bool {
        let fits = |task: &crate::task::Task| {
            task.deadline_ns <= task.period_ns
                && [task.period_ns, task.cost_ns, task.jitter_ns, task.blocking_ns]
                    .iter()
                    .all(|ns| *ns <= LARGEST)
        };
        if set.tasks().len() > self.tasks || !set.tasks().iter().all(fits) {
            return false;
        }
        self.count[lane] = set.tasks().len();
        for (level, task) in set.tasks().iter().enumerate() {
            self.period[level][lane] = task.period_ns as f64;
            self.inverse[level][lane] = 1.0 / task.period_ns as f64;
            self.cost[level][lane] = task.cost_ns as f64;
            self.jitter[level][lane] = task.jitter_ns as f64;
            self.blocking[level][lane] = task.blocking_ns as f64;
            self.limit[level][lane] = task.deadline_ns as f64 - task.jitter_ns as f64;
        }
        for level in set.tasks().len()..self.tasks {
            self.pad(lane, level);
        }
        true
    }

    /// Takes generated sets, with implicit deadlines and without jitter.
    #[inline(always)]
    pub(super) fn take(&mut self, columns: &Columns<L>) {
        self.period.clone_from_slice(&columns.periods);
        self.cost.clone_from_slice(&columns.costs);
        for (inverse, period) in self.inverse.iter_mut().zip(&self.period) {
            for l in 0..L {
                inverse[l] = 1.0 / period[l];
            }
        }
    }

    /// Gives every task of generated sets this jitter.
    #[inline(always)]
    pub(super) fn set_jitter(&mut self, jitter: f64) {
        self.jitter.fill([jitter; L]);
        for (limit, period) in self.limit.iter_mut().zip(&self.period) {
            for l in 0..L {
                limit[l] = period[l] - jitter;
            }
        }
    }

    fn pad(&mut self, lane: usize, level: usize) {
        self.period[level][lane] = 1.0;
        self.inverse[level][lane] = 1.0;
        self.cost[level][lane] = 0.0;
        self.jitter[level][lane] = 0.0;
        self.blocking[level][lane] = 0.0;
        self.limit[level][lane] = f64::MAX;
    }

    /// The bounds of Bini and Baruah (RTNS 2007) on every level, as in `window`, without a
    /// division: their denominators are positive where they are compared.
    #[inline(always)]
    pub(super) fn bounds(&mut self) -> Bounds<L> {
        let (mut load, mut late, mut carry) = ([0.0; L], [0.0; L], [0.0; L]);
        let mut misses = [0.0; L];
        let (mut easy, mut so_far) = ([0.0; L], [1.0; L]);
        for level in 0..self.tasks {
            let (cost, jitter) = (&self.cost[level], &self.jitter[level]);
            let (blocking, limit) = (&self.blocking[level], &self.limit[level]);
            let (inverse, bound) = (&self.inverse[level], &mut self.bound[level]);
            for l in 0..L {
                let ready = cost[l] + blocking[l] + late[l];
                let (most, least) = (1.0 - load[l] + MARGIN, 1.0 - load[l] - MARGIN);
                bound[0][l] = ready * (1.0 - MARGIN);
                bound[1][l] = most;
                let beyond = (most <= 0.0) | (bound[0][l] > (limit[l] + 1.0) * most) | (limit[l] < 0.0);
                misses[l] = if beyond { 1.0 } else { misses[l] };
                let within =
                    (least > 0.0) & ((ready + carry[l]) * (1.0 + MARGIN) <= (limit[l] - 1.0) * least);
                so_far[l] = if within { so_far[l] } else { 0.0 };
                easy[l] += so_far[l];
                let share = cost[l] * inverse[l];
                load[l] += share;
                late[l] += share * jitter[l];
                let rest = cost[l] * (1.0 - share);
                carry[l] += if rest > 0.0 { rest } else { 0.0 };
            }
        }
        Bounds { misses: misses.map(|one| one > 0.5), easy }
    }

    /// A window that the solution of this level is not below.
    #[inline(always)]
    pub(super) fn start(&self, level: usize, lane: usize) -> f64 {
        let [ready, idle] = &self.bound[level];
        let bound = ready[lane] / idle[lane] - 1.0;
        let own = self.cost[level][lane] + self.blocking[level][lane];
        if bound > own { floor(bound.min(2.0 * LARGEST as f64)) } else { own }
    }
}
