//! `timer`: 256 periodic timers of 1 to 10 ms, collected by one thread in epoll.
//!
//! Each expiry is a run of the timer's handler in an hrtimer interrupt, which timers that expire
//! together share, a wake-up, and the re-arming of the timer's CPU; a kernel may move the timers of
//! an idle CPU to another one. Periods and phases lie on a grid of 250 µs, so that some 65,000
//! expiries a second cost at most 4,000 interrupts.
//!
//! A periodic timerfd is armed again only when it is read, and the number that it then gives is of
//! elapsed periods, whether or not a handler ran in each (Linux fs/timerfd.c, `timerfd_read_iter`:
//! `hrtimer_forward_now`). So a read that succeeds is one expiry that happened; the periods are
//! those asked for.

use crate::Error;
use crate::account::Account;
use crate::job::{Job, Pace, recover};
use crate::spec::StressorSpec;
use crate::tally::Tally;
use crate::witness::{self, proc_dir};
use model::stressor::Witness;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use sys::clock::{SECOND_NS, now_ns, sleep_until};

const TIMERS: usize = 256;
const GRID_NS: i64 = 250_000;
const SHORTEST: i64 = 1_000_000 / GRID_NS;
const LONGEST: i64 = 10_000_000 / GRID_NS;
/// From arming to the first moment of the grid.
const LEAD_NS: i64 = 10_000_000;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "timer",
    title: "timers: 256 timerfds of 1 to 10 ms, collected by epoll",
    class: "sched",
    operation: "an expiry that happened: a timerfd that had expired and was read, and so armed again",
    privilege: "none",
    needs: "CONFIG_TIMERFD, CONFIG_EPOLL, 258 descriptors",
    kernel_paths: &[
        "hrtimer_interrupt",
        "timer migration to other CPUs",
        "epoll wake-up",
        "tick reprogramming",
    ],
    witness: "timer interrupts of all CPUs: one for every two moments of the grid that were served, a lower bound",
    cleanup: "none: timers go with their descriptors",
    danger: "interrupt load; bounded by 4,000 moments a second on which anything expires",
    // A rate below that of all timers arms fewer of them.
    default_rate: None,
    peer: Some("--timerfd"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let periods = periods(job.rate);
    let poll =
        epoll::create(epoll::CreateFlags::CLOEXEC).map_err(Error::refused("make an epoll descriptor"))?;
    let mut tally = Tally::default();
    let mut timers = Vec::with_capacity(periods.len());
    for (index, period_ns) in periods.iter().enumerate() {
        match make(&poll, index) {
            Ok(timer) => timers.push((timer, *period_ns)),
            Err(error) => tally.fail(&error.into()),
        }
    }
    job.begin()?;
    let (row, before) = witness::timer_interrupts(proc_dir())?;
    let base_ns = now_ns() + LEAD_NS;
    for (timer, period_ns) in &timers {
        arm(timer, base_ns, *period_ns).map_err(Error::refused("arm a timer"))?;
    }
    sleep_until(base_ns);
    let moments = collect(job, &poll, &timers, base_ns, &mut tally);
    let ran_ns = (now_ns() - base_ns).max(0);
    for (timer, _) in &timers {
        read_expiry(timer, &mut tally);
        disarm(timer).map_err(Error::refused("disarm a timer"))?;
    }
    job.linger();
    let t1_ns = now_ns();
    let seen = witness::timer_interrupts(proc_dir())?.1.saturating_sub(before);
    let due: i64 = timers.iter().map(|(_, period_ns)| ran_ns / period_ns).sum();
    let witness = Witness { name: row.to_owned(), expected: moments / 2, seen };
    Ok(Account { tally, t0_ns: base_ns, t1_ns, witness, asked: Some(due as u64), wrong: None })
}

/// The periods of the timers to arm, ns: spread evenly over the grid, as many as stay within `rate`
/// expirations per second.
fn periods(rate: Option<f64>) -> Vec<i64> {
    let steps = LONGEST - SHORTEST;
    // 97 is prime to 256: taking every 97th entry spreads any number of timers over the whole
    // range.
    let period =
        |index: usize| (SHORTEST + steps * (index * 97 % TIMERS) as i64 / (TIMERS as i64 - 1)) * GRID_NS;
    let mut expirations = 0.0;
    let mut within = |period_ns: i64| {
        expirations += SECOND_NS as f64 / period_ns as f64;
        rate.is_none_or(|rate| expirations <= rate)
    };
    let mut chosen: Vec<i64> = (0..TIMERS).map(period).take_while(|period_ns| within(*period_ns)).collect();
    if chosen.is_empty() {
        chosen.push(LONGEST * GRID_NS);
    }
    chosen
}

