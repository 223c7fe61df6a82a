//! Every rule on events made by hand. Thread 77 measures CPU 2 unless a test says otherwise.
//!
//! Long because: one test per rule, and all build streams alike.

use super::*;
use crate::prio::Prio;
use crate::view::Context;
use proptest::prelude::*;

const PROBE: i32 = 77;
const KTHREAD: i32 = 30;
const TICK: LabelId = 1;
const SLEEPER: LabelId = 2;
const OTHER_TIMER: LabelId = 3;
const PLAIN: LabelId = 9;
const UNNAMED: LabelId = 99;
const UNSEEN: LabelId = 98;

// Numbers of events; any distinct ones do.
const TIMER_IRQ: u16 = 0;
const EXPIRE: u16 = 1;
const RESCHED: u16 = 2;
const CALL: u16 = 3;
const IRQ: u16 = 4;
const SOFTIRQ: u16 = 5;
const WORK: u16 = 6;
const ARM_IPI: u16 = 7;

const KNOWN: Known =
    Known { sleeper: Some(SLEEPER), unnamed: UNNAMED, unseen: UNSEEN, ..crate::testing::KNOWN };

const HOLE: Hole = Hole { cpu: 2, t0_ns: 0, t1_ns: 0 };

/// Named by its number. The probe has precedence.
fn task(pid: i32) -> Task {
    let prio = if pid == PROBE { Prio::new(19) } else { Prio::new(120) };
    Task { pid, prio, comm: 1000 + pid as u32, softirqd: false }
}

/// A stream under construction on one CPU.
struct Stream {
    events: Vec<KernelEvent>,
    cpu: u32,
    pid: i32,
}

impl Stream {
    fn new(pid: i32) -> Self {
        Self { events: Vec::new(), cpu: 2, pid }
    }

    fn push(mut self, ts_ns: i64, event: u16, what: What) -> Self {
        self.events.push(KernelEvent {
            ts_ns,
            cpu: self.cpu,
            pid: self.pid,
            level: Level::Task,
            irqs_off: false,
            event,
            what,
        });
        self
    }

    fn enter(self, ts_ns: i64, event: u16, class: EventClass, label: LabelId) -> Self {
        self.enter_key(ts_ns, event, class, label, 0)
    }

    fn enter_key(self, ts_ns: i64, event: u16, class: EventClass, label: LabelId, key: u64) -> Self {
        let context =
            if matches!(event, EXPIRE | SOFTIRQ | WORK) { Context::Preemptible } else { Context::Hard };
        self.push(ts_ns, event, What::Enter { class, context, key, label })
    }

    fn exit(self, ts_ns: i64, of: u16) -> Self {
        self.exit_key(ts_ns, of, 0)
    }

    fn exit_key(self, ts_ns: i64, of: u16, key: u64) -> Self {
        self.push(ts_ns, 100 + of, What::Exit { of, key, class: EventClass::Irq, label: PLAIN })
    }

    fn wake(self, ts_ns: i64, pid: i32) -> Self {
        let target = self.cpu;
        self.push(ts_ns, 50, What::Wake { pid, target, done: false })
    }

    fn switch(mut self, ts_ns: i64, next: i32) -> Self {
        self = self.hand_over(ts_ns, false, next);
        self
    }

    /// The current task is runnable.
    fn preempt(self, ts_ns: i64, next: i32) -> Self {
        self.hand_over(ts_ns, true, next)
    }

    fn hand_over(mut self, ts_ns: i64, runnable: bool, next: i32) -> Self {
        let (prev, to) = (task(self.pid), task(next));
        self = self.push(ts_ns, 51, What::Switch { prev, runnable, next: to });
        self.pid = next;
        self
    }

    /// The timer's interrupt with one expiry inside, which wakes `woken`.
    fn timer(self, t: i64, class: EventClass, label: LabelId, woken: Option<i32>) -> Self {
        let stream =
            self.enter(t, TIMER_IRQ, EventClass::TimerHrtimer, PLAIN).enter(t + 10, EXPIRE, class, label);
        let stream = if let Some(pid) = woken { stream.wake(t + 20, pid) } else { stream };
        stream.exit(t + 30, EXPIRE).exit(t + 40, TIMER_IRQ)
    }

