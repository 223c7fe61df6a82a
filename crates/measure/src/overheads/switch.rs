//! The scheduler's own cost: a call that changes nothing, and a hand-over between two threads of
//! one CPU.

use super::{Bench, Term};
use crate::offset::stamp;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use sys::sched;

/// `sched_yield(2)` of a thread that nobody can replace, beyond an empty system call.
///
/// Under a real-time policy the thread is alone at its priority; under SCHED_OTHER somebody may
/// run, and that is in the tail.
pub(super) fn sched(bench: &mut Bench<'_>) {
    let own = bench.median(empty_call);
    let samples: Vec<(u64, i64)> = (0..bench.spec.count)
        .map(|_| {
            let before = bench.now();
            // SAFETY: sched_yield takes nothing and cannot fail.
            unsafe { libc::syscall(libc::SYS_sched_yield) };
            (before, bench.now().wrapping_sub(before) as i64)
        })
        .collect();
    bench.store(Term::Sched, 0, own, &samples);
}

/// As little as a system call can do.
pub(super) fn empty_call() {
    // SAFETY: getppid takes nothing and cannot fail.
    unsafe { libc::syscall(libc::SYS_getppid) };
}

/// Two threads hand one turn to and fro by futex: from before the wake-up in the one until the
/// other runs. Both are on the same CPU and read the same counter. Subtracted is what the same two
/// calls cost where they find nobody to wake and no reason to wait.
pub(super) fn switch(bench: &mut Bench<'_>) -> io::Result<()> {
    let alone = AtomicU32::new(0);
    let own = bench.median(|| {
        futex(&alone, libc::FUTEX_WAKE, 1);
        futex(&alone, libc::FUTEX_WAIT, 1);
    });
    let turn = AtomicU32::new(0);
    let stamped: Vec<AtomicTurn> = (0..=bench.spec.count).map(|_| AtomicTurn::default()).collect();
    let (counter, policy, cpus, count) =
        (bench.counter, &bench.order.policy, &bench.order.cpus, bench.spec.count);
    // The one plays the even turns, the other the odd ones. Only its player writes to a turn.
    let play = |parity: u32| {
        let mut number = parity;
        while number <= count {
            while turn.load(Ordering::Acquire) < number {
                futex(&turn, libc::FUTEX_WAIT, number - 1);
            }
            stamped[number as usize].began.store(stamp(counter), Ordering::Relaxed);
            stamped[number as usize].ended.store(stamp(counter), Ordering::Relaxed);
            turn.store(number + 1, Ordering::Release);
            futex(&turn, libc::FUTEX_WAKE, 1);
            number += 2;
        }
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let set_up = sched::pin(cpus);
            let _ = sys::policy::set_policy(policy);
            play(1);
            set_up
        });
        play(0);
        other.join().map_err(|_| io::Error::other("the other thread died"))?
    })?;
    let samples: Vec<(u64, i64)> = stamped
        .windows(2)
        .map(|pair| {
            let handed = pair[0].ended.load(Ordering::Relaxed);
            (handed, pair[1].began.load(Ordering::Relaxed).wrapping_sub(handed) as i64)
        })
        .collect();
    bench.store(Term::Switch, 0, own, &samples);
    Ok(())
}

#[derive(Default)]
struct AtomicTurn {
    began: std::sync::atomic::AtomicU64,
    ended: std::sync::atomic::AtomicU64,
}

fn futex(word: &AtomicU32, action: i32, value: u32) {
    let none = std::ptr::null::<libc::timespec>();
    let action = action | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word lives as long as the call; no timeout is given. Whatever it returns, the
    // word shows whose turn it is.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), action, value, none) };
}
