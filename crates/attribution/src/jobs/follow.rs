//! One thread, from sleep to sleep.

use super::interrupts::Interrupts;
use super::kind::Kind;
use super::rivals::Waited;
use crate::attribute::watch::event::Leaves;
use crate::attribute::watch::waker::By;
use crate::prio::Prio;
use infer::Window;

/// What a thread did between two sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Activation {
    /// What it slept in before; `None` for a new thread.
    pub(super) kind: Option<Kind>,
    /// When it was released.
    pub(super) release: Released,
    /// When that sleep began.
    pub(super) slept_ns: i64,
    /// When it slept again.
    pub(super) ended_ns: i64,
    /// On a CPU, interrupts not counted, ns.
    pub(super) executed_ns: u64,
    /// Whether activations before it are missing.
    pub(super) after_gap: bool,
    /// What it waited for the kernel.
    pub(super) dispatch: Dispatch,
}

/// From a wake-up to the switch to the thread, tasks that go before it or are its equals not
/// counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Dispatch {
    pub(super) ns: u64,
    /// The less urgent task that kept the CPU for the longest of it, and how long, ns.
    pub(super) kept: Option<(i32, u64)>,
}

impl Dispatch {
    /// The longer of two.
    pub(super) fn or_longer(self, other: Self) -> Self {
        if other.ns > self.ns { other } else { self }
    }
}

/// When a thread was to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Released {
    /// From its timer's intended expiry to when it was woken; where it never slept, the release is
    /// somewhere in it.
    pub(super) window: Window,
    /// Whether that is so.
    pub(super) is_uncertain: bool,
    pub(super) by: By,
}

impl Released {
    /// From the intended expiry of the timer that released it to the wake-up, ns; 0 where there was
    /// none, or its expiry is not known.
    pub(super) fn late_ns(&self) -> u64 {
        let by_timer = matches!(self.by, By::Timer { .. }) && !self.is_uncertain;
        if by_timer { self.window.latest_ns.abs_diff(self.window.earliest_ns) } else { 0 }
    }
}

/// A wake-up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Woken {
    pub(super) at_ns: i64,
    pub(super) intended_ns: Option<i64>,
    pub(super) by: By,
}

impl Woken {
    fn released(self) -> Released {
        let Self { at_ns, intended_ns, by } = self;
        let earliest_ns = intended_ns.unwrap_or(at_ns).min(at_ns);
        Released { window: Window { earliest_ns, latest_ns: at_ns }, is_uncertain: false, by }
    }
}

/// Since when it runs where, and how long interrupts had taken there.
#[derive(Debug, Clone, Copy)]
struct Running {
    cpu: u32,
    since_ns: i64,
    interrupts_ns: u64,
}

/// A system call that it is in.
#[derive(Debug, Clone, Copy)]
struct Call {
    kind: Kind,
    entered_ns: i64,
    slept: bool,
}

/// A thread that is followed.
#[derive(Debug, Default)]
pub(super) struct Follower {
    running: Option<Running>,
    call: Option<Call>,
    /// Since when it sleeps, and in what, if that is known.
    asleep: Option<(i64, Option<Kind>)>,
    /// Woken while it ran.
    early: Option<Woken>,
    /// Whether it is under `SCHED_DEADLINE`, by the last switch.
    pub(super) is_deadline: bool,
    /// Under `SCHED_DEADLINE`: a timer was armed while it ran, which may be that of its reservation.
    has_timer: bool,
    /// It left the CPU behind that: since when it may wait for the timer.
    throttled_ns: Option<i64>,
    /// What it does since its last sleep.
    current: Option<Activation>,
    /// Something of it was not seen since the last activation.
    gap: bool,
    /// Woken then, and not yet on a CPU, ns.
    woken_ns: Option<i64>,
    /// The longest while it was urgent.
    pub(super) dispatch: Dispatch,
    /// Of all that was followed, ns.
    pub(super) executed_ns: u64,
    /// CPUs that it ran on; of a new thread, since its first sleep, and since it became urgent.
    pub(super) cpus: Vec<u32>,
    /// Those before, while it was fair. They count again if it is fair again: then it was boosted.
    cpus_while_fair: Vec<u32>,
    /// Whether it was fair when it last got a CPU.
    was_fair: bool,
}