    fn spans(&self) -> Vec<Span> {
        spans(&self.events, &[MeasuredCpu { cpu: 2, tid: PROBE }])
    }

    /// Class and count of what is an event.
    fn classes(&self) -> Vec<EventClass> {
        self.spans().iter().filter(|span| span.counts).map(|span| span.class).collect()
    }
}

fn builder(measured: &[MeasuredCpu]) -> SpanBuilder {
    SpanBuilder::new(0, 10_000, measured, KNOWN)
}

/// Without causes, levels and tasks: those have tests of their own.
fn spans(events: &[KernelEvent], measured: &[MeasuredCpu]) -> Vec<Span> {
    let caused = caused(events, measured).into_iter();
    let plain = |span| Span { causes: Causes::default(), level: Level::Task, task: task(0), ..span };
    caused.map(plain).collect()
}

fn caused(events: &[KernelEvent], measured: &[MeasuredCpu]) -> Vec<Span> {
    let mut out = Vec::new();
    let mut builder = builder(measured);
    for event in events {
        builder.event(event, &CpuSets::default(), &mut |span| out.push(*span));
    }
    builder.finish(&mut |span| out.push(*span));
    out
}

fn span(class: EventClass, t0_ns: i64, t1_ns: i64, net_ns: u64, label: LabelId) -> Span {
    let (level, task, causes) = (Level::Task, task(0), Causes::default());
    Span { cpu: 2, class, t0_ns, t1_ns, net_ns, label, level, task, counts: true, causes }
}

use EventClass::{
    IpiCall, IpiResched, Irq, Migrate, Nmi, SelfCaused, Softirq, Switch, TimerHrtimer, TimerTick, Work,
};

#[test]
fn nested_spans_do_not_count_in_each_other() {
    let stream = Stream::new(PROBE)
        .enter(100, IRQ, Irq, PLAIN)
        .push(150, 60, What::Instant { class: Nmi, label: 5, length_ns: 20 })
        .exit(200, IRQ);
    assert_eq!(stream.spans(), [span(Nmi, 130, 150, 20, 5), span(Irq, 100, 200, 80, PLAIN)]);
}

#[test]
fn a_tick_is_one_event_under_the_name_of_its_function() {
    let stream = Stream::new(PROBE).timer(100, TimerTick, TICK, None);
    assert_eq!(stream.spans(), [span(TimerTick, 100, 140, 40, TICK)]);
}

#[test]
fn the_probes_own_timer_is_self_by_whom_it_wakes() {
    assert_eq!(Stream::new(0).timer(100, TimerHrtimer, SLEEPER, Some(PROBE)).classes(), [SelfCaused]);
    assert_eq!(Stream::new(0).timer(100, TimerHrtimer, SLEEPER, Some(KTHREAD)).classes(), [TimerHrtimer]);
    assert_eq!(Stream::new(0).timer(100, TimerHrtimer, OTHER_TIMER, None).classes(), [TimerHrtimer]);
}

#[test]
fn and_by_who_armed_it_to_sleep() {
    let expire = |stream: Stream, label| {
        stream
            .enter(100, TIMER_IRQ, TimerHrtimer, PLAIN)
            .enter_key(110, EXPIRE, TimerHrtimer, label, 0xabc)
            .exit_key(130, EXPIRE, 0xabc)
            .exit(140, TIMER_IRQ)
            .classes()
            .pop()
    };
    let armed =
        |pid: i32| Stream::new(pid).push(50, 52, What::Armed { timer: 0xabc, expires_ns: 0 }).switch(60, 0);
    assert_eq!(expire(armed(PROBE), SLEEPER), Some(SelfCaused));
    assert_eq!(expire(armed(KTHREAD), SLEEPER), Some(TimerHrtimer));
    // The scheduler arms timers of its own while the probe is current.
    assert_eq!(expire(armed(PROBE), OTHER_TIMER), Some(TimerHrtimer));
    // The same stack address, armed by another since.
    let rearmed = armed(PROBE).switch(70, KTHREAD).push(80, 52, What::Armed { timer: 0xabc, expires_ns: 0 });
    assert_eq!(expire(rearmed.switch(90, 0), SLEEPER), Some(TimerHrtimer));
}

