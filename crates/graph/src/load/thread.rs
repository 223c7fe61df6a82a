//! One thread of a load at work.
//!
//! Execution time is CPU time of the thread, so that a job that is preempted executes as long as
//! one that is not. It counts from where the last piece of work ended: what the thread needs for
//! waking up, sleeping and releasing others is part of it, as it is in what was observed.

use super::jobs::EachJob;
use super::meeting::{Account, Shared};
use super::releases::{Drawn, signed};
use crate::Error;
use journal::enter;
use measure::burn;
use model::load::{LoadThread, Step};
use model::sample::Policy;
use std::collections::VecDeque;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Sender;
use std::time::Duration;
use sys::{clock, memory, policy, sched};

/// Sleeps that show how much longer than asked they take.
const SLEEPS: usize = 5;
/// How long the first of them are.
const SHORT: Duration = Duration::from_micros(500);

/// What a thread has got.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) tid: i32,
    pub(super) policy: Policy,
}

/// Sets the thread up, waits for the start, does its steps until the end.
pub(super) fn run(
    shared: &Shared,
    at: usize,
    thread: &LoadThread,
    seed: u64,
    ready: &Sender<(usize, Result<Ready, Error>)>,
) {
    memory::prefault_stack();
    let got = set_up(thread);
    let is_ready = got.is_ok();
    let naps = Naps::measure(is_ready && is_observed(thread));
    if ready.send((at, got)).is_err() || !is_ready {
        return;
    }
    let Some(start_ns) = shared.wait_for_start() else { return };
    let first_ns = start_ns.saturating_add(signed(thread.delay_ns));
    let account = &shared.accounts[at];
    let guards = (0..shared.locks()).map(|_| None).collect();
    let player = Player { shared, account, timers: Vec::new(), guards, naps, worked_ns: 0, first_ns };
    player.play(thread, seed);
}

fn set_up(thread: &LoadThread) -> Result<Ready, Error> {
    if let Some(cpus) = &thread.cpus {
        let place = || format!("{} onto CPUs {cpus}", thread.name);
        enter::onto(cpus).map_err(|error| Error::os("put", place(), error))?;
    }
    if thread.policy != Policy::other() {
        let refused = |error: std::io::Error| {
            let why = sched::refusal(&thread.policy, &error, thread.cpus.is_some());
            let what = format!("{} under {}", thread.name, thread.policy.name);
            Error::os("put", what, std::io::Error::new(error.kind(), why))
        };
        policy::set_policy(&thread.policy).map_err(refused)?;
    }
    let policy = policy::effective().map_err(|error| Error::os("read", "the policy of a thread", error))?;
    Ok(Ready { tid: sched::tid(), policy })
}

/// Whether it does what another has been seen to do.
fn is_observed(thread: &LoadThread) -> bool {
    let mut steps = thread.phases.iter().flat_map(|phase| &phase.steps);
    steps.any(|step| matches!(step, Step::Job(_)))
}

/// A step, and what it remembers from round to round.
enum Action {
    Release(Box<Drawn>),
    Job(EachJob),
    /// How often it was done.
    Other(Step, u64),
}

impl Action {
    fn new(step: &Step, first_ns: i64, seed: u64) -> Self {
        match step {
            Step::Release(releases) => Self::Release(Box::new(Drawn::new(releases, first_ns, seed))),
            Step::Job(jobs) => Self::Job(EachJob::new(jobs)),
            other => Self::Other(other.clone(), 0),
        }
    }
}

struct Player<'a> {
    shared: &'a Shared,
    account: &'a Account,
    /// When each timer was to expire last, ns.
    timers: Vec<Option<i64>>,
    guards: Vec<Option<MutexGuard<'a, ()>>>,
    naps: Naps,
    /// The thread's CPU time when its last work ended, ns.
    worked_ns: i64,
    /// When it begins, ns.
    first_ns: i64,
}

