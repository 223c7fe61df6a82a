//! The loop that measures: one thread wakes another, which answers in the same way; all four
//! moments are stamped.
//!
//! The sender pauses before each wake-up, so that the target and then the sender itself really
//! sleep. Both keep their stamps in memory of their own, touched beforehand; nothing else happens
//! between two stamps of one way.

use super::method::Channel;
use crate::offset::stamp;
use model::usage::Usage;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{hint, io};
use sys::clock;
use sys::counter::Counter;

/// Both directions of one method, and the word that ends it.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) there: Channel,
    pub(super) back: Channel,
    pub(super) over: AtomicBool,
}

/// How a sender paces itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// The most wake-ups.
    pub(super) count: u32,
    /// Interval of wake-ups, ns.
    pub(super) interval_ns: i64,
    /// No wake-up begins after this time, CLOCK_MONOTONIC ns.
    pub(super) until_ns: i64,
    /// Whether it sleeps between wake-ups; if not, it spins.
    pub(super) sleeps: bool,
}

/// The stamps of one side, in ticks: sent and returned, or received and answered.
pub(super) type Stamps = Vec<[u64; 2]>;

/// What the target says of itself.
#[derive(Debug)]
pub(super) struct Heard {
    /// Received and answered.
    pub(super) stamps: Stamps,
    /// Whether it had gone to sleep before each.
    pub(super) slept: Vec<bool>,
    /// What the loop used.
    pub(super) used: Usage,
}

/// What the sender says of itself.
#[derive(Debug)]
pub(super) struct Said {
    /// Sent and returned.
    pub(super) stamps: Stamps,
    /// What the loop used.
    pub(super) used: Usage,
}

/// Memory for stamps, touched: zeroes would be pages that nobody has given yet.
fn room(count: u32) -> Stamps {
    let mut stamps = vec![[1, 1]; count as usize];
    stamps.clear();
    stamps
}

/// The sender. `stopped` is asked between wake-ups.
pub(super) fn send(
    line: &Line,
    counter: Counter,
    pace: Pace,
    stopped: &dyn Fn() -> bool,
) -> io::Result<Said> {
    let mut stamps = room(pace.count);
    let before = clock::thread_usage()?;
    let mut next_ns = clock::now_ns();
    let mut number = 0;
    while number < pace.count && !stopped() {
        next_ns = (next_ns + pace.interval_ns).max(clock::now_ns() + pace.interval_ns / 2);
        pause(next_ns, pace.sleeps);
        if next_ns > pace.until_ns {
            break;
        }
        number += 1;
        let sent = stamp(counter);
        line.there.wake(number)?;
        line.back.wait(number)?;
        let returned = stamp(counter);
        stamps.push([sent, returned]);
    }
    let used = clock::thread_usage()? - before;
    line.over.store(true, Ordering::Release);
    line.there.wake(number + 1)?;
    Ok(Said { stamps, used })
}

fn pause(until_ns: i64, sleeps: bool) {
    if sleeps {
        clock::sleep_until(until_ns);
    }
    while clock::now_ns() < until_ns {
        hint::spin_loop();
    }
}

/// The target.
pub(super) fn answer(line: &Line, counter: Counter, count: u32) -> io::Result<Heard> {
    let mut stamps = room(count);
    let mut slept = vec![true; count as usize];
    slept.clear();
    let before = clock::thread_usage()?;
    let mut switches = before.switches.voluntary;
    for number in 1.. {
        line.there.wait(number)?;
        let received = stamp(counter);
        if line.over.load(Ordering::Acquire) {
            break;
        }
        let answered = stamp(counter);
        line.back.wake(number)?;
        stamps.push([received, answered]);
        let now = clock::thread_usage()?.switches.voluntary;
        slept.push(now > switches);
        switches = now;
    }
    Ok(Heard { stamps, slept, used: clock::thread_usage()? - before })
}