#[test]
fn a_timer_armed_from_an_interrupt_is_nobodys() {
    let mut stream = Stream::new(PROBE).push(50, 52, What::Armed { timer: 0xabc, expires_ns: 0 });
    stream.events[0].level = Level::Hard;
    let stream = stream.enter(100, TIMER_IRQ, TimerHrtimer, PLAIN).enter_key(
        110,
        EXPIRE,
        TimerHrtimer,
        SLEEPER,
        0xabc,
    );
    assert_eq!(stream.exit_key(130, EXPIRE, 0xabc).exit(140, TIMER_IRQ).classes(), [TimerHrtimer]);
}

#[test]
fn the_tick_beats_other_timers_and_those_beat_the_probes_own() {
    let both = |class, label| {
        Stream::new(0)
            .enter(100, TIMER_IRQ, TimerHrtimer, PLAIN)
            .enter(110, EXPIRE, TimerHrtimer, SLEEPER)
            .wake(115, PROBE)
            .exit(120, EXPIRE)
            .enter(130, EXPIRE, class, label)
            .exit(140, EXPIRE)
            .exit(150, TIMER_IRQ)
            .spans()
    };
    assert_eq!(both(TimerTick, TICK), [span(TimerTick, 100, 150, 50, TICK)]);
    assert_eq!(both(TimerHrtimer, OTHER_TIMER), [span(TimerHrtimer, 100, 150, 50, OTHER_TIMER)]);
}

#[test]
fn a_timer_interrupt_in_which_nothing_expired_is_a_timer() {
    let stream = Stream::new(PROBE).enter(100, TIMER_IRQ, TimerHrtimer, PLAIN).exit(120, TIMER_IRQ);
    assert_eq!(stream.spans(), [span(TimerHrtimer, 100, 120, 20, PLAIN)]);
}

#[test]
fn without_a_timer_interrupt_the_expiry_itself_counts() {
    let stream = Stream::new(PROBE).enter(100, EXPIRE, TimerTick, TICK).exit(130, EXPIRE);
    assert_eq!(stream.spans(), [span(TimerTick, 100, 130, 30, TICK)]);
    let stream = Stream::new(0).enter(100, EXPIRE, TimerHrtimer, SLEEPER).wake(110, PROBE).exit(130, EXPIRE);
    assert_eq!(stream.classes(), [SelfCaused]);
}

#[test]
fn an_nmi_inside_an_absorbed_expiry_still_comes_off_the_interrupt() {
    let stream = Stream::new(PROBE)
        .enter(100, TIMER_IRQ, TimerHrtimer, PLAIN)
        .enter(110, EXPIRE, TimerTick, TICK)
        .push(125, 60, What::Instant { class: Nmi, label: 5, length_ns: 7 })
        .exit(130, EXPIRE)
        .exit(140, TIMER_IRQ);
    assert_eq!(stream.spans(), [span(Nmi, 118, 125, 7, 5), span(TimerTick, 100, 140, 33, TICK)]);
}

#[test]
fn a_switch_lasts_until_the_next_and_leaves_out_what_interrupts_it() {
    let stream =
        Stream::new(PROBE).switch(100, KTHREAD).enter(200, IRQ, Irq, PLAIN).exit(250, IRQ).switch(400, PROBE);
    let expected = [
        span(Irq, 200, 250, 50, PLAIN),
        span(Switch, 100, 400, 250, 1000 + KTHREAD as u32),
        span(SelfCaused, 400, 400, 0, 1000 + PROBE as u32),
    ];
    assert_eq!(stream.spans(), expected);
}

