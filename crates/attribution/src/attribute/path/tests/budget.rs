//! Tasks that are passed over while the followed task sleeps.

use super::*;

const RELEASE: i64 = 100;
const RAN: i64 = 720;

/// How long a wake-up meanwhile was out of budget, given the events in between, ns.
fn without_budget(meanwhile: &[KernelEvent], after: &[KernelEvent]) -> u64 {
    let (low, preempted) = (task(5, fair()), task(6, fifo(FIFO - 10)));
    let before = [between(10, preempted, true, victim()), between(50, victim(), false, low)];
    let wake_up = [expiry(200, 2), wake(210, 2, false), wake(220, 2, true)];
    let switch = [between(700, low, true, victim())];
    let events: Vec<_> =
        before.iter().chain(meanwhile).chain(&wake_up).chain(&switch).chain(after).copied().collect();
    let paths = paths_of(&[(RELEASE, RAN - RELEASE)], &events, &[]);
    let throttled = |part: &&Part| {
        part.step == Step::Switch
            && part.taken.is_some_and(|taken| taken.taker == Taker::Event(EventClass::Throttle))
    };
    paths[0].parts.iter().filter(throttled).map(|part| part.ns).sum()
}

#[test]
fn whoever_was_preempted_and_comes_back_was_passed_over_meanwhile() {
    let preempted = task(6, fifo(FIFO - 10));
    let back = [between(750, victim(), false, preempted)];
    assert_eq!(without_budget(&[], &back), 480);
    // It has not come back, or another one has: it may have left.
    assert_eq!(without_budget(&[], &[]), 0);
    assert_eq!(without_budget(&[], &[between(750, victim(), false, task(7, fifo(FIFO - 10)))]), 0);
    // It is an ordinary task by now, and may have been one before.
    assert_eq!(without_budget(&[], &[between(750, victim(), false, task(6, fair()))]), 0);
    // It slept elsewhere, or was on another CPU.
    let woken = |ts_ns| event(ts_ns, 3, What::Wake { pid: 6, target: 2, done: true });
    let moved = |ts_ns, from, to| event(ts_ns, 3, What::Migrate { pid: 6, from, to, label: 1 });
    assert_eq!(without_budget(&[], &[woken(740), back[0]]), 0);
    assert_eq!(without_budget(&[moved(60, 2, 3)], &[moved(740, 3, 2), back[0]]), 0);
    assert_eq!(without_budget(&[], &[moved(740, 3, 2), back[0]]), 0);
    // It ran before the wake-up: that was the end of it.
    let low = task(5, fair());
    let ran = [between(60, low, true, preempted), between(90, preempted, false, low)];
    assert_eq!(without_budget(&ran, &back), 0);
}
