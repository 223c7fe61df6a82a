//! The critical path of each wake-up, from the intended release until the task ran: every
//! nanosecond is in exactly one box.
//!
//! The kernel's events mark the path: the timer expires, perhaps on another CPU; its handler
//! requests the wake-up; if the task sleeps on another CPU, an IPI goes there; the scheduler
//! switches to the task; the task returns to user space and reads the clock. The time before each
//! mark is that mark's step. Other code that ran on the CPU takes its time out of the step only if
//! it could delay the step ([`waits`]). Interrupts delay an interrupt; the task that it interrupts
//! never does. A switch is delayed by what has precedence over the task, or by a scheduler that
//! passed over it. The rest stays with the step. So the boxes of a sample add up to its latency,
//! and nothing counts as a cause only because it was there.
//!
//! These are the four parts of scheduling latency in the OSPERT 2013 paper (§1), as far as
//! tracepoints show them. Time with interrupts or preemption off, and for locks, has its own boxes
//! where the trace shows it ([`super::blocking`]), and stays in the step elsewhere.

mod apart;
mod frequency;
mod idle;
mod kernel;
mod marks;
mod queue;
mod samples;
mod stopped;
mod waits;

use super::blocking::{Blockings, Stretch};
use super::bound::{Gathered, Gathering};
use super::cause::{Causes, Confidence};
use crate::attribute::delay::Blocking;
use crate::attribute::step::Step;
use crate::holes::Hole;
use crate::labels::LabelId;
use crate::prio::Prio;
use crate::spans::{Known, MeasuredCpu, Span};
use crate::view::{At, KernelEvent, Level, Switch, Task, Wake, What};
use apart::Local;
use frequency::Frequency;
use idle::Idle;
use kernel::Kernel;
use marks::{Mark, Marks};
use model::EventClass;
use queue::{Queue, State};
use samples::Samples;
use std::collections::VecDeque;
use stopped::Stopped;

/// What took time from a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Taker {
    /// Something that ran; [`EventClass::Throttle`]: the scheduler passed over the task because
    /// its budget was used up.
    Event(EventClass),
    /// Nothing ran that could be preempted or interrupted.
    Blocking(Blocking),
}

impl Taker {
    /// The class of an event.
    pub fn class(self) -> Option<EventClass> {
        if let Self::Event(class) = self { Some(class) } else { None }
    }
}

/// What took time from a step, with label, task and source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// What kind of thing.
    pub taker: Taker,
    /// What ran, who turned off interrupts or preemption, which lock.
    pub label: LabelId,
    /// The task that ran; `None` for what runs in interrupts.
    pub task: Option<Task>,
    /// Its sources.
    pub causes: Causes,
}

/// Where a part of a latency went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The step.
    pub step: Step,
    /// The CPU that the step waited for.
    pub cpu: u32,
    /// What else took its time there; `None` for the step itself.
    pub taken: Option<Taken>,
    /// How the step's end mark is known to be this task's: [`Step::TimerLate`] only.
    pub mark: Option<Confidence>,
    /// How long, ns.
    pub ns: u64,
}

/// A sample taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// The intended release, CLOCK_MONOTONIC, ns.
    pub t_ns: i64,
    /// The latency, ns.
    pub value_ns: i64,
    /// In the order of the steps; they add up to the latency.
    pub parts: Vec<Part>,
    /// The same in order of time. Each begins where the one before ended.
    pub pieces: Vec<Piece>,
    /// Whom the scheduler took the CPU from for it; not known where no switch to it was seen.
    pub replaced: Option<Task>,
}

/// A stretch of time in which one part of a path went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Start, CLOCK_MONOTONIC, ns.
    pub t0_ns: i64,
    /// End.
    pub t1_ns: i64,
    /// Place in the parts of the path.
    pub part: usize,
}

/// The expiry of a timer, on the CPU where it woke a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry {
    /// When, ns.
    pub at_ns: i64,
    /// Exact for the timer that the task armed, by its address; else it is the last one before
    /// the wake-up.
    pub known: Confidence,
    /// The level it expired in.
    pub level: Level,
}