#[test]
fn switches_to_idle_and_back_are_self() {
    assert_eq!(Stream::new(PROBE).switch(100, 0).switch(300, PROBE).classes(), [SelfCaused, SelfCaused]);
}

#[test]
fn a_task_found_running_counts_in_time_but_not_as_a_switch() {
    let stream = Stream::new(KTHREAD).switch(300, PROBE);
    let first = stream.spans()[0];
    assert_eq!(first, Span { counts: false, ..span(Switch, 0, 300, 300, 1000 + KTHREAD as u32) });
    let stream = Stream::new(KTHREAD).push(300, 52, What::Armed { timer: 0xabc, expires_ns: 0 });
    assert_eq!(stream.spans(), [Span { counts: false, ..span(Switch, 0, 10_000, 10_000, UNNAMED) }]);
}

#[test]
fn what_is_open_at_the_end_is_clipped() {
    let stream = Stream::new(PROBE).switch(9_000, KTHREAD);
    assert_eq!(stream.spans(), [span(Switch, 9_000, 10_000, 1_000, 1000 + KTHREAD as u32)]);
}

#[test]
fn what_was_open_at_the_start_counts_in_time_only() {
    let stream =
        Stream::new(PROBE).exit(40, IRQ).enter(100, IRQ, Irq, PLAIN).exit(120, IRQ).exit(130, SOFTIRQ);
    let expected = [Span { counts: false, ..span(Irq, 0, 40, 40, PLAIN) }, span(Irq, 100, 120, 20, PLAIN)];
    assert_eq!(stream.spans(), expected);
}

#[test]
fn an_end_that_was_never_recorded_costs_no_time() {
    let stream = Stream::new(PROBE).enter(100, IRQ, Irq, PLAIN).enter(300, IRQ, Irq, PLAIN).exit(320, IRQ);
    assert_eq!(stream.spans(), [span(Irq, 100, 100, 0, PLAIN), span(Irq, 300, 320, 20, PLAIN)]);
    let stream = Stream::new(PROBE).enter(100, IRQ, Irq, PLAIN).switch(200, KTHREAD).switch(300, PROBE);
    assert_eq!(stream.classes(), [Irq, Switch, SelfCaused]);
    assert_eq!(stream.spans()[0].net_ns, 0);
}

#[test]
fn a_work_item_that_sleeps_goes_on_without_counting_twice() {
    let stream = Stream::new(PROBE)
        .switch(100, KTHREAD)
        .enter_key(110, WORK, Work, 7, 0xbeef)
        .switch(200, PROBE)
        .switch(500, KTHREAD)
        .exit_key(540, WORK, 0xbeef)
        .switch(560, PROBE);
    let work: Vec<_> = stream.spans().into_iter().filter(|span| span.class == Work).collect();
    assert_eq!(work, [span(Work, 110, 200, 90, 7), Span { counts: false, ..span(Work, 500, 540, 40, 7) }]);
    let switches: u64 =
        stream.spans().iter().filter(|span| span.class == Switch).map(|span| span.net_ns).sum();
    assert_eq!(switches, 10 + 20);
}

#[test]
fn a_timer_interrupt_inside_a_softirq_timer_is_its_own() {
    // PREEMPT_RT expires soft timers in a task; the hard interrupt nests in it.
    let stream = Stream::new(KTHREAD)
        .enter_key(100, EXPIRE, TimerHrtimer, OTHER_TIMER, 1)
        .timer(150, TimerTick, TICK, None)
        .exit_key(300, EXPIRE, 1);
    let events: Vec<_> =
        stream.spans().into_iter().filter(|span| span.counts).map(|span| (span.class, span.net_ns)).collect();
    assert_eq!(events, [(TimerTick, 40), (TimerHrtimer, 160)]);
}

