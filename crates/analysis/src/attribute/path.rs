//! The critical path of each wake-up: from the intended release to when the task ran, every nanosecond in exactly one box.
//!
//! The kernel's events mark the way: the timer expires, perhaps on another CPU; its handler asks for the wake-up; if the task sleeps on
//! another CPU an IPI goes there; the scheduler switches to the task; the task returns to user space and reads the clock. The time
//! before each mark is that mark's step. What else ran meanwhile on the CPU that the step waits for (an interrupt, a softirq, another
//! task) takes its own time out of the step; what is left stays with the step. So the boxes of a sample add up to its latency, and
//! nothing is called a cause only because it was there: an interrupt that overlaps a late step elsewhere takes nothing from it.
//!
//! These are the four parts of scheduling latency in the OSPERT 2013 paper (§1), as far as tracepoints show them: time with interrupts
//! or preemption off has no event on stock kernels, and stays in the step.

use super::cause::Causes;
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

/// Where a part of a latency went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The step.
    pub step: Step,
    /// The CPU that the step waited for.
    pub cpu: u32,
    /// What else ran there: class, what, and who asked for it; `None` for the step itself.
    pub ran: Option<(EventClass, LabelId, Causes)>,
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

/// What has been seen of one sample.
#[derive(Debug, Clone, Copy)]
struct Marks {
    release_ns: i64,
    ran_ns: i64,
    /// Time and CPU.
    expiry: Option<(i64, u32)>,
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
            last_ipi_ns: i64::MIN,
        }
    }

    /// The next event of the merged stream that is of this CPU or wakes this thread. `expiry_ns`: when a timer expired last on the
    /// event's CPU.
    pub fn event(&mut self, event: &KernelEvent, expiry_ns: Option<i64>, sink: &mut impl FnMut(Path)) {
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
        self.mark(event, expiry_ns);
    }

    fn mark(&mut self, event: &KernelEvent, expiry_ns: Option<i64>) {
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
                    let expiry = expiry_ns.filter(|at| !event.in_task && *at >= marks.release_ns);
                    marks.expiry = expiry.map(|at| (at, cpu));
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
        sink(apart(&marks, self.cpu, self.spans.make_contiguous()));
    }
}

/// The steps of a sample with their ends, in order of time.
fn steps(marks: &Marks, cpu: u32) -> Vec<(i64, Step, u32)> {
    if marks.switch.is_none() && marks.waking.is_none() {
        return vec![(marks.ran_ns, Step::NeverSlept, cpu)];
    }
    let mut ends = Vec::with_capacity(6);
    ends.extend(marks.expiry.map(|(at, on)| (at, Step::TimerLate, on)));
    ends.extend(marks.waking.map(|(at, on)| (at, Step::TimerHandler, on)));
    ends.extend(marks.woken.map(|(at, on)| (at, Step::WakeUp, on)));
    ends.extend(marks.ipi.map(|at| (at, Step::IpiInFlight, cpu)));
    ends.extend(marks.switch.map(|at| (at, Step::Switch, cpu)));
    ends.sort();
    ends.push((marks.ran_ns, Step::Return, cpu));
    ends
}

fn apart(marks: &Marks, cpu: u32, spans: &[Span]) -> Path {
    let value_ns = marks.ran_ns - marks.release_ns;
    let mut path = Path { t_ns: marks.release_ns, value_ns, parts: Vec::new(), pieces: Vec::new() };
    let mut from = marks.release_ns;
    for (until, step, on) in steps(marks, cpu) {
        let until = until.clamp(from, marks.ran_ns);
        let others = if on == cpu { spans } else { &[] };
        fill(&mut path, step, on, [from, until], others);
        from = until;
    }
    path
}

