//! The reported causes, on events made by hand. Thread 77 measures CPU 2; causes are on CPUs 0
//! and 1.

use super::*;
use crate::attribute::{Cause, Confidence, Source, Who};
use crate::testing::KNOWN;
use crate::view::{Context, Target, Way};

const PROBE: i32 = 77;
const RESCHED: u16 = 2;
const CALL: u16 = 3;
const WORK: u16 = 6;
const SOFTIRQ: u16 = 5;
const EXPIRE: u16 = 1;
const SITE: LabelId = 40;
const TIMER: LabelId = 41;

const HOLE: Hole = Hole { cpu: 0, t0_ns: 10, t1_ns: 15 };

fn who(pid: i32) -> Task {
    Task::unnamed(pid, 9)
}

#[derive(Default)]
struct Trace {
    events: Vec<KernelEvent>,
    sets: CpuSets,
}

impl Trace {
    fn on(mut self, cpu: u32, pid: i32, ts_ns: i64, event: u16, what: What) -> Self {
        self.events.push(KernelEvent { ts_ns, cpu, pid, level: Level::Task, irqs_off: false, event, what });
        self
    }

    /// The last event happened in an interrupt.
    fn in_interrupt(mut self) -> Self {
        self.events.last_mut().unwrap().level = Level::Hard;
        self
    }

    fn enter(self, cpu: u32, ts_ns: i64, event: u16, class: EventClass, key: u64) -> Self {
        let context =
            if matches!(event, EXPIRE | SOFTIRQ | WORK) { Context::Preemptible } else { Context::Hard };
        self.on(cpu, PROBE, ts_ns, event, What::Enter { class, context, key, label: TIMER })
    }

    fn exit(self, cpu: u32, ts_ns: i64, of: u16, key: u64) -> Self {
        self.on(cpu, PROBE, ts_ns, 100 + of, What::Exit { of, key, class: EventClass::Irq, label: 0 })
    }

    fn sent(self, cpu: u32, pid: i32, ts_ns: i64, target: Target, class: EventClass) -> Self {
        self.on(cpu, pid, ts_ns, 60, What::Sent { target, class, site: SITE })
    }

    fn causes(&self, class: EventClass) -> Vec<Vec<Cause>> {
        let of_class = self.spans().into_iter().filter(|span| span.class == class);
        of_class.map(|span| span.causes.iter().collect()).collect()
    }

    fn labels(&self, class: EventClass) -> Vec<LabelId> {
        self.spans().into_iter().filter(|span| span.class == class).map(|span| span.label).collect()
    }

    fn spans(&self) -> Vec<Span> {
        let measured = [MeasuredCpu { cpu: 2, tid: PROBE }];
        let mut builder = SpanBuilder::new(0, 10_000, &measured, KNOWN);
        let mut spans = Vec::new();
        for event in &self.events {
            builder.event(event, &self.sets, &mut |span| spans.push(*span));
        }
        builder.finish(&mut |span| spans.push(*span));
        spans
    }
}

fn task(cpu: u32, pid: i32, site: Option<LabelId>) -> Source {
    Source { site, ..Source::new(cpu, Who::Task(pid)) }
}

#[test]
fn a_call_is_joined_by_its_request_also_where_one_ipi_serves_two() {
    let trace = Trace::default()
        .on(0, 5, 10, 61, What::CallQueued { csd: 0xa, target: 2, site: SITE, irq_work: false })
        .on(1, 6, 11, 61, What::CallQueued { csd: 0xb, target: 2, site: SITE, irq_work: false })
        .sent(0, 5, 12, Target::One(2), EventClass::IpiCall)
        .enter(2, 20, CALL, EventClass::IpiCall, 0)
        .on(2, PROBE, 21, 62, What::Called { label: 7, csd: 0xa })
        .on(2, PROBE, 22, 62, What::Called { label: 8, csd: 0xb })
        .exit(2, 30, CALL, 0);
    let both = vec![Cause::exact(task(0, 5, Some(SITE))), Cause::exact(task(1, 6, Some(SITE)))];
    assert_eq!(trace.causes(EventClass::IpiCall), [both]);
}

const WAY: Way = Way { began: Some(50), site: Some(51), frames: Some(52) };

fn stack(trace: Trace, cpu: u32, pid: i32, ts_ns: i64) -> Trace {
    trace.on(
        cpu,
        pid,
        ts_ns,
        63,
        What::Stack { at_switch: false, code: None, in_user_space: false, high_resolution: true, act: WAY },
    )
}

