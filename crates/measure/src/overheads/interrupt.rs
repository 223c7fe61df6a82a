//! Interrupts, as the time they take from a busy loop: a timer's, and those of another CPU.

use super::switch::empty_call;
use super::{Bench, Term};
use crate::offset::{self, Offset, Table, stamp};
use model::Cpus;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use sys::{clock, sched};

/// How far ahead a timer is set: long enough to be back in the loop by then.
const AHEAD_NS: i64 = 100_000;
/// How long after its time an interrupt is still waited for.
const PATIENCE_NS: i64 = 400_000;

/// A timer that nobody waits for expires on this CPU: its interrupt is the first gap that reaches
/// beyond its time.
pub(super) fn release(bench: &mut Bench<'_>) -> io::Result<()> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
    let (threshold, turn) = bench.turn();
    let mut samples = Vec::with_capacity(bench.spec.count as usize);
    for _ in 0..bench.spec.count {
        if bench.ring.stopped() {
            break;
        }
        let armed = sys::counter::pair(bench.counter);
        let at_ns = armed.mono_ns + AHEAD_NS;
        let value = Timespec { tv_sec: at_ns / clock::SECOND_NS, tv_nsec: at_ns % clock::SECOND_NS };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &once)?;
        let due = armed.ticks + bench.ticks(AHEAD_NS);
        let late = due + bench.ticks(PATIENCE_NS);
        samples.extend(gap_beyond(bench, due, late, threshold));
        // Between two timers whoever waits for this CPU may run.
        clock::sleep_until(at_ns + PATIENCE_NS + AHEAD_NS);
    }
    note_unseen(bench, "timer", samples.len());
    bench.store(Term::Release, 0, turn, &samples);
    Ok(())
}

/// The first gap that ends after `due`: where it began, and its length; none by `late`.
fn gap_beyond(bench: &Bench<'_>, due: u64, late: u64, threshold: u64) -> Option<(u64, i64)> {
    let mut last = bench.now();
    while last < late {
        let now = bench.now();
        let gap = now.wrapping_sub(last);
        if gap >= threshold && now > due {
            return Some((last, gap as i64));
        }
        last = now;
    }
    None
}

fn note_unseen(bench: &mut Bench<'_>, what: &str, seen: usize) {
    let unseen = (bench.spec.count as usize).saturating_sub(seen);
    if unseen > 0 && !bench.ring.stopped() {
        bench.finished.limits.push(format!(
            "{unseen} of {} {what} interrupts did not show on CPU {}: taken elsewhere, or too short to be distinguished from an iteration of the loop",
            bench.spec.count,
            bench.order.cpu()
        ));
    }
}

/// `membarrier(2)`, `include/uapi/linux/membarrier.h`: interrupts every CPU on which a thread of
/// this process runs.
const PRIVATE_EXPEDITED: i32 = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;

fn membarrier(command: i32) -> io::Result<()> {
    // SAFETY: membarrier takes integers and changes no memory of this process.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    if result >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Interval of interprocessor interrupts, ns.
const APART_NS: i64 = 100_000;

/// A thread on the partner orders an interrupt; the loop here stands still where it arrives. From
/// before the order, less an empty system call, until the last turn before the gap, with the
/// counters' offset known by ping-pong.
pub(super) fn ipi(bench: &mut Bench<'_>) -> io::Result<()> {
    let partner = bench.spec.partner.ok_or_else(|| io::Error::other("there is no other CPU"))?;
    membarrier(REGISTER_PRIVATE_EXPEDITED)?;
    let own = bench.median(empty_call);
    let (threshold, _) = bench.turn();
    let (table, ready, over) = (Table::default(), AtomicU32::new(0), AtomicBool::new(false));
    let (counter, count, policy) = (bench.counter, bench.spec.count, bench.order.policy.clone());
    let apart = bench.ticks(APART_NS);
    let mut gaps: Vec<(u64, u64)> = Vec::with_capacity(1 << 14);
    let (sent, rounds) = std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let set_up = sched::pin(&Cpus::one(partner));
            let _ = sys::policy::set_policy(&policy);
            ready.store(if set_up.is_ok() { 1 } else { 2 }, Ordering::Release);
            set_up?;
            let rounds = offset::lead(&table, counter);
            let mut sent = Vec::with_capacity(count as usize);
            let mut result = Ok(());
            for _ in 0..count {
                let from = stamp(counter);
                while stamp(counter).wrapping_sub(from) < apart {
                    sys::relax::relax();
                }
                sent.push(stamp(counter));
                result = membarrier(PRIVATE_EXPEDITED);
                if result.is_err() {
                    break;
                }
            }
            over.store(true, Ordering::Release);
            result.map(|()| (sent, rounds))
        });
        while ready.load(Ordering::Acquire) == 0 {
            clock::sleep_until(clock::now_ns() + 100_000);
        }
        if ready.load(Ordering::Acquire) == 1 {
            offset::follow(&table, counter);
            let mut last = stamp(counter);
            while !over.load(Ordering::Acquire) && gaps.len() < gaps.capacity() {
                let now = stamp(counter);
                if now.wrapping_sub(last) >= threshold {
                    gaps.push((last, now));
                }
                last = now;
            }
        }
        sender.join().map_err(|_| io::Error::other("the sending thread died"))?
    })?;
    let offset =
        offset::offset(&rounds).ok_or_else(|| io::Error::other("no round of the ping-pong ended"))?;
    let samples = arrivals(&sent, &gaps, offset, own, apart);
    note_unseen(bench, "interprocessor", samples.len());
    let limit = format!(
        "the counters of CPUs {partner} and {} are {} ns apart, give or take {} ns: so exact are the interprocessor interrupts",
        bench.order.cpu(),
        bench.ns(offset.ticks),
        bench.ns(offset.bound as i64)
    );
    bench.finished.limits.push(limit);
    bench.store(Term::Ipi, 0, own, &samples);
    Ok(())
}

/// For every order the first gap that ends after it, within the interval of orders: when it was
/// sent, and how long until the gap began. A gap that began before the order can have left its own
/// system call (`least`) has another source, and is skipped.
fn arrivals(sent: &[u64], gaps: &[(u64, u64)], offset: Offset, least: u64, apart: u64) -> Vec<(u64, i64)> {
    let mut gaps = gaps.iter().peekable();
    let mut found = Vec::new();
    for order in sent.iter().map(|ticks| ticks.wrapping_add_signed(offset.ticks)) {
        while gaps.next_if(|(_, end)| *end <= order).is_some() {}
        let Some(&&(begin, _)) = gaps.peek() else { break };
        let until = begin.wrapping_sub(order) as i64;
        if until > (least + offset.bound) as i64 && until < apart as i64 {
            found.push((order, until));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_belongs_to_the_first_gap_behind_it() {
        let gaps = [(90, 95), (1010, 1030), (2500, 2520), (3000, 3400)];
        let known = Offset { ticks: 0, bound: 2 };
        // The first gap is over before any order; the last order falls into a gap of something
        // else.
        let found = arrivals(&[1000, 2000, 3100], &gaps, known, 5, 800);
        assert_eq!(found, [(1000, 10), (2000, 500)]);
        // Nothing arrived before the next order was due.
        assert_eq!(arrivals(&[1000, 2000], &gaps, known, 5, 400), [(1000, 10)]);
        let apart = Offset { ticks: 500, bound: 2 };
        assert_eq!(arrivals(&[500], &gaps, apart, 5, 800), [(1000, 10)]);
        // Ten ticks are less than the order itself takes.
        assert_eq!(arrivals(&[1000], &gaps, known, 9, 800), []);
    }
}