fn make(poll: &OwnedFd, index: usize) -> Result<OwnedFd, Errno> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
    epoll::add(poll, &timer, epoll::EventData::new_u64(index as u64), epoll::EventFlags::IN)?;
    Ok(timer)
}

fn arm(timer: &OwnedFd, base_ns: i64, period_ns: i64) -> Result<(), Errno> {
    let spec = Itimerspec { it_interval: timespec(period_ns), it_value: timespec(base_ns + period_ns) };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &spec).map(|_| ())
}

fn disarm(timer: &OwnedFd) -> Result<(), Errno> {
    let never = Itimerspec { it_interval: timespec(0), it_value: timespec(0) };
    timerfd_settime(timer, TimerfdTimerFlags::empty(), &never).map(|_| ())
}

/// Reads expired timers until the end; returns how many moments of the grid were served.
fn collect(job: &Job<'_>, poll: &OwnedFd, timers: &[(OwnedFd, i64)], base_ns: i64, tally: &mut Tally) -> u64 {
    // The timers are the pace; the rate has chosen their number.
    let mut pace = Pace::new(&job.end, None, job.end_ns);
    let mut events = Vec::with_capacity(TIMERS);
    let (mut moments, mut last_moment) = (0, i64::MIN);
    while pace.proceed(1) {
        match epoll::wait(poll, spare_capacity(&mut events), Some(&timespec(20_000_000))) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => {
                tally.fail(&error.into());
                recover();
            }
        }
        let moment = (now_ns() - base_ns) / GRID_NS;
        if !events.is_empty() && moment != last_moment {
            (moments, last_moment) = (moments + 1, moment);
        }
        let before = tally.ok;
        for event in events.drain(..) {
            if let Some((timer, _)) = timers.get(event.data.u64() as usize) {
                read_expiry(timer, tally);
            }
        }
        job.meter.add(tally.ok - before);
    }
    moments
}

/// Counts the expiry of one timer; none where it has not expired since it was read.
fn read_expiry(timer: &OwnedFd, tally: &mut Tally) {
    let mut count = [0u8; 8];
    match rustix::io::read(timer, &mut count) {
        Ok(_) => tally.ok += 1,
        Err(Errno::AGAIN) => {}
        Err(error) => tally.fail(&error.into()),
    }
}

fn timespec(ns: i64) -> Timespec {
    Timespec { tv_sec: ns / SECOND_NS, tv_nsec: (ns % SECOND_NS) as _ }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One that nobody reads expires once, however many of its periods pass.
    #[test]
    fn periods_that_nobody_read_are_not_expiries() {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let timer = make(&poll, 0).unwrap();
        let mut tally = Tally::default();
        arm(&timer, now_ns(), 1_000_000).unwrap();
        sleep_until(now_ns() + 20_000_000);
        read_expiry(&timer, &mut tally);
        disarm(&timer).unwrap();
        read_expiry(&timer, &mut tally);
        assert_eq!((tally.ok, tally.failed.len()), (1, 0));
    }

    fn expirations_per_s(periods: &[i64]) -> f64 {
        periods.iter().map(|period_ns| SECOND_NS as f64 / *period_ns as f64).sum()
    }

    #[test]
    fn all_timers_lie_between_1_and_10_ms_on_the_grid() {
        let all = periods(None);
        assert_eq!(all.len(), TIMERS);
        assert_eq!((all.iter().min(), all.iter().max()), (Some(&1_000_000), Some(&10_000_000)));
        assert!(all.iter().all(|period_ns| period_ns % GRID_NS == 0));
        assert!((60_000.0..70_000.0).contains(&expirations_per_s(&all)));
    }

    proptest! {
        #[test]
        fn a_rate_is_never_exceeded_unless_a_single_timer_exceeds_it(rate in 1.0f64..100_000.0) {
            let chosen = periods(Some(rate));
            prop_assert!(expirations_per_s(&chosen) <= rate || chosen == [LONGEST * GRID_NS]);
            prop_assert!(chosen.len() == TIMERS || expirations_per_s(&chosen) >= rate - 1000.0);
        }
    }
}