#[test]
fn the_stack_behind_an_event_names_the_function_that_matters_and_what_it_was_for() {
    let asked = |trace: Trace| {
        trace.on(0, 5, 10, 61, What::CallQueued { csd: 0xa, target: 2, site: SITE, irq_work: false })
    };
    let answered = |trace: Trace| {
        trace
            .enter(2, 20, CALL, EventClass::IpiCall, 0)
            .on(2, PROBE, 21, 62, What::Called { label: 7, csd: 0xa })
            .exit(2, 30, CALL, 0)
            .causes(EventClass::IpiCall)
    };
    let by_way = task(0, 5, Some(SITE)).by_way(WAY);
    assert_eq!(answered(stack(asked(Trace::default()), 0, 5, 11)), [[Cause::exact(by_way)]]);
    // Another CPU's stack, another task's, and one after another event do not belong to it.
    let plain = [[Cause::exact(task(0, 5, Some(SITE)))]];
    assert_eq!(answered(stack(asked(Trace::default()), 1, 5, 11)), plain);
    assert_eq!(answered(stack(asked(Trace::default()), 0, 6, 11)), plain);
    let between = asked(Trace::default()).on(0, 5, 11, 64, What::Other);
    assert_eq!(answered(stack(between, 0, 5, 12)), plain);
}

#[test]
fn a_stack_of_helpers_names_no_function_and_irq_work_keeps_what_it_runs() {
    let helpers = What::Stack {
        at_switch: false,
        code: None,
        in_user_space: false,
        high_resolution: true,
        act: Way { site: None, ..WAY },
    };
    let sent = |trace: Trace| trace.sent(0, 5, 10, Target::One(2), EventClass::IpiResched);
    let trace = sent(Trace::default())
        .on(0, 5, 11, 63, helpers)
        .enter(2, 20, RESCHED, EventClass::IpiResched, 0)
        .exit(2, 30, RESCHED, 0);
    let none = Source { began: WAY.began, frames: WAY.frames, ..task(0, 5, None) };
    assert_eq!(trace.causes(EventClass::IpiResched), [[Cause::order(none)]]);
    let queued = What::CallQueued { csd: 0xc, target: 2, site: SITE, irq_work: true };
    let trace = stack(Trace::default().on(0, 5, 10, 61, queued), 0, 5, 11)
        .sent(0, 5, 12, Target::One(2), EventClass::IpiCall)
        .enter(2, 20, CALL, EventClass::IpiCall, 0)
        .exit(2, 30, CALL, 0);
    let runs = Source { site: Some(SITE), ..none };
    assert_eq!(trace.causes(EventClass::IpiCall), [[Cause::order(runs)]]);
}

#[test]
fn a_send_and_a_wake_up_are_named_by_their_stacks_too() {
    let sent = Trace::default().sent(0, 5, 10, Target::One(2), EventClass::IpiResched);
    let trace =
        stack(sent, 0, 5, 11).enter(2, 20, RESCHED, EventClass::IpiResched, 0).exit(2, 30, RESCHED, 0);
    let by_way = task(0, 5, Some(SITE)).by_way(WAY);
    assert_eq!(trace.causes(EventClass::IpiResched), [[Cause::order(by_way)]]);
    let woken = Trace::default().on(1, 6, 10, 50, What::Wake { pid: 30, target: 2, done: false });
    let trace = stack(woken, 1, 6, 11)
        .on(2, PROBE, 40, 52, What::Switch { prev: who(PROBE), runnable: false, next: who(30) })
        .on(2, 30, 50, 52, What::Switch { prev: who(30), runnable: false, next: who(PROBE) });
    assert_eq!(trace.causes(EventClass::Switch), [[Cause::exact(task(1, 6, None).by_way(WAY))]]);
}

#[test]
fn irq_work_is_named_by_what_it_runs_and_its_ipi_not_twice() {
    let kick = 42;
    let queued = What::CallQueued { csd: 0xc, target: 2, site: kick, irq_work: true };
    let trace = Trace::default()
        .on(0, 5, 10, 61, queued)
        .sent(0, 5, 11, Target::One(2), EventClass::IpiCall)
        .enter(2, 20, CALL, EventClass::IpiCall, 0)
        .exit(2, 30, CALL, 0)
        // What follows on the same CPU has another source.
        .sent(0, 6, 40, Target::One(2), EventClass::IpiCall)
        .enter(2, 50, CALL, EventClass::IpiCall, 0)
        .exit(2, 60, CALL, 0);
    let one = |pid, site| vec![Cause::order(task(0, pid, Some(site)))];
    assert_eq!(trace.causes(EventClass::IpiCall), [one(5, kick), one(6, SITE)]);
}

