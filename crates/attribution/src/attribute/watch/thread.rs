//! One thread, from event to event: every nanosecond that it is watched goes to exactly one of
//! running, waiting for a CPU after a wake-up, preempted, asleep, and unknown.

use super::chain::Place;
use super::event::Leaves;
use super::shape::Times;
use super::waker::By;
use crate::attribute::figures::Sums;
use crate::labels::LabelId;
use crate::prio::Prio;
use model::Cpus;
use model::syscalls::Syscall;
use rustc_hash::FxHashMap;

/// The most wakers, and the most preemptors, listed for one thread.
const MOST_ROWS: usize = 512;

/// The state of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Not seen yet; its first event shows its state since the beginning.
    Before,
    /// Events are lost: its state is unknown.
    Lost,
    Asleep,
    /// Woken, not yet running.
    Waiting,
    Preempted,
    Running,
    Gone,
}

/// A system call, and the descriptor it is about; 0 where it is about none.
pub(crate) type Call = (&'static Syscall, u64);

/// A wake-up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wake {
    pub(crate) at_ns: i64,
    pub(crate) by: By,
    pub(crate) cpu: u32,
    /// The intended expiry of the timer that caused it.
    pub(crate) intended_ns: Option<i64>,
    pub(crate) signal: Option<i32>,
    /// The waker's place on a chain.
    pub(crate) before: Option<Place>,
    /// Whether the thread is new.
    pub(crate) start: bool,
}

/// Releases that are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ReleaseKey {
    pub(crate) by: By,
    /// Number of the call by x86-64's and arm64's tables, for equality; descriptor.
    pub(crate) call: Option<(&'static str, u64)>,
    pub(crate) signal: Option<i32>,
    pub(crate) start: bool,
}

/// Their sums.
#[derive(Debug, Default)]
pub(crate) struct ReleaseSums {
    pub(crate) n: u64,
    pub(crate) from: Vec<u32>,
    pub(crate) lateness: Sums,
    pub(crate) run_latency: Sums,
    pub(crate) total: Sums,
}

/// Preemptions that are counted together: by the names of the preemptor and of its waker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PreemptKey {
    pub(crate) by: LabelId,
    pub(crate) woken: Option<Waker>,
}

/// A waker without its thread id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Waker {
    Named(LabelId),
    SomeInterrupt,
}

/// Their sums.
#[derive(Debug)]
pub(crate) struct PreemptSums {
    pub(crate) n: u64,
    /// None once there were several.
    pub(crate) tid: Option<i32>,
    pub(crate) lost: Sums,
}

/// A thread that is being watched.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) tid: i32,
    pub(crate) comm: Option<LabelId>,
    /// Its priority when it last went to sleep, when it inherits none.
    pub(crate) prio: Prio,
    pub(crate) state: State,
    pub(crate) first_ns: i64,
    since_ns: i64,
    pub(crate) times: Times,
    pub(crate) cpus: Vec<u32>,
    /// Where it runs, or ran last.
    pub(crate) cpu: Option<u32>,
    /// The call that it is in.
    pub(crate) call: Option<Call>,
    /// A wake-up that came while it ran: either it never sleeps, or it is about to leave the CPU.
    pending: Option<Wake>,
    /// The wake-up that it waits after.
    wake: Option<Wake>,
    /// The wake-up that it runs after, the call it waited in, and its latency if the switch to it
    /// was seen. Booked when it sleeps again: a signal is recorded only after its wake-up.
    active: Option<(Wake, Option<Call>, Option<i64>)>,
    /// Its place on a chain of wake-ups, while it runs.
    pub(crate) place: Option<Place>,
    preempted: Option<PreemptKey>,
    queued: bool,
    pub(crate) activations: u64,
    pub(crate) early_wakes: u64,
    pub(crate) unseen_switches: u64,
    /// Of these, those first seen leaving the CPU, and the upper limit of their latency.
    pub(crate) only_left: u64,
    pub(crate) only_left_most_ns: i64,
    pub(crate) run_latency: Sums,
    pub(crate) releases: FxHashMap<ReleaseKey, ReleaseSums>,
    pub(crate) preemptions: FxHashMap<PreemptKey, PreemptSums>,
    pub(crate) migrations: [u64; 2],
}

impl Thread {
    /// A thread that is watched from `ts_ns` on.
    pub(crate) fn new(tid: i32, state: State, ts_ns: i64) -> Self {
        Self {
            tid,
            comm: None,
            prio: Prio::UNKNOWN,
            state,
            first_ns: ts_ns,
            since_ns: ts_ns,
            times: Times::default(),
            cpus: Vec::new(),
            cpu: None,
            call: None,
            pending: None,
            wake: None,
            active: None,
            place: None,
            preempted: None,
            queued: false,
            activations: 0,
            early_wakes: 0,
            unseen_switches: 0,
            only_left: 0,
            only_left_most_ns: 0,
            run_latency: Sums::default(),
            releases: FxHashMap::default(),
            preemptions: FxHashMap::default(),
            migrations: [0; 2],
        }
    }

