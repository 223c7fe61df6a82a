//! A sleeping CPU that delays what it is woken for.

use super::*;
use crate::view::IdleState;

/// A state that takes 2,000 ns to leave, at most.
const DEEP: IdleState = IdleState { label: 6, exit_ns: 2_000 };

fn asleep(ts_ns: i64) -> KernelEvent {
    KernelEvent { level: Level::Task, ..event(ts_ns, 2, What::Idle(Some(DEEP))) }
}

fn awake(ts_ns: i64) -> KernelEvent {
    KernelEvent { level: Level::Task, ..event(ts_ns, 2, What::Awake) }
}

fn timer_interrupt(ts_ns: i64) -> KernelEvent {
    event(ts_ns, 2, What::Enter { class: EventClass::TimerHrtimer, context: Context::Hard, key: 0, label: 2 })
}

/// Time in the idle exit by step, ns.
fn exits(path: &Path) -> Vec<(Step, u64)> {
    let is = |part: &&Part| part.taken.is_some_and(|one| one.taker == Taker::Blocking(Blocking::IdleExit));
    path.parts.iter().filter(is).map(|part| (part.step, part.ns)).collect()
}

#[test]
fn a_timer_that_finds_the_cpu_asleep_waits_for_its_exit_and_no_longer_than_the_state_takes() {
    let events = |woken: &[KernelEvent]| {
        let mut events = vec![asleep(-50_000)];
        events.extend(woken);
        events.extend([expiry(5_500, 2), wake(5_600, 2, false), switch(6_000)]);
        events
    };
    let of = |woken: &[KernelEvent]| paths_of(&[(1_000, 6_000)], &events(woken), &[]).remove(0);
    // The timer was due at 1,000; time beyond the exit latency is not the state's.
    let path = of(&[timer_interrupt(5_000), awake(7_000)]);
    assert_eq!(exits(&path), [(Step::TimerLate, 2_000)]);
    let late = path.parts.iter().find(|part| part.step == Step::TimerLate && part.taken.is_none()).unwrap();
    assert_eq!(late.ns, 2_500);
    // A driver that wakes with interrupts off reports it before the interrupt.
    assert_eq!(exits(&of(&[awake(4_000), timer_interrupt(5_000)])), [(Step::TimerLate, 2_000)]);
    // It was awake before the timer was due.
    assert_eq!(exits(&of(&[awake(900), timer_interrupt(5_000)])), []);
    // It was waking for something else when the timer was due.
    assert_eq!(exits(&of(&[awake(1_400), timer_interrupt(5_000)])), [(Step::TimerLate, 400)]);
}

#[test]
fn a_cpu_that_went_to_sleep_late_has_not_slept_before() {
    let events =
        [asleep(3_000), timer_interrupt(4_000), expiry(4_100, 2), wake(4_200, 2, false), switch(4_300)];
    assert_eq!(exits(&paths_of(&[(1_000, 4_000)], &events, &[])[0]), [(Step::TimerLate, 1_000)]);
}

#[test]
fn a_cpu_that_is_woken_without_an_interrupt_delays_the_switch() {
    // It polls the flag that another CPU sets.
    let events = [asleep(0), wake(3_000, 0, false), wake(3_050, 0, true), awake(4_200), switch(4_300)];
    assert_eq!(exits(&paths_of(&[(1_000, 4_000)], &events, &[])[0]), [(Step::Switch, 1_150)]);
}

#[test]
fn of_a_state_without_a_known_latency_nothing_is_said_and_nothing_after_a_loss() {
    let unknown = KernelEvent { what: What::Idle(None), ..asleep(0) };
    let rest = [timer_interrupt(5_000), expiry(5_500, 2), wake(5_600, 2, false), switch(6_000)];
    let events: Vec<_> = [asleep(-9), unknown].into_iter().chain(rest).collect();
    assert_eq!(exits(&paths_of(&[(1_000, 6_000)], &events, &[])[0]), []);
    let mut idle = super::super::idle::Idle::default();
    assert_eq!(idle.event(&asleep(0)), None);
    idle.lost();
    assert_eq!(idle.event(&awake(4_000)), None);
}
