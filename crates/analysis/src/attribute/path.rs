//! The critical path of each wake-up: from the intended release to when the task ran, every nanosecond in exactly one box.
//!
//! The kernel's events mark the way: the timer expires, perhaps on another CPU; its handler asks for the wake-up; if the task sleeps on
//! another CPU an IPI goes there; the scheduler switches to the task; the task returns to user space and reads the clock. The time
//! before each mark is that mark's step. What else ran meanwhile on the CPU that the step waits for (an interrupt, a softirq, another
//! task) takes its own time out of the step; what is left stays with the step. So the boxes of a sample add up to its latency, and
//! nothing is called a cause only because it was there: an interrupt that overlaps a late step elsewhere takes nothing from it.
//!
//! These are the four parts of scheduling latency in the OSPERT 2013 paper (§1), as far as tracepoints show them: time with interrupts
//! or preemption off, and for locks, has boxes where the trace tells of it ([`super::blocking`]), and stays in the step elsewhere.

use super::blocking::{Blocking, Blockings, Stretch};
use super::cause::{Causes, Confidence};
use crate::labels::LabelId;
use crate::spans::Span;
use crate::view::{KernelEvent, What};
use model::EventClass;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// How long after a sample what touched it may still come to its end, ns.
const PATIENCE_NS: i64 = 20_000_000;

/// A stretch of the way, named by the mark that ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// From the release until the timer expires.
    TimerLate,
    /// From the expiry until its handler asks for the wake-up.
    TimerHandler,
    /// Until the task is put into the queue of its CPU.
    WakeUp,
    /// Until the IPI arrives at the task's CPU.
    IpiInFlight,
    /// Until the scheduler switches to the task.
    Switch,
    /// Until the task has read the clock.
    Return,
    /// The task was late already and did not sleep: it has no way of its own.
    NeverSlept,
}

/// What took time from a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Taker {
    /// Something that ran.
    Event(EventClass),
    /// Nothing ran that could be preempted or interrupted.
    Blocking(Blocking),
}

/// Where a part of a latency went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The step.
    pub step: Step,
    /// The CPU that the step waited for.
    pub cpu: u32,
    /// What else took its time there, what that was, and who asked for it; `None` for the step itself.
    pub taken: Option<(Taker, LabelId, Causes)>,
    /// How the mark that ends the step is known to be this task's: of [`Step::TimerLate`] only.
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
    /// The same time as it passed: start, end, and place in `parts`. Each begins where the one before ended.
    pub pieces: Vec<(i64, i64, usize)>,
}

/// The expiry of a timer, on the CPU where it woke a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry {
    /// When, ns.
    pub at_ns: i64,
    /// Exact where it is the timer that the task armed, by its address; else it is the last one before the wake-up.
    pub known: Confidence,
}

/// What has been seen of one sample.
#[derive(Debug, Clone, Copy)]
struct Marks {
    release_ns: i64,
    ran_ns: i64,
    expiry: Option<(Expiry, u32)>,
    /// Time and CPU.
    waking: Option<(i64, u32)>,
    woken: Option<(i64, u32)>,
    ipi: Option<i64>,
    switch: Option<i64>,
}

/// Takes the samples of one wake-up probe apart while the trace streams by.
#[derive(Debug)]
pub struct PathBuilder {
    cpu: u32,
    tid: i32,
    /// Samples to come, by release: release and latency.
    coming: VecDeque<(i64, i64)>,
    open: VecDeque<Marks>,
    /// Recent spans of the CPU that are not the probe's own.
    spans: VecDeque<Span>,
    blockings: Blockings,
    stretches: VecDeque<Stretch>,
    last_ipi_ns: i64,
}

impl PathBuilder {
    /// For the samples `(release, latency)` of the thread `tid` on `cpu`, by release. Early ones have no way to explain.
    pub fn new(cpu: u32, tid: i32, samples: impl Iterator<Item = (i64, i64)>) -> Self {
        Self {
            cpu,
            tid,
            coming: samples.filter(|(_, value_ns)| *value_ns >= 0).collect(),
            open: VecDeque::new(),
            spans: VecDeque::new(),
            blockings: Blockings::default(),
            stretches: VecDeque::new(),
            last_ipi_ns: i64::MIN,
        }
    }

