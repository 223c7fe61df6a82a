//! Wake-ups taken apart: what each step is given, and that the boxes add up whatever the trace holds.

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
    event(ts_ns, 2, What::Switch { prev: 0, next: TID, label: 0, left: 0 })
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
            *last = Some(Expiry { at_ns: event.ts_ns, known: Confidence::Order });
        }
        builder.event(event, *last, &mut |path| paths.push(path));
    }
    spans.iter().for_each(|span| builder.span(span));
    builder.finish(&mut |path| paths.push(path));
    paths
}

fn boxes(path: &Path) -> Vec<(Step, u32, Option<EventClass>, u64)> {
    let class = |part: &Part| match part.taken {
        Some((Taker::Event(class), _, _)) => Some(class),
        Some((Taker::Blocking(_), _, _)) => Some(EventClass::Unexplained),
        None => None,
    };
    path.parts.iter().map(|part| (part.step, part.cpu, class(part), part.ns)).collect()
}

#[test]
fn a_timer_that_expires_on_another_cpu_is_told_as_that() {
    let events = [expiry(9_000, 0), wake(9_100, 0, false), ipi(9_500), wake(9_550, 2, true), switch(9_700)];
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

fn blocked(ts_ns: i64, blocking: Blocking, label: LabelId) -> KernelEvent {
    let sleeps = label == SLEEPING;
    KernelEvent {
        pid: 5,
        in_task: true,
        ..event(ts_ns, 2, What::Blocked { blocking, label, lock: 0xa, sleeps })
    }
}

fn unblocked(ts_ns: i64, blocking: Blocking) -> KernelEvent {
    KernelEvent { pid: 5, in_task: true, ..event(ts_ns, 2, What::Unblocked { blocking, lock: 0xa }) }
}

const SLEEPING: LabelId = 50;

fn blockings(path: &Path) -> Vec<(Step, Option<Blocking>, u64)> {
    let blocking = |part: &Part| match part.taken {
        Some((Taker::Blocking(blocking), _, _)) => Some(blocking),
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
        // The interrupt itself and the scheduler turn them off as well: that is no reason of the delay.
        blocked(590, InterruptsOff, 3),
        expiry(600, 2),
        wake(610, 2, false),
        unblocked(640, InterruptsOff),
        unblocked(660, PreemptionOff),
        blocked(670, PreemptionOff, 4),
        switch(700),
        unblocked(720, PreemptionOff),
    ];
    let told = paths(&[(100, 700)], &events, &[span(EventClass::Irq, 200, 300)]);
    let expected = [
        (Step::TimerLate, None, 100),
        (Step::TimerLate, Some(InterruptsOff), 300),
        (Step::TimerLate, None, 100),
        (Step::TimerHandler, None, 10),
        (Step::Switch, Some(PreemptionOff), 50),
        (Step::Switch, None, 40),
        (Step::Return, None, 100),
    ];
    assert_eq!(blockings(&told[0]), expected);
    let (_, label, causes) = told[0].parts[1].taken.unwrap();
    let by = causes.iter().next().unwrap().source;
    assert_eq!((label, by.cpu, by.who), (3, 2, crate::attribute::Who::Task(5)));
    assert_eq!(told[0].parts.iter().map(|part| part.ns).sum::<u64>(), 700);
}

#[test]
fn a_lock_that_is_spun_for_takes_its_time_and_one_that_another_task_sleeps_for_takes_none() {
    let (lock, expiry, waking, to) = (Blocking::Lock, expiry(300, 2), wake(600, 2, false), switch(700));
    let spins = [expiry, blocked(350, lock, 8), unblocked(550, lock), waking, to];
    let told = paths(&[(100, 700)], &spins, &[]);
    let expected = [
        (Step::TimerLate, None, 200),
        (Step::TimerHandler, None, 100),
        (Step::TimerHandler, Some(lock), 200),
        (Step::Switch, None, 100),
        (Step::Return, None, 100),
    ];
    assert_eq!(blockings(&told[0]), expected);
    assert!(told[0].parts[2].taken.unwrap().2.is_empty(), "who holds a lock has no event");
    let sleeps = [expiry, blocked(350, lock, SLEEPING), unblocked(550, lock), waking, to];
    assert!(blockings(&paths(&[(100, 700)], &sleeps, &[])[0]).iter().all(|one| one.1.is_none()));
    // The task itself sleeps for a lock on its way to the clock.
    let own = |event: KernelEvent| KernelEvent { pid: TID, ..event };
    let itself = [expiry, waking, to, own(blocked(710, lock, SLEEPING)), own(unblocked(780, lock))];
    let told = paths(&[(100, 700)], &itself, &[]);
    assert_eq!(blockings(&told[0])[3..], [(Step::Return, None, 30), (Step::Return, Some(lock), 70)]);
}

#[test]
fn nothing_is_said_of_a_stretch_whose_begin_or_end_was_lost() {
    let off = Blocking::InterruptsOff;
    let events = [expiry(600, 2), wake(610, 2, false), switch(700)];
    for lost in [vec![unblocked(500, off)], vec![blocked(150, off, 3)]] {
        let mut all = lost;
        all.extend(events);
        assert!(blockings(&paths(&[(100, 700)], &all, &[])[0]).iter().all(|one| one.1.is_none()));
    }
    let mut builder = PathBuilder::new(2, TID, [(100, 700)].into_iter());
    let mut told = Vec::new();
    builder.event(&blocked(150, off, 3), None, &mut |path| told.push(path));
    builder.lost(2);
    builder.event(&unblocked(550, off), None, &mut |path| told.push(path));
    builder.finish(&mut |path| told.push(path));
    assert_eq!(blockings(&told[0]), [(Step::NeverSlept, None, 700)]);
}

proptest! {
    #[test]
    fn the_boxes_add_up_to_the_latency(
        samples in proptest::collection::vec((0i64..100_000, -50i64..5_000), 1..20),
        marks in proptest::collection::vec((0i64..110_000, 0u8..12, 0u32..4), 0..120),
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
            _ => unblocked(ts_ns, Blocking::ALL[usize::from(kind) - 9]),
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
