//! The busy-window equation of `window` for all higher priorities at once, in vector units: the
//! core of response times.
//!
//! Times are whole numbers in floating point. Up to [`LARGEST`] they and their sums are exact:
//! where a product or sum is not, it is above every deadline, and so is what it is rounded to. The
//! number of jobs is the nearest integer q to (w + J) / T, computed from the inverse, or one more
//! if q T < w + J: the error of the quotient is far below one half, and q T is exact.

#![expect(
    clippy::needless_range_loop,
    reason = "loops over lanes, by index in several rows, are what becomes vector instructions"
)]

use crate::generate::portable::nearest;
use crate::task::Task;
use crate::window::Window;
use pulp::{Arch, Simd, WithSimd};

/// Largest time that goes into a column, ns: 13 days.
const LARGEST: u64 = 1 << 50;

/// Tasks side by side.
const LANES: usize = 8;

/// Tasks of one core by priority, in blocks.
#[derive(Debug, Clone)]
pub(crate) struct Columns {
    arch: Arch,
    blocks: Vec<Block>,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    period: [f64; LANES],
    inverse: [f64; LANES],
    cost: [f64; LANES],
    jitter: [f64; LANES],
}

impl Default for Columns {
    fn default() -> Self {
        Self { arch: Arch::new(), blocks: Vec::new() }
    }
}

impl Columns {
    /// Takes tasks in priority order in place of those before; false where a time is too large.
    pub(crate) fn take(&mut self, tasks: &[Task]) -> bool {
        self.blocks.clear();
        let large = |task: &Task| task.period_ns.max(task.cost_ns).max(task.jitter_ns) > LARGEST;
        if tasks.iter().any(large) {
            return false;
        }
        let block = |tasks: &[Task]| {
            let mut block = Block {
                period: [1.0; LANES],
                inverse: [1.0; LANES],
                cost: [0.0; LANES],
                jitter: [0.0; LANES],
            };
            for (lane, task) in tasks.iter().enumerate() {
                block.period[lane] = task.period_ns as f64;
                block.inverse[lane] = 1.0 / task.period_ns as f64;
                block.cost[lane] = task.cost_ns as f64;
                block.jitter[lane] = task.jitter_ns as f64;
            }
            block
        };
        self.blocks.extend(tasks.chunks(LANES).map(block));
        true
    }

    /// The least solution of w = base + demand of the first `higher` tasks if it is at most
    /// `limit`; `start` must not exceed it. As [`crate::window::Demand::least`], none where a
    /// number is too large.
    pub(crate) fn least(&self, question: Question, rounds: &mut u64, cap: u64) -> Option<Window> {
        let Question { base, start, limit, higher } = question;
        if start > limit {
            return Some(Window::Beyond);
        }
        if limit > LARGEST || base > LARGEST {
            return None;
        }
        let blocks = &self.blocks[..higher.div_ceil(LANES)];
        let last = higher - higher / LANES * LANES;
        let least = Least {
            blocks,
            last,
            base: base as f64,
            start: start as f64,
            limit: limit as f64,
            cap: cap.saturating_sub(*rounds),
        };
        let (window, spent) = self.arch.dispatch(least);
        *rounds += spent;
        Some(window)
    }
}

/// What is asked of the columns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question {
    /// Demand that does not depend on the window, ns.
    pub(crate) base: u64,
    /// Where to begin.
    pub(crate) start: u64,
    /// Where to give up.
    pub(crate) limit: u64,
    /// How many tasks are above.
    pub(crate) higher: usize,
}

struct Least<'a> {
    blocks: &'a [Block],
    /// So many lanes of the last block count; 0: all.
    last: usize,
    base: f64,
    start: f64,
    limit: f64,
    cap: u64,
}

impl WithSimd for Least<'_> {
    type Output = (Window, u64);

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Self::Output {
        let mut window = self.start;
        for round in 0..self.cap {
            let next = self.demand(window);
            if next <= window {
                return (Window::Exact(window as u64), round + 1);
            }
            if next > self.limit {
                return (Window::Beyond, round + 1);
            }
            window = next;
        }
        (Window::Undecided, self.cap)
    }
}

impl Least<'_> {
    #[inline(always)]
    fn demand(&self, window: f64) -> f64 {
        let mut sums = [0.0; LANES];
        let (whole, rest) = match self.blocks {
            [whole @ .., rest] if self.last > 0 => (whole, Some(rest)),
            whole => (whole, None),
        };
        for block in whole {
            let demand = block.demand(window);
            for lane in 0..LANES {
                sums[lane] += demand[lane];
            }
        }
        if let Some(block) = rest {
            let demand = block.demand(window);
            for lane in 0..LANES {
                sums[lane] += if lane < self.last { demand[lane] } else { 0.0 };
            }
        }
        // In pairs: each addition waits for the one before. The order is no matter, see above.
        let four = |at: usize| (sums[at] + sums[at + 1]) + (sums[at + 2] + sums[at + 3]);
        self.base + (four(0) + four(4))
    }
}

impl Block {
    #[inline(always)]
    fn demand(&self, window: f64) -> [f64; LANES] {
        let mut demand = [0.0; LANES];
        for lane in 0..LANES {
            let x = window + self.jitter[lane];
            let near = nearest(x * self.inverse[lane]);
            let jobs = near + if near * self.period[lane] < x { 1.0 } else { 0.0 };
            demand[lane] = jobs * self.cost[lane];
        }
        demand
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::Demand;
    use proptest::prelude::*;

    fn task(longest: u64) -> impl Strategy<Value = Task> {
        (1..=longest, 1..=longest, 0..=longest).prop_map(|(period_ns, cost, jitter_ns)| Task {
            jitter_ns,
            ..Task::implicit(period_ns, (cost / 8).max(1))
        })
    }

    fn same(tasks: &[Task], base: u64, start: u64, limit: u64) {
        let mut columns = Columns::default();
        assert!(columns.take(tasks));
        for higher in 0..=tasks.len() {
            let demand = Demand { base, higher: &tasks[..higher], extra_jitter: 0 };
            let (mut one, mut other) = (0, 0);
            let fast = columns.least(Question { base, start, limit, higher }, &mut one, 3000);
            let slow = demand.least(start, limit, &mut other, 3000);
            assert_eq!(fast, Some(slow), "{tasks:?} {higher}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        #[test]
        fn as_in_whole_numbers(
            small in prop::collection::vec(task(60), 0..20), large in prop::collection::vec(task(LARGEST), 0..20),
            base in 1u64..90, scale in 0u32..44,
        ) {
            same(&small, base, base, 4_000);
            same(&large, base << scale, base, LARGEST);
            let mixed: Vec<Task> = small.iter().chain(&large).copied().collect();
            same(&mixed, base, base, LARGEST);
        }
    }

    #[test]
    fn what_is_too_large_is_left_to_whole_numbers() {
        let big = Task::implicit(LARGEST + 1, 1);
        let mut columns = Columns::default();
        assert!(!columns.take(&[big]));
        assert!(columns.take(&[Task::implicit(3, 1)]));
        let question = Question { base: LARGEST + 1, start: 1, limit: 5, higher: 1 };
        assert_eq!(columns.least(question, &mut 0, 9), None);
        let question = Question { base: 2, start: 2, limit: 9, higher: 1 };
        assert_eq!(columns.least(question, &mut 0, 0), Some(Window::Undecided));
        assert_eq!(columns.least(question, &mut 0, 9), Some(Window::Exact(3)));
    }
}