#[test]
fn an_ipi_that_wakes_the_probe_is_self() {
    let ipi = |woken: &[i32]| {
        let stream = Stream::new(0).enter(100, CALL, IpiCall, PLAIN);
        woken
            .iter()
            .fold(stream, |stream, &pid| stream.wake(110, pid))
            .exit(120, CALL)
            .switch(130, PROBE)
            .classes()
    };
    assert_eq!(ipi(&[PROBE]), [SelfCaused, SelfCaused]);
    assert_eq!(ipi(&[KTHREAD]), [IpiCall, SelfCaused]);
    assert_eq!(ipi(&[PROBE, KTHREAD]), [IpiCall, SelfCaused]);
    // A function call without a wake-up has not woken the probe either.
    assert_eq!(ipi(&[]), [IpiCall, SelfCaused]);
}

#[test]
fn a_silent_reschedule_is_self_if_the_probe_comes_next_for_no_other_reason() {
    let resched = |pid| Stream::new(pid).enter(100, RESCHED, IpiResched, PLAIN).exit(110, RESCHED);
    assert_eq!(resched(0).switch(120, PROBE).classes(), [SelfCaused, SelfCaused]);
    assert_eq!(resched(0).switch(120, KTHREAD).classes(), [IpiResched, Switch]);
    assert_eq!(
        resched(PROBE).switch(120, 0).switch(200, PROBE).classes(),
        [IpiResched, SelfCaused, SelfCaused]
    );
    // Its own timer woke it: the IPI before was for something else.
    let timer = resched(0).timer(200, TimerHrtimer, SLEEPER, Some(PROBE)).switch(300, PROBE);
    assert_eq!(timer.classes(), [IpiResched, SelfCaused, SelfCaused]);
    // Another task was woken for this CPU.
    let other = Stream::new(0).wake(90, KTHREAD).enter(100, RESCHED, IpiResched, PLAIN).exit(110, RESCHED);
    assert_eq!(other.switch(120, PROBE).classes(), [IpiResched, SelfCaused]);
    // Of two, only the second can be the cause.
    let two = resched(0).enter(150, RESCHED, IpiResched, PLAIN).exit(160, RESCHED).switch(170, PROBE);
    assert_eq!(two.classes(), [IpiResched, SelfCaused, SelfCaused]);
    assert_eq!(resched(0).classes(), [IpiResched]);
}

#[test]
fn a_wakeup_on_another_cpu_for_this_one_counts_as_a_reason() {
    let mut stream = Stream::new(0);
    stream.cpu = 0;
    let mut stream = stream.push(50, 50, What::Wake { pid: KTHREAD, target: 2, done: false });
    stream.cpu = 2;
    let stream = stream.enter(100, RESCHED, IpiResched, PLAIN).exit(110, RESCHED).switch(120, PROBE);
    assert_eq!(stream.classes(), [IpiResched, SelfCaused]);
}

#[test]
fn the_function_an_ipi_brings_names_it() {
    let stream = Stream::new(PROBE)
        .enter(100, CALL, IpiCall, PLAIN)
        .push(105, 53, What::Called { label: 42, csd: 0 })
        .push(107, 53, What::Called { label: 43, csd: 0 })
        .exit(120, CALL);
    assert_eq!(stream.spans(), [span(IpiCall, 100, 120, 20, 42)]);
}

#[test]
fn an_ipi_delivered_as_an_interrupt_is_one_event() {
    let stream = Stream::new(0)
        .enter(100, IRQ, Irq, PLAIN)
        .enter(105, ARM_IPI, IpiResched, 8)
        .exit(115, ARM_IPI)
        .exit(120, IRQ)
        .switch(130, PROBE);
    assert_eq!(stream.spans()[0], span(SelfCaused, 100, 120, 20, 8));
    assert_eq!(stream.classes(), [SelfCaused, SelfCaused]);
    let stream = Stream::new(PROBE)
        .enter(100, IRQ, Irq, PLAIN)
        .enter(105, ARM_IPI, IpiCall, 8)
        .exit(115, ARM_IPI)
        .exit(120, IRQ);
    assert_eq!(stream.spans(), [span(IpiCall, 100, 120, 20, 8)]);
    // The tick by broadcast: the interrupt, the IPI and the expiry are one event.
    let stream = Stream::new(0)
        .enter(100, IRQ, Irq, PLAIN)
        .enter(105, ARM_IPI, TimerHrtimer, 8)
        .enter(107, EXPIRE, TimerTick, TICK)
        .exit(110, EXPIRE)
        .exit(115, ARM_IPI)
        .exit(120, IRQ);
    assert_eq!(stream.spans(), [span(TimerTick, 100, 120, 20, TICK)]);
}