#[test]
fn an_ipi_without_a_request_is_joined_by_order_and_only_once() {
    let mut trace = Trace::default();
    let set = trace.sets.id(&[0b0110]);
    let trace = trace
        .sent(0, 5, 10, Target::Set(set), EventClass::IpiCall)
        .enter(2, 20, CALL, EventClass::IpiCall, 0)
        .exit(2, 30, CALL, 0)
        .enter(2, 40, CALL, EventClass::IpiCall, 0)
        .exit(2, 50, CALL, 0);
    assert_eq!(trace.causes(EventClass::IpiCall), [vec![Cause::order(task(0, 5, Some(SITE)))], vec![]]);
}

#[test]
fn a_wake_up_completed_in_an_ipi_names_who_asked_for_it() {
    let trace = Trace::default()
        .on(1, 6, 10, 50, What::Wake { pid: 30, target: 2, done: false })
        .enter(2, 20, CALL, EventClass::IpiCall, 0)
        .on(2, PROBE, 21, 51, What::Wake { pid: 30, target: 2, done: true })
        .exit(2, 30, CALL, 0)
        .on(2, PROBE, 40, 52, What::Switch { prev: who(PROBE), runnable: false, next: who(30) })
        .on(2, 30, 50, 52, What::Switch { prev: who(30), runnable: false, next: who(PROBE) })
        .on(2, PROBE, 60, 52, What::Switch { prev: who(PROBE), runnable: false, next: who(30) });
    let waker = task(1, 6, None);
    assert_eq!(trace.causes(EventClass::IpiCall), [vec![Cause::exact(waker)]]);
    // Its vector does not say what it brought; the wake-up that it completed does.
    assert_eq!(trace.labels(EventClass::IpiCall), [KNOWN.remote_wake]);
    let nobody_woken = Trace::default().enter(2, 20, CALL, EventClass::IpiCall, 0).exit(2, 30, CALL, 0);
    assert_eq!(nobody_woken.labels(EventClass::IpiCall), [TIMER]);
    // The second time it was not woken.
    assert_eq!(trace.causes(EventClass::Switch), [vec![Cause::exact(waker)], vec![]]);
}

#[test]
fn a_reschedule_ipi_has_its_sends_and_else_the_wake_up_before_it() {
    let wake = |trace: Trace, at| trace.on(1, 6, at, 50, What::Wake { pid: 30, target: 2, done: true });
    let trace = wake(Trace::default(), 5)
        .sent(0, 5, 10, Target::One(2), EventClass::IpiResched)
        .enter(2, 20, RESCHED, EventClass::IpiResched, 0)
        .exit(2, 30, RESCHED, 0);
    let trace = wake(trace, 35).enter(2, 40, RESCHED, EventClass::IpiResched, 0).exit(2, 50, RESCHED, 0);
    let expected = [vec![Cause::order(task(0, 5, Some(SITE)))], vec![Cause::order(task(1, 6, None))]];
    assert_eq!(trace.causes(EventClass::IpiResched), expected);
}

#[test]
fn in_an_interrupt_the_source_is_what_runs_there_and_not_the_task_it_interrupts() {
    let trace = Trace::default()
        .enter(0, 10, EXPIRE, EventClass::TimerWheel, 0xf)
        .on(0, 5, 11, 63, What::Queued { work: 0x1 })
        .in_interrupt()
        .exit(0, 12, EXPIRE, 0xf)
        .on(0, 5, 13, 63, What::Queued { work: 0x2 })
        .in_interrupt()
        .enter(2, 20, WORK, EventClass::Work, 0x1)
        .exit(2, 30, WORK, 0x1)
        .enter(2, 40, WORK, EventClass::Work, 0x2)
        .exit(2, 50, WORK, 0x2)
        .enter(2, 60, WORK, EventClass::Work, 0x2)
        .exit(2, 70, WORK, 0x2);
    let of = |who| vec![Cause::exact(Source::new(0, who))];
    let expected = [of(Who::Interrupt(TIMER)), of(Who::SomeInterrupt), vec![]];
    assert_eq!(trace.causes(EventClass::Work), expected);
}

