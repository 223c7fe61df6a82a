//! Ticks, as gaps of a busy loop. All gaps are stored; those at a tick's interval are found later.

use super::{Bench, Term};
use crate::batch;
use sys::clock;

/// The most gaps that are kept: on a machine this noisy, ticks cannot be distinguished from noise.
const ROOM: usize = 1 << 14;
/// The pause before the loop.
const REST_NS: i64 = 300_000_000;

pub(super) fn gaps(bench: &mut Bench<'_>) {
    // What ran before counts towards the second that real-time throttling looks at.
    batch::wait_until(bench.ring, clock::now_ns() + REST_NS);
    let (threshold, turn) = bench.turn();
    let mut gaps = vec![(1, 1); ROOM];
    gaps.clear();
    let begin = bench.now();
    let until = begin + bench.ticks(bench.spec.gaps_ns);
    let mut last = begin;
    while last < until && gaps.len() < ROOM && !bench.ring.stopped() {
        let now = bench.now();
        let gap = now.wrapping_sub(last);
        if gap >= threshold {
            gaps.push((last, gap as i64));
        }
        last = now;
    }
    if gaps.len() == ROOM {
        let limit = format!(
            "the loop that looks for ticks ended early: {ROOM} gaps in {} ns",
            bench.ns((last - begin) as i64)
        );
        bench.finished.limits.push(limit);
    }
    bench.store(Term::Gap, 0, turn, &gaps);
}