#[test]
fn page_faults_count_only_while_the_probe_is_current() {
    let fault = |pid| {
        Stream::new(pid).push(100, 61, What::Instant { class: EventClass::Exception, label: 6, length_ns: 0 })
    };
    assert_eq!(fault(PROBE).classes(), [EventClass::Exception]);
    assert!(fault(KTHREAD).classes().is_empty());
}

#[test]
fn each_nmi_counts_once_however_many_handlers_report() {
    let handler =
        |stream: Stream, t, label| stream.push(t, 60, What::Instant { class: Nmi, label, length_ns: 5 });
    let mut stream = Stream::new(PROBE);
    for t in [100, 200, 300] {
        stream = handler(handler(stream, t, 5), t + 10, 6);
    }
    assert_eq!(stream.classes(), [Nmi; 3]);
    assert_eq!(stream.spans().iter().map(|span| span.net_ns).sum::<u64>(), 30);
}

#[test]
fn migrations_count_on_the_measured_cpus_they_touch() {
    let moves = |pid, from, to| {
        let mut stream = Stream::new(0);
        stream.cpu = 0;
        let stream = stream.push(100, 54, What::Migrate { pid, from, to, label: 4 });
        spans(&stream.events, &[MeasuredCpu { cpu: 2, tid: PROBE }, MeasuredCpu { cpu: 3, tid: 78 }])
            .iter()
            .map(|span| (span.cpu, span.class))
            .collect::<Vec<_>>()
    };
    assert!(moves(KTHREAD, 0, 1).is_empty());
    assert_eq!(moves(KTHREAD, 0, 2), [(2, Migrate)]);
    assert_eq!(moves(KTHREAD, 2, 3), [(2, Migrate), (3, Migrate)]);
    assert_eq!(moves(PROBE, 0, 2), [(2, SelfCaused)]);
}

#[test]
fn behind_a_hole_nothing_is_assumed() {
    let mut out = Vec::new();
    let mut builder = builder(&[MeasuredCpu { cpu: 2, tid: PROBE }]);
    let before = Stream::new(PROBE).switch(100, KTHREAD).enter(200, IRQ, Irq, PLAIN);
    let after = Stream::new(KTHREAD).exit(900, IRQ).switch(1000, PROBE);
    before
        .events
        .iter()
        .for_each(|event| builder.event(event, &CpuSets::default(), &mut |span| out.push(*span)));
    builder.lost(HOLE, &mut |span| out.push(*span));
    after
        .events
        .iter()
        .for_each(|event| builder.event(event, &CpuSets::default(), &mut |span| out.push(*span)));
    builder.finish(&mut |span| out.push(*span));
    let spans: Vec<_> = out.iter().map(|span| (span.class, span.t0_ns, span.t1_ns, span.counts)).collect();
    let expected = [
        (Irq, 200, 200, true),
        (Switch, 100, 200, true),
        (Switch, 900, 1000, false),
        (SelfCaused, 1000, 1000, true),
    ];
    assert_eq!(spans, expected);
}

#[test]
fn cpus_keep_their_own_stacks() {
    let mut one = Stream::new(PROBE);
    one.cpu = 2;
    let one = one.enter(100, IRQ, Irq, PLAIN).exit(200, IRQ);
    let mut two = Stream::new(78);
    two.cpu = 3;
    let two = two.enter(150, SOFTIRQ, Softirq, 4).exit(250, SOFTIRQ);
    let mut all = [one.events, two.events].concat();
    all.sort_by_key(|event| event.ts_ns);
    let spans = spans(&all, &[MeasuredCpu { cpu: 2, tid: PROBE }, MeasuredCpu { cpu: 3, tid: 78 }]);
    assert_eq!(
        spans.iter().map(|span| (span.cpu, span.class, span.net_ns)).collect::<Vec<_>>(),
        [(2, Irq, 100), (3, Softirq, 100)]
    );
}