impl Player<'_> {
    fn play(mut self, thread: &LoadThread, seed: u64) {
        let first_ns = self.first_ns;
        let phase = |phase: &model::load::Phase| {
            let actions = phase.steps.iter().map(|step| Action::new(step, first_ns, seed));
            (phase.rounds, actions.collect::<Vec<_>>())
        };
        let mut phases: Vec<(u64, Vec<Action>)> = thread.phases.iter().map(phase).collect();
        let cpu_before_ns = clock::thread_cpu_ns();
        self.worked_ns = cpu_before_ns;
        // Whoever waits for a release anyhow sleeps but once.
        let waits = |step: &Step| matches!(step, Step::Release(_) | Step::Wait { .. });
        if !thread.phases.first().and_then(|phase| phase.steps.first()).is_some_and(waits) {
            self.sleep_until(self.first_ns);
        }
        let mut rounds = 0;
        'rounds: while thread.rounds.is_none_or(|most| rounds < most) {
            for (times, actions) in &mut phases {
                for _ in 0..*times {
                    for action in &mut *actions {
                        if self.shared.is_over() {
                            break 'rounds;
                        }
                        self.act(action);
                    }
                }
            }
            rounds += 1;
            self.account.rounds.store(rounds, Relaxed);
            self.account
                .cpu_ns
                .store((clock::thread_cpu_ns() - cpu_before_ns).max(0).unsigned_abs(), Relaxed);
        }
    }

    fn act(&mut self, action: &mut Action) {
        match action {
            Action::Release(drawn) => {
                let due = drawn.next(clock::now_ns());
                self.account.missed.fetch_add(due.missed, Relaxed);
                self.sleep_until(due.at_ns);
            }
            Action::Job(each) => self.job(each),
            Action::Other(step, times) => {
                let number = *times;
                *times += 1;
                self.step(step, number);
            }
        }
    }

    fn step(&mut self, step: &Step, number: u64) {
        match step {
            Step::Release(_) | Step::Job(_) => {}
            Step::Timer { timer, period_ns, absolute } => self.timer(*timer, *period_ns, *absolute),
            Step::Wait { channel } => self.shared.receive(*channel),
            Step::Send { channel, share } => self.shared.send(*channel, share.in_job(number)),
            Step::Execute(ns) => {
                // Each counts for itself: what lies between them is not known to be part of it.
                self.worked_ns = clock::thread_cpu_ns();
                self.work(signed(*ns));
            }
            Step::Spin(ns) => {
                burn::until(clock::now_ns().saturating_add(signed(*ns)).min(self.shared.end_ns()));
            }
            Step::Sleep(ns) => std::thread::sleep(Duration::from_nanos(self.within(*ns))),
            Step::Lock(lock) => {
                if self.guards[*lock].is_none() {
                    self.guards[*lock] = Some(self.shared.lock(*lock));
                }
            }
            Step::Unlock(lock) => self.guards[*lock] = None,
            Step::Barrier(barrier) => self.shared.meet(*barrier),
            Step::Yield => sched::yield_now(),
        }
    }

    fn job(&mut self, each: &mut EachJob) {
        let job = each.next();
        let pieces = signed(job.sleeps.saturating_add(1));
        let mut rest_ns = job.cost_ns;
        for piece in (1..=pieces).rev() {
            let part_ns = rest_ns / piece;
            rest_ns -= part_ns;
            self.work(part_ns + self.naps.charged_ns);
            if piece == 1 || self.shared.is_over() {
                return;
            }
            self.nap(job.asleep_ns / job.sleeps);
        }
    }

    /// So much CPU time after the last work.
    fn work(&mut self, ns: i64) {
        let until_ns = self.worked_ns.saturating_add(ns);
        burn::until_cpu_time(until_ns, || self.shared.is_over());
        // Work beyond that, because of an interrupt in its last moment, is not taken off the next.
        self.worked_ns = clock::thread_cpu_ns();
    }

    fn timer(&mut self, timer: usize, period_ns: u64, absolute: bool) {
        if self.timers.len() <= timer {
            self.timers.resize(timer + 1, None);
        }
        let last_ns = self.timers[timer].unwrap_or(self.first_ns);
        let mut at_ns = last_ns.saturating_add(signed(period_ns));
        let now_ns = clock::now_ns();
        if now_ns < at_ns {
            self.sleep_until(at_ns);
        } else {
            self.account.missed.fetch_add(1, Relaxed);
            at_ns = if absolute { at_ns } else { now_ns };
        }
        self.timers[timer] = Some(at_ns);
    }

    fn sleep_until(&self, at_ns: i64) {
        let at_ns = at_ns.min(self.shared.end_ns());
        clock::sleep_until(at_ns);
        // A signal may have ended it.
        while clock::now_ns() < at_ns && !self.shared.is_over() {
            clock::sleep_until(at_ns);
        }
    }

    fn nap(&mut self, ns: u64) {
        self.naps.nap(self.within(ns));
    }

    /// A time that does not reach beyond the end.
    fn within(&self, ns: u64) -> u64 {
        ns.min(self.shared.end_ns().saturating_sub(clock::now_ns()).max(0).unsigned_abs())
    }
}

/// Sleeps for a time, which take longer than asked. About half of that is over before the thread is
/// woken, and the rest is its way back to the CPU, which is no sleep. So they are asked to be
/// shorter by half of the least that the last ones took too long.
struct Naps {
    too_long_ns: VecDeque<u64>,
    /// The kernel may charge a thread from its wake-up on, a trace sees it execute from the switch:
    /// about half of the CPU time that a sleep takes, calls of the system apart, ns.
    charged_ns: i64,
}

impl Naps {
    fn measure(needed: bool) -> Self {
        let mut naps = Self { too_long_ns: VecDeque::new(), charged_ns: 0 };
        if !needed {
            return naps;
        }
        let takes = |mut action: Box<dyn FnMut() + '_>| {
            let once = |_| {
                let before_ns = clock::thread_cpu_ns();
                action();
                clock::thread_cpu_ns() - before_ns
            };
            (0..SLEEPS).map(once).min().unwrap_or(0)
        };
        let call_ns = takes(Box::new(|| {}));
        let nap_ns = takes(Box::new(|| naps.nap(SHORT.as_nanos() as u64)));
        naps.charged_ns = (nap_ns - 2 * call_ns).max(0) / 2;
        naps
    }

    fn nap(&mut self, ns: u64) {
        let shorter_ns = self.too_long_ns.iter().min().copied().unwrap_or(0) / 2;
        let asked_ns = ns.saturating_sub(shorter_ns);
        let before_ns = clock::now_ns();
        std::thread::sleep(Duration::from_nanos(asked_ns));
        let took_ns = (clock::now_ns() - before_ns).max(0).unsigned_abs();
        self.too_long_ns.push_back(took_ns.saturating_sub(asked_ns));
        if self.too_long_ns.len() > SLEEPS {
            self.too_long_ns.pop_front();
        }
    }
}