impl Follower {
    pub(super) fn waking(&mut self, woken: Woken) {
        if self.running.is_some() {
            self.early = Some(woken);
        } else if let Some((slept_ns, kind)) = self.asleep.take() {
            self.begin(slept_ns, kind.unwrap_or_else(|| Kind::of_waker(woken.by)), woken.released());
        }
    }

    /// It is new: its first activation belongs to no kind.
    pub(super) fn started(&mut self, woken: Woken) {
        self.begin(woken.at_ns, Kind::of_waker(woken.by), woken.released());
        self.current.iter_mut().for_each(|current| current.kind = None);
    }

    fn begin(&mut self, slept_ns: i64, kind: Kind, release: Released) {
        self.woken_ns = Some(release.window.latest_ns).filter(|_| self.running.is_none());
        self.current = Some(Activation {
            kind: Some(kind),
            release,
            slept_ns,
            ended_ns: release.window.latest_ns,
            executed_ns: 0,
            after_gap: std::mem::take(&mut self.gap),
            dispatch: Dispatch::default(),
        });
    }

    /// The CPU is handed to it. `waited`: for whom it waited there since a time; `None` where that
    /// is not known. Returns how late it came, where this is after a wake-up. What it waited before
    /// it became urgent says nothing of how late it comes since.
    pub(super) fn switch_in(
        &mut self,
        ts_ns: i64,
        cpu: u32,
        prio: Prio,
        interrupts: &Interrupts,
        waited: impl FnOnce(i64) -> Option<Waited>,
    ) -> Option<Dispatch> {
        let mut came = None;
        if let Some(woken_ns) = self.woken_ns.take()
            && let Some(Waited { rivals_ns, kept }) = waited(woken_ns)
        {
            let waited_ns = ts_ns.saturating_sub(woken_ns).max(0).unsigned_abs();
            let dispatch = Dispatch { ns: waited_ns.saturating_sub(rivals_ns), kept };
            if !prio.is_fair() {
                self.dispatch = self.dispatch.or_longer(dispatch);
            }
            self.current.iter_mut().for_each(|current| current.dispatch = dispatch);
            came = Some(dispatch);
        }
        match (std::mem::replace(&mut self.was_fair, prio.is_fair()), prio.is_fair()) {
            (true, false) => self.cpus_while_fair = std::mem::take(&mut self.cpus),
            (false, true) => self.cpus.append(&mut self.cpus_while_fair),
            _ => {}
        }
        if !self.cpus.contains(&cpu) {
            self.cpus.push(cpu);
        }
        // It was preempted, no more.
        self.throttled_ns = None;
        let interrupts_ns = interrupts.total_ns(cpu, ts_ns);
        self.running = Some(Running { cpu, since_ns: ts_ns, interrupts_ns });
        came
    }

    /// Counts what it has executed since it came, or was counted last.
    fn count(&mut self, ts_ns: i64, interrupts: &Interrupts) {
        let Some(running) = &mut self.running else { return };
        let interrupts_ns = interrupts.total_ns(running.cpu, ts_ns);
        let passed_ns = ts_ns.saturating_sub(running.since_ns).max(0).unsigned_abs();
        let executed_ns = passed_ns.saturating_sub(interrupts_ns.saturating_sub(running.interrupts_ns));
        (running.since_ns, running.interrupts_ns) = (ts_ns, interrupts_ns);
        self.executed_ns = self.executed_ns.saturating_add(executed_ns);
        if let Some(current) = &mut self.current {
            current.executed_ns = current.executed_ns.saturating_add(executed_ns);
        }
    }

    /// What it has executed by now, ns; `None` where it has no CPU, as far as was seen.
    pub(super) fn executed_until_ns(&self, now_ns: i64, interrupts: &Interrupts) -> Option<u64> {
        let running = self.running?;
        let interrupted_ns = interrupts.total_ns(running.cpu, now_ns).saturating_sub(running.interrupts_ns);
        let passed_ns = now_ns.saturating_sub(running.since_ns).max(0).unsigned_abs();
        Some(self.executed_ns.saturating_add(passed_ns.saturating_sub(interrupted_ns)))
    }