/// The probe preempts a task and sleeps again: only the probe causes the task to resume.
#[test]
fn what_the_probe_preempted_resumes_and_that_is_no_event() {
    let stream =
        Stream::new(KTHREAD).wake(100, PROBE).preempt(110, PROBE).switch(200, KTHREAD).switch(300, 0);
    assert_eq!(stream.classes(), [SelfCaused, SelfCaused, SelfCaused]);
    let resumed: Vec<_> =
        stream.spans().into_iter().filter(|span| span.t0_ns == 200 && span.net_ns == 100).collect();
    assert_eq!(resumed, [Span { counts: false, ..span(SelfCaused, 200, 300, 100, 1000 + KTHREAD as u32) }]);
    // It was woken in between: that is an event again.
    let woken =
        Stream::new(KTHREAD).preempt(110, PROBE).wake(150, KTHREAD).switch(200, KTHREAD).switch(300, 0);
    assert_eq!(woken.classes(), [SelfCaused, Switch, SelfCaused]);
    // The probe waits for the CPU: a task that has it meanwhile interferes.
    let turns = Stream::new(KTHREAD).preempt(110, PROBE).preempt(200, KTHREAD).preempt(300, PROBE);
    assert_eq!(turns.classes(), [SelfCaused, Switch, SelfCaused]);
}

/// A task that may run while the probe waits is distinguished from one that may not.
#[test]
fn time_of_a_task_that_goes_on_is_the_probe_s_own_unless_it_may_delay_the_probe() {
    let equal = |mut stream: Stream| {
        for event in &mut stream.events {
            if let What::Switch { prev, next, .. } = &mut event.what {
                (prev.prio, next.prio) = (Prio::new(120), Prio::new(120));
            }
        }
        stream
    };
    let stream = || Stream::new(KTHREAD).preempt(110, PROBE).switch(200, KTHREAD).switch(300, 0);
    let class = |stream: Stream| {
        stream.spans().into_iter().find(|span| (span.t0_ns, span.net_ns) == (200, 100)).unwrap().class
    };
    assert_eq!((class(stream()), class(equal(stream()))), (SelfCaused, Switch));
    // It has precedence over the probe for a while: it inherits the priority of a task that waits
    // elsewhere for its lock.
    let inherits = |pid, at: [i64; 2]| {
        let prio = |number| What::Prio { pid, prio: Prio::new(number) };
        let stream = Stream::new(KTHREAD).preempt(110, PROBE).switch(200, KTHREAD);
        stream.push(at[0], 53, prio(4)).push(at[1], 53, prio(120)).switch(300, 0)
    };
    let spans = caused(&inherits(KTHREAD, [250, 290]).events, &[MeasuredCpu { cpu: 2, tid: PROBE }]);
    let runs = spans.iter().filter(|span| span.net_ns > 0 && span.t0_ns >= 200);
    let runs: Vec<_> = runs.map(|span| (span.class, span.t0_ns, span.t1_ns, span.task.prio)).collect();
    let [low, high] = [Prio::new(120), Prio::new(4)];
    assert_eq!(runs, [(SelfCaused, 200, 250, low), (Switch, 250, 290, high), (SelfCaused, 290, 300, low)]);
    // A task that is not on this CPU inherits.
    assert_eq!(class(inherits(KTHREAD + 1, [250, 290])), SelfCaused);
    // It gives itself a priority, which only the switch from it shows.
    let mut raised = stream();
    if let Some(What::Switch { prev, .. }) = raised.events.last_mut().map(|event| &mut event.what) {
        prev.prio = high;
    }
    assert_eq!(class(raised), Switch);
}