    /// The next event of the merged stream that is of this CPU or wakes this thread. `expiry`: the last of a timer on the event's CPU.
    pub fn event(&mut self, event: &KernelEvent, expiry: Option<Expiry>, sink: &mut impl FnMut(Path)) {
        let ts_ns = event.ts_ns;
        while let Some(&(release_ns, value_ns)) = self.coming.front()
            && release_ns <= ts_ns
        {
            self.coming.pop_front();
            let ran_ns = release_ns.saturating_add(value_ns);
            self.open.push_back(Marks {
                release_ns,
                ran_ns,
                expiry: None,
                waking: None,
                woken: None,
                ipi: None,
                switch: None,
            });
        }
        while self.open.front().is_some_and(|first| first.ran_ns.saturating_add(PATIENCE_NS) < ts_ns) {
            self.close(sink);
        }
        self.mark(event, expiry);
        if event.cpu == self.cpu {
            let Self { blockings, stretches, open, coming, .. } = self;
            let next = open.front().map(|marks| marks.release_ns).or(coming.front().map(|next| next.0));
            blockings.event(event, &mut |stretch| {
                if next.is_some_and(|release_ns| stretch.t1_ns > release_ns) {
                    stretches.push_back(stretch);
                }
            });
        }
    }

    /// Events of a CPU are missing.
    pub fn lost(&mut self, cpu: u32) {
        if cpu == self.cpu {
            self.blockings.lost();
        }
    }

    fn mark(&mut self, event: &KernelEvent, expiry: Option<Expiry>) {
        let (ts_ns, cpu) = (event.ts_ns, event.cpu);
        match event.what {
            What::Enter { class: EventClass::IpiCall | EventClass::IpiResched, .. } if cpu == self.cpu => {
                self.last_ipi_ns = ts_ns;
            }
            What::Wake { pid, done, .. } if pid == self.tid => {
                let Some(marks) = self.in_service(ts_ns) else { return };
                if done {
                    marks.woken.get_or_insert((ts_ns, cpu));
                } else if marks.waking.is_none() {
                    marks.waking = Some((ts_ns, cpu));
                    let expiry = expiry.filter(|one| !event.in_task && one.at_ns >= marks.release_ns);
                    marks.expiry = expiry.map(|one| (one, cpu));
                }
            }
            What::Switch { next, .. } if next == self.tid && cpu == self.cpu => {
                let ipi = self.last_ipi_ns;
                let Some(marks) = self.in_service(ts_ns) else { return };
                if marks.switch.is_none() {
                    marks.switch = Some(ts_ns);
                    let sent = marks.waking.filter(|(_, from)| *from != cpu).map(|(at, _)| at);
                    marks.ipi = sent.filter(|sent| ipi >= *sent).map(|_| ipi);
                }
            }
            _ => {}
        }
    }

    /// The sample that is being served: the first that has not run yet.
    fn in_service(&mut self, ts_ns: i64) -> Option<&mut Marks> {
        self.open.iter_mut().find(|marks| marks.release_ns <= ts_ns && ts_ns <= marks.ran_ns)
    }

    /// A span of the measured CPU.
    pub fn span(&mut self, span: &Span) {
        let next = self.open.front().map(|marks| marks.release_ns).or(self.coming.front().map(|next| next.0));
        let matters = next.is_some_and(|release_ns| span.t1_ns > release_ns) && span.t1_ns > span.t0_ns;
        if matters && span.class != EventClass::SelfCaused && span.cpu == self.cpu {
            self.spans.push_back(*span);
        }
    }

    /// Ends the window: what is open is taken apart as far as it was seen.
    pub fn finish(mut self, sink: &mut impl FnMut(Path)) {
        while !self.open.is_empty() {
            self.close(sink);
        }
    }

    fn close(&mut self, sink: &mut impl FnMut(Path)) {
        let Some(marks) = self.open.pop_front() else { return };
        // Spans come in the order of their ends.
        while self.spans.front().is_some_and(|span| span.t1_ns <= marks.release_ns) {
            self.spans.pop_front();
        }
        while self.stretches.front().is_some_and(|stretch| stretch.t1_ns <= marks.release_ns) {
            self.stretches.pop_front();
        }
        let (spans, stretches) = (self.spans.make_contiguous(), self.stretches.make_contiguous());
        sink(apart(&marks, &Local { cpu: self.cpu, tid: self.tid, spans, stretches }));
    }
}

