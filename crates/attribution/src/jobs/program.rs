//! All followed threads while the trace streams by.

use super::dispatched::Dispatched;
use super::follow::{Activation, Follower, Woken};
use super::interrupts::Interrupts;
use super::kind::Kind;
use super::rivals::Rivals;
use crate::attribute::watch::event::{WatchEvent, What};
use crate::attribute::watch::program::Watch;
use crate::by_cpu::ByCpu;
use crate::labels::{LabelId, Labels};
use crate::prio::Prio;
use model::syscalls;
use rustc_hash::FxHashMap;

/// The function of the timer of a reservation (kernel/sched/deadline.c).
const REPLENISHES: &str = "dl_task_timer";
/// Timers that are remembered.
const MOST_TIMERS: usize = 4096;

/// Cuts the threads that a [`Watch`] watches into activations.
#[derive(Debug)]
pub(super) struct Program {
    arch: String,
    /// By place of the thread.
    pub(super) followers: Vec<Follower>,
    pub(super) interrupts: Interrupts,
    rivals: Rivals,
    pub(super) dispatched: Dispatched,
    /// By address: the thread of which a timer may be that of its reservation.
    reservations: FxHashMap<u64, usize>,
    /// [`REPLENISHES`].
    replenishes: LabelId,
    /// By CPU: the task that runs there, by the last switch.
    running: ByCpu<i32>,
    /// Switches missing between two others.
    pub(super) missing: u64,
    /// Whether there are system calls in the trace.
    pub(super) has_calls: bool,
}

impl Program {
    pub(super) fn new(arch: &str, labels: &mut Labels) -> Self {
        let replenishes = labels.id(REPLENISHES);
        Self {
            arch: arch.to_owned(),
            followers: Vec::new(),
            interrupts: Interrupts::default(),
            rivals: Rivals::default(),
            dispatched: Dispatched::default(),
            reservations: FxHashMap::default(),
            replenishes,
            running: ByCpu::default(),
            missing: 0,
            has_calls: false,
        }
    }

    fn follower(&mut self, place: usize) -> &mut Follower {
        if self.followers.len() <= place {
            self.followers.resize_with(place + 1, Follower::default);
        }
        &mut self.followers[place]
    }

    /// Takes an event that `watch` has taken. `sink` gets the place of a thread and the activation
    /// that the event ends.
    pub(super) fn event(
        &mut self,
        event: &WatchEvent,
        watch: &Watch,
        mut sink: impl FnMut(usize, &Activation),
    ) {
        let ts_ns = event.ts_ns;
        match event.what {
            What::Switch { prev, leaves, next, prios } => {
                let before = self.running.insert(event.cpu, next.0);
                if let Some(gone) = before.filter(|before| *before != prev.0) {
                    self.missing += 1;
                    watch.place(gone).into_iter().for_each(|place| self.follower(place).lost());
                }
                if let Some(place) = watch.place(prev.0) {
                    self.follower(place);
                    let Self { followers, interrupts, .. } = self;
                    let ended = followers[place].switch_out(ts_ns, leaves, interrupts);
                    self.ended(event.cpu, prios[0], ended.as_ref());
                    ended.iter().for_each(|activation| sink(place, activation));
                }
                self.interrupts.event(event);
                self.rivals.switch(event.cpu, ts_ns, (prios[0], prev.0));
                if let Some(place) = watch.place(next.0) {
                    self.follower(place);
                    let Self { followers, interrupts, rivals, .. } = self;
                    // A fair thread waits for whoever comes.
                    let is_urgent = !prios[1].is_fair();
                    let waited = |since_ns| {
                        rivals.waited(event.cpu, prios[1], [since_ns, ts_ns]).filter(|_| is_urgent)
                    };
                    followers[place].is_deadline = prios[1] == Prio::DEADLINE;
                    let came = followers[place].switch_in(ts_ns, event.cpu, prios[1], interrupts, waited);
                    let came = came.filter(|_| prios[1].realtime().is_some());
                    came.into_iter().for_each(|came| self.dispatched.came(event.cpu, came));
                }
                return;
            }
            What::Waking { task, .. } => {
                if let Some(place) = watch.place(task.0) {
                    let (by, intended_ns) = watch.wakers.who(event);
                    self.follower(place).waking(Woken { at_ns: ts_ns, intended_ns, by });
                }
            }
            What::Woken { pid, new: true } => {
                if let Some(place) = watch.place(pid) {
                    let (by, intended_ns) = watch.wakers.who(event);
                    self.follower(place).started(Woken { at_ns: ts_ns, intended_ns, by });
                }
            }
            What::CallEnter { number, arguments } => {
                self.has_calls = true;
                if let Some(place) = watch.place(event.pid)
                    && let Some(call) = syscalls::by_number(&self.arch, number)
                {
                    let kind = Kind::of_call(call, [arguments[0], arguments[1]]);
                    self.follower(place).call_begins(ts_ns, kind);
                }
            }
            What::CallExit { .. } => {
                if let Some(place) = watch.place(event.pid) {
                    self.follower(place);
                    let Self { followers, interrupts, .. } = self;
                    let ended = followers[place].call_ends(ts_ns, interrupts);
                    let prio = watch.threads[place].prio;
                    self.ended(event.cpu, prio, ended.as_ref());
                    ended.iter().for_each(|activation| sink(place, activation));
                }
            }
            What::Armed { timer, .. } => self.armed(timer, watch.place(event.pid)),
            What::Expires { timer, function, .. } if function == self.replenishes => {
                if let Some(place) = self.reservations.remove(&timer) {
                    let (by, intended_ns) = watch.wakers.who(event);
                    let ended = self.follower(place).replenished(Woken { at_ns: ts_ns, intended_ns, by });
                    ended.iter().for_each(|activation| sink(place, activation));
                }
            }
            _ => {}
        }
        self.interrupts.event(event);
    }

    fn ended(&mut self, cpu: u32, prio: Prio, activation: Option<&Activation>) {
        if let Some(activation) = activation.filter(|_| prio.realtime().is_some()) {
            self.dispatched.ended(cpu, &activation.release);
        }
    }

    /// What a thread has executed, ns; `None` where it was not seen to get the CPU that it has.
    pub(super) fn executed_ns(&self, place: usize, now_ns: i64) -> Option<u64> {
        self.followers.get(place)?.executed_until_ns(now_ns, &self.interrupts)
    }

    /// What a thread had executed when it last left its CPU, ns.
    pub(super) fn executed_before_ns(&self, place: usize) -> u64 {
        self.followers.get(place).map_or(0, |follower| follower.executed_ns)
    }

    fn armed(&mut self, timer: u64, place: Option<usize>) {
        let Some(place) = place.filter(|place| self.follower(*place).is_deadline) else { return };
        self.follower(place).timer_armed();
        if self.reservations.len() < MOST_TIMERS {
            self.reservations.insert(timer, place);
        }
    }

    /// Events of this CPU are missing; any thread's may be among them.
    pub(super) fn lost(&mut self, cpu: u32) {
        self.running.clear();
        self.interrupts.lost(cpu);
        self.rivals.lost(cpu);
        self.followers.iter_mut().for_each(Follower::lost);
    }
}