/// Takes the samples of one wake-up probe apart while the trace streams by.
#[derive(Debug)]
pub struct PathBuilder {
    cpu: u32,
    tid: i32,
    known: Known,
    /// The thread's priority at its last switch.
    prio: Prio,
    /// The current task of the CPU.
    current: Option<Task>,
    /// Time of its switch, ns.
    came_ns: i64,
    queue: Queue,
    kernel: Kernel,
    stopped: Stopped,
    idle: Idle,
    frequency: Frequency,
    /// When the thread was out of budget.
    without_budget: VecDeque<[i64; 2]>,
    samples: Samples,
    /// Recent spans of the CPU that are not the probe's own.
    spans: VecDeque<Span>,
    /// Holes that may touch a later sample.
    holes: Vec<Hole>,
    blockings: Blockings,
    stretches: VecDeque<Stretch>,
    bound: Gathering,
    last_ipi_ns: i64,
    /// The last event, and the last that marks a sample's path, ns.
    last_ns: i64,
    marked_ns: i64,
}

impl PathBuilder {
    /// For the samples `(release, latency)` of the thread `tid` on `cpu`, by release. Early ones
    /// have no path to explain.
    pub fn new(cpu: u32, tid: i32, known: Known, samples: impl Iterator<Item = (i64, i64)>) -> Self {
        Self {
            cpu,
            tid,
            known,
            prio: Prio::UNKNOWN,
            current: None,
            came_ns: i64::MIN,
            queue: Queue::default(),
            kernel: Kernel::default(),
            stopped: Stopped::default(),
            idle: Idle::default(),
            frequency: Frequency::default(),
            without_budget: VecDeque::new(),
            samples: Samples::new(samples),
            spans: VecDeque::new(),
            holes: Vec::new(),
            blockings: Blockings::default(),
            stretches: VecDeque::new(),
            bound: Gathering::default(),
            last_ipi_ns: i64::MIN,
            last_ns: i64::MIN,
            marked_ns: i64::MIN,
        }
    }

    /// Whose samples these are.
    pub(super) fn thread(&self) -> MeasuredCpu {
        MeasuredCpu { cpu: self.cpu, tid: self.tid }
    }

    /// Begins a sample whose end is not known yet: the next event is the first since
    /// `release_ns`. False where an earlier sample has marks already.
    pub(super) fn released(&mut self, release_ns: i64) -> bool {
        self.samples.released(release_ns);
        self.marked_ns < release_ns
    }

    /// When it ran; `None` where it does not on this CPU.
    pub(super) fn ran(&mut self, ran_ns: Option<i64>) {
        self.samples.ran(ran_ns);
    }

    /// The next event of the merged stream that is of this CPU, wakes this thread, or wakes or
    /// moves a task of this CPU. `expiry`: the last of a timer on the event's CPU.
    #[inline(never)]
    pub fn event(&mut self, event: &KernelEvent, expiry: Option<Expiry>, sink: &mut impl FnMut(Path)) {
        let ts_ns = event.ts_ns;
        self.pass(ts_ns, sink);
        self.mark(event, expiry);
        if event.cpu == self.cpu
            && let Some(seen) = self.stopped.event(event, self.tid)
            && let Some(marks) = self.samples.in_service(ts_ns)
        {
            marks.found_user_space.get_or_insert(seen);
        }
        let Self { blockings, idle, frequency, stretches, cpu, samples, bound, came_ns, .. } = self;
        let mut keep = |stretch: Stretch| {
            if samples.next_release().is_some_and(|release_ns| stretch.t1_ns > release_ns) {
                stretches.push_back(stretch);
            }
        };
        frequency.event(event, *cpu, &mut keep);
        if event.cpu == *cpu {
            if let Some(stretch) = idle.event(event) {
                keep(stretch);
            }
            blockings.event(event, &mut |stretch| {
                bound.was_off(&stretch, *came_ns);
                keep(stretch);
            });
        }
    }

    /// The same of a switch.
    #[inline(always)]
    pub(crate) fn switch(&mut self, at: At, switch: Switch, sink: &mut impl FnMut(Path)) {
        if at.cpu != self.cpu || self.is_blocked() {
            return self.event(&at.says(switch.what()), None, sink);
        }
        self.pass(at.ts_ns, sink);
        self.switched(at.ts_ns, switch);
        self.works(at);
    }

    /// The same of the wake-up of another task.
    #[inline(always)]
    pub(crate) fn wake(&mut self, at: At, wake: Wake, sink: &mut impl FnMut(Path)) {
        if self.is_blocked() {
            return self.event(&at.says(wake.what()), None, sink);
        }
        self.pass(at.ts_ns, sink);
        self.queue.slept(wake.pid);
        if at.cpu == self.cpu {
            self.works(at);
        }
    }

    /// Whether the CPU is blocked by something that any event may end.
    #[inline(always)]
    fn is_blocked(&self) -> bool {
        self.frequency.is_changing() || self.idle.sleeps() || self.blockings.is_any()
    }