    /// The switch to it is missing from the trace, as some kernels leave out those from idle: it
    /// executed since it was woken, at the most. False where that is not known either.
    fn came_unseen(&mut self, ts_ns: i64) -> bool {
        let (Some(woken_ns), Some(current)) = (self.woken_ns.take(), &mut self.current) else { return false };
        let most_ns = ts_ns.saturating_sub(woken_ns).max(0).unsigned_abs();
        current.executed_ns = current.executed_ns.saturating_add(most_ns);
        self.executed_ns = self.executed_ns.saturating_add(most_ns);
        true
    }

    /// It leaves the CPU. Returns the activation that ends.
    pub(super) fn switch_out(
        &mut self,
        ts_ns: i64,
        leaves: Leaves,
        interrupts: &Interrupts,
    ) -> Option<Activation> {
        self.count(ts_ns, interrupts);
        let was_seen = self.running.take().is_some() || self.came_unseen(ts_ns);
        let early = self.early.take();
        let has_timer = std::mem::take(&mut self.has_timer);
        if leaves == Leaves::Runnable {
            self.throttled_ns = has_timer.then_some(ts_ns);
            if !was_seen {
                self.skip();
            }
            return None;
        }
        if !was_seen {
            self.skip();
        }
        let ended = self.current.take();
        // A new thread may pin itself before it sleeps for the first time.
        if ended.is_some_and(|ended| ended.kind.is_none()) {
            self.cpus.clear();
        }
        let waits_in = |call: &Call| leaves == Leaves::Sleeps || !call.kind.is_interruptible();
        let kind = self.call.as_mut().filter(|call| waits_in(call)).map(|call| {
            call.slept = true;
            call.kind
        });
        self.asleep = leaves.waits().then_some((ts_ns, kind));
        if let Some(woken) = early {
            self.waking(woken);
        }
        Some(Activation { ended_ns: ts_ns, ..ended? })
    }

    /// A timer is armed while it runs.
    pub(super) fn timer_armed(&mut self) {
        self.has_timer = self.is_deadline;
    }

    /// A timer of its reservation expires. Returns the activation that it ends, where the thread
    /// has waited for it.
    pub(super) fn replenished(&mut self, woken: Woken) -> Option<Activation> {
        let throttled_ns = self.throttled_ns.take()?;
        let before = self.current.take();
        self.begin(throttled_ns, Kind::Replenished, woken.released());
        Some(Activation { ended_ns: throttled_ns, ..before? })
    }

    pub(super) fn call_begins(&mut self, ts_ns: i64, kind: Kind) {
        self.call = Some(Call { kind, entered_ns: ts_ns, slept: false });
    }

    /// A call ends. Where it had something to wait for and did not sleep, because that came just
    /// before or long ago, this is the border of two activations all the same; returns the first.
    pub(super) fn call_ends(&mut self, ts_ns: i64, interrupts: &Interrupts) -> Option<Activation> {
        let call = self.call.take()?;
        let early = self.early.take();
        let is_overrun = call.kind.is_absolute_sleep();
        if call.slept || self.running.is_none() || !(is_overrun || early.is_some()) {
            return None;
        }
        self.count(ts_ns, interrupts);
        let before = self.current.take()?;
        let release = early.map_or_else(|| overrun(before.release, call.entered_ns), Woken::released);
        self.begin(call.entered_ns, call.kind, release);
        Some(Activation { ended_ns: call.entered_ns, ..before })
    }

    /// Events are missing that may have been its own.
    pub(super) fn lost(&mut self) {
        (self.running, self.call, self.asleep, self.early) = (None, None, None, None);
        (self.woken_ns, self.throttled_ns, self.has_timer) = (None, None, false);
        self.skip();
    }

    /// How long it executed is not known.
    fn skip(&mut self) {
        (self.current, self.gap) = (None, true);
    }
}

/// The release of a job whose time had passed when the thread began to wait for it.
fn overrun(before: Released, entered_ns: i64) -> Released {
    let earliest_ns = before.window.earliest_ns.min(entered_ns);
    Released {
        window: Window { earliest_ns, latest_ns: entered_ns.max(before.window.latest_ns) },
        is_uncertain: true,
        by: By::Unknown,
    }
}
