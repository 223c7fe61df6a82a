//! Wake-ups taken apart: the boxes of each step, which add up whatever the trace holds.

use super::*;
use crate::testing::{self, KNOWN};
use crate::view::{Context, Way};
use proptest::prelude::*;

const TID: i32 = 77;

fn event(ts_ns: i64, cpu: u32, what: What) -> KernelEvent {
    KernelEvent { ts_ns, cpu, pid: 0, level: Level::Hard, irqs_off: true, event: 0, what }
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

/// The task that waits runs with this real-time priority.
const FIFO: i64 = 50;

fn fifo(priority: i64) -> Prio {
    Prio::new(99 - priority)
}

fn fair() -> Prio {
    Prio::new(120)
}

fn task(pid: i32, prio: Prio) -> Task {
    Task { pid, prio, comm: 9, softirqd: false }
}

fn idle() -> Task {
    task(0, fair())
}

fn victim() -> Task {
    task(TID, fifo(FIFO))
}

/// The task that left sleeps, or is runnable.
fn between(ts_ns: i64, prev: Task, runnable: bool, next: Task) -> KernelEvent {
    let event = event(ts_ns, 2, What::Switch { prev, runnable, next });
    KernelEvent { pid: prev.pid, level: Level::Task, ..event }
}

fn switch(ts_ns: i64) -> KernelEvent {
    between(ts_ns, idle(), false, victim())
}

/// In an interrupt; a softirq outside of one.
fn span(class: EventClass, t0_ns: i64, t1_ns: i64) -> Span {
    let level = if class == EventClass::Softirq { Level::Softirq } else { Level::Hard };
    Span { label: 9, level, ..testing::span(2, class, [t0_ns, t1_ns]) }
}

fn ran(who: Task, t0_ns: i64, t1_ns: i64) -> Span {
    Span { level: Level::Task, task: who, ..span(EventClass::Switch, t0_ns, t1_ns) }
}

fn paths_of(samples: &[(i64, i64)], events: &[KernelEvent], spans: &[Span]) -> Vec<Path> {
    paths_on(KNOWN, samples, events, spans)
}

fn paths_on(known: Known, samples: &[(i64, i64)], events: &[KernelEvent], spans: &[Span]) -> Vec<Path> {
    let mut builder = PathBuilder::new(2, TID, known, samples.iter().copied());
    let (mut paths, mut expired) = (Vec::new(), [None; 4]);
    for event in events {
        let last = &mut expired[event.cpu as usize];
        if let What::Enter { class: EventClass::TimerHrtimer, .. } = event.what {
            *last = Some(Expiry { at_ns: event.ts_ns, known: Confidence::Order, level: event.level });
        }
        builder.event(event, *last, &mut |path| paths.push(path));
    }
    spans.iter().for_each(|span| builder.span(span));
    builder.finish(&mut |path| paths.push(path));
    paths
}

fn boxes(path: &Path) -> Vec<(Step, u32, Option<EventClass>, u64)> {
    let class = |part: &Part| match part.taken.map(|taken| taken.taker) {
        Some(Taker::Event(class)) => Some(class),
        Some(Taker::Blocking(_)) => Some(EventClass::Unexplained),
        None => None,
    };
    path.parts.iter().map(|part| (part.step, part.cpu, class(part), part.ns)).collect()
}

#[test]
fn a_timer_that_expires_on_another_cpu_counts_on_that_cpu() {
    let events = [expiry(9_000, 0), wake(9_100, 0, false), ipi(9_500), wake(9_550, 2, true), switch(9_700)];
    // It ran on the task's own CPU while the other one was late, and took nothing.
    let spans = [span(EventClass::Irq, 2_000, 3_000), span(EventClass::Softirq, 9_600, 9_650)];
    let paths = paths_of(&[(1_000, 9_000)], &events, &spans);
    let expected = [
        (Step::TimerLate, 0, None, 8_000),
        (Step::TimerHandler, 0, None, 100),
        (Step::IpiInFlight, 2, None, 400),
        (Step::WakeUp, 2, None, 50),
        (Step::Switch, 2, None, 100),
        (Step::Switch, 2, Some(EventClass::Softirq), 50),
        (Step::Return, 2, None, 300),
    ];
    assert_eq!(boxes(&paths[0]), expected);
    assert_eq!(paths[0].replaced, Some(idle()));
}

#[test]
fn what_runs_on_the_cpu_takes_its_time_out_of_the_step_and_the_innermost_wins() {
    let events = [expiry(600, 2), wake(610, 2, false), switch(700)];
    let spans =
        [span(EventClass::Nmi, 200, 300), span(EventClass::Irq, 150, 500), ran(task(5, fair()), 0, 700)];
    let paths = paths_of(&[(100, 700)], &events, &spans);
    let expected = [
        (Step::TimerLate, 2, None, 150),
        (Step::TimerLate, 2, Some(EventClass::Irq), 250),
        (Step::TimerLate, 2, Some(EventClass::Nmi), 100),
        (Step::TimerHandler, 2, None, 10),
        (Step::Switch, 2, None, 90),
        (Step::Return, 2, None, 100),
    ];
    assert_eq!(boxes(&paths[0]), expected);
}

#[test]
fn a_task_that_was_late_already_did_not_sleep() {
    let paths = paths_of(&[(100, 2_000), (1_100, 1_500)], &[switch(2_000)], &[]);
    assert_eq!(boxes(&paths[1]), [(Step::NeverSlept, 2, None, 1_500)]);
}

fn blocked(ts_ns: i64, blocking: Blocking, label: LabelId) -> KernelEvent {
    let sleeps = label == SLEEPING;
    KernelEvent {
        pid: 5,
        level: Level::Task,
        irqs_off: false,
        ..event(ts_ns, 2, What::Blocked { blocking, label, lock: 0xa, sleeps })
    }
}

fn unblocked(ts_ns: i64, blocking: Blocking) -> KernelEvent {
    KernelEvent { pid: 5, level: Level::Task, ..event(ts_ns, 2, What::Unblocked { blocking, lock: 0xa }) }
}

const SLEEPING: LabelId = 50;

fn blockings(path: &Path) -> Vec<(Step, Option<Blocking>, u64)> {
    let blocking = |part: &Part| match part.taken.map(|taken| taken.taker) {
        Some(Taker::Blocking(blocking)) => Some(blocking),
        _ => None,
    };
    path.parts.iter().map(|part| (part.step, blocking(part), part.ns)).collect()
}

#[test]
fn interrupts_off_explain_what_waits_for_an_interrupt_and_preemption_off_what_waits_for_a_switch() {
    use Blocking::{InterruptsOff, PreemptionOff};
    let events = [
        blocked(120, PreemptionOff, 4),
        blocked(150, InterruptsOff, 3),
        unblocked(550, InterruptsOff),
        // The interrupt itself and the scheduler turn them off as well: no reason for the delay.
        blocked(590, InterruptsOff, 3),
        expiry(600, 2),
        wake(610, 2, false),
        unblocked(640, InterruptsOff),
        unblocked(660, PreemptionOff),
        blocked(670, PreemptionOff, 4),
        switch(700),
        unblocked(720, PreemptionOff),
    ];
    let paths = paths_of(&[(100, 700)], &events, &[span(EventClass::Irq, 200, 300)]);
    let expected = [
        (Step::TimerLate, None, 100),
        (Step::TimerLate, Some(InterruptsOff), 300),
        (Step::TimerLate, None, 100),
        (Step::TimerHandler, None, 10),
        (Step::Switch, Some(PreemptionOff), 50),
        (Step::Switch, None, 40),
        (Step::Return, None, 100),
    ];
    assert_eq!(blockings(&paths[0]), expected);
    let Taken { label, causes, .. } = paths[0].parts[1].taken.unwrap();
    let by = causes.iter().next().unwrap().source;
    assert_eq!((label, by.cpu, by.who), (3, 2, crate::attribute::Who::Task(5)));
    assert_eq!(paths[0].parts.iter().map(|part| part.ns).sum::<u64>(), 700);
}

#[test]
fn a_probed_function_takes_its_time_until_the_cpu_is_given_up_in_it() {
    let function = Blocking::ProbedFunction;
    let another = KernelEvent { pid: 6, ..unblocked(150, function) };
    let events = [
        blocked(140, function, 3),
        // The same function, of another task: not its end.
        another,
        expiry(600, 2),
        wake(610, 2, false),
        switch(700),
        unblocked(900, function),
    ];
    let path = &paths_of(&[(100, 700)], &events, &[span(EventClass::Irq, 640, 650)])[0];
    let expected = [
        (Step::TimerLate, None, 40),
        (Step::TimerLate, Some(function), 460),
        (Step::TimerHandler, None, 10),
        (Step::Switch, Some(function), 80),
        (Step::Switch, None, 10),
        (Step::Return, None, 100),
    ];
    assert_eq!(blockings(path), expected, "what interrupts it has its own box");
    assert_eq!(path.parts[1].taken.unwrap().label, 3);
    // One that returns before the interrupt may have kept it off.
    let before = [
        blocked(140, function, 3),
        unblocked(550, function),
        expiry(600, 2),
        wake(610, 2, false),
        switch(700),
    ];
    let path = &paths_of(&[(100, 700)], &before, &[])[0];
    assert_eq!(blockings(path)[1], (Step::TimerLate, Some(function), 410));
}

#[test]
fn a_lock_that_is_spun_for_takes_its_time_and_one_that_another_task_sleeps_for_takes_none() {
    let (lock, expiry, waking, to) = (Blocking::Lock, expiry(300, 2), wake(600, 2, false), switch(700));
    let handler = |event: KernelEvent| KernelEvent { level: Level::Hard, ..event };
    let spins = [expiry, handler(blocked(350, lock, 8)), handler(unblocked(550, lock)), waking, to];
    let paths = paths_of(&[(100, 700)], &spins, &[]);
    let expected = [
        (Step::TimerLate, None, 200),
        (Step::TimerHandler, None, 100),
        (Step::TimerHandler, Some(lock), 200),
        (Step::Switch, None, 100),
        (Step::Return, None, 100),
    ];
    assert_eq!(blockings(&paths[0]), expected);
    assert!(paths[0].parts[2].taken.unwrap().causes.is_empty(), "who holds a lock has no event");
    let sleeps = [expiry, blocked(350, lock, SLEEPING), unblocked(550, lock), waking, to];
    assert!(blockings(&paths_of(&[(100, 700)], &sleeps, &[])[0]).iter().all(|one| one.1.is_none()));
    // The task itself sleeps for a lock before it reads the clock.
    let own = |event: KernelEvent| KernelEvent { pid: TID, ..event };
    let itself = [expiry, waking, to, own(blocked(710, lock, SLEEPING)), own(unblocked(780, lock))];
    let paths = paths_of(&[(100, 700)], &itself, &[]);
    assert_eq!(blockings(&paths[0])[3..], [(Step::Return, None, 30), (Step::Return, Some(lock), 70)]);
}

#[test]
fn nothing_is_said_of_a_stretch_whose_begin_or_end_was_lost() {
    let off = Blocking::InterruptsOff;
    let events = [expiry(600, 2), wake(610, 2, false), switch(700)];
    for lost in [vec![unblocked(500, off)], vec![blocked(150, off, 3)]] {
        let mut all = lost;
        all.extend(events);
        assert!(blockings(&paths_of(&[(100, 700)], &all, &[])[0]).iter().all(|one| one.1.is_none()));
    }
    let mut builder = PathBuilder::new(2, TID, KNOWN, [(100, 700)].into_iter());
    let mut paths = Vec::new();
    builder.event(&blocked(150, off, 3), None, &mut |path| paths.push(path));
    builder.lost(Hole { cpu: 2, t0_ns: 150, t1_ns: 160 });
    builder.event(&unblocked(550, off), None, &mut |path| paths.push(path));
    builder.finish(&mut |path| paths.push(path));
    assert!(paths.is_empty(), "{paths:?}");
}

/// Neither an interrupt nor a task with precedence waits for a lower task.
#[test]
fn an_ordinary_task_takes_nothing_from_one_that_goes_first() {
    let events = [expiry(600, 2), wake(610, 2, false), switch(700)];
    for lower in [fair(), fifo(FIFO - 1), Prio::UNKNOWN] {
        let paths = paths_of(&[(100, 700)], &events, &[ran(task(5, lower), 0, 690)]);
        assert!(boxes(&paths[0]).iter().all(|one| one.2.is_none()), "{lower:?}: {paths:?}");
    }
    for first in [fifo(FIFO), fifo(99), Prio::DEADLINE, Prio::STOPPER] {
        let paths = paths_of(&[(100, 700)], &events, &[ran(task(5, first), 0, 690)]);
        let expected = [
            (Step::TimerLate, 2, None, 500),
            (Step::TimerHandler, 2, None, 10),
            (Step::Switch, 2, Some(EventClass::Switch), 80),
            (Step::Switch, 2, None, 10),
            (Step::Return, 2, None, 100),
        ];
        assert_eq!(boxes(&paths[0]), expected, "{first:?}");
        assert_eq!(paths[0].parts[2].taken.unwrap().task.unwrap().pid, 5);
    }
}

#[test]
fn fair_tasks_delay_one_another() {
    let own = task(TID, fair());
    let events = [expiry(600, 2), wake(610, 2, false), between(700, task(5, Prio::new(139)), true, own)];
    let paths = paths_of(&[(100, 700)], &events, &[ran(task(5, Prio::new(139)), 0, 700)]);
    assert_eq!(boxes(&paths[0])[2], (Step::Switch, 2, Some(EventClass::Switch), 90));
}

/// A softirq runs with interrupts on; at the end of an interrupt it delays every task, in
/// a thread of PREEMPT_RT only lower ones.
#[test]
fn softirqs_delay_switches_and_no_timer() {
    let events = [expiry(600, 2), wake(610, 2, false), switch(700)];
    let late = boxes(&paths_of(&[(100, 700)], &events, &[span(EventClass::Softirq, 200, 590)])[0]);
    assert_eq!(late[0], (Step::TimerLate, 2, None, 500));
    let softirqd = Task { softirqd: true, ..task(5, fair()) };
    let served = Span { task: softirqd, ..span(EventClass::Softirq, 620, 690) };
    let taken =
        |rt| boxes(&paths_on(Known { rt, ..KNOWN }, &[(100, 700)], &events, &[served])[0])[2..].to_vec();
    let softirq = (Step::Switch, 2, Some(EventClass::Softirq), 70);
    assert!(taken(false).contains(&softirq));
    assert!(!taken(true).contains(&softirq));
}

/// On PREEMPT_RT the timer of an ordinary thread expires in a thread: tasks with precedence over
/// that thread delay the timer.
#[test]
fn a_timer_that_a_thread_serves_waits_for_what_goes_before_the_thread() {
    let softirqd = Task { softirqd: true, ..task(5, fifo(1)) };
    let own = task(TID, fair());
    let served = |event: KernelEvent| KernelEvent { pid: 5, level: Level::Softirq, irqs_off: false, ..event };
    let events = [
        between(400, task(6, fifo(10)), false, softirqd),
        served(expiry(600, 2)),
        served(wake(610, 2, false)),
        between(700, softirqd, false, own),
    ];
    let spans = [ran(task(6, fifo(10)), 0, 400), ran(softirqd, 400, 700), ran(task(7, fair()), 400, 410)];
    let paths = paths_on(Known { rt: true, ..KNOWN }, &[(100, 700)], &events, &spans);
    let expected = [
        (Step::TimerLate, 2, Some(EventClass::Switch), 300),
        (Step::TimerLate, 2, None, 200),
        (Step::TimerHandler, 2, None, 10),
        (Step::Switch, 2, Some(EventClass::Switch), 90),
        (Step::Return, 2, None, 100),
    ];
    assert_eq!(boxes(&paths[0]), expected);
}

/// The time of a busy loop: it never sleeps, was preempted by a hog, throttled, and delayed by
/// something without an event.
#[test]
fn a_gap_of_a_loop_that_did_not_sleep_is_taken_apart_too() {
    let (hog, low) = (task(5, fifo(60)), task(6, fair()));
    let events = [
        between(0, idle(), true, victim()),
        between(200, victim(), true, hog),
        between(300, hog, false, victim()),
        between(500, victim(), true, low),
        between(800, low, true, victim()),
        expiry(2_000, 0),
    ];
    let spans = [ran(hog, 200, 300), span(EventClass::Irq, 310, 320), ran(low, 500, 800)];
    let paths = paths_of(&[(190, 130), (490, 320), (900, 50)], &events, &spans);
    let never = |class, ns| (Step::NeverSlept, 2, class, ns);
    assert_eq!(
        boxes(&paths[0]),
        [never(None, 20), never(Some(EventClass::Switch), 100), never(Some(EventClass::Irq), 10),]
    );
    assert_eq!(boxes(&paths[1]), [never(None, 20), never(Some(EventClass::Throttle), 300)]);
    assert_eq!(boxes(&paths[2]), [never(None, 50)]);
}

#[test]
fn a_task_whose_switch_is_not_in_the_trace_did_not_have_the_cpu_as_far_as_is_known() {
    // Some kernels leave switches out: then waiting and returning to user space cannot be
    // distinguished.
    let events = [expiry(200, 2), wake(210, 2, false)];
    let paths = paths_of(&[(100, 700)], &events, &[]);
    let expected = [
        (Step::TimerLate, 2, None, 100),
        (Step::TimerHandler, 2, None, 10),
        (Step::SwitchUnseen, 2, None, 590),
    ];
    assert_eq!(boxes(&paths[0]), expected);
}

#[test]
fn whom_the_scheduler_passes_over_is_out_of_budget() {
    let (hog, low) = (task(5, fifo(60)), task(6, fair()));
    // The hog runs first, as it may; then the scheduler takes the lowest task, twice.
    let events = [
        expiry(200, 2),
        wake(210, 2, false),
        between(400, hog, true, low),
        between(500, low, true, idle()),
        between(700, idle(), false, victim()),
    ];
    let spans = [ran(hog, 0, 400), ran(low, 400, 500)];
    let paths = paths_of(&[(100, 700)], &events, &spans);
    let expected = [
        (Step::TimerLate, 2, None, 100),
        (Step::TimerHandler, 2, None, 10),
        (Step::Switch, 2, Some(EventClass::Switch), 190),
        (Step::Switch, 2, Some(EventClass::Throttle), 300),
        (Step::Return, 2, None, 100),
    ];
    assert_eq!(boxes(&paths[0]), expected);
    // The hog is passed over before the task is even woken, and so is the task.
    let events = [
        between(50, hog, true, low),
        expiry(200, 2),
        wake(210, 2, false),
        between(650, low, true, hog),
        between(700, hog, false, victim()),
    ];
    let paths = paths_of(&[(100, 700)], &events, &[ran(low, 50, 650), ran(hog, 650, 700)]);
    assert_eq!(
        boxes(&paths[0])[2..4],
        [(Step::Switch, 2, Some(EventClass::Throttle), 440), (Step::Switch, 2, Some(EventClass::Switch), 50),]
    );
    // Only this task itself ends it.
    let events =
        [between(50, hog, true, low), expiry(200, 2), wake(210, 2, false), between(700, low, true, victim())];
    let paths = paths_of(&[(100, 700)], &events, &[ran(low, 50, 700)]);
    assert_eq!(boxes(&paths[0])[2], (Step::Switch, 2, Some(EventClass::Throttle), 490));
    // A fair task rightly waits for other fair ones, but for idle only without budget.
    let own = task(TID, fair());
    for (taken, box_of) in [(idle(), EventClass::Throttle), (low, EventClass::Switch)] {
        let events = [
            expiry(200, 2),
            wake(210, 2, false),
            between(300, low, true, taken),
            between(700, taken, true, own),
        ];
        let paths = paths_of(
            &[(100, 700)],
            &events,
            &[ran(low, 0, 300), ran(low, 300, if taken == low { 700 } else { 300 })],
        );
        assert!(boxes(&paths[0]).iter().any(|one| one.2 == Some(box_of) && one.3 >= 390), "{paths:?}");
    }
}

mod budget;
mod frequency;
mod idle;
mod kernel;
mod stopped;

/// A stack of the task `pid`, at its switch or in an interrupt.
fn stack(ts_ns: i64, pid: i32, at_switch: bool, code: Option<Way>) -> KernelEvent {
    let in_user_space = false;
    KernelEvent {
        pid,
        ..event(
            ts_ns,
            2,
            What::Stack { at_switch, code, in_user_space, high_resolution: true, act: Way::default() },
        )
    }
}

proptest! {
    #[test]
    fn the_boxes_add_up_to_the_latency(
        samples in proptest::collection::vec((0i64..100_000, -50i64..5_000), 1..20),
        marks in proptest::collection::vec((0i64..110_000, 0u8..14, 0u32..4), 0..120),
        runs in proptest::collection::vec((0i64..110_000, 1i64..4_000, 0u8..3), 0..40),
    ) {
        let mut samples = samples;
        samples.sort_unstable();
        let mut events: Vec<_> = marks.into_iter().map(|(ts_ns, kind, cpu)| match kind {
            0 => expiry(ts_ns, cpu),
            1 => wake(ts_ns, cpu, false),
            2 => wake(ts_ns, cpu, true),
            3 => ipi(ts_ns),
            4 => switch(ts_ns),
            5..=7 => blocked(ts_ns, Blocking::ALL[usize::from(kind) - 5], 60 + cpu),
            8 => blocked(ts_ns, Blocking::Lock, SLEEPING),
            9..=11 => unblocked(ts_ns, Blocking::ALL[usize::from(kind) - 9]),
            _ => stack(ts_ns, 0, kind == 12, Some(Way::default())),
        }).collect();
        events.sort_by_key(|event| event.ts_ns);
        let classes = [EventClass::Irq, EventClass::Switch, EventClass::SelfCaused];
        let mut spans: Vec<_> = runs.into_iter().map(|(t0, length, class)| span(classes[class as usize], t0, t0 + length)).collect();
        spans.sort_by_key(|span| span.t1_ns);
        events.push(switch(1_000_000_000));
        for path in paths_of(&samples, &events, &spans) {
            prop_assert_eq!(path.parts.iter().map(|part| part.ns).sum::<u64>() as i64, path.value_ns);
            let mut lengths = vec![0; path.parts.len()];
            let mut at_ns = path.t_ns;
            for Piece { t0_ns, t1_ns, part } in &path.pieces {
                prop_assert_eq!(*t0_ns, at_ns);
                at_ns = *t1_ns;
                lengths[*part] += t1_ns.abs_diff(*t0_ns);
            }
            prop_assert_eq!(at_ns, path.t_ns + path.value_ns);
            prop_assert_eq!(lengths, path.parts.iter().map(|part| part.ns).collect::<Vec<_>>());
        }
    }
}