    /// The CPU is seen at work.
    #[inline(always)]
    fn works(&mut self, at: At) {
        self.stopped.works(at);
        self.frequency.works(at.ts_ns);
    }

    /// Time passes.
    #[inline(always)]
    fn pass(&mut self, ts_ns: i64, sink: &mut impl FnMut(Path)) {
        self.last_ns = ts_ns;
        if self.samples.are_due(ts_ns) {
            self.begin_and_close(ts_ns, sink);
        }
    }

    /// Begins the samples released by now, and takes apart those that ended long ago.
    #[inline(never)]
    fn begin_and_close(&mut self, ts_ns: i64, sink: &mut impl FnMut(Path)) {
        self.samples.begin_until(ts_ns);
        while let Some(marks) = self.samples.pop_ended(ts_ns) {
            self.close(&marks, sink);
        }
    }

    /// Events of a CPU are missing from here on: a wake-up whose path they may touch is not taken
    /// apart.
    pub fn lost(&mut self, hole: Hole) {
        // Samples not yet known begin after the last event.
        let next = self.samples.next_release().unwrap_or(self.last_ns);
        self.holes.retain(|one| one.t1_ns >= next);
        self.holes.push(hole);
        if hole.cpu == self.cpu {
            self.bound.missed();
            self.blockings.lost();
            self.current = None;
            self.queue.lost();
            self.kernel.lost();
            self.stopped.lost();
            self.idle.lost();
            self.frequency.lost();
        }
    }

    fn mark(&mut self, event: &KernelEvent, expiry: Option<Expiry>) {
        let (ts_ns, cpu) = (event.ts_ns, event.cpu);
        match event.what {
            What::Enter { class: EventClass::IpiCall | EventClass::IpiResched, .. } if cpu == self.cpu => {
                self.last_ipi_ns = ts_ns;
            }
            What::Wake { pid, target, done } if pid == self.tid => {
                self.own_wake_up(event, target, done, expiry);
            }
            What::Switch { prev, runnable, next } if cpu == self.cpu => {
                self.switched(ts_ns, Switch { prev, runnable, next });
            }
            What::Migrate { pid, from, to, .. } if [from, to].contains(&self.cpu) => self.queue.moved(pid),
            What::Wake { pid, .. } => self.queue.slept(pid),
            What::Stack { at_switch, code, in_user_space, .. } if cpu == self.cpu => {
                if at_switch {
                    let stretch = self.kernel.leaves(cpu, event.pid, code, self.known.system_call);
                    self.stretches.extend(stretch);
                } else if matches!(self.queue.state, State::Waits { .. }) {
                    self.kernel.found(code, in_user_space);
                }
            }
            _ => {}
        }
    }

    #[inline(never)]
    fn own_wake_up(&mut self, event: &KernelEvent, target: u32, done: bool, expiry: Option<Expiry>) {
        let (ts_ns, cpu) = (event.ts_ns, event.cpu);
        // A request on another CPU has not put it into the queue yet.
        self.marked_ns = ts_ns;
        if target == self.cpu && (done || cpu == self.cpu) {
            self.queue.woken(ts_ns);
        }
        let task = self.current.filter(|_| cpu == self.cpu);
        let at = |at_ns, level| Mark { at_ns, cpu, level, task };
        let Some(marks) = self.samples.in_service(ts_ns) else { return };
        let this = at(ts_ns, event.level);
        if done {
            marks.woken.get_or_insert(this);
        } else if marks.waking.is_none() {
            marks.waking = Some(this);
            let expiry = expiry.filter(|one| !event.in_task() && one.at_ns >= marks.release_ns);
            marks.expiry = expiry.map(|one| (at(one.at_ns, one.level), one.known));
        }
    }

    #[inline(always)]
    fn switched(&mut self, ts_ns: i64, Switch { prev, runnable, next }: Switch) {
        self.current = Some(next);
        if next.pid != self.tid && self.queue.stays(self.tid, prev, next) {
            self.came_ns = ts_ns;
            self.kernel.nobody_waited();
            return;
        }
        let preempted = matches!(self.queue.state, State::Waits { preempted: true, .. });
        let waited = match self.queue.state {
            State::Waits { since_ns, preempted: false } => Some(since_ns),
            _ => None,
        };
        let came_ns = std::mem::replace(&mut self.came_ns, ts_ns);
        let own = if next.pid == self.tid { next.prio } else { self.prio };
        // A task with precedence holds the CPU by that, in kernel code or not.
        let behind = prev.prio.is_known() && own.is_known() && !prev.prio.may_delay(own);
        // Another task with precedence may take its place, too. Had `prev` come while the task
        // waited, the task would have been passed over.
        let taken = |since_ns| next.prio.may_delay(own) && came_ns <= since_ns;
        let waited = waited.filter(|since_ns| behind && (next.pid == self.tid || taken(*since_ns)));
        let without = self.queue.switched(ts_ns, self.tid, prev, runnable, next);
        // While the task was out of budget, no other task delayed it.
        let waited = waited.map(|since_ns| without.map_or(since_ns, |[_, until_ns]| since_ns.max(until_ns)));
        self.kernel.switched(ts_ns, prev, waited);
        if let Some(without) = without {
            self.without_budget.push_back(without);
        }
        if next.pid == self.tid {
            self.own_switch(ts_ns, prev, next.prio, preempted);
        }
    }