    /// It is watched from `ts_ns` on, which was not known when it was added.
    pub(crate) fn begin(&mut self, ts_ns: i64) {
        (self.first_ns, self.since_ns) = (ts_ns, ts_ns);
    }

    /// Books the time until now as spent in `spent`, and changes the state to `next`.
    fn go(&mut self, ts_ns: i64, spent: State, next: State) {
        let ts_ns = ts_ns.max(self.since_ns);
        let ns = ts_ns.abs_diff(self.since_ns);
        let part = match spent {
            State::Running => &mut self.times.on_cpu_ns,
            State::Waiting => &mut self.times.waiting_ns,
            State::Preempted => &mut self.times.preempted_ns,
            State::Asleep => &mut self.times.asleep_ns,
            State::Before | State::Lost | State::Gone => &mut self.times.unknown_ns,
        };
        *part += ns;
        (self.since_ns, self.state) = (ts_ns, next);
    }

    /// Its state until now, if an event implies that it was `implied`.
    fn was(&self, implied: State) -> State {
        match self.state {
            State::Before => implied,
            State::Lost => State::Lost,
            state if state == implied => implied,
            // An event in between is missing.
            _ => State::Lost,
        }
    }

    /// It is being woken.
    pub(crate) fn waking(&mut self, wake: Wake) {
        match self.state {
            State::Running => self.pending = Some(wake),
            State::Before | State::Asleep | State::Lost => {
                self.go(wake.at_ns, self.was(State::Asleep), State::Waiting);
                (self.wake, self.queued) = (Some(wake), false);
            }
            State::Waiting | State::Preempted => self.early_wakes += 1,
            State::Gone => {}
        }
    }

    /// It is in a run queue.
    pub(crate) fn woken(&mut self, wake: Wake) {
        match self.state {
            State::Running => {
                // Had it left the CPU, this would have come later.
                self.early_wakes += u64::from(self.pending.take().is_some());
            }
            State::Asleep => self.waking(wake),
            // A new thread did not exist before.
            State::Before if wake.start => {
                self.begin(wake.at_ns);
                self.waking(wake);
            }
            _ => {}
        }
        self.queued = true;
    }

    /// Its last waker has sent a signal.
    pub(crate) fn signal(&mut self, by: By, signal: i32) {
        let active = self.active.as_mut().map(|(wake, _, _)| wake);
        let newest = self.pending.as_mut().or(self.wake.as_mut()).or(active);
        if let Some(wake) = newest.filter(|wake| wake.by == by) {
            wake.signal = Some(signal);
        }
    }

    /// The CPU is handed to it. Returns the wake-up that this follows, if known.
    pub(crate) fn switch_in(&mut self, ts_ns: i64, cpu: u32) -> Option<Wake> {
        let waited = if self.state == State::Preempted { State::Preempted } else { State::Waiting };
        let since_ns = self.since_ns;
        self.go(ts_ns, self.was(waited), State::Running);
        self.on(cpu);
        if let Some(key) = self.preempted.take()
            && let Some(sums) = self.preemptions.get_mut(&key)
        {
            sums.lost.add(ts_ns.saturating_sub(since_ns));
        }
        let wake = self.wake.take()?;
        let latency_ns = ts_ns.saturating_sub(wake.at_ns);
        self.activations += 1;
        self.run_latency.add(latency_ns);
        self.active = Some((wake, self.call, Some(latency_ns)));
        Some(wake)
    }

    fn on(&mut self, cpu: u32) {
        self.cpu = Some(cpu);
        if !self.cpus.contains(&cpu) {
            self.cpus.push(cpu);
        }
    }

    /// It does something, so it runs. If the switch to it is missing, its latency ends now at the
    /// latest; if it already `leaves` the CPU, its latency is unknown. Returns the wake-up that
    /// this follows.
    pub(crate) fn seen(&mut self, ts_ns: i64, cpu: u32, leaves: bool) -> Option<Wake> {
        if matches!(self.state, State::Running | State::Gone) {
            return None;
        }
        let was = if self.state == State::Before { State::Running } else { State::Lost };
        self.go(ts_ns, was, State::Running);
        self.on(cpu);
        self.preempted = None;
        let wake = self.wake.take()?;
        self.activations += 1;
        self.unseen_switches += 1;
        let latency_ns = (!leaves).then(|| ts_ns.saturating_sub(wake.at_ns));
        if let Some(latency_ns) = latency_ns {
            self.run_latency.add(latency_ns);
        } else {
            self.only_left += 1;
            self.only_left_most_ns = self.only_left_most_ns.max(ts_ns.saturating_sub(wake.at_ns));
        }
        self.active = Some((wake, self.call, latency_ns));
        Some(wake)
    }

