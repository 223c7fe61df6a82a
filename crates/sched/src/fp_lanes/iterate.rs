//! Least windows of several sets at once.
//!
//! In every round each lane evaluates the busy-window equation of its current level (see `window`),
//! and once that is decided, goes to the next level to check. Two things leave few levels to check.
//! The bounds settle the highest ones. And one window answers for others: if f_i(w) ≤ w, and j is
//! above i with B_j ≤ B_i + C_i, then f_j(w) ≤ w, too, because f_i has every term of f_j, the term
//! C_j at least once, and C_i + B_i; so j needs no check if w ≤ D_j - J_j. The lowest priority is
//! therefore checked first.
//!
//! Every accepted window has passed f(w) ≤ w in whole numbers below 2^53: no rounding is trusted.

#![expect(
    clippy::needless_range_loop,
    reason = "loops over lanes, by index in several rows, are what becomes vector instructions"
)]
#![expect(clippy::needless_bitwise_bool, reason = "a branch would keep a loop from that")]

use super::lanes::Lanes;
use crate::generate::portable::nearest;

/// Rounds at one level after which a set is decided by itself, under the caller's cap.
const ROUNDS: u32 = 20_000;

/// What came out of each lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Meets,
    Misses,
    /// Too many rounds, or never put into a lane.
    Apart,
}

/// The state of the lanes. A resting lane is at level -1, with a window and a demand of 0.
struct State<const L: usize> {
    level: [f64; L],
    window: [f64; L],
    base: [f64; L],
    limit: [f64; L],
    rounds: [u32; L],
    fate: [Fate; L],
}

/// Decides the lanes marked; `SAME`: all tasks of a lane have the same jitter.
#[inline(always)]
pub(super) fn decide<const L: usize, const SAME: bool>(
    lanes: &mut Lanes<L>,
    filled: &[bool; L],
) -> [Fate; L] {
    let bounds = lanes.bounds();
    let mut state = State {
        level: [-1.0; L],
        window: [0.0; L],
        base: [0.0; L],
        limit: [0.0; L],
        rounds: [0; L],
        fate: [Fate::Apart; L],
    };
    for l in 0..L {
        if filled[l] {
            state.fate[l] = if bounds.misses[l] { Fate::Misses } else { Fate::Meets };
            let count = lanes.count[l];
            if !bounds.misses[l] && bounds.easy[l] < count as f64 {
                state.enter(lanes, l, count - 1);
            }
        }
    }
    loop {
        let (mut lowest, mut highest) = (f64::MAX, -1.0);
        for level in state.level {
            highest = if level > highest { level } else { highest };
            lowest = if level >= 0.0 && level < lowest { level } else { lowest };
        }
        if highest < 0.0 {
            return state.fate;
        }
        let mut demand = state.base;
        add_demand::<L, SAME, false>(lanes, &state, 0..lowest as usize, &mut demand);
        add_demand::<L, SAME, true>(lanes, &state, lowest as usize..highest as usize, &mut demand);
        let mut events = 0u32;
        for l in 0..L {
            let settled = (demand[l] <= state.window[l]) | (demand[l] > state.limit[l]);
            events |= u32::from(settled & (state.level[l] >= 0.0)) << l;
            state.rounds[l] += 1;
        }
        while events != 0 {
            let l = events.trailing_zeros() as usize;
            events &= events - 1;
            // A start is at most the least window, but may lie beyond the limit, too.
            if demand[l] > state.limit[l] {
                state.rest(l, Fate::Misses);
            } else {
                state.step(lanes, l, bounds.easy[l] as usize);
            }
            demand[l] = state.window[l];
        }
        state.window = demand;
        if state.rounds.iter().any(|rounds| *rounds > ROUNDS) {
            for l in 0..L {
                if state.level[l] >= 0.0 && state.rounds[l] > ROUNDS {
                    state.rest(l, Fate::Apart);
                }
                state.rounds[l] = if state.level[l] < 0.0 { 0 } else { state.rounds[l] };
            }
        }
    }
}

impl<const L: usize> State<L> {
    #[inline(always)]
    fn enter(&mut self, lanes: &Lanes<L>, l: usize, level: usize) {
        self.level[l] = level as f64;
        self.window[l] = lanes.start(level, l);
        self.base[l] = lanes.cost[level][l] + lanes.blocking[level][l];
        self.limit[l] = lanes.limit[level][l];
        self.rounds[l] = 0;
    }

    #[inline(always)]
    fn rest(&mut self, l: usize, fate: Fate) {
        self.fate[l] = fate;
        self.level[l] = -1.0;
        self.window[l] = 0.0;
        self.base[l] = 0.0;
        self.limit[l] = 0.0;
    }

    /// The window of this level is in time: go to the next level above that it does not answer for.
    #[inline(always)]
    fn step(&mut self, lanes: &Lanes<L>, l: usize, easy: usize) {
        let (window, base) = (self.window[l], self.base[l]);
        let open = |level: &usize| lanes.limit[*level][l] < window || lanes.blocking[*level][l] > base;
        match (easy..self.level[l] as usize).rev().find(open) {
            Some(level) => self.enter(lanes, l, level),
            None => self.rest(l, Fate::Meets),
        }
    }
}

/// Adds ceil((w + J_k) / T_k) C_k of these levels, with `CUT` only where they are above the lane's
/// own.
///
/// The nearest integer q to (w + J) / T, computed from the inverse, is the ceiling or, if q T < w +
/// J, one below it: the error of the quotient is far below one half, and q T is exact.
#[inline(always)]
fn add_demand<const L: usize, const SAME: bool, const CUT: bool>(
    lanes: &Lanes<L>,
    state: &State<L>,
    levels: std::ops::Range<usize>,
    demand: &mut [f64; L],
) {
    let mut window = state.window;
    if SAME && let Some(jitter) = lanes.jitter.first() {
        for l in 0..L {
            window[l] += jitter[l];
        }
    }
    let mut sum = *demand;
    for k in levels {
        let (period, inverse, cost) = (&lanes.period[k], &lanes.inverse[k], &lanes.cost[k]);
        let jitter = &lanes.jitter[k];
        for l in 0..L {
            let x = if SAME { window[l] } else { window[l] + jitter[l] };
            let near = nearest(x * inverse[l]);
            let jobs = near + if near * period[l] < x { 1.0 } else { 0.0 };
            let counted = if CUT && k as f64 >= state.level[l] { 0.0 } else { cost[l] };
            sum[l] += jobs * counted;
        }
    }
    *demand = sum;
}