    #[inline(never)]
    fn own_switch(&mut self, ts_ns: i64, prev: Task, prio: Prio, preempted: bool) {
        (self.prio, self.marked_ns) = (prio, ts_ns);
        let (own, ipi) = (self.cpu, self.last_ipi_ns);
        // A preempted task was not asleep: its switch ends no wake-up.
        let Some(marks) = self.samples.in_service(ts_ns).filter(|marks| marks.switch.is_none() && !preempted)
        else {
            return;
        };
        (marks.switch, marks.replaced) = (Some(ts_ns), Some(prev));
        let sent = marks.waking.filter(|waking| waking.cpu != own).map(|waking| waking.at_ns);
        marks.ipi = sent.filter(|sent| ipi >= *sent).map(|_| ipi);
    }

    /// A span of the measured CPU.
    #[inline(always)]
    pub fn span(&mut self, span: &Span) {
        if span.class != EventClass::SelfCaused && span.t1_ns > span.t0_ns && self.interferes(span) {
            let needed_ns = self.samples.next_release().unwrap_or(span.t1_ns);
            self.bound.ran([span.t0_ns, span.t1_ns], needed_ns);
        }
        // Most run between two samples.
        if self.samples.may_touch([span.t0_ns, span.t1_ns]) {
            self.keep(span);
        }
    }

    /// Whether it may delay the thread at any step.
    fn interferes(&self, span: &Span) -> bool {
        let anyway = if self.known.rt { Level::Hard } else { Level::Softirq };
        let delays = || span.task.pid != self.tid && span.task.prio.may_delay(self.prio);
        span.cpu == self.cpu && (span.level >= anyway || delays())
    }

    #[inline(never)]
    fn keep(&mut self, span: &Span) {
        let matters = self.samples.next_release().is_some_and(|release_ns| span.t1_ns > release_ns);
        let foreign = span.class != EventClass::SelfCaused && span.cpu == self.cpu;
        if matters && foreign && span.t1_ns > span.t0_ns {
            self.spans.push_back(*span);
        }
    }

    /// Ends the window: what is open is taken apart as far as it was seen. Returns what a bound is
    /// put together from.
    pub fn finish(mut self, sink: &mut impl FnMut(Path)) -> Gathered {
        self.ran(None);
        while let Some(marks) = self.samples.pop() {
            self.close(&marks, sink);
        }
        self.bound.finish()
    }

    fn close(&mut self, marks: &Marks, sink: &mut impl FnMut(Path)) {
        self.holes.retain(|hole| hole.t1_ns >= marks.release_ns);
        if self.holes.iter().any(|hole| hole.touches([marks.release_ns, marks.ran_ns])) {
            self.bound.missed();
            return;
        }
        // Spans come in the order of their ends.
        while self.spans.front().is_some_and(|span| span.t1_ns <= marks.release_ns) {
            self.spans.pop_front();
        }
        while self.stretches.front().is_some_and(|stretch| stretch.t1_ns <= marks.release_ns) {
            self.stretches.pop_front();
        }
        while self.without_budget.front().is_some_and(|stretch| stretch[1] <= marks.release_ns) {
            self.without_budget.pop_front();
        }
        let Self { cpu, tid, prio, known, .. } = *self;
        // Most of the spans kept while waiting for ends do not touch the sample.
        let touches = |span: &&Span| span.t0_ns < marks.ran_ns && span.t1_ns > marks.release_ns;
        let spans: &[Span] = &self.spans.iter().filter(touches).copied().collect::<Vec<_>>();
        let stretches = self.stretches.make_contiguous();
        let without_budget = self.without_budget.make_contiguous();
        let path = Local { cpu, tid, prio, known, spans, stretches, without_budget }.apart(marks);
        self.bound.woke(&path);
        sink(path);
    }
}

#[cfg(test)]
mod tests;