#[test]
fn a_timer_armed_elsewhere_and_a_raised_softirq_are_joined() {
    let trace = Trace::default()
        .on(0, 5, 10, 64, What::Armed { timer: 0xe, expires_ns: 0 })
        .on(2, PROBE, 11, 65, What::Raised { vector: 9 })
        .enter(2, 20, EXPIRE, EventClass::TimerWheel, 0xe)
        .exit(2, 30, EXPIRE, 0xe)
        .enter(2, 40, SOFTIRQ, EventClass::Softirq, 9)
        .exit(2, 50, SOFTIRQ, 9);
    assert_eq!(trace.causes(EventClass::TimerWheel), [vec![Cause::exact(task(0, 5, None))]]);
    assert_eq!(trace.causes(EventClass::Softirq), [vec![Cause::exact(task(2, PROBE, None))]]);
}

#[test]
fn after_a_loss_nothing_from_before_is_believed() {
    let measured = [MeasuredCpu { cpu: 2, tid: PROBE }];
    let mut builder = SpanBuilder::new(0, 10_000, &measured, KNOWN);
    let mut spans = Vec::new();
    let trace = Trace::default()
        .on(0, 5, 10, 63, What::Queued { work: 0x1 })
        .enter(2, 20, WORK, EventClass::Work, 0x1)
        .exit(2, 30, WORK, 0x1);
    for (at, event) in trace.events.iter().enumerate() {
        builder.event(event, &trace.sets, &mut |span| spans.push(*span));
        if at == 0 {
            builder.lost(HOLE, &mut |span| spans.push(*span));
        }
    }
    builder.finish(&mut |span| spans.push(*span));
    assert!(spans.iter().all(|span| span.causes.is_empty()), "{spans:?}");
    assert!(spans.iter().any(|span| span.class == EventClass::Work));
}

/// While events of CPU 0 are missing, CPU 1 queues work: CPU 0 may have canceled and requeued it.
#[test]
fn what_is_asked_for_while_events_are_missing_is_known_by_order_and_only_so_long() {
    let measured = [MeasuredCpu { cpu: 2, tid: PROBE }];
    let work = |at_ns: i64, trace: Trace| {
        trace.enter(2, at_ns, WORK, EventClass::Work, 0x1).exit(2, at_ns + 5, WORK, 0x1)
    };
    let trace = work(20, Trace::default().on(1, 5, 16, 63, What::Queued { work: 0x1 }));
    let trace = trace.on(1, 5, 30, 63, What::Queued { work: 0x1 });
    let trace = work(80, work(60, trace).on(1, 5, 70, 63, What::Queued { work: 0x1 }));
    let mut builder = SpanBuilder::new(0, 10_000, &measured, KNOWN);
    let mut spans = Vec::new();
    builder.lost(Hole { t0_ns: 15, t1_ns: 50, ..HOLE }, &mut |span| spans.push(*span));
    for event in &trace.events {
        builder.event(event, &trace.sets, &mut |span| spans.push(*span));
    }
    builder.finish(&mut |span| spans.push(*span));
    let works = spans.iter().filter(|span| span.class == EventClass::Work);
    let causes: Vec<Vec<Cause>> = works.map(|span| span.causes.iter().collect()).collect();
    let by = task(1, 5, None);
    assert_eq!(causes, [vec![Cause::order(by)], vec![], vec![Cause::exact(by)]]);
}

#[test]
fn a_tlb_flush_has_the_sender_of_the_ipi_that_brought_it() {
    let flush = What::Instant { class: EventClass::Tlb, label: 8, length_ns: 0 };
    let trace = Trace::default()
        .on(0, 5, 10, 66, What::Shootdown)
        .on(1, 6, 11, 61, What::CallQueued { csd: 0xa, target: 2, site: SITE, irq_work: false })
        .enter(2, 20, CALL, EventClass::IpiCall, 0)
        .on(2, PROBE, 21, 62, What::Called { label: 7, csd: 0xa })
        .on(2, PROBE, 22, 67, flush)
        .exit(2, 30, CALL, 0)
        .enter(2, 40, CALL, EventClass::IpiCall, 0)
        .on(2, PROBE, 42, 67, flush)
        .exit(2, 50, CALL, 0);
    let expected = [vec![Cause::exact(task(1, 6, Some(SITE)))], vec![Cause::order(task(0, 5, None))]];
    assert_eq!(trace.causes(EventClass::Tlb), expected);
    assert_eq!(trace.causes(EventClass::IpiCall), expected);
    assert!(expected.iter().flatten().any(|cause| cause.confidence == Confidence::Order));
}