/// Puts the time of a step into boxes: each moment belongs to the innermost span, that which began last.
fn fill(path: &mut Path, step: Step, cpu: u32, [from, until]: [i64; 2], spans: &[Span]) {
    let touching = || spans.iter().filter(|span| span.t0_ns < until && span.t1_ns > from);
    let mut cuts: Vec<i64> = touching().flat_map(|span| [span.t0_ns, span.t1_ns]).collect();
    cuts.retain(|cut| from < *cut && *cut < until);
    cuts.extend([from, until]);
    cuts.sort_unstable();
    cuts.dedup();
    for pair in cuts.windows(2) {
        let (t0_ns, t1_ns) = (pair[0], pair[1]);
        let inside = touching().filter(|span| span.t0_ns <= t0_ns && span.t1_ns >= t1_ns);
        let innermost = inside.max_by_key(|span| (span.t0_ns, std::cmp::Reverse(span.t1_ns)));
        let ran = innermost.map(|span| (span.class, span.label, span.causes));
        let ns = t1_ns.abs_diff(t0_ns);
        let known = path.parts.iter().position(|part| part.step == step && part.ran == ran);
        let at = known.unwrap_or(path.parts.len());
        match known {
            Some(at) => path.parts[at].ns += ns,
            None => path.parts.push(Part { step, cpu, ran, ns }),
        }
        match path.pieces.last_mut() {
            Some((_, end_ns, last)) if *last == at => *end_ns = t1_ns,
            _ => path.pieces.push((t0_ns, t1_ns, at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Context;
    use proptest::prelude::*;

    const TID: i32 = 77;

    fn event(ts_ns: i64, cpu: u32, what: What) -> KernelEvent {
        KernelEvent { ts_ns, cpu, pid: 0, in_task: false, event: 0, what }
    }

    fn expiry(ts_ns: i64, cpu: u32) -> KernelEvent {
        let (class, context) = (EventClass::TimerHrtimer, Context::Preemptible);
        event(ts_ns, cpu, What::Enter { class, context, key: 0xe, label: 1 })
    }

    fn wake(ts_ns: i64, cpu: u32, done: bool) -> KernelEvent {
        event(ts_ns, cpu, What::Wake { pid: TID, target: 2, done })
    }

    fn ipi(ts_ns: i64) -> KernelEvent {
        event(ts_ns, 2, What::Enter { class: EventClass::IpiCall, context: Context::Hard, key: 0, label: 1 })
    }

    fn switch(ts_ns: i64) -> KernelEvent {
        event(ts_ns, 2, What::Switch { prev: 0, next: TID, label: 0 })
    }

    fn span(class: EventClass, t0_ns: i64, t1_ns: i64) -> Span {
        let (net_ns, causes) = ((t1_ns - t0_ns) as u64, Causes::default());
        Span { cpu: 2, class, t0_ns, t1_ns, net_ns, label: 9, counts: true, causes }
    }

    fn paths(samples: &[(i64, i64)], events: &[KernelEvent], spans: &[Span]) -> Vec<Path> {
        let mut builder = PathBuilder::new(2, TID, samples.iter().copied());
        let (mut paths, mut expired) = (Vec::new(), [None; 4]);
        for event in events {
            let last = &mut expired[event.cpu as usize];
            if let What::Enter { class: EventClass::TimerHrtimer, .. } = event.what {
                *last = Some(event.ts_ns);
            }
            builder.event(event, *last, &mut |path| paths.push(path));
        }
        spans.iter().for_each(|span| builder.span(span));
        builder.finish(&mut |path| paths.push(path));
        paths
    }

    fn boxes(path: &Path) -> Vec<(Step, u32, Option<EventClass>, u64)> {
        path.parts.iter().map(|part| (part.step, part.cpu, part.ran.map(|ran| ran.0), part.ns)).collect()
    }

    #[test]
    fn a_timer_that_expires_on_another_cpu_is_told_as_that() {
        let events =
            [expiry(9_000, 0), wake(9_100, 0, false), ipi(9_500), wake(9_550, 2, true), switch(9_700)];
        // It ran on the task's own CPU while the other one was late, and took nothing.
        let spans = [span(EventClass::Irq, 2_000, 3_000), span(EventClass::Softirq, 9_600, 9_650)];
        let told = paths(&[(1_000, 9_000)], &events, &spans);
        let expected = [
            (Step::TimerLate, 0, None, 8_000),
            (Step::TimerHandler, 0, None, 100),
            (Step::IpiInFlight, 2, None, 400),
            (Step::WakeUp, 2, None, 50),
            (Step::Switch, 2, None, 100),
            (Step::Switch, 2, Some(EventClass::Softirq), 50),
            (Step::Return, 2, None, 300),
        ];
        assert_eq!(boxes(&told[0]), expected);
    }

    #[test]
    fn what_runs_on_the_cpu_takes_its_time_out_of_the_step_and_the_innermost_wins() {
        let events = [expiry(600, 2), wake(610, 2, false), switch(700)];
        let spans = [span(EventClass::Irq, 200, 300), span(EventClass::Switch, 0, 500)];
        let told = paths(&[(100, 700)], &events, &spans);
        let expected = [
            (Step::TimerLate, 2, Some(EventClass::Switch), 300),
            (Step::TimerLate, 2, Some(EventClass::Irq), 100),
            (Step::TimerLate, 2, None, 100),
            (Step::TimerHandler, 2, None, 10),
            (Step::Switch, 2, None, 90),
            (Step::Return, 2, None, 100),
        ];
        assert_eq!(boxes(&told[0]), expected);
    }

    #[test]
    fn a_task_that_was_late_already_did_not_sleep() {
        let told = paths(&[(100, 2_000), (1_100, 1_500)], &[switch(2_000)], &[]);
        assert_eq!(boxes(&told[1]), [(Step::NeverSlept, 2, None, 1_500)]);
    }

    proptest! {
        #[test]
        fn the_boxes_add_up_to_the_latency(
            samples in proptest::collection::vec((0i64..100_000, -50i64..5_000), 1..20),
            marks in proptest::collection::vec((0i64..110_000, 0u8..5, 0u32..4), 0..80),
            runs in proptest::collection::vec((0i64..110_000, 1i64..4_000, 0u8..3), 0..40),
        ) {
            let mut samples = samples;
            samples.sort_unstable();
            let mut events: Vec<_> = marks.into_iter().map(|(ts_ns, kind, cpu)| match kind {
                0 => expiry(ts_ns, cpu),
                1 => wake(ts_ns, cpu, false),
                2 => wake(ts_ns, cpu, true),
                3 => ipi(ts_ns),
                _ => switch(ts_ns),
            }).collect();
            events.sort_by_key(|event| event.ts_ns);
            let classes = [EventClass::Irq, EventClass::Switch, EventClass::SelfCaused];
            let mut spans: Vec<_> = runs.into_iter().map(|(t0, length, class)| span(classes[class as usize], t0, t0 + length)).collect();
            spans.sort_by_key(|span| span.t1_ns);
            events.push(switch(1_000_000_000));
            for path in paths(&samples, &events, &spans) {
                prop_assert_eq!(path.parts.iter().map(|part| part.ns).sum::<u64>() as i64, path.value_ns);
                let mut lengths = vec![0; path.parts.len()];
                let mut at_ns = path.t_ns;
                for (t0_ns, t1_ns, part) in &path.pieces {
                    prop_assert_eq!(*t0_ns, at_ns);
                    at_ns = *t1_ns;
                    lengths[*part] += t1_ns.abs_diff(*t0_ns);
                }
                prop_assert_eq!(at_ns, path.t_ns + path.value_ns);
                prop_assert_eq!(lengths, path.parts.iter().map(|part| part.ns).collect::<Vec<_>>());
            }
        }
    }
}
