//! A CPU that did not execute and delays a timer.

use super::*;

/// The release, when the interrupt came, and when the task ran.
const RELEASE: i64 = 100_000;
const ENTERED: i64 = 900_000;
const RAN: i64 = 930_000;

/// The events of a wake-up whose timer came late; the interrupt found user space or not.
fn late(in_user_space: bool) -> Vec<KernelEvent> {
    let low = task(5, fair());
    let found = What::Stack {
        at_switch: false,
        code: None,
        in_user_space,
        high_resolution: true,
        act: Way::default(),
    };
    vec![
        between(50_000, victim(), false, low),
        event(
            ENTERED,
            2,
            What::Enter { class: EventClass::TimerHrtimer, context: Context::Hard, key: 0, label: 2 },
        ),
        expiry(905_000, 2),
        wake(910_000, 2, false),
        wake(912_000, 2, true),
        KernelEvent { pid: 5, ..event(913_000, 2, found) },
        between(925_000, low, true, victim()),
    ]
}

/// How long the CPU did not execute, and what stays with the step, ns, if the timer is known with
/// this confidence.
fn stopped(known: Known, timer: Confidence, events: &[KernelEvent], spans: &[Span]) -> [u64; 2] {
    let mut builder = PathBuilder::new(2, TID, known, [(RELEASE, RAN - RELEASE)].into_iter());
    let mut paths = Vec::new();
    let mut expiry = None;
    for event in events {
        if let What::Enter { context: Context::Preemptible, .. } = event.what {
            expiry = Some(Expiry { at_ns: event.ts_ns, known: timer, level: event.level });
        }
        builder.event(event, expiry, &mut |path| paths.push(path));
    }
    spans.iter().for_each(|span| builder.span(span));
    builder.finish(&mut |path| paths.push(path));
    let [path] = &paths[..] else { panic!("{paths:?}") };
    assert_eq!(path.parts.iter().map(|part| part.ns).sum::<u64>(), 830_000);
    let late = || path.parts.iter().filter(|part| part.step == Step::TimerLate);
    let of =
        |taker| late().filter(move |part| part.taken.map(|taken| taken.taker) == taker).map(|part| part.ns);
    [Some(Taker::Blocking(Blocking::NotExecuting)), None].map(|taker| of(taker).sum())
}

#[test]
fn a_timer_that_comes_late_into_user_space_shows_that_the_cpu_did_not_execute() {
    let exact = |events: &[KernelEvent], spans: &[Span]| stopped(KNOWN, Confidence::Exact, events, spans);
    // The interrupt's own beginning stays with the step.
    assert_eq!(exact(&late(true), &[]), [800_000, 5_000]);
    // Another interrupt's handler ran meanwhile: that has its own box.
    assert_eq!(exact(&late(true), &[span(EventClass::Irq, 890_000, 899_000)]), [791_000, 5_000]);
    // So has that interrupt's exit, with interrupts off, which arms the tick.
    let mut events = late(true);
    let at_exit =
        [Level::Hard, Level::Task].map(|level| KernelEvent { level, ..event(899_000, 2, What::Other) });
    events.splice(1..1, at_exit);
    assert_eq!(exact(&events, &[]), [800_000, 5_000]);
    // It was seen at work meanwhile: before that, code may have run with interrupts off.
    let mut events = late(true);
    let woken = What::Wake { pid: 6, target: 2, done: false };
    let at_work = KernelEvent { pid: 5, level: Level::Task, irqs_off: false, ..event(600_000, 2, woken) };
    events.insert(1, at_work);
    assert_eq!(exact(&events, &[]), [300_000, 505_000]);
    // So short that it may have been the return to user space.
    events[1].ts_ns = ENTERED - SHORT;
    assert_eq!(exact(&events, &[]), [0, 805_000]);
}

const SHORT: i64 = 49_000;

#[test]
fn where_one_condition_is_missing_nothing_is_said_to_be_shown() {
    let none = [0, 805_000];
    let events = late(true);
    // It found kernel code, which may have had interrupts off.
    assert_eq!(stopped(KNOWN, Confidence::Exact, &late(false), &[]), none);
    // Not the timer that the task armed: it may have been armed late.
    assert_eq!(stopped(KNOWN, Confidence::Order, &events, &[]), none);
    // The handlers of interrupts were not recorded.
    assert_eq!(stopped(Known { interrupts: false, ..KNOWN }, Confidence::Exact, &events, &[]), none);
    // Timers of an ordinary task may be late.
    let ordinary = |event: &KernelEvent| match event.what {
        What::Switch { prev, runnable, next } => {
            let fair = |one: Task| if one.pid == TID { task(TID, fair()) } else { one };
            KernelEvent { what: What::Switch { prev: fair(prev), runnable, next: fair(next) }, ..*event }
        }
        _ => *event,
    };
    let events_of_fair: Vec<_> = events.iter().map(ordinary).collect();
    assert_eq!(stopped(KNOWN, Confidence::Exact, &events_of_fair, &[]), none);
    // A softirq served the timer: it may have waited for others.
    let soft: Vec<_> = events.iter().map(|one| KernelEvent { level: soft_level(one), ..*one }).collect();
    assert_eq!(stopped(KNOWN, Confidence::Exact, &soft, &[])[0], 0);
    // Without high resolution timers expire with the tick.
    let coarse = |event: &KernelEvent| match event.what {
        What::Stack { at_switch, code, in_user_space, act, .. } => {
            let what = What::Stack { at_switch, code, in_user_space, high_resolution: false, act };
            KernelEvent { what, ..*event }
        }
        _ => *event,
    };
    let at_ticks: Vec<_> = events.iter().map(coarse).collect();
    assert_eq!(stopped(KNOWN, Confidence::Exact, &at_ticks, &[]), none);
    // The stack is that of another wake-up.
    let mut between_them = late(true);
    let other = What::Wake { pid: 6, target: 2, done: true };
    between_them.insert(5, event(912_500, 2, other));
    assert_eq!(stopped(KNOWN, Confidence::Exact, &between_them, &[]), none);
    // Nothing was seen of the CPU before: interrupts may have been off since then.
    assert_eq!(stopped(KNOWN, Confidence::Exact, &events[1..], &[]), none);
}

fn soft_level(event: &KernelEvent) -> Level {
    let expiry = matches!(event.what, What::Enter { context: Context::Preemptible, .. });
    if expiry { Level::Softirq } else { event.level }
}