    /// Its priority at a switch from it; `sleeps`: it goes to sleep.
    pub(crate) fn has_prio(&mut self, prio: Prio, sleeps: bool) {
        if prio.is_known() && (sleeps || !self.prio.is_known()) {
            self.prio = prio;
        }
    }

    /// It loses the CPU.
    pub(crate) fn switch_out(&mut self, ts_ns: i64, leaves: Leaves, next: (i32, PreemptKey)) {
        let was = self.was(State::Running);
        let pending = self.pending.take();
        match leaves {
            Leaves::Runnable => {
                self.early_wakes += u64::from(pending.is_some());
                self.go(ts_ns, was, State::Preempted);
                self.preempted_by(next);
            }
            Leaves::Sleeps | Leaves::Blocks => {
                self.rest();
                self.go(ts_ns, was, if pending.is_some() { State::Waiting } else { State::Asleep });
                (self.wake, self.queued) = (pending, false);
            }
            Leaves::Ended => {
                self.rest();
                self.go(ts_ns, was, State::Gone);
            }
        }
    }

    fn preempted_by(&mut self, (tid, key): (i32, PreemptKey)) {
        if self.preemptions.len() >= MOST_ROWS && !self.preemptions.contains_key(&key) {
            return;
        }
        let new = || PreemptSums { n: 0, tid: Some(tid), lost: Sums::default() };
        let sums = self.preemptions.entry(key).or_insert_with(new);
        sums.n += 1;
        sums.tid = sums.tid.filter(|only| *only == tid);
        self.preempted = Some(key);
    }

    /// It moves to another CPU.
    pub(crate) fn migrate(&mut self) {
        let waking = match self.state {
            State::Asleep | State::Before => true,
            State::Waiting => !self.queued,
            _ => self.pending.is_some(),
        };
        self.migrations[usize::from(!waking)] += 1;
    }

    /// Events of a CPU are lost. Unless it runs on another CPU, its wake-up may be among them.
    pub(crate) fn lost(&mut self, ts_ns: i64, cpu: u32) {
        let elsewhere = self.state == State::Running && self.cpu.is_some_and(|mine| mine != cpu);
        if elsewhere || self.state == State::Gone {
            return;
        }
        let spent = if self.state == State::Before { State::Lost } else { self.state };
        self.rest();
        self.go(ts_ns, spent, State::Lost);
        (self.wake, self.pending, self.preempted, self.call) = (None, None, None, None);
    }

    /// It does something on a CPU whose switches are not recorded: start and duration are unknown.
    pub(crate) fn out_of_sight(&mut self, ts_ns: i64, cpu: u32) {
        if self.state == State::Gone {
            return;
        }
        self.rest();
        self.on(cpu);
        self.go(ts_ns, State::Lost, State::Lost);
        (self.wake, self.pending, self.preempted) = (None, None, None);
    }

    /// Recording ends.
    pub(crate) fn finish(&mut self, ts_ns: i64) {
        if self.state != State::Gone {
            self.rest();
            self.go(ts_ns, self.state, self.state);
        }
        self.times.observed_ns = self.since_ns.abs_diff(self.first_ns);
    }

    /// Books the activation that ends.
    fn rest(&mut self) {
        self.place = None;
        let Some((wake, call, latency_ns)) = self.active.take() else { return };
        let call = call.map(|(call, descriptor)| (call.name, descriptor));
        let mut key = ReleaseKey { by: wake.by, call, signal: wake.signal, start: wake.start };
        if self.releases.len() >= MOST_ROWS && !self.releases.contains_key(&key) {
            key.by = By::Unknown;
        }
        let sums = self.releases.entry(key).or_default();
        sums.n += 1;
        if !sums.from.contains(&wake.cpu) {
            sums.from.push(wake.cpu);
        }
        if let Some(intended_ns) = wake.intended_ns {
            sums.lateness.add(wake.at_ns.saturating_sub(intended_ns));
        }
        let Some(latency_ns) = latency_ns else { return };
        sums.run_latency.add(latency_ns);
        if let Some(intended_ns) = wake.intended_ns {
            sums.total.add(wake.at_ns.saturating_add(latency_ns).saturating_sub(intended_ns));
        }
    }

    /// The wake-up after which it has not run yet.
    pub(crate) fn awaits(&self) -> Option<&Wake> {
        self.wake.as_ref().or(self.pending.as_ref())
    }

    /// The CPUs that it ran on.
    pub(crate) fn ran_on(&self) -> Cpus {
        self.cpus.iter().copied().collect()
    }
}