/// The steps of a sample with their ends, in order of time.
fn steps(marks: &Marks, cpu: u32) -> Vec<(i64, Step, u32)> {
    if marks.switch.is_none() && marks.waking.is_none() {
        return vec![(marks.ran_ns, Step::NeverSlept, cpu)];
    }
    let mut ends = Vec::with_capacity(6);
    ends.extend(marks.expiry.map(|(one, on)| (one.at_ns, Step::TimerLate, on)));
    ends.extend(marks.waking.map(|(at, on)| (at, Step::TimerHandler, on)));
    ends.extend(marks.woken.map(|(at, on)| (at, Step::WakeUp, on)));
    ends.extend(marks.ipi.map(|at| (at, Step::IpiInFlight, cpu)));
    ends.extend(marks.switch.map(|at| (at, Step::Switch, cpu)));
    ends.sort();
    ends.push((marks.ran_ns, Step::Return, cpu));
    ends
}

/// Something that takes time from a step while it lasts.
struct Stay {
    t0_ns: i64,
    t1_ns: i64,
    taken: (Taker, LabelId, Causes),
}

/// What was on the CPU that the path ends on.
struct Local<'s> {
    cpu: u32,
    tid: i32,
    spans: &'s [Span],
    stretches: &'s [Stretch],
}

impl Local<'_> {
    /// What touches a step and may take its time.
    fn during(&self, step: Step, [from, until]: [i64; 2]) -> Vec<Stay> {
        let spans = self.spans.iter().map(|span| Stay {
            t0_ns: span.t0_ns,
            t1_ns: span.t1_ns,
            taken: (Taker::Event(span.class), span.label, span.causes),
        });
        let explaining = self.stretches.iter().filter(|one| one.explains(step, until, self.tid));
        let stretches = explaining.map(|one| Stay {
            t0_ns: one.t0_ns,
            t1_ns: one.t1_ns,
            taken: (Taker::Blocking(one.blocking), one.label, one.causes),
        });
        spans.chain(stretches).filter(|stay| stay.t0_ns < until && stay.t1_ns > from).collect()
    }
}

fn apart(marks: &Marks, local: &Local<'_>) -> Path {
    let value_ns = marks.ran_ns - marks.release_ns;
    let mut path = Path { t_ns: marks.release_ns, value_ns, parts: Vec::new(), pieces: Vec::new() };
    let mut from = marks.release_ns;
    for (until, step, on) in steps(marks, local.cpu) {
        let until = until.clamp(from, marks.ran_ns);
        let others = if on == local.cpu { local.during(step, [from, until]) } else { Vec::new() };
        let mark = marks.expiry.filter(|_| step == Step::TimerLate).map(|(one, _)| one.known);
        fill(&mut path, (step, on, mark), [from, until], &others);
        from = until;
    }
    path
}

/// Puts the time of a step into boxes: each moment belongs to the innermost stay, that which began last.
fn fill(
    path: &mut Path,
    (step, cpu, mark): (Step, u32, Option<Confidence>),
    [from, until]: [i64; 2],
    stays: &[Stay],
) {
    let mut cuts: Vec<i64> = stays.iter().flat_map(|stay| [stay.t0_ns, stay.t1_ns]).collect();
    cuts.retain(|cut| from < *cut && *cut < until);
    cuts.extend([from, until]);
    cuts.sort_unstable();
    cuts.dedup();
    for pair in cuts.windows(2) {
        let (t0_ns, t1_ns) = (pair[0], pair[1]);
        let inside = stays.iter().filter(|stay| stay.t0_ns <= t0_ns && stay.t1_ns >= t1_ns);
        let innermost = inside.max_by_key(|stay| (stay.t0_ns, std::cmp::Reverse(stay.t1_ns)));
        let taken = innermost.map(|stay| stay.taken);
        let ns = t1_ns.abs_diff(t0_ns);
        let known = path.parts.iter().position(|part| part.step == step && part.taken == taken);
        let at = known.unwrap_or(path.parts.len());
        match known {
            Some(at) => path.parts[at].ns += ns,
            None => path.parts.push(Part { step, cpu, taken, mark, ns }),
        }
        match path.pieces.last_mut() {
            Some((_, end_ns, last)) if *last == at => *end_ns = t1_ns,
            _ => path.pieces.push((t0_ns, t1_ns, at)),
        }
    }
}

#[cfg(test)]
mod tests;
