//! A frequency that changes while a task waits.

use super::*;
use crate::view::Change;

/// A change of CPU 2 that takes at most 2,000 ns, recorded on CPU `on`.
fn changed(ts_ns: i64, on: u32) -> KernelEvent {
    let change = Some(Change { label: 6, most_ns: 2_000 });
    KernelEvent { level: Level::Task, ..event(ts_ns, on, What::Frequency { cpu: 2, change }) }
}

fn at_work(ts_ns: i64) -> KernelEvent {
    KernelEvent { level: Level::Task, ..event(ts_ns, 2, What::Other) }
}

/// Time in changes by step, ns.
fn changes(path: &Path) -> Vec<(Step, u64)> {
    let of = Taker::Blocking(Blocking::FrequencyChange);
    let is = |part: &&Part| part.taken.is_some_and(|one| one.taker == of);
    path.parts.iter().filter(is).map(|part| (part.step, part.ns)).collect()
}

/// The path of a sample from 1,000 to 10,000 whose timer expires at 8,000.
fn way(events: &[KernelEvent]) -> Path {
    let mut events = events.to_vec();
    events.extend([expiry(8_000, 2), wake(8_100, 2, false), switch(9_000)]);
    paths_of(&[(1_000, 9_000)], &events, &[]).remove(0)
}

#[test]
fn what_the_driver_says_before_and_behind_a_change_is_its_at_most() {
    // The task that sets frequencies does it from elsewhere.
    let path = way(&[at_work(0), changed(5_000, 0)]);
    assert_eq!(changes(&path), [(Step::TimerLate, 4_000)]);
    let late: u64 = path.parts.iter().filter(|part| part.step == Step::TimerLate).map(|part| part.ns).sum();
    assert_eq!(late, 7_000, "the rest stays in the step");
    // From the CPU itself.
    assert_eq!(changes(&way(&[at_work(0), changed(5_000, 2)])), [(Step::TimerLate, 4_000)]);
}

#[test]
fn a_cpu_that_was_seen_at_work_did_not_stand_still_until_then() {
    let events = [at_work(4_500), changed(5_000, 0), at_work(5_300)];
    assert_eq!(changes(&way(&events)), [(Step::TimerLate, 800)]);
    assert_eq!(changes(&way(&[at_work(4_500), changed(5_000, 2), at_work(5_300)])), [(Step::TimerLate, 800)]);
}

#[test]
fn changes_of_others_and_those_of_unknown_length_say_nothing_and_nothing_goes_over_a_loss() {
    let other = |what| KernelEvent { level: Level::Task, ..event(5_000, 0, what) };
    let change = Some(Change { label: 6, most_ns: 2_000 });
    assert_eq!(changes(&way(&[at_work(0), other(What::Frequency { cpu: 0, change })])), []);
    assert_eq!(changes(&way(&[at_work(0), other(What::Frequency { cpu: 2, change: None })])), []);
    let mut frequency = super::super::frequency::Frequency::default();
    let mut stretches = Vec::new();
    let mut keep = |stretch| stretches.push(stretch);
    frequency.event(&at_work(0), 2, &mut keep);
    frequency.lost();
    frequency.event(&changed(5_000, 0), 2, &mut keep);
    frequency.event(&at_work(6_000), 2, &mut keep);
    assert_eq!(stretches.len(), 1, "none before the change, whose beginning is lost: {stretches:?}");
}
