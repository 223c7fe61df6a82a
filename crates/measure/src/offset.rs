//! How far the counters of two CPUs are apart, and how well that is known, by ping-pong over shared
//! memory.
//!
//! The leader stamps, the follower stamps in between, the leader stamps again. The follower's
//! counter read its value at some time between the leader's two, so every round bounds the offset
//! from both sides (F. Cristian, "Probabilistic clock synchronization", Distributed Computing 3
//! (1989)); all rounds together bound it by the intersection of their intervals.

use std::sync::atomic::{AtomicU64, Ordering};
use sys::clock;
use sys::counter::Counter;
use sys::relax::relax;

/// Reads a counter neither before what precedes it in the program nor after what follows: between
/// two CPUs the order is the meaning.
#[inline(always)]
pub(crate) fn stamp(counter: Counter) -> u64 {
    match counter {
        Counter::Cpu => ordered(),
        // The vDSO orders its own read.
        Counter::Monotonic => clock::now_ns() as u64,
    }
}

/// LFENCE waits for all earlier instructions, and holds later ones back (Intel SDM vol. 2; on AMD
/// where the kernel sets DE_CFG[1], which Linux does since 4.15).
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn ordered() -> u64 {
    use core::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: SSE2 and RDTSC belong to every x86-64 CPU.
    unsafe {
        _mm_lfence();
        let ticks = _rdtsc();
        _mm_lfence();
        ticks
    }
}

/// ISB as in the kernel's own `__arch_counter_get_cntvct()`.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn ordered() -> u64 {
    let ticks: u64;
    // SAFETY: Linux lets user space read CNTVCT_EL0 on every arm64 machine.
    unsafe { core::arch::asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) ticks, options(nostack)) };
    ticks
}

/// Rounds of one measurement: about a tenth of a millisecond between cores of one package.
pub(crate) const ROUNDS: u64 = 512;

/// What the two sides write to, each on a cache line pair of its own.
#[derive(Debug, Default)]
pub(crate) struct Table {
    ping: Line,
    pong: Line,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Line {
    round: AtomicU64,
    ticks: AtomicU64,
}

/// One round, in ticks: the leader's stamps around the follower's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Round {
    /// The leader, before.
    pub sent: u64,
    /// The follower.
    pub remote: u64,
    /// The leader, after.
    pub back: u64,
}

/// The leader's side. The follower must be there, and runs [`follow`].
pub(crate) fn lead(table: &Table, counter: Counter) -> Vec<Round> {
    let mut rounds = vec![Round { sent: 1, remote: 1, back: 1 }; ROUNDS as usize];
    for (number, round) in (1..).zip(&mut rounds) {
        round.sent = stamp(counter);
        table.ping.round.store(number, Ordering::Release);
        while table.pong.round.load(Ordering::Acquire) < number {
            relax();
        }
        round.back = stamp(counter);
        round.remote = table.pong.ticks.load(Ordering::Relaxed);
    }
    rounds
}

/// The follower's side.
pub(crate) fn follow(table: &Table, counter: Counter) {
    for number in 1..=ROUNDS {
        while table.ping.round.load(Ordering::Acquire) < number {
            relax();
        }
        table.pong.ticks.store(stamp(counter), Ordering::Relaxed);
        table.pong.round.store(number, Ordering::Release);
    }
}

/// The follower's counter minus the leader's, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset {
    /// The middle of what is possible.
    pub ticks: i64,
    /// It is at most so many ticks more or less.
    pub bound: u64,
}

/// The offset that all rounds allow; none without rounds.
///
/// Where no offset satisfies all of them (the counters drift or jump), the bound covers both rounds
/// that contradict one another most.
pub(crate) fn offset(rounds: &[Round]) -> Option<Offset> {
    let interval = |round: &Round| {
        (round.remote.wrapping_sub(round.back) as i64, round.remote.wrapping_sub(round.sent) as i64)
    };
    let highest_low = rounds.iter().map(interval).max_by_key(|(low, _)| *low)?;
    let lowest_high = rounds.iter().map(interval).min_by_key(|(_, high)| *high)?;
    let (from, to) = if highest_low.0 <= lowest_high.1 {
        (highest_low.0, lowest_high.1)
    } else {
        (lowest_high.0, highest_low.1)
    };
    let width = to.abs_diff(from);
    Some(Offset { ticks: from + (width / 2) as i64, bound: width.div_ceil(2) })
}

/// One offset for the time between two measurements: their middle; the bound covers both.
pub(crate) fn between(before: Offset, after: Offset) -> Offset {
    let (low, high) = (before.ticks.min(after.ticks), before.ticks.max(after.ticks));
    let apart = high.abs_diff(low);
    Offset { ticks: low + (apart / 2) as i64, bound: before.bound.max(after.bound) + apart.div_ceil(2) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_bound(
            truth in -1_000_000_000i64..1_000_000_000,
            legs in proptest::collection::vec((0u64..5_000, 0u64..5_000), 1..50),
        ) {
            let mut now = 10_000_000_000u64;
            let rounds: Vec<Round> = legs
                .iter()
                .map(|&(there, back)| {
                    now += 10_000;
                    let remote = now.wrapping_add(there).wrapping_add_signed(truth);
                    Round { sent: now, remote, back: now + there + back }
                })
                .collect();
            let found = offset(&rounds).unwrap();
            prop_assert!(found.ticks.abs_diff(truth) <= found.bound, "{found:?}");
            let tightest = legs.iter().map(|(there, back)| (there + back).div_ceil(2)).min().unwrap();
            prop_assert!(found.bound <= tightest);
        }

        #[test]
        fn the_middle_covers_both_ends(a in -9999i64..9999, b in -9999i64..9999, x in 0u64..99, y in 0u64..99) {
            let [first, second] = [Offset { ticks: a, bound: x }, Offset { ticks: b, bound: y }];
            let middle = between(first, second);
            for one in [first, second] {
                prop_assert!(middle.ticks.abs_diff(one.ticks) + one.bound <= middle.bound);
            }
        }
    }

    #[test]
    fn a_jump_widens_the_bound_instead_of_vanishing() {
        let round = |truth: i64, sent: u64| Round {
            sent,
            remote: (sent + 10).wrapping_add_signed(truth),
            back: sent + 20,
        };
        let found = offset(&[round(0, 1000), round(500, 2000)]).unwrap();
        assert!(
            found.ticks.abs_diff(0) <= found.bound && found.ticks.abs_diff(500) <= found.bound,
            "{found:?}"
        );
        assert_eq!(offset(&[]), None);
    }

    #[test]
    fn two_threads_agree_on_one_counter() {
        let table = Table::default();
        let rounds = std::thread::scope(|scope| {
            scope.spawn(|| follow(&table, Counter::Monotonic));
            lead(&table, Counter::Monotonic)
        });
        let found = offset(&rounds).unwrap();
        assert_eq!(rounds.len() as u64, ROUNDS);
        assert!(found.ticks.unsigned_abs() <= found.bound, "CLOCK_MONOTONIC is one clock: {found:?}");
    }
}
