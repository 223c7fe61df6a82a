//! What a preemption or a migration costs by cold caches, for a working set of a given size.
//!
//! A walk writes a word of every cache line of the working set, once a line. Warm: the set was
//! walked just before. After an intruder: another set of the same size was walked in between. After
//! a migration: the set was walked just before, on another CPU. (A. Bastoni, B. Brandenburg and J.
//! Anderson, "Cache-Related Preemption and Migration Delays: Empirical Approximation and Impact on
//! Schedulability", OSPERT 2010, the "synthetic" method.)

use super::{Bench, Term};
use model::Cpus;
use std::{hint, io};
use sys::sched;

/// Bytes from one walked word to the next: a cache line of x86-64, and of most arm64 CPUs.
const LINE_BYTES: usize = 64;
const WORDS: usize = LINE_BYTES / size_of::<u64>();

/// Touches every line. The order goes through the set by a stride that a prefetcher does not follow
/// for long, and meets each line once.
#[inline(never)]
fn walk(set: &mut [u64]) {
    let lines = set.len() / WORDS;
    // An odd stride meets every one of a power of two of lines.
    let stride = (lines * 5 / 8) | 1;
    let mut line = 0;
    for _ in 0..lines {
        set[line * WORDS] = set[line * WORDS].wrapping_add(1);
        line = (line + stride) & (lines - 1);
    }
    hint::black_box(set);
}

/// Memory for working sets of up to this size.
pub(super) fn set_of(bytes: u64) -> Vec<u64> {
    vec![1; words(bytes)]
}

/// A power of two of lines.
fn words(bytes: u64) -> usize {
    (bytes as usize / LINE_BYTES).max(1).next_power_of_two() * WORDS
}

fn timed(bench: &Bench<'_>, set: &mut [u64]) -> (u64, u64) {
    let before = bench.now();
    walk(set);
    (before, bench.now().wrapping_sub(before))
}

/// A walk after an intruder, less a warm walk just before.
pub(super) fn crpd(bench: &mut Bench<'_>) {
    let [mut own, mut intruder] = std::mem::take(&mut bench.sets);
    preempted(bench, &mut own, &mut intruder);
    bench.sets = [own, intruder];
}

fn preempted(bench: &mut Bench<'_>, own: &mut [u64], intruder: &mut [u64]) {
    for bytes in bench.spec.bytes.clone() {
        let (own, intruder) = (&mut own[..words(bytes)], &mut intruder[..words(bytes)]);
        walk(own);
        let mut warm = Vec::new();
        let mut samples = Vec::new();
        for _ in 0..bench.spec.cache_count {
            if bench.ring.stopped() {
                return;
            }
            bench.rest();
            walk(own);
            warm.push(timed(bench, own).1);
            walk(intruder);
            let (at, took) = timed(bench, own);
            samples.push((at, took as i64));
        }
        bench.store(Term::Crpd, bytes, median(warm), &samples);
    }
}

/// There and back: half of it is a migration. On the other side, the walk after it less a warm one
/// there.
pub(super) fn migrate(bench: &mut Bench<'_>) -> io::Result<()> {
    let partner = bench.spec.partner.ok_or_else(|| io::Error::other("there is no other CPU"))?;
    let (home, away) = (bench.order.cpus.clone(), Cpus::one(partner));
    let [mut own, intruder] = std::mem::take(&mut bench.sets);
    let result = moves(bench, &mut own, &home, &away);
    bench.sets = [own, intruder];
    // Whatever went wrong, the rest is measured at home.
    sched::pin(&home)?;
    result
}

fn moves(bench: &mut Bench<'_>, own: &mut [u64], home: &Cpus, away: &Cpus) -> io::Result<()> {
    let mut samples = Vec::new();
    for _ in 0..bench.spec.count {
        bench.rest();
        let before = bench.now();
        sched::pin(away)?;
        sched::pin(home)?;
        samples.push((before, bench.now().wrapping_sub(before) as i64 / 2));
    }
    bench.store(Term::Migrate, 0, 0, &samples);
    for bytes in bench.spec.bytes.clone() {
        let own = &mut own[..words(bytes)];
        let (mut warm, mut samples) = (Vec::new(), Vec::new());
        for _ in 0..bench.spec.cache_count {
            if bench.ring.stopped() {
                return Ok(());
            }
            bench.rest();
            walk(own);
            walk(own);
            sched::pin(away)?;
            let (at, took) = timed(bench, own);
            walk(own);
            warm.push(timed(bench, own).1);
            sched::pin(home)?;
            samples.push((at, took as i64));
        }
        bench.store(Term::Cpmd, bytes, median(warm), &samples);
    }
    Ok(())
}

/// The middle value, or the mean of the two; 0 without values.
fn median(mut ticks: Vec<u64>) -> u64 {
    ticks.sort_unstable();
    let at = |place: usize| ticks.get(place).copied().unwrap_or(0);
    at(ticks.len().saturating_sub(1) / 2).midpoint(at(ticks.len() / 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_walk_meets_every_line_once(bytes in 1u64..1 << 18) {
            let mut set = set_of(bytes);
            walk(&mut set);
            let lines: Vec<u64> = set.iter().step_by(WORDS).copied().collect();
            prop_assert!(lines.iter().all(|&word| word == 2));
            prop_assert!(lines.len() * LINE_BYTES >= bytes as usize / LINE_BYTES * LINE_BYTES);
        }
    }
}