#[test]
fn a_timer_that_expires_in_the_tick_s_interrupt_is_an_event_of_whoever_armed_it() {
    let stream = Stream::new(PROBE)
        .enter(100, TIMER_IRQ, TimerHrtimer, PLAIN)
        .enter(110, EXPIRE, TimerHrtimer, OTHER_TIMER)
        .exit(120, EXPIRE)
        .enter(130, EXPIRE, TimerTick, TICK)
        .exit(150, EXPIRE)
        .exit(160, TIMER_IRQ);
    assert_eq!(
        stream.spans(),
        [span(TimerHrtimer, 110, 120, 10, OTHER_TIMER), span(TimerTick, 100, 160, 50, TICK)]
    );
}

fn any_what() -> impl Strategy<Value = (u16, What)> {
    let classes = [TimerHrtimer, TimerTick, IpiResched, IpiCall, Irq, Softirq, Work];
    let enter = (0u16..8, 0usize..7, 0u64..3, any::<bool>()).prop_map(move |(event, class, key, hard)| {
        let context = if hard { Context::Hard } else { Context::Preemptible };
        (event, What::Enter { class: classes[class], context, key, label: 1 })
    });
    let exit =
        (0u16..8, 0u64..3).prop_map(|(of, key)| (100 + of, What::Exit { of, key, class: Irq, label: 1 }));
    let instant = (0u64..500).prop_map(|length_ns| (60, What::Instant { class: Nmi, label: 1, length_ns }));
    let switch = (0i32..4, 0i32..4, any::<bool>()).prop_map(|(prev, next, runnable)| {
        (51, What::Switch { prev: task(prev * 77 / 3), runnable, next: task(next * 77 / 3) })
    });
    let wake = (0i32..4, 0u32..4)
        .prop_map(|(pid, target)| (50, What::Wake { pid: pid * 77 / 3, target, done: target > 1 }));
    let armed = (0u64..3).prop_map(|timer| (52, What::Armed { timer, expires_ns: 0 }));
    let inherits = (0i32..4, prop_oneof![Just(4i64), Just(120)])
        .prop_map(|(pid, prio)| (53, What::Prio { pid: pid * 77 / 3, prio: Prio::new(prio) }));
    prop_oneof![4 => enter, 4 => exit, 1 => instant, 2 => switch, 1 => wake, 1 => armed, 1 => inherits]
}

proptest! {
    // Any stream: each moment of a CPU is in at most one span's net time, and spans stay inside
    // the window.
    #[test]
    fn net_times_never_add_up_to_more_than_the_window(
        steps in proptest::collection::vec((0i64..200, 1u32..4, 0i32..4, any_what(), 0u8..40), 0..200),
    ) {
        let measured = [MeasuredCpu { cpu: 2, tid: 77 }, MeasuredCpu { cpu: 3, tid: 51 }];
        let mut builder = builder(&measured);
        let (mut now, mut out) = (0, Vec::new());
        for (step, cpu, pid, (event, what), loss) in steps {
            now = (now + step).min(10_000);
            if loss == 0 {
                builder.lost(Hole { cpu, ..HOLE }, &mut |span| out.push(*span));
            }
            let event = KernelEvent { ts_ns: now, cpu, pid: pid * 77 / 3, level: Level::Task, irqs_off: false, event, what };
            builder.event(&event, &CpuSets::default(), &mut |span| out.push(*span));
        }
        builder.finish(&mut |span| out.push(*span));
        for cpu in [2, 3] {
            let sum: u64 = out.iter().filter(|span| span.cpu == cpu).map(|span| span.net_ns).sum();
            prop_assert!(sum <= 10_000, "CPU {} has {} ns", cpu, sum);
        }
        for span in &out {
            prop_assert!(0 <= span.t0_ns && span.t0_ns <= span.t1_ns && span.t1_ns <= 10_000, "{:?}", span);
            prop_assert!(span.net_ns <= (span.t1_ns - span.t0_ns) as u64, "{:?}", span);
        }
    }
}

mod omitted;
